/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp coalesce: the transactions that one access to global memory becomes, bytes moved, and
 * what would move fewer. */
#include "access.h"
#include "svg.h"

#include <inttypes.h>

typedef struct outcome {
    hw_coalesce_result r;
    hw_transaction list[HW_TRANSACTIONS_MAX];
} outcome;

/* ---- advice ---- */

static uint64_t moved_by(const cli_access *a, int64_t shift, int64_t stride)
{
    cli_access other = *a;
    hw_coalesce_result r;
    other.access.address = other.address;
    for (uint32_t lane = 0; lane < a->access.lanes; lane++) {
        if (stride >= 0)
            other.address[lane] = lane * (uint64_t)stride * a->access.width;
        else
            other.address[lane] = a->address[lane] - (uint64_t)shift;
    }
    hw_coalesce_access(a->device, &other.access, &r, NULL);
    return r.bytes_moved;
}

static uint64_t lowest(const cli_access *a)
{
    uint64_t low = UINT64_MAX;
    for (uint32_t lane = 0; lane < a->access.lanes; lane++)
        if (a->access.mask >> lane & 1 && a->address[lane] < low)
            low = a->address[lane];
    return low;
}

/* A sentence, or NULL. */
static const char *advise(cli *c, const cli_access *a, const hw_coalesce_result *r)
{
    if (!a->access.mask || !r->bytes_moved)
        return NULL;
    uint64_t line = a->device->global.line, off = lowest(a) % line;
    uint64_t aligned = off ? moved_by(a, (int64_t)off, -1) : r->bytes_moved,
             dense = moved_by(a, 0, 1);
    if (aligned < r->bytes_moved && aligned <= dense)
        return hw_arena_printf(c->arena,
                               "aligning the first address to %" PRIu64 " bytes (it is %" PRIu64
                               " past) would move %" PRIu64 " bytes",
                               line, off, aligned);
    if (dense < r->bytes_moved && r->bytes_used * 2 > r->bytes_requested)
        return hw_arena_printf(
            c->arena,
            "consecutive lanes on consecutive words would move %" PRIu64
            " bytes (structure of arrays, or a transposed tile in shared memory)",
            dense);
    return NULL;
}

/* ---- the answer ---- */

static int answer_json(cli *c, const cli_access *a, const outcome *o, const char *advice)
{
    const hw_coalesce_result *r = &o->r;
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->transactions && i < HW_TRANSACTIONS_MAX; i++)
        json_array_append_new(
            list, json_pack("{s:I, s:i, s:i, s:s}", "address", (json_int_t)o->list[i].address,
                            "bytes", (int)o->list[i].bytes, "request", (int)o->list[i].part,
                            "lanes", cli_lanes_text(c, o->list[i].lanes)));
    json_t *root = json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:f, s:f, s:o, s:o}", "device",
        a->device->name, "width", (int)a->access.width, "requests", (int)r->requests,
        "transactions", (int)r->transactions, "sectors", (int)r->sectors, "lines", (int)r->lines,
        "bytes_requested", (json_int_t)r->bytes_requested, "bytes_used", (json_int_t)r->bytes_used,
        "bytes_moved", (json_int_t)r->bytes_moved, "efficiency", r->efficiency, "utilisation",
        r->bytes_moved ? (double)r->bytes_used / (double)r->bytes_moved : 0.0, "list", list,
        "lanes", cli_lanes_json(a));
    if (r->address_cycles)
        json_object_set_new(root, "address_cycles", json_integer(r->address_cycles));
    if (advice)
        json_object_set_new(root, "advice", json_string(advice));
    return cli_json(c, root);
}

/* Bytes of a transaction (at most 128) that the lanes it serves use. */
static uint32_t used_in(const cli_access *a, const hw_transaction *x)
{
    uint64_t low = 0, high = 0; /* a bit a byte */
    for (uint32_t lane = 0; lane < a->access.lanes; lane++)
        for (uint32_t b = 0; x->lanes >> lane & 1 && b < a->access.width; b++) {
            uint64_t byte = a->address[lane] + b - x->address;
            if (byte >= x->bytes)
                continue;
            low |= byte < 64 ? UINT64_C(1) << byte : 0;
            high |= byte >= 64 ? UINT64_C(1) << (byte - 64) : 0;
        }
    return (uint32_t)(__builtin_popcountll(low) + __builtin_popcountll(high));
}

static const char *bar(cli *c, uint32_t used, uint32_t bytes)
{
    uint32_t cells = bytes / 4, full = used / 4;
    const char *text = "";
    for (uint32_t i = 0; i < cells; i++)
        text = hw_arena_printf(c->arena, "%s%c", text, i < full ? '#' : '.');
    return text;
}

static void print_list(cli *c, const cli_access *a, const outcome *o)
{
    static const char *const headings[] = { ">#",     ">request", ">address",
                                            ">bytes", ">used",    "a # is 4 bytes used",
                                            "lanes" };
    cli_table t = cli_table_new(c, HW_COUNTOF(headings), headings);
    for (uint32_t i = 0; i < o->r.transactions && i < HW_TRANSACTIONS_MAX; i++) {
        const hw_transaction *x = &o->list[i];
        uint32_t used = used_in(a, x);
        cli_cell(&t, "%" PRIu32, i);
        cli_cell(&t, "%" PRIu32, x->part);
        cli_cell(&t, "0x%" PRIx64, x->address);
        cli_cell(&t, "%" PRIu32, x->bytes);
        cli_cell(&t, "%" PRIu32, used);
        cli_cell(&t, "%s", bar(c, used, x->bytes));
        cli_cell(&t, "%s", cli_lanes_text(c, x->lanes));
    }
    cli_table_print(c, &t);
}

static const char *summary(cli *c, const hw_coalesce_result *r)
{
    return hw_arena_printf(c->arena,
                           "%" PRIu32 " request%s, %" PRIu32 " transaction%s, %" PRIu32
                           " sectors of 32 bytes, %" PRIu64 " of %" PRIu64
                           " bytes moved asked for: efficiency %.1f %%",
                           r->requests, r->requests == 1 ? "" : "s", r->transactions,
                           r->transactions == 1 ? "" : "s", r->sectors, r->bytes_requested,
                           r->bytes_moved, r->efficiency * 100);
}

static void print_text(cli *c, const cli_access *a, const outcome *o, const char *advice)
{
    cli_print(c,
              "%s: %s\n%" PRIu32 " bytes by each of %d lanes, lane at word %s (%s)\n\n  %s%s%s\n",
              a->device->name, a->device->title, a->access.width,
              __builtin_popcountll(a->access.mask), a->words, "global memory",
              cli_style_of(c, STYLE_BOLD), summary(c, &o->r), cli_style_of(c, STYLE_PLAIN));
    if (o->r.address_cycles)
        cli_print(c, "  about %" PRIu32 " cycles of the address unit (advisory)\n",
                  o->r.address_cycles);
    if (advice)
        cli_print(c, "  %s\n", advice);
    cli_print(c, "\n");
    print_list(c, a, o);
    if (a->device->global.note)
        cli_print(c, "%snote: %s%s\n", cli_style_of(c, STYLE_DIM), a->device->global.note,
                  cli_style_of(c, STYLE_PLAIN));
}

/* Rows of lines, a cell for each 4 bytes, coloured by transaction. */
static void draw_lines(page *p, const outcome *o)
{
    enum { CELL = 14, ROW = 20, LEFT = 110 };
    uint32_t n = o->r.transactions < HW_TRANSACTIONS_MAX ? o->r.transactions : HW_TRANSACTIONS_MAX;
    cli_page_raw(
        p, "<svg viewBox=\"0 0 %d %u\" width=\"%d\" role=\"img\" aria-label=\"transactions\">\n",
        LEFT + 32 * CELL, n * ROW, LEFT + 32 * CELL);
    for (uint32_t i = 0; i < n; i++)
        cli_page_raw(p,
                     "<text x=\"0\" y=\"%u\">0x%" PRIx64 "</text><rect x=\"%" PRIu64
                     "\" y=\"%u\" width=\"%u\" height=\"%d\" "
                     "rx=\"3\" fill=\"%s\"><title>%" PRIu32 " bytes</title></rect>\n",
                     i * ROW + 14, o->list[i].address, LEFT + o->list[i].address % 128 / 4 * CELL,
                     i * ROW + 2, o->list[i].bytes / 4 * CELL, ROW - 4, cli_page_colour(i),
                     o->list[i].bytes);
    cli_page_raw(p, "</svg>\n");
}

static int write_page(cli *c, const char *path, const cli_access *a, const outcome *o,
                      const char *advice)
{
    page *p =
        cli_page_open(c, path, hw_arena_printf(c->arena, "Coalescing on %s", a->device->title));
    if (!p)
        return CLI_BAD_INPUT;
    cli_page_paragraph(p, hw_arena_printf(c->arena, "%" PRIu32 " bytes a lane, lane at word %s",
                                          a->access.width, a->words));
    cli_page_paragraph(p, summary(c, &o->r));
    if (advice)
        cli_page_paragraph(p, advice);
    cli_page_paragraph(p, "A row is a transaction, placed in its line of 128 bytes.");
    draw_lines(p, o);
    return cli_page_close(p);
}

/* ---- the constant cache ---- */

static int constant(cli *c, const cli_access *a)
{
    uint32_t requests[2];
    uint32_t all = hw_constant_access(a->device, &a->access, requests);
    bool halves = a->device->global.constant_rule == HW_CONSTANT_HALFWARP;
    if (c->given[OPT_json]) {
        json_t *parts = json_pack("[i]", (int)requests[0]);
        if (halves)
            json_array_append_new(parts, json_integer(requests[1]));
        return cli_json(c, json_pack("{s:s, s:i, s:o}", "device", a->device->name, "requests",
                                     (int)all, "parts", parts));
    }
    cli_print(c, "%s: %" PRIu32 " request%s to the constant cache", a->device->name, all,
              all == 1 ? "" : "s");
    if (halves)
        cli_print(c, " (%" PRIu32 " and %" PRIu32 " of the half-warps)", requests[0], requests[1]);
    cli_print(c, "\n");
    return 0;
}

int cmd_coalesce(cli *c)
{
    cli_access a;
    int status = cli_read_access(c, &a);
    if (status)
        return status;
    if (c->given[OPT_constant])
        return constant(c, &a);
    outcome *o = HW_NEW(c->arena, outcome);
    hw_coalesce_access(a.device, &a.access, &o->r, o->list);
    const char *advice = advise(c, &a, &o->r), *path = cli_text(c, OPT_html, NULL);
    status = path ? write_page(c, path, &a, o, advice) : 0;
    if (status)
        return status;
    if (c->given[OPT_json])
        return answer_json(c, &a, o, advice);
    print_text(c, &a, o, advice);
    return 0;
}

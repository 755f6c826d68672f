/* SPDX-License-Identifier: Apache-2.0
 *
 * halfwarp banks: how shared memory (LDS) serves one access, which lane hits which bank, and what
 * avoids conflicts. */
#include "access.h"
#include "svg.h"

#include <inttypes.h>

#define BANKS_MAX   64
#define LAYERS_MAX  64
#define LAYERS_TEXT 8 /* rows of a part that are printed */

/* ---- which lane hits which bank ---- */

/* One part: for each bank the distinct rows (words) it is asked for, in order, with the first lane
 * of each. */
typedef struct bank_picture {
    uint32_t first, lanes; /* lanes of the part */
    uint32_t depth[BANKS_MAX];
    uint64_t row[BANKS_MAX][LAYERS_MAX];
    uint8_t lane[BANKS_MAX][LAYERS_MAX];
    uint8_t shared[BANKS_MAX][LAYERS_MAX]; /* lanes on the same word */
    uint32_t deepest;
} bank_picture;

static void hit(bank_picture *p, uint32_t bank, uint64_t row, uint32_t lane, bool merge)
{
    uint32_t k = 0;
    while (k < p->depth[bank] && (!merge || p->row[bank][k] != row))
        k++;
    if (k == LAYERS_MAX)
        return;
    if (k == p->depth[bank]) {
        p->row[bank][k] = row;
        p->lane[bank][k] = (uint8_t)lane;
        p->depth[bank]++;
    }
    p->shared[bank][k]++;
    p->deepest = p->depth[bank] > p->deepest ? p->depth[bank] : p->deepest;
}

/* Whether lanes on one word share an access of its bank. */
static bool merges(const cli_access *a)
{
    return a->access.kind == HW_LOAD || a->device->banks.write_conflicts == HW_CONFLICT_WORDS;
}

static uint32_t words_of(const cli_access *a)
{
    return a->access.width > 4 ? a->access.width / 4 : 1;
}

/* On devices that split wide accesses into 32-bit requests a part is one word of a half-warp. */
static void draw(const cli_access *a, uint32_t first, uint32_t lanes, int only_word,
                 bank_picture *p)
{
    memset(p, 0, sizeof *p);
    p->first = first;
    p->lanes = lanes;
    for (uint32_t lane = first; lane < first + lanes && lane < a->access.lanes; lane++) {
        if (!(a->access.mask >> lane & 1))
            continue;
        for (uint32_t w = 0; w < words_of(a); w++) {
            uint64_t at = a->address[lane] + w * 4u;
            if (only_word < 0 || (int)w == only_word)
                hit(p, hw_bank_of(a->device, &a->access, at),
                    hw_bank_row_of(a->device, &a->access, at), lane, merges(a));
        }
    }
}

typedef void see(cli *c, const cli_access *a, const bank_picture *p, uint32_t part, uint32_t passes,
                 void *context);

/* Shows each part that has lanes, in the order of the result's parts. */
static void each_part(cli *c, const cli_access *a, const hw_bank_result *r, see *look,
                      void *context)
{
    bool split = a->device->banks.rule == HW_BANKS16_HALFWARP;
    uint32_t lanes =
        split ? a->device->banks.lanes_per_pass : hw_bank_lanes(a->device, a->access.width);
    uint32_t part = 0, words = split ? words_of(a) : 1;
    bank_picture *p = HW_NEW(c->arena, bank_picture);
    for (uint32_t first = 0; first < a->access.lanes; first += lanes)
        for (uint32_t w = 0; w < words; w++) {
            draw(a, first, lanes, split ? (int)w : -1, p);
            if (p->deepest && part < r->parts) {
                look(c, a, p, part, r->part_passes[part], context);
                part++;
            }
        }
}

static void picture_row(cli *c, const cli_access *a, const bank_picture *p, uint32_t k)
{
    cli_print(c, "      ");
    for (uint32_t b = 0; b < a->device->banks.banks; b++) {
        if (k < p->depth[b])
            cli_print(c, " %s%2u%s", k ? cli_style_of(c, STYLE_BAD) : cli_style_of(c, STYLE_GOOD),
                      p->lane[b][k], cli_style_of(c, STYLE_PLAIN));
        else
            cli_print(c, "  .");
    }
    cli_print(c, "\n");
}

static void picture_text(cli *c, const cli_access *a, const bank_picture *p, uint32_t part,
                         uint32_t passes, void *context)
{
    (void)context;
    cli_print(c, "\npart %" PRIu32 ", lanes %" PRIu32 "-%" PRIu32 ": %" PRIu32 " pass%s\n", part,
              p->first, p->first + p->lanes - 1, passes, passes == 1 ? "" : "es");
    cli_print(c, "%s bank ", cli_style_of(c, STYLE_DIM));
    for (uint32_t b = 0; b < a->device->banks.banks; b++)
        cli_print(c, " %2" PRIu32, b);
    cli_print(c, "%s\n", cli_style_of(c, STYLE_PLAIN));
    for (uint32_t k = 0; k < p->deepest && k < LAYERS_TEXT; k++)
        picture_row(c, a, p, k);
    if (p->deepest > LAYERS_TEXT)
        cli_print(c, "       ... %" PRIu32 " more words on the worst bank\n",
                  p->deepest - LAYERS_TEXT);
}

/* ---- advice ---- */

/* Passes of the access with every lane moved by change. */
typedef uint64_t moved(const cli_access *a, uint64_t word, uint32_t lane, uint64_t parameter);

static uint32_t passes_moved(const cli_access *a, moved *change, uint64_t parameter)
{
    cli_access other = *a;
    hw_bank_result r;
    other.access.address = other.address;
    for (uint32_t lane = 0; lane < a->access.lanes; lane++)
        other.address[lane] =
            change(a, a->address[lane] / a->access.width, lane, parameter) * a->access.width;
    hw_bank_access(a->device, &other.access, &r);
    return r.passes;
}

static uint64_t longer_stride(const cli_access *a, uint64_t word, uint32_t lane, uint64_t parameter)
{
    (void)a;
    return word + lane * parameter;
}

static uint64_t words_of_all_banks(const cli_access *a)
{
    uint64_t n = (uint64_t)a->device->banks.banks * 4 / a->access.width;
    return n ? n : 1;
}

/* One word of padding after every row of as many words as fill all banks. */
static uint64_t padded(const cli_access *a, uint64_t word, uint32_t lane, uint64_t parameter)
{
    (void)lane;
    return word + word / words_of_all_banks(a) * parameter;
}

/* The column within such a row exchanged by exclusive or with the number of the row. */
static uint64_t swizzled(const cli_access *a, uint64_t word, uint32_t lane, uint64_t parameter)
{
    (void)lane;
    (void)parameter;
    uint64_t row = words_of_all_banks(a);
    return word ^ (word / row % row);
}

typedef HW_VEC(const char *) texts;

static void advise(cli *c, const cli_access *a, const hw_bank_result *r, texts *out)
{
    uint64_t row = words_of_all_banks(a);
    if (r->conflicts == 0)
        return;
    for (uint64_t pad = 1; a->strided && a->stride > 0 && pad <= row; pad++)
        if (passes_moved(a, longer_stride, pad) == r->ideal_passes) {
            hw_vec_push(c->arena, out,
                        hw_arena_printf(c->arena,
                                        "padding: a stride of %" PRId64 " words (%" PRIu64
                                        " more) is free of conflicts",
                                        a->stride + (int64_t)pad, pad));
            break;
        }
    for (uint64_t pad = 1; pad <= 4; pad++)
        if (passes_moved(a, padded, pad) == r->ideal_passes) {
            hw_vec_push(
                c->arena, out,
                hw_arena_printf(c->arena,
                                "padding: %" PRIu64 " word%s after every %" PRIu64
                                " (word w moves to w + w / %" PRIu64 "%s) is free of conflicts",
                                pad, pad == 1 ? "" : "s", row, row,
                                pad == 1 ? "" : hw_arena_printf(c->arena, " * %" PRIu64, pad)));
            break;
        }
    if (passes_moved(a, swizzled, 0) == r->ideal_passes)
        hw_vec_push(c->arena, out,
                    hw_arena_printf(c->arena,
                                    "swizzle: word w moved to w ^ (w / %" PRIu64 " %% %" PRIu64
                                    ") is free of conflicts and needs no more memory",
                                    row, row));
    if (out->len == 0)
        hw_vec_push(c->arena, out, "no padding or swizzle of whole words removes these conflicts");
}

/* ---- the answer ---- */

static json_t *texts_json(const texts *t)
{
    json_t *all = json_array();
    for (size_t i = 0; i < t->len; i++)
        json_array_append_new(all, json_string(t->ptr[i]));
    return all;
}

static int banks_json(cli *c, const cli_access *a, const hw_bank_result *r, const texts *advice)
{
    json_t *parts = json_array(), *banks = json_array();
    for (uint32_t i = 0; i < r->parts; i++)
        json_array_append_new(parts, json_integer(r->part_passes[i]));
    for (uint32_t lane = 0; lane < a->access.lanes; lane++)
        json_array_append_new(
            banks, a->access.mask >> lane & 1
                       ? json_integer(hw_bank_of(a->device, &a->access, a->address[lane]))
                       : json_null());
    return cli_json(c,
                    json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "device",
                              a->device->name, "width", (int)a->access.width, "passes",
                              (int)r->passes, "ideal_passes", (int)r->ideal_passes, "conflicts",
                              (int)r->conflicts, "degree", (int)r->degree, "parts", parts, "banks",
                              banks, "lanes", cli_lanes_json(a), "advice", texts_json(advice)));
}

static const char *kind_text(const cli_access *a)
{
    static const char *const kinds[] = {
        [HW_LOAD] = "load", [HW_STORE] = "store", [HW_ATOMIC] = "atomic operation"
    };
    return kinds[a->access.kind];
}

static const char *summary(cli *c, const cli_access *a, const hw_bank_result *r)
{
    return hw_arena_printf(c->arena,
                           "%" PRIu32 " pass%s, %" PRIu32 " without conflicts: %" PRIu32
                           " conflict%s, degree %" PRIu32 "%s",
                           r->passes, r->passes == 1 ? "" : "es", r->ideal_passes, r->conflicts,
                           r->conflicts == 1 ? "" : "s", r->degree,
                           a->device->banks.cycles_per_access > 1
                               ? hw_arena_printf(c->arena, " (%" PRIu32 " cycles a pass)",
                                                 a->device->banks.cycles_per_access)
                               : "");
}

static void picture_svg(cli *c, const cli_access *a, const bank_picture *p, uint32_t part,
                        uint32_t passes, void *context)
{
    enum { CELL = 24, TOP = 22 };
    page *out = context;
    uint32_t banks = a->device->banks.banks;
    cli_page_heading(out, hw_arena_printf(c->arena,
                                          "Part %" PRIu32 ", lanes %" PRIu32 "-%" PRIu32
                                          ": %" PRIu32 " passes",
                                          part, p->first, p->first + p->lanes - 1, passes));
    cli_page_raw(
        out,
        "<svg viewBox=\"0 0 %u %u\" width=\"%u\" role=\"img\" aria-label=\"lanes on banks\">\n",
        banks * CELL, TOP + p->deepest * CELL, banks * CELL);
    for (uint32_t b = 0; b < banks; b++) {
        cli_page_raw(out, "<text x=\"%u\" y=\"14\" text-anchor=\"middle\">%u</text>\n",
                     b * CELL + CELL / 2, b);
        for (uint32_t k = 0; k < p->depth[b]; k++)
            cli_page_raw(out,
                         "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"3\" "
                         "fill=\"%s\"/><text x=\"%u\" y=\"%u\" "
                         "text-anchor=\"middle\" style=\"fill:#111\">%u%s</text>\n",
                         b * CELL + 1, TOP + k * CELL + 1, CELL - 2, CELL - 2, cli_page_colour(k),
                         b * CELL + CELL / 2, TOP + k * CELL + 16, p->lane[b][k],
                         p->shared[b][k] > 1 ? "+" : "");
    }
    cli_page_raw(out, "</svg>\n");
}

static int banks_page(cli *c, const char *path, const cli_access *a, const hw_bank_result *r,
                      const texts *advice)
{
    page *p = cli_page_open(
        c, path, hw_arena_printf(c->arena, "Shared memory banks of %s", a->device->title));
    if (!p)
        return CLI_BAD_INPUT;
    cli_page_paragraph(p, hw_arena_printf(c->arena, "%u-byte %s, lane at word %s", a->access.width,
                                          kind_text(a), a->words));
    cli_page_paragraph(p, summary(c, a, r));
    for (size_t i = 0; i < advice->len; i++)
        cli_page_paragraph(p, advice->ptr[i]);
    cli_page_paragraph(p, "Columns are banks; a cell is the first lane that asks for a word there "
                          "(+: others share it). Each row "
                          "is one more pass.");
    each_part(c, a, r, picture_svg, p);
    return cli_page_close(p);
}

static void print_text(cli *c, const cli_access *a, const hw_bank_result *r, const texts *advice)
{
    cli_print(c, "%s: %s\n%" PRIu32 "-byte %s by %d lanes, lane at word %s\n\n  %s%s%s\n",
              a->device->name, a->device->title, a->access.width, kind_text(a),
              __builtin_popcountll(a->access.mask), a->words, cli_style_of(c, STYLE_BOLD),
              summary(c, a, r), cli_style_of(c, STYLE_PLAIN));
    for (size_t i = 0; i < advice->len; i++)
        cli_print(c, "  %s\n", advice->ptr[i]);
    each_part(c, a, r, picture_text, NULL);
    cli_print(c, "\na number is the first lane that asks for a word of that bank; every further "
                 "row is a pass\n");
    if (a->device->banks.note)
        cli_print(c, "%snote: %s%s\n", cli_style_of(c, STYLE_DIM), a->device->banks.note,
                  cli_style_of(c, STYLE_PLAIN));
}

int cmd_banks(cli *c)
{
    cli_access a;
    hw_bank_result r;
    texts advice = { 0 };
    int status = cli_read_access(c, &a);
    if (status)
        return status;
    hw_bank_access(a.device, &a.access, &r);
    advise(c, &a, &r, &advice);
    const char *path = cli_text(c, OPT_html, NULL);
    status = path ? banks_page(c, path, &a, &r, &advice) : 0;
    if (status)
        return status;
    if (c->given[OPT_json])
        return banks_json(c, &a, &r, &advice);
    print_text(c, &a, &r, &advice);
    return 0;
}

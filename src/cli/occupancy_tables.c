/* SPDX-License-Identifier: Apache-2.0
 *
 * One launch on every device, and the LDS cheat sheet of the console's quick reference. */
#include "fields.h"
#include "occupancy.h"
#include "svg.h"

#include <inttypes.h>

/* ---- all devices ---- */

/* A vendor's devices are shown if the launch says nothing that only the other's understand. */
static bool wanted(const cli *c, const occupancy_case *k, hw_vendor vendor)
{
    if (k->device)
        return vendor == k->device->vendor;
    bool nvidia = c->given[OPT_regs] || c->given[OPT_shared] || c->given[OPT_dynamic] ||
                  c->given[OPT_optin] || c->given[OPT_barriers] || c->given[OPT_carveout] ||
                  c->given[OPT_cache] || c->given[OPT_partitioned];
    bool amd =
        c->given[OPT_vgprs] || c->given[OPT_sgprs] || c->given[OPT_lds] || c->given[OPT_trap];
    return vendor == HW_VENDOR_AMD ? amd || !nvidia : nvidia || !amd;
}

typedef struct device_row {
    const hw_device *device;
    hw_occupancy_result result;
} device_row;

static int all_rows(cli *c, const occupancy_case *c0, device_row **out, size_t *count)
{
    const char *const *names;
    size_t n = hw_device_list(c->arena, &names), used = 0;
    device_row *rows = HW_NEW_N(c->arena, device_row, n + 1);
    for (size_t i = 0; i < n; i++) {
        const hw_device *d;
        if (hw_device_load(c->arena, names[i], &d, c->diag) != HW_OK)
            return cli_fail_diag(c);
        if (!wanted(c, c0, d->vendor))
            continue;
        size_t k = used++;
        for (; k > 0 && cli_device_before(d, rows[k - 1].device); k--)
            rows[k] = rows[k - 1];
        rows[k].device = d;
        hw_occupancy(d, &c0->query, &rows[k].result);
    }
    *out = rows;
    *count = used;
    return 0;
}

static json_t *rows_json(cli *c, const occupancy_case *base, const device_row *rows, size_t n)
{
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++) {
        const occupancy_case k = { .device = rows[i].device,
                                   .query = base->query,
                                   .regs_from = base->regs_from };
        const hw_occupancy_report rep = { .result = rows[i].result };
        json_array_append_new(all, cli_occupancy_json(c, &k, &rep));
    }
    return all;
}

static const char *limiter_text(cli *c, const device_row *row, const hw_occupancy_query *q)
{
    const occupancy_case k = { .device = row->device, .query = *q };
    bool amd = row->device->vendor == HW_VENDOR_AMD;
    if (row->result.blocks && amd && row->result.limiter == HW_LIMIT_WARPS)
        return "waves";
    if (row->result.blocks && amd && row->result.limiter == HW_LIMIT_BLOCKS)
        return "groups";
    if (row->result.blocks)
        return hw_limit_name(row->result.limiter);
    return hw_arena_printf(c->arena, "cannot launch: %s",
                           cli_occupancy_refusal_text(c, &k, row->result.refusal) +
                               strlen(row->device->name) + 2);
}

int cli_occupancy_all_devices(cli *c, const occupancy_case *base, json_t **out)
{
    static const char *const headings[] = { "device", ">CC",        ">blocks",   ">warps",
                                            ">of",    ">occupancy", "limited by" };
    device_row *rows = NULL;
    size_t n = 0;
    if (base->query.threads == 0)
        return cli_fail(c, "--threads: %s", hw_refusal_text(HW_REFUSED_NO_THREADS));
    int status = all_rows(c, base, &rows, &n);
    if (status)
        return status;
    if (out) {
        *out = rows_json(c, base, rows, n);
        return 0;
    }
    if (base->kernel)
        cli_print(c, "%s%s%s: %s\n", cli_style_of(c, STYLE_BOLD), base->kernel,
                  cli_style_of(c, STYLE_PLAIN), cli_occupancy_query_text(c, base));
    cli_table t = cli_table_new(c, HW_COUNTOF(headings), headings);
    for (size_t i = 0; i < n; i++) {
        const hw_device *d = rows[i].device;
        cli_cell(&t, "%s", d->name);
        if (d->vendor == HW_VENDOR_NVIDIA)
            cli_cell(&t, "%" PRIu32 ".%" PRIu32, d->capability.major, d->capability.minor);
        else
            cli_cell(&t, "-");
        cli_cell(&t, "%" PRIu32, rows[i].result.blocks);
        cli_cell(&t, "%" PRIu32, rows[i].result.warps);
        cli_cell(&t, "%" PRIu32, rows[i].result.max_warps);
        cli_cell(&t, "%.2f %%", rows[i].result.occupancy * 100);
        cli_cell(&t, "%s", limiter_text(c, &rows[i], &base->query));
    }
    cli_table_print(c, &t);
    if (base->kernel)
        cli_print(c, "\n");
    return 0;
}

/* ---- the LDS table ---- */

typedef struct lds_cell {
    uint32_t tipping, whole;
} lds_cell;

static lds_cell lds_at(const hw_device *d, uint32_t threads, uint32_t waves)
{
    lds_cell cell;
    hw_lds_tipping_point(d, threads, waves, &cell.tipping, &cell.whole);
    return cell;
}

static json_t *lds_json(const hw_device *d)
{
    json_t *rows = json_array();
    uint32_t wave = d->compute.warp_size;
    for (uint32_t threads = wave; threads <= d->compute.max_threads_per_block; threads += wave)
        for (uint32_t waves = d->gcn.max_waves_per_simd; waves > 0; waves--) {
            lds_cell cell = lds_at(d, threads, waves);
            json_array_append_new(rows,
                                  json_pack("{s:i, s:i, s:i, s:i}", "threads", (int)threads,
                                            "waves_per_simd", (int)waves, "tipping_point",
                                            (int)cell.tipping, "whole_groups", (int)cell.whole));
        }
    return json_pack("{s:s, s:i, s:i, s:o}", "device", d->name, "granularity",
                     (int)d->gcn.lds_granularity, "max_per_group", (int)d->gcn.lds_max_per_group,
                     "rows", rows);
}

static const char *lds_text(cli *c, lds_cell cell)
{
    return cell.whole == cell.tipping
               ? hw_arena_printf(c->arena, "%" PRIu32, cell.tipping)
               : hw_arena_printf(c->arena, "%" PRIu32 " [%" PRIu32 "]", cell.tipping, cell.whole);
}

static const char *lds_caption(cli *c, const hw_device *d)
{
    return hw_arena_printf(c->arena,
                           "Bytes of LDS a group up to which each number of waves per SIMD is "
                           "promised by the formula (tipping "
                           "point), in units of %" PRIu32 ", at most %" PRIu32
                           " a group; in brackets the largest size that "
                           "whole groups really reach it with, where it differs (0: never).",
                           d->gcn.lds_granularity, d->gcn.lds_max_per_group);
}

static int lds_page(cli *c, const hw_device *d, const char *path)
{
    uint32_t wave = d->compute.warp_size;
    page *p = cli_page_open(c, path, hw_arena_printf(c->arena, "LDS and waves on %s", d->title));
    if (!p)
        return CLI_BAD_INPUT;
    cli_page_paragraph(p, lds_caption(c, d));
    cli_page_raw(p, "<table><tr><th>threads</th>");
    for (uint32_t waves = d->gcn.max_waves_per_simd; waves > 0; waves--)
        cli_page_raw(p, "<th>%" PRIu32 "</th>", waves);
    cli_page_raw(p, "</tr>\n");
    for (uint32_t threads = wave; threads <= d->compute.max_threads_per_block; threads += wave) {
        cli_page_raw(p, "<tr><td>%" PRIu32 "</td>", threads);
        for (uint32_t waves = d->gcn.max_waves_per_simd; waves > 0; waves--)
            cli_page_raw(p, "<td%s>%s</td>",
                         waves == d->gcn.advised_waves_better ? " class=\"it\"" : "",
                         lds_text(c, lds_at(d, threads, waves)));
        cli_page_raw(p, "</tr>\n");
    }
    cli_page_raw(p, "</table>\n");
    if (d->gcn.advised_waves_least)
        cli_page_paragraph(
            p, hw_arena_printf(c->arena,
                               "Have at least %" PRIu32 " waves per SIMD, better %" PRIu32 ".",
                               d->gcn.advised_waves_least, d->gcn.advised_waves_better));
    return cli_page_close(p);
}

int cli_occupancy_lds_table(cli *c, const hw_device *d)
{
    uint32_t most = d->gcn.max_waves_per_simd, wave = d->compute.warp_size;
    const char *path = cli_text(c, OPT_html, NULL);
    if (path)
        return lds_page(c, d, path);
    if (c->given[OPT_json])
        return cli_json(c, lds_json(d));
    const char **headings = HW_NEW_N(c->arena, const char *, most + 1);
    headings[0] = ">threads";
    for (uint32_t waves = most; waves > 0; waves--)
        headings[1 + most - waves] =
            hw_arena_printf(c->arena, ">%" PRIu32 " wave%s", waves, waves == 1 ? "" : "s");
    cli_table t = cli_table_new(c, most + 1, headings);
    for (uint32_t threads = wave; threads <= d->compute.max_threads_per_block; threads += wave) {
        cli_cell(&t, "%" PRIu32, threads);
        for (uint32_t waves = most; waves > 0; waves--)
            cli_cell(&t, "%s", lds_text(c, lds_at(d, threads, waves)));
    }
    cli_print(c, "%s: %s\n%s\n\n", d->name, d->title, lds_caption(c, d));
    cli_table_print(c, &t);
    if (d->gcn.advised_waves_least)
        cli_print(c, "\nhave at least %" PRIu32 " waves per SIMD, better %" PRIu32 "\n",
                  d->gcn.advised_waves_least, d->gcn.advised_waves_better);
    return 0;
}

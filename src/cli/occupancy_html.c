/* SPDX-License-Identifier: Apache-2.0
 *
 * Occupancy as a page: the limits and the three graphs of each launch. */
#include "occupancy.h"
#include "svg.h"

#include <inttypes.h>

static void limits_table(cli *c, page *p, const occupancy_case *k, const hw_occupancy_result *r)
{
    bool gcn = k->device->vendor == HW_VENDOR_AMD;
    cli_page_raw(p, "<table><tr><th>limit</th><th>%s</th></tr>\n", gcn ? "groups" : "blocks");
    for (unsigned i = 0; i < HW_LIMIT_COUNT; i++)
        if (r->limits[i] != HW_UNLIMITED)
            cli_page_raw(p, "<tr%s><td>%s</td><td>%" PRIu32 "</td></tr>\n",
                         r->limiters >> i & 1 ? " class=\"it\"" : "",
                         cli_escape(c, hw_limit_name((hw_limit)i)), r->limits[i]);
    cli_page_raw(p, "</table>\n");
}

static void one(cli *c, page *p, const occupancy_case *k, const hw_occupancy_report *rep)
{
    const hw_occupancy_result *r = &rep->result;
    bool gcn = k->device->vendor == HW_VENDOR_AMD;
    if (k->kernel)
        cli_page_heading(p, k->kernel);
    cli_page_paragraph(p, cli_occupancy_query_text(c, k));
    if (r->blocks == 0)
        cli_page_paragraph(p, cli_occupancy_refusal_text(c, k, r->refusal));
    else
        cli_page_paragraph(
            p, hw_arena_printf(c->arena,
                               "%" PRIu32 " %s, %" PRIu32 " of %" PRIu32 " %s: %.2f %% occupancy",
                               r->blocks, gcn ? "groups" : "blocks", r->warps, r->max_warps,
                               gcn ? "waves" : "warps", r->occupancy * 100));
    limits_table(c, p, k, r);
    for (uint32_t i = 0; i < rep->step_count; i++)
        cli_page_paragraph(p, cli_occupancy_step_text(c, k->device, &rep->steps[i]));
    occupancy_curve *curves = HW_NEW_N(c->arena, occupancy_curve, CURVES);
    cli_occupancy_curves(k, curves);
    for (int i = 0; i < CURVES; i++) {
        const occupancy_curve *v = &curves[i];
        const graph g = { .title = hw_arena_printf(c->arena, "%s over %s", gcn ? "Waves" : "Warps",
                                                   v->title),
                          .x_name = v->title,
                          .y_name = gcn ? "waves" : "warps",
                          .count = v->count,
                          .most = v->most,
                          .x = v->x,
                          .y = v->warps,
                          .mark = v->now };
        cli_page_graph(p, &g);
    }
}

int cli_occupancy_html(cli *c, const char *path, const occupancy_case *k,
                       const hw_occupancy_report *rep, size_t n)
{
    page *p =
        cli_page_open(c, path, hw_arena_printf(c->arena, "Occupancy on %s", k->device->title));
    if (!p)
        return CLI_BAD_INPUT;
    for (size_t i = 0; i < n; i++)
        one(c, p, &k[i], &rep[i]);
    return cli_page_close(p);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The calculator's three graphs: resident warps over block size, registers and shared memory. */
#include "occupancy.h"

#include <inttypes.h>

#define PLOT_ROWS    12
#define PLOT_COLUMNS 64

static uint32_t warps_of(const hw_device *d, const hw_occupancy_query *q)
{
    hw_occupancy_result r;
    hw_occupancy(d, q, &r);
    return r.warps;
}

static void point(occupancy_curve *v, uint64_t x, uint32_t warps)
{
    if (v->count == CURVE_MAX)
        return;
    v->x[v->count] = x;
    v->warps[v->count++] = warps;
}

static void over_threads(const occupancy_case *k, occupancy_curve *v)
{
    hw_occupancy_query q = k->query;
    uint32_t warp = k->device->compute.warp_size;
    for (q.threads = warp; q.threads <= k->device->compute.max_threads_per_block; q.threads += warp)
        point(v, q.threads, warps_of(k->device, &q));
}

static void over_registers(const occupancy_case *k, occupancy_curve *v)
{
    hw_occupancy_query q = k->query;
    const hw_device *d = k->device;
    bool gcn = d->vendor == HW_VENDOR_AMD;
    uint32_t most = gcn ? d->gcn.max_vgprs : d->occupancy.max_registers_per_thread;
    for (uint32_t n = 1; n <= most; n++) {
        *(gcn ? &q.vgprs : &q.registers) = n;
        point(v, n, warps_of(d, &q));
    }
}

/* Shared memory as a whole: the plotted amount is static, with room to opt in if the launch has. */
static void over_shared(const occupancy_case *k, occupancy_curve *v)
{
    hw_occupancy_query q = k->query;
    const hw_device *d = k->device;
    bool gcn = d->vendor == HW_VENDOR_AMD;
    uint32_t unit = gcn ? d->gcn.lds_granularity : d->occupancy.shared_alloc_unit;
    uint32_t most = gcn ? d->gcn.lds_max_per_group
                    : q.shared_optin && d->occupancy.shared_per_block_optin
                        ? d->occupancy.shared_per_block_optin
                        : d->occupancy.shared_per_block;
    uint32_t step = (most / (CURVE_MAX - 1) + unit - 1) / unit * unit;
    step = step ? step : unit;
    q.shared_dynamic = 0;
    for (uint32_t n = 0; n <= most; n += step) {
        *(gcn ? &q.lds : &q.shared_static) = n;
        point(v, n, warps_of(d, &q));
    }
}

void cli_occupancy_curves(const occupancy_case *k, occupancy_curve curves[CURVES])
{
    const hw_occupancy_query *q = &k->query;
    bool gcn = k->device->vendor == HW_VENDOR_AMD;
    uint32_t most = gcn ? k->device->gcn.max_waves_per_simd * k->device->gcn.simds_per_unit
                        : k->device->occupancy.max_warps_per_sm;
    curves[0] = (occupancy_curve){ .title = gcn ? "threads per group" : "threads per block",
                                   .unit = "threads",
                                   .most = most,
                                   .now = q->threads };
    curves[1] = (occupancy_curve){ .title = gcn ? "VGPRs per wave" : "registers per thread",
                                   .unit = gcn ? "VGPRs" : "registers",
                                   .most = most,
                                   .now = gcn ? q->vgprs : q->registers };
    curves[2] = (occupancy_curve){ .title = gcn ? "LDS per group" : "shared memory per block",
                                   .unit = "bytes",
                                   .most = most,
                                   .now = gcn ? q->lds : q->shared_static + q->shared_dynamic };
    over_threads(k, &curves[0]);
    over_registers(k, &curves[1]);
    over_shared(k, &curves[2]);
}

/* ---- as text ---- */

/* The column that shows x; of columns columns. */
static uint32_t column_of(const occupancy_curve *v, uint64_t x, uint32_t columns)
{
    uint32_t i = 0;
    while (i + 1 < v->count && v->x[i + 1] <= x)
        i++;
    return i * columns / v->count;
}

static void plot_row(cli *c, const occupancy_curve *v, uint32_t row, uint32_t columns, uint32_t now)
{
    uint32_t level = (row * v->most + PLOT_ROWS - 1) / PLOT_ROWS,
             below = ((row - 1) * v->most + PLOT_ROWS - 1) / PLOT_ROWS;
    cli_print(c, "  %4" PRIu32 " |", level);
    for (uint32_t k = 0; k < columns; k++) {
        uint32_t i = (k * v->count + columns - 1) / columns, warps = v->warps[i];
        bool top = warps <= level && warps > below, filled = warps > below;
        if (k == now && filled)
            cli_print(c, "%s%c%s", cli_style_of(c, STYLE_WARN), top ? 'O' : '|',
                      cli_style_of(c, STYLE_PLAIN));
        else
            cli_print(c, "%c", top ? '*' : filled ? ':' : ' ');
    }
    cli_print(c, "\n");
}

void cli_occupancy_plot(cli *c, const occupancy_curve *v)
{
    uint32_t columns = v->count < PLOT_COLUMNS ? v->count : PLOT_COLUMNS;
    uint32_t now = column_of(v, v->now, columns);
    cli_print(c, "warps over %s (O: %" PRIu64 " %s)\n", v->title, v->now, v->unit);
    for (uint32_t row = PLOT_ROWS; row > 0; row--)
        plot_row(c, v, row, columns, now);
    cli_print(c, "       +");
    for (uint32_t k = 0; k < columns; k++)
        cli_print(c, "-");
    const char *last = hw_arena_printf(c->arena, "%" PRIu64, v->x[v->count - 1]);
    cli_print(c, "\n        %-*" PRIu64 "%s\n\n", (int)(columns - strlen(last)), v->x[0], last);
}

json_t *cli_occupancy_curve_json(const occupancy_curve *v)
{
    json_t *points = json_array();
    for (uint32_t i = 0; i < v->count; i++)
        json_array_append_new(points, json_pack("[I, i]", (json_int_t)v->x[i], (int)v->warps[i]));
    return json_pack("{s:s, s:s, s:I, s:i, s:o}", "over", v->title, "unit", v->unit, "now",
                     (json_int_t)v->now, "max_warps", (int)v->most, "points", points);
}

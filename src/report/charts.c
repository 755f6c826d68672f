/* SPDX-License-Identifier: Apache-2.0
 *
 * The page's drawings: occupancy, memory, banks, divergence, roofline. Widths are those of a phone
 * and more: each drawing scales with the page. */
#include "html.h"

#include <inttypes.h>
#include <math.h>

enum { LARGE = 500 }; /* wider drawings are moved sideways on a phone, not made too small to read */
#define SVG_OPEN "<svg%s viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">"

static void open_svg(const hw_page *p, int width, int height, const char *title)
{
    bool large = width > LARGE;
    hw_out_printf(p->o, "<figure%s><figcaption>%s</figcaption>" SVG_OPEN "\n",
                  large ? " class=\"wide\"" : "", title, large ? " class=\"large\"" : "", width,
                  height, title);
}

static void close_svg(const hw_page *p)
{
    hw_out_printf(p->o, "</svg></figure>\n");
}

static void text_at(const hw_page *p, double x, double y, const char *anchor, const char *text)
{
    hw_out_printf(p->o, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                  hw_html(p->o->arena, text));
}

/* ---- occupancy ---- */

typedef struct curve {
    const char *title;
    uint64_t from, to, step, now;
    void (*set)(hw_occupancy_query *q, uint64_t v, bool amd);
} curve;

static void set_threads(hw_occupancy_query *q, uint64_t v, bool amd)
{
    (void)amd;
    q->threads = (uint32_t)v;
}

static void set_registers(hw_occupancy_query *q, uint64_t v, bool amd)
{
    *(amd ? &q->vgprs : &q->registers) = (uint32_t)v;
}

static void set_shared(hw_occupancy_query *q, uint64_t v, bool amd)
{
    if (amd) {
        q->lds = v;
        return;
    }
    q->shared_static = 0;
    q->shared_dynamic = q->shared_dynamic_max = v;
    q->shared_optin = true;
}

enum { PLOT_X = 34, PLOT_Y = 8, PLOT_WIDTH = 270, PLOT_HEIGHT = 110, PLOT_BOTTOM = 34 };

static void plot(const hw_page *p, const curve *v)
{
    const hw_device *dev = p->run->devices[p->device];
    bool amd = dev->vendor == HW_VENDOR_AMD;
    hw_occupancy_query q = hw_report_query(p->run, p->k, p->device);
    hw_occupancy_result r;
    hw_occupancy(dev, &q, &r);
    double most = r.max_warps, span = (double)(v->to - v->from);
    open_svg(p, PLOT_X + PLOT_WIDTH + 12, PLOT_Y + PLOT_HEIGHT + PLOT_BOTTOM, v->title);
    hw_out_printf(p->o, "<path class=\"axis\" d=\"M%d %dV%dH%d\"/><path class=\"curve\" d=\"",
                  PLOT_X, PLOT_Y, PLOT_Y + PLOT_HEIGHT, PLOT_X + PLOT_WIDTH);
    for (uint64_t at = v->from; at <= v->to; at += v->step) {
        hw_occupancy_query one = q;
        v->set(&one, at, amd);
        hw_occupancy(dev, &one, &r);
        double x = PLOT_X + PLOT_WIDTH * (double)(at - v->from) / span;
        double y = PLOT_Y + PLOT_HEIGHT * (1 - r.warps / most);
        hw_out_printf(p->o, at == v->from ? "M%.1f %.1f" : "H%.1fV%.1f", x, y);
    }
    double now = PLOT_X + PLOT_WIDTH * ((double)v->now - (double)v->from) / span;
    hw_out_printf(p->o, "\"/><path class=\"mark\" d=\"M%.1f %dV%d\"/>\n", now, PLOT_Y,
                  PLOT_Y + PLOT_HEIGHT);
    text_at(p, PLOT_X - 4, PLOT_Y + 8, "end", hw_metric_text(p->o->arena, most, true));
    text_at(p, PLOT_X - 4, PLOT_Y + PLOT_HEIGHT, "end", "0");
    text_at(p, PLOT_X, PLOT_Y + PLOT_HEIGHT + 14, "start",
            hw_metric_text(p->o->arena, (double)v->from, true));
    text_at(p, PLOT_X + PLOT_WIDTH, PLOT_Y + PLOT_HEIGHT + 14, "end",
            hw_metric_text(p->o->arena, (double)v->to, true));
    text_at(p, now, PLOT_Y + PLOT_HEIGHT + 28, "middle",
            hw_metric_text(p->o->arena, (double)v->now, true));
    close_svg(p);
}

void hw_chart_occupancy(const hw_page *p)
{
    const hw_device *dev = p->run->devices[p->device];
    bool amd = dev->vendor == HW_VENDOR_AMD;
    uint64_t shared = p->k->shared_static + p->k->shared_dynamic;
    uint64_t most_shared = amd ? dev->gcn.lds_max_per_group
                           : dev->occupancy.shared_per_block_optin
                               ? dev->occupancy.shared_per_block_optin
                               : dev->occupancy.shared_per_block;
    uint32_t warp = dev->compute.warp_size;
    uint64_t registers = amd ? 256 : dev->occupancy.max_registers_per_thread;
    const curve curves[] = {
        { amd ? "Waves over threads of a group" : "Warps over threads of a block", warp,
          dev->compute.max_threads_per_block, warp,
          p->k->block[0] * p->k->block[1] * p->k->block[2], set_threads },
        { amd ? "Waves over VGPRs" : "Warps over registers of a thread", 1, registers, 1,
          p->k->registers[p->device].count, set_registers },
        { amd ? "Waves over LDS of a group" : "Warps over shared memory of a block", 0, most_shared,
          256, shared, set_shared },
    };
    hw_out_printf(p->o, "<div class=\"charts\">");
    for (size_t i = 0; i < HW_COUNTOF(curves); i++)
        if (curves[i].to > curves[i].from && curves[i].now <= curves[i].to)
            plot(p, &curves[i]);
    hw_out_printf(p->o, "</div>\n");
}

/* ---- memory: registers at the left, device memory at the right ---- */

typedef struct box {
    int x, y, width, height;
    const char *name;
} box;

static void draw_box(const hw_page *p, const box *b)
{
    hw_out_printf(p->o,
                  "<rect class=\"box\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>\n",
                  b->x, b->y, b->width, b->height);
    text_at(p, b->x + b->width / 2.0, b->y + b->height / 2.0 + 4, "middle", b->name);
}

/* An arrow with a text above; toward: 1 right, -1 left. Thin and grey if nothing flows. */
static void arrow(const hw_page *p, int x1, int x2, int y, int toward, const char *text, bool flows)
{
    int tip = toward > 0 ? x2 : x1;
    hw_out_printf(
        p->o, "<path class=\"%s\" d=\"M%d %dH%d\"/><path class=\"%s\" d=\"M%d %dl%d -4v8z\"/>\n",
        flows ? "flow" : "idle", x1, y, x2, flows ? "tip" : "idletip", tip, y, -7 * toward);
    text_at(p, (x1 + x2) / 2.0, y - 5, "middle", text);
}

static uint64_t at(const hw_page *p, int traffic, int field)
{
    return p->k->sums.traffic[p->device][traffic][field];
}

enum { LEFT = 96, RIGHT = 262, ROW = 62 };

/* One space: loads go left, stores right. */
static void lane(const hw_page *p, int y, const char *name, int load, int store)
{
    hw_arena *a = p->o->arena;
    const box b = { RIGHT, y, 96, 46, name };
    uint64_t in = load >= 0 ? at(p, load, HW_FIELD_bytes) : 0;
    uint64_t out = store >= 0 ? at(p, store, HW_FIELD_bytes) : 0;
    draw_box(p, &b);
    if (load >= 0)
        arrow(p, LEFT, RIGHT, y + 18, -1, hw_bytes_text(a, (double)in), in > 0);
    if (store >= 0)
        arrow(p, LEFT, RIGHT, y + 40, 1, hw_bytes_text(a, (double)out), out > 0);
}

static void beyond(const hw_page *p, int height)
{
    hw_arena *a = p->o->arena;
    const uint64_t *c = p->k->sums.cache ? p->k->sums.cache[p->device] : NULL;
    const box l2 = { 470, 0, 70, height, "L2" }, dram = { 650, 0, 70, height, "DRAM" };
    double in = 0, out = 0;
    static const bool loads[HW_TRAFFICS] = { [HW_TRAFFIC_global_ld] = true,
                                             [HW_TRAFFIC_copy_ld] = true,
                                             [HW_TRAFFIC_bulk_ld] = true,
                                             [HW_TRAFFIC_local_ld] = true };
    for (int t = HW_TRAFFIC_global_ld; t <= HW_TRAFFIC_local_st; t++)
        *(loads[t] ? &in : &out) += (double)at(p, t, HW_FIELD_moved);
    draw_box(p, &l2);
    draw_box(p, &dram);
    if (!c) {
        arrow(p, 358, 470, 22, -1, hw_bytes_text(a, in), in > 0);
        arrow(p, 358, 470, 46, 1, hw_bytes_text(a, out), out > 0);
        text_at(p, 595, 28, "middle", "not simulated");
        return;
    }
    double l2in = 32.0 * (double)c[HW_CACHE_l2_reads], l2out = 32.0 * (double)c[HW_CACHE_l2_writes];
    double din = 32.0 * (double)c[HW_CACHE_dram_reads];
    double dout = 32.0 * (double)c[HW_CACHE_dram_writes];
    arrow(p, 358, 470, 22, -1, hw_bytes_text(a, l2in), l2in > 0);
    arrow(p, 358, 470, 46, 1, hw_bytes_text(a, l2out), l2out > 0);
    arrow(p, 540, 650, 22, -1, hw_bytes_text(a, din), din > 0);
    arrow(p, 540, 650, 46, 1, hw_bytes_text(a, dout), dout > 0);
    text_at(p, 595, 66, "middle", "simulated");
}

typedef struct way { /* between registers (copies: shared memory) and the rest */
    const char *name;
    int load, store;
    bool always;
} way;

static bool is_used(const hw_page *p, const way *w)
{
    return w->always || (w->load >= 0 && at(p, w->load, HW_FIELD_accesses)) ||
           (w->store >= 0 && at(p, w->store, HW_FIELD_accesses));
}

void hw_chart_memory(const hw_page *p)
{
    bool amd = p->run->devices[p->device]->vendor == HW_VENDOR_AMD;
    const way ways[] = {
        { "Global", HW_TRAFFIC_global_ld, HW_TRAFFIC_global_st, true },
        { "Atomics", -1, HW_TRAFFIC_global_at, true },
        { "Local", HW_TRAFFIC_local_ld, HW_TRAFFIC_local_st, true },
        { amd ? "LDS" : "Shared", HW_TRAFFIC_shared_ld, HW_TRAFFIC_shared_st, true },
        { "Constant", HW_TRAFFIC_constant_ld, -1, true },
        { "Matrices", HW_TRAFFIC_matrix_ld, HW_TRAFFIC_matrix_st, false },
        { "Copies", HW_TRAFFIC_copy_ld, -1, false },
        { "Bulk copies", HW_TRAFFIC_bulk_ld, HW_TRAFFIC_bulk_st, false },
    };
    int rows = 0, row = 0;
    for (size_t i = 0; i < HW_COUNTOF(ways); i++)
        rows += is_used(p, &ways[i]);
    const int height = rows * ROW - 16;
    const box registers = { 0, 0, LEFT, height, "Registers" };
    open_svg(p, 722, height + 4, "Memory: bytes asked for, and bytes moved beyond");
    draw_box(p, &registers);
    for (size_t i = 0; i < HW_COUNTOF(ways); i++)
        if (is_used(p, &ways[i]))
            lane(p, row++ * ROW, ways[i].name, ways[i].load, ways[i].store);
    beyond(p, 3 * ROW - 16);
    close_svg(p);
}

/* ---- banks ---- */

enum { HEAT_ROWS = 16, CELL = 17, HEAT_LEFT = 110 };

static const char *site_name(const hw_page *p, const hw_report_site *s)
{
    bool line = s->place.file && s->place.line;
    return hw_arena_printf(p->o->arena, "%s %u %s", line ? "line" : "PTX",
                           line ? s->place.line : s->ptx_line,
                           s->traffic == HW_TRAFFIC_shared_at   ? "atomic"
                           : s->traffic == HW_TRAFFIC_shared_ld ? "load"
                           : s->traffic == HW_TRAFFIC_matrix_ld ? "matrices"
                           : s->traffic == HW_TRAFFIC_copy_st   ? "copy"
                                                                : "store");
}

static void heat_row(const hw_page *p, const hw_report_site *s, int y, uint32_t banks)
{
    uint64_t most = 1;
    for (uint32_t b = 0; b < banks; b++)
        most = s->banks[p->device][b] > most ? s->banks[p->device][b] : most;
    text_at(p, HEAT_LEFT - 6, y + 13, "end", site_name(p, s));
    for (uint32_t b = 0; b < banks; b++)
        hw_out_printf(p->o,
                      "<rect class=\"heat\" x=\"%u\" y=\"%d\" width=\"%d\" height=\"%d\" "
                      "fill-opacity=\"%.2f\"><title>bank %u: %" PRIu64 " words</title></rect>",
                      HEAT_LEFT + b * CELL, y, CELL - 1, CELL - 1,
                      0.04 + 0.96 * (double)s->banks[p->device][b] / (double)most, b,
                      s->banks[p->device][b]);
    hw_out_printf(p->o, "\n");
    const uint64_t *f = s->field[p->device];
    double ways = f[HW_FIELD_ideal] ? (double)f[HW_FIELD_passes] / (double)f[HW_FIELD_ideal] : 1;
    text_at(p, HEAT_LEFT + banks * CELL + 6, y + 13, "start",
            hw_arena_printf(p->o->arena, "%.4g-way", ways));
}

void hw_chart_banks(const hw_page *p)
{
    const hw_report_site *rows[HEAT_ROWS];
    int n = 0;
    uint32_t banks = p->run->devices[p->device]->banks.banks;
    banks = banks < HW_LANES_MAX ? banks : HW_LANES_MAX;
    for (uint32_t i = 0; i < p->k->n_sites && n < HEAT_ROWS; i++)
        if (p->k->sites[i].banks && p->k->sites[i].field)
            rows[n++] = &p->k->sites[i];
    if (!n)
        return;
    open_svg(p, (int)(HEAT_LEFT + banks * CELL + 64), n * (CELL + 2) + 20,
             "Banks: words asked of each, by place");
    for (int i = 0; i < n; i++)
        heat_row(p, rows[i], i * (CELL + 2), banks);
    text_at(p, HEAT_LEFT, n * (CELL + 2) + 14, "start", "bank 0");
    text_at(p, HEAT_LEFT + banks * CELL, n * (CELL + 2) + 14, "end",
            hw_arena_printf(p->o->arena, "bank %u", banks - 1));
    close_svg(p);
}

/* ---- divergence ---- */

enum { BAR_ROWS = 12, BAR_WIDTH = 420, BAR_LEFT = 110 };

static void bar(const hw_page *p, int y, const char *name, double share, const char *text)
{
    text_at(p, BAR_LEFT - 6, y + 12, "end", name);
    hw_out_printf(p->o,
                  "<rect class=\"rail\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"14\"/><rect "
                  "class=\"bar\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"14\"/>\n",
                  BAR_LEFT, y, BAR_WIDTH, BAR_LEFT, y, BAR_WIDTH * share);
    text_at(p, BAR_LEFT + BAR_WIDTH + 6, y + 12, "start", text);
}

void hw_chart_divergence(const hw_page *p)
{
    const hw_report_site *rows[BAR_ROWS];
    const uint64_t *t = p->k->sums.total;
    hw_arena *a = p->o->arena;
    int n = 0;
    for (uint32_t i = 0; i < p->k->n_sites && n < BAR_ROWS; i++)
        if (p->k->sites[i].divergent)
            rows[n++] = &p->k->sites[i];
    if (!t[HW_TOTAL_inst])
        return;
    double lanes = (double)t[HW_TOTAL_thread_inst] / (double)t[HW_TOTAL_inst] / HW_WARP_LANES;
    double on = (double)t[HW_TOTAL_thread_inst_on] / (double)t[HW_TOTAL_inst] / HW_WARP_LANES;
    open_svg(p, BAR_LEFT + BAR_WIDTH + 130, (n + 2) * 20,
             "Divergence: lanes at work, branches that part");
    bar(p, 0, "active lanes", lanes, hw_arena_printf(a, "%.1f of 32", lanes * HW_WARP_LANES));
    bar(p, 20, "predicate on", on, hw_arena_printf(a, "%.1f of 32", on * HW_WARP_LANES));
    for (int i = 0; i < n; i++) {
        const hw_report_site *s = rows[i];
        bool line = s->place.file && s->place.line;
        bar(p, (i + 2) * 20,
            hw_arena_printf(a, "%s %u", line ? "line" : "PTX", line ? s->place.line : s->ptx_line),
            s->branches ? (double)s->divergent / (double)s->branches : 1,
            hw_arena_printf(a, "%s of %s part", hw_grouped(a, s->divergent),
                            hw_grouped(a, s->branches)));
    }
    close_svg(p);
}

/* ---- roofline: thread instructions against bytes moved ---- */

typedef struct roof {
    double peak;      /* thread instructions a second */
    double bandwidth; /* bytes a second */
    double intensity; /* of the kernel: instructions a byte */
} roof;

static double log_x(double v)
{
    return 40 + 560 * (log10(v) + 2) / 5; /* 0.01 .. 1000 */
}

static double log_y(double v, double peak)
{
    return 20 - 45 * (log10(v) - log10(peak)); /* peak at the top, a decade is 45 */
}

static void draw_roof(const hw_page *p, const roof *r)
{
    hw_arena *a = p->o->arena;
    double ridge = r->peak / r->bandwidth;
    double here = fmin(r->peak, r->intensity * r->bandwidth);
    open_svg(p, 620, 230, "Roofline: thread instructions for each byte moved");
    hw_out_printf(p->o,
                  "<path class=\"axis\" d=\"M40 10V200H600\"/><path class=\"curve\" d=\"M%.1f "
                  "%.1fL%.1f %.1fH600\"/>\n",
                  log_x(fmax(0.01, ridge * 1e-4)),
                  log_y(fmax(0.01, ridge * 1e-4) * r->bandwidth, r->peak), log_x(ridge),
                  log_y(r->peak, r->peak));
    double x = log_x(fmin(fmax(r->intensity, 0.01), 1000));
    hw_out_printf(p->o,
                  "<path class=\"mark\" d=\"M%.1f 10V200\"/><circle class=\"dot\" cx=\"%.1f\" "
                  "cy=\"%.1f\" r=\"5\"/>\n",
                  x, x, fmin(log_y(here, r->peak), 200));
    for (int e = -2; e <= 3; e++)
        text_at(p, log_x(pow(10, e)), 216, "middle", hw_arena_printf(a, "%g", pow(10, e)));
    text_at(p, 596, 15, "end", hw_arena_printf(a, "%.1f T instructions/s", r->peak / 1e12));
    text_at(p, x + 8, 190, "start",
            hw_arena_printf(a, "%.2f inst/byte: at most %.0f %% of the peak", r->intensity,
                            100 * here / r->peak));
    close_svg(p);
}

void hw_chart_roofline(const hw_page *p)
{
    const hw_device *d = p->run->devices[p->device];
    double moved = 0;
    for (int t = HW_TRAFFIC_global_ld; t <= HW_TRAFFIC_local_st; t++)
        moved += (double)at(p, t, HW_FIELD_moved);
    const roof r = {
        .peak = (double)d->compute.sm_count * d->compute.fp32_lanes * d->compute.clock_mhz * 1e6,
        .bandwidth = d->memory.bandwidth_gbs * 1e9,
        .intensity = moved > 0 ? (double)p->k->sums.total[HW_TOTAL_thread_inst_on] / moved : 0
    };
    if (!(r.peak > 0) || !(r.bandwidth > 0) || !(moved > 0))
        return;
    draw_roof(p, &r);
    hw_out_printf(p->o,
                  "<p class=\"dim\">The ratio is exact for bytes before any cache; the roof is "
                  "the device's peak. No time is modelled, so the point stands on the roof: "
                  "what is possible, not what was reached.</p>\n");
}

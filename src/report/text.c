/* SPDX-License-Identifier: Apache-2.0
 *
 * The report for terminals: a block a kernel, a table a section, rules below. */
#include "report.h"

#include <math.h>

/* ---- headings ---- */

/* ", Context 1, Stream 7"; of several the lowest, and that there are more. */
static const char *streams_of(hw_arena *a, const hw_report_kernel *k)
{
    const hw_report_group *g = k->groups, *first = g;
    bool several = false;
    for (uint32_t i = 1; i < k->n_groups; i++) {
        several |= g[i].stream != g[0].stream || g[i].context != g[0].context;
        bool lower = g[i].context < first->context ||
                     (g[i].context == first->context && g[i].stream < first->stream);
        first = lower ? &g[i] : first;
    }
    return k->n_groups ? hw_arena_printf(a, ", Context %u, Stream %u%s", first->context,
                                         first->stream, several ? " and others" : "")
                       : "";
}

static void heading(hw_out *o, const hw_report_run *run, const hw_report_kernel *k)
{
    const hw_device *d = run->devices[0];
    hw_out_printf(o, "%s  %s %s%s%s", hw_style(o, HW_BOLD), k->short_name,
                  hw_report_shape(o->arena, k), k->mixed ? " and other shapes" : "",
                  streams_of(o->arena, k));
    for (uint32_t i = 0; i < run->n_devices; i++)
        hw_out_printf(o, "%s %s", i ? "," : ", Device", run->devices[i]->name);
    if (run->n_devices == 1 && d->vendor == HW_VENDOR_NVIDIA)
        hw_out_printf(o, ", CC %u.%u", d->capability.major, d->capability.minor);
    hw_out_printf(o, "%s\n", hw_style(o, HW_PLAIN));
    if (k->launches != 1)
        hw_out_printf(o, "    %s launches; counts are sums of all\n",
                      hw_grouped(o->arena, k->launches));
    if (k->failed)
        hw_out_printf(o, "    %s%s ended badly: %s; counts are of what was done until then%s\n",
                      hw_style(o, HW_BAD), hw_grouped(o->arena, k->failed), k->failure,
                      hw_style(o, HW_PLAIN));
}

/* ---- tables ---- */

/* A label says nothing if the metric is nothing on every device. */
static bool worth(const hw_metric *m, size_t i, const hw_report_run *run, const hw_report_kernel *k,
                  bool whole)
{
    if (!m->label)
        return false;
    for (uint32_t d = 0; d < run->n_devices; d++) {
        double v = hw_metric_value(i, k, &k->sums, run, d);
        if (!isnan(v) && (v != 0 || m->kind == HW_METRIC_LAUNCH || whole))
            return true;
    }
    return false;
}

static hw_text_table start_table(hw_arena *a, const hw_report_run *run)
{
    const char *headings[2 + HW_MODEL_DEVICES_MAX] = { "Metric Name", "Metric Unit" };
    for (uint32_t d = 0; d < run->n_devices; d++)
        headings[2 + d] = run->n_devices == 1 ? ">Metric Value"
                                              : hw_arena_printf(a, ">%s", run->devices[d]->name);
    return hw_table_new(a, 2 + run->n_devices, headings);
}

static void row(hw_text_table *t, const char *label, size_t i, const hw_metric *m,
                const hw_report_run *run, const hw_report_kernel *k)
{
    hw_cell(t, "%s%s", label, m->kind == HW_METRIC_SIMULATED ? " (simulated)" : "");
    hw_cell(t, "%s", m->unit);
    for (uint32_t d = 0; d < run->n_devices; d++)
        hw_cell(t, "%s", hw_metric_text(t->arena, hw_metric_value(i, k, &k->sums, run, d), true));
}

static void section(hw_out *o, const hw_section *s, const hw_report_run *run,
                    const hw_report_kernel *k)
{
    size_t n;
    const hw_metric *m = hw_metrics(&n);
    hw_text_table t = start_table(o->arena, run);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(m[i].section, s->id) != 0 || !worth(&m[i], i, run, k, false))
            continue;
        row(&t, m[i].label, i, &m[i], run, k);
        any = true;
    }
    if (!any)
        return;
    hw_out_printf(o, "    Section: %s\n", s->title);
    hw_table_print(o, &t, 4);
    hw_out_printf(o, "\n");
}

static void only(hw_out *o, const hw_report_run *run, const hw_report_kernel *k,
                 const hw_report_options *opt)
{
    size_t n;
    const hw_metric *m = hw_metrics(&n);
    hw_text_table t = start_table(o->arena, run);
    for (size_t i = 0; i < opt->n_metrics; i++)
        row(&t, m[opt->metrics[i]].id, opt->metrics[i], &m[opt->metrics[i]], run, k);
    hw_table_print(o, &t, 4);
    hw_out_printf(o, "\n");
}

/* ---- rules ---- */

static const char *wrapped(hw_arena *a, const char *text, unsigned indent, size_t width)
{
    const char *out = "";
    while (*text) {
        size_t n = strlen(text);
        if (n > width) {
            n = width;
            while (n > 1 && text[n] != ' ')
                n--;
            if (n <= 1)
                n = strcspn(text, " ");
        }
        out = hw_arena_printf(a, "%s%s%*s%.*s", out, *out ? "\n" : "", *out ? (int)indent : 0, "",
                              (int)n, text);
        text += n;
        text += strspn(text, " ");
    }
    return out;
}

static void rules(hw_out *o, const hw_report_run *run, const hw_report_kernel *k)
{
    for (uint32_t d = 0; d < run->n_devices; d++) {
        hw_advice advice[HW_ADVICE_MAX];
        size_t n = hw_report_advice(o->arena, run, k, d, advice);
        for (size_t i = 0; i < n; i++) {
            const char *device = run->n_devices == 1 ? "" : run->devices[d]->name;
            const char *text =
                hw_arena_printf(o->arena, "%s%s%s", device, *device ? ": " : "", advice[i].text);
            hw_out_printf(o, "    %sOPT%s   %s\n", hw_style(o, HW_BAD), hw_style(o, HW_PLAIN),
                          wrapped(o->arena, text, 10, 90));
        }
        if (n && d + 1 == run->n_devices)
            hw_out_printf(o, "\n");
    }
}

static void limiter(hw_out *o, const hw_report_run *run, const hw_report_kernel *k)
{
    for (uint32_t d = 0; d < run->n_devices; d++) {
        hw_occupancy_query q = hw_report_query(run, k, d);
        hw_occupancy_result r;
        bool fits = hw_occupancy(run->devices[d], &q, &r);
        hw_out_printf(o, "    INF   %s: ", run->devices[d]->name);
        if (fits)
            hw_out_printf(o, "%.2f %% occupancy, %u of %u %s a multiprocessor, limited by %s\n",
                          r.occupancy * 100, r.warps, r.max_warps,
                          run->devices[d]->vendor == HW_VENDOR_AMD ? "waves" : "warps",
                          hw_limit_name(r.limiter));
        else
            hw_out_printf(o, "the launch does not fit this device: %s\n",
                          hw_refusal_text(r.refusal));
        hw_out_printf(o, "    INF   %s: %s\n", run->devices[d]->name,
                      hw_report_registers_text(o->arena, &k->registers[d]));
        const char *beyond = hw_report_beyond(o->arena, run, k, d);
        if (beyond)
            hw_out_printf(o, "    INF   %s: beyond this device: %s\n", run->devices[d]->name,
                          beyond);
    }
    hw_out_printf(o, "\n");
}

/* ---- the whole ---- */

static const uint32_t first_look = (1u << 2) | (1u << 3) | (1u << 4) | (1u << 5) | (1u << 6);

static void kernel(hw_out *o, const hw_report_run *run, const hw_report_kernel *k,
                   const hw_report_options *opt)
{
    size_t n;
    const hw_section *s = hw_sections(&n);
    uint32_t set = opt->sections ? opt->sections : first_look | (k->sums.cache ? 1u << 1 : 0);
    heading(o, run, k);
    if (opt->metrics) {
        only(o, run, k, opt);
    } else {
        for (size_t i = 0; i < n; i++)
            if (set >> i & 1)
                section(o, &s[i], run, k);
        limiter(o, run, k);
        rules(o, run, k);
    }
    for (uint32_t d = 0; opt->source && d < run->n_devices; d++)
        hw_report_source(o, run, k, d);
}

/* Are there products of warpgroups, or bulk copies? How they use shared memory is not known. */
static bool has_unknown_passes(const hw_report_run *run)
{
    bool any = false;
    for (uint32_t i = 0; i < run->n_kernels && run->n_devices; i++) {
        const hw_report_kernel *k = &run->kernels[i];
        for (int t = HW_TRAFFIC_bulk_ld; t <= HW_TRAFFIC_bulk_at; t++)
            any |= k->sums.traffic[0][t][HW_FIELD_accesses] != 0;
        for (uint32_t s = 0; s < k->n_sites && !any; s++)
            any |= k->sites[s].text && strstr(k->sites[s].text, "wgmma.mma_async") != NULL;
    }
    return any;
}

const char *const *hw_report_fidelity(hw_arena *a, const hw_report_run *run)
{
    HW_VEC(const char *) lines = { 0 };
    bool guessed = false, amd = false;
    for (uint32_t i = 0; i < run->n_kernels; i++)
        for (uint32_t d = 0; d < run->n_devices; d++)
            guessed |= run->kernels[i].registers[d].source != HW_MODEL_IMAGE;
    for (uint32_t d = 0; d < run->n_devices; d++)
        amd |= run->devices[d]->vendor == HW_VENDOR_AMD;
    hw_vec_push(a, &lines,
                "exact: instructions, lanes, branches, requests, transactions, sectors, passes, "
                "conflicts, for the PTX that ran here (a device runs machine code made of it, so "
                "its instruction counts can differ); occupancy by the device's rules");
    if (run->level && strcmp(run->level, "caches") == 0)
        hw_vec_push(a, &lines,
                    "simulated: cache hits and device memory sectors, by the device file's cache "
                    "sizes; caches start empty at each launch, the first level at each block; "
                    "blocks go one after the other");
    else
        hw_vec_push(a, &lines, "simulated: nothing (cache hits need --caches)");
    if (guessed)
        hw_vec_push(
            a, &lines,
            "estimated: registers and spills of kernels without machine code in the program "
            "(and on devices that cannot run it), from the values of the PTX live at once and the "
            "kernel's bounds");
    if (amd)
        hw_vec_push(a, &lines,
                    "approximate: on devices with waves of 64 each warp of 32 is taken as half a "
                    "wave");
    hw_vec_push(a, &lines,
                has_unknown_passes(run)
                    ? "not modelled: time, cycles, stalls, throughputs, issue, achieved occupancy; "
                      "passes of shared memory in which wgmma reads its factors and bulk copies "
                      "read and write (how is not published)"
                    : "not modelled: time, cycles, stalls, throughputs, issue, achieved occupancy");
    hw_vec_push(a, &lines, NULL);
    return lines.ptr;
}

static const char *process_before(const hw_report_run *run, uint32_t kernel)
{
    return run->kernels[kernel - 1].process;
}

void hw_report_text(hw_out *o, const hw_report_run *run, const hw_report_options *opt)
{
    if (!run->n_kernels || !run->kernels[0].process) /* else each is named */
        hw_out_printf(o, "%s\n", run->program ? run->program : run->path);
    if (!run->complete)
        hw_out_printf(o,
                      "%sThe program did not end by itself: these are the launches that "
                      "finished.%s\n",
                      hw_style(o, HW_BAD), hw_style(o, HW_PLAIN));
    if (run->under_way)
        hw_out_printf(o, "%s was under way (%s of %s blocks done) and is not counted.\n",
                      run->under_way, hw_grouped(o->arena, run->blocks_here),
                      hw_grouped(o->arena, run->blocks_all));
    if (run->torn)
        hw_out_printf(
            o, "It was lost while a launch was being added: that one may be counted in part.\n");
    if (run->n_kernels == 0)
        hw_out_printf(o, "No kernels were launched, or none of those chosen.\n");
    for (uint32_t i = 0; i < run->n_kernels; i++) {
        const char *process = run->kernels[i].process, *before = i ? process_before(run, i) : NULL;
        if (process && (!before || strcmp(process, before) != 0))
            hw_out_printf(o, "Process: %s\n", process);
        kernel(o, run, &run->kernels[i], opt);
    }
    const char *const *lines = hw_report_fidelity(o->arena, run);
    for (; *lines; lines++)
        hw_out_printf(o, "  %s%s%s\n", hw_style(o, HW_DIM), wrapped(o->arena, *lines, 4, 96),
                      hw_style(o, HW_PLAIN));
}

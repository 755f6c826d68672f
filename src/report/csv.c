/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV as Nsight Compute's command line prints it: a row a launch, device and metric. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void quoted(hw_out *o, const char *text)
{
    hw_out_printf(o, "\"");
    for (; *text; text++)
        hw_out_printf(o, *text == '"' ? "\"\"" : "%c", *text);
    hw_out_printf(o, "\"");
}

static void cells(hw_out *o, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hw_out_printf(o, i ? "," : "");
        quoted(o, texts[i]);
    }
    hw_out_printf(o, "\n");
}

typedef struct place {
    const hw_report_run *run;
    const hw_report_kernel *k;
    const hw_report_sums *s;
    uint32_t context, stream;
    const char *id;
    uint32_t device;
} place;

enum { COMMON = 9 }; /* cells that say which launch and device */

static void common(hw_out *o, const place *p, const char **texts)
{
    hw_arena *a = o->arena;
    const hw_report_kernel *k = p->k;
    const hw_device *d = p->run->devices[p->device];
    texts[0] = p->id;
    texts[1] = k->process ? k->process : p->run->program ? p->run->program : p->run->path;
    texts[2] = k->short_name;
    texts[3] = hw_arena_printf(a, "%u", p->context);
    texts[4] = hw_arena_printf(a, "%u", p->stream);
    texts[5] = hw_arena_printf(a, "(%u, %u, %u)", k->block[0], k->block[1], k->block[2]);
    texts[6] = hw_arena_printf(a, "(%u, %u, %u)", k->grid[0], k->grid[1], k->grid[2]);
    texts[7] = d->name;
    texts[8] = d->vendor == HW_VENDOR_NVIDIA
                   ? hw_arena_printf(a, "%u.%u", d->capability.major, d->capability.minor)
                   : d->architecture;
}

/* The number of a metric's section. */
static size_t section_of(const hw_metric *m)
{
    size_t n, i = 0;
    const hw_section *s = hw_sections(&n);
    while (i < n && strcmp(s[i].id, m->section) != 0)
        i++;
    return i;
}

static const char *value(hw_out *o, const place *p, size_t metric)
{
    double v = hw_metric_value(metric, p->k, p->s, p->run, p->device);
    return hw_metric_text(o->arena, v, false);
}

static void row(hw_out *o, const place *p, size_t metric)
{
    size_t n;
    const hw_metric *m = &hw_metrics(&n)[metric];
    const char *texts[COMMON + 4];
    common(o, p, texts);
    texts[COMMON] = hw_sections(&n)[section_of(m)].title;
    texts[COMMON + 1] = m->id;
    texts[COMMON + 2] = m->unit;
    texts[COMMON + 3] = value(o, p, metric);
    cells(o, texts, HW_COUNTOF(texts));
}

/* A row with a column a metric. */
static void raw_row(hw_out *o, const place *p, const hw_report_options *opt)
{
    const char **texts = HW_NEW_N(o->arena, const char *, COMMON + opt->n_metrics);
    common(o, p, texts);
    for (size_t i = 0; i < opt->n_metrics; i++)
        texts[COMMON + i] = value(o, p, opt->metrics[i]);
    cells(o, texts, COMMON + opt->n_metrics);
}

static void launch(hw_out *o, place p, const hw_report_options *opt)
{
    size_t n;
    const hw_metric *m = hw_metrics(&n);
    for (p.device = 0; p.device < p.run->n_devices; p.device++) {
        if (opt->raw) {
            raw_row(o, &p, opt);
            continue;
        }
        for (size_t i = 0; i < opt->n_metrics; i++)
            row(o, &p, opt->metrics[i]);
        for (size_t i = 0; i < n && !opt->metrics; i++)
            if (!isnan(hw_metric_value(i, p.k, p.s, p.run, p.device)) &&
                (!opt->sections || opt->sections >> section_of(&m[i]) & 1))
                row(o, &p, i);
    }
}

/* ---- launches in the order of their numbers ---- */

typedef struct numbered {
    uint64_t id;
    const hw_report_kernel *k;
    const hw_report_group *g;
} numbered;
typedef HW_VEC(numbered) numbered_list;

static int by_id(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void gather(hw_arena *a, const hw_report_kernel *k, numbered_list *out)
{
    for (uint32_t g = 0; g < k->n_groups; g++)
        for (uint32_t r = 0; r < k->groups[g].n_ranges; r++) {
            const uint64_t *range = k->groups[g].ranges[r];
            for (uint64_t i = 0; i < range[1]; i++)
                hw_vec_push(a, out, ((numbered){ range[0] + i * range[2], k, &k->groups[g] }));
        }
}

/* Each launch of the groups, then what is beyond them, a row for each kernel. */
static void launches(hw_out *o, const hw_report_run *run, const hw_report_options *opt)
{
    numbered_list list = { 0 };
    for (uint32_t i = 0; i < run->n_kernels; i++)
        gather(o->arena, &run->kernels[i], &list);
    if (list.len)
        qsort(list.ptr, list.len, sizeof *list.ptr, by_id);
    for (size_t i = 0; i < list.len; i++) {
        const numbered *l = &list.ptr[i];
        launch(o,
               (place){ run, l->k, &l->g->sums, l->g->context, l->g->stream,
                        hw_arena_printf(o->arena, "%" PRIu64, l->id), 0 },
               opt);
    }
    for (uint32_t i = 0; i < run->n_kernels; i++) {
        const hw_report_kernel *k = &run->kernels[i];
        if (k->launches_ungrouped || !k->n_groups)
            launch(o,
                   (place){ run, k, &k->sums, 0, 0,
                            hw_arena_printf(o->arena, "%" PRIu64 " launches", k->launches), 0 },
                   opt);
    }
}

static const char *const headings[] = {
    "ID",          "Process Name", "Kernel Name",  "Context", "Stream",
    "Block Size",  "Grid Size",    "Device",       "CC",      "Section Name",
    "Metric Name", "Metric Unit",  "Metric Value",
};

/* Names of the columns, then their units. */
static void raw_headings(hw_out *o, const hw_report_options *opt)
{
    size_t n;
    const hw_metric *m = hw_metrics(&n);
    const char **names = HW_NEW_N(o->arena, const char *, COMMON + opt->n_metrics);
    const char **units = HW_NEW_N(o->arena, const char *, COMMON + opt->n_metrics);
    for (size_t i = 0; i < COMMON; i++) {
        names[i] = headings[i];
        units[i] = "";
    }
    for (size_t i = 0; i < opt->n_metrics; i++) {
        names[COMMON + i] = m[opt->metrics[i]].id;
        units[COMMON + i] = m[opt->metrics[i]].unit;
    }
    cells(o, names, COMMON + opt->n_metrics);
    cells(o, units, COMMON + opt->n_metrics);
}

void hw_report_csv(hw_out *o, const hw_report_run *run, const hw_report_options *opt)
{
    if (opt->raw)
        raw_headings(o, opt);
    else
        cells(o, headings, HW_COUNTOF(headings));
    launches(o, run, opt);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV as Nsight Compute's command line prints it: a row a launch, device and metric. */
#include "report.h"

#include <inttypes.h>
#include <math.h>

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
    const char *id;
    uint32_t device;
} place;

static void row(hw_out *o, const place *p, size_t metric)
{
    size_t n;
    hw_arena *a = o->arena;
    const hw_metric *m = &hw_metrics(&n)[metric];
    const hw_report_kernel *k = p->k;
    const hw_device *d = p->run->devices[p->device];
    const char *title = m->section;
    const hw_section *s = hw_sections(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(s[i].id, m->section) == 0)
            title = s[i].title;
    const char *texts[] = {
        p->id,
        p->run->program ? p->run->program : p->run->path,
        k->short_name,
        hw_arena_printf(a, "%u", k->context),
        hw_arena_printf(a, "%u", k->stream),
        hw_arena_printf(a, "(%u, %u, %u)", k->block[0], k->block[1], k->block[2]),
        hw_arena_printf(a, "(%u, %u, %u)", k->grid[0], k->grid[1], k->grid[2]),
        d->name,
        d->vendor == HW_VENDOR_NVIDIA
            ? hw_arena_printf(a, "%u.%u", d->capability.major, d->capability.minor)
            : d->architecture,
        title,
        m->id,
        m->unit,
        hw_metric_text(a, hw_metric_value(metric, k, p->s, p->run, p->device), false),
    };
    cells(o, texts, HW_COUNTOF(texts));
}

static void launch(hw_out *o, place p, const hw_report_options *opt)
{
    size_t n;
    hw_metrics(&n);
    for (p.device = 0; p.device < p.run->n_devices; p.device++) {
        if (opt->metrics) {
            for (size_t i = 0; i < opt->n_metrics; i++)
                row(o, &p, opt->metrics[i]);
            continue;
        }
        for (size_t i = 0; i < n; i++)
            if (!isnan(hw_metric_value(i, p.k, p.s, p.run, p.device)))
                row(o, &p, i);
    }
}

/* Each launch of the groups, and what is beyond them as one row. */
static void kernel(hw_out *o, const hw_report_run *run, const hw_report_kernel *k,
                   const hw_report_options *opt)
{
    for (uint32_t g = 0; g < k->n_groups; g++)
        for (uint32_t r = 0; r < k->groups[g].n_ranges; r++)
            for (uint64_t i = 0; i < k->groups[g].ranges[r][1]; i++)
                launch(
                    o,
                    (place){ run, k, &k->groups[g].sums,
                             hw_arena_printf(o->arena, "%" PRIu64, k->groups[g].ranges[r][0] + i),
                             0 },
                    opt);
    if (k->launches_ungrouped || !k->n_groups)
        launch(o,
               (place){ run, k, &k->sums,
                        hw_arena_printf(o->arena, "%" PRIu64 " launches", k->launches), 0 },
               opt);
}

void hw_report_csv(hw_out *o, const hw_report_run *run, const hw_report_options *opt)
{
    static const char *const headings[] = {
        "ID",          "Process Name", "Kernel Name",  "Context", "Stream",
        "Block Size",  "Grid Size",    "Device",       "CC",      "Section Name",
        "Metric Name", "Metric Unit",  "Metric Value",
    };
    cells(o, headings, HW_COUNTOF(headings));
    for (uint32_t i = 0; i < run->n_kernels; i++)
        kernel(o, run, &run->kernels[i], opt);
}

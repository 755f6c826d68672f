/* SPDX-License-Identifier: Apache-2.0
 *
 * Two runs side by side: before and after, or on two devices. */
#include "report.h"

#include <math.h>

/* The kernel of `after` that answers the i-th of `before`: the same name and as many of it before. */
static const hw_report_kernel *partner(const hw_report_run *before, uint32_t i,
                                       const hw_report_run *after)
{
    uint32_t nth = 0;
    const hw_report_kernel *k = &before->kernels[i];
    for (uint32_t n = 0; n < i; n++)
        nth += strcmp(before->kernels[n].short_name, k->short_name) == 0;
    for (uint32_t n = 0; n < after->n_kernels; n++)
        if (strcmp(after->kernels[n].short_name, k->short_name) == 0 && nth-- == 0)
            return &after->kernels[n];
    return NULL;
}

static const char *change(hw_arena *a, double before, double after)
{
    if (isnan(before) || isnan(after))
        return "";
    if (before == after)
        return "=";
    if (before == 0)
        return "new";
    return hw_arena_printf(a, "%+.1f %%", 100 * (after - before) / before);
}

static void row(hw_text_table *t, const hw_metric *m, const char *label, double x, double y)
{
    hw_cell(t, "%s%s", label, m->kind == HW_METRIC_SIMULATED ? " (simulated)" : "");
    hw_cell(t, "%s", m->unit);
    hw_cell(t, "%s", hw_metric_text(t->arena, x, true));
    hw_cell(t, "%s", hw_metric_text(t->arena, y, true));
    hw_cell(t, "%s", change(t->arena, x, y));
}

static bool wanted(size_t metric, const hw_metric *m, const hw_report_options *opt)
{
    size_t n;
    const hw_section *s = hw_sections(&n);
    for (size_t i = 0; i < opt->n_metrics; i++)
        if (opt->metrics[i] == metric)
            return true;
    if (opt->metrics)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(s[i].id, m->section) == 0)
            return m->label && (!opt->sections || opt->sections >> i & 1);
    return false;
}

static void kernel(hw_out *o, const hw_report_run *before, const hw_report_kernel *k,
                   const hw_report_run *after, const hw_report_kernel *l,
                   const hw_report_options *opt)
{
    size_t n;
    const hw_metric *m = hw_metrics(&n);
    const char *devices[] = { before->devices[0]->name, after->devices[0]->name };
    bool two = strcmp(devices[0], devices[1]) != 0;
    const char *headings[] = { "Metric Name", "Metric Unit",
                               hw_arena_printf(o->arena, ">%s", two ? devices[0] : "Before"),
                               hw_arena_printf(o->arena, ">%s", two ? devices[1] : "After"),
                               ">Change" };
    hw_text_table t = hw_table_new(o->arena, HW_COUNTOF(headings), headings);
    for (size_t i = 0; i < n; i++) {
        double x = hw_metric_value(i, k, &k->sums, before, 0);
        double y = hw_metric_value(i, l, &l->sums, after, 0);
        bool nothing = (isnan(x) || x == 0) && (isnan(y) || y == 0);
        if (wanted(i, &m[i], opt) && (!nothing || opt->metrics))
            row(&t, &m[i], opt->metrics ? m[i].id : m[i].label, x, y);
    }
    hw_out_printf(o, "%s  %s %s, %s%s\n", hw_style(o, HW_BOLD), k->short_name,
                  hw_report_shape(o->arena, k),
                  strcmp(hw_report_shape(o->arena, k), hw_report_shape(o->arena, l)) == 0
                      ? "the same shape"
                      : hw_arena_printf(o->arena, "then %s", hw_report_shape(o->arena, l)),
                  hw_style(o, HW_PLAIN));
    hw_table_print(o, &t, 4);
    hw_out_printf(o, "\n");
}

void hw_report_compare(hw_out *o, const hw_report_run *before, const hw_report_run *after,
                       const hw_report_options *opt)
{
    hw_out_printf(o, "%s (%s)\n%s (%s)\n", before->path, before->devices[0]->name, after->path,
                  after->devices[0]->name);
    for (uint32_t i = 0; i < before->n_kernels; i++) {
        const hw_report_kernel *l = partner(before, i, after);
        if (l)
            kernel(o, before, &before->kernels[i], after, l, opt);
        else
            hw_out_printf(o, "  %s: only in the first\n", before->kernels[i].short_name);
    }
    for (uint32_t i = 0; i < after->n_kernels; i++)
        if (!partner(after, i, before))
            hw_out_printf(o, "  %s: only in the second\n", after->kernels[i].short_name);
}

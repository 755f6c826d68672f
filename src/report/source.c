/* SPDX-License-Identifier: Apache-2.0
 *
 * The annotated listing: a kernel's lines, hot spots first, each with what it did. */
#include "report.h"

#include <inttypes.h>

static uint64_t over(const hw_line *l, unsigned first, unsigned last, unsigned field)
{
    uint64_t sum = 0;
    for (unsigned t = first; t <= last; t++)
        sum += l->field[t][field];
    return sum;
}

static const char *ratio_text(hw_arena *a, uint64_t x, uint64_t y)
{
    return y ? hw_arena_printf(a, "%.2f", (double)x / (double)y) : "";
}

static const char *count_text(hw_arena *a, uint64_t n)
{
    return n ? hw_grouped(a, n) : "";
}

static void row(hw_text_table *t, const hw_line *l, const char *text, bool files)
{
    hw_arena *a = t->arena;
    uint64_t accesses = over(l, HW_TRAFFIC_global_ld, HW_TRAFFIC_local_st, HW_FIELD_accesses);
    uint64_t sectors = over(l, HW_TRAFFIC_global_ld, HW_TRAFFIC_local_st, HW_FIELD_sectors);
    uint64_t passes = over(l, HW_TRAFFIC_shared_ld, HW_TRAFFIC_shared_at, HW_FIELD_passes);
    uint64_t ideal = over(l, HW_TRAFFIC_shared_ld, HW_TRAFFIC_shared_at, HW_FIELD_ideal);
    if (files && l->file)
        hw_cell(t, "%s:%u", hw_base_name(l->file), l->line);
    else
        hw_cell(t, "%u", l->line);
    hw_cell(t, "%s", l->waste >= 1 ? hw_metric_text(a, (double)(uint64_t)l->waste, true) : "");
    hw_cell(t, "%s", hw_grouped(a, l->executed));
    hw_cell(t, "%s", ratio_text(a, l->threads, l->executed));
    hw_cell(t, "%s",
            l->divergent ? hw_arena_printf(a, "%s/%s", hw_grouped(a, l->divergent),
                                           hw_grouped(a, l->branches))
                         : "");
    hw_cell(t, "%s", ratio_text(a, sectors, accesses));
    hw_cell(t, "%s", count_text(a, passes > ideal ? passes - ideal : 0));
    hw_cell(t, "%s%s", l->inlined ? "(inlined) " : "", text ? text : "");
}

static bool several_files(const hw_lines *all)
{
    for (size_t i = 1; i < all->len; i++)
        if (all->ptr[i].file != all->ptr[0].file &&
            (!all->ptr[i].file || !all->ptr[0].file ||
             strcmp(all->ptr[i].file, all->ptr[0].file) != 0))
            return true;
    return false;
}

static const char *trimmed(const char *text)
{
    return text ? text + strspn(text, " \t") : NULL;
}

void hw_report_source(hw_out *o, const hw_report_run *run, const hw_report_kernel *k,
                      uint32_t device)
{
    static const char *const headings[] = { ">Line",      ">Excess",      ">Executed",  ">Lanes",
                                            ">Divergent", ">Sectors/Req", ">Conflicts", "Source" };
    bool by_source = hw_report_has_lines(k);
    hw_lines all = hw_report_lines(o->arena, run, k, device, by_source);
    hw_sources *sources = hw_sources_new(o->arena);
    hw_text_table t = hw_table_new(o->arena, HW_COUNTOF(headings), headings);
    bool files = several_files(&all);
    for (size_t i = 0; i < all.len; i++) {
        const hw_line *l = &all.ptr[i];
        row(&t, l, trimmed(by_source ? hw_source_line(sources, l->file, l->line) : l->text), files);
    }
    hw_out_printf(o, "    Source: %s%s%s%s\n",
                  by_source ? "lines of the program" : "lines of the PTX",
                  run->n_devices > 1 ? ", on " : "",
                  run->n_devices > 1 ? run->devices[device]->name : "", ", hot spots first");
    if (!by_source)
        hw_out_printf(o, "    (compile with -lineinfo to see lines of the program)\n");
    hw_table_print(o, &t, 4);
    hw_out_printf(o,
                  "    Excess: sectors, passes, steps and issue slots beyond what is needed\n\n");
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The profile file with what was made of it: metrics, occupancy and advice beside the counts. */
#include "report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static json_t *metrics(const hw_report_run *run, const hw_report_kernel *k, uint32_t d)
{
    size_t n;
    const hw_metric *m = hw_metrics(&n);
    json_t *all = json_object();
    for (size_t i = 0; i < n; i++) {
        double v = hw_metric_value(i, k, &k->sums, run, d);
        if (isnan(v))
            continue;
        bool whole = v == floor(v) && fabs(v) < 9e15;
        json_t *value = whole ? json_integer((json_int_t)v) : json_real(v);
        json_object_set_new(all, m[i].id,
                            json_pack("{s:o, s:s, s:s}", "value", value, "unit", m[i].unit, "kind",
                                      hw_metric_kind_word(m[i].kind)));
    }
    return all;
}

static json_t *occupancy(const hw_report_run *run, const hw_report_kernel *k, uint32_t d)
{
    hw_occupancy_query q = hw_report_query(run, k, d);
    hw_occupancy_result r;
    if (!hw_occupancy(run->devices[d], &q, &r))
        return json_pack("{s:i, s:s}", "blocks", 0, "refusal", hw_refusal_text(r.refusal));
    return json_pack("{s:i, s:i, s:i, s:f, s:s}", "blocks", (int)r.blocks, "warps", (int)r.warps,
                     "max_warps", (int)r.max_warps, "occupancy", r.occupancy, "limiter",
                     hw_limit_name(r.limiter));
}

static json_t *advice(hw_arena *a, const hw_report_run *run, const hw_report_kernel *k, uint32_t d)
{
    hw_advice found[HW_ADVICE_MAX];
    size_t n = hw_report_advice(a, run, k, d, found);
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_pack("{s:s, s:s}", "rule", found[i].rule, "text", found[i].text);
        if (!found[i].whole_launch)
            json_object_set_new(o, "cost", json_real(found[i].cost));
        const hw_report_site *s = found[i].site;
        if (s)
            json_object_set_new(o, "ptx_line", json_integer(s->ptx_line));
        if (s && s->place.file) {
            json_object_set_new(o, "file", json_string(s->place.file));
            json_object_set_new(o, "line", json_integer(s->place.line));
        }
        json_array_append_new(all, o);
    }
    return all;
}

static void add_results(hw_arena *a, const hw_report_run *run, const hw_report_kernel *k,
                        json_t *kernel)
{
    json_t *all = json_array();
    for (uint32_t d = 0; d < run->n_devices; d++)
        json_array_append_new(all,
                              json_pack("{s:s, s:o, s:o, s:o}", "device", run->devices[d]->name,
                                        "occupancy", occupancy(run, k, d), "metrics",
                                        metrics(run, k, d), "advice", advice(a, run, k, d)));
    json_object_set_new(kernel, "short_name", json_string(k->short_name));
    json_object_set_new(kernel, "results", all);
}

hw_status hw_report_json(hw_out *o, const hw_report_run *run, hw_diag *d)
{
    json_error_t e;
    json_t *file = json_load_file(run->path, JSON_REJECT_DUPLICATES, &e);
    if (!file)
        return hw_fail(d, HW_E_IO, "%s:%d: %s", run->path, e.line, e.text);
    json_t *kernels = json_array(), *lines = json_array();
    for (uint32_t i = 0; i < run->n_kernels; i++) {
        json_t *kernel = json_array_get(json_object_get(file, "kernels"), run->kernels[i].index);
        add_results(o->arena, run, &run->kernels[i], kernel);
        json_array_append(kernels, kernel);
    }
    for (const char *const *text = hw_report_fidelity(o->arena, run); *text; text++)
        json_array_append_new(lines, json_string(*text));
    json_object_set_new(file, "kernels", kernels);
    json_object_set_new(file, "fidelity", lines);
    char *text = json_dumps(file, JSON_INDENT(1) | JSON_REAL_PRECISION(10));
    json_decref(file);
    for (const char *c = text; c && *c; c++)
        hw_vec_push(o->arena, &o->bytes, *c);
    hw_out_printf(o, "\n");
    free(text);
    return HW_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics: the rows of metrics.def, and what their formulas are made of. */
#include "report.h"

#include <fnmatch.h>
#include <math.h>
#include <regex.h>
#include <strings.h>

/* ---- what a formula may use ---- */

typedef struct launch_values {
    double grid, block, registers, spill, shared_static, shared_dynamic, local, sms;
    double occ_blocks, occ_warps, max_warps;
    double limit_registers, limit_shared, limit_warps, limit_blocks;
    double pass_bytes, replays;
} launch_values;

typedef struct subject {
    const hw_report_sums *s;
    uint32_t device;
    launch_values launch;
} subject;

#define T(name)           ((double)x->s->total[HW_TOTAL_##name])
#define M(traffic_, name) ((double)x->s->traffic[x->device][HW_TRAFFIC_##traffic_][HW_FIELD_##name])
#define C(name)           (x->s->cache ? (double)x->s->cache[x->device][HW_CACHE_##name] : NAN)
#define L(name)           (x->launch.name)

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static double percent(double a, double b)
{
    return 100 * ratio(a, b);
}

static double cache(const subject *x, double value)
{
    return x->s->cache ? value : NAN;
}

static double shared_sum(const subject *x, unsigned field)
{
    double sum = 0;
    for (int t = HW_TRAFFIC_shared_ld; t <= HW_TRAFFIC_shared_at; t++)
        sum += (double)x->s->traffic[x->device][t][field];
    return sum;
}

static double bytes_moved(const subject *x)
{
    double sum = 0;
    for (int t = HW_TRAFFIC_global_ld; t <= HW_TRAFFIC_local_st; t++)
        sum += (double)x->s->traffic[x->device][t][HW_FIELD_moved];
    return sum;
}

/* 1: none. */
static double camping(const subject *x)
{
    double camped = 0, spread = 0;
    for (int t = HW_TRAFFIC_global_ld; t <= HW_TRAFFIC_global_at; t++) {
        camped += (double)x->s->traffic[x->device][t][HW_FIELD_camped];
        spread += (double)x->s->traffic[x->device][t][HW_FIELD_spread];
    }
    return ratio(camped, spread);
}

/* ---- the rows ---- */

typedef double formula(const subject *x);

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define METRIC(id, nvprof, unit, kind, section, label, expression, sentence) \
    static double JOIN(formula_, __LINE__)(const subject *x)                 \
    {                                                                        \
        (void)x;                                                             \
        return (expression);                                                 \
    }
#include "metrics.def"

#define METRIC(id, nvprof, unit, kind, section, label, expression, sentence) \
    { id, nvprof, unit, #section, label, sentence, HW_METRIC_##kind },
static const hw_metric rows[] = {
#include "metrics.def"
};

#define METRIC(id, nvprof, unit, kind, section, label, expression, sentence) \
    JOIN(formula_, __LINE__),
static formula *const formulas[] = {
#include "metrics.def"
};

const hw_metric *hw_metrics(size_t *count)
{
    *count = HW_COUNTOF(rows);
    return rows;
}

size_t hw_metric_find(const char *name)
{
    for (size_t i = 0; i < HW_COUNTOF(rows); i++)
        if (strcmp(rows[i].id, name) == 0 || (rows[i].nvprof && strcmp(rows[i].nvprof, name) == 0))
            return i;
    return SIZE_MAX;
}

const char *hw_metric_kind_word(hw_metric_kind kind)
{
    static const char *const words[] = { "exact", "simulated", "launch" };
    return words[kind];
}

/* ---- launch and device ---- */

hw_occupancy_query hw_report_query(const hw_report_run *run, const hw_report_kernel *k,
                                   uint32_t device)
{
    const hw_device *dev = run->devices[device];
    hw_occupancy_query q = hw_occupancy_query_new();
    q.threads = k->block[0] * k->block[1] * k->block[2];
    if (dev->vendor == HW_VENDOR_AMD) {
        q.vgprs = k->registers[device].count;
        q.lds = k->shared_static + k->shared_dynamic;
        return q;
    }
    q.registers = k->registers[device].count;
    q.shared_static = k->shared_static;
    q.shared_dynamic = q.shared_dynamic_max = k->shared_dynamic;
    q.shared_optin = k->shared_static + k->shared_dynamic > dev->occupancy.shared_per_block;
    return q;
}

/* Blocks a resource allows; NAN where it limits nothing. */
static double limit(const hw_occupancy_result *r, hw_limit nvidia, hw_limit amd)
{
    uint32_t v = r->limits[nvidia] < r->limits[amd] ? r->limits[nvidia] : r->limits[amd];
    return v == HW_UNLIMITED ? (double)NAN : (double)v;
}

const char *hw_report_registers_text(hw_arena *a, const hw_report_registers *r)
{
    static const char *const by[] = {
        [HW_MODEL_ESTIMATE] = "an estimate from the PTX",
        [HW_MODEL_BOUND] = "the most that bounds or the device allow",
    };
    const char *source =
        r->arch ? hw_arena_printf(
                      a, "by the program's machine code for sm_%u%s", r->arch,
                      r->source == HW_MODEL_BOUND ? ", held down to what the device allows" : "")
                : by[r->source == HW_MODEL_BOUND];
    const char *spill =
        r->spill_bytes ? hw_arena_printf(a, "; %u bytes a thread spilled", r->spill_bytes) : "";
    return hw_arena_printf(a, "%u registers a thread, %s%s", r->count, source, spill);
}

static launch_values values_of(const hw_report_run *run, const hw_report_kernel *k, uint32_t device)
{
    const hw_device *dev = run->devices[device];
    hw_occupancy_query q = hw_report_query(run, k, device);
    hw_occupancy_result r;
    hw_occupancy(dev, &q, &r);
    return (launch_values){
        .grid = (double)k->grid[0] * k->grid[1] * k->grid[2],
        .block = q.threads,
        .registers = k->registers[device].count,
        .spill = k->registers[device].spill_bytes,
        .shared_static = (double)k->shared_static,
        .shared_dynamic = (double)k->shared_dynamic,
        .local = (double)k->local_bytes,
        .sms = dev->compute.sm_count,
        .occ_blocks = r.blocks,
        .occ_warps = r.warps,
        .max_warps = r.max_warps,
        .limit_registers = limit(&r, HW_LIMIT_REGISTERS, HW_LIMIT_VGPR),
        .limit_shared = limit(&r, HW_LIMIT_SHARED, HW_LIMIT_LDS),
        .limit_warps = limit(&r, HW_LIMIT_WARPS, HW_LIMIT_THREADS),
        .limit_blocks = limit(&r, HW_LIMIT_BLOCKS, HW_LIMIT_BLOCKS),
        .pass_bytes = (double)dev->banks.banks * dev->banks.bank_width,
        .replays = dev->vendor == HW_VENDOR_NVIDIA && dev->capability.major < 5,
    };
}

double hw_metric_value(size_t metric, const hw_report_kernel *k, const hw_report_sums *s,
                       const hw_report_run *run, uint32_t device)
{
    if (rows[metric].kind == HW_METRIC_SIMULATED && !s->cache)
        return NAN;
    const subject x = { s, device, values_of(run, k, device) };
    return formulas[metric](&x);
}

/* ---- sections ---- */

static const hw_section sections[] = {
    { "SpeedOfLight_RooflineChart", "GPU Speed Of Light Roofline Chart" },
    { "MemoryWorkloadAnalysis", "Memory Workload Analysis" },
    { "MemoryWorkloadAnalysis_Tables", "Memory Workload Analysis Tables" },
    { "InstructionStats", "Instruction Statistics" },
    { "LaunchStats", "Launch Statistics" },
    { "Occupancy", "Occupancy" },
    { "SourceCounters", "Source Counters" },
};

const hw_section *hw_sections(size_t *count)
{
    *count = HW_COUNTOF(sections);
    return sections;
}

static bool same(hw_str a, const char *b)
{
    return strlen(b) == a.len && strncasecmp(a.ptr, b, a.len) == 0;
}

static hw_str next_word(const char **at)
{
    hw_str w = { *at, strcspn(*at, ",") };
    *at += w.len + ((*at)[w.len] == ',');
    return w;
}

static hw_status no_section(hw_str word, hw_diag *d)
{
    const char *list = "";
    hw_arena *a = d->arena;
    for (size_t i = 0; i < HW_COUNTOF(sections); i++)
        list = hw_arena_printf(a, "%s%s%s", list, i ? ", " : "", sections[i].id);
    return hw_fail(d, HW_E_NOT_FOUND,
                   "no section '%.*s' (there are %s; sections of times are not modelled)",
                   HW_STR_ARG(word), list);
}

hw_status hw_report_sections(const char *list, uint32_t *set, hw_diag *d)
{
    *set = 0;
    while (list && *list) {
        hw_str word = next_word(&list);
        uint32_t bits = same(word, "all") ? (1u << HW_COUNTOF(sections)) - 1 : 0;
        for (size_t i = 0; i < HW_COUNTOF(sections); i++)
            if (same(word, sections[i].id) || same(word, sections[i].title))
                bits |= 1u << i;
        if (!bits)
            return no_section(word, d);
        *set |= bits;
    }
    return HW_OK;
}

static hw_status no_metric(const char *name, hw_diag *d)
{
    const char *names[2 * HW_COUNTOF(rows)];
    size_t n = 0;
    for (size_t i = 0; i < HW_COUNTOF(rows); i++) {
        names[n++] = rows[i].id;
        if (rows[i].nvprof)
            names[n++] = rows[i].nvprof;
    }
    const char *near = hw_nearest(name, names, n);
    for (size_t i = 0; i < n && !near; i++)
        near = strlen(name) >= 4 && strstr(names[i], name) ? names[i] : NULL;
    return hw_fail(d, HW_E_NOT_FOUND,
                   "no metric '%s'%s%s%s (docs/metrics.md lists them; times, stalls and "
                   "throughputs are not modelled)",
                   name, near ? "; did you mean '" : "", near ? near : "", near ? "'" : "");
}

typedef struct wanted { /* a name, or a pattern */
    const char *name;
    bool glob, regex;
    regex_t compiled;
} wanted;

static bool fits(const wanted *w, const char *name)
{
    size_t n = strlen(w->name);
    if (w->regex)
        return regexec(&w->compiled, name, 0, NULL, 0) == 0;
    if (w->glob)
        return fnmatch(w->name, name, 0) == 0;
    return strncmp(w->name, name, n) == 0 && (name[n] == 0 || name[n] == '.');
}

static hw_status understand(const char *name, wanted *w, hw_diag *d)
{
    static const char prefix[] = "regex:";
    *w = (wanted){ .name = name, .glob = strpbrk(name, "*?") != NULL };
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return HW_OK;
    w->regex = true;
    if (regcomp(&w->compiled, name + sizeof prefix - 1, REG_EXTENDED | REG_NOSUB) == 0)
        return HW_OK;
    return hw_fail(d, HW_E_INVALID, "'%s' is not a regular expression", name + sizeof prefix - 1);
}

static bool is_among(const size_t *list, size_t n, size_t m)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == m)
            return true;
    return false;
}

hw_status hw_report_metrics(hw_arena *a, const char *list, size_t **metrics, size_t *count,
                            hw_diag *d)
{
    HW_VEC(size_t) found = { 0 };
    while (*list) {
        const char *name = hw_arena_cstr(a, next_word(&list));
        wanted w;
        bool any = false;
        HW_TRY(understand(name, &w, d));
        for (size_t i = 0; i < HW_COUNTOF(rows); i++) {
            if (!fits(&w, rows[i].id) && !(rows[i].nvprof && fits(&w, rows[i].nvprof)))
                continue;
            any = true;
            if (!is_among(found.ptr, found.len, i))
                hw_vec_push(a, &found, i);
        }
        if (w.regex)
            regfree(&w.compiled);
        if (!any)
            return no_metric(name, d);
    }
    if (found.len == 0)
        return hw_fail(d, HW_E_INVALID, "no metrics are named");
    *metrics = found.ptr;
    *count = found.len;
    return HW_OK;
}

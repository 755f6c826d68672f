/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile file read, with every value checked: what is missing is zero, what is wrong is named. */
#include "report.h"

#include <jansson.h>
#include <regex.h>

typedef struct reader {
    hw_arena *a;
    hw_diag *d;
    const char *path;
    hw_report_run *run;
    bool bad;
} reader;

static void wrong(reader *r, const char *what)
{
    if (!r->bad)
        hw_fail(r->d, HW_E_CORRUPT, "%s: %s", r->path, what);
    r->bad = true;
}

/* ---- values ---- */

static uint64_t number(reader *r, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!v)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 0) {
        wrong(r, hw_arena_printf(r->a, "\"%s\" is not a number from 0", key));
        return 0;
    }
    return (uint64_t)json_integer_value(v);
}

static uint32_t small(reader *r, const json_t *o, const char *key)
{
    uint64_t v = number(r, o, key);
    if (v > UINT32_MAX)
        wrong(r, hw_arena_printf(r->a, "\"%s\" is too large", key));
    return (uint32_t)v;
}

static const char *text(reader *r, const json_t *o, const char *key)
{
    const char *v = json_string_value(json_object_get(o, key));
    return v ? hw_arena_cstr(r->a, hw_str_of(v)) : NULL;
}

static bool is_true(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

static void numbers(reader *r, const json_t *o, uint64_t *v, int n, const hw_count_name *names)
{
    for (int i = 0; i < n; i++)
        v[i] = number(r, o, names[i].name);
}

static void triple(reader *r, const json_t *o, const char *key, uint32_t v[3])
{
    const json_t *list = json_object_get(o, key);
    for (size_t i = 0; i < 3; i++) {
        json_int_t n = json_integer_value(json_array_get(list, i));
        if (n < 1 || n > UINT32_MAX)
            wrong(r, hw_arena_printf(r->a, "\"%s\" is not three sizes", key));
        v[i] = (uint32_t)n;
    }
}

/* ---- sums ---- */

static void read_sums(reader *r, const json_t *o, hw_report_sums *s)
{
    const json_t *devices = json_object_get(o, "devices");
    uint32_t n = r->run->n_devices;
    numbers(r, json_object_get(o, "totals"), s->total, HW_TOTALS, hw_total_names);
    s->traffic = hw_arena_alloc_array(r->a, n, sizeof *s->traffic);
    for (uint32_t d = 0; d < n; d++) {
        const json_t *dev = json_array_get(devices, d), *traffic = json_object_get(dev, "traffic");
        const json_t *cache = json_object_get(dev, "cache");
        for (int t = 0; t < HW_TRAFFICS; t++)
            numbers(r, json_object_get(traffic, hw_traffic_names[t].name), s->traffic[d][t],
                    HW_FIELDS, hw_field_names);
        if (!cache)
            continue;
        if (!s->cache)
            s->cache = hw_arena_alloc_array(r->a, n, sizeof *s->cache);
        numbers(r, cache, s->cache[d], HW_CACHES, hw_cache_names);
    }
}

enum { LAUNCHES_MOST = 100000000 }; /* in one group of a file */

static void read_groups(reader *r, const json_t *list, hw_report_kernel *k)
{
    k->n_groups = (uint32_t)json_array_size(list);
    k->groups = HW_NEW_N(r->a, hw_report_group, k->n_groups);
    for (uint32_t i = 0; i < k->n_groups; i++) {
        const json_t *o = json_array_get(list, i), *ids = json_object_get(o, "ids");
        hw_report_group *g = &k->groups[i];
        g->launches = number(r, o, "launches");
        g->context = small(r, o, "context");
        g->stream = small(r, o, "stream");
        g->n_ranges = (uint32_t)(json_array_size(ids) / 3);
        g->ranges = hw_arena_alloc_array(r->a, g->n_ranges, sizeof *g->ranges);
        for (uint32_t n = 0; n < g->n_ranges * 3; n++)
            g->ranges[n / 3][n % 3] = (uint64_t)json_integer_value(json_array_get(ids, n));
        uint64_t told = 0;
        for (uint32_t n = 0; n < g->n_ranges && told <= g->launches; n++)
            told += g->ranges[n][1] <= LAUNCHES_MOST ? g->ranges[n][1] : LAUNCHES_MOST;
        if (told != g->launches || told > LAUNCHES_MOST)
            wrong(r, "the ids of a group are not as many as its launches");
        if (json_object_get(o, "totals"))
            read_sums(r, o, &g->sums);
        else
            hw_report_sums_divide(r->a, r->run, &g->sums, &k->sums, g->launches);
    }
}

/* ---- places and sites ---- */

static int traffic_of(const json_t *o)
{
    const char *name = json_string_value(json_object_get(o, "traffic"));
    for (int t = 0; name && t < HW_TRAFFICS; t++)
        if (strcmp(name, hw_traffic_names[t].name) == 0)
            return t;
    return -1;
}

static void read_access(reader *r, const json_t *o, hw_report_site *s)
{
    uint32_t n = r->run->n_devices;
    const json_t *devices = json_object_get(o, "devices");
    s->traffic = traffic_of(o);
    s->width = small(r, o, "width");
    const json_t *stride = json_object_get(o, "stride");
    s->strided = json_is_integer(stride);
    s->stride = json_integer_value(stride);
    s->field = hw_arena_alloc_array(r->a, n, sizeof *s->field);
    for (uint32_t d = 0; d < n; d++) {
        const json_t *dev = json_array_get(devices, d), *banks = json_object_get(dev, "banks");
        numbers(r, dev, s->field[d], HW_FIELDS, hw_field_names);
        if (banks && !s->banks)
            s->banks = hw_arena_alloc_array(r->a, n, sizeof *s->banks);
        for (size_t b = 0; b < json_array_size(banks) && b < HW_LANES_MAX; b++)
            s->banks[d][b] = (uint64_t)json_integer_value(json_array_get(banks, b));
    }
    if (s->traffic < 0)
        s->field = NULL;
}

/* The place and what it was inlined into. Chains end: each link is counted. */
static void read_place(reader *r, const json_t *places, uint32_t index, hw_report_site *s)
{
    const json_t *o = json_array_get(places, index);
    s->ptx_line = small(r, o, "ptx_line");
    s->text = text(r, o, "text");
    s->place = (hw_report_place){ text(r, o, "file"), text(r, o, "function"), small(r, o, "line") };
    hw_report_place chain[16];
    uint32_t n = 0;
    for (uint32_t at = small(r, o, "inlined_at"); at && n < HW_COUNTOF(chain);) {
        const json_t *outer = json_array_get(places, at);
        chain[n++] = (hw_report_place){ text(r, outer, "file"), text(r, outer, "function"),
                                        small(r, outer, "line") };
        at = small(r, outer, "inlined_at");
    }
    s->n_inlined = n;
    s->inlined = HW_NEW_N(r->a, hw_report_place, n);
    memcpy(s->inlined, chain, n * sizeof *chain);
}

typedef HW_VEC(hw_report_site) site_list;

/* An instruction with several accesses (a copy, a generic load) becomes several sites, of which the
 * first carries the executions. */
static void read_site(reader *r, const json_t *o, const json_t *places, site_list *out)
{
    hw_report_site s = { .traffic = -1 };
    const json_t *access = json_object_get(o, "access");
    s.op = text(r, o, "class");
    s.op = s.op ? s.op : "?";
    s.executed = number(r, o, "executed");
    s.threads = number(r, o, "threads");
    s.on = number(r, o, "on");
    s.branches = number(r, o, "branches");
    s.divergent = number(r, o, "divergent");
    read_place(r, places, small(r, o, "place"), &s);
    if (json_array_size(access) == 0)
        hw_vec_push(r->a, out, s);
    for (size_t i = 0; i < json_array_size(access); i++) {
        s.banks = NULL;
        read_access(r, json_array_get(access, i), &s);
        hw_vec_push(r->a, out, s);
        s.executed = s.threads = s.on = s.branches = s.divergent = 0;
    }
}

static void read_sites(reader *r, const json_t *o, hw_report_kernel *k)
{
    const json_t *places = json_object_get(o, "places"), *sites = json_object_get(o, "sites");
    site_list list = { 0 };
    for (size_t i = 0; i < json_array_size(sites); i++)
        read_site(r, json_array_get(sites, i), places, &list);
    k->sites = list.ptr;
    k->n_sites = (uint32_t)list.len;
}

/* ---- the whole ---- */

static void read_registers(reader *r, const json_t *list, hw_report_kernel *k)
{
    k->registers = HW_NEW_N(r->a, hw_report_registers, r->run->n_devices);
    for (uint32_t d = 0; d < r->run->n_devices; d++) {
        const json_t *o = json_array_get(list, d);
        const char *source = json_string_value(json_object_get(o, "source"));
        hw_report_registers *g = &k->registers[d];
        g->count = small(r, o, "count");
        g->spill_bytes = small(r, o, "spill");
        g->arch = small(r, o, "arch");
        for (int s = HW_MODEL_ESTIMATE; source && s <= HW_MODEL_IMAGE; s++)
            if (strcmp(source, hw_model_source_names[s]) == 0)
                g->source = (hw_model_source)s;
    }
}

static void read_kernel(reader *r, const json_t *o, uint32_t index, hw_report_kernel *k)
{
    k->index = index;
    k->name = text(r, o, "name");
    if (!k->name) {
        wrong(r, "a kernel has no name");
        return;
    }
    k->short_name = hw_model_short_name(r->a, k->name);
    k->process = text(r, o, "process");
    triple(r, o, "grid", k->grid);
    triple(r, o, "block", k->block);
    k->mixed = is_true(o, "mixed");
    k->first_id = number(r, o, "first_id");
    k->launches = number(r, o, "launches");
    k->launches_ungrouped = number(r, o, "launches_ungrouped");
    k->failed = number(r, o, "failed");
    k->failure = text(r, o, "failure");
    read_registers(r, json_object_get(o, "registers"), k);
    k->shared_static = number(r, o, "shared_static");
    k->shared_dynamic = number(r, o, "shared_dynamic");
    k->local_bytes = number(r, o, "local");
    read_sums(r, o, &k->sums);
    read_groups(r, json_object_get(o, "groups"), k);
    read_sites(r, o, k);
}

static hw_status read_devices(reader *r, const json_t *list)
{
    size_t n = json_array_size(list);
    if (n == 0 || n > HW_MODEL_DEVICES_MAX)
        return hw_fail(r->d, HW_E_CORRUPT, "%s: %zu devices", r->path, n);
    r->run->n_devices = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const char *name = text(r, json_array_get(list, i), "load");
        if (!name)
            return hw_fail(r->d, HW_E_CORRUPT, "%s: a device has no name", r->path);
        HW_TRY(hw_device_load(r->a, name, &r->run->devices[i], r->d));
    }
    return HW_OK;
}

static hw_status read_whole(reader *r, const json_t *o)
{
    const json_t *run = json_object_get(o, "run"), *kernels = json_object_get(o, "kernels");
    const json_t *schema = json_object_get(o, "halfwarp_profile");
    if (!json_is_integer(schema))
        return hw_fail(r->d, HW_E_CORRUPT, "%s is no profile of halfwarp", r->path);
    if (json_integer_value(schema) != HW_MODEL_SCHEMA)
        return hw_fail(r->d, HW_E_UNSUPPORTED,
                       "%s: version %lld of the format; this program reads %d", r->path,
                       (long long)json_integer_value(schema), HW_MODEL_SCHEMA);
    r->run->path = hw_arena_cstr(r->a, hw_str_of(r->path));
    r->run->program = text(r, run, "program");
    r->run->version = text(r, run, "version");
    r->run->level = text(r, run, "level");
    r->run->complete = is_true(run, "complete");
    r->run->torn = is_true(run, "torn");
    const json_t *lost = json_object_get(run, "under_way");
    r->run->under_way = text(r, lost, "kernel");
    r->run->blocks_here = number(r, lost, "blocks");
    r->run->blocks_all = number(r, lost, "of");
    HW_TRY(read_devices(r, json_object_get(o, "devices")));
    r->run->n_kernels = (uint32_t)json_array_size(kernels);
    r->run->kernels = HW_NEW_N(r->a, hw_report_kernel, r->run->n_kernels);
    for (uint32_t i = 0; i < r->run->n_kernels && !r->bad; i++)
        read_kernel(r, json_array_get(kernels, i), i, &r->run->kernels[i]);
    return r->bad ? HW_E_CORRUPT : HW_OK;
}

hw_status hw_report_load(hw_arena *a, const char *path, hw_report_run **out, hw_diag *d)
{
    hw_str bytes;
    json_error_t e;
    HW_TRY(hw_read_file(a, path, &bytes, d));
    json_t *o = json_loadb(bytes.ptr, bytes.len, JSON_REJECT_DUPLICATES, &e);
    if (!o)
        return hw_fail(d, HW_E_CORRUPT, "%s:%d: %s", path, e.line, e.text);
    reader r = { .a = a, .d = d, .path = path, .run = HW_NEW(a, hw_report_run) };
    hw_status s = read_whole(&r, o);
    json_decref(o);
    *out = r.run;
    return s;
}

/* ---- which kernels ---- */

static hw_status compile(const char *pattern, regex_t *out, hw_diag *d)
{
    char why[128];
    int error = regcomp(out, pattern, REG_EXTENDED | REG_NOSUB);
    if (!error)
        return HW_OK;
    regerror(error, out, why, sizeof why);
    return hw_fail(d, HW_E_INVALID, "'%s' is not a regular expression: %s", pattern, why);
}

hw_status hw_report_regex(const char *pattern, hw_diag *d)
{
    regex_t regex;
    HW_TRY(compile(pattern, &regex, d));
    regfree(&regex);
    return HW_OK;
}

hw_status hw_report_keep(hw_report_run *run, const char *pattern, hw_diag *d)
{
    regex_t regex;
    HW_TRY(compile(pattern, &regex, d));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < run->n_kernels; i++) {
        const hw_report_kernel *k = &run->kernels[i];
        if (regexec(&regex, k->name, 0, NULL, 0) == 0 ||
            regexec(&regex, k->short_name, 0, NULL, 0) == 0)
            run->kernels[kept++] = *k;
    }
    run->n_kernels = kept;
    regfree(&regex);
    return HW_OK;
}

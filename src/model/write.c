/* SPDX-License-Identifier: Apache-2.0
 *
 * The profile file (docs/profile.md). Zeros are left out. */
#include "model.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void put(json_t *o, const char *key, uint64_t value)
{
    if (value)
        json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void put_text(json_t *o, const char *key, const char *text)
{
    json_t *value = text ? json_string(text) : NULL; /* NULL as well if it is not UTF-8 */
    if (value)
        json_object_set_new(o, key, value);
}

static json_t *numbers(const uint64_t *v, int n, const hw_count_name *names)
{
    json_t *o = json_object();
    for (int i = 0; i < n; i++)
        put(o, names[i].name, v[i]);
    return o;
}

static json_t *triple(const uint32_t v[3])
{
    json_t *a = json_array();
    for (int i = 0; i < 3; i++)
        json_array_append_new(a, json_integer((json_int_t)v[i]));
    return a;
}

/* ---- sums ---- */

static json_t *device_sums(const hw_model *m, const sums *s, uint32_t d)
{
    json_t *o = json_object(), *traffic = json_object();
    for (int t = 0; t < HW_TRAFFICS; t++) {
        json_t *fields = numbers(s->traffic[d][t], HW_FIELDS, hw_field_names);
        if (json_object_size(fields))
            json_object_set(traffic, hw_traffic_names[t].name, fields);
        json_decref(fields);
    }
    json_object_set_new(o, "traffic", traffic);
    if (s->cache && m->level == HW_MODEL_CACHES)
        json_object_set_new(o, "cache", numbers(s->cache[d], HW_CACHES, hw_cache_names));
    return o;
}

static void put_sums(const hw_model *m, json_t *o, const sums *s)
{
    json_t *devices = json_array();
    for (uint32_t d = 0; d < m->n; d++)
        json_array_append_new(devices, device_sums(m, s, d));
    json_object_set_new(o, "totals", numbers(s->total, HW_TOTALS, hw_total_names));
    json_object_set_new(o, "devices", devices);
}

typedef struct numbered {
    const group *g;
    id_list ids;
} numbered;

static int by_first(const void *a, const void *b)
{
    uint64_t x = ((const numbered *)a)->ids.ptr[0], y = ((const numbered *)b)->ids.ptr[0];
    return x < y ? -1 : x > y;
}

/* In the order of their first launches, whichever ended first. */
static numbered *in_turn(hw_arena *a, const numbering *n, const entry *e)
{
    numbered *all = HW_NEW_N(a, numbered, e->groups.len + 1);
    for (size_t i = 0; i < e->groups.len; i++)
        all[i] = (numbered){ e->groups.ptr[i], hw_model_ids(a, n, e->groups.ptr[i]) };
    qsort(all, e->groups.len, sizeof *all, by_first);
    return all;
}

static json_t *groups(const hw_model *m, const numbering *n, const entry *e)
{
    json_t *all = json_array();
    hw_arena *a = hw_arena_new();
    const numbered *turn = in_turn(a, n, e);
    for (size_t i = 0; i < e->groups.len; i++) {
        const group *g = turn[i].g;
        json_t *o = json_object(), *ranges = json_array();
        for (size_t k = 0; k < turn[i].ids.len; k++)
            json_array_append_new(ranges, json_integer((json_int_t)turn[i].ids.ptr[k]));
        put(o, "launches", g->launches);
        put(o, "context", g->context);
        put(o, "stream", g->stream);
        json_object_set_new(o, "ids", ranges);
        if (e->groups.len > 1 || e->ungrouped) /* one group: the kernel's sums say it */
            put_sums(m, o, &g->sums);
        json_array_append_new(all, o);
    }
    hw_arena_free(a);
    return all;
}

/* ---- sites ---- */

static json_t *banks_of(const slot *s)
{
    int n = HW_LANES_MAX;
    while (n > 0 && !s->bank[n - 1])
        n--;
    json_t *a = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(a, json_integer((json_int_t)s->bank[i]));
    return a;
}

static json_t *access_of(const hw_model *m, const slot *slots, int traffic, const hw_site *s,
                         bool shared)
{
    json_t *o = json_object(), *devices = json_array();
    put_text(o, "traffic", hw_traffic_names[traffic].name);
    put(o, "width", s->bytes);
    if (slots[0].strided == STRIDE_ONE)
        json_object_set_new(o, "stride", json_integer(slots[0].stride));
    for (uint32_t d = 0; d < m->n; d++) {
        json_t *f = numbers(slots[d].field, HW_FIELDS, hw_field_names);
        if (shared)
            json_object_set_new(f, "banks", banks_of(&slots[d]));
        json_array_append_new(devices, f);
    }
    json_object_set_new(o, "devices", devices);
    return o;
}

static json_t *accesses_of(const hw_model *m, const entry *e, uint32_t inst)
{
    json_t *all = json_array();
    for (uint32_t s = e->table->insts[inst].site;
         s < e->table->n_sites && e->table->sites[s].inst == inst; s++)
        for (int space = 0; space < HW_SITE_SPACES; space++) {
            const slot *slots = e->cells[(size_t)s * HW_SITE_SPACES + (size_t)space];
            const hw_site *site = &e->table->sites[s];
            int traffic = hw_model_traffic((hw_site_space)space, site);
            if (slots && traffic >= 0)
                json_array_append_new(all,
                                      access_of(m, slots, traffic, site, space == HW_SITE_SHARED));
        }
    return all;
}

static void put_counts(json_t *o, const place_count *p, bool branch)
{
    put(o, "executed", p->warps);
    put(o, "threads", p->lanes);
    put(o, "on", p->on);
    if (branch)
        put(o, "branches", p->warps);
    put(o, "divergent", p->divergent);
}

static json_t *sites(const hw_model *m, const entry *e)
{
    json_t *all = json_array();
    for (uint32_t i = 0; e->table && i < e->table->n_insts; i++) {
        const hw_count_inst *inst = &e->table->insts[i];
        if (!e->insts[i].warps)
            continue;
        json_t *o = json_object();
        put_text(o, "class", hw_inst_class_of(inst->cls)->name);
        put(o, "place", inst->place);
        put_counts(o, &e->insts[i], inst->branch != HW_NO_INDEX);
        if (inst->site != HW_NO_INDEX)
            json_object_set_new(o, "access", accesses_of(m, e, i));
        json_array_append_new(all, o);
    }
    return all;
}

static json_t *places(const entry *e)
{
    json_t *all = json_array();
    for (uint32_t i = 0; e->table && i < e->table->n_places; i++) {
        const hw_count_place *p = &e->table->places[i];
        json_t *o = json_object();
        put_text(o, "file", p->file);
        put(o, "line", p->line);
        put(o, "column", p->column);
        put(o, "ptx_line", p->ptx_line);
        put(o, "inlined_at", p->inlined_at);
        put_text(o, "function", p->function);
        put_text(o, "text", e->text ? e->text[i] : NULL);
        json_array_append_new(all, o);
    }
    return all;
}

/* ---- the file ---- */

static int by_id(const void *a, const void *b)
{
    const entry *x = *(const entry *const *)a, *y = *(const entry *const *)b;
    return x->first_id < y->first_id ? -1 : x->first_id > y->first_id;
}

/* In the order in which the program asked for them first, whichever ended first. */
static const entry **in_order(const hw_model *m, size_t *n)
{
    *n = 0;
    for (const entry *e = m->first; e; e = e->next)
        ++*n;
    const entry **all = calloc(*n + 1, sizeof *all), **at = all;
    if (!all)
        hw_oom(*n * sizeof *all);
    for (const entry *e = m->first; e; e = e->next)
        *at++ = e;
    qsort(all, *n, sizeof *all, by_id);
    return all;
}

static json_t *registers_of(const hw_model *m, const entry *e)
{
    json_t *all = json_array();
    for (uint32_t d = 0; d < m->n; d++) {
        const registers *r = &e->registers[d];
        json_t *o = json_object();
        put(o, "count", r->count);
        put(o, "spill", r->spill_bytes);
        put_text(o, "source", hw_model_source_names[r->source]);
        put(o, "arch", r->arch);
        json_array_append_new(all, o);
    }
    return all;
}

static json_t *kernel(const hw_model *m, const numbering *n, const entry *e)
{
    json_t *o = json_object();
    const hw_model_launch *i = &e->info;
    put_text(o, "name", i->kernel);
    json_object_set_new(o, "grid", triple(i->grid));
    json_object_set_new(o, "block", triple(i->block));
    if (e->mixed)
        json_object_set_new(o, "mixed", json_true());
    json_object_set_new(o, "first_id", json_integer((json_int_t)hw_model_number(n, e->first_id)));
    put(o, "launches", e->launches);
    put(o, "launches_ungrouped", e->ungrouped);
    put(o, "failed", e->failed);
    put_text(o, "failure", e->failed ? hw_status_text(e->failure) : NULL);
    json_object_set_new(o, "registers", registers_of(m, e));
    put(o, "shared_static", i->static_shared_bytes);
    put(o, "shared_dynamic", i->dynamic_shared_bytes);
    put(o, "local", i->local_bytes);
    put_sums(m, o, &e->sums);
    json_object_set_new(o, "groups", groups(m, n, e));
    json_object_set_new(o, "places", places(e));
    json_object_set_new(o, "sites", sites(m, e));
    return o;
}

static json_t *devices(const hw_model *m)
{
    json_t *all = json_array();
    for (uint32_t d = 0; d < m->n; d++)
        json_array_append_new(
            all, json_pack("{s:s, s:s}", "name", m->names[d].name, "load", m->names[d].load));
    return all;
}

static json_t *whole(const hw_model *m, bool complete)
{
    static const char *const levels[] = { "count", "lines", "caches" };
    json_t *o = json_object(), *run = json_object(), *kernels = json_array();
    json_object_set_new(o, "halfwarp_profile", json_integer(HW_MODEL_SCHEMA));
    put_text(run, "program", m->program);
    put_text(run, "version", HW_VERSION);
    put_text(run, "level", levels[m->level]);
    json_object_set_new(run, "complete", json_boolean(complete));
    if (m->torn)
        json_object_set_new(run, "torn", json_true());
    put(run, "launches", m->launches);
    if (m->lost.kernel[0])
        json_object_set_new(run, "under_way",
                            json_pack("{s:s, s:I, s:I}", "kernel", m->lost.kernel, "blocks",
                                      (json_int_t)m->lost.blocks_here, "of",
                                      (json_int_t)m->lost.blocks_all));
    json_object_set_new(o, "run", run);
    json_object_set_new(o, "devices", devices(m));
    size_t n;
    hw_arena *a = hw_arena_new();
    const numbering numbers = hw_model_numbering(a, m);
    const entry **all = in_order(m, &n);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(kernels, kernel(m, &numbers, all[i]));
    free(all);
    hw_arena_free(a);
    json_object_set_new(o, "kernels", kernels);
    return o;
}

static hw_status cannot(const char *path, hw_diag *d)
{
    return hw_fail(d, HW_E_IO, "cannot write '%s': %s", path, strerror(errno));
}

static hw_status dump(const json_t *o, const char *path, const char *temporary, hw_diag *d)
{
    FILE *f = fopen(temporary, "w");
    if (!f)
        return cannot(path, d);
    bool bad = json_dumpf(o, f, JSON_COMPACT) != 0;
    bad |= fputc('\n', f) == EOF;
    bad |= fclose(f) != 0;
    if (!bad && rename(temporary, path) == 0)
        return HW_OK;
    hw_status s = cannot(path, d);
    unlink(temporary);
    return s;
}

hw_status hw_model_write(hw_model *m, const char *path, bool complete, hw_diag *d)
{
    hw_arena *a = hw_arena_new();
    const char *temporary = hw_arena_printf(a, "%s.%ld.part", path, (long)getpid());
    pthread_mutex_lock(&m->lock);
    json_t *o = whole(m, complete);
    hw_status s = dump(o, path, temporary, d);
    json_decref(o);
    pthread_mutex_unlock(&m->lock);
    hw_arena_free(a);
    return s;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The listener: a launch's workers hear accesses, and their sums are merged at its end. */
#include "model.h"

#include <stdlib.h>

static void *begin(void *ctx, const hw_counters *c, uint32_t workers)
{
    hw_model *m = ctx;
    hw_arena *a = hw_arena_new();
    launch *l = HW_NEW(a, launch);
    l->arena = a;
    l->model = m;
    l->thread = pthread_self();
    l->bank_width = m->bank_width;
    l->table = c->table;
    l->workers = workers;
    l->worker = HW_NEW_N(a, worker, workers);
    l->sums = hw_model_sums_new(a, m);
    l->insts = HW_NEW_N(a, place_count, c->table->n_insts);
    l->cells = HW_NEW_N(a, slot *, (size_t)c->table->n_sites * HW_SITE_SPACES);
    memcpy(l->grid, c->grid, sizeof l->grid);
    memcpy(l->block, c->block, sizeof l->block);
    for (uint32_t i = 0; i < workers; i++)
        l->worker[i] = (worker){ .launch = l, .index = i };
    if (m->level == HW_MODEL_CACHES)
        l->cache = hw_model_cache_new(m, c, workers);
    pthread_mutex_lock(&m->lock);
    l->next = m->under_way;
    m->under_way = l;
    pthread_mutex_unlock(&m->lock);
    hw_model_share_begin(m, c->kernel, (uint64_t)c->grid[0] * c->grid[1] * c->grid[2]);
    return l;
}

static void *start_worker(void *state, uint32_t index)
{
    launch *l = state;
    worker *w = &l->worker[index];
    w->arena = hw_arena_new();
    w->cells = HW_NEW_N(w->arena, slot *, (size_t)l->table->n_sites * HW_SITE_SPACES);
    return w;
}

/* ---- accesses ---- */

/* Accesses that are gone through side by side. */
typedef struct side {
    many_keys keys;
    slot *cell[MANY];
    uint32_t n;
    unsigned wants; /* MANY_* of any of them */
} side;

static slot *cell_of(worker *w, const hw_access_told *t)
{
    const hw_model *m = w->launch->model;
    slot **cell = &w->cells[(size_t)t->site * HW_SITE_SPACES + t->space];
    if (*cell)
        return *cell;
    *cell = HW_NEW_N(w->arena, slot, m->n);
    unsigned wants;
    if (hw_model_gist_does(m, w->launch->bank_width, t->space, &w->launch->table->sites[t->site],
                           &wants)) {
        (*cell)->gist = HW_NEW(w->arena, gist);
        (*cell)->gist->wants = wants;
    }
    return *cell;
}

enum { ADDITIONS = 1 << 20 };

static void finish(side *s, bool banks)
{
    many r;
    uint32_t left = (1u << s->n) - 1;
    if (!s->n)
        return;
    hw_model_many(&s->keys, s->wants, &r);
    while (left) {
        slot *cell = s->cell[__builtin_ctz(left)];
        uint32_t mine = 0;
        for (uint32_t i = 0; i < s->n; i++)
            mine |= (uint32_t)(s->cell[i] == cell) << i;
        hw_model_many_add(&cell->gist->recent, mine, &s->keys, &r, banks);
        if (++cell->gist->recent.additions == ADDITIONS)
            hw_model_gist_gather(cell->gist);
        left &= ~mine;
    }
    s->n = 0;
    s->wants = 0;
}

static void hear_one(worker *w, const hw_access_told *t, slot *cell, bool counted)
{
    launch *l = w->launch;
    const hw_site *site = &l->table->sites[t->site];
    uint64_t moved[HW_WARP_LANES];
    hw_access_told here = *t;
    for (int i = 0; i < HW_WARP_LANES && t->add; i++)
        moved[i] = t->address[i] + (uint64_t)t->add;
    here.address = t->add ? moved : t->address;
    if (!counted)
        hw_model_rules(l->model, l->bank_width, &here, site, cell);
    if (l->cache)
        hw_model_cache_access(l->cache, w->index, &here, site);
}

static void hear(void *state, const hw_access_told *told, uint32_t n)
{
    worker *w = state;
    side sides[2]; /* sectors, banks */
    sides[0].n = sides[1].n = 0;
    sides[0].wants = sides[1].wants = 0;
    for (uint32_t i = 0; i < n; i++) {
        const hw_access_told *t = &told[i];
        const hw_site *site = &w->launch->table->sites[t->site];
        if (!t->address) {
            if (w->launch->cache)
                hw_model_cache_access(w->launch->cache, w->index, t, site);
            continue;
        }
        slot *cell = cell_of(w, t);
        if (t->space >= HW_SITE_TEXTURE) { /* sectors are told */
            hw_model_texels(w->launch->model, t, cell);
            if (w->launch->cache)
                hw_model_cache_access(w->launch->cache, w->index, t, site);
            continue;
        }
        side *s = &sides[t->space == HW_SITE_SHARED];
        bool aside =
            cell->gist && t->times == 1 && hw_model_many_set(&s->keys, s->n, t, site->bytes);
        hw_model_see_stride(t, cell);
        if (!aside || w->launch->cache)
            hear_one(w, t, cell, aside);
        if (!aside)
            continue;
        s->cell[s->n] = cell;
        s->wants |= cell->gist->wants;
        if (++s->n == MANY)
            finish(s, s == &sides[1]);
    }
    finish(&sides[0], false);
    finish(&sides[1], true);
}

static void block_ended(void *state, uint64_t index)
{
    const worker *w = state;
    if (w->launch->cache)
        hw_model_cache_block(w->launch->cache, w->index, index);
    if (w->launch->model->share)
        hw_model_share_block(w->launch->model);
}

/* ---- the end ---- */

static void add_stride(slot *into, const slot *from)
{
    if (from->strided == STRIDE_NONE)
        return;
    bool same = into->strided == STRIDE_NONE || into->stride == from->stride;
    bool one = from->strided == STRIDE_ONE && into->strided != STRIDE_MIXED && same;
    into->strided = one ? STRIDE_ONE : STRIDE_MIXED;
    into->stride = from->stride;
}

void hw_model_cells_add(hw_arena *a, const hw_model *m, const hw_count_table *table, slot **into,
                        slot *const *from)
{
    for (size_t i = 0; i < (size_t)table->n_sites * HW_SITE_SPACES; i++) {
        if (!from[i])
            continue;
        if (!into[i])
            into[i] = HW_NEW_N(a, slot, m->n);
        add_stride(into[i], from[i]);
        for (uint32_t d = 0; d < m->n; d++) {
            for (int f = 0; f < HW_FIELDS; f++)
                into[i][d].field[f] += from[i][d].field[f];
            for (int b = 0; b < HW_LANES_MAX; b++)
                into[i][d].bank[b] += from[i][d].bank[b];
        }
    }
}

/* What the sites counted, by kind of access. */
static void add_traffic(launch *l)
{
    for (size_t i = 0; i < (size_t)l->table->n_sites * HW_SITE_SPACES; i++) {
        if (!l->cells[i])
            continue;
        int traffic = hw_model_traffic((hw_site_space)(i % HW_SITE_SPACES),
                                       &l->table->sites[i / HW_SITE_SPACES]);
        for (uint32_t d = 0; traffic >= 0 && d < l->model->n; d++)
            for (int f = 0; f < HW_FIELDS; f++)
                l->sums.traffic[d][traffic][f] += l->cells[i][d].field[f];
    }
}

static void settle(const launch *l, const worker *w)
{
    for (size_t i = 0; i < (size_t)l->table->n_sites * HW_SITE_SPACES; i++)
        if (w->cells[i])
            hw_model_gist_settle(l->model, l->bank_width, (hw_site_space)(i % HW_SITE_SPACES),
                                 &l->table->sites[i / HW_SITE_SPACES], w->cells[i]);
}

static void end(void *state, const hw_counters *c)
{
    launch *l = state;
    for (uint32_t i = 0; i < l->workers; i++) {
        if (l->worker[i].cells)
            settle(l, &l->worker[i]);
        if (l->worker[i].cells)
            hw_model_cells_add(l->arena, l->model, l->table, l->cells, l->worker[i].cells);
        hw_arena_free(l->worker[i].arena);
        l->worker[i] = (worker){ .launch = l };
    }
    hw_model_count(l, c);
    add_traffic(l);
    if (l->cache)
        hw_model_cache_end(l->cache, &l->sums);
    l->cache = NULL;
    l->dynamic = c->dynamic_shared_bytes;
    l->fixed = c->static_shared_bytes;
    l->local = c->local_bytes;
    l->registers = c->registers;
    l->status = c->status;
    l->ended = true;
    hw_model_share_end(l->model);
}

void hw_model_listen(hw_model *m)
{
    m->listener = (hw_listener){
        .ctx = m,
        .wants = m->level == HW_MODEL_CACHES ? HW_LISTEN_COUNT | HW_LISTEN_ACCESS : HW_LISTEN_COUNT,
        .begin = begin,
        .worker = start_worker,
        .access = hear,
        .block = m->share || m->level == HW_MODEL_CACHES ? block_ended : NULL,
        .end = end,
    };
}

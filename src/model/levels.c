/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches, simulated by the sizes of the device file. All start empty at each launch, and the
 * first-level caches at each block, so that what a block finds does not depend on which worker runs
 * it; second-level traffic is gone through in the order of blocks. A device mixes blocks: its hit
 * rates differ. Stores go through the first level; the second holds them until it needs room or the
 * launch ends. An access looks up each of its lines once, in the order of its lanes. */
#include "cache.h"

#include <stdlib.h>

/* ---- what an access touches ---- */

typedef struct step {
    int64_t at;    /* chunk; constant memory: byte address of a word */
    uint32_t mask; /* of the chunk's sectors */
} step;

/* A lane touches two chunks at most: it is of one request, and 16 bytes. */
enum { STEPS_MOST = 2 * HW_WARP_LANES, SLOTS = 2 * STEPS_MOST };

typedef struct footprint {
    uint32_t n;
    step step[STEPS_MOST];
} footprint;

/* The same for an access whose pattern is known, from the chunk its base is in. */
typedef struct print {
    const uint64_t *pattern; /* the counters that say it */
    uint32_t n;
    step step[];
} print;

typedef struct builder {
    footprint *to;
    uint8_t slot[SLOTS]; /* by chunk: the step's index + 1 */
} builder;

static void new_request(builder *b)
{
    memset(b->slot, 0, sizeof b->slot);
}

static void add_sector(builder *b, uint64_t sector)
{
    int64_t chunk = (int64_t)(sector / (CHUNK / SECTOR));
    uint32_t bit = 1u << sector % (CHUNK / SECTOR), i = (uint32_t)chunk % SLOTS;
    while (b->slot[i] && b->to->step[b->slot[i] - 1].at != chunk)
        i = (i + 1) % SLOTS;
    if (b->slot[i]) {
        b->to->step[b->slot[i] - 1].mask |= bit;
    } else if (b->to->n < STEPS_MOST) {
        b->to->step[b->to->n++] = (step){ chunk, bit };
        b->slot[i] = (uint8_t)b->to->n;
    }
}

/* By the transactions of the device's rule. */
static void by_rule(const hw_device *d, const hw_access *a, builder *b)
{
    hw_transaction list[HW_TRANSACTIONS_MAX];
    hw_coalesce_result r;
    uint32_t part = 0;
    hw_coalesce_access(d, a, &r, list);
    for (uint32_t i = 0; i < r.transactions && i < HW_TRANSACTIONS_MAX; i++) {
        if (list[i].part != part)
            new_request(b);
        part = list[i].part;
        for (uint32_t at = 0; at < list[i].bytes; at += SECTOR)
            add_sector(b, (list[i].address + at) / SECTOR);
    }
}

static void find_steps(const hw_device *d, const hw_access *a, footprint *f)
{
    builder b;
    b.to = f;
    f->n = 0;
    new_request(&b);
    if (d->global.rule != HW_SECTORS32_WARP || d->global.sector != SECTOR) {
        by_rule(d, a, &b);
        return;
    }
    for (uint64_t lanes = a->mask; lanes; lanes &= lanes - 1) {
        uint64_t from = a->address[__builtin_ctzll(lanes)], to = from + a->width - 1;
        for (uint64_t s = from / SECTOR; s <= to / SECTOR; s++)
            add_sector(&b, s);
    }
}

static void find_words(const hw_access *a, footprint *f)
{
    f->n = 0;
    for (uint64_t lanes = a->mask; lanes; lanes &= lanes - 1) {
        int64_t word = (int64_t)(a->address[__builtin_ctzll(lanes)] / 4 * 4);
        uint32_t i = 0;
        while (i < f->n && f->step[i].at != word)
            i++;
        if (i == f->n)
            f->step[f->n++] = (step){ word, 0 };
    }
}

/* ---- first level: of a block, on a worker ---- */

typedef struct level1 {
    cache data, readonly, constant;
} level1;

typedef struct block_state {
    struct block_state *next;
    uint64_t block;
    level1 *levels; /* by device */
    tape *tapes;    /* by device */
} block_state;

typedef struct listener_state { /* of one worker */
    hw_arena *arena;
    block_state *current, *live, *idle; /* current: of live, or NULL */
    print **prints;                     /* [(site * 256 + class) * devices + device] */
    uint64_t counts[HW_MODEL_DEVICES_MAX][HW_CACHES];
} listener_state;

struct cache_sim {
    const hw_model *model;
    uint32_t workers, n_sites;
    uint64_t l1_bytes[HW_MODEL_DEVICES_MAX];
    listener_state *states;
    replay *replay;
};

/* On-chip memory that shared memory leaves to the L1. */
static uint64_t l1_bytes(const hw_device *d, const hw_counters *c)
{
    hw_occupancy_query q = hw_occupancy_query_new();
    hw_occupancy_result r;
    if (!d->caches.unified_bytes || d->vendor != HW_VENDOR_NVIDIA)
        return d->caches.l1_bytes;
    q.threads = c->block[0] * c->block[1] * c->block[2];
    q.registers = c->registers;
    q.shared_static = c->static_shared_bytes;
    q.shared_dynamic = q.shared_dynamic_max = c->dynamic_shared_bytes;
    q.shared_optin = true;
    hw_occupancy(d, &q, &r);
    return r.shared_config < d->caches.unified_bytes ? d->caches.unified_bytes - r.shared_config
                                                     : d->caches.l1_bytes;
}

cache_sim *hw_model_cache_new(const hw_model *m, const hw_counters *c, uint32_t workers)
{
    cache_sim *x = calloc(1, sizeof *x);
    if (x)
        x->states = calloc(workers, sizeof *x->states);
    if (!x || !x->states)
        hw_oom(workers * sizeof *x->states);
    x->model = m;
    x->workers = workers;
    x->n_sites = c->table->n_sites;
    x->replay = hw_replay_new(m);
    for (uint32_t d = 0; d < m->n; d++)
        x->l1_bytes[d] = l1_bytes(m->devices[d], c);
    return x;
}

static block_state *new_block(const cache_sim *x, listener_state *s)
{
    if (!s->arena)
        s->arena = hw_arena_new();
    block_state *b = HW_NEW(s->arena, block_state);
    b->levels = HW_NEW_N(s->arena, level1, x->model->n);
    b->tapes = HW_NEW_N(s->arena, tape, x->model->n);
    for (uint32_t d = 0; d < x->model->n; d++) {
        const struct hw_device_caches *k = &x->model->devices[d]->caches;
        level1 *l = &b->levels[d];
        hw_cache_init(&l->data, x->l1_bytes[d], k->l1_ways, k->l1_line, k->l1_sector);
        hw_cache_init(&l->readonly, k->readonly_bytes, 0, k->l1_line, SECTOR);
        hw_cache_init(&l->constant, k->constant_bytes, 4, k->constant_line ? k->constant_line : 64,
                      0);
    }
    return b;
}

/* The block's first level, empty when the worker comes to it. */
static block_state *find_block(const cache_sim *x, listener_state *s, uint64_t block)
{
    if (s->current && s->current->block == block)
        return s->current;
    block_state *b = s->live;
    while (b && b->block != block)
        b = b->next;
    if (!b) {
        b = s->idle ? s->idle : new_block(x, s);
        s->idle = b == s->idle ? b->next : s->idle;
        b->block = block;
        b->next = s->live;
        s->live = b;
        for (uint32_t d = 0; d < x->model->n; d++) {
            hw_cache_empty(&b->levels[d].data);
            hw_cache_empty(&b->levels[d].readonly);
            hw_cache_empty(&b->levels[d].constant);
        }
    }
    s->current = b;
    return b;
}

/* ---- an access ---- */

typedef struct asked { /* one device's view */
    level1 *level;
    tape *tape;
    uint64_t *count;
} asked;

static cache *first_cache(const hw_device *d, level1 *l, const hw_site *site, hw_site_space space)
{
    bool cached = space == HW_SITE_LOCAL ? d->caches.l1_caches_local : d->caches.l1_caches_global;
    if (site->kind != HW_SITE_LOAD)
        return NULL; /* stores and atomics go through */
    if (site->readonly && l->readonly.lines)
        return &l->readonly;
    return cached && !site->bypass_l1 && l->data.lines ? &l->data : NULL;
}

static void look_up(const asked *k, cache *c, const step *s, uint32_t n, int64_t from)
{
    uint64_t none = 0, asked_for = 0, missed = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t chunk = (uint64_t)(s[i].at + from);
        uint32_t missing = hw_cache_touch(c, chunk, s[i].mask, false, &none);
        asked_for += hw_sectors_in(hw_cache_widen(c, s[i].mask));
        missed += hw_sectors_in(missing);
        if (missing)
            hw_tape_add(k->tape, chunk, missing, false);
    }
    bool texture = c == &k->level->readonly;
    k->count[texture ? HW_CACHE_texture_sectors : HW_CACHE_l1_sectors] += asked_for;
    k->count[texture ? HW_CACHE_texture_hits : HW_CACHE_l1_hits] += asked_for - missed;
}

/* Constant lines are fetched whole; each distinct word is a request. */
static void look_up_words(const asked *k, const step *s, uint32_t n, int64_t from)
{
    cache *c = &k->level->constant;
    uint64_t none = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = (uint64_t)(s[i].at + from), chunk = at >> CHUNK_SHIFT;
        uint32_t mask = 1u << (at % CHUNK / SECTOR);
        uint32_t missing = c->lines ? hw_cache_touch(c, chunk, mask, false, &none) : mask;
        k->count[HW_CACHE_constant_lookups]++;
        k->count[HW_CACHE_constant_hits] += !missing;
        if (missing)
            hw_tape_add(k->tape, chunk, missing, false);
    }
}

static void take(const cache_sim *x, uint32_t d, listener_state *s, block_state *b,
                 const hw_access_told *t, const hw_site *site, const step *steps, uint32_t n,
                 uint64_t base)
{
    const asked k = { &b->levels[d], &b->tapes[d], s->counts[d] };
    if (t->space == HW_SITE_CONST) {
        look_up_words(&k, steps, n, (int64_t)base);
        return;
    }
    int64_t from = (int64_t)(base >> CHUNK_SHIFT);
    cache *c = first_cache(x->model->devices[d], k.level, site, t->space);
    if (c)
        look_up(&k, c, steps, n, from);
    for (uint32_t i = 0; !c && i < n; i++)
        hw_tape_add(k.tape, (uint64_t)(steps[i].at + from), steps[i].mask,
                    site->kind != HW_SITE_LOAD);
}

/* Sectors of a texture, through the texture cache, or the first level where that is both. Stores to
 * surfaces go through. */
static void touch_texels(const asked *k, const hw_access_told *t, bool load)
{
    uint64_t none = 0;
    cache *c = k->level->readonly.lines ? &k->level->readonly : &k->level->data;
    bool looks = load && c->lines && t->space != HW_SITE_BULK; /* bulk copies go past it */
    for (uint32_t left = t->lanes; left; left &= left - 1) {
        uint64_t at = t->address[__builtin_ctz(left)], chunk = at >> CHUNK_SHIFT;
        uint32_t missing = 1u << (at % CHUNK / SECTOR);
        if (looks) {
            missing = hw_cache_touch(c, chunk, missing, false, &none);
            k->count[HW_CACHE_texture_sectors]++;
            k->count[HW_CACHE_texture_hits] += !missing;
        }
        if (missing)
            hw_tape_add(k->tape, chunk, missing, !load);
    }
}

static void find_footprint(const hw_device *d, const hw_access_told *t, const hw_site *site,
                           const uint64_t *address, footprint *f)
{
    static const hw_access_kind kinds[] = { HW_LOAD, HW_STORE, HW_ATOMIC, HW_ATOMIC };
    const hw_access a = { .address = address,
                          .mask = t->lanes,
                          .lanes = HW_WARP_LANES,
                          .width = site->bytes < WIDTH_MOST ? site->bytes : WIDTH_MOST,
                          .kind = kinds[site->kind & 3],
                          .bypass_l1 = site->bypass_l1 };
    if (t->space == HW_SITE_CONST)
        find_words(&a, f);
    else
        find_steps(d, &a, f);
}

/* ---- patterns ---- */

static print *make_print(listener_state *s, const hw_device *d, const hw_access_told *t,
                         const hw_site *site)
{
    static const uint64_t ORIGIN = UINT64_C(1) << 44;
    uint64_t address[HW_WARP_LANES];
    footprint f;
    uint64_t base = ORIGIN + t->base % HW_ACCESS_PERIOD;
    hw_site_distances(site, t->pattern, address);
    for (int i = 0; i < HW_WARP_LANES; i++)
        address[i] += base;
    find_footprint(d, t, site, address, &f);
    print *p = hw_arena_alloc(s->arena, sizeof *p + f.n * sizeof *f.step);
    p->pattern = t->pattern;
    p->n = f.n;
    memcpy(p->step, f.step, f.n * sizeof *f.step);
    for (uint32_t i = 0; i < f.n; i++)
        p->step[i].at -= (int64_t)(t->space == HW_SITE_CONST ? ORIGIN : ORIGIN >> CHUNK_SHIFT);
    return p;
}

static void touch_pattern(cache_sim *x, listener_state *s, block_state *b, const hw_access_told *t,
                          const hw_site *site)
{
    uint32_t n = x->model->n, low = t->base % HW_ACCESS_PERIOD;
    if (!s->prints)
        s->prints = calloc((size_t)x->n_sites * HW_ACCESS_PERIOD * n, sizeof *s->prints);
    if (!s->prints)
        hw_oom((size_t)x->n_sites * HW_ACCESS_PERIOD * n * sizeof *s->prints);
    print **at = &s->prints[((size_t)t->site * HW_ACCESS_PERIOD + low) * n];
    for (uint32_t d = 0; d < n; d++) {
        if (!at[d] || at[d]->pattern != t->pattern)
            at[d] = make_print(s, x->model->devices[d], t, site);
        take(x, d, s, b, t, site, at[d]->step, at[d]->n, t->base - low);
    }
}

void hw_model_cache_access(cache_sim *x, uint32_t index, const hw_access_told *t,
                           const hw_site *site)
{
    listener_state *s = &x->states[index];
    footprint f;
    if (t->space == HW_SITE_SHARED || !t->real || !t->lanes)
        return;
    block_state *b = find_block(x, s, t->thread_block);
    bool texels = t->space >= HW_SITE_TEXTURE;
    for (uint32_t d = 0; texels && d < x->model->n; d++) {
        const asked k = { &b->levels[d], &b->tapes[d], s->counts[d] };
        touch_texels(&k, t, site->kind == HW_SITE_LOAD);
    }
    if (!t->address)
        touch_pattern(x, s, b, t, site);
    for (uint32_t d = 0; t->address && !texels && d < x->model->n; d++) {
        find_footprint(x->model->devices[d], t, site, t->address, &f);
        take(x, d, s, b, t, site, f.step, f.n, 0);
    }
    bool is_long = false;
    for (uint32_t d = 0; d < x->model->n; d++)
        is_long |= b->tapes[d].n >= TAPE_LONG;
    if (is_long)
        hw_replay_long(x->replay, b->block, b->tapes);
}

/* ---- the end ---- */

void hw_model_cache_block(cache_sim *x, uint32_t index, uint64_t block)
{
    listener_state *s = &x->states[index];
    block_state *b = find_block(x, s, block), **at = &s->live;
    hw_replay_block(x->replay, block, b->tapes);
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    b->next = s->idle;
    s->idle = b;
    s->current = NULL;
}

static void free_blocks(const cache_sim *x, block_state *b)
{
    for (; b; b = b->next)
        for (uint32_t d = 0; d < x->model->n; d++) {
            hw_cache_free(&b->levels[d].data);
            hw_cache_free(&b->levels[d].readonly);
            hw_cache_free(&b->levels[d].constant);
            free(b->tapes[d].entry);
        }
}

void hw_model_cache_end(cache_sim *x, sums *into)
{
    for (uint32_t w = 0; w < x->workers; w++)
        while (x->states[w].live) /* did not end */
            hw_model_cache_block(x, w, x->states[w].live->block);
    for (uint32_t d = 0; d < x->model->n; d++)
        for (uint32_t w = 0; w < x->workers; w++)
            for (int i = 0; i < HW_CACHES; i++)
                into->cache[d][i] += x->states[w].counts[d][i];
    hw_replay_end(x->replay, into->cache);
    for (uint32_t w = 0; w < x->workers; w++) {
        free_blocks(x, x->states[w].idle);
        free(x->states[w].prints);
        hw_arena_free(x->states[w].arena);
    }
    free(x->states);
    free(x);
}

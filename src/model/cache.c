/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches, simulated by the sizes of the device file, least recently used out first. All start empty
 * at each launch, and the first-level caches at each block, so that what a block finds does not
 * depend on which worker runs it; second-level traffic is gone through at the launch's end in the
 * order of blocks. A device mixes blocks: its hit rates differ. Stores go through the first level;
 * the second holds them until it needs room or the launch ends. */
#include "model.h"

#include <stdlib.h>

/* ---- one cache ---- */

typedef struct line {
    uint64_t tag, used;      /* used 0: empty */
    uint32_t sectors, dirty; /* bits */
} line;

typedef struct cache {
    uint32_t sets, ways, line, sector;
    uint64_t clock;
    line *lines; /* sets * ways; NULL: there is no such cache */
} cache;

enum { WAYS_DEFAULT = 16, LINE_DEFAULT = 128, SECTOR = 32 };

static void cache_init(cache *c, uint64_t bytes, uint32_t ways, uint32_t line_bytes,
                       uint32_t sector)
{
    *c = (cache){ .line = line_bytes ? line_bytes : LINE_DEFAULT };
    c->sector = sector && sector < c->line ? sector : c->line;
    uint64_t lines = bytes / c->line;
    c->ways = ways ? ways : WAYS_DEFAULT;
    c->ways = c->ways < lines ? c->ways : (uint32_t)lines;
    c->sets = c->ways ? (uint32_t)(lines / c->ways) : 0;
    c->lines = c->sets ? calloc((size_t)c->sets * c->ways, sizeof(line)) : NULL;
}

static void cache_empty(cache *c)
{
    if (c->lines)
        memset(c->lines, 0, (size_t)c->sets * c->ways * sizeof(line));
}

typedef enum { READ, WRITE } touch_kind;

/* Whether the sector was there; *lost: dirty sectors that had to be written back. */
static bool touch(cache *c, uint64_t address, touch_kind kind, uint64_t *lost)
{
    uint64_t tag = address / c->line;
    uint32_t bit = UINT32_C(1) << (address % c->line / c->sector);
    line *set = c->lines + tag % c->sets * c->ways, *oldest = set;
    c->clock++;
    for (uint32_t w = 0; w < c->ways; w++) {
        line *l = &set[w];
        if (l->used && l->tag == tag) {
            bool hit = (l->sectors & bit) != 0;
            l->used = c->clock;
            l->sectors |= bit;
            l->dirty |= kind == WRITE ? bit : 0;
            return hit;
        }
        oldest = l->used < oldest->used ? l : oldest;
    }
    *lost += (uint64_t)__builtin_popcount(oldest->dirty) * (c->sector / SECTOR);
    *oldest = (line){ tag, c->clock, bit, kind == WRITE ? bit : 0 };
    return false;
}

/* ---- first level: of a block, on a worker ---- */

typedef struct level1 {
    cache data, readonly, constant;
} level1;

enum { BLOCKS_KEPT = 16 }; /* a worker may switch between resident blocks of a cooperative launch */

typedef struct block_state {
    uint64_t block, used; /* used 0: none */
    level1 *levels;       /* by device */
} block_state;

/* ---- second level: what goes there, in order ---- */

typedef struct part { /* of a tape: one block's */
    uint64_t block;
    size_t first;
    uint32_t order; /* among the worker's */
} part;

typedef struct tape { /* one device's, of one worker */
    uint64_t *sector; /* address | 1 for a write */
    size_t n, room;
    part *parts;
    size_t n_parts, room_parts;
} tape;

typedef struct listener_state { /* of one worker */
    block_state blocks[BLOCKS_KEPT];
    uint64_t clock;
    tape tapes[HW_MODEL_DEVICES_MAX];
    uint64_t counts[HW_MODEL_DEVICES_MAX][HW_CACHES];
} listener_state;

struct cache_sim {
    const hw_model *model;
    uint32_t workers;
    uint64_t l1_bytes[HW_MODEL_DEVICES_MAX];
    listener_state *states;
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
    for (uint32_t d = 0; d < m->n; d++)
        x->l1_bytes[d] = l1_bytes(m->devices[d], c);
    return x;
}

static void levels_init(const cache_sim *x, block_state *b)
{
    b->levels = calloc(x->model->n, sizeof *b->levels);
    for (uint32_t d = 0; b->levels && d < x->model->n; d++) {
        const struct hw_device_caches *k = &x->model->devices[d]->caches;
        cache_init(&b->levels[d].data, x->l1_bytes[d], k->l1_ways, k->l1_line, k->l1_sector);
        cache_init(&b->levels[d].readonly, k->readonly_bytes, 0, k->l1_line, SECTOR);
        cache_init(&b->levels[d].constant, k->constant_bytes, 4,
                   k->constant_line ? k->constant_line : 64, 0);
    }
}

static void new_part(tape *t, uint64_t block)
{
    if (t->n_parts == t->room_parts) {
        t->room_parts = t->room_parts ? 2 * t->room_parts : 64;
        t->parts = realloc(t->parts, t->room_parts * sizeof *t->parts);
        if (!t->parts)
            hw_oom(t->room_parts * sizeof *t->parts);
    }
    t->parts[t->n_parts] = (part){ block, t->n, (uint32_t)t->n_parts };
    t->n_parts++;
}

/* The block's first level, empty when the worker comes to it. */
static block_state *find_block(const cache_sim *x, listener_state *s, uint64_t block)
{
    block_state *oldest = s->blocks;
    for (int i = 0; i < BLOCKS_KEPT; i++) {
        block_state *b = &s->blocks[i];
        if (b->used && b->block == block) {
            b->used = ++s->clock;
            return b;
        }
        oldest = b->used < oldest->used ? b : oldest;
    }
    if (!oldest->levels)
        levels_init(x, oldest);
    for (uint32_t d = 0; d < x->model->n; d++) {
        cache_empty(&oldest->levels[d].data);
        cache_empty(&oldest->levels[d].readonly);
        cache_empty(&oldest->levels[d].constant);
    }
    oldest->block = block;
    oldest->used = ++s->clock;
    return oldest;
}

static void to_level2(tape *t, uint64_t block, uint64_t address, bool write)
{
    if (!t->n_parts || t->parts[t->n_parts - 1].block != block)
        new_part(t, block);
    if (t->n == t->room) {
        t->room = t->room ? 2 * t->room : 4096;
        t->sector = realloc(t->sector, t->room * sizeof *t->sector);
        if (!t->sector)
            hw_oom(t->room * sizeof *t->sector);
    }
    t->sector[t->n++] = (address & ~UINT64_C(1)) | write;
}

/* ---- an access ---- */

typedef struct asked { /* one device's view */
    const hw_device *dev;
    level1 *level;
    tape *tape;
    uint64_t *count, block;
    const hw_access *access;
    const hw_site *site;
} asked;

static cache *first_cache(const asked *k, hw_site_space space)
{
    bool cached =
        space == HW_SITE_LOCAL ? k->dev->caches.l1_caches_local : k->dev->caches.l1_caches_global;
    if (k->site->readonly && k->level->readonly.lines)
        return &k->level->readonly;
    return cached && !k->site->bypass_l1 && k->level->data.lines ? &k->level->data : NULL;
}

/* What a miss brings in: the whole sector of the cache, in 32-byte sectors. */
static void fetch(const asked *k, const cache *c, uint64_t address)
{
    uint64_t from = address / c->sector * c->sector;
    for (uint32_t at = 0; at < c->sector; at += SECTOR)
        to_level2(k->tape, k->block, from + at, false);
}

static void look_up(const asked *k, cache *c, uint64_t address)
{
    uint64_t none = 0, n = c->sector / SECTOR;
    bool texture = c == &k->level->readonly, hit = touch(c, address, READ, &none);
    k->count[texture ? HW_CACHE_texture_sectors : HW_CACHE_l1_sectors] += n;
    k->count[texture ? HW_CACHE_texture_hits : HW_CACHE_l1_hits] += hit ? n : 0;
    if (!hit)
        fetch(k, c, address);
}

static void global_access(const asked *k, hw_site_space space)
{
    hw_transaction list[HW_TRANSACTIONS_MAX];
    hw_coalesce_result r;
    bool load = k->access->kind == HW_LOAD;
    cache *c = load ? first_cache(k, space) : NULL; /* stores go through */
    hw_coalesce_access(k->dev, k->access, &r, list);
    for (uint32_t i = 0; i < r.transactions && i < HW_TRANSACTIONS_MAX; i++)
        for (uint32_t at = 0; at < list[i].bytes; at += c ? c->sector : SECTOR) {
            if (c)
                look_up(k, c, list[i].address + at);
            else
                to_level2(k->tape, k->block, list[i].address + at, !load);
        }
}

static void constant_access(const asked *k)
{
    uint64_t seen[HW_WARP_LANES], none = 0;
    uint32_t n = 0;
    for (uint64_t lanes = k->access->mask; lanes; lanes &= lanes - 1) {
        uint64_t word = k->access->address[__builtin_ctzll(lanes)] / 4;
        uint32_t i = 0;
        while (i < n && seen[i] != word)
            i++;
        if (i < n)
            continue;
        seen[n++] = word;
        bool hit = k->level->constant.lines && touch(&k->level->constant, word * 4, READ, &none);
        k->count[HW_CACHE_constant_lookups]++;
        k->count[HW_CACHE_constant_hits] += hit;
        if (!hit && k->level->constant.lines)
            fetch(k, &k->level->constant, word * 4);
        else if (!hit)
            to_level2(k->tape, k->block, word * 4, false);
    }
}

void hw_model_cache_access(cache_sim *x, uint32_t index, const hw_access_told *t,
                           const hw_site *site)
{
    listener_state *s = &x->states[index];
    if (t->space == HW_SITE_SHARED || !t->real || !t->lanes)
        return;
    block_state *b = find_block(x, s, t->thread_block);
    hw_access a = { .address = t->address,
                    .mask = t->lanes,
                    .lanes = HW_WARP_LANES,
                    .width = site->bytes < WIDTH_MOST ? site->bytes : WIDTH_MOST,
                    .kind = site->kind == HW_SITE_LOAD    ? HW_LOAD
                            : site->kind == HW_SITE_STORE ? HW_STORE
                                                          : HW_ATOMIC,
                    .bypass_l1 = site->bypass_l1 };
    for (uint32_t d = 0; d < x->model->n; d++) {
        const asked k = { x->model->devices[d],
                          &b->levels[d],
                          &s->tapes[d],
                          s->counts[d],
                          t->thread_block,
                          &a,
                          site };
        if (t->space == HW_SITE_CONST)
            constant_access(&k);
        else
            global_access(&k, t->space);
    }
}

/* ---- the end ---- */

typedef struct piece {
    const tape *tape;
    size_t first, end;
    uint64_t block;
    uint32_t worker, order;
} piece;

static int by_block(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    if (x->worker != y->worker)
        return x->worker < y->worker ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static piece *gather(const cache_sim *x, uint32_t d, size_t *n)
{
    *n = 0;
    for (uint32_t w = 0; w < x->workers; w++)
        *n += x->states[w].tapes[d].n_parts;
    piece *all = calloc(*n ? *n : 1, sizeof *all), *at = all;
    if (!all)
        hw_oom(*n * sizeof *all);
    for (uint32_t w = 0; w < x->workers; w++) {
        const tape *t = &x->states[w].tapes[d];
        for (size_t i = 0; i < t->n_parts; i++)
            *at++ = (piece){ t,
                             t->parts[i].first,
                             i + 1 < t->n_parts ? t->parts[i + 1].first : t->n,
                             t->parts[i].block,
                             w,
                             t->parts[i].order };
    }
    qsort(all, *n, sizeof *all, by_block);
    return all;
}

static void level2_access(cache *c, uint64_t packed, uint64_t *count)
{
    bool write = packed & 1;
    uint64_t lost = 0;
    if (!c->lines) { /* no second level: device memory at once */
        count[write ? HW_CACHE_dram_writes : HW_CACHE_dram_reads]++;
        return;
    }
    bool hit = touch(c, packed & ~UINT64_C(1), write ? WRITE : READ, &lost);
    count[write ? HW_CACHE_l2_writes : HW_CACHE_l2_reads]++;
    count[write ? HW_CACHE_l2_write_hits : HW_CACHE_l2_read_hits] += hit;
    count[HW_CACHE_dram_reads] += hit || write ? 0 : c->sector / SECTOR;
    count[HW_CACHE_dram_writes] += lost;
}

static void level2(const cache_sim *x, uint32_t d, uint64_t *count)
{
    const struct hw_device_caches *k = &x->model->devices[d]->caches;
    cache c;
    size_t n;
    cache_init(&c, k->l2_bytes, k->l2_ways, k->l2_line, k->l2_sector ? k->l2_sector : SECTOR);
    piece *all = gather(x, d, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t e = all[i].first; e < all[i].end; e++)
            level2_access(&c, all[i].tape->sector[e], count);
    for (size_t i = 0; c.lines && i < (size_t)c.sets * c.ways; i++)
        count[HW_CACHE_dram_writes] +=
            (uint64_t)__builtin_popcount(c.lines[i].dirty) * (c.sector / SECTOR);
    free(c.lines);
    free(all);
}

static void free_state(const cache_sim *x, listener_state *s)
{
    for (int i = 0; i < BLOCKS_KEPT; i++) {
        for (uint32_t d = 0; s->blocks[i].levels && d < x->model->n; d++) {
            free(s->blocks[i].levels[d].data.lines);
            free(s->blocks[i].levels[d].readonly.lines);
            free(s->blocks[i].levels[d].constant.lines);
        }
        free(s->blocks[i].levels);
    }
    for (uint32_t d = 0; d < x->model->n; d++) {
        free(s->tapes[d].sector);
        free(s->tapes[d].parts);
    }
}

void hw_model_cache_end(cache_sim *x, sums *into)
{
    for (uint32_t d = 0; d < x->model->n; d++) {
        for (uint32_t w = 0; w < x->workers; w++)
            for (int i = 0; i < HW_CACHES; i++)
                into->cache[d][i] += x->states[w].counts[d][i];
        level2(x, d, into->cache[d]);
    }
    for (uint32_t w = 0; w < x->workers; w++)
        free_state(x, &x->states[w]);
    free(x->states);
    free(x);
}

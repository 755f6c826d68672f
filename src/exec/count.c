/* SPDX-License-Identifier: Apache-2.0
 * Counting a launch. Accesses that generated code tells wait on a tape and go to the listener in
 * order; those it only counted are told at the end, all of a class together. */
#include "count.h"

#include <stdlib.h>

/* Made-up addresses start here, so that small distances to either side stay addresses. */
static const uint64_t ORIGIN[HW_SITE_SPACES] = {
    [HW_SITE_GENERIC] = UINT64_C(1) << 44, [HW_SITE_GLOBAL] = UINT64_C(1) << 44,
    [HW_SITE_SHARED] = UINT64_C(1) << 20,  [HW_SITE_LOCAL] = UINT64_C(1) << 20,
    [HW_SITE_CONST] = UINT64_C(1) << 44,
};

/* ---- telling ---- */

/* A lane's place in interleaved local memory, from its offset in the lane's own. */
static uint64_t interleaved(uint64_t offset, unsigned bytes, unsigned lane)
{
    uint64_t w = bytes < 4 ? 4 : bytes;
    return offset / w * w * HW_WARP_LANES + lane * w + offset % w;
}

/* Accesses on their way to the listener, in order. */
typedef struct batch {
    const struct hw_tally *tally;
    uint32_t n;
    hw_access_told told[HW_TAPE_ENTRIES];
} batch;

static void tell_all(batch *b)
{
    if (b->n)
        b->tally->listener->access(b->tally->state, b->told, b->n);
    b->n = 0;
}

static hw_access_told *next_told(batch *b)
{
    if (b->n == HW_TAPE_ENTRIES)
        tell_all(b);
    return &b->told[b->n++];
}

static void tell(batch *b, const hw_access_told *a, hw_site_space space, uint32_t lanes)
{
    if (!lanes)
        return;
    hw_access_told *to = next_told(b);
    *to = *a;
    to->space = space;
    to->lanes = lanes;
}

/* The same with addresses that do not outlive the call. */
static void tell_now(batch *b, hw_access_told *a, const uint64_t *address, hw_site_space space,
                     uint32_t lanes)
{
    a->address = address;
    tell(b, a, space, lanes);
    tell_all(b);
}

/* In which lanes a generic address is in shared memory, the block's or another's of its cluster, or the warp's local memory. */
static void find_spaces(const hw_frame *f, const hw_access_told *a, uint32_t *shared,
                        uint32_t *local)
{
    uint32_t blocks = f->cluster[0] * f->cluster[1] * f->cluster[2];
    uint64_t s = f->cluster_base, l = (uint64_t)(uintptr_t)f->local;
    uint64_t shared_bytes = blocks > 1 ? (uint64_t)blocks << HW_WINDOW_BITS : f->total_shared;
    uint64_t local_bytes = f->local_stride * HW_WARP_LANES;
    *shared = *local = 0;
    for (uint32_t i = 0; i < HW_WARP_LANES; i++) {
        uint64_t at = a->address[i] + (uint64_t)a->add;
        *shared |= (uint32_t)(at - s < shared_bytes) << i;
        *local |= (uint32_t)(at - l < local_bytes) << i;
    }
}

static void tell_local(batch *b, const hw_frame *f, hw_access_told a, unsigned bytes,
                       uint32_t lanes)
{
    uint64_t l = (uint64_t)(uintptr_t)f->local, to[HW_WARP_LANES];
    for (unsigned i = 0; i < HW_WARP_LANES; i++)
        to[i] = interleaved(a.address[i] + (uint64_t)a.add - l - i * f->local_stride, bytes, i);
    a.add = 0;
    tell_now(b, &a, to, HW_SITE_LOCAL, lanes);
}

static void tell_generic(batch *b, const hw_frame *f, hw_access_told a, unsigned bytes,
                         uint32_t lanes)
{
    uint32_t shared, local;
    find_spaces(f, &a, &shared, &local);
    tell(b, &a, HW_SITE_GLOBAL, lanes & ~shared & ~local);
    if (lanes & local)
        tell_local(b, f, a, bytes, lanes & local);
    a.add -= (int64_t)f->cluster_base;
    tell(b, &a, HW_SITE_SHARED, lanes & shared);
}

static void tell_site(batch *b, const hw_tape_entry *e, const hw_site *s, uint32_t site,
                      const uint64_t *address, const uint64_t *counters)
{
    const hw_frame *f = e->frame;
    const hw_block *block = f->owner;
    hw_access_told *a = next_told(b); /* filled in its place: copying it would wait for the parts */
    a->site = site;
    a->space = s->space;
    a->lanes = e->lanes ? e->lanes : UINT32_MAX;
    a->real = true;
    a->times = 1;
    a->add = s->add;
    a->address = e->lanes ? address : NULL;
    a->base = address[0] + (uint64_t)s->add;
    a->pattern = counters;
    a->sm = f->smid;
    a->warp = e->warp;
    a->thread_block = atomic_load_explicit(&block->index, memory_order_relaxed);
    if (s->space != HW_SITE_GENERIC && s->space != HW_SITE_LOCAL)
        return;
    const hw_access_told other = *a;
    b->n--;
    if (s->space == HW_SITE_GENERIC)
        tell_generic(b, f, other, s->bytes, e->lanes);
    else
        tell_local(b, f, other, s->bytes, e->lanes);
}

static int64_t at(const int64_t *x, unsigned lane)
{
    return x ? x[lane] : 0;
}

/* The stride R that makes these addresses; false if there is none. */
static bool find_stride(const hw_site *s, const uint64_t *address, uint64_t *r)
{
    bool known = false;
    for (unsigned i = 0; i < HW_WARP_LANES && !known; i++)
        if (at(s->scale, i)) {
            int64_t d = (int64_t)(address[i] - address[0]) - at(s->offset, i);
            *r = (uint64_t)(d / at(s->scale, i));
            known = true;
        }
    for (unsigned i = 0; i < HW_WARP_LANES && known; i++)
        known =
            address[i] == address[0] + (uint64_t)at(s->offset, i) + (uint64_t)at(s->scale, i) * *r;
    return known;
}

/* The first pattern that is told is from then on counted, unless that of zeros was before. */
static void remember(const hw_site *s, uint64_t *counters, const uint64_t *address)
{
    uint64_t *first = &counters[s->first], r;
    uint64_t *flag = first - (s->known == HW_SITE_STRIDE ? 2 : HW_WARP_LANES + 1);
    if (s->known == HW_SITE_FIXED || *flag)
        return;
    *flag = 1;
    for (uint32_t c = 0; c < (uint32_t)HW_ACCESS_PERIOD >> s->shift; c++)
        if (first[c])
            return;
    if (s->known == HW_SITE_SEEN)
        for (unsigned i = 0; i < HW_WARP_LANES; i++)
            first[(int)i - HW_WARP_LANES] = address[i] - address[0];
    else if (find_stride(s, address, &r))
        first[-1] = r;
}

static void go_through(const struct hw_tally *t, const hw_count_table *table, uint64_t *counters)
{
    hw_tape *tape = counters ? (hw_tape *)(void *)counters - 1 : NULL;
    batch b;
    b.tally = t;
    b.n = 0;
    if (!tape || !tape->n)
        return;
    for (uint32_t i = 0; i < tape->n; i++) {
        const hw_tape_entry *e = &tape->entry[i];
        const hw_site *s = &table->sites[e->site];
        if (s->first != HW_NO_INDEX && e->lanes == UINT32_MAX)
            remember(s, counters, tape->address[i]);
        for (uint32_t at = e->site; at != HW_NO_INDEX; at = table->sites[at].next)
            tell_site(&b, e, &table->sites[at], at, tape->address[i], counters);
    }
    tell_all(&b);
    tape->n = 0;
}

void hw_count_empty(struct hw_tally *t)
{
    go_through(t, t->table, t->counters);
    go_through(t, t->slow_table, t->slow);
}

void hw_count_listen(hw_frame *f)
{
    const hw_block *b = f->owner;
    hw_count_empty(b->worker->tally);
}

static void tell_sectors(hw_frame *f, hw_access_told a, const uint64_t *sector, uint32_t n)
{
    const hw_block *block = f->owner;
    struct hw_tally *t = block->worker->tally;
    const hw_count_table *table = f->counters == t->slow ? t->slow_table : t->table;
    a.space = table->sites[a.site].space;
    a.real = true;
    a.times = 1;
    a.sm = f->smid;
    a.warp = f->warp;
    a.thread_block = atomic_load_explicit(&block->index, memory_order_relaxed);
    hw_count_empty(t); /* accesses are told in order */
    do {
        uint32_t here = n < HW_WARP_LANES ? n : HW_WARP_LANES;
        a.address = sector;
        a.lanes = here == HW_WARP_LANES ? UINT32_MAX : (UINT32_C(1) << here) - 1;
        t->listener->access(t->state, &a, 1);
        a.asked_lanes = 0;
        sector += here;
        n -= here;
    } while (n);
}

void hw_count_sectors(hw_frame *f, uint32_t lanes, uint32_t bytes, const uint64_t *sector,
                      uint32_t n)
{
    tell_sectors(
        f, (hw_access_told){ .site = f->told_site, .asked_lanes = lanes, .asked_bytes = bytes },
        sector, n);
}

/* ---- bulk copies ---- */

enum { SECTOR = 32 };

void hw_count_run(hw_touched *t, uint64_t address, uint64_t bytes)
{
    uint64_t first = address / SECTOR, last = (address + bytes - 1) / SECTOR;
    size_t n = t->n + (size_t)(last - first + 1);
    if (!bytes)
        return;
    if (n > t->cap) {
        t->cap = 2 * n;
        t->sector = realloc(t->sector, t->cap * sizeof *t->sector);
        if (!t->sector)
            hw_oom(t->cap * sizeof *t->sector);
    }
    for (uint64_t s = first; s <= last; s++)
        t->sector[t->n++] = s * SECTOR;
    t->bytes += bytes;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void hw_count_bulk(hw_frame *f, uint32_t lane, bool store, hw_touched *t)
{
    size_t n = 0;
    if (t->n)
        qsort(t->sector, t->n, sizeof *t->sector, ascending);
    for (size_t i = 0; i < t->n; i++)
        if (!n || t->sector[n - 1] != t->sector[i])
            t->sector[n++] = t->sector[i];
    const hw_access_told a = { .site = f->told_site + store,
                               .asked_lanes = UINT32_C(1) << lane,
                               .asked_bytes = (uint32_t)t->bytes };
    static const uint64_t none;
    tell_sectors(f, a, n ? t->sector : &none, (uint32_t)n);
    free(t->sector);
    *t = (hw_touched){ 0 };
}

void hw_count_ended(struct hw_tally *t, uint64_t block)
{
    t->blocks_done++;
    if (t->listener->block)
        t->listener->block(t->state, block);
}

/* ---- the beginning ---- */

static hw_counters describe(const hw_run *r)
{
    const hw_launch *l = r->l;
    hw_counters c = { .table = r->code->count,
                      .kernel = l->source->name,
                      .static_shared_bytes = r->code->static_shared_bytes,
                      .dynamic_shared_bytes = l->dynamic_shared_bytes,
                      .local_bytes = r->code->local_bytes,
                      .registers = r->code->registers };
    memcpy(c.grid, l->grid, sizeof c.grid);
    memcpy(c.block, l->block, sizeof c.block);
    return c;
}

/* Zeros behind an empty tape, on cache lines that no other worker writes. NULL: out of memory. */
static uint64_t *new_counters(const hw_count_table *t)
{
    size_t n = sizeof(hw_tape) + ((size_t)t->n_counters * sizeof(uint64_t) + 127) / 128 * 128;
    hw_tape *tape = aligned_alloc(128, (n + 127) / 128 * 128);
    if (!tape)
        return NULL;
    tape->n = 0;
    memset(tape + 1, 0, n - sizeof *tape);
    return (uint64_t *)(void *)(tape + 1);
}

static void free_counters(uint64_t *counters)
{
    if (counters)
        free((hw_tape *)(void *)counters - 1);
}

hw_status hw_count_begin(hw_run *r, hw_diag *d)
{
    const hw_listener *listener = r->l->listener;
    const hw_count_table *table = r->code->count;
    if (!listener)
        return HW_OK;
    if (!table)
        return hw_fail(d, HW_E_INTERNAL, "code without counters for a listener");
    struct hw_tally *t = aligned_alloc(_Alignof(struct hw_tally), r->nworkers * sizeof *t);
    r->tallies = t;
    if (t)
        memset(t, 0, r->nworkers * sizeof *t);
    for (unsigned i = 0; t && i < r->nworkers; i++) {
        t[i].table = table;
        t[i].listener = listener;
        t[i].counters = new_counters(table);
        if (!t[i].counters)
            return hw_fail(d, HW_E_NOMEM, "out of host memory for counters");
        r->workers[i].tally = &t[i];
    }
    if (!t)
        return hw_fail(d, HW_E_NOMEM, "out of host memory for counters");
    hw_counters c = describe(r);
    r->listening = listener->begin(listener->ctx, &c, r->nworkers);
    for (unsigned i = 0; i < r->nworkers; i++)
        t[i].state = listener->worker(r->listening, i);
    r->counting = true;
    return HW_OK;
}

uint64_t *hw_count_slow(hw_worker *k, const hw_code *slow)
{
    struct hw_tally *t = k->tally;
    if (!t->slow) {
        t->slow_table = slow->count;
        t->slow = new_counters(slow->count);
    }
    return t->slow;
}

/* ---- the end ---- */

static void tell_class(const hw_run *r, batch *b, const hw_site *s, hw_access_told *a,
                       const uint64_t *distance, uint64_t base)
{
    uint64_t address[HW_WARP_LANES];
    for (unsigned i = 0; i < HW_WARP_LANES; i++) {
        address[i] = base + distance[i];
        if (s->space == HW_SITE_LOCAL)
            address[i] = interleaved(address[i] - i * r->local_stride, s->bytes, i);
    }
    tell_now(b, a, address, s->space, UINT32_MAX);
}

static void tell_counted(const hw_run *r, const struct hw_tally *t, const hw_count_table *table,
                         const uint64_t *counters)
{
    batch b;
    b.tally = t;
    b.n = 0;
    for (uint32_t i = 0; counters && i < table->n_sites; i++) {
        const hw_site *s = &table->sites[i];
        uint64_t distance[HW_WARP_LANES];
        if (s->first == HW_NO_INDEX)
            continue;
        hw_site_distances(s, counters, distance);
        for (uint32_t c = 0; c < (uint32_t)HW_ACCESS_PERIOD >> s->shift; c++) {
            hw_access_told a = { .site = i, .times = counters[s->first + c] };
            uint64_t base = ORIGIN[s->space] + ((uint64_t)c << s->shift) + (uint64_t)s->add;
            if (a.times)
                tell_class(r, &b, s, &a, distance, base);
        }
    }
}

typedef struct sums {
    hw_block_count *blocks;
    uint64_t *guards, *divergent;
} sums;

static void add(sums *s, const hw_count_table *t, const uint64_t *x)
{
    if (!x)
        return;
    for (uint32_t i = 0; i < t->n_blocks; i++) {
        s->blocks[i].warps += x[t->full + i] + x[t->part + 2 * i];
        s->blocks[i].lanes += x[t->full + i] * HW_WARP_LANES + x[t->part + 2 * i + 1];
    }
    for (uint32_t i = 0; i < t->n_guards; i++)
        s->guards[i] += x[t->guards + i];
    for (uint32_t i = 0; i < t->n_branches; i++)
        s->divergent[i] += x[t->divergent + i];
}

static void *zeros(size_t n, size_t each)
{
    void *p = calloc(n + 1, each);
    if (!p)
        hw_oom(n * each);
    return p;
}

static void deliver(hw_run *r, uint64_t wall_ns, hw_status status)
{
    const hw_count_table *t = r->code->count;
    hw_counters c = describe(r);
    sums s = { zeros(t->n_blocks, sizeof(hw_block_count)), zeros(t->n_guards, sizeof(uint64_t)),
               zeros(t->n_branches, sizeof(uint64_t)) };
    for (unsigned i = 0; i < r->nworkers; i++) {
        const struct hw_tally *w = &r->tallies[i];
        tell_counted(r, w, w->table, w->counters);
        tell_counted(r, w, w->slow_table, w->slow);
        add(&s, t, w->counters);
        add(&s, w->slow_table, w->slow);
        c.blocks_done += w->blocks_done;
    }
    c.blocks = s.blocks;
    c.guard_lanes = s.guards;
    c.divergent = s.divergent;
    c.warps_launched = c.blocks_done * r->nwarps;
    c.wall_ns = wall_ns;
    c.status = status;
    r->l->listener->end(r->listening, &c);
    free(s.blocks);
    free(s.guards);
    free(s.divergent);
}

void hw_count_end(hw_run *r, uint64_t wall_ns, hw_status s)
{
    if (r->counting)
        deliver(r, wall_ns, s);
    for (unsigned i = 0; r->tallies && i < r->nworkers; i++) {
        free_counters(r->tallies[i].counters);
        free_counters(r->tallies[i].slow);
    }
    free(r->tallies);
    r->tallies = NULL;
    r->counting = false;
}

/* SPDX-License-Identifier: Apache-2.0
 * Lanes of a warp that wait at barriers without the others, and what is said when nobody can come
 * any more.
 *
 * On devices whose lanes make progress independently a thread at a barrier first waits for those of
 * its warp that have not ended, then the warp counts as arrived (PTX ISA, "bar, barrier"). Threads
 * of one warp may come by different ways; a warp split over two barriers arrives at neither. */
#include "mbarrier.h"
#include "sentence.h"
#include "tmem.h"

#include <stdio.h>

#define FOR_BITS(i, mask)                                                                    \
    for (uint64_t i##_rest = (mask), i = i##_rest ? (uint64_t)__builtin_ctzll(i##_rest) : 0; \
         i##_rest;                                                                           \
         i##_rest &= i##_rest - 1, i = i##_rest ? (uint64_t)__builtin_ctzll(i##_rest) : 0)

static uint64_t bit(uint64_t i)
{
    return UINT64_C(1) << i;
}

/* Lanes of warp w that have come to a barrier. */
static uint32_t come(const hw_block *b, uint32_t id, uint64_t w)
{
    return (b->parked[id][w] | b->came_by[id][w]) & b->frames[w].lanes;
}

uint32_t hw_block_parted_threads(const hw_block *b, uint32_t id)
{
    uint32_t threads = 0;
    FOR_BITS(w, b->bar[id].parted)
    if (come(b, id, w) == b->frames[w].lanes)
        threads += HW_WARP_LANES;
    return threads;
}

static void unblock(hw_block *b, uint64_t w, uint32_t lanes)
{
    b->frames[w].blocked &= ~lanes;
    if (lanes && (b->live & bit(w)))
        b->runnable |= bit(w);
}

void hw_block_release_parted(hw_block *b, uint32_t id)
{
    FOR_BITS(w, b->bar[id].parted)
    {
        uint32_t lanes = b->parked[id][w];
        FOR_BITS(l, lanes)
        b->frames[w].bar_values[l] = b->bar[id].value;
        b->parked[id][w] = b->came_by[id][w] = 0;
        unblock(b, w, lanes);
    }
}

/* ---- barriers of the block ---- */

/* The lanes' part of a reduction; `holds` are those whose predicate does. */
static void reduce(hw_barrier *bar, uint32_t kind, uint32_t lanes, uint32_t holds)
{
    bool first = bar->kind == HW_BAR_SYNC;
    bar->kind = kind;
    switch (kind) {
    case HW_BAR_POPC:
        bar->value = (first ? 0 : bar->value) + (uint32_t)__builtin_popcount(lanes & holds);
        break;
    case HW_BAR_AND:
        bar->value = (first ? 1 : bar->value) & ((lanes & ~holds) == 0);
        break;
    case HW_BAR_OR:
        bar->value = (first ? 0 : bar->value) | ((lanes & holds) != 0);
        break;
    default:
        break;
    }
}

/* Lanes of one warp at one barrier. */
static void park(hw_frame *f, uint32_t id, uint32_t count, uint32_t lanes)
{
    hw_block *b = f->owner;
    hw_barrier *bar = hw_block_barrier(f, &id);
    reduce(bar, f->bar_kind, lanes, f->bar_lanes);
    bar->parted |= bit(f->warp);
    bar->count = count;
    b->parked[id][f->warp] |= lanes;
    f->blocked |= lanes;
    b->awaited |= bit(id);
    hw_block_check(b, id);
}

void hw_block_park(hw_frame *f, const uint32_t *id, const uint32_t *count, uint32_t lanes)
{
    f->ended = NULL;
    while (lanes) {
        uint32_t first = (uint32_t)__builtin_ctz(lanes), same = 0;
        FOR_BITS(l, lanes)
        if (id[l] == id[first] && (!count || count[l] == count[first]))
            same |= (uint32_t)bit(l);
        if (id[first] == HW_BARRIER_CLUSTER)
            hw_cluster_park(f, same);
        else if (id[first] == HW_BARRIER_TMEM)
            hw_tmem_park(f, same);
        else
            park(f, id[first], count ? count[first] : 0, same);
        lanes &= ~same;
    }
}

/* ---- barriers of the warp ---- */

/* Lanes that wait for the lanes of `mask` go on if all of those that have not ended do the same. */
static uint32_t let_go(hw_frame *f, uint32_t mask)
{
    uint32_t there = 0;
    FOR_BITS(l, f->sync_lanes)
    if (f->sync_mask[l] == mask)
        there |= (uint32_t)bit(l);
    if (mask & f->lanes & ~there)
        return 0;
    f->sync_lanes &= ~there;
    f->blocked &= ~there;
    return there;
}

void hw_block_sync(hw_frame *f, const uint32_t *mask, uint32_t lanes)
{
    FOR_BITS(l, lanes)
    f->sync_mask[l] = mask[l];
    f->sync_lanes |= lanes;
    f->blocked |= lanes;
    for (uint32_t rest = lanes & f->sync_lanes; rest; rest = lanes & f->sync_lanes) {
        uint32_t first = mask[__builtin_ctz(rest)];
        let_go(f, first);
        FOR_BITS(l, rest)
        if (mask[l] == first)
            lanes &= ~(uint32_t)bit(l);
    }
}

/* Lanes that have ended since are no longer waited for. */
void hw_block_parked(hw_block *b, uint32_t w)
{
    hw_frame *f = &b->frames[w];
    b->runnable &= ~bit(w);
    uint32_t free = 0;
    FOR_BITS(l, f->sync_lanes)
    if (f->sync_lanes & bit(l))
        free |= let_go(f, f->sync_mask[l]);
    unblock(b, w, free);
    FOR_BITS(id, b->awaited)
    if (b->bar[id].parted & bit(w))
        hw_block_check(b, (uint32_t)id);
}

void hw_block_clear_barriers(hw_block *b)
{
    memset(b->bar, 0, sizeof b->bar);
    memset(b->parked, 0, sizeof b->parked);
    memset(b->came_by, 0, sizeof b->came_by);
}

/* ---- nobody can go on ---- */

static void say_barrier(const hw_block *b, uint32_t id, hw_text *t)
{
    const hw_barrier *bar = &b->bar[id];
    uint32_t warps = (uint32_t)__builtin_popcountll(bar->waiting), lanes = 0, split = 0;
    uint32_t arrived = warps * HW_WARP_LANES + bar->arrived + hw_block_parted_threads(b, id);
    uint32_t wanted =
        bar->count ? bar->count : (uint32_t)__builtin_popcountll(b->live) * HW_WARP_LANES;
    FOR_BITS(w, bar->parted)
    {
        bool all = come(b, id, w) == b->frames[w].lanes;
        warps += all && b->parked[id][w];
        split += !all;
        lanes += all ? 0 : (uint32_t)__builtin_popcount(b->parked[id][w]);
    }
    char more[96] = "";
    if (lanes)
        snprintf(more, sizeof more, " and %u threads of %u warps whose others are elsewhere", lanes,
                 split);
    const char *what = id < HW_BARRIERS ? "at barrier" : "for the products of warpgroup";
    hw_text_add(t, "%u warps%s wait %s %u, where %u of %u threads have arrived", warps, more, what,
                id % HW_BARRIERS, arrived, wanted);
}

/* What the warps of b wait for; `first` is put before it, later ones follow a semicolon. Other blocks of a
 * cluster (those with a `first`) that only wait at its barrier say nothing. A warp that waits for lanes of its own,
 * where that is all there is to say; else NULL. */
static hw_frame *say_block(hw_block *b, hw_text *t, const char *first)
{
    const char *between = first;
    hw_frame *alone = NULL;
    FOR_BITS(id, b->awaited)
    {
        if (!b->bar[id].waiting && !b->bar[id].parted)
            continue;
        hw_text_add(t, "%s", between);
        say_barrier(b, (uint32_t)id, t);
        between = "; ";
    }
    if (hw_cluster_waiting(b) && (!*first || between != first)) {
        hw_text_add(t, "%s%u warps wait at the cluster's barrier", between, hw_cluster_waiting(b));
        between = "; ";
    }
    FOR_BITS(w, hw_tmem_waiting(b))
    {
        hw_text_add(t, "%swarp %u waits for tensor memory", between, (uint32_t)w);
        between = "; ";
    }
    FOR_BITS(w, b->live & b->runnable)
    if (hw_mbarrier_starves(&b->frames[w])) {
        char which[128];
        hw_mbarrier_say(&b->frames[w], which, sizeof which);
        hw_text_add(t, "%swarp %u waits at %s", between, (uint32_t)w, which);
        between = "; ";
    }
    FOR_BITS(w, b->live)
    {
        hw_frame *s = &b->frames[w];
        if (!s->sync_lanes)
            continue;
        uint32_t lane = (uint32_t)__builtin_ctz(s->sync_lanes);
        alone = between == first ? s : alone;
        hw_text_add(t, "%slane %u of warp %u waits at a warp barrier for lanes 0x%08x", between,
                    lane, (uint32_t)w, s->sync_mask[lane] & s->lanes);
        between = "; ";
    }
    return alone;
}

/* The place is that of the cluster's first block. */
_Noreturn void hw_block_deadlock(hw_block *b)
{
    char words[sizeof b->worker->raised.text - 64] = "", of[64];
    hw_text t = { words, words + sizeof words };
    uint32_t next = 0;
    hw_block *one = hw_cluster_next_live(b, &next);
    if (one)
        b = one;
    hw_frame *alone = say_block(b, &t, "");
    hw_frame *f = alone ? alone : &b->frames[__builtin_ctzll(b->live)];
    while ((one = hw_cluster_next_live(b, &next))) {
        snprintf(of, sizeof of, "%sin block %u of the cluster ", t.at > words ? "; " : "",
                 next - 1);
        say_block(one, &t, of);
    }
    b->worker->current = b;
    hw_raise(f, HW_F_DEADLOCK, f->fault_loc, "barrier deadlock: %s, and no warp is left to come",
             words);
}

/* SPDX-License-Identifier: Apache-2.0
 * A block carried out: its warps in turn, barriers between them, until all have ended or all that
 * could run say that they wait for somebody else. */
#include "count.h"
#include "mbarrier.h"
#include "tmem.h"

static uint32_t warps_in(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

/* ---- barriers (PTX ISA, "bar, barrier"): counted in threads, whole warps at a time ---- */

static void release(hw_block *b, uint32_t id)
{
    hw_barrier *bar = &b->bar[id];
    if (bar->kind != HW_BAR_SYNC)
        for (uint64_t m = bar->waiting; m; m &= m - 1)
            b->frames[__builtin_ctzll(m)].bar_value = bar->value;
    b->runnable |= bar->waiting;
    if (bar->parted)
        hw_block_release_parted(b, id);
    *bar = (hw_barrier){ 0 };
    b->awaited &= ~(UINT64_C(1) << id);
}

/* Warps that have ended do not keep a whole-block barrier from completing. */
void hw_block_check(hw_block *b, uint32_t id)
{
    hw_barrier *bar = &b->bar[id];
    uint32_t arrived = warps_in(bar->waiting) * HW_WARP_LANES + bar->arrived;
    if (bar->parted)
        arrived += hw_block_parted_threads(b, id);
    uint32_t wanted = bar->count ? bar->count : warps_in(b->live) * HW_WARP_LANES;
    if ((bar->waiting || bar->parted || bar->count) && arrived >= wanted)
        release(b, id);
}

static uint32_t combined(const hw_barrier *bar, const hw_frame *f)
{
    bool first = bar->kind == HW_BAR_SYNC;
    switch (f->bar_kind) {
    case HW_BAR_POPC:
        return (first ? 0 : bar->value) + f->bar_value;
    case HW_BAR_AND:
        return (first ? 1 : bar->value) & f->bar_value;
    case HW_BAR_OR:
        return (first ? 0 : bar->value) | f->bar_value;
    default:
        return 0;
    }
}

hw_barrier *hw_block_barrier(hw_frame *f, uint32_t *id)
{
    hw_block *b = f->owner;
    if (*id == HW_BARRIER_WARPGROUP)
        *id = HW_BARRIERS + f->warp / HW_WARPGROUP;
    else if (*id >= HW_BARRIERS)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc, "there is no barrier %u", *id);
    return &b->bar[*id];
}

void hw_block_arrive(hw_frame *f, uint32_t id, uint32_t count, uint32_t lanes)
{
    hw_block *b = f->owner;
    if (id == HW_BARRIER_CLUSTER) {
        hw_cluster_arrive(f, lanes);
        return;
    }
    hw_barrier *bar = hw_block_barrier(f, &id);
    if (lanes == f->lanes || !b->run->x->dev->capability.independent_thread_scheduling) {
        bar->arrived += HW_WARP_LANES;
    } else {
        bar->parted |= UINT64_C(1) << f->warp;
        b->came_by[id][f->warp] |= lanes;
    }
    bar->count = count;
    b->awaited |= UINT64_C(1) << id;
    hw_block_check(b, id);
}

/* Anything but a plain barrier of the whole block. */
static void wait_counted(hw_block *b, uint32_t w, uint32_t id)
{
    hw_frame *f = &b->frames[w];
    hw_barrier *bar = &b->bar[id];
    if (f->bar_kind != HW_BAR_SYNC) {
        bar->value = combined(bar, f);
        bar->kind = f->bar_kind;
    }
    bar->waiting |= UINT64_C(1) << w;
    bar->count = f->bar_count;
    b->runnable &= ~(UINT64_C(1) << w);
    b->awaited |= UINT64_C(1) << id;
    hw_block_check(b, id);
}

/* Warps at a plain barrier of the whole block, whose state is plain too. */
static inline void wait_plainly(hw_block *b, uint64_t warps, uint32_t id)
{
    hw_barrier *bar = &b->bar[id];
    uint64_t waiting = bar->waiting | warps;
    if (waiting != b->live) {
        bar->waiting = waiting;
        b->runnable &= ~warps;
        b->awaited |= UINT64_C(1) << id;
    } else {
        bar->waiting = 0;
        b->runnable = waiting;
        b->awaited &= ~(UINT64_C(1) << id);
    }
}

static inline bool is_plain(const hw_barrier *bar)
{
    return !(bar->arrived | bar->count | bar->kind) && !bar->parted;
}

static inline void wait_at(hw_block *b, uint32_t w)
{
    hw_frame *f = &b->frames[w];
    uint32_t id = f->bar_id;
    if (id == HW_BARRIER_CLUSTER) {
        hw_cluster_wait(b, w);
        return;
    }
    if (id == HW_BARRIER_TMEM) {
        hw_tmem_wait(b, w);
        return;
    }
    const hw_barrier *bar = hw_block_barrier(f, &id);
    if ((f->bar_count | f->bar_kind) || !is_plain(bar))
        wait_counted(b, w, id);
    else
        wait_plainly(b, UINT64_C(1) << w, id);
}

/* HW_WARP_MET. */
static void meet(hw_block *b, uint64_t warps)
{
    if (is_plain(&b->bar[0])) {
        wait_plainly(b, warps, 0);
        return;
    }
    for (uint64_t m = warps; m; m &= m - 1) {
        hw_frame *f = &b->frames[__builtin_ctzll(m)];
        f->bar_id = f->bar_count = f->bar_value = 0;
        f->bar_kind = HW_BAR_SYNC;
        f->bar_lanes = f->lanes;
        wait_counted(b, (uint32_t)__builtin_ctzll(m), 0);
    }
}

static void end_warps(hw_block *b, uint64_t warps)
{
    b->live &= ~warps;
    b->runnable &= ~warps;
    for (uint64_t m = b->awaited; m; m &= m - 1)
        hw_block_check(b, (uint32_t)__builtin_ctzll(m));
    if (b->cluster || b->at_cluster.used)
        hw_cluster_check(b);
    if (b->tmem && !b->live)
        hw_tmem_end(b, &b->frames[__builtin_ctzll(warps)]);
}

/* ---- leaving the variant without guards ---- */

static void to_slow_variant(hw_block *b, uint32_t w)
{
    hw_run *r = b->run;
    const hw_code *slow = atomic_load(&r->slow);
    hw_frame *f = &b->frames[w];
    if (!slow) {
        const hw_variant v = hw_tier_slow_variant(r);
        b->worker->in_code = 0;
        hw_status s = hw_tier_code(r, &v, &slow, NULL);
        b->worker->in_code = 1;
        if (s != HW_OK)
            hw_raise(f, HW_E_INTERNAL, f->fault_loc, "no code for addresses that wrap: %s",
                     hw_status_text(s));
        atomic_store(&r->slow, slow);
    }
    if (hw_block_widen(b, slow->save_bytes) != HW_OK)
        hw_raise(f, HW_E_NOMEM, f->fault_loc, "out of host memory");
    if (b->worker->tally && !(f->counters = hw_count_slow(b->worker, slow)))
        hw_raise(f, HW_E_NOMEM, f->fault_loc, "out of host memory");
    b->code[w] = slow->run;
    b->mixed = true;
    b->quiet = false;
    f->give_up = 0;
}

/* Its spinning warps are to leave for the slow variant, where lanes need not wait for each other. */
void hw_block_give_up(hw_block *b, bool single)
{
    if (!b->run->variant.lockstep_first)
        return;
    for (uint64_t m = b->runnable; m; m &= m - 1) {
        uint32_t w = (uint32_t)__builtin_ctzll(m);
        if (b->code[w] == b->began->run)
            b->frames[w].give_up = single ? 2 : 1;
    }
}

/* ---- the loop ---- */

/* A phase that the warp's own operation ended at once, and that it waits for: after the others' turns it is told so. */
static inline void take_turn_away(hw_frame *f, uint32_t status)
{
    bool over = status == HW_WARP_YIELD && f->awaited && f->awaited == f->at_once &&
                !hw_mbarrier_pending(f);
    f->ended = over ? f->awaited : NULL;
    f->at_once = NULL;
    if (over)
        f->awaited = NULL;
}

/* Warp w's turn has ended. True: something moved on. */
static inline bool settle(hw_block *b, uint32_t w, uint32_t status)
{
    take_turn_away(&b->frames[w], status);
    if (status == HW_WARP_BARRIER) {
        wait_at(b, w);
        return true;
    }
    if (status != HW_WARP_YIELD)
        b->frames[w].awaited = NULL;
    switch (status) {
    case HW_WARP_DONE:
        end_warps(b, UINT64_C(1) << w);
        return true;
    case HW_WARP_MET:
        meet(b, UINT64_C(1) << w);
        return true;
    case HW_WARP_DEOPT:
        to_slow_variant(b, w);
        return true;
    case HW_WARP_PARKED:
        hw_block_parked(b, w);
        return true;
    default:
        return false;
    }
}

/* One turn of warp w. */
static inline bool turn(hw_block *b, uint32_t w)
{
    b->worker->turns.running = &b->frames[w];
    b->frames[w].awaited = NULL;
    return settle(b, w, b->code[w](&b->frames[w]));
}

static bool stopped(const hw_block *b)
{
    return __atomic_load_n(&b->stop, __ATOMIC_RELAXED) != 0;
}

/* No warp ever waits: one after the other. */
static hw_outcome run_through(hw_block *b)
{
    hw_warp_fn *code = b->began->run;
    uint32_t calls = b->began->whole_block ? 1 : b->nwarps;
    for (uint32_t w = 0; w < calls; w++) {
        b->worker->turns.running = &b->frames[w];
        code(&b->frames[w]);
    }
    b->live = b->runnable = 0;
    return HW_BLOCK_ENDED;
}

/* Whose turn it is among the warps of a pass. On hardware they move together, and programs leave
 * more to that than they should. At the start the first warp goes first: what it alone sets up is
 * there when the others come. Once they have met it goes last: what it alone writes for all (a
 * block's sum, a flag) must not overtake the others' reads of the value before. These keep their
 * order, in which they go through memory upwards: the other way round costs tiled kernels a sixth. */
static inline uint32_t next_of(const hw_block *b, uint64_t pass)
{
    uint64_t others = pass & ~(uint64_t)b->met;
    return (uint32_t)__builtin_ctzll(others ? others : pass);
}

/* The order of a pass as links from frame to frame; a pass of none takes them away. */
static void link_frames(hw_block *b, uint64_t pass)
{
    hw_frame *before = NULL;
    if (b->linked == pass && pass & (pass - 1)) { /* only the first warp's turn is another */
        hw_frame *first = &b->frames[__builtin_ctzll(pass)],
                 *end = &b->frames[63 - __builtin_clzll(pass)];
        end->next = b->met ? first : NULL;
        first->next = b->met ? NULL : &b->frames[__builtin_ctzll(pass & (pass - 1))];
        b->linked_met = b->met;
        return;
    }
    for (uint64_t left = b->linked & ~pass; left; left &= left - 1)
        b->frames[__builtin_ctzll(left)].next = NULL;
    for (uint64_t left = pass; left;) {
        uint32_t w = next_of(b, left);
        left &= ~(UINT64_C(1) << w);
        if (before)
            before->next = &b->frames[w];
        before = &b->frames[w];
    }
    if (before)
        before->next = NULL;
    b->linked = pass;
    b->linked_met = b->met;
}

/* Turns of warps that hand on, beginning with the first of `left`; returns those that had none. */
static uint64_t relay(hw_block *b, uint64_t left, bool *moved)
{
    hw_turns *t = &b->worker->turns;
    t->running = &b->frames[next_of(b, left)];
    t->over = 0;
    uint32_t status = b->began->run(t->running), w = (uint32_t)(t->running - b->frames);
    uint64_t last = UINT64_C(1) << w, before = last - 1;
    if (b->met) /* the first warp goes last */
        before = (w ? before : UINT64_MAX) & ~UINT64_C(1);
    before &= left;
    left &= ~(before | last);
    if (status == HW_WARP_DONE)
        t->over |= last;
    uint64_t met = (before | (status == HW_WARP_MET ? last : 0)) & ~t->over;
    if (met)
        meet(b, met);
    if (t->over)
        end_warps(b, t->over);
    *moved |= (met | t->over) != 0;
    if (status != HW_WARP_MET && status != HW_WARP_DONE)
        *moved |= settle(b, w, status);
    return left;
}

/* A turn of each warp that can run, but for those whose mbarrier has not changed: these only if `all`. */
static inline bool pass(hw_block *b, bool all)
{
    bool moved = false, relays = b->began->relays && !b->mixed;
    uint64_t left = b->runnable;
    if (b->linked != (relays ? left : 0) || b->linked_met != b->met)
        link_frames(b, relays ? left : 0);
    while (left) {
        if (relays && !b->mixed) {
            left = relay(b, left, &moved);
            continue;
        }
        uint32_t w = next_of(b, left);
        left &= ~(UINT64_C(1) << w);
        if (!all && b->frames[w].awaited && hw_mbarrier_pending(&b->frames[w]))
            continue;
        if (b->mixed)
            b->frames[w].next = NULL;
        moved |= turn(b, w);
    }
    moved |= b->worker->progress;
    b->worker->progress = false;
    return moved;
}

hw_outcome hw_block_run(hw_block *b)
{
    if (!b->began->suspends)
        return run_through(b);
    bool moved_once = false;
    while (b->live) {
        bool moved = false;
        if (b->runnable)
            moved = pass(b, false) || (b->live && pass(b, true));
        else if (!hw_cluster_may_go_on(b))
            hw_block_deadlock(b);
        b->met = true;
        if (stopped(b))
            return HW_BLOCK_ABANDONED;
        moved_once |= moved;
        if (!moved) {
            if (moved_once) /* so its worker has not been waiting since before */
                b->worker->stalls = 0;
            return HW_BLOCK_STALLED;
        }
    }
    return HW_BLOCK_ENDED;
}

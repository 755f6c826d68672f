/* SPDX-License-Identifier: Apache-2.0
 * A worker: takes blocks in ascending order and carries them out. A block that only waits for other
 * blocks is set aside and others are opened beside it, so that blocks which wait for one another
 * all make progress whatever the number of workers. */
#include "count.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* How long a block of an ordinary launch may wait for others before more blocks are opened: it
 * usually waits for a block that another worker is about to end. */
static const uint64_t PATIENCE_NS = 1000 * 1000;
/* A lane may be waiting for another of its warp when its block stalled this long: with other workers that may still
 * bring what it waits for, and without. */
static const uint64_t GIVE_UP_NS = UINT64_C(20) * 1000 * 1000, ALONE_NS = 500 * 1000;
/* One lane that spins usually waits for other blocks, and leaving for slow code costs. */
static const uint64_t SINGLE_NS = UINT64_C(500) * 1000 * 1000;
/* All of a cluster wait at barriers and mbarriers of their own, for so long and seen so often in a row that none of them
 * will give up by a clock or by counting its tries. */
static const uint64_t STARVED_NS = UINT64_C(10) * 1000 * 1000 * 1000;
enum { STARVED_LOOKS = 1000 };
/* How long blocks below a faulty one may go on. */
static const uint64_t GRACE_NS = UINT64_C(200) * 1000 * 1000;

/* ---- floating-point control ---- */

static uint32_t fp_enter(bool flush)
{
#ifdef __x86_64__
    uint32_t old = _mm_getcsr();
    _mm_setcsr(0x1f80u | (flush ? 0x8040u : 0)); /* nearest, exceptions masked; FTZ and DAZ */
    return old;
#else
    (void)flush;
    return 0;
#endif
}

static void fp_leave(uint32_t old)
{
#ifdef __x86_64__
    _mm_setcsr(old);
#else
    (void)old;
#endif
}

/* ---- taking blocks ---- */

static bool take_index(hw_worker *k, uint64_t *index)
{
    hw_run *r = k->run;
    if (k->chunk_next == k->chunk_end) {
        hw_tier_look(k);
        uint64_t at = atomic_fetch_add(&r->next, r->chunk);
        if (at >= r->nblocks)
            return false;
        k->chunk_next = at;
        k->chunk_end = at + r->chunk < r->nblocks ? at + r->chunk : r->nblocks;
    }
    if (k->chunk_next >= atomic_load_explicit(&r->stop_from, memory_order_relaxed))
        return false;
    *index = k->chunk_next;
    k->chunk_next += r->cluster_blocks;
    return true;
}

static void add_block(hw_worker *k, hw_block *b)
{
    pthread_mutex_lock(&k->run->lock);
    if (k->nblocks == k->blocks_cap) {
        uint32_t cap = k->blocks_cap ? k->blocks_cap * 2 : 4;
        hw_block **blocks = realloc(k->blocks, cap * sizeof(hw_block *));
        if (!blocks)
            hw_oom(cap * sizeof(hw_block *));
        k->blocks = blocks;
        k->blocks_cap = cap;
    }
    k->blocks[k->nblocks++] = b;
    if (atomic_load(&k->run->stop_from) == 0) /* hw_run_stop did not see this one */
        __atomic_store_n(&b->stop, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&k->run->lock);
}

static hw_block *idle_block(hw_worker *k)
{
    for (uint32_t i = 0; i < k->nblocks; i++)
        if (!k->blocks[i]->busy)
            return k->blocks[i];
    hw_block *b = NULL;
    hw_status s = hw_block_open(k->run, k, NULL, 0, &b);
    if (s == HW_OK)
        add_block(k, b);
    else if (k->nblocks == 0) /* else the blocks that are open will do */
        atomic_store(&k->run->no_room, s);
    return b;
}

static bool none_left(const hw_worker *k)
{
    return k->chunk_next == k->chunk_end && atomic_load(&k->run->next) >= k->run->nblocks;
}

static hw_cluster *idle_cluster(hw_worker *k)
{
    for (hw_cluster *c = k->clusters; c; c = c->next)
        if (hw_cluster_idle(c))
            return c;
    hw_cluster *c = NULL;
    hw_status s = hw_cluster_open(k->run, k, &c);
    if (s == HW_OK) {
        for (uint32_t i = 0; i < c->nblocks; i++)
            add_block(k, c->block[i]);
        c->next = k->clusters;
        k->clusters = c;
    } else if (!k->clusters) {
        atomic_store(&k->run->no_room, s);
    }
    return c;
}

/* All blocks of the next cluster. */
static hw_block *start_cluster(hw_worker *k)
{
    uint64_t index;
    hw_cluster *c = none_left(k) ? NULL : idle_cluster(k);
    if (!c || !take_index(k, &index))
        return NULL;
    for (uint32_t i = 0; i < c->nblocks; i++)
        hw_block_start(c->block[i], index + i);
    return c->block[0];
}

/* Start the next block, if there is one and room for it. */
static hw_block *start_next(hw_worker *k)
{
    if (k->run->cluster_blocks > 1)
        return start_cluster(k);
    uint64_t index;
    hw_block *b = none_left(k) ? NULL : idle_block(k);
    if (!b || !take_index(k, &index))
        return NULL;
    hw_block_start(b, index);
    return b;
}

static hw_block *next_busy(hw_worker *k)
{
    for (uint32_t n = 0; n < k->nblocks; n++) {
        hw_block *b = k->blocks[k->turn++ % k->nblocks];
        if (b->busy)
            return b;
    }
    return NULL;
}

/* Blocks at or above a fault end without further ado. */
static void drop_abandoned(hw_worker *k)
{
    uint64_t from = atomic_load(&k->run->stop_from);
    if (from == UINT64_MAX)
        return;
    for (uint32_t i = 0; i < k->nblocks; i++)
        if (k->blocks[i]->busy && atomic_load(&k->blocks[i]->index) >= from)
            k->blocks[i]->busy = false;
}

/* Blocks of an ordinary launch that this worker may hold: no more than would be on the device. */
static bool has_room(const hw_worker *k)
{
    const hw_run *r = k->run;
    const hw_device *d = r->x->dev;
    uint64_t per_sm = d->compute.max_threads_per_sm / r->nthreads;
    if (per_sm > d->occupancy.max_blocks_per_sm)
        per_sm = d->occupancy.max_blocks_per_sm;
    return k->nblocks < per_sm * d->compute.sm_count / r->nworkers + 1;
}

/* Waited too long: warps that spin go on in code where lanes need not wait for each other. */
static void give_up(hw_worker *k, bool single)
{
    for (uint32_t i = 0; i < k->nblocks; i++)
        if (k->blocks[i]->busy)
            hw_block_give_up(k->blocks[i], single);
}

static void give_up_after(hw_worker *k, uint64_t stalled)
{
    hw_run *r = k->run;
    bool alone = stalled > ALONE_NS && atomic_load(&r->active) == 1;
    if (stalled > GIVE_UP_NS || alone || atomic_load(&r->slow))
        give_up(k, stalled > SINGLE_NS || alone);
}

static void find_starved(hw_worker *k)
{
    for (uint32_t i = 0; i < k->nblocks; i++) {
        hw_block *b = k->blocks[i];
        b->starved = b->busy && hw_cluster_starves(b) ? b->starved + 1 : 0;
        if (b->starved > STARVED_LOOKS)
            hw_block_deadlock(b);
    }
}

/* After each round of all open blocks: first others' turn, later a little sleep. */
static void rest(uint32_t rounds)
{
    if (rounds < 1000)
        sched_yield();
    else
        nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

/* Every open block of this worker waits for others. */
static hw_block *when_stalled(hw_worker *k)
{
    hw_run *r = k->run;
    uint64_t now = hw_now_ns();
    uint64_t fault_ns = atomic_load(&r->fault_ns);
    if (k->stalls++ == 0)
        k->stalled_since_ns = now;
    uint64_t stalled = now - k->stalled_since_ns;
    give_up_after(k, stalled);
    if (stalled > STARVED_NS)
        find_starved(k);
    if (fault_ns && now - fault_ns > GRACE_NS)
        hw_run_stop(r, 0);
    if (r->l->cooperative || (now - k->stalled_since_ns > PATIENCE_NS && has_room(k))) {
        hw_block *b = start_next(k);
        if (b && r->l->cooperative) /* not all that are waited for had begun */
            k->stalls = 0;
        if (b)
            return b;
    }
    if (k->stalls % k->nblocks == 0)
        rest(k->stalls / k->nblocks);
    return next_busy(k);
}

static void work(hw_worker *k)
{
    hw_block *b = next_busy(k);
    if (!b)
        b = start_next(k);
    while (b) {
        k->current = b;
        k->in_code = 1;
        hw_outcome o = hw_block_run(b);
        k->in_code = 0;
        drop_abandoned(k);
        if (o == HW_BLOCK_STALLED && b->busy) {
            b = when_stalled(k);
            continue;
        }
        if (k->tally)
            hw_count_empty(k->tally);
        if (k->tally && o == HW_BLOCK_ENDED)
            hw_count_ended(k->tally, atomic_load_explicit(&b->index, memory_order_relaxed));
        b->busy = false;
        k->stalls = 0;
        b = next_busy(k);
        if (!b)
            b = start_next(k);
    }
}

/* The worker with the fault waits a little for the blocks below, then stops them too. */
static void end_of_grace(hw_run *r)
{
    uint64_t start = hw_now_ns();
    while (atomic_load(&r->active) > 0 && hw_now_ns() - start < GRACE_NS)
        nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
    hw_run_stop(r, 0);
}

void hw_worker_main(void *run, unsigned index)
{
    hw_run *r = run;
    hw_worker *k = &r->workers[index];
    if (atomic_load(&r->next) >= r->nblocks)
        return;
    hw_fault_thread_begin();
    hw_fault_set_worker(k);
    hw_tier_enter(k);
    atomic_fetch_add(&r->active, 1);
    uint32_t fp = fp_enter(r->code->flush_all);
    volatile bool faulty = false;
    /* Each fault comes back here; blocks below it are then carried on with. */
    if (sigsetjmp(k->escape, 0) != 0) {
        k->in_code = 0;
        faulty |= k->raised.status != HW_F_TIMEOUT;
        fp_leave(fp);
        hw_fault_keep(k);
        if (k->tally)
            hw_count_empty(k->tally);
        k->current->busy = false;
        drop_abandoned(k);
        fp_enter(r->code->flush_all);
    }
    work(k);
    fp_leave(fp);
    hw_tier_leave(k);
    hw_fault_set_worker(NULL);
    atomic_fetch_sub(&r->active, 1);
    if (faulty)
        end_of_grace(r);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters: blocks that run at the same time, see each other's shared memory and meet at a barrier (PTX ISA 5.1.7, "barrier.cluster").
 * One worker carries out all blocks of a cluster, in turn, so their shared memory needs no locks either. It lies in
 * one piece, a window of 16 MiB a block. A block without a cluster is one alone.
 */
#include "mbarrier.h"

#include <stdlib.h>

static const uint64_t WINDOW = UINT64_C(1) << HW_WINDOW_BITS;

/* ---- room ---- */

static hw_cluster *take_spare(hw_exec *x, uint32_t n)
{
    pthread_mutex_lock(&x->lock);
    hw_cluster **at = &x->spare_clusters, *c;
    while (*at && (*at)->nblocks != n)
        at = &(*at)->next;
    c = *at;
    if (c)
        *at = c->next;
    pthread_mutex_unlock(&x->lock);
    return c;
}

/* The windows start where shared memory does, somewhere in a slot: what follows up to the end of the last is nobody else's. */
static hw_status reserve(hw_exec *x, hw_cluster *c)
{
    HW_TRY(hw_slots_ready(x));
    uint64_t bytes = c->nblocks * WINDOW + x->slot_bytes;
    HW_TRY(hw_mem_alloc(x->mem, bytes, 0, HW_MEM_INTERNAL, 0, &c->memory));
    HW_TRY(hw_mem_close(x->mem, c->memory, bytes, true));
    for (uint32_t i = 0; i < c->nblocks; i++)
        HW_TRY(hw_mem_close(x->mem, c->memory + i * WINDOW, x->slot_bytes, false));
    return HW_OK;
}

static void cluster_free(hw_exec *x, hw_cluster *c)
{
    if (c->memory)
        hw_mem_free(x->mem, c->memory);
    free(c);
}

static hw_status spare_or_new(hw_exec *x, uint32_t n, hw_cluster **out)
{
    *out = take_spare(x, n);
    if (*out)
        return HW_OK;
    hw_cluster *c = calloc(1, sizeof *c);
    if (!c)
        return HW_E_NOMEM;
    c->nblocks = n;
    hw_status s = reserve(x, c);
    if (s != HW_OK)
        cluster_free(x, c);
    else
        *out = c;
    return s;
}

hw_status hw_cluster_open(hw_run *r, hw_worker *k, hw_cluster **out)
{
    hw_cluster *c;
    HW_TRY(spare_or_new(r->x, r->cluster_blocks, &c));
    for (uint32_t i = 0; i < c->nblocks; i++) {
        hw_status s = hw_block_open(r, k, c, i, &c->block[i]);
        if (s == HW_OK)
            continue;
        while (i > 0)
            hw_block_give_back(c->block[--i]);
        hw_cluster_give_back(r->x, c);
        return s;
    }
    *out = c;
    return HW_OK;
}

void hw_cluster_give_back(hw_exec *x, hw_cluster *c)
{
    pthread_mutex_lock(&x->lock);
    c->next = x->spare_clusters;
    x->spare_clusters = c;
    pthread_mutex_unlock(&x->lock);
}

void hw_clusters_free(hw_exec *x)
{
    while (x->spare_clusters) {
        hw_cluster *c = x->spare_clusters;
        x->spare_clusters = c->next;
        cluster_free(x, c);
    }
}

/* ---- places ---- */

/* Clusters come in order (x fastest), the blocks of one in order of rank. */
void hw_cluster_place(const hw_run *r, uint64_t index, uint32_t ctaid[3])
{
    const uint32_t *size = r->proto.cluster, *grid = r->l->grid;
    uint64_t cluster = index / r->cluster_blocks, rank = index % r->cluster_blocks;
    for (int i = 0; i < 3; i++) {
        uint32_t n = grid[i] / size[i];
        ctaid[i] = (uint32_t)(cluster % n) * size[i] + (uint32_t)(rank % size[i]);
        cluster /= n;
        rank /= size[i];
    }
}

bool hw_cluster_idle(const hw_cluster *c)
{
    for (uint32_t i = 0; i < c->nblocks; i++)
        if (c->block[i]->busy)
            return false;
    return true;
}

/* ---- the barrier: each lane that has not ended arrives, then all that wait go on ---- */

static hw_block *const *mates_of(hw_block *const *b, uint32_t *n)
{
    *n = (*b)->cluster ? (*b)->cluster->nblocks : 1;
    return (*b)->cluster ? (*b)->cluster->block : b;
}

static bool all_came(const hw_block *b)
{
    for (uint64_t left = b->live; left; left &= left - 1) {
        uint32_t w = (uint32_t)__builtin_ctzll(left);
        if (b->frames[w].lanes & ~b->at_cluster.came[w])
            return false;
    }
    return true;
}

static void release(hw_block *b)
{
    b->runnable |= b->at_cluster.waiting & b->live;
    for (uint32_t w = 0; w < b->nwarps; w++) {
        uint32_t parked = b->at_cluster.parked[w];
        b->frames[w].blocked &= ~parked;
        if (parked)
            b->runnable |= b->live & UINT64_C(1) << w;
    }
    memset(&b->at_cluster, 0, sizeof b->at_cluster);
}

void hw_cluster_check(hw_block *b)
{
    uint32_t n;
    if (!all_came(b))
        return;
    hw_block *const *mates = mates_of(&b, &n);
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        if (!all_came(mates[i]))
            return;
        any |= mates[i]->at_cluster.used;
    }
    if (!any)
        return;
    for (uint32_t i = 0; i < n; i++)
        release(mates[i]);
    b->worker->progress = true;
}

void hw_cluster_arrive(hw_frame *f, uint32_t lanes)
{
    hw_block *b = f->owner;
    b->at_cluster.used = true;
    b->at_cluster.came[f->warp] |= lanes;
    hw_cluster_check(b);
}

/* Lanes that have not arrived in this phase have seen theirs complete. */
void hw_cluster_wait(hw_block *b, uint32_t w)
{
    if (!(b->at_cluster.came[w] & b->frames[w].bar_lanes))
        return;
    b->at_cluster.waiting |= UINT64_C(1) << w;
    b->runnable &= ~(UINT64_C(1) << w);
    hw_cluster_check(b); /* lanes may have ended since they came by */
}

void hw_cluster_park(hw_frame *f, uint32_t lanes)
{
    hw_block *b = f->owner;
    lanes &= b->at_cluster.came[f->warp];
    b->at_cluster.parked[f->warp] |= lanes;
    f->blocked |= lanes;
    hw_cluster_check(b);
}

/* Has one of the cluster's blocks been stopped? */
static bool has_stopped(hw_block *b)
{
    uint32_t n;
    hw_block *const *mates = mates_of(&b, &n);
    return n > 1 && atomic_load(&mates[n - 1]->index) >= atomic_load(&b->run->stop_from);
}

/* Nobody in b can go on: can another block of the cluster, or has one been stopped? */
bool hw_cluster_may_go_on(hw_block *b)
{
    uint32_t n;
    hw_block *const *mates = mates_of(&b, &n);
    if (has_stopped(b))
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (mates[i]->busy && mates[i]->runnable)
            return true;
    return false;
}

hw_block *hw_cluster_next_live(hw_block *b, uint32_t *from)
{
    uint32_t n;
    hw_block *const *mates = mates_of(&b, &n);
    while (*from < n) {
        hw_block *m = mates[(*from)++];
        if (m->busy && m->live)
            return m;
    }
    return NULL;
}

static bool starves(const hw_block *b)
{
    for (uint64_t left = b->live & b->runnable; left; left &= left - 1)
        if (!hw_mbarrier_starves(&b->frames[__builtin_ctzll(left)]))
            return false;
    return true;
}

bool hw_cluster_starves(hw_block *b)
{
    uint32_t next = 0;
    if (has_stopped(b))
        return false;
    for (hw_block *m; (m = hw_cluster_next_live(b, &next));)
        if (!starves(m))
            return false;
    return true;
}

uint32_t hw_cluster_waiting(const hw_block *b)
{
    uint32_t n = (uint32_t)__builtin_popcountll(b->at_cluster.waiting);
    for (uint32_t w = 0; w < b->nwarps; w++)
        n += b->at_cluster.parked[w] != 0;
    return n;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor memory given out and taken back (PTX ISA 9.7.16.7). A warp asks (helper TMEM), is given the lowest free columns or waits at the barrier
 * that follows. In a pair of blocks one warp of each asks, and both get the same columns.
 */
#include "tmem.h"

#include <stdlib.h>

static uint64_t bit(uint32_t i)
{
    return UINT64_C(1) << i;
}

/* ---- the memory ---- */

static hw_tmem *memory_of(hw_frame *f)
{
    hw_block *b = f->owner;
    if (!b->tmem && !(b->tmem = calloc(1, sizeof *b->tmem)))
        hw_raise(f, HW_E_NOMEM, f->fault_loc, "out of host memory");
    return b->tmem;
}

void hw_tmem_start(hw_block *b)
{
    hw_tmem *t = b->tmem;
    t->taken = t->starts = t->group = 0;
    t->relinquished = false;
    t->asking = t->waiting = 0;
    memset(t->request, 0, sizeof t->request);
}

/* "All of the tensor memory that was allocated in a kernel must be deallocated before the kernel exits." */
void hw_tmem_end(hw_block *b, hw_frame *last)
{
    const hw_tmem *t = b->tmem;
    if (t->taken)
        hw_raise(last, HW_F_TENSOR_LEAK, last->fault_loc,
                 "the block ended with %d columns of its tensor memory not deallocated, from "
                 "column %d on",
                 __builtin_popcount(t->taken) * HW_TMEM_UNIT,
                 __builtin_ctz(t->taken) * HW_TMEM_UNIT);
}

hw_block *hw_tmem_peer(hw_frame *f, const char *what)
{
    hw_block *b = f->owner;
    hw_block *peer =
        b->cluster && (b->rank ^ 1) < b->cluster->nblocks ? b->cluster->block[b->rank ^ 1] : NULL;
    if (!peer)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "%s with .cta_group::2 in a block that is none of a pair of a cluster", what);
    if (!peer->busy || !peer->live)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "%s with .cta_group::2 after the other block of the pair has ended", what);
    return peer;
}

void hw_tmem_join(hw_frame *f, uint32_t group)
{
    hw_tmem *t = memory_of(f);
    if (t->group && t->group != group)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "tcgen05: .cta_group::%u after .cta_group::%u in one block", group, t->group);
    t->group = group;
}

hw_tmem *hw_tmem_need(hw_frame *f, hw_block *b, const char *what, uint32_t column, uint32_t columns)
{
    uint32_t last = column + columns - 1, taken = b->tmem ? b->tmem->taken : 0;
    if (columns == 0 || last >= HW_TMEM_COLUMNS)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "%s: columns %u to %u of tensor memory, which has %d", what, column, last,
                 HW_TMEM_COLUMNS);
    for (uint32_t u = column / HW_TMEM_UNIT; u <= last / HW_TMEM_UNIT; u++)
        if (!(taken >> u & 1))
            hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                     "%s: columns %u to %u of tensor memory, of which those from %u on are not "
                     "allocated",
                     what, column, last, u * HW_TMEM_UNIT < column ? column : u * HW_TMEM_UNIT);
    return b->tmem;
}

/* ---- giving out ---- */

/* The lowest units that are free in both; HW_TMEM_UNITS: none. */
static uint32_t find_free(uint32_t taken, uint32_t units)
{
    uint32_t mask = (UINT32_C(1) << units) - 1;
    for (uint32_t u = 0; u + units <= HW_TMEM_UNITS; u++)
        if (!(taken >> u & mask))
            return u;
    return HW_TMEM_UNITS;
}

static void let_go(hw_block *b, uint32_t w)
{
    hw_tmem *t = b->tmem;
    hw_tmem_request *r = &t->request[w];
    b->frames[w].blocked &= ~r->parked;
    if ((t->waiting & bit(w)) || r->parked)
        b->runnable |= b->live & bit(w);
    t->asking &= ~bit(w);
    t->waiting &= ~bit(w);
    *r = (hw_tmem_request){ 0 };
    b->worker->progress = true;
}

static void give(hw_block *b, uint32_t w, uint32_t unit)
{
    hw_tmem *t = b->tmem;
    uint32_t units = t->request[w].columns / HW_TMEM_UNIT, address = unit * HW_TMEM_UNIT;
    t->taken |= ((UINT32_C(1) << units) - 1) << unit;
    t->starts |= UINT32_C(1) << unit;
    t->units[unit] = units;
    memcpy((void *)(uintptr_t)t->request[w].to, &address, sizeof address);
    let_go(b, w);
}

static bool serve_one(hw_block *b, uint32_t w)
{
    uint32_t unit = find_free(b->tmem->taken, b->tmem->request[w].columns / HW_TMEM_UNIT);
    if (unit < HW_TMEM_UNITS)
        give(b, w, unit);
    return unit < HW_TMEM_UNITS;
}

/* Of a pair: a warp of the other block must ask for as much. */
static bool serve_pair(hw_block *b, uint32_t w, hw_block *peer)
{
    if (!peer || !peer->tmem || !peer->tmem->asking)
        return false;
    uint32_t v = (uint32_t)__builtin_ctzll(peer->tmem->asking);
    if (peer->tmem->request[v].columns != b->tmem->request[w].columns)
        return false;
    uint32_t unit =
        find_free(b->tmem->taken | peer->tmem->taken, b->tmem->request[w].columns / HW_TMEM_UNIT);
    if (unit == HW_TMEM_UNITS)
        return false;
    give(b, w, unit);
    give(peer, v, unit);
    return true;
}

/* In order of warps; who cannot be served holds back those behind. */
static void serve(hw_block *b)
{
    while (b->tmem && b->tmem->asking) {
        uint32_t w = (uint32_t)__builtin_ctzll(b->tmem->asking);
        hw_block *peer = b->cluster && (b->rank ^ 1) < b->cluster->nblocks
                             ? b->cluster->block[b->rank ^ 1]
                             : NULL;
        if (b->tmem->request[w].group == 2 ? !serve_pair(b, w, peer) : !serve_one(b, w))
            return;
    }
}

static void check_columns(hw_frame *f, const char *what, uint32_t n)
{
    if (n < HW_TMEM_UNIT || n > HW_TMEM_COLUMNS || (n & (n - 1)))
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "%s of %u columns, which is no power of two from %d to %d", what, n, HW_TMEM_UNIT,
                 HW_TMEM_COLUMNS);
}

static void ask(hw_frame *f, uint64_t to, uint32_t columns, uint32_t group)
{
    hw_tmem *t = memory_of(f);
    check_columns(f, "tcgen05.alloc", columns);
    if (t->relinquished)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "tcgen05.alloc after tcgen05.relinquish_alloc_permit");
    if (group == 2)
        hw_tmem_peer(f, "tcgen05.alloc");
    hw_need_memory(f, to, sizeof(uint32_t), sizeof(uint32_t));
    t->request[f->warp] =
        (hw_tmem_request){ .to = to, .columns = columns, .group = group, .asked = true };
    t->asking |= bit(f->warp);
    serve(f->owner);
}

static void take_back(hw_frame *f, uint64_t address, uint32_t columns)
{
    hw_block *b = f->owner;
    hw_tmem *t = memory_of(f);
    uint32_t unit = (uint32_t)(address & 0xffff) / HW_TMEM_UNIT;
    check_columns(f, "tcgen05.dealloc", columns);
    bool begins = !(address >> 16) && address % HW_TMEM_UNIT == 0 && unit < HW_TMEM_UNITS &&
                  (t->starts >> unit & 1);
    if (!begins || t->units[unit] * HW_TMEM_UNIT != columns)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "tcgen05.dealloc of %u columns at 0x%llx, which is no allocation", columns,
                 (unsigned long long)address);
    t->starts &= ~(UINT32_C(1) << unit);
    t->taken &= ~(((UINT32_C(1) << t->units[unit]) - 1) << unit);
    serve(b);
}

/* One warp does it, all lanes with the same numbers. */
void hw_h_tmem(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    static const char *const names[] = { "tcgen05.alloc", "tcgen05.dealloc",
                                         "tcgen05.relinquish_alloc_permit" };
    const uint64_t *where = io->src[0];
    const uint32_t *columns = io->src[1];
    hw_tmem_what what = (hw_tmem_what)(aux & 255);
    uint32_t group = (uint32_t)(aux >> HW_TMEM_GROUP);
    if (lanes != UINT32_MAX)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "%s: not all threads of the warp take part", names[what]);
    for (unsigned l = 1; l < HW_WARP_LANES; l++)
        if (columns[l] != columns[0] || where[l] != where[0])
            hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                     "%s: the operands of a warp's lanes differ", names[what]);
    hw_tmem_join(f, group);
    if (what == HW_TMEM_ALLOC)
        ask(f, where[0], columns[0], group);
    else if (what == HW_TMEM_FREE)
        take_back(f, where[0], columns[0]);
    else
        memory_of(f)->relinquished = true;
}

/* ---- the barrier behind an allocation ---- */

void hw_tmem_wait(hw_block *b, uint32_t w)
{
    if (!b->tmem || !(b->tmem->asking & bit(w)))
        return;
    b->tmem->waiting |= bit(w);
    b->runnable &= ~bit(w);
}

void hw_tmem_park(hw_frame *f, uint32_t lanes)
{
    hw_block *b = f->owner;
    if (!b->tmem || !(b->tmem->asking & bit(f->warp)))
        return;
    b->tmem->request[f->warp].parked |= lanes;
    f->blocked |= lanes;
}

uint64_t hw_tmem_waiting(const hw_block *b)
{
    uint64_t warps = b->tmem ? b->tmem->waiting : 0;
    for (uint32_t w = 0; b->tmem && w < b->nwarps; w++)
        if (b->tmem->request[w].parked)
            warps |= bit(w);
    return warps;
}

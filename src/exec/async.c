/* SPDX-License-Identifier: Apache-2.0
 * Bulk copies and reductions (PTX ISA 9.7.9.25): complete when the helper returns, and told to the mbarrier. */
#include "count.h"
#include "mbarrier.h"

enum { BULK_ALIGN = 16 };

/* ---- what may be touched ---- */

void hw_need_memory(hw_frame *f, uint64_t addr, uint64_t bytes, uint32_t align)
{
    if (addr % align)
        hw_raise_address(f, HW_F_MISALIGNED_ADDRESS, f->fault_loc, addr);
    uint64_t at = addr - f->range_lo;
    bool inside = at < f->range_size && f->range_size - at >= bytes;
    if (!inside && !hw_mem_is_registered(addr, bytes))
        hw_raise_address(f, HW_F_ILLEGAL_ADDRESS, f->fault_loc, addr);
}

uint64_t hw_in_block(const hw_frame *f, uint64_t addr, uint32_t rank)
{
    uint64_t offset = (addr - f->cluster_base) & ((UINT64_C(1) << HW_WINDOW_BITS) - 1);
    return f->cluster_base + ((uint64_t)rank << HW_WINDOW_BITS) + offset;
}

/* ---- one copy ---- */

typedef struct bulk {
    uint64_t to, from, barrier;
    uint32_t bytes, mask;
} bulk;

static bulk bulk_of(const hw_lane_arrays *io, uint32_t lane)
{
    return (bulk){
        .to = ((const uint64_t *)io->src[0])[lane],
        .from = ((const uint64_t *)io->src[1])[lane],
        .bytes = ((const uint32_t *)io->src[2])[lane],
        .barrier = ((const uint64_t *)io->src[3])[lane],
        .mask = ((const uint32_t *)io->src[4])[lane],
    };
}

static void copy_masked(uint8_t *to, const uint8_t *from, uint32_t bytes, uint32_t mask)
{
    for (uint32_t i = 0; i < bytes; i++)
        if ((mask >> (i % BULK_ALIGN)) & 1)
            to[i] = from[i];
}

static void move(hw_frame *f, const bulk *b, uint64_t aux)
{
    uint8_t *to = (uint8_t *)(uintptr_t)b->to;
    const uint8_t *from = (const uint8_t *)(uintptr_t)b->from;
    uint32_t align = aux & HW_BULK_FILL ? 8 : BULK_ALIGN;
    hw_need_memory(f, b->to, b->bytes, align);
    if (b->bytes % align)
        hw_raise(f, HW_F_MISALIGNED_ADDRESS, f->fault_loc,
                 "a bulk copy of %u bytes, which is no multiple of %u", b->bytes, align);
    if (aux & HW_BULK_FILL) {
        memset(to, 0, b->bytes);
        return;
    }
    hw_need_memory(f, b->from, b->bytes, BULK_ALIGN);
    if (aux & HW_BULK_REDUCE) {
        if (!hw_reduce((hw_wir_atom)(aux >> HW_BULK_OPERATION & 255),
                       (hw_wir_type)(aux >> HW_BULK_TYPE & 255), to, from, b->bytes))
            hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                     "this reduction is not one of cp.reduce.async.bulk");
    } else if (aux & HW_BULK_MASK) {
        copy_masked(to, from, b->bytes, b->mask);
    } else {
        memmove(to, from, b->bytes);
    }
}

static void move_to_all(hw_frame *f, const bulk *b, uint64_t aux)
{
    uint32_t blocks = f->cluster[0] * f->cluster[1] * f->cluster[2];
    for (uint32_t left = b->mask; left; left &= left - 1) {
        uint32_t rank = (uint32_t)__builtin_ctz(left);
        if (rank >= blocks)
            hw_raise(f, HW_F_ILLEGAL_ADDRESS, f->fault_loc,
                     "a copy to block %u of a cluster of %u blocks", rank, blocks);
        bulk one = *b;
        one.to = hw_in_block(f, b->to, rank);
        move(f, &one, aux);
        hw_mbarrier_complete_tx(f, hw_in_block(f, b->barrier, rank), b->bytes);
    }
}

/* Addresses outside the shared memory of all blocks of the cluster are global. */
static bool is_global(const hw_frame *f, uint64_t address)
{
    uint32_t blocks = f->cluster[0] * f->cluster[1] * f->cluster[2];
    uint64_t bytes = blocks > 1 ? (uint64_t)blocks << HW_WINDOW_BITS : f->total_shared;
    return address - f->cluster_base >= bytes;
}

static uint32_t bytes_written(const bulk *b, uint64_t aux)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < BULK_ALIGN; i++)
        n += (b->mask >> i) & 1;
    return aux & HW_BULK_MASK ? b->bytes / BULK_ALIGN * n : b->bytes;
}

/* A multicast reads once. */
static void count(hw_frame *f, uint32_t lane, const bulk *b, uint64_t aux)
{
    bool reads = is_global(f, b->from), writes = is_global(f, b->to);
    hw_touched t = { 0 };
    if (!f->counters || aux & HW_BULK_FILL)
        return;
    if (reads) {
        hw_count_run(&t, b->from, b->bytes);
        hw_count_bulk(f, lane, false, &t);
    }
    if (writes) {
        hw_count_run(&t, b->to, b->bytes);
        t.bytes = bytes_written(b, aux);
        hw_count_bulk(f, lane, true, &t);
    }
}

void hw_h_bulk(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        f->fault_lanes = 1u << l;
        bulk b = bulk_of(io, l);
        if (aux & HW_BULK_MULTICAST) {
            move_to_all(f, &b, aux);
        } else {
            move(f, &b, aux);
            if (aux & HW_BULK_MBARRIER)
                hw_mbarrier_complete_tx(f, b.barrier, b.bytes);
        }
        count(f, l, &b, aux);
    }
    f->fault_lanes = 0;
}

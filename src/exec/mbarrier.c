/* SPDX-License-Identifier: Apache-2.0
 *
 * mbarrier: barriers in shared memory that count arrivals and bytes (PTX ISA 9.7.13.15).
 *
 * The 64 bits, ours alone: arrivals still pending (20), arrivals a phase expects (20), bytes still to come (22, signed), a bit that
 * is always 0, the phase. A state is the whole word before an arrival. Blocks of a cluster share a worker, so nobody else
 * looks while a word changes.
 */
#include "mbarrier.h"

#include <stdio.h>

enum { EXPECTED = 20, BYTES = 40, PHASE = 63, BYTES_BITS = 22 };

typedef struct mbarrier {
    int64_t pending, expected, bytes;
    uint64_t phase;
} mbarrier;

static mbarrier unpack(uint64_t word)
{
    return (mbarrier){
        .pending = (int64_t)(word & HW_MBAR_COUNT_MOST),
        .expected = (int64_t)(word >> EXPECTED & HW_MBAR_COUNT_MOST),
        .bytes = (int64_t)(word << (64 - BYTES - BYTES_BITS)) >> (64 - BYTES_BITS),
        .phase = word >> PHASE,
    };
}

static uint64_t pack(const mbarrier *m)
{
    return (uint64_t)m->pending | (uint64_t)m->expected << EXPECTED |
           ((uint64_t)m->bytes & ((UINT64_C(1) << BYTES_BITS) - 1)) << BYTES | m->phase << PHASE;
}

static uint64_t *word_at(hw_frame *f, uint64_t addr)
{
    hw_need_memory(f, addr, sizeof(uint64_t), sizeof(uint64_t));
    return (uint64_t *)(uintptr_t)addr;
}

static void store(hw_frame *f, uint64_t *word, const mbarrier *m)
{
    *word = pack(m);
    ((hw_block *)f->owner)->worker->progress = true;
}

static void check_counts(hw_frame *f, const mbarrier *m)
{
    if (m->pending < 0)
        hw_raise(f, HW_F_TRAP, f->fault_loc,
                 "mbarrier: %lld arrivals more than a phase of %lld expects",
                 (long long)-m->pending, (long long)m->expected);
    if (m->pending > HW_MBAR_COUNT_MOST || m->expected < 0 || m->expected > HW_MBAR_COUNT_MOST ||
        m->bytes > HW_MBAR_COUNT_MOST || m->bytes < -HW_MBAR_COUNT_MOST)
        hw_raise(f, HW_F_TRAP, f->fault_loc,
                 "mbarrier: a count out of range (%lld pending, %lld expected, %lld bytes)",
                 (long long)m->pending, (long long)m->expected, (long long)m->bytes);
}

/* Warps of the cluster that wait for the phase are told that it has ended: what becomes of the word before their turn comes,
 * a program that initialises it anew included, does not keep them. */
static void tell(hw_block *b, const uint64_t *word, uint64_t phase)
{
    uint32_t next = 0;
    for (hw_block *one; (one = hw_cluster_next_live(b, &next));)
        for (uint64_t left = one->live; left; left &= left - 1) {
            hw_frame *f = &one->frames[__builtin_ctzll(left)];
            if (f->awaited != word || f->awaited_phase != phase)
                continue;
            f->awaited = NULL;
            f->ended = word;
        }
}

static void settle(hw_frame *f, uint64_t *word, mbarrier *m)
{
    check_counts(f, m);
    if (m->pending == 0 && m->bytes == 0) {
        tell(f->owner, word, m->phase);
        m->phase ^= 1;
        m->pending = m->expected;
    }
    store(f, word, m);
}

static void start(hw_frame *f, uint64_t *word, uint32_t count)
{
    mbarrier m = { .pending = count, .expected = count };
    if (count == 0 || count > HW_MBAR_COUNT_MOST)
        hw_raise(f, HW_F_TRAP, f->fault_loc, "mbarrier.init with a count of %u", count);
    f->ended = NULL;
    store(f, word, &m);
}

static void change(hw_frame *f, uint64_t *word, hw_mbar kind, uint32_t count, uint32_t bytes)
{
    mbarrier m = unpack(*word);
    if (kind == HW_MBAR_COMPLETE)
        m.bytes -= bytes;
    else
        m.bytes += bytes;
    if (kind == HW_MBAR_DROP)
        m.expected -= count;
    if (kind == HW_MBAR_ARRIVE || kind == HW_MBAR_DROP)
        m.pending -= count;
    settle(f, word, &m);
}

/* By an operation that on hardware goes on while its warp does: who waits for its end gives others a turn first. */
static void change_later(hw_frame *f, uint64_t *word, hw_mbar kind, uint32_t count, uint32_t bytes)
{
    uint64_t phase = *word >> PHASE;
    change(f, word, kind, count, bytes);
    if (*word >> PHASE != phase)
        f->at_once = word;
}

static uint32_t u32_of(const hw_lane_arrays *io, uint32_t i, uint32_t lane)
{
    return ((const uint32_t *)io->src[i])[lane];
}

static uint64_t u64_of(const hw_lane_arrays *io, uint32_t i, uint32_t lane)
{
    return ((const uint64_t *)io->src[i])[lane];
}

void hw_h_mbarrier(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        f->fault_lanes = 1u << l;
        uint64_t *word = word_at(f, u64_of(io, 0, l));
        uint64_t before = *word;
        switch ((hw_mbar)aux) {
        case HW_MBAR_INIT:
            start(f, word, u32_of(io, 1, l));
            break;
        case HW_MBAR_INVAL: /* the memory may be used for anything */
        case HW_MBAR_TRACK: /* one arrival more, and it is there: at the end nothing has changed */
            break;
        default:
            change(f, word, (hw_mbar)aux, u32_of(io, 1, l), u32_of(io, 2, l));
            break;
        }
        if (io->ndst)
            ((uint64_t *)io->dst[0])[l] = before;
    }
    f->fault_lanes = 0;
}

void hw_mbarrier_complete_tx(hw_frame *f, uint64_t addr, uint32_t bytes)
{
    change_later(f, word_at(f, addr), HW_MBAR_COMPLETE, 0, bytes);
}

void hw_mbarrier_arrive(hw_frame *f, uint64_t addr)
{
    change_later(f, word_at(f, addr), HW_MBAR_ARRIVE, 1, 0);
}

bool hw_mbarrier_pending(const hw_frame *f)
{
    return *f->awaited >> PHASE == f->awaited_phase;
}

static uint64_t place(const hw_frame *f)
{
    return (uint64_t)(uintptr_t)f->awaited - f->cluster_base;
}

bool hw_mbarrier_starves(const hw_frame *f)
{
    uint64_t blocks = (uint64_t)f->cluster[0] * f->cluster[1] * f->cluster[2];
    return f->awaited && hw_mbarrier_pending(f) && !(f->lanes & ~f->blocked & ~f->awaited_lanes) &&
           place(f) >> HW_WINDOW_BITS < blocks;
}

int hw_mbarrier_say(const hw_frame *f, char *text, size_t size)
{
    mbarrier m = unpack(*f->awaited);
    uint64_t in_block = place(f) & ((UINT64_C(1) << HW_WINDOW_BITS) - 1);
    return snprintf(
        text, size,
        "the mbarrier at offset %llu of shared memory (%lld of %lld arrivals, %lld bytes to come)",
        (unsigned long long)in_block, (long long)m.pending, (long long)m.expected,
        (long long)m.bytes);
}

/* Lanes that must wait: the loop round them lets others run at once, and the warp is not asked again before the phase has changed. */
static void wait(hw_frame *f, const uint64_t *word, uint64_t phase, bool only_one, uint32_t lanes)
{
    f->awaited_lanes = lanes;
    f->spins = HW_SPINS_A_TURN - 1;
    f->awaited = only_one ? word : NULL;
    f->awaited_phase = phase;
    f->awaited_loc = f->fault_loc;
}

/* Has the lane been told that the phase has ended, which it asked about at this instruction in its last turn? On hardware the
 * instruction waits, and says so. */
static bool told(const hw_frame *f, const uint64_t *word, uint64_t phase, uint32_t lane)
{
    return f->ended == word && f->awaited_phase == phase && f->awaited_loc == f->fault_loc &&
           f->awaited_lanes >> lane & 1;
}

void hw_h_mbarrier_wait(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    const uint64_t *awaited = NULL;
    uint64_t awaited_phase = 0;
    bool all_wait = true, only_one = true;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        f->fault_lanes = 1u << l;
        const uint64_t *word = word_at(f, u64_of(io, 0, l));
        uint64_t phase = aux & HW_MBAR_PARITY ? u32_of(io, 1, l) & 1 : u64_of(io, 1, l) >> PHASE;
        bool done = told(f, word, phase, l) || (*word >> PHASE != phase && f->at_once != word);
        if (io->ndst)
            ((uint8_t *)io->dst[0])[l] = done;
        only_one &= !awaited || (awaited == word && awaited_phase == phase);
        awaited = word;
        awaited_phase = phase;
        all_wait &= !done;
    }
    f->fault_lanes = 0;
    f->ended = NULL;
    if (all_wait && awaited)
        wait(f, awaited, awaited_phase, only_one, lanes);
}

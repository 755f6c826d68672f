/* SPDX-License-Identifier: Apache-2.0
 * Tensor memory to registers and back, copied from shared memory and shifted (PTX ISA 9.7.16.8, 9.7.16.9). */
#include "tmem.h"

#include <math.h>

enum { QUARTER = HW_TMEM_LANES / 4, SHIFTED_COLUMNS = 8 };

/* ---- which cell a thread's register is ---- */

typedef struct place {
    uint32_t lane, column; /* from the instruction's address on */
} place;

static place place_32x32(uint32_t t, uint32_t r)
{
    return (place){ t, r };
}

static place place_16x64(uint32_t t, uint32_t r)
{
    return (place){ t / 4 + t % 2 * 8, t / 2 % 2 + r * 2 };
}

static place place_16x128(uint32_t t, uint32_t r)
{
    return (place){ t / 4 + r % 2 * 8, t % 4 + r / 2 * 4 };
}

static place place_16x256(uint32_t t, uint32_t r)
{
    return (place){ t / 4 + r / 2 % 2 * 8, t % 4 * 2 + r % 2 + r / 4 * 8 };
}

static place place_16x32x2(uint32_t t, uint32_t r)
{
    return (place){ t % 16, r };
}

static const struct {
    place (*of)(uint32_t thread, uint32_t reg);
    uint8_t lanes, columns; /* columns a register */
} shapes[] = {
    [HW_TMEM_32X32] = { place_32x32, 32, 1 },     [HW_TMEM_16X64] = { place_16x64, 16, 2 },
    [HW_TMEM_16X128] = { place_16x128, 16, 2 },   [HW_TMEM_16X256] = { place_16x256, 16, 2 },
    [HW_TMEM_16X32X2] = { place_16x32x2, 16, 1 },
};

/* ---- one instruction ---- */

typedef struct movement {
    hw_tmem_move m;
    hw_tmem *t;
    hw_tmem_area at;
    uint32_t cells; /* a register: 2 if packed */
} movement;

static void need_quarter(hw_frame *f, const char *what, uint32_t lane, uint32_t lanes)
{
    uint32_t first = f->warp % HW_WARPGROUP * QUARTER;
    if (lane < first || lane + lanes > first + QUARTER)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "%s: lanes %u to %u of tensor memory, but warp %u reaches those from %u to %u",
                 what, lane, lane + lanes - 1, f->warp, first, first + QUARTER - 1);
}

static movement begin(hw_frame *f, uint32_t lanes, const uint32_t *address, uint64_t aux,
                      const char *what)
{
    movement a = { .at = hw_tmem_at(address[0]) };
    memcpy(&a.m, &aux, sizeof a.m);
    a.cells = a.m.flags & HW_TMEM_PACKED ? 2 : 1;
    if (lanes != UINT32_MAX)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "%s: not all threads of the warp take part", what);
    for (unsigned l = 1; l < HW_WARP_LANES; l++)
        if (address[l] != address[0])
            hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                     "%s: the tensor addresses of a warp's lanes differ", what);
    uint32_t columns = a.m.registers * a.cells * shapes[a.m.shape].columns;
    a.t = hw_tmem_need(f, f->owner, what, a.at.column, columns);
    if (a.m.shape == HW_TMEM_16X32X2)
        hw_tmem_need(f, f->owner, what, a.at.column + (uint32_t)a.m.second, columns);
    need_quarter(f, what, a.at.lane, shapes[a.m.shape].lanes);
    return a;
}

static uint32_t *cell(const movement *a, uint32_t thread, uint32_t reg, uint32_t half)
{
    place p = shapes[a->m.shape].of(thread, reg);
    uint32_t second = a->m.shape == HW_TMEM_16X32X2 && thread >= 16 ? (uint32_t)a->m.second : 0;
    return &a->t->cells[a->at.column + p.column * a->cells + half + second][a->at.lane + p.lane];
}

/* ---- reductions over a thread's registers ---- */

static float as_float(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint32_t better_float(uint32_t x, uint32_t y, unsigned flags)
{
    float a = as_float(x), b = as_float(y);
    if (isnan(a) || isnan(b))
        return flags & HW_TMEM_NAN || (isnan(a) && isnan(b)) ? UINT32_C(0x7fffffff)
               : isnan(a)                                    ? y
                                                             : x;
    bool less = a < b || (a == b && signbit(a));
    return less == !(flags & HW_TMEM_MAX) ? x : y;
}

static uint32_t better(uint32_t x, uint32_t y, unsigned flags)
{
    if (flags & HW_TMEM_FLOAT)
        return better_float(x, y, flags);
    bool less = flags & HW_TMEM_SIGNED ? (int32_t)x < (int32_t)y : x < y;
    return less == !(flags & HW_TMEM_MAX) ? x : y;
}

static void reduce(const movement *a, const hw_lane_arrays *io)
{
    uint32_t *result = io->dst[a->m.registers];
    uint32_t mask = a->m.flags & HW_TMEM_ABS ? INT32_MAX : UINT32_MAX;
    for (unsigned t = 0; t < HW_WARP_LANES; t++) {
        uint32_t v = ((uint32_t *)io->dst[0])[t] & mask;
        for (unsigned r = 1; r < a->m.registers; r++)
            v = better(v, ((uint32_t *)io->dst[r])[t] & mask, a->m.flags);
        result[t] = v;
    }
}

/* ---- the helpers ---- */

void hw_h_tmem_load(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    movement a = begin(f, lanes, io->src[0], aux, "tcgen05.ld");
    for (unsigned r = 0; r < a.m.registers; r++) {
        uint32_t *to = io->dst[r];
        if (a.m.shape == HW_TMEM_32X32 && a.cells == 1) {
            memcpy(to, cell(&a, 0, r, 0), HW_WARP_LANES * sizeof *to);
            continue;
        }
        for (unsigned t = 0; t < HW_WARP_LANES; t++)
            to[t] = a.cells == 1 ? *cell(&a, t, r, 0)
                                 : (*cell(&a, t, r, 0) & 0xffff) | *cell(&a, t, r, 1) << 16;
    }
    if (a.m.flags & HW_TMEM_REDUCED)
        reduce(&a, io);
}

void hw_h_tmem_store(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    movement a = begin(f, lanes, io->src[0], aux, "tcgen05.st");
    for (unsigned r = 0; r < a.m.registers; r++) {
        const uint32_t *from = io->src[1 + r];
        for (unsigned t = 0; t < HW_WARP_LANES; t++) {
            *cell(&a, t, r, 0) = a.cells == 1 ? from[t] : from[t] & 0xffff;
            if (a.cells == 2)
                *cell(&a, t, r, 1) = from[t] >> 16;
        }
    }
}

/* ---- copies and shifts: by single threads, in one block or both of a pair ---- */

static void copy(hw_frame *f, hw_block *b, uint32_t to, uint64_t from, const hw_tmem_copy *how)
{
    hw_tmem_area at = hw_tmem_at(to);
    uint32_t first_lanes = how->rows == HW_TMEM_ROWS_4 ? QUARTER : 1;
    if (at.lane >= first_lanes)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "tcgen05.cp: a copy of this shape does not begin in lane %u", at.lane);
    hw_tmem *t = hw_tmem_need(f, b, "tcgen05.cp", at.column, how->pieces * 4u);
    const hw_tmem_block block = { .shared = b->frames[0].shared, .cells = t->cells };
    hw_jit_tmem_copy(&block, to, from, how);
}

void hw_h_tmem_copy(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    hw_tmem_copy how;
    memcpy(&how, &aux, sizeof how);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        uint32_t to = ((const uint32_t *)io->src[0])[l];
        uint64_t from = ((const uint64_t *)io->src[1])[l];
        f->fault_lanes = 1u << l;
        hw_tmem_join(f, how.group);
        hw_tmem_check_descriptor(f, "tcgen05.cp", from);
        copy(f, f->owner, to, from, &how);
        if (how.group == 2)
            copy(f, hw_tmem_peer(f, "tcgen05.cp"), to, from, &how);
    }
    f->fault_lanes = 0;
}

/* 31 rows of 32 bytes, each the next one's. */
static void shift(hw_frame *f, hw_block *b, uint32_t address)
{
    hw_tmem_area at = hw_tmem_at(address);
    if (at.lane % QUARTER || at.lane >= HW_TMEM_LANES)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "tcgen05.shift: lane %u is no multiple of %d below %d", at.lane, QUARTER,
                 HW_TMEM_LANES);
    hw_tmem *t = hw_tmem_need(f, b, "tcgen05.shift", at.column, SHIFTED_COLUMNS);
    for (uint32_t c = 0; c < SHIFTED_COLUMNS; c++) {
        uint32_t *lanes = &t->cells[at.column + c][at.lane];
        memmove(lanes, lanes + 1, (QUARTER - 1) * sizeof *lanes);
    }
}

void hw_h_tmem_shift(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        uint32_t address = ((const uint32_t *)io->src[0])[l];
        f->fault_lanes = 1u << l;
        hw_tmem_join(f, (uint32_t)aux);
        shift(f, f->owner, address);
        if (aux == 2)
            shift(f, hw_tmem_peer(f, "tcgen05.shift"), address);
    }
    f->fault_lanes = 0;
}

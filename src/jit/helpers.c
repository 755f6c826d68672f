/* SPDX-License-Identifier: Apache-2.0
 * Arithmetic too rare or too big to be generated: C functions that code calls for a whole warp. */
#include "helpers.h"

#include <math.h>

/* Value of lane l in an argument of w bytes a lane. */
#define LANE(type, array, l) (((type *)(uintptr_t)(array))[l])

static uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
    if (base > 31)
        return UINT32_MAX;
    if (offset == 0)
        return (mask >> base) & 1 ? base : UINT32_MAX;
    uint32_t left = offset < 0 ? 0 - (uint32_t)offset : (uint32_t)offset;
    int32_t step = offset < 0 ? -1 : 1;
    for (int32_t at = (int32_t)base; at >= 0 && at < 32; at += step)
        if ((mask >> at) & 1 && --left == 0)
            return (uint32_t)at;
    return UINT32_MAX;
}

static void h_fns(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)f, (void)aux;
    for (unsigned l = 0; l < HW_WARP_LANES; l++)
        if ((lanes >> l) & 1)
            LANE(uint32_t, io->dst[0], l) = find_nth_set(LANE(const uint32_t, io->src[0], l),
                                                         LANE(const uint32_t, io->src[1], l),
                                                         LANE(const int32_t, io->src[2], l));
}

double hw_jit_from_half(uint16_t h)
{
    int e = (h >> 10) & 31;
    double m = h & 0x3ff;
    double v = e == 31  ? (m > 0 ? (double)NAN : (double)INFINITY)
               : e == 0 ? ldexp(m, -24)
                        : ldexp(m + 1024, e - 25);
    return h & 0x8000 ? -v : v;
}

hw_helper_fn *const hw_jit_helpers[HW_H_COUNT] = {
    [HW_H_FNS] = h_fns,          [HW_H_NARROW] = hw_jit_narrow,
    [HW_H_MMA] = hw_jit_mma,     [HW_H_MMA_MORE] = hw_jit_mma_more,
    [HW_H_WGMMA] = hw_jit_wgmma,
};

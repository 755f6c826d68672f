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

/* ---- 8-bit floats: e4m3 (no infinity, NaN 0x7f) and e5m2 ---- */

typedef struct fp8_format {
    int bias, fraction;
    double max;
} fp8_format;
static const fp8_format e4m3 = { 7, 3, 448.0 }, e5m2 = { 15, 2, 57344.0 };

/* To nearest even; what is beyond the largest finite value becomes it (.satfinite). */
static uint8_t to_fp8(double v, const fp8_format *t, bool relu)
{
    if (isnan(v))
        return 0x7f;
    if (relu && !(v > 0))
        return 0;
    uint8_t sign = signbit(v) ? 0x80 : 0;
    double a = fabs(v);
    int least = 1 - t->bias, e = a > 0 && isfinite(a) ? ilogb(a) : least;
    if (e < least)
        e = least;
    double r = isinf(a) ? t->max : ldexp(nearbyint(ldexp(a, t->fraction - e)), e - t->fraction);
    if (r > t->max)
        r = t->max;
    if (r < ldexp(1.0, least)) /* subnormal or zero */
        return (uint8_t)(sign | (unsigned)ldexp(r, t->fraction - least));
    e = ilogb(r);
    unsigned m = (unsigned)ldexp(r, t->fraction - e) & ((1u << t->fraction) - 1);
    return (uint8_t)(sign | (unsigned)(e + t->bias) << t->fraction | m);
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

/* Every 8-bit value is a half exactly. */
static uint16_t to_half(uint8_t b, bool is_e5m2, bool relu)
{
    uint16_t sign = (uint16_t)((b & 0x80) << 8), h;
    if (is_e5m2) {
        h = (uint16_t)((b & 0x7f) > 0x7c ? 0x7fff : (b & 0x7f) << 8);
    } else {
        unsigned e = (b >> 3) & 15, m = b & 7;
        if ((b & 0x7f) == 0x7f) {
            h = 0x7fff;
        } else if (e == 0) { /* m * 2^-9 */
            unsigned top = m >= 4 ? 2 : m >= 2 ? 1 : 0;
            h = (uint16_t)(m ? (top + 6) << 10 | ((m << (10 - top)) & 0x3ff) : 0);
        } else {
            h = (uint16_t)((e + 8) << 10 | m << 7);
        }
    }
    if (h == 0x7fff)
        return h;
    return relu && sign ? 0 : (uint16_t)(sign | h);
}

static void h_fp8(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)f;
    bool wide = aux & HW_FP8_E5M2, relu = aux & HW_FP8_RELU;
    const fp8_format *t = wide ? &e5m2 : &e4m3;
    for (unsigned l = 0; l < HW_WARP_LANES; l++) {
        if (!((lanes >> l) & 1))
            continue;
        if ((aux & HW_FP8_KIND) == HW_FP8_TO_HALVES) {
            uint16_t v = LANE(const uint16_t, io->src[0], l);
            LANE(uint32_t, io->dst[0], l) = (uint32_t)to_half((uint8_t)v, wide, relu) |
                                            (uint32_t)to_half((uint8_t)(v >> 8), wide, relu) << 16;
            continue;
        }
        double high, low;
        if ((aux & HW_FP8_KIND) == HW_FP8_FROM_SINGLES) {
            high = (double)LANE(const float, io->src[0], l);
            low = (double)LANE(const float, io->src[1], l);
        } else {
            uint32_t v = LANE(const uint32_t, io->src[0], l);
            high = hw_jit_from_half((uint16_t)(v >> 16));
            low = hw_jit_from_half((uint16_t)v);
        }
        LANE(uint16_t, io->dst[0], l) =
            (uint16_t)(to_fp8(low, t, relu) | to_fp8(high, t, relu) << 8);
    }
}

hw_helper_fn *const hw_jit_helpers[HW_H_COUNT] = {
    [HW_H_FNS] = h_fns,
    [HW_H_FP8] = h_fp8,
    [HW_H_MMA] = hw_jit_mma,
};

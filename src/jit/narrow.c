/* SPDX-License-Identifier: Apache-2.0
 * Helper NARROW: conversions of floats of 8, 6 and 4 bits and of scales (PTX ISA, "Alternate Floating
 * Point Data Formats" and cvt). Two values a register, the first in the upper part. */
#include "helpers.h"

#include <math.h>

#define LANE(type, array, l) (((type *)(uintptr_t)(array))[l])

typedef struct format {
    int bias, fraction, bits; /* bits: without the sign, as placed in a byte or a half byte */
    double max;
    bool nan, infinity; /* nan: the pattern of all ones; without, a NaN becomes the largest value */
} format;

static const format formats[] = {
    [HW_NARROW_E4M3] = { 7, 3, 7, 448.0, true, false },
    [HW_NARROW_E5M2] = { 15, 2, 7, 57344.0, true, true },
    [HW_NARROW_E2M3] = { 1, 3, 5, 7.5, false, false },
    [HW_NARROW_E3M2] = { 3, 2, 5, 28.0, false, false },
    [HW_NARROW_E2M1] = { 1, 1, 3, 6.0, false, false },
};

/* To nearest even; what is beyond the largest finite value becomes it (.satfinite). */
static uint32_t encode(double v, const format *t, bool relu)
{
    unsigned ones = (1u << t->bits) - 1;
    if (isnan(v))
        return ones;
    if (relu && !(v > 0))
        return 0;
    uint32_t sign = signbit(v) ? ones + 1 : 0;
    double a = fabs(v);
    int least = 1 - t->bias, e = a > 0 && isfinite(a) ? ilogb(a) : least;
    if (e < least)
        e = least;
    double r = isinf(a) ? t->max : ldexp(nearbyint(ldexp(a, t->fraction - e)), e - t->fraction);
    if (r > t->max)
        r = t->max;
    if (r < ldexp(1.0, least)) /* subnormal or zero */
        return sign | (unsigned)ldexp(r, t->fraction - least);
    e = ilogb(r);
    unsigned m = (unsigned)ldexp(r, t->fraction - e) & ((1u << t->fraction) - 1);
    return sign | (unsigned)(e + t->bias) << t->fraction | m;
}

static uint32_t exact_half(double a)
{
    int e = a > 0 ? ilogb(a) : -15;
    return e < -14 ? (uint32_t)ldexp(a, 24)
                   : (uint32_t)(e + 15) << 10 | ((uint32_t)ldexp(a, 10 - e) & 0x3ff);
}

/* Every narrow value is a half exactly. */
static uint16_t to_half(uint32_t v, const format *t, bool relu)
{
    uint32_t ones = (1u << t->bits) - 1, magnitude = v & ones, sign = v >> t->bits & 1;
    uint32_t e = magnitude >> t->fraction, m = magnitude & ((1u << t->fraction) - 1);
    bool top = t->nan && e == ones >> t->fraction;
    if (top && (t->infinity ? m != 0 : magnitude == ones))
        return 0x7fff;
    if (relu && sign)
        return 0;
    if (top && t->infinity)
        return (uint16_t)(sign << 15 | 0x7c00);
    double a = e ? ldexp((double)(m | 1u << t->fraction), (int)e - t->bias - t->fraction)
                 : ldexp((double)m, 1 - t->bias - t->fraction);
    return (uint16_t)(sign << 15 | exact_half(a));
}

/* A power of two that is not below |v| (up) or not above it; 0xff is NaN. */
static uint32_t to_scale(float v, bool up, bool finite)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits &= 0x7fffffff;
    uint32_t e = bits >> 23;
    if (bits > 0x7f800000)
        return 0xff;
    if (up && bits & 0x7fffff && bits > 0x400000 && e < 0xff)
        e++;
    return finite && e == 0xff ? 0xfe : e;
}

static float from_bf16(uint32_t v)
{
    uint32_t bits = v << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t scale_to_bf16(uint32_t e)
{
    return e == 0xff ? 0x7fff : e ? e << 7 : 0x40;
}

/* The operands of lane l that become narrow, the first first. */
static void wide(const hw_lane_arrays *io, unsigned l, uint32_t from, float v[2])
{
    if (from == HW_NARROW_FROM_SINGLES) {
        v[0] = LANE(const float, io->src[0], l);
        v[1] = LANE(const float, io->src[1], l);
        return;
    }
    uint32_t x = LANE(const uint32_t, io->src[0], l);
    for (unsigned k = 0; k < 2; k++) {
        uint16_t h = (uint16_t)(k ? x : x >> 16);
        v[k] = from == HW_NARROW_FROM_HALVES ? (float)hw_jit_from_half(h) : from_bf16(h);
    }
}

static uint32_t convert(const hw_lane_arrays *io, unsigned l, uint64_t aux)
{
    uint32_t how = aux & HW_NARROW_HOW, type = (uint32_t)(aux >> HW_NARROW_TYPE_SHIFT) & 15;
    const format *t = &formats[type == HW_NARROW_UE8M0 ? HW_NARROW_E4M3 : type];
    bool relu = aux & HW_NARROW_RELU, scale = type == HW_NARROW_UE8M0;
    unsigned half = scale || t->bits > 3 ? 8 : 4;
    if (how == HW_NARROW_WIDEN) {
        uint32_t v =
            half == 4 ? LANE(const uint8_t, io->src[0], l) : LANE(const uint16_t, io->src[0], l);
        uint32_t low = v & ((1u << half) - 1), high = v >> half;
        return scale ? scale_to_bf16(low) | scale_to_bf16(high) << 16
                     : (uint32_t)to_half(low, t, relu) | (uint32_t)to_half(high, t, relu) << 16;
    }
    float v[2];
    wide(io, l, how, v);
    bool up = aux & HW_NARROW_UP, finite = aux & HW_NARROW_FINITE;
    if (scale)
        return to_scale(v[1], up, finite) | to_scale(v[0], up, finite) << 8;
    return encode((double)v[1], t, relu) | encode((double)v[0], t, relu) << half;
}

void hw_jit_narrow(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)f;
    bool widen = (aux & HW_NARROW_HOW) == HW_NARROW_WIDEN;
    bool bytes = ((aux >> HW_NARROW_TYPE_SHIFT) & 15) == HW_NARROW_E2M1;
    for (unsigned l = 0; l < HW_WARP_LANES; l++) {
        if (!((lanes >> l) & 1))
            continue;
        uint32_t r = convert(io, l, aux);
        if (widen)
            LANE(uint32_t, io->dst[0], l) = r;
        else if (bytes)
            LANE(uint8_t, io->dst[0], l) = (uint8_t)r;
        else
            LANE(uint16_t, io->dst[0], l) = (uint16_t)r;
    }
}

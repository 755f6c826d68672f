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
    [HW_NARROW_F16] = { 15, 10, 15, 65504.0, true, true },
    [HW_NARROW_BF16] = { 127, 7, 15, 0x1.fep127, true, true },
};

/* Random bits of .rs: n of them, the most significant one as heavy as the most significant bit that is cut off. Without: to
 * nearest even. */
typedef struct random_bits {
    uint32_t value;
    int n;
} random_bits;

static double rounded(double v, random_bits random)
{
    if (!random.n)
        return nearbyint(v);
    double whole = floor(v);
    return v - whole >= 1 - ldexp(random.value, -random.n) ? whole + 1 : whole;
}

/* finite: what is beyond the largest finite value becomes it (.satfinite). */
static uint32_t encode(double v, const format *t, bool relu, bool finite, random_bits random)
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
    double r = isinf(a) ? a : ldexp(rounded(ldexp(a, t->fraction - e), random), e - t->fraction);
    if (r > t->max && !finite)
        return sign | (ones >> t->fraction << t->fraction);
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
    const random_bits none = { 0 };
    return encode((double)v[1], t, relu, true, none) | encode((double)v[0], t, relu, true, none)
                                                           << half;
}

/* .rs: two or four floats, the first in the uppermost part, then the random bits. Halves have the bits of a half each; of
 * four, the first two the upper ones and the others the lower, of those of 4 bits the upper and the lower bytes of both halves. */
static uint32_t convert_random(const hw_lane_arrays *io, unsigned l, uint64_t aux)
{
    uint32_t type = (uint32_t)(aux >> HW_NARROW_TYPE_SHIFT) & 15, r = 0;
    unsigned n = io->nsrc - 1, width = type == HW_NARROW_E2M1 ? 4 : 32 / n;
    uint32_t bits = LANE(const uint32_t, io->src[n], l);
    if (type == HW_NARROW_E2M1)
        bits = (bits & 0xff0000ff) | (bits >> 8 & 0xff) << 16 | (bits >> 16 & 0xff) << 8;
    for (unsigned k = 0; k < n; k++) {
        random_bits random = { 2 * k < n ? bits >> 16 : bits & 0xffff, 16 };
        if (type == HW_NARROW_F16)
            random = (random_bits){ random.value & 0x1fff, 13 };
        uint32_t v = encode((double)LANE(const float, io->src[k], l), &formats[type],
                            aux & HW_NARROW_RELU, aux & HW_NARROW_FINITE, random);
        r |= v << (n - 1 - k) * width;
    }
    return r;
}

static unsigned result_bytes(const hw_lane_arrays *io, uint64_t aux)
{
    uint32_t how = aux & HW_NARROW_HOW, type = (uint32_t)(aux >> HW_NARROW_TYPE_SHIFT) & 15;
    if (how == HW_NARROW_WIDEN)
        return 4;
    if (how == HW_NARROW_RANDOM)
        return type == HW_NARROW_E2M1 && io->nsrc == 5 ? 2 : 4;
    return type == HW_NARROW_E2M1 ? 1 : 2;
}

void hw_jit_narrow(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)f;
    unsigned bytes = result_bytes(io, aux);
    bool random = (aux & HW_NARROW_HOW) == HW_NARROW_RANDOM;
    for (unsigned l = 0; l < HW_WARP_LANES; l++) {
        if (!((lanes >> l) & 1))
            continue;
        uint32_t r = random ? convert_random(io, l, aux) : convert(io, l, aux);
        if (bytes == 4)
            LANE(uint32_t, io->dst[0], l) = r;
        else if (bytes == 1)
            LANE(uint8_t, io->dst[0], l) = (uint8_t)r;
        else
            LANE(uint16_t, io->dst[0], l) = (uint16_t)r;
    }
}

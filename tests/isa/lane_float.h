/* SPDX-License-Identifier: Apache-2.0
 * The lane column's words for floats and conversions: see lane.h, which includes this. */
#ifndef HW_TEST_LANE_FLOAT_H
#define HW_TEST_LANE_FLOAT_H

/* ---- floats ---- */
#define FMA(x, y, z) \
    (sizeof(T) == 4 ? (T)fmaf((float)(x), (float)(y), (float)(z)) : (T)fma((x), (y), (z)))
#define SQRT(x)        (sizeof(T) == 4 ? (T)sqrtf((float)(x)) : (T)sqrt(x))
#define FABS(x)        ((T)copysign((double)(x), 1.0))
#define FNEG(x)        (-(x))
#define COPYSIGN(x, y) ((T)copysign((double)(y), (double)(x)))
#define FMIN(x, y)     ((T)lane_minmax((x), (y), true))
#define FMAX(x, y)     ((T)lane_minmax((x), (y), false))
#define RINT(x)        ((T)lane_rint(x))
#define TESTP(x) \
    lane_testp((double)(x), sizeof(T) == 4 ? fpclassify((float)(x)) : fpclassify((double)(x)))
#define APPROX(x, n, bits) ((T)lane_approx((double)(x), (n), (bits) ? ldexp(1.0, -(bits)) : 0))
/* only the upper 32 bits of the result count */
#define APPROX64(x)      ((T)lane_approx((x), 0x1p32, 0))
#define SIN_COS(x, of)   ((T)lane_sin_cos((double)(x), (double)(of)))
#define HALF_APPROX(x)   lane_approx((x), 4, 0)
#define DIV_APPROX(x, y) ((T)lane_div_approx((x), (y)))

static inline double lane_approx(double v, double ulps, double absolute)
{
    lane_now.inexact = true;
    lane_now.ulps = ulps;
    lane_now.absolute = absolute;
    return v;
}
/* |y| above 2^126: the quotient may come out as 0 (PTX ISA, div.approx). */
static inline double lane_div_approx(float x, float y)
{
    if (fabsf(y) > 0x1p126f && isfinite(y))
        lane_now.any = true;
    return lane_approx((double)x / (double)y, 2, 0);
}
/* The bound holds for |of| up to 100 pi (PTX ISA, sin). */
static inline double lane_sin_cos(double v, double of)
{
    if (fabs(of) > 314)
        lane_now.any = true;
    return lane_approx(v, 0, fabs(of) <= 3.15 ? 0x1p-20 : 0x1p-14);
}
static inline double lane_minmax(double x, double y, bool min)
{
    bool negative = HAS(xorsign) && (signbit(x) != 0) != (signbit(y) != 0);
    if (HAS(abs) || HAS(xorsign))
        x = fabs(x), y = fabs(y);
    double r;
    if ((isnan(x) || isnan(y)) && HAS(NaN))
        return NAN;
    if (isnan(x) || isnan(y))
        r = isnan(x) ? y : x;
    else if (x == 0 && y == 0)
        r = (signbit(x) != 0) == min ? x : y;
    else
        r = (x < y) == min ? x : y;
    return HAS(xorsign) ? copysign(r, negative ? -1.0 : 1.0) : r;
}
/* Exact, whatever the processor's mode, and no trace of inexactness. */
static inline double lane_rint(double x)
{
    int old = fegetround();
    fesetround(FE_TONEAREST);
    double r = lane_now.round == SOFT_RZ   ? trunc(x)
               : lane_now.round == SOFT_RM ? floor(x)
               : lane_now.round == SOFT_RP ? ceil(x)
                                           : nearbyint(x);
    fesetround(old);
    feclearexcept(FE_INEXACT);
    return r;
}
static inline bool lane_testp(double x, int class)
{
    if (HAS(finite))
        return isfinite(x);
    if (HAS(infinite))
        return isinf(x);
    if (HAS(number))
        return !isnan(x);
    if (HAS(notanumber))
        return isnan(x);
    if (HAS(normal)) /* zeros count as normal (PTX ISA, testp) */
        return class == FP_NORMAL || class == FP_ZERO;
    return class == FP_SUBNORMAL;
}

/* ---- conversions ---- */
#define CVT_II(x) ((T)(HAS(sat) ? lane_clamp((i128)(x), T_MIN, T_MAX) : (i128)(x)))
#define CVT_IF(x) ((T)(x))
#define CVT_FF(x) ((T)(x))
#define CVT_FI(x) ((T)lane_f2i((double)(x), NBITS, SIGNED, sizeof(T) == 8 || IS_F64_U))
#define TF32(x)   lane_tf32(soft_bits32(x))

static inline u64 lane_f2i(double x, unsigned bits, bool is_signed, bool top_for_nan)
{
    if (isnan(x))
        return top_for_nan ? UINT64_C(1) << (bits - 1) : 0;
    double r = lane_rint(x), high = ldexp(1, (int)(is_signed ? bits - 1 : bits));
    if (r >= high)
        return (u64)lane_max(bits, is_signed);
    if (r < (is_signed ? -high : 0))
        return is_signed ? UINT64_C(1) << (bits - 1) : 0;
    return is_signed ? (u64)(s64)r : (u64)r;
}
static inline u32 lane_tf32(u32 x)
{
    double v = (double)soft_float(x);
    if (isnan(v))
        lane_now.any = true;
    if (HAS(relu) && v <= 0)
        return 0;
    u32 r = (u32)soft_narrow(v, (soft_format){ 8, 10 }, lane_now.round) << 13;
    if (HAS(satfinite) && (r & 0x7fffffff) == 0x7f800000)
        r = (r & 0x80000000) | 0x7f7fe000;
    return r;
}

#endif

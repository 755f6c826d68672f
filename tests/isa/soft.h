/* SPDX-License-Identifier: Apache-2.0
 * Exact float helpers for tests: any format of up to 52 bits of fraction from a double with one
 * rounding, the double itself being exact or rounded to odd. */
#ifndef HW_TEST_SOFT_H
#define HW_TEST_SOFT_H

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct soft_format {
    int exponent, fraction; /* bits */
} soft_format;
#define SOFT_F16  ((soft_format){ 5, 10 })
#define SOFT_BF16 ((soft_format){ 8, 7 })
#define SOFT_F32  ((soft_format){ 8, 23 })

enum { SOFT_RN, SOFT_RZ, SOFT_RM, SOFT_RP, SOFT_RNA };

static inline uint64_t soft_bits64(double d)
{
    uint64_t b;
    memcpy(&b, &d, sizeof b);
    return b;
}
static inline double soft_double(uint64_t b)
{
    double d;
    memcpy(&d, &b, sizeof d);
    return d;
}
static inline uint32_t soft_bits32(float f)
{
    uint32_t b;
    memcpy(&b, &f, sizeof b);
    return b;
}
static inline float soft_float(uint32_t b)
{
    float f;
    memcpy(&f, &b, sizeof f);
    return f;
}

static inline double soft_widen(uint64_t bits, soft_format f)
{
    uint64_t sign = (bits >> (f.exponent + f.fraction)) & 1;
    uint64_t e = (bits >> f.fraction) & ((1u << f.exponent) - 1);
    uint64_t m = bits & ((UINT64_C(1) << f.fraction) - 1);
    int bias = (1 << (f.exponent - 1)) - 1;
    double v;
    if (e == (1u << f.exponent) - 1)
        v = m ? NAN : INFINITY;
    else if (e == 0)
        v = ldexp((double)m, 1 - bias - f.fraction);
    else
        v = ldexp((double)(m | UINT64_C(1) << f.fraction), (int)e - bias - f.fraction);
    return sign ? -v : v;
}

/* Does the magnitude round up: `rest` is what is cut off (of `half` = 1/2 unit), `odd` the last bit. */
static inline bool soft_up(uint64_t rest, uint64_t half, bool odd, bool negative, int round)
{
    switch (round) {
    case SOFT_RN:
        return rest > half || (rest == half && odd);
    case SOFT_RNA:
        return rest >= half;
    case SOFT_RM:
        return negative && rest;
    case SOFT_RP:
        return !negative && rest;
    default:
        return false;
    }
}

static inline uint64_t soft_narrow(double v, soft_format f, int round)
{
    uint64_t b = soft_bits64(v), sign = b >> 63, m = b & ((UINT64_C(1) << 52) - 1);
    int e = (int)((b >> 52) & 0x7ff), bias = (1 << (f.exponent - 1)) - 1;
    uint64_t top = sign << (f.exponent + f.fraction);
    uint64_t infinity = ((UINT64_C(1) << f.exponent) - 1) << f.fraction;
    if (e == 0x7ff)
        return m ? infinity | ((UINT64_C(1) << f.fraction) - 1) : top | infinity;
    if (e == 0 && m == 0)
        return top;
    if (e == 0)
        e = 1;
    else
        m |= UINT64_C(1) << 52;
    int exponent = e - 1023 + bias; /* biased in the target */
    int cut = 52 - f.fraction;
    if (exponent < 1) {
        cut += 1 - exponent;
        exponent = 1;
    }
    if (cut > 62) { /* far below the smallest: only a sticky bit is left */
        m = m != 0;
        cut = 2;
    }
    uint64_t kept = m >> cut, rest = m & ((UINT64_C(1) << cut) - 1);
    kept += soft_up(rest, UINT64_C(1) << (cut - 1), kept & 1, sign, round);
    /* kept has its hidden bit at `fraction` unless subnormal: adding makes carries right */
    uint64_t r = ((uint64_t)(exponent - 1) << f.fraction) + kept;
    if (r >= infinity) {
        bool down = round == SOFT_RZ || (round == SOFT_RM && !sign) || (round == SOFT_RP && sign);
        r = down ? infinity - 1 : infinity;
    }
    return top | r;
}

/* Evaluate an expression of doubles rounded to odd: narrowing it afterwards rounds once. */
#define SOFT_ODD(result, expression)                         \
    do {                                                     \
        int soft_old_ = fegetround();                        \
        fesetround(FE_TOWARDZERO);                           \
        feclearexcept(FE_INEXACT);                           \
        volatile double soft_v_ = (expression);              \
        bool soft_inexact_ = fetestexcept(FE_INEXACT) != 0;  \
        fesetround(soft_old_);                               \
        uint64_t soft_b_ = soft_bits64(soft_v_);             \
        if (soft_inexact_ && isfinite(soft_double(soft_b_))) \
            soft_b_ |= 1;                                    \
        (result) = soft_double(soft_b_);                     \
    } while (0)

#endif

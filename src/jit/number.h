/* SPDX-License-Identifier: Apache-2.0
 * Floats of any format decoded one at a time, and scales (private to the products of room jit). */
#ifndef HW_JIT_NUMBER_H
#define HW_JIT_NUMBER_H

#include "matrix.h"

/* Floats of a sign, an exponent and a fraction. What the largest exponent means: nothing of its own; infinities and NaNs; a NaN
 * where the fraction is ones too. */
typedef enum top { NUMBER, IEEE, LAST_IS_NAN } top;
typedef struct format {
    uint8_t exponent, fraction, bias, top;
} format;
static const format formats[] = {
    [HW_MMA_F16] = { 5, 10, 15, IEEE },       [HW_MMA_BF16] = { 8, 7, 127, IEEE },
    [HW_MMA_TF32] = { 8, 23, 127, IEEE },     [HW_MMA_F32] = { 8, 23, 127, IEEE },
    [HW_MMA_E4M3] = { 4, 3, 7, LAST_IS_NAN }, [HW_MMA_E5M2] = { 5, 2, 15, IEEE },
    [HW_MMA_E3M2] = { 3, 2, 3, NUMBER },      [HW_MMA_E2M3] = { 2, 3, 1, NUMBER },
    [HW_MMA_E2M1] = { 2, 1, 1, NUMBER },      [HW_MMA_E2M1_PAIRS] = { 2, 1, 1, NUMBER },
};

static inline double power(int n)
{
    uint64_t bits = (uint64_t)(1023 + n) << 52;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static inline double number(uint8_t type, uint32_t x)
{
    const format *f = &formats[type];
    uint32_t ones = (1u << f->fraction) - 1, last = (1u << f->exponent) - 1;
    uint32_t m = x & ones, e = x >> f->fraction & last;
    double v = e ? (double)(m + ones + 1) : (double)m;
    v *= power((int)(e ? e : 1) - f->bias - f->fraction);
    if (f->top == IEEE && e == last)
        v = m ? __builtin_nan("") : __builtin_inf();
    if (f->top == LAST_IS_NAN && e == last && m == ones)
        v = __builtin_nan("");
    return x >> (f->fraction + f->exponent) & 1 ? -v : v;
}

/* A power of two, or an E4M3 without its sign. */
static inline double scale_of(bool ue4m3, uint8_t x)
{
    if (ue4m3)
        return number(HW_MMA_E4M3, x & 0x7f);
    return x == 0xff ? __builtin_nan("") : power(x - 127);
}

#endif

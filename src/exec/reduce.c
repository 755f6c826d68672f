/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements combined in memory, for bulk reductions: each atomically, in order of addresses (PTX ISA, "cp.reduce.async.bulk").
 * add.f32 flushes denormals of its operands and its result; halves do not.
 */
#include "exec.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

typedef uint64_t combine_fn(uint64_t a, uint64_t b);

/* ---- floats ---- */

static float single_of(uint64_t bits)
{
    uint32_t b = (uint32_t)bits;
    if (!(b & 0x7f800000))
        b &= 0x80000000;
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

static uint64_t bits_of_single(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    if (!(b & 0x7f800000))
        b &= 0x80000000;
    return x != x ? 0x7fffffff : b;
}

static uint64_t add_f32(uint64_t a, uint64_t b)
{
    return bits_of_single(single_of(a) + single_of(b));
}

static uint64_t add_f64(uint64_t a, uint64_t b)
{
    double x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&a, &x, sizeof a);
    return a;
}

static double half_of(uint64_t bits)
{
    uint32_t e = bits >> 10 & 31, m = bits & 0x3ff;
    double v = e == 31  ? (m ? __builtin_nan("") : __builtin_inf())
               : e == 0 ? (double)m * 0x1p-24
                        : (double)(m + 1024) * __builtin_ldexp(1, (int)e - 25);
    return bits & 0x8000 ? -v : v;
}

/* To the nearest, ties to even, of a format with m bits of fraction and e of exponent. */
static uint64_t round_to(double x, int m, int e)
{
    int bias = (1 << (e - 1)) - 1;
    uint64_t sign = __builtin_signbit(x) ? UINT64_C(1) << (m + e) : 0,
             inf = ((UINT64_C(1) << e) - 1) << m;
    if (x != x)
        return (UINT64_C(1) << (m + e)) - 1;
    double a = __builtin_fabs(x);
    int at = a > 0 && a < __builtin_inf() ? __builtin_ilogb(a) : 1 - bias;
    if (a >= __builtin_inf() || at > bias)
        return sign | inf;
    if (at < 1 - bias)
        at = 1 - bias;
    uint64_t n = (uint64_t)__builtin_rint(
        __builtin_ldexp(a, m - at)); /* carries into the exponent by itself */
    if (n < UINT64_C(1) << m)
        return sign | n; /* denormal */
    return sign | (n + ((uint64_t)(at + bias - 1) << m));
}

static double brain_of(uint64_t bits)
{
    uint32_t b = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &b, sizeof x);
    return (double)x;
}

static uint64_t to_half(double x)
{
    return round_to(x, 10, 5);
}

static uint64_t to_brain(double x)
{
    return round_to(x, 7, 8);
}

/* The sum of two halves, and of two bf16 unless one vanishes beside the other, is exact in double. */
#define HALVES(type, from, to)                                                               \
    static uint64_t add_##type(uint64_t a, uint64_t b)                                       \
    {                                                                                        \
        return to(from(a) + from(b));                                                        \
    }                                                                                        \
    static uint64_t min_##type(uint64_t a, uint64_t b)                                       \
    {                                                                                        \
        double x = from(a), y = from(b);                                                     \
        return x != x ? b : y != y ? a : x < y || (x == y && __builtin_signbit(x)) ? a : b;  \
    }                                                                                        \
    static uint64_t max_##type(uint64_t a, uint64_t b)                                       \
    {                                                                                        \
        double x = from(a), y = from(b);                                                     \
        return x != x ? b : y != y ? a : x > y || (x == y && !__builtin_signbit(x)) ? a : b; \
    }
HALVES(f16, half_of, to_half)
HALVES(bf16, brain_of, to_brain)

/* ---- integers: values are sign- or zero-extended by the caller ---- */

#define INTEGER(name, expression)                \
    static uint64_t name(uint64_t a, uint64_t b) \
    {                                            \
        return (uint64_t)(expression);           \
    }
INTEGER(add, a + b)
INTEGER(and, a &b)
INTEGER(or, a | b)
INTEGER(xor, a ^ b)
INTEGER(min_u, a < b ? a : b)
INTEGER(max_u, a > b ? a : b)
INTEGER(min_s, (int64_t)a < (int64_t)b ? a : b)
INTEGER(max_s, (int64_t)a > (int64_t)b ? a : b)
INTEGER(inc, a >= b ? 0 : a + 1)
INTEGER(dec, a == 0 || a > b ? b : a - 1)

static combine_fn *const integers[HW_ATOM_COUNT] = {
    [HW_ATOM_ADD] = add,     [HW_ATOM_AND] = and,     [HW_ATOM_OR] = or,
    [HW_ATOM_XOR] = xor,     [HW_ATOM_MIN_U] = min_u, [HW_ATOM_MAX_U] = max_u,
    [HW_ATOM_MIN_S] = min_s, [HW_ATOM_MAX_S] = max_s, [HW_ATOM_INC] = inc,
    [HW_ATOM_DEC] = dec,
};

static combine_fn *float_combiner(hw_wir_atom op, hw_wir_type t)
{
    static combine_fn *const halves[2][3] = { { add_f16, min_f16, max_f16 },
                                              { add_bf16, min_bf16, max_bf16 } };
    unsigned k = (unsigned)op - HW_ATOM_FADD;
    if (k > 2)
        return NULL;
    if (t == HW_T_F16 || t == HW_T_BF16)
        return halves[t == HW_T_BF16][k];
    return k ? NULL : t == HW_T_F32 ? add_f32 : t == HW_T_F64 ? add_f64 : NULL;
}

/* ---- memory ---- */

static uint64_t extend(uint64_t v, unsigned bytes, bool is_signed)
{
    unsigned shift = 64 - 8 * bytes;
    return is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

#define UPDATE(type)                                                                       \
    static void update_##type(void *to, uint64_t b, combine_fn *fn, bool is_signed)        \
    {                                                                                      \
        type old = __atomic_load_n((type *)to, __ATOMIC_RELAXED), now;                     \
        do                                                                                 \
            now = (type)fn(extend(old, sizeof(type), is_signed), b);                       \
        while (!__atomic_compare_exchange_n((type *)to, &old, now, true, __ATOMIC_RELAXED, \
                                            __ATOMIC_RELAXED));                            \
    }
UPDATE(uint16_t)
UPDATE(uint32_t)
UPDATE(uint64_t)

static void update(uint8_t *to, const uint8_t *from, unsigned size, combine_fn *fn, bool is_signed)
{
    uint64_t b = 0;
    memcpy(&b, from, size);
    b = extend(b, size, is_signed);
    if (size == 2)
        update_uint16_t(to, b, fn, is_signed);
    else if (size == 4)
        update_uint32_t(to, b, fn, is_signed);
    else
        update_uint64_t(to, b, fn, is_signed);
}

bool hw_reduce(hw_wir_atom op, hw_wir_type t, void *to, const void *from, uint64_t bytes)
{
    combine_fn *fn = op < HW_ATOM_COUNT ? integers[op] : NULL;
    if (op >= HW_ATOM_FADD)
        fn = float_combiner(op, t);
    unsigned size = hw_wir_bits(t) / 8;
    if (!fn || size < 2 || size > 8)
        return false;
    bool is_signed = op == HW_ATOM_MIN_S || op == HW_ATOM_MAX_S;
#ifdef __x86_64__
    uint32_t control = _mm_getcsr(); /* the kernel's may flush */
    _mm_setcsr(0x1f80u);
#endif
    for (uint64_t at = 0; at + size <= bytes; at += size)
        update((uint8_t *)to + at, (const uint8_t *)from + at, size, fn, is_signed);
#ifdef __x86_64__
    _mm_setcsr(control);
#endif
    return true;
}

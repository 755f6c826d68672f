/* SPDX-License-Identifier: Apache-2.0
 * Helper MMA against the fragment tables of the PTX ISA, element by element: "Matrix Fragments for
 * mma.m16n8k16" and the others. Sums are small enough to be exact, but those made to round. */
#include "elements.h"
#include "hw_jit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

enum { LANES = 32, REGS = 32 };

/* The manual's groupID and threadID_in_group. */
typedef struct place {
    unsigned row, col;
} place;
typedef place place_fn(unsigned g, unsigned t, unsigned i);

static place a_k16_half(unsigned g, unsigned t, unsigned i)
{
    return (place){ i < 2 || (i >= 4 && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0) };
}
static place a_k8_half(unsigned g, unsigned t, unsigned i)
{
    return (place){ i < 2 ? g : g + 8, t * 2 + (i & 1) };
}
static place a_k8_tf32(unsigned g, unsigned t, unsigned i)
{
    return (place){ i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4 };
}
static place a_k32_byte(unsigned g, unsigned t, unsigned i)
{
    return (place){ i < 4 || (i >= 8 && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0) };
}
static place a_m8k16_byte(unsigned g, unsigned t, unsigned i)
{
    return (place){ g, t * 4 + i };
}
static place a_m8k4_f64(unsigned g, unsigned t, unsigned i)
{
    (void)i;
    return (place){ g, t };
}
static place b_half(unsigned g, unsigned t, unsigned i)
{
    return (place){ t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g };
}
static place b_tf32(unsigned g, unsigned t, unsigned i)
{
    return (place){ i ? t + 4 : t, g };
}
static place b_byte(unsigned g, unsigned t, unsigned i)
{
    return (place){ t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g };
}
static place a_k64_nibble(unsigned g, unsigned t, unsigned i)
{
    return (place){ i < 8 || (i >= 16 && i < 24) ? g : g + 8,
                    t * 8 + (i & 7) + (i >= 16 ? 32 : 0) };
}
static place b_nibble(unsigned g, unsigned t, unsigned i)
{
    return (place){ t * 8 + (i & 7) + (i >= 8 ? 32 : 0), g };
}
static place a_m8k32_nibble(unsigned g, unsigned t, unsigned i)
{
    return (place){ g, t * 8 + i };
}
static place a_k256_bit(unsigned g, unsigned t, unsigned i)
{
    return (place){ i < 32 || (i >= 64 && i < 96) ? g : g + 8,
                    t * 32 + (i & 31) + (i >= 64 ? 128 : 0) };
}
static place a_m8k128_bit(unsigned g, unsigned t, unsigned i)
{
    return (place){ g, t * 32 + i };
}
static place b_bit(unsigned g, unsigned t, unsigned i)
{
    return (place){ t * 32 + (i & 31) + (i >= 32 ? 128 : 0), g };
}
static place c_any(unsigned g, unsigned t, unsigned i)
{
    return (place){ i < 2 ? g : g + 8, t * 2 + (i & 1) };
}

static const struct shape {
    const char *name;
    hw_mma x;
    unsigned bits, result_bits; /* of elements */
    place_fn *a, *b;
} shapes[] = {
#define X(m, n, k, a, c, f) { m, n, k, HW_MMA_##a, HW_MMA_##a, HW_MMA_##c, HW_MMA_##c, f }
    { "m16n8k16 f16, f32", X(16, 8, 16, F16, F32, 0), 16, 32, a_k16_half, b_half },
    { "m16n8k16 f16, f16", X(16, 8, 16, F16, F16, 0), 16, 16, a_k16_half, b_half },
    { "m16n8k16 bf16", X(16, 8, 16, BF16, F32, 0), 16, 32, a_k16_half, b_half },
    { "m16n8k8 f16", X(16, 8, 8, F16, F32, 0), 16, 32, a_k8_half, b_half },
    { "m16n8k8 tf32", X(16, 8, 8, TF32, F32, 0), 32, 32, a_k8_tf32, b_tf32 },
    { "m16n8k32 s8", X(16, 8, 32, S8, S32, 0), 8, 32, a_k32_byte, b_byte },
    { "m16n8k32 u8", X(16, 8, 32, U8, S32, HW_MMA_SATURATE), 8, 32, a_k32_byte, b_byte },
    { "m8n8k16 s8", X(8, 8, 16, S8, S32, 0), 8, 32, a_m8k16_byte, b_byte },
    { "m16n8k32 e4m3", X(16, 8, 32, E4M3, F32, 0), 8, 32, a_k32_byte, b_byte },
    { "m16n8k32 e5m2, f16", X(16, 8, 32, E5M2, F16, 0), 8, 16, a_k32_byte, b_byte },
    { "m16n8k16 e5m2", X(16, 8, 16, E5M2, F32, 0), 8, 32, a_k32_byte, b_byte },
    { "m16n8k64 s4", X(16, 8, 64, S4, S32, 0), 4, 32, a_k64_nibble, b_nibble },
    { "m16n8k32 u4", X(16, 8, 32, U4, S32, 0), 4, 32, a_k64_nibble, b_nibble },
    { "m8n8k32 s4", X(8, 8, 32, S4, S32, HW_MMA_SATURATE), 4, 32, a_m8k32_nibble, b_nibble },
    { "m8n8k32 u4, wmma", X(8, 8, 32, U4, S32, HW_MMA_WMMA), 4, 32, a_m8k32_nibble, b_nibble },
    { "m16n8k256 b1 xor", X(16, 8, 0, B1, S32, 0), 1, 32, a_k256_bit, b_bit },
    { "m16n8k128 b1 and", X(16, 8, 128, B1, S32, HW_MMA_AND), 1, 32, a_k256_bit, b_bit },
    { "m8n8k128 b1 and", X(8, 8, 128, B1, S32, HW_MMA_AND), 1, 32, a_m8k128_bit, b_bit },
    { "m8n8k4 f64", X(8, 8, 4, F64, F64, 0), 64, 64, a_m8k4_f64, b_tf32 },
};

typedef struct registers {
    uint64_t bytes[REGS][LANES];
    unsigned n;
} registers;

/* Element i of a lane stands in the low bits first. */
static void put(registers *r, unsigned first, unsigned lane, unsigned i, unsigned bits, uint64_t v)
{
    unsigned in_register = bits == 64 ? 1 : 32 / bits, at = i % in_register * bits;
    uint8_t *reg = (uint8_t *)r->bytes[first + i / in_register] + lane * (bits == 64 ? 8 : 4);
    uint64_t word = 0, mask = bits == 64 ? UINT64_MAX : ((UINT64_C(1) << bits) - 1) << at;
    memcpy(&word, reg, bits == 64 ? 8 : 4);
    word = (word & ~mask) | (v << at & mask);
    memcpy(reg, &word, bits == 64 ? 8 : 4);
}

static uint64_t get(const registers *r, unsigned lane, unsigned i, unsigned bits)
{
    unsigned in_register = bits == 64 ? 1 : 32 / bits;
    const uint8_t *reg = (const uint8_t *)r->bytes[i / in_register];
    uint64_t v = 0;
    memcpy(&v, reg + lane * (bits == 64 ? 8 : 4) + i % in_register * bits / 8, bits / 8);
    return v;
}

/* Lane l's element i of a wmma fragment of `n` elements a register: the manual's table for a block of
 * mma, blocks of 8 rows first (of B: of 8 columns last). */
static place wide_place(char which, unsigned l, unsigned i, unsigned n, unsigned rows,
                        unsigned cols)
{
    unsigned g = l / 4, t = l % 4, mine = rows * cols / LANES;
    i %= mine;
    unsigned r = i / n, e = i % n, block;
    if (which == 'a')
        return (place){ g + r % (rows / 8) * 8, r / (rows / 8) * 4 * n + t * n + e };
    if (which == 'b')
        return (place){ r % (rows / (4 * n)) * 4 * n + t * n + e, r / (rows / (4 * n)) * 8 + g };
    block = i / (rows / 4);
    i %= rows / 4;
    return (place){ g + i / 2 * 8, block * 8 + t * 2 + i % 2 };
}

static unsigned fill(registers *r, unsigned first, unsigned type, unsigned bits, unsigned mine,
                     place_fn *at, char which, unsigned rows, unsigned cols, const double *m)
{
    unsigned n = bits == 64 ? 1 : 32 / bits;
    for (unsigned l = 0; l < LANES; l++)
        for (unsigned i = 0; i < mine; i++) {
            place p = at ? at(l / 4, l % 4, i) : wide_place(which, l, i, n, rows, cols);
            put(r, first, l, i, bits, encode(type, m[p.row * cols + p.col]));
        }
    return first + mine * bits / (bits == 64 ? 64 : 32);
}

typedef struct matrices {
    double a[16 * 256], b[16 * 256], c[16 * 256];
} matrices;

static double term(const hw_mma *x, double a, double b)
{
    if (x->a == HW_MMA_B1)
        return x->flags & HW_MMA_AND ? a * b : a != b;
    return a * b;
}

static double expected(const hw_mma *x, const matrices *m, place p)
{
    unsigned depth = x->k ? x->k : 256;
    double want = m->c[p.row * x->n + p.col];
    for (unsigned k = 0; k < depth; k++)
        want += term(x, m->a[p.row * depth + k], m->b[k * x->n + p.col]);
    return x->flags & HW_MMA_SATURATE ? fmin(want, INT32_MAX) : want;
}

static void check(const char *name, hw_mma x, unsigned bits, unsigned result_bits, place_fn *fa,
                  place_fn *fb, const matrices *m)
{
    static registers in, out;
    const void *src[REGS];
    void *dst[REGS];
    bool wide = x.flags & HW_MMA_WMMA;
    unsigned depth = x.k ? x.k : 256;
    unsigned repeated = wide && x.a == HW_MMA_F16 ? 16 : 0, mine = (unsigned)x.m * x.n / LANES;
    for (unsigned i = 0; i < REGS; i++)
        src[i] = in.bytes[i], dst[i] = out.bytes[i];
    unsigned n = fill(&in, 0, x.a, bits, repeated ? repeated : x.m * depth / LANES, fa, 'a', x.m,
                      depth, m->a);
    n = fill(&in, n, x.b, bits, repeated ? repeated : depth * x.n / LANES, fb, 'b', depth, x.n,
             m->b);
    n = fill(&in, n, x.c, result_bits, mine, wide ? NULL : c_any, 'c', x.m, x.n, m->c);
    hw_lane_arrays io = { dst, src, mine * result_bits / (result_bits == 64 ? 64 : 32), n };
    uint64_t aux;
    memcpy(&aux, &x, sizeof aux);
    hw_jit_helpers[HW_H_MMA](NULL, UINT32_MAX, &io, aux);
    for (unsigned l = 0; l < LANES; l++)
        for (unsigned i = 0; i < mine; i++) {
            place p = wide ? wide_place('c', l, i, result_bits < 32 ? 2 : 1, x.m, x.n)
                           : c_any(l / 4, l % 4, i);
            double want = expected(&x, m, p);
            if (get(&out, l, i, result_bits) != encode(x.d, want))
                fail_msg("%s: row %u, column %u: 0x%llx instead of 0x%llx (%g)", name, p.row, p.col,
                         (unsigned long long)get(&out, l, i, result_bits),
                         (unsigned long long)encode(x.d, want), want);
        }
}

static matrices bits_of(matrices m)
{
    for (unsigned i = 0; i < 16 * 256; i++) {
        m.a[i] = (unsigned)m.a[i] & 1;
        m.b[i] = (unsigned)fabs(m.b[i]) & 1;
    }
    return m;
}

static matrices numbers(double scale, double first, bool is_signed)
{
    static unsigned seed = 1;
    matrices m;
    for (unsigned i = 0; i < 16 * 256; i++) {
        seed = seed * 1664525u + 1013904223u;
        m.a[i] = (double)(seed >> 20 & 7) * scale;
        m.b[i] = ((double)(seed >> 24 & 15) - (is_signed ? 8 : 0)) * scale;
        m.c[i] = first + (double)(seed >> 12 & 63);
    }
    return m;
}

static void test_fragments(void **state)
{
    (void)state;
    for (size_t s = 0; s < HW_COUNTOF(shapes); s++) {
        unsigned type = shapes[s].x.a;
        matrices m = numbers(1, 0, type != HW_MMA_U8 && type != HW_MMA_U4);
        if (type == HW_MMA_B1)
            m = bits_of(m);
        check(shapes[s].name, shapes[s].x, shapes[s].bits, shapes[s].result_bits, shapes[s].a,
              shapes[s].b, &m);
    }
}

static void test_wide(void **state)
{
    (void)state;
    static const hw_mma x[] = {
        X(16, 16, 16, F16, F32, HW_MMA_WMMA),  X(16, 16, 16, F16, F16, HW_MMA_WMMA),
        X(32, 8, 16, F16, F32, HW_MMA_WMMA),   X(8, 32, 16, F16, F16, HW_MMA_WMMA),
        X(16, 16, 16, BF16, F32, HW_MMA_WMMA), X(16, 16, 8, TF32, F32, HW_MMA_WMMA),
        X(16, 16, 16, S8, S32, HW_MMA_WMMA),
    };
    for (size_t i = 0; i < HW_COUNTOF(x); i++) {
        matrices m = numbers(1, 0, true);
        unsigned bits = x[i].a == HW_MMA_S8 ? 8 : x[i].a == HW_MMA_TF32 ? 32 : 16;
        check("wmma", x[i], bits, x[i].c == HW_MMA_F16 ? 16 : 32, NULL, NULL, &m);
    }
}

/* To halves: the least denormals, ties, beyond the range. */
static void test_half_results(void **state)
{
    (void)state;
    const double scales[] = { 0x1p-12, 0x1p-9, 0x1p-6, 0.375, 40, 200 };
    for (size_t i = 0; i < HW_COUNTOF(scales); i++) {
        matrices m = numbers(scales[i], 0, true);
        for (unsigned e = 0; e < 16 * 256; e++) {
            m.a[e] = (double)(_Float16)m.a[e];
            m.b[e] = (double)(_Float16)m.b[e];
            m.c[e] = (double)(_Float16)(m.c[e] * scales[i] * 0x1p-10);
        }
        check("f16 results", shapes[1].x, 16, 16, a_k16_half, b_half, &m);
    }
}

static void test_saturation(void **state)
{
    (void)state;
    matrices m = numbers(1, INT32_MAX - 100.0, false);
    check("satfinite", shapes[6].x, 8, 32, a_k32_byte, b_byte, &m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_half_results),
        cmocka_unit_test(test_saturation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

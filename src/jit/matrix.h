/* SPDX-License-Identifier: Apache-2.0
 * Pieces of matrix products: fragments made matrices and back, elements decoded and encoded, tiles
 * multiplied, by vectors of eight (private to matrix.c, shared_matrix.h and the products that use it). */
#ifndef HW_JIT_MATRIX_H
#define HW_JIT_MATRIX_H

#include "helpers.h"

enum { MOST = 32 * 16, EIGHT = 8 }; /* elements of a matrix */

typedef double doubles __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t longs __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint64_t unsigned_longs __attribute__((vector_size(64), aligned(8), may_alias));
typedef float floats __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint16_t shorts __attribute__((vector_size(16), aligned(2), may_alias));
typedef int8_t signed_octets __attribute__((vector_size(8), aligned(1), may_alias));
typedef uint8_t octets __attribute__((vector_size(8), aligned(1), may_alias));

/* Compiled for several processors; what it calls must be inlined. */
/* (A thread sanitizer cannot stand behind the choice, which is made before it is there.) */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define CLONED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONED
#endif
#define INLINED static inline __attribute__((always_inline))

typedef struct fragment {
    unsigned rows, cols;
    uint8_t type; /* hw_mma_type */
    char which;   /* 'a', 'b', 'c' (also d) */
    bool wmma;
} fragment;

/* clang-format off */
static const struct {
    uint8_t bits;
    bool is_int;
} types[] = {
    [HW_MMA_F16] = { 16, false }, [HW_MMA_BF16] = { 16, false }, [HW_MMA_TF32] = { 32, false },
    [HW_MMA_F32] = { 32, false }, [HW_MMA_F64] = { 64, false },
    [HW_MMA_S8] = { 8, true },    [HW_MMA_U8] = { 8, true },     [HW_MMA_S32] = { 32, true },
    [HW_MMA_E4M3] = { 8, false }, [HW_MMA_E5M2] = { 8, false },  [HW_MMA_S4] = { 4, true },
    [HW_MMA_U4] = { 4, true },    [HW_MMA_B1] = { 1, true },
};
/* clang-format on */

static inline unsigned in_register(const fragment *f)
{
    return types[f->type].bits == 64 ? 1 : 32u / types[f->type].bits;
}

/* Registers that hold the matrix once. */
static inline unsigned distinct(const fragment *f)
{
    return f->rows * f->cols / HW_WARP_LANES / in_register(f);
}

static inline unsigned registers(const fragment *f)
{
    if (f->wmma && f->type == HW_MMA_F16 && f->which != 'c')
        return 8; /* whatever the shape */
    return distinct(f);
}

INLINED void gather_a(const fragment *f, const void *const *regs, uint8_t *out)
{
    unsigned element = types[f->type].bits / 8, width = element == 8 ? 32 : 16;
    unsigned pitch = f->cols * element, per_chunk = f->rows / EIGHT;
    for (unsigned r = 0; r < distinct(f); r++) {
        uint8_t *to = out + r % per_chunk * EIGHT * pitch + r / per_chunk * width;
        for (unsigned i = 0; i < EIGHT; i++)
            if (width == 16)
                memcpy(to + i * pitch, (const uint8_t *)regs[r] + i * 16, 16);
            else
                memcpy(to + i * pitch, (const uint8_t *)regs[r] + i * 32, 32);
    }
}

/* The number, in row order, of lane l's first element of register r of C. */
INLINED unsigned place_in_c(const fragment *f, unsigned r, unsigned l)
{
    unsigned i = r * in_register(f), in_block = f->rows / 4, block = i / in_block;
    i %= in_block;
    return (i / 2 * EIGHT + l / 4) * f->cols + block * EIGHT + l % 4 * 2 + i % 2;
}

/* Pairs of columns: in one register, or in two. */
INLINED void gather_c(const fragment *f, const void *const *regs, uint8_t *out)
{
    unsigned count = registers(f), bits = types[f->type].bits;
    for (unsigned r = 0; r < count; r += bits == 16 ? 1 : 2) {
        if (bits == 16) {
            memcpy(out + r * 128, regs[r], 128);
            continue;
        }
        const void *even = regs[r], *odd = regs[r + 1];
        for (unsigned l = 0; l < HW_WARP_LANES; l++)
            if (bits == 32) {
                uint32_t *to = (uint32_t *)out + r * 32 + 2 * l;
                to[0] = ((const uint32_t *)even)[l];
                to[1] = ((const uint32_t *)odd)[l];
            } else {
                uint64_t *to = (uint64_t *)out + r * 32 + 2 * l;
                to[0] = ((const uint64_t *)even)[l];
                to[1] = ((const uint64_t *)odd)[l];
            }
    }
}

INLINED void deal(const fragment *f, void *const *regs, const void *in)
{
    unsigned count = registers(f), bits = types[f->type].bits;
    for (unsigned r = 0; r < count; r++)
        for (unsigned l = 0; l < HW_WARP_LANES; l++) {
            unsigned at = f->cols > EIGHT ? place_in_c(f, r, l) / (bits == 16 ? 2 : 1)
                          : bits == 16    ? r * 32 + l
                                          : r / 2 * 64 + 2 * l + r % 2;
            if (bits == 64)
                ((uint64_t *)regs[r])[l] = ((const uint64_t *)in)[at];
            else
                ((uint32_t *)regs[r])[l] = ((const uint32_t *)in)[at];
        }
}

INLINED void decode_half(const shorts *from, doubles *to)
{
    ints h = __builtin_convertvector(*from, ints), m = h & 0x7fff;
    /* denormals are made without a denormal float, which may count as 0 */
    ints small = (ints)(__builtin_convertvector(m, floats) * 0x1p-24f);
    ints normal = (m << 13) + (112 << 23) + ((m >= 0x7c00) & (112 << 23)), tiny = m < 0x400;
    ints bits = (small & tiny) | (normal & ~tiny) | (h & 0x8000) << 16;
    *to = __builtin_convertvector((floats)bits, doubles);
}

/* e5m2 is the upper byte of a half; e4m3 has the fraction 7 places up and an exponent 8 less. */
INLINED void decode_byte(bool e5m2, const octets *from, doubles *to)
{
    shorts h = __builtin_convertvector(*from, shorts);
    if (e5m2) {
        h <<= 8;
        decode_half(&h, to);
        return;
    }
    shorts m = h & 0x7f, bits = m << 7 | (h & 0x80) << 8;
    decode_half(&bits, to);
    longs nan = __builtin_convertvector(m, longs) == 0x7f;
    *to = (doubles)(((longs)(*to * 256) & ~nan) | (nan & INT64_C(0x7ff8000000000000)));
}

INLINED void decode_floats(uint8_t type, unsigned n, const void *raw, double *out)
{
    if (type == HW_MMA_F64) {
        memcpy(out, raw, n * sizeof *out);
        return;
    }
    for (unsigned i = 0; i < n; i += EIGHT) {
        doubles *to = (doubles *)(out + i);
        if (type == HW_MMA_E4M3 || type == HW_MMA_E5M2) {
            decode_byte(type == HW_MMA_E5M2, (const octets *)((const uint8_t *)raw + i), to);
        } else if (type == HW_MMA_F16) {
            decode_half((const shorts *)((const uint16_t *)raw + i), to);
        } else if (type == HW_MMA_BF16) {
            ints x = __builtin_convertvector(*(const shorts *)((const uint16_t *)raw + i), ints);
            *to = __builtin_convertvector((floats)(x << 16), doubles);
        } else { /* of tf32 the lower 13 bits do not count */
            ints x = *(const ints *)((const int32_t *)raw + i);
            x &= type == HW_MMA_TF32 ? ~0x1fff : ~0;
            *to = __builtin_convertvector((floats)x, doubles);
        }
    }
}

INLINED void decode_ints(uint8_t type, unsigned n, const void *raw, int32_t *out)
{
    if (type == HW_MMA_S32) {
        memcpy(out, raw, n * sizeof *out);
        return;
    }
    for (unsigned i = 0; i < n; i += EIGHT) {
        const uint8_t *p = (const uint8_t *)raw + i;
        *(ints *)(out + i) = type == HW_MMA_S8
                                 ? __builtin_convertvector(*(const signed_octets *)p, ints)
                                 : __builtin_convertvector(*(const octets *)p, ints);
    }
}

/* To nearest even; beyond the range: infinity. */
INLINED void encode_half(const doubles *from, shorts *to)
{
    const int64_t infinity = INT64_C(0x7ff) << 52, least_normal = INT64_C(1009) << 52;
    const doubles magic = { 0x1p28, 0x1p28, 0x1p28, 0x1p28, 0x1p28, 0x1p28, 0x1p28, 0x1p28 };
    longs bits = (longs)*from, m = bits & INT64_MAX;
    unsigned_longs u = (unsigned_longs)m, rounded = u + ((UINT64_C(1) << 41) - 1) + ((u >> 42) & 1);
    longs h = (longs)(rounded >> 42) - (1008 << 10);
    longs large = h >= 0x7c00, nan = m > infinity, tiny = m < least_normal;
    h = (h & ~large) | (large & 0x7c00);
    h = (h & ~nan) | (nan & (((m >> 42) & 0x3ff) | 0x7e00));
    longs counted = (longs)((doubles)m + magic) - (longs)magic; /* in units of 2^-24 */
    h = (h & ~tiny) | (tiny & counted) | ((bits >> 48) & 0x8000);
    *to = __builtin_convertvector(h, shorts);
}

INLINED void encode_floats(uint8_t type, unsigned n, const double *in, void *raw)
{
    if (type == HW_MMA_F64) {
        memcpy(raw, in, n * sizeof *in);
        return;
    }
    for (unsigned i = 0; i < n; i += EIGHT) {
        const doubles *from = (const doubles *)(in + i);
        if (type == HW_MMA_F16)
            encode_half(from, (shorts *)((uint16_t *)raw + i));
        else
            *(floats *)((float *)raw + i) = __builtin_convertvector(*from, floats);
    }
}

/* Four rows and eight columns of C. */
INLINED void multiply_tile(const hw_mma *x, const double *a, const double *b, double *c)
{
    doubles s0 = *(doubles *)c, s1 = *(doubles *)(c + x->n), s2 = *(doubles *)(c + 2 * x->n),
            s3 = *(doubles *)(c + 3 * x->n);
    for (unsigned k = 0; k < x->k; k++) {
        doubles row = *(const doubles *)(b + k * x->n);
        s0 += a[k] * row;
        s1 += a[x->k + k] * row;
        s2 += a[2 * x->k + k] * row;
        s3 += a[3 * x->k + k] * row;
    }
    *(doubles *)c = s0;
    *(doubles *)(c + x->n) = s1;
    *(doubles *)(c + 2 * x->n) = s2;
    *(doubles *)(c + 3 * x->n) = s3;
}

INLINED uint32_t lane_word(const void *reg, unsigned lane)
{
    return ((const uint32_t *)reg)[lane];
}

/* Where in its row of a sparse A, of 16 rows and k columns, a stored element stands (PTX ISA 9.7.14.6.2). An index has two bits: a
 * place in a chunk of four, of pairs of elements of 4 bits, of halves of elements of 32. Lanes of a group of four hold them: of
 * elements of at most 8 bits a lane one row's, of others both, the upper row's in the upper half. */
INLINED unsigned sparse_column(const void *indices, unsigned bits, unsigned k, unsigned selector,
                               unsigned row, unsigned stored)
{
    unsigned at = bits == 4 ? stored / 2 : bits == 32 ? stored * 2 : stored, lane, shift;
    if (bits <= 8) {
        lane = (at / 16 + selector) * 2 + row / EIGHT;
        shift = at % 16 * 2;
    } else {
        bool alone = k * bits == 256;
        lane = at / 8 + (alone ? selector : selector * 2);
        shift = at % 8 * 2 + row / EIGHT * 16;
    }
    unsigned index = lane_word(indices, row % EIGHT * 4 + lane % 4) >> shift & 3;
    if (bits == 4)
        return stored / 4 * 8 + index * 2 + stored % 2;
    return bits == 32 ? stored * 2 + index / 2 : stored / 2 * 4 + index;
}

INLINED int32_t saturated(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

static inline int32_t dot_bits(const uint8_t *a, const uint8_t *b, unsigned bytes, bool common)
{
    int32_t n = 0;
    for (unsigned k = 0; k < bytes; k += sizeof(uint64_t)) {
        uint64_t x, y;
        memcpy(&x, a + k, sizeof x);
        memcpy(&y, b + k, sizeof y);
        n += __builtin_popcountll(common ? x & y : x ^ y);
    }
    return n;
}

#endif

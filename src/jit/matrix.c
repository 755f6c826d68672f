/* SPDX-License-Identifier: Apache-2.0
 * Helper MMA: matrix products of a warp. Fragments are gathered into whole matrices, multiplied, and
 * the result is dealt out again. Floats but doubles are summed in double, in ascending order of k, and rounded
 * once, which is at least as exact as the hardware's unspecified order (PTX ISA 9.7.14).
 *
 * A register of a fragment, over the 32 lanes, is a block of 8 rows (of B: columns) of 16 bytes (f64:
 * 32); C's are pairs of columns. wmma's wider matrices are several of those side by side. The bytes are put in order first, then all elements decoded, by
 * vectors of eight, compiled for three generations of processors. */
#include "matrix.h"

#include <fenv.h>
#include <math.h>

/* ---- registers to matrices in row order, undecoded, and back ---- */

/* Eight columns of `across` elements each; below one another, then the next eight. */
#define COLUMNS(name, T, across)                                                           \
    INLINED void name(const fragment *f, const void *const *regs, void *out)               \
    {                                                                                      \
        unsigned cols = f->cols == EIGHT ? EIGHT : f->cols, in_block = f->rows / (across); \
        for (unsigned r = 0; r < distinct(f); r++) {                                       \
            const T *from = regs[r];                                                       \
            T *to = (T *)out + r % in_block * (across) * cols + r / in_block * EIGHT;      \
            for (unsigned k = 0; k < (across); k++)                                        \
                for (unsigned j = 0; j < EIGHT; j++)                                       \
                    to[k * cols + j] = from[j * (across) + k];                             \
        }                                                                                  \
    }
COLUMNS(columns8, uint8_t, 16)
COLUMNS(columns16, uint16_t, 8)
COLUMNS(columns32, uint32_t, 4)
COLUMNS(columns64, uint64_t, 4)

INLINED void gather_b(const fragment *f, const void *const *regs, void *out)
{
    switch (types[f->type].bits) {
    case 8:
        columns8(f, regs, out);
        return;
    case 16:
        columns16(f, regs, out);
        return;
    case 32:
        columns32(f, regs, out);
        return;
    default:
        columns64(f, regs, out);
    }
}

INLINED void gather_wide(const fragment *f, const void *const *regs, uint8_t *out)
{
    unsigned element = types[f->type].bits / 8, bytes = element == 8 ? 8 : 4;
    for (unsigned r = 0; r < registers(f); r++)
        for (unsigned l = 0; l < HW_WARP_LANES; l++)
            memcpy(out + place_in_c(f, r, l) * element, (const uint8_t *)regs[r] + l * bytes,
                   bytes);
}

INLINED void gather(const fragment *f, const void *const *regs, void *out)
{
    if (f->which == 'a')
        gather_a(f, regs, out);
    else if (f->which == 'b')
        gather_b(f, regs, out);
    else if (f->cols > EIGHT)
        gather_wide(f, regs, out);
    else
        gather_c(f, regs, out);
}

/* ---- the products ---- */

typedef struct product {
    hw_mma x;
    fragment a, b, c, d;
    const void *const *src;
    void *const *dst;
} product;

INLINED void get_floats(const fragment *f, const void *const *regs, double *out)
{
    _Alignas(64) uint8_t raw[MOST * sizeof(double)];
    gather(f, regs, raw);
    decode_floats(f->type, f->rows * f->cols, raw, out);
}

INLINED void get_ints(const fragment *f, const void *const *regs, int32_t *out)
{
    _Alignas(64) uint8_t raw[MOST * sizeof(int32_t)];
    gather(f, regs, raw);
    decode_ints(f->type, f->rows * f->cols, raw, out);
}

INLINED void multiply_floats(const product *p)
{
    _Alignas(64) double a[MOST], b[MOST], c[MOST];
    _Alignas(64) uint8_t raw[MOST * sizeof(double)];
    get_floats(&p->a, p->src, a);
    get_floats(&p->b, p->src + registers(&p->a), b);
    get_floats(&p->c, p->src + registers(&p->a) + registers(&p->b), c);
    for (unsigned i = 0; i < p->x.m; i += 4)
        for (unsigned j = 0; j < p->x.n; j += EIGHT)
            multiply_tile(&p->x, a + i * p->x.k, b + j, c + i * p->x.n + j);
    encode_floats(p->d.type, p->x.m * p->x.n, c, raw);
    deal(&p->d, p->dst, raw);
}

/* Products of two elements are exact, so it makes no difference where they are fused with sums. */
CLONED static void multiply_small_floats(const product *p)
{
    multiply_floats(p);
}

/* What the compiler must not move across a change of the rounding mode. */
#define KEEP_HERE(a, b, c) __asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory")

/* Those of doubles are not: each is fused with its sum, in the instruction's rounding mode (PTX ISA 9.7.14.5.14). */
CLONED static void multiply_doubles(const product *p)
{
    static const int modes[] = { [HW_ROUND_N] = FE_TONEAREST,
                                 [HW_ROUND_Z] = FE_TOWARDZERO,
                                 [HW_ROUND_M] = FE_DOWNWARD,
                                 [HW_ROUND_P] = FE_UPWARD };
    double a[MOST], b[MOST], c[MOST];
    const hw_mma *x = &p->x;
    int old = fegetround();
    gather(&p->a, p->src, a);
    gather(&p->b, p->src + registers(&p->a), b);
    gather(&p->c, p->src + registers(&p->a) + registers(&p->b), c);
    fesetround(modes[x->flags >> HW_MMA_ROUND_SHIFT]);
    KEEP_HERE(a, b, c);
    for (unsigned i = 0; i < x->m; i++)
        for (unsigned j = 0; j < x->n; j++)
            for (unsigned k = 0; k < x->k; k++)
                c[i * x->n + j] = fma(a[i * x->k + k], b[k * x->n + j], c[i * x->n + j]);
    KEEP_HERE(a, b, c);
    fesetround(old);
    deal(&p->d, p->dst, c);
}

/* 32 products of bytes fit easily; what C adds may not. */
CLONED static void multiply_ints(const product *p)
{
    _Alignas(64) int32_t a[MOST], b[MOST], c[MOST];
    const hw_mma *x = &p->x;
    get_ints(&p->a, p->src, a);
    get_ints(&p->b, p->src + registers(&p->a), b);
    get_ints(&p->c, p->src + registers(&p->a) + registers(&p->b), c);
    for (unsigned i = 0; i < x->m; i++)
        for (unsigned j = 0; j < x->n; j += EIGHT) {
            ints sum = { 0 }, *to = (ints *)(c + i * x->n + j);
            for (unsigned k = 0; k < x->k; k++)
                sum += a[i * x->k + k] * *(const ints *)(b + k * x->n + j);
            if (x->flags & HW_MMA_SATURATE)
                for (unsigned e = 0; e < EIGHT; e++)
                    (*to)[e] = saturated((int64_t)(*to)[e] + sum[e]);
            else
                *to = (ints)((uint32_t __attribute__((vector_size(32)))) * to +
                             (uint32_t __attribute__((vector_size(32))))sum);
        }
    deal(&p->d, p->dst, c);
}

/* ---- elements of less than a byte ---- */

enum { PITCH_MOST = 32 }; /* bytes of a row of A or a column of B: 16 in a register */

static int32_t nibble(uint8_t byte, unsigned high, bool is_signed)
{
    int32_t v = high ? byte >> 4 : byte & 15;
    return is_signed && v >= 8 ? v - 16 : v;
}

static int32_t dot_nibbles(const product *p, const uint8_t *a, const uint8_t *b, unsigned bytes)
{
    bool sa = p->x.a == HW_MMA_S4, sb = p->x.b == HW_MMA_S4;
    int32_t sum = 0;
    for (unsigned k = 0; k < 2 * bytes; k++)
        sum += nibble(a[k / 2], k & 1, sa) * nibble(b[k / 2], k & 1, sb);
    return sum;
}

/* Rows of A, columns of B: a lane's register is four bytes of one, and a register of all lanes 16
 * bytes of eight. wmma's runs come to the same where there is one register. */
static void take_rows(const void *const *regs, unsigned count, unsigned rows, uint8_t *out)
{
    unsigned per_chunk = rows / EIGHT, pitch = count / per_chunk * 16;
    for (unsigned r = 0; r < count; r++)
        for (unsigned i = 0; i < EIGHT; i++)
            memcpy(out + (r % per_chunk * EIGHT + i) * pitch + r / per_chunk * 16,
                   (const uint8_t *)regs[r] + i * 16, 16);
}

static void multiply_bits(const product *p)
{
    uint8_t a[16 * PITCH_MOST], b[EIGHT * PITCH_MOST];
    _Alignas(64) int32_t c[MOST];
    unsigned na = registers(&p->a), nb = registers(&p->b), bytes = nb * 16;
    take_rows(p->src, na, p->x.m, a);
    take_rows(p->src + na, nb, EIGHT, b);
    get_ints(&p->c, p->src + na + nb, c);
    for (unsigned i = 0; i < p->x.m; i++)
        for (unsigned j = 0; j < EIGHT; j++) {
            const uint8_t *x = a + i * bytes, *y = b + j * bytes;
            int32_t sum = p->x.a == HW_MMA_B1 ? dot_bits(x, y, bytes, p->x.flags & HW_MMA_AND)
                                              : dot_nibbles(p, x, y, bytes);
            int32_t *to = &c[i * EIGHT + j];
            *to = p->x.flags & HW_MMA_SATURATE ? saturated((int64_t)*to + sum)
                                               : (int32_t)((uint32_t)*to + (uint32_t)sum);
        }
    deal(&p->d, p->dst, c);
}

void hw_jit_mma(hw_frame *frame, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)frame, (void)lanes; /* all lanes take part (PTX ISA, mma: else undefined) */
    hw_mma x;
    memcpy(&x, &aux, sizeof x);
    bool wmma = x.flags & HW_MMA_WMMA;
    unsigned k = x.k ? x.k : 256;
    const product p = { .x = x,
                        .a = { x.m, k, x.a, 'a', wmma },
                        .b = { k, x.n, x.b, 'b', wmma },
                        .c = { x.m, x.n, x.c, 'c', wmma },
                        .d = { x.m, x.n, x.d, 'c', wmma },
                        .src = io->src,
                        .dst = io->dst };
    if (registers(&p.a) + registers(&p.b) + registers(&p.c) != io->nsrc ||
        registers(&p.d) != io->ndst)
        return;
    if (types[x.a].bits < 8)
        multiply_bits(&p);
    else if (types[x.c].is_int)
        multiply_ints(&p);
    else if (x.a == HW_MMA_F64)
        multiply_doubles(&p);
    else
        multiply_small_floats(&p);
}

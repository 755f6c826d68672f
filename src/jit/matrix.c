/* SPDX-License-Identifier: Apache-2.0
 * Helper MMA: matrix products of a warp. Fragments are gathered into whole matrices, multiplied, and
 * the result is dealt out again. Floats are summed in double and rounded once, which is at least as
 * exact as the hardware's unspecified order (PTX ISA 9.7.14). */
#include "helpers.h"

#include <math.h>

enum { MOST = 32 * 32 }; /* elements of a matrix: up to 32 x 16, 16 x 32, 32 x 8 */

typedef struct fragment {
    unsigned rows, cols;
    uint8_t type; /* hw_mma_type */
    char which;   /* 'a', 'b', 'c' (also d) */
    bool linear;
} fragment;

typedef union element {
    double f;
    int64_t i;
} element;

/* clang-format off */
static const struct {
    uint8_t bits;
    bool is_int;
} types[] = {
    [HW_MMA_F16] = { 16, false }, [HW_MMA_BF16] = { 16, false }, [HW_MMA_TF32] = { 32, false },
    [HW_MMA_F32] = { 32, false }, [HW_MMA_F64] = { 64, false },
    [HW_MMA_S8] = { 8, true },    [HW_MMA_U8] = { 8, true },     [HW_MMA_S32] = { 32, true },
};
/* clang-format on */

static unsigned in_register(const fragment *f)
{
    return types[f->type].bits == 64 ? 1 : 32u / types[f->type].bits;
}

static unsigned registers(const fragment *f)
{
    if (f->linear && f->type == HW_MMA_F16 && f->which != 'c')
        return 8; /* wmma's f16 operands, whatever the shape */
    return f->rows * f->cols / HW_WARP_LANES / in_register(f);
}

/* Index, in row order, of element e of register r of a lane. */
static unsigned place(const fragment *f, unsigned r, unsigned e, unsigned lane)
{
    unsigned n = in_register(f), group = lane >> 2, in_group = lane & 3;
    if (f->linear)
        return (lane * registers(f) * n + r * n + e) % (f->rows * f->cols);
    if (f->which == 'c') { /* pairs of columns; rows 8 apart */
        unsigned i = r * n + e;
        return (group + (i >> 1) * 8) * f->cols + in_group * 2 + (i & 1);
    }
    if (f->which == 'b') /* column = group; runs of n rows */
        return (r * 4 * n + in_group * n + e) * f->cols + group;
    unsigned per_chunk = f->rows / 8, chunk = r / per_chunk, row = group + (r % per_chunk) * 8;
    return row * f->cols + chunk * 4 * n + in_group * n + e;
}

static float single(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static element decode(uint8_t type, uint64_t bits)
{
    switch (type) {
    case HW_MMA_F16:
        return (element){ .f = hw_jit_from_half((uint16_t)bits) };
    case HW_MMA_BF16:
        return (element){ .f = (double)single((uint32_t)(bits & 0xffff) << 16) };
    case HW_MMA_TF32: /* the lower 13 bits do not count */
        return (element){ .f = (double)single((uint32_t)bits & 0xffffe000) };
    case HW_MMA_F32:
        return (element){ .f = (double)single((uint32_t)bits) };
    case HW_MMA_F64: {
        element e;
        memcpy(&e.f, &bits, sizeof e.f);
        return e;
    }
    case HW_MMA_S8:
        return (element){ .i = (int8_t)(uint8_t)bits };
    case HW_MMA_U8:
        return (element){ .i = (uint8_t)bits };
    default:
        return (element){ .i = (int32_t)(uint32_t)bits };
    }
}

static uint64_t half_bits(double v)
{
    _Float16 h = (_Float16)v;
    uint16_t bits;
    memcpy(&bits, &h, sizeof bits);
    return bits;
}

static uint64_t encode(uint8_t type, element e)
{
    uint64_t wide;
    uint32_t bits;
    float f = (float)e.f;
    switch (type) {
    case HW_MMA_F16:
        return half_bits(e.f);
    case HW_MMA_F64:
        memcpy(&wide, &e.f, sizeof wide);
        return wide;
    case HW_MMA_S32:
        return (uint32_t)e.i;
    default:
        memcpy(&bits, &f, sizeof bits);
        return bits;
    }
}

static uint64_t lane_register(const void *array, unsigned lane, bool wide)
{
    return wide ? ((const uint64_t *)array)[lane] : ((const uint32_t *)array)[lane];
}

static void gather(const fragment *f, const void *const *regs, element *out)
{
    unsigned bits = types[f->type].bits, n = in_register(f);
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    for (unsigned r = 0; r < registers(f); r++)
        for (unsigned l = 0; l < HW_WARP_LANES; l++) {
            uint64_t v = lane_register(regs[r], l, bits == 64);
            for (unsigned e = 0; e < n; e++)
                out[place(f, r, e, l)] = decode(f->type, (v >> (e * bits & 63)) & mask);
        }
}

static void deal(const fragment *f, void *const *regs, const element *in)
{
    unsigned bits = types[f->type].bits, n = in_register(f);
    for (unsigned r = 0; r < registers(f); r++)
        for (unsigned l = 0; l < HW_WARP_LANES; l++) {
            uint64_t v = 0;
            for (unsigned e = 0; e < n; e++)
                v |= encode(f->type, in[place(f, r, e, l)]) << (e * bits & 63);
            if (bits == 64)
                ((uint64_t *)regs[r])[l] = v;
            else
                ((uint32_t *)regs[r])[l] = (uint32_t)v;
        }
}

static void multiply_floats(const hw_mma *x, const element *a, const element *b, element *c)
{
    for (unsigned i = 0; i < x->m; i++)
        for (unsigned k = 0; k < x->k; k++) {
            double v = a[i * x->k + k].f;
            for (unsigned j = 0; j < x->n; j++)
                c[i * x->n + j].f += v * b[k * x->n + j].f;
        }
}

static void multiply_ints(const hw_mma *x, const element *a, const element *b, element *c)
{
    for (unsigned i = 0; i < x->m; i++)
        for (unsigned k = 0; k < x->k; k++)
            for (unsigned j = 0; j < x->n; j++)
                c[i * x->n + j].i += a[i * x->k + k].i * b[k * x->n + j].i;
    for (unsigned e = 0; (x->flags & HW_MMA_SATURATE) && e < (unsigned)x->m * x->n; e++)
        c[e].i = c[e].i > INT32_MAX ? INT32_MAX : c[e].i < INT32_MIN ? INT32_MIN : c[e].i;
}

void hw_jit_mma(hw_frame *frame, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)frame, (void)lanes; /* all lanes take part (PTX ISA, mma: else undefined) */
    hw_mma x;
    memcpy(&x, &aux, sizeof x);
    bool linear = x.flags & HW_MMA_LINEAR;
    fragment a = { x.m, x.k, x.a, 'a', linear }, b = { x.k, x.n, x.b, 'b', linear };
    fragment c = { x.m, x.n, x.c, 'c', linear }, d = { x.m, x.n, x.d, 'c', linear };
    element ma[MOST], mb[MOST], mc[MOST];
    if (registers(&a) + registers(&b) + registers(&c) != io->nsrc || registers(&d) != io->ndst)
        return;
    gather(&a, io->src, ma);
    gather(&b, io->src + registers(&a), mb);
    gather(&c, io->src + registers(&a) + registers(&b), mc);
    if (types[x.c].is_int)
        multiply_ints(&x, ma, mb, mc);
    else
        multiply_floats(&x, ma, mb, mc);
    deal(&d, io->dst, mc);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Helper WGMMA: sixteen rows of a warpgroup's product (PTX ISA 9.7.15.5). A fragment of D is that of m16n8 products side by side and one of
 * A in registers that of theirs, so that it is taken eight columns at a time; sums are as helper MMA's.
 */
#include "shared_matrix.h"

enum { K_BYTES = 32, ROWS = 16, BYTES_MOST = K_BYTES * EIGHT, WARPGROUP = 4 };

/* ---- matrices in shared memory ---- */

typedef struct matrix {
    shared_matrix at;
    bool mn_major;
    uint8_t type;
} matrix;

static matrix matrix_of(const hw_frame *f, uint64_t descriptor, bool mn_major, uint8_t type)
{
    static const uint8_t modes[] = { SWIZZLE_NONE, SWIZZLE_128, SWIZZLE_64, SWIZZLE_32 };
    return (matrix){ shared_matrix_of(f->shared, descriptor, modes[descriptor >> 62]), mn_major,
                     type };
}

/* Eight rows of 32 bytes of A, or columns of B, from 8 * group on: each one's bytes together. part: of a sparse product's B, which
 * 32 bytes. */
INLINED void take_rows_of(const matrix *m, uint32_t group, uint32_t part, uint8_t *out)
{
    if (!m->mn_major) {
        for (uint32_t r = 0; r < EIGHT; r++)
            for (uint32_t half = 0; half < 2; half++)
                memcpy(out + r * K_BYTES + half * PIECE,
                       piece_of_row(&m->at, group * EIGHT + r, part * 2 + half), PIECE);
        return;
    }
    for (uint32_t k = 0; k < K_BYTES / 2; k++) { /* only of elements of 16 bits */
        uint16_t v[EIGHT];
        memcpy(v, piece_of_k(&m->at, group, part * (K_BYTES / 2) + k), sizeof v);
        for (uint32_t r = 0; r < EIGHT; r++)
            memcpy(out + r * K_BYTES + k * 2, &v[r], 2);
    }
}

#define TURNED(name, T)                                                                     \
    INLINED void name(const uint8_t *in, uint8_t *out)                                      \
    {                                                                                       \
        for (unsigned k = 0; k < K_BYTES / sizeof(T); k++)                                  \
            for (unsigned j = 0; j < EIGHT; j++)                                            \
                ((T *)out)[k * EIGHT + j] = ((const T *)in)[j * (K_BYTES / sizeof(T)) + k]; \
    }
TURNED(turned8, uint8_t)
TURNED(turned16, uint16_t)
TURNED(turned32, uint32_t)

/* Eight columns of B: k in turn, of each the eight. */
INLINED void take_columns(const matrix *m, uint32_t group, uint32_t part, uint8_t *out)
{
    _Alignas(64) uint8_t rows[BYTES_MOST];
    if (m->mn_major) {
        for (uint32_t k = 0; k < K_BYTES / 2; k++)
            memcpy(out + k * PIECE, piece_of_k(&m->at, group, part * (K_BYTES / 2) + k), PIECE);
        return;
    }
    take_rows_of(m, group, part, rows);
    if (types[m->type].bits == 8)
        turned8(rows, out);
    else if (types[m->type].bits == 16)
        turned16(rows, out);
    else
        turned32(rows, out);
}

/* ---- products ---- */

typedef struct product {
    hw_wgmma x;
    unsigned k; /* elements */
    bool adds;
    fragment d; /* of eight columns */
    matrix a, b;
    uint32_t rows; /* of A before the warp's, in eights */
    const void *const *a_regs, *const *d_regs;
    const void *indices; /* of a sparse A */
    void *const *dst;
} product;

INLINED void take_a(const product *p, uint8_t *out)
{
    if (!(p->x.flags & HW_WGMMA_A_REGISTERS)) {
        take_rows_of(&p->a, p->rows, 0, out);
        take_rows_of(&p->a, p->rows + 1, 0, out + BYTES_MOST);
        return;
    }
    for (unsigned r = 0; r < 4; r++) /* eight rows of 16 bytes: upper, lower, then the other half */
        for (unsigned i = 0; i < EIGHT; i++)
            memcpy(out + (r % 2 * EIGHT + i) * K_BYTES + r / 2 * PIECE,
                   (const uint8_t *)p->a_regs[r] + i * PIECE, PIECE);
}

INLINED void take_a_floats(const product *p, uint8_t *raw, double *a)
{
    take_a(p, raw);
    decode_floats(p->x.a, ROWS * p->k, raw, a);
    if (p->x.flags & HW_WGMMA_NEGATE)
        for (unsigned i = 0; i < ROWS * p->k; i++)
            a[i] = -a[i];
}

INLINED void take_c_floats(const product *p, unsigned j, uint8_t *raw, double *c)
{
    memset(c, 0, ROWS * EIGHT * sizeof *c);
    if (p->adds) {
        gather_c(&p->d, p->d_regs + j * registers(&p->d), raw);
        decode_floats(p->d.type, ROWS * EIGHT, raw, c);
    }
}

CLONED static void multiply_floats(const product *p)
{
    _Alignas(64) uint8_t raw[MOST * sizeof(double)];
    _Alignas(64) double a[ROWS * K_BYTES], b[K_BYTES * EIGHT], c[ROWS * EIGHT];
    const hw_mma x = { .m = ROWS, .n = EIGHT, .k = (uint8_t)p->k };
    unsigned each = registers(&p->d);
    take_a_floats(p, raw, a);
    for (unsigned j = 0; j < p->x.n / EIGHT; j++) {
        take_columns(&p->b, j, 0, raw);
        decode_floats(p->x.b, EIGHT * p->k, raw, b);
        take_c_floats(p, j, raw, c);
        for (unsigned i = 0; i < ROWS; i += 4)
            multiply_tile(&x, a + i * p->k, b, c + i * EIGHT);
        encode_floats(p->d.type, ROWS * EIGHT, c, raw);
        deal(&p->d, p->dst + j * each, raw);
    }
}

INLINED void add_ints(const product *p, const int32_t *sums, unsigned j)
{
    _Alignas(64) int32_t c[ROWS * EIGHT] = { 0 };
    unsigned each = registers(&p->d);
    if (p->adds)
        gather_c(&p->d, p->d_regs + j * each, (uint8_t *)c);
    for (unsigned i = 0; i < ROWS * EIGHT; i++)
        c[i] = p->x.flags & HW_WGMMA_SATURATE ? saturated((int64_t)c[i] + sums[i])
                                              : (int32_t)((uint32_t)c[i] + (uint32_t)sums[i]);
    deal(&p->d, p->dst + j * each, c);
}

CLONED static void multiply_ints(const product *p)
{
    _Alignas(64) uint8_t raw[MOST * sizeof(int32_t)];
    _Alignas(64) int32_t a[ROWS * K_BYTES], b[K_BYTES * EIGHT], sums[ROWS * EIGHT];
    take_a(p, raw);
    decode_ints(p->x.a, ROWS * K_BYTES, raw, a);
    for (unsigned j = 0; j < p->x.n / EIGHT; j++) {
        take_columns(&p->b, j, 0, raw);
        decode_ints(p->x.b, EIGHT * K_BYTES, raw, b);
        for (unsigned i = 0; i < ROWS; i++) {
            ints sum = { 0 };
            for (unsigned k = 0; k < K_BYTES; k++)
                sum += a[i * K_BYTES + k] * *(const ints *)(b + k * EIGHT);
            *(ints *)(sums + i * EIGHT) = sum;
        }
        add_ints(p, sums, j);
    }
}

/* ---- a sparse A: of each row the stored elements, each with the row of B that its index names ---- */

INLINED void find_columns(const product *p, uint8_t *at)
{
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned s = 0; s < p->k; s++)
            at[i * p->k + s] = (uint8_t)sparse_column(p->indices, types[p->x.a].bits, 2 * p->k,
                                                      p->x.selector, i, s);
}

CLONED static void multiply_sparse_floats(const product *p)
{
    _Alignas(64) uint8_t raw[MOST * sizeof(double)], at[ROWS * K_BYTES];
    _Alignas(64) double a[ROWS * K_BYTES], b[2 * K_BYTES * EIGHT], c[ROWS * EIGHT];
    take_a_floats(p, raw, a);
    find_columns(p, at);
    for (unsigned j = 0; j < p->x.n / EIGHT; j++) {
        for (unsigned part = 0; part < 2; part++) {
            take_columns(&p->b, j, part, raw);
            decode_floats(p->x.b, EIGHT * p->k, raw, b + part * p->k * EIGHT);
        }
        take_c_floats(p, j, raw, c);
        for (unsigned i = 0; i < ROWS; i++)
            for (unsigned s = i * p->k; s < (i + 1) * p->k; s++)
                *(doubles *)(c + i * EIGHT) += a[s] * *(const doubles *)(b + at[s] * EIGHT);
        encode_floats(p->d.type, ROWS * EIGHT, c, raw);
        deal(&p->d, p->dst + j * registers(&p->d), raw);
    }
}

CLONED static void multiply_sparse_ints(const product *p)
{
    _Alignas(64) uint8_t raw[MOST * sizeof(int32_t)], at[ROWS * K_BYTES];
    _Alignas(64) int32_t a[ROWS * K_BYTES], b[2 * K_BYTES * EIGHT], sums[ROWS * EIGHT];
    take_a(p, raw);
    decode_ints(p->x.a, ROWS * K_BYTES, raw, a);
    find_columns(p, at);
    for (unsigned j = 0; j < p->x.n / EIGHT; j++) {
        for (unsigned part = 0; part < 2; part++) {
            take_columns(&p->b, j, part, raw);
            decode_ints(p->x.b, EIGHT * K_BYTES, raw, b + part * K_BYTES * EIGHT);
        }
        for (unsigned i = 0; i < ROWS; i++) {
            ints sum = { 0 };
            for (unsigned s = i * K_BYTES; s < (i + 1) * K_BYTES; s++)
                sum += a[s] * *(const ints *)(b + at[s] * EIGHT);
            *(ints *)(sums + i * EIGHT) = sum;
        }
        add_ints(p, sums, j);
    }
}

static void multiply_bits(const product *p)
{
    uint8_t a[2 * BYTES_MOST], b[BYTES_MOST];
    int32_t sums[ROWS * EIGHT];
    take_a(p, a);
    for (unsigned j = 0; j < p->x.n / EIGHT; j++) {
        take_rows_of(&p->b, j, 0, b);
        for (unsigned i = 0; i < ROWS * EIGHT; i++)
            sums[i] = dot_bits(a + i / EIGHT * K_BYTES, b + i % EIGHT * K_BYTES, K_BYTES, true);
        add_ints(p, sums, j);
    }
}

void hw_jit_wgmma(hw_frame *frame, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)lanes; /* all */
    hw_wgmma x;
    memcpy(&x, &aux, sizeof x);
    bool registers_a = x.flags & HW_WGMMA_A_REGISTERS;
    unsigned before = registers_a ? 6 : 3;
    product p = { .x = x,
                  .k = K_BYTES * 8u / types[x.a].bits,
                  .adds = *(const uint8_t *)io->src[0] & 1,
                  .d = { ROWS, EIGHT, x.d, 'c', false },
                  .rows = frame->warp % WARPGROUP * (ROWS / EIGHT),
                  .a_regs = io->src + 2,
                  .d_regs = io->src + before,
                  .dst = io->dst };
    bool sparse = x.flags & HW_WGMMA_SPARSE;
    if (x.n / EIGHT * registers(&p.d) != io->ndst || before + io->ndst + sparse != io->nsrc)
        return;
    p.indices = io->src[io->nsrc - 1];
    p.b = matrix_of(frame, *(const uint64_t *)io->src[1], x.flags & HW_WGMMA_MN_B, x.b);
    if (!registers_a)
        p.a = matrix_of(frame, *(const uint64_t *)io->src[2], x.flags & HW_WGMMA_MN_A, x.a);
    if (sparse && types[x.d].is_int)
        multiply_sparse_ints(&p);
    else if (sparse)
        multiply_sparse_floats(&p);
    else if (x.a == HW_MMA_B1)
        multiply_bits(&p);
    else if (types[x.d].is_int)
        multiply_ints(&p);
    else
        multiply_floats(&p);
}

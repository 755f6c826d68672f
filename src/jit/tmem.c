/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of tensor memory (hw_jit_tmem.h). A is decoded as a whole, k by k with its rows side by side, as D's lanes lie in a column of
 * cells; B some columns at a time, each with its k in turn. Sixteen lanes and four columns are then summed together. Integers too are
 * summed in double, where their sums are exact.
 */
#include "hw_jit_tmem.h"
#include "number.h"
#include "shared_matrix.h"

#include <math.h>

enum {
    LANES = HW_TMEM_LANES,
    K_MOST = 128,
    TILE_LANES = 16,
    TILE_COLUMNS = 4,
    CHUNK = 32,    /* columns of B decoded at a time */
    ELEMENTS = 32, /* of a piece, at most */
};

/* ---- elements ---- */

typedef float floats_4 __attribute__((vector_size(16), aligned(4), may_alias));

static shared_matrix matrix_of(const uint8_t *shared, uint64_t descriptor)
{
    static const uint8_t modes[8] = { SWIZZLE_NONE, SWIZZLE_128_PAIRS, SWIZZLE_128, SWIZZLE_NONE,
                                      SWIZZLE_64,   SWIZZLE_NONE,      SWIZZLE_32,  SWIZZLE_NONE };
    shared_matrix m = shared_matrix_of(shared, descriptor, modes[descriptor >> HW_TMEM_SWIZZLE]);
    m.absolute = descriptor >> HW_TMEM_ABSOLUTE & 1;
    return m;
}

/* Elements of a piece of 16 bytes. */
static inline unsigned elements_of(uint8_t type)
{
    return type == HW_MMA_E2M1_PAIRS ? 32 : type >= HW_MMA_E3M2 ? 16 : 128u / types[type].bits;
}

/* Narrow floats one a byte: of 6 bits in its lower part, of 4 in its middle. */
static void unpack_narrow(uint8_t type, const uint8_t *piece, uint8_t *out)
{
    unsigned bits = type == HW_MMA_E2M1 ? 4 : 6, up = type == HW_MMA_E2M1 ? 2 : 0;
    for (unsigned i = 0; i < PIECE; i++) {
        unsigned at = i * bits, both = piece[at / 8] | piece[at / 8 + 1] << 8;
        out[i] = (uint8_t)((both >> at % 8 & ((1u << bits) - 1)) << up);
    }
}

/* A sign and a magnitude of a byte, the magnitude that of a half but for its exponent. */
INLINED void decode_narrow(uint8_t type, const uint8_t *from, double *to)
{
    static const struct {
        uint8_t down, sign, up;
        double scale;
    } forms[] = { { 0, 5, 8, 0x1p12 }, { 0, 5, 7, 0x1p14 }, { 2, 3, 9, 0x1p14 } };
    unsigned form = type - HW_MMA_E3M2, sign = forms[form].sign;
    for (unsigned i = 0; i < PIECE; i += EIGHT) {
        shorts b = __builtin_convertvector(*(const octets *)(from + i), shorts) >> forms[form].down;
        shorts half = (b & (uint16_t)((1u << sign) - 1)) << forms[form].up | (b >> sign & 1) << 15;
        decode_half(&half, (doubles *)(to + i));
        *(doubles *)(to + i) *= forms[form].scale;
    }
}

INLINED void decode_integers(uint8_t type, const uint8_t *from, double *to)
{
    for (unsigned i = 0; i < PIECE; i += EIGHT)
        *(doubles *)(to + i) =
            type == HW_MMA_S8 ? __builtin_convertvector(*(const signed_octets *)(from + i), doubles)
                              : __builtin_convertvector(*(const octets *)(from + i), doubles);
}

/* One piece; in_cells: narrow floats have a byte each. */
INLINED void decode_piece(uint8_t type, bool in_cells, const uint8_t *piece, double *to)
{
    uint8_t bytes[2 * PIECE];
    if (type == HW_MMA_E2M1_PAIRS) {
        for (unsigned i = 0; i < 2 * PIECE; i++)
            bytes[i] = (uint8_t)((piece[i / 2] >> i % 2 * 4 & 15) << 2);
        for (unsigned i = 0; i < 2; i++)
            decode_narrow(HW_MMA_E2M1, bytes + i * PIECE, to + i * PIECE);
    } else if (type >= HW_MMA_E3M2) {
        if (!in_cells)
            unpack_narrow(type, piece, bytes);
        decode_narrow(type, in_cells ? piece : bytes, to);
    } else if (types[type].is_int) {
        decode_integers(type, piece, to);
    } else if (type == HW_MMA_TF32) { /* of the lower 13 bits none counts */
        uint32_t words[PIECE / 4];
        memcpy(words, piece, PIECE);
        for (unsigned i = 0; i < PIECE / 4; i++)
            words[i] &= ~UINT32_C(0x1fff);
        for (unsigned i = 0; i < PIECE / 4; i++)
            to[i] = (double)((const floats_4 *)words)[0][i];
    } else if (type == HW_MMA_F16) {
        decode_half((const shorts *)piece, (doubles *)to);
    } else if (type == HW_MMA_BF16) {
        ints x = __builtin_convertvector(*(const shorts *)piece, ints);
        *(doubles *)to = __builtin_convertvector((floats)(x << 16), doubles);
    } else {
        for (unsigned i = 0; i < PIECE; i += EIGHT)
            decode_byte(type == HW_MMA_E5M2, (const octets *)(piece + i), (doubles *)(to + i));
    }
}

/* ---- A: [k][row] ---- */

typedef struct factors {
    _Alignas(64) double a[K_MOST * LANES];
    _Alignas(64) double b[CHUNK * K_MOST];
    double stored[K_MOST / 2 * LANES]; /* of a sparse A, and which of its elements they are */
    bool given[K_MOST * LANES];
} factors;

static inline unsigned stored_k(const hw_tmem_product *p)
{
    return p->sparse ? p->k / 2u : p->k;
}

INLINED void spread_row(const double *v, unsigned n, unsigned k, unsigned row, double *a)
{
    for (unsigned i = 0; i < n; i++)
        a[(k + i) * LANES + row] = v[i];
}

/* K-major, or MN-major with rows side by side already. */
INLINED void take_a_shared(const hw_tmem_product *p, const hw_tmem_block *b, double *a)
{
    shared_matrix m = matrix_of(b->shared, p->a_at);
    unsigned n = elements_of(p->a);
    double v[ELEMENTS];
    if (!p->mn_a) {
        for (unsigned row = 0; row < p->rows; row++)
            for (unsigned k = 0; k < stored_k(p); k += n) {
                decode_piece(p->a, false, piece_of_row(&m, row, k / n), v);
                spread_row(v, n, k, row, a);
            }
        return;
    }
    for (unsigned k = 0; k < stored_k(p); k++)
        for (unsigned row = 0; row < p->rows; row += n)
            decode_piece(p->a, false, piece_of_k(&m, row / n, k), a + k * LANES + row);
}

/* The lane of a row, in the first part. */
static inline unsigned lane_of(const hw_tmem_product *p, unsigned row)
{
    return p->spread ? row % 16 + row / 16 * 32 : row;
}

/* From the lanes of one part of D. */
INLINED void take_a_cells(const hw_tmem_product *p, const hw_tmem_block *b, unsigned lane,
                          double *a)
{
    unsigned n = elements_of(p->a), last = LANES - 1;
    uint32_t column = (uint32_t)p->a_at & 0xffff;
    uint8_t piece[PIECE];
    double v[ELEMENTS];
    for (unsigned row = 0; row < p->rows; row++) {
        unsigned from = lane + lane_of(p, row);
        if (p->a_shifted && from < last)
            from++;
        for (unsigned k = 0; k < stored_k(p); k += n) {
            for (unsigned i = 0; i < 4; i++)
                memcpy(piece + 4 * i, &b->cells[column + k / n * 4 + i][from], 4);
            decode_piece(p->a, true, piece, v);
            spread_row(v, n, k, row, a);
        }
    }
}

/* ---- a sparse A: where in its row a stored element stands (9.7.16.10.8) ---- */

/* The four bits of chunk c of a row; lane: of row 0. Each two of them name an element of four, a pair of them, or a half of one of two. */
static unsigned indices_of(const hw_tmem_product *p, const hw_tmem_block *b, unsigned lane,
                           unsigned row, unsigned c)
{
    if (p->a == HW_MMA_TF32 || p->a == HW_MMA_F16 || p->a == HW_MMA_BF16) {
        unsigned from = lane + lane_of(p, row / 16 * 16) + row % 8 + c / 4 * 8;
        return b->cells[p->indices][from] >> (row % 16 / 8 * 16 + c % 4 * 4) & 15;
    }
    return b->cells[p->indices + c / 8][lane + lane_of(p, row)] >> c % 8 * 4 & 15;
}

static unsigned column_of(const hw_tmem_product *p, const hw_tmem_block *b, unsigned lane,
                          unsigned row, unsigned stored)
{
    if (p->a == HW_MMA_TF32)
        return stored * 2 + (indices_of(p, b, lane, row, stored) >> 1 & 1);
    if (p->a == HW_MMA_E2M1_PAIRS) {
        unsigned both = indices_of(p, b, lane, row, stored / 4) >> stored / 2 % 2 * 2;
        return stored / 4 * 8 + (both & 3) * 2 + stored % 2;
    }
    return stored / 2 * 4 + (indices_of(p, b, lane, row, stored / 2) >> stored % 2 * 2 & 3);
}

static void expand(const hw_tmem_product *p, const hw_tmem_block *b, unsigned lane, factors *x)
{
    memset(x->a, 0, sizeof x->a);
    memset(x->given, 0, sizeof x->given);
    for (unsigned row = 0; row < p->rows; row++)
        for (unsigned s = 0; s < stored_k(p); s++) {
            unsigned at = column_of(p, b, lane, row, s) * LANES + row;
            x->a[at] = x->stored[s * LANES + row];
            x->given[at] = true;
        }
}

/* ---- B: [column][k], CHUNK columns from n0 on ---- */

INLINED bool is_zero(const hw_tmem_product *p, unsigned n)
{
    return p->zero[n / 32] >> n % 32 & 1;
}

/* Columns from n on that stand together, at most `count`: how many. */
INLINED unsigned take_columns(const hw_tmem_product *p, unsigned n, unsigned count, double *to)
{
    unsigned each = (unsigned)p->n / p->nblocks, per = elements_of(p->b);
    unsigned owner = n / each, first = n % each + p->shift;
    shared_matrix m = matrix_of(p->block[owner].shared, p->b_at);
    double v[ELEMENTS];
    if (!p->mn_b) {
        for (unsigned k = 0; k < p->k; k += per)
            decode_piece(p->b, false, piece_of_row(&m, first, k / per), to + k);
        return 1;
    }
    unsigned run = per - first % per < count ? per - first % per : count;
    for (unsigned k = 0; k < p->k; k++) {
        decode_piece(p->b, false, piece_of_k(&m, first / per, k), v);
        for (unsigned i = 0; i < run; i++)
            to[i * K_MOST + k] = v[first % per + i];
    }
    return run;
}

INLINED void take_b(const hw_tmem_product *p, unsigned n0, unsigned count, double *b)
{
    for (unsigned done = 0; done < count;)
        done += take_columns(p, n0 + done, count - done, b + done * K_MOST);
    for (unsigned i = 0; i < count; i++)
        if (is_zero(p, n0 + i))
            memset(b + i * K_MOST, 0, p->k * sizeof *b);
}

/* ---- scales ---- */

/* Scale `byte` of those that begin in a column; more than four go on behind the columns of all n rows. */
static double scale_at(const hw_tmem_product *p, const hw_tmem_block *b, unsigned lane, unsigned n,
                       unsigned column, unsigned byte)
{
    uint32_t cell = b->cells[column + byte / 4 * hw_tmem_scale_columns(n)][lane];
    return scale_of(p->scale.type == HW_TMEM_UE4M3, (uint8_t)(cell >> byte % 4 * 8));
}

static void scale_a(const hw_tmem_product *p, const hw_tmem_block *b, unsigned lane, double *a)
{
    for (unsigned row = 0; row < p->rows; row++)
        for (unsigned chunk = 0; chunk < p->k / p->scale.each; chunk++) {
            double s = scale_at(p, b, (lane + row) / 32 * 32 + row % 32, p->rows,
                                p->scale.column_a + row / 32, p->scale.byte_a + chunk);
            for (unsigned i = 0; i < p->scale.each; i++)
                a[(chunk * p->scale.each + i) * LANES + row] *= s;
        }
}

/* Columns from n0 of this part on. */
static void scale_b(const hw_tmem_product *p, const hw_tmem_block *b, unsigned lane, unsigned n0,
                    unsigned count, double *x)
{
    for (unsigned n = n0; n < n0 + count; n++, x += K_MOST)
        for (unsigned chunk = 0; chunk < p->k / p->scale.each; chunk++) {
            double s = scale_at(p, b, lane + n % 32, (unsigned)p->n / p->parts,
                                p->scale.column_b + n / 32, p->scale.byte_b + chunk);
            for (unsigned i = 0; i < p->scale.each; i++)
                x[chunk * p->scale.each + i] *= s;
        }
}

/* ---- sums ---- */

typedef double sums[TILE_COLUMNS][TILE_LANES];

INLINED void take_d(const hw_tmem_product *p, const uint32_t *cells, double *c)
{
    double scale = ldexp(1, -p->scale_d);
    for (unsigned i = 0; i < TILE_LANES; i += EIGHT) {
        ints x = *(const ints *)(cells + i);
        doubles *to = (doubles *)(c + i);
        if (p->d == HW_MMA_S32) {
            *to = __builtin_convertvector(x, doubles);
        } else if (p->d == HW_MMA_F16) {
            shorts h = __builtin_convertvector(x, shorts);
            decode_half(&h, to);
        } else {
            *to = __builtin_convertvector((floats)x, doubles);
        }
        *to *= scale;
    }
}

INLINED void encode_integers(bool saturates, const double *c, uint32_t *out)
{
    for (unsigned i = 0; i < TILE_LANES; i++) {
        int64_t v = (int64_t)c[i];
        out[i] = saturates ? (uint32_t)saturated(v) : (uint32_t)v;
    }
}

INLINED void put_d(const hw_tmem_product *p, const double *c, uint32_t keep, uint32_t *cells)
{
    uint32_t out[TILE_LANES];
    if (p->d == HW_MMA_S32) {
        encode_integers(p->saturates, c, out);
    } else if (p->d == HW_MMA_F16) {
        uint16_t h[TILE_LANES];
        encode_floats(HW_MMA_F16, TILE_LANES, c, h);
        for (unsigned i = 0; i < TILE_LANES; i++)
            out[i] = h[i];
    } else {
        encode_floats(HW_MMA_F32, TILE_LANES, c, out);
    }
    if (!keep) {
        memcpy(cells, out, sizeof out);
        return;
    }
    for (unsigned i = 0; i < TILE_LANES; i++)
        if (!(keep >> i & 1))
            cells[i] = out[i];
}

/* Written out, as the sums must stay in registers. */
INLINED void multiply_tile_of(const double *a, const double *b, unsigned k, sums c)
{
    doubles *const l[] = { (doubles *)c[0], (doubles *)c[1], (doubles *)c[2], (doubles *)c[3] };
    doubles l0 = l[0][0], l1 = l[1][0], l2 = l[2][0], l3 = l[3][0];
    doubles h0 = l[0][1], h1 = l[1][1], h2 = l[2][1], h3 = l[3][1];
    for (unsigned i = 0; i < k; i++, a += LANES, b++) {
        doubles low = *(const doubles *)a, high = *(const doubles *)(a + EIGHT);
        l0 += low * b[0];
        h0 += high * b[0];
        l1 += low * b[K_MOST];
        h1 += high * b[K_MOST];
        l2 += low * b[2 * K_MOST];
        h2 += high * b[2 * K_MOST];
        l3 += low * b[3 * K_MOST];
        h3 += high * b[3 * K_MOST];
    }
    l[0][0] = l0, l[0][1] = h0, l[1][0] = l1, l[1][1] = h1;
    l[2][0] = l2, l[2][1] = h2, l[3][0] = l3, l[3][1] = h3;
}

/* What a sparse A does not give takes no part, whatever B has there. */
static void multiply_given(const factors *x, unsigned row, unsigned j, unsigned k, sums c)
{
    for (unsigned i = 0; i < TILE_COLUMNS; i++)
        for (unsigned l = 0; l < TILE_LANES; l++)
            for (unsigned e = 0; e < k; e++)
                if (x->given[e * LANES + row + l])
                    c[i][l] += x->a[e * LANES + row + l] * x->b[(j + i) * K_MOST + e];
}

static bool all_finite(const double *b, unsigned count, unsigned k)
{
    for (unsigned j = 0; j < count; j++)
        for (unsigned i = 0; i < k; i++)
            if (!isfinite(b[j * K_MOST + i]))
                return false;
    return true;
}

/* All rows of a block, `count` columns from column n0 of one part on. */
INLINED void multiply_chunk(const hw_tmem_product *p, const hw_tmem_block *b, unsigned lane,
                            unsigned n0, unsigned count, const factors *x)
{
    unsigned column = (p->d_at & 0xffff) + n0 % ((unsigned)p->n / p->parts);
    bool apart = p->sparse && !all_finite(x->b, count, p->k);
    for (unsigned row = 0; row < p->rows; row += TILE_LANES)
        for (unsigned j = 0; j < count; j += TILE_COLUMNS) {
            _Alignas(64) sums c = { 0 };
            unsigned at = lane + lane_of(p, row);
            uint32_t keep = b->keep[at / 32] >> at % 32 & 0xffff;
            for (unsigned i = 0; i < TILE_COLUMNS && p->adds; i++)
                take_d(p, &b->cells[column + j + i][at], c[i]);
            if (apart)
                multiply_given(x, row, j, p->k, c);
            else
                multiply_tile_of(x->a + row, x->b + j * K_MOST, p->k, c);
            for (unsigned i = 0; i < TILE_COLUMNS; i++)
                put_d(p, c[i], keep, &b->cells[column + j + i][at]);
        }
}

INLINED void negate(const hw_tmem_product *p, double *a)
{
    for (unsigned k = 0; k < p->k; k++)
        for (unsigned row = 0; row < p->rows; row++)
            a[k * LANES + row] = -a[k * LANES + row];
}

INLINED void multiply_part(const hw_tmem_product *p, const hw_tmem_block *b, unsigned part,
                           factors *x)
{
    unsigned each = (unsigned)p->n / p->parts, lane = (p->d_at >> 16) + part * (LANES / p->parts);
    if (part == 0 || p->a_in_cells || p->scale.type || p->sparse) {
        double *a = p->sparse ? x->stored : x->a;
        if (p->a_in_cells)
            take_a_cells(p, b, lane, a);
        else
            take_a_shared(p, b, a);
        if (p->sparse)
            expand(p, b, lane, x);
        if (p->negates)
            negate(p, x->a);
        if (p->scale.type)
            scale_a(p, b, lane, x->a);
    }
    for (unsigned n = 0; n < each; n += CHUNK) {
        unsigned count = each - n < CHUNK ? each - n : CHUNK;
        take_b(p, part * each + n, count, x->b);
        if (p->scale.type)
            scale_b(p, b, lane, n, count, x->b);
        multiply_chunk(p, b, lane, part * each + n, count, x);
    }
}

CLONED void hw_jit_tmem_multiply(const hw_tmem_product *p)
{
    factors x;
    for (unsigned i = 0; i < p->nblocks; i++)
        for (unsigned part = 0; part < p->parts; part++)
            multiply_part(p, &p->block[i], part, &x);
}

/* ---- copies ---- */

/* The lanes of a row: up to four. */
static unsigned lanes_of(hw_tmem_rows rows, unsigned row, unsigned lanes[4])
{
    static const uint8_t copies[] = { 1, 2, 2, 4, 1 }, apart[] = { 0, 64, 32, 32, 0 };
    unsigned first = rows == HW_TMEM_ROWS_4                    ? row * 32
                     : rows == HW_TMEM_ROWS_64_01 && row >= 32 ? row + 32
                                                               : row;
    for (unsigned i = 0; i < copies[rows]; i++)
        lanes[i] = first + i * apart[rows];
    return copies[rows];
}

void hw_jit_tmem_copy(const hw_tmem_block *b, uint32_t to, uint64_t from, const hw_tmem_copy *how)
{
    static const uint8_t counts[] = { 128, 64, 64, 32, 4 };
    static const uint8_t narrow[] = { 0, HW_MMA_E2M3, HW_MMA_E2M1 };
    shared_matrix m = matrix_of(b->shared, from);
    unsigned lanes[4], column = to & 0xffff, base = to >> 16;
    for (unsigned row = 0; row < counts[how->rows]; row++)
        for (unsigned piece = 0; piece < how->pieces; piece++) {
            uint32_t words[PIECE / 4];
            const uint8_t *at = piece_of_row(&m, row, piece);
            if (how->bits == HW_TMEM_AS_IS)
                memcpy(words, at, PIECE);
            else
                unpack_narrow(narrow[how->bits], at, (uint8_t *)words);
            unsigned n = lanes_of((hw_tmem_rows)how->rows, row, lanes);
            for (unsigned i = 0; i < n * (PIECE / 4); i++)
                b->cells[column + piece * 4 + i % 4][base + lanes[i / 4]] = words[i % 4];
        }
}

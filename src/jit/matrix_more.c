/* SPDX-License-Identifier: Apache-2.0
 * Helper MMA_MORE: matrix products of a warp that are rare: the four small ones of mma.m8n8k4 (PTX ISA 9.7.14.5.1), those of a
 * sparse A (9.7.14.6) and those whose factors have scales (9.7.14.3). Element by element; sums are as helper MMA's. */
#include "number.h"

enum { K_MOST = 128, ROWS_MOST = 16, QUAD_ROWS = 8, QUAD_K = 4, QUADS = 4 };

/* ---- elements ---- */

static unsigned bits_of(uint8_t type)
{
    static const uint8_t bits[] = {
        [HW_MMA_E3M2] = 8, [HW_MMA_E2M3] = 8, [HW_MMA_E2M1] = 8, [HW_MMA_E2M1_PAIRS] = 4
    };
    return type < HW_MMA_E3M2 ? types[type].bits : bits[type];
}

/* Ints and floats alike: 32 bits fit in a double, and sums of products of at most 8 bits. */
static double decoded(uint8_t type, uint32_t x)
{
    switch ((hw_mma_type)type) {
    case HW_MMA_S8:
        return (int8_t)x;
    case HW_MMA_S4:
        return (double)((int)(x & 15) - (x & 8 ? 16 : 0));
    case HW_MMA_U8:
    case HW_MMA_U4:
        return x;
    case HW_MMA_S32:
        return (int32_t)x;
    case HW_MMA_TF32:
        return number(type, x & ~UINT32_C(0x1fff));
    case HW_MMA_E2M1:
        return number(type, x >> 2 & 15);
    default:
        return number(type, x);
    }
}

/* ---- fragments ---- */

/* A lane's element i. */
static double element(const void *const *regs, uint8_t type, unsigned lane, unsigned i)
{
    unsigned bits = bits_of(type), each = 32 / bits;
    uint32_t w = lane_word(regs[i / each], lane) >> i % each * bits;
    return decoded(type, bits == 32 ? w : w & ((1u << bits) - 1));
}

typedef struct place {
    unsigned row, col;
} place;

/* Of A's and C's fragments of mma.m16n8kK; B's is A's upper eight rows, turned. */
static place place_in_a(unsigned lane, unsigned i, unsigned each)
{
    unsigned r = i / each;
    return (place){ lane / 4 + r % 2 * EIGHT, (r / 2 * 4 + lane % 4) * each + i % each };
}
static place place_in_b(unsigned lane, unsigned i, unsigned each)
{
    return (place){ (i / each * 4 + lane % 4) * each + i % each, lane / 4 };
}
static place place_in_result(unsigned lane, unsigned i)
{
    return (place){ lane / 4 + i / 2 * EIGHT, lane % 4 * 2 + i % 2 };
}

/* ---- one product ---- */

typedef struct product {
    hw_mma_more x;
    const void *const *a, *const *b, *const *c;
    const void *const *indices;                  /* one register */
    const void *const *scale_a, *const *scale_b; /* scales, byte, thread */
    void *const *d;
    double fa[ROWS_MOST * K_MOST], fb[K_MOST * EIGHT];
    bool
        given[ROWS_MOST * K_MOST]; /* of A; what is not given takes no part, whatever B has there */
} product;

static unsigned registers_of(uint8_t type, unsigned elements)
{
    return elements * bits_of(type) / (HW_WARP_LANES * 32);
}

/* ---- factors ---- */

static unsigned column(const product *p, unsigned row, unsigned stored)
{
    return sparse_column(p->indices[0], bits_of(p->x.a), p->x.k, p->x.selector, row, stored);
}

static void take_factors(product *p)
{
    unsigned k = p->x.k, stored = p->x.flags & HW_MMA_SPARSE ? k / 2 : k;
    unsigned each_a = 32 / bits_of(p->x.a), each_b = 32 / bits_of(p->x.b);
    memset(p->given, 0, sizeof p->given);
    for (unsigned l = 0; l < HW_WARP_LANES; l++) {
        for (unsigned i = 0; i < ROWS_MOST * stored / HW_WARP_LANES; i++) {
            place at = place_in_a(l, i, each_a);
            unsigned col = stored < k ? column(p, at.row, at.col) : at.col;
            p->fa[at.row * k + col] = element(p->a, p->x.a, l, i);
            p->given[at.row * k + col] = true;
        }
        for (unsigned i = 0; i < EIGHT * k / HW_WARP_LANES; i++) {
            place at = place_in_b(l, i, each_b);
            p->fb[at.row * EIGHT + at.col] = element(p->b, p->x.b, l, i);
        }
    }
}

/* Scale `chunk` of the row or column whose scales a lane of its group of four holds. */
static double scale(const product *p, const void *const *s, unsigned lane, unsigned chunk)
{
    unsigned byte = lane_word(s[1], 0) + chunk;
    return scale_of(p->x.flags & HW_MMA_UE4M3, (uint8_t)(lane_word(s[0], lane) >> byte % 4 * 8));
}

static void apply_scales(product *p)
{
    unsigned k = p->x.k, chunk = k / p->x.scales, pair = lane_word(p->scale_a[2], 0) % 2;
    unsigned thread = lane_word(p->scale_b[2], 0) % 4;
    for (unsigned c = 0; c < p->x.scales; c++) {
        for (unsigned row = 0; row < ROWS_MOST; row++) {
            double s = scale(p, p->scale_a, row % EIGHT * 4 + pair * 2 + row / EIGHT, c);
            for (unsigned i = c * chunk; i < (c + 1) * chunk; i++)
                if (p->given[row * k + i])
                    p->fa[row * k + i] *= s;
        }
        for (unsigned col = 0; col < EIGHT; col++) {
            double s = scale(p, p->scale_b, col * 4 + thread, c);
            for (unsigned i = c * chunk; i < (c + 1) * chunk; i++)
                p->fb[i * EIGHT + col] *= s;
        }
    }
}

/* ---- results ---- */

static uint32_t result_bits(uint8_t type, bool saturate, double sum)
{
    uint32_t bits;
    float single;
    _Alignas(16) double in[EIGHT] = { sum };
    _Alignas(16) uint16_t half[EIGHT];
    switch ((hw_mma_type)type) {
    case HW_MMA_S32:
        return (uint32_t)(saturate ? saturated((int64_t)sum) : (int64_t)sum);
    case HW_MMA_F16:
        encode_floats(type, EIGHT, in, half);
        return half[0];
    default:
        single = (float)sum;
        memcpy(&bits, &single, sizeof bits);
        return bits;
    }
}

static void put(const product *p, unsigned lane, unsigned i, double sum)
{
    uint32_t v = result_bits(p->x.d, p->x.flags & HW_MMA_SATURATE, sum);
    unsigned each = 32 / bits_of(p->x.d);
    uint32_t *word = (uint32_t *)p->d[i / each] + lane;
    if (each == 1)
        *word = v;
    else
        *word = i % 2 ? (*word & 0xffff) | v << 16 : v;
}

static void multiply(const product *p)
{
    unsigned k = p->x.k;
    double sums[ROWS_MOST * EIGHT];
    for (unsigned l = 0; l < HW_WARP_LANES; l++)
        for (unsigned i = 0; i < 4; i++) {
            place at = place_in_result(l, i);
            double sum = element(p->c, p->x.c, l, i);
            for (unsigned e = 0; e < k; e++)
                if (p->given[at.row * k + e])
                    sum += p->fa[at.row * k + e] * p->fb[e * EIGHT + at.col];
            sums[l * 4 + i] = sum;
        }
    for (unsigned e = 0; e < HW_WARP_LANES * 4; e++) /* D may be C */
        put(p, e / 4, e % 4, sums[e]);
}

/* ---- the four of m8n8k4 ---- */

/* Eight lanes have a product: four of the lower half of the warp, four of the upper. */
INLINED unsigned quad_lane(unsigned quad, unsigned t)
{
    return quad * 4 + t % 4 + t / 4 * 16;
}

/* Element i of lane t of such eight, along the matrix's rows or across them. */
INLINED place place_in_quad(unsigned t, unsigned i, bool along)
{
    return along ? (place){ t, i } : (place){ i + t / 4 * 4, t % 4 };
}

INLINED place place_in_quad_result(uint8_t type, unsigned t, unsigned i)
{
    if (type == HW_MMA_F16)
        return (place){ t, i };
    return (place){ (t & 1) + (i & 2) + t / 4 * 4, (i & 4) + (t & 2) + (i & 1) };
}

/* Where element i of a lane stands among those of its registers, all lanes' of the first, then the second. */
INLINED unsigned number_of(unsigned lane, unsigned i, unsigned each)
{
    return (i / each * HW_WARP_LANES + lane) * each + i % each;
}

INLINED void decode_registers(const void *const *regs, uint8_t type, unsigned n, double *out)
{
    unsigned count = HW_WARP_LANES * 32u / types[type].bits;
    for (unsigned r = 0; r < n; r++)
        decode_floats(type, count, regs[r], out + r * count);
}

/* One of the four: eight columns at a time. */
INLINED void multiply_quad(const product *p, unsigned quad, const double *ra, const double *rb,
                           const double *rc, double *rd)
{
    _Alignas(64) double a[QUAD_ROWS * QUAD_K], b[QUAD_K * EIGHT], c[QUAD_ROWS * EIGHT];
    unsigned each_c = 32 / types[p->x.c].bits, each_d = 32 / types[p->x.d].bits;
    for (unsigned t = 0; t < EIGHT; t++) {
        unsigned l = quad_lane(quad, t);
        for (unsigned i = 0; i < QUAD_K; i++) {
            place at_a = place_in_quad(t, i, !(p->x.flags & HW_MMA_COL_A));
            place at_b = place_in_quad(t, i, !(p->x.flags & HW_MMA_ROW_B)); /* turned */
            a[at_a.row * QUAD_K + at_a.col] = ra[number_of(l, i, 2)];
            b[at_b.col * EIGHT + at_b.row] = rb[number_of(l, i, 2)];
        }
        for (unsigned i = 0; i < EIGHT; i++) {
            place at = place_in_quad_result(p->x.c, t, i);
            c[at.row * EIGHT + at.col] = rc[number_of(l, i, each_c)];
        }
    }
    for (unsigned row = 0; row < QUAD_ROWS; row++)
        for (unsigned k = 0; k < QUAD_K; k++)
            *(doubles *)(c + row * EIGHT) +=
                a[row * QUAD_K + k] * *(const doubles *)(b + k * EIGHT);
    for (unsigned t = 0; t < EIGHT; t++)
        for (unsigned i = 0; i < EIGHT; i++) {
            place at = place_in_quad_result(p->x.d, t, i);
            rd[number_of(quad_lane(quad, t), i, each_d)] = c[at.row * EIGHT + at.col];
        }
}

CLONED static void multiply_quads(const product *p)
{
    enum { HALVES = 2, WORDS = 8, ALL = HW_WARP_LANES * EIGHT };
    _Alignas(64) double a[HW_WARP_LANES * QUAD_K], b[HW_WARP_LANES * QUAD_K], c[ALL], d[ALL];
    unsigned nc = WORDS * types[p->x.c].bits / 32, nd = WORDS * types[p->x.d].bits / 32;
    decode_registers(p->a, p->x.a, HALVES, a);
    decode_registers(p->b, p->x.b, HALVES, b);
    decode_registers(p->c, p->x.c, nc, c);
    for (unsigned quad = 0; quad < QUADS; quad++)
        multiply_quad(p, quad, a, b, c, d);
    for (unsigned r = 0; r < nd; r++)
        encode_floats(p->x.d, ALL / nd, d + r * (ALL / nd), p->d[r]);
}

/* ---- the helper ---- */

/* Sets where the operands are; false if their number is not what the form has. */
static bool take_operands(product *p, const hw_lane_arrays *io)
{
    bool quads = p->x.flags & HW_MMA_QUADS, sparse = p->x.flags & HW_MMA_SPARSE;
    unsigned rows = quads ? 4 * QUAD_ROWS : ROWS_MOST, cols = quads ? 4 * EIGHT : EIGHT;
    unsigned results = quads ? 4 * QUAD_ROWS * EIGHT : ROWS_MOST * EIGHT;
    unsigned n = registers_of(p->x.a, rows * p->x.k / (sparse ? 2 : 1));
    p->a = io->src;
    p->b = p->a + n;
    n += registers_of(p->x.b, cols * p->x.k);
    p->c = io->src + n;
    n += registers_of(p->x.c, results);
    p->indices = io->src + n;
    n += sparse;
    p->scale_a = io->src + n;
    p->scale_b = io->src + n + 3;
    n += p->x.scales ? 6 : 0;
    p->d = io->dst;
    return n == io->nsrc && registers_of(p->x.d, results) == io->ndst && p->x.k <= K_MOST;
}

void hw_jit_mma_more(hw_frame *frame, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    (void)frame, (void)lanes; /* all lanes take part (PTX ISA, mma: else undefined) */
    product p;
    memcpy(&p.x, &aux, sizeof p.x);
    if (!take_operands(&p, io))
        return;
    if (p.x.flags & HW_MMA_QUADS) {
        multiply_quads(&p);
        return;
    }
    take_factors(&p);
    if (p.x.scales)
        apply_scales(&p);
    multiply(&p);
}

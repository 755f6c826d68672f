/* SPDX-License-Identifier: Apache-2.0
 * Products in tensor memory: what the instruction and its descriptors say (PTX ISA 9.7.16.4, 9.7.16.10), checked, before room jit multiplies; and
 * what tells an mbarrier that they are done (9.7.16.12). */
#include "mbarrier.h"
#include "tmem.h"

#include <stdio.h>

enum {
    NONE = 255,
    SPREAD_LANE = 16,
    BASE_SHIFT = 49,
    BASE_MASK = 7,
    VERSION_SHIFT = 46,
    K_96 = 96
};

_Noreturn static void bad(hw_frame *f, const char *fmt, ...) HW_PRINTF(2, 3);
_Noreturn static void bad(hw_frame *f, const char *fmt, ...)
{
    char words[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc, "tcgen05.mma: %s", words);
}

/* ---- descriptors of shared memory ---- */

static unsigned swizzle_of(uint64_t descriptor)
{
    return (unsigned)(descriptor >> HW_TMEM_SWIZZLE);
}

void hw_tmem_check_descriptor(hw_frame *f, const char *what, uint64_t d)
{
    static const uint8_t known[] = { 1, 1, 1, 0, 1, 0, 1, 0 };
    if (!known[swizzle_of(d)] || (d >> VERSION_SHIFT & 7) != 1)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "%s: 0x%016llx is no descriptor of shared memory for these instructions", what,
                 (unsigned long long)d);
    if (swizzle_of(d) && (d >> BASE_SHIFT & BASE_MASK))
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc,
                 "%s: a matrix base offset other than 0 is not supported", what);
}

/* ---- the instruction descriptor ---- */

/* clang-format off */
static const struct {
    uint8_t type[8]; /* of A and B, by what the descriptor says */
    uint8_t d[4];
    uint8_t k, bits;
} kinds[HW_TMEM_KINDS] = {
    [HW_TMEM_F16]    = { { HW_MMA_F16, HW_MMA_BF16, NONE, NONE, NONE, NONE, NONE, NONE }, { HW_MMA_F16, HW_MMA_F32, NONE, NONE }, 16, 16 },
    [HW_TMEM_TF32]   = { { NONE, NONE, HW_MMA_TF32, NONE, NONE, NONE, NONE, NONE }, { NONE, HW_MMA_F32, NONE, NONE }, 8, 32 },
    [HW_TMEM_F8F6F4] = { { HW_MMA_E4M3, HW_MMA_E5M2, NONE, HW_MMA_E2M3, HW_MMA_E3M2, HW_MMA_E2M1, NONE, NONE },
                         { HW_MMA_F16, HW_MMA_F32, NONE, NONE }, 32, 8 },
    [HW_TMEM_MXF8F6F4] = { { HW_MMA_E4M3, HW_MMA_E5M2, NONE, HW_MMA_E2M3, HW_MMA_E3M2, HW_MMA_E2M1, NONE, NONE }, { NONE, NONE, NONE, NONE }, 32, 8 },
    [HW_TMEM_MXF4]   = { { NONE, HW_MMA_E2M1_PAIRS, NONE, NONE, NONE, NONE, NONE, NONE }, { NONE, NONE, NONE, NONE }, 64, 4 },
    [HW_TMEM_MXF4NVF4] = { { NONE, HW_MMA_E2M1_PAIRS, NONE, NONE, NONE, NONE, NONE, NONE }, { NONE, NONE, NONE, NONE }, 64, 4 },
    [HW_TMEM_I8]     = { { HW_MMA_U8, HW_MMA_S8, NONE, NONE, NONE, NONE, NONE, NONE }, { NONE, NONE, HW_MMA_S32, NONE }, 32, 8 },
};
/* clang-format on */

typedef struct shape { /* what the descriptor says */
    uint32_t bits, m, n;
} shape;

static uint32_t field(uint32_t bits, unsigned from, unsigned n)
{
    return bits >> from & ((1u << n) - 1);
}

static shape shape_of(uint32_t bits)
{
    return (shape){ .bits = bits, .m = field(bits, 24, 5) << 4, .n = field(bits, 17, 6) << 3 };
}

static bool m_fits(const hw_tmem_mma *x, uint32_t m)
{
    if (x->flags & HW_TMEM_WS)
        return m == 32 || m == 64 || m == 128;
    if (x->flags & HW_TMEM_SCALED && (x->group == 1 || x->flags & HW_TMEM_SPARSE))
        return m == 128u * x->group;
    return m == 64u * x->group || m == 128u * x->group;
}

static bool n_fits(const hw_tmem_mma *x, uint32_t n)
{
    if (x->flags & HW_TMEM_WS)
        return n == 64 || n == 128 || (n == 256 && !(x->flags & HW_TMEM_SPARSE));
    uint32_t step = 8u * x->group;
    if (x->kind == HW_TMEM_I8)
        step = x->group == 2 ? 32 : n > 32 ? 16 : 8;
    return n >= step && n <= 256 && n % step == 0;
}

static void check_shape(hw_frame *f, const hw_tmem_mma *x, const shape *s)
{
    if (!m_fits(x, s->m) || !n_fits(x, s->n))
        bad(f,
            "the instruction descriptor 0x%08x names a product of %u rows and %u columns, "
            "which this form does not have",
            s->bits, s->m, s->n);
    if (!(x->flags & HW_TMEM_SPARSE) != !(s->bits & 4))
        bad(f,
            "the instruction descriptor 0x%08x and the instruction differ in whether A is sparse",
            s->bits);
    if (x->flags & HW_TMEM_A_SHIFTED && s->m != 128u * x->group)
        bad(f, ".ashift with %u rows", s->m);
}

static void check_types(hw_frame *f, const shape *s, const hw_tmem_product *p)
{
    if (p->a == NONE || p->b == NONE || p->d == NONE)
        bad(f, "the instruction descriptor 0x%08x names types that this kind does not have",
            s->bits);
    if (p->saturates && p->d != HW_MMA_S32)
        bad(f, "the instruction descriptor 0x%08x asks for saturation of floats", s->bits);
    if (p->negates && p->d == HW_MMA_S32)
        bad(f, "the instruction descriptor 0x%08x negates integers", s->bits);
}

/* Rows (columns of B) one beside the other: only of whole bytes, and of 32 bits only where pairs of pieces change places. */
static void check_major(hw_frame *f, uint8_t type, bool mn, uint64_t d)
{
    if (d >> HW_TMEM_ABSOLUTE & 1 && (mn || swizzle_of(d) != HW_TMEM_LINES))
        bad(f,
            "an absolute leading dimension is for matrices along k in swizzled lines of 128 bytes");
    bool pairs = swizzle_of(d) == HW_TMEM_PAIRS;
    if (mn && (type >= HW_MMA_E3M2 || pairs != (type == HW_MMA_TF32)))
        bad(f, "a transposed matrix of this type and swizzle does not exist");
}

static void read_types(hw_frame *f, const hw_tmem_mma *x, const shape *s, hw_tmem_product *p)
{
    bool scaled = x->flags & HW_TMEM_SCALED;
    p->a = kinds[x->kind].type[field(s->bits, 7, 3)];
    p->b = kinds[x->kind].type[field(s->bits, 10, 3)];
    p->d = scaled ? HW_MMA_F32 : kinds[x->kind].d[field(s->bits, 4, 2)];
    p->sparse = x->flags & HW_TMEM_SPARSE;
    p->k = (uint16_t)(kinds[x->kind].k << p->sparse);
    if (scaled && s->bits >> 31)
        p->k = K_96;
    p->saturates = field(s->bits, 3, 1);
    p->negates = field(s->bits, 13, 1) != field(s->bits, 14, 1);
    p->mn_a = field(s->bits, 15, 1);
    p->mn_b = field(s->bits, 16, 1);
    check_types(f, s, p);
    if (p->k == K_96 && (kinds[x->kind].bits != 4 || p->sparse || s->m != 128u * x->group))
        bad(f, "96 elements of k are for dense matrices of 4 bits and %u rows", 128u * x->group);
    if (p->mn_b && kinds[x->kind].bits == 8 && s->n % (16u * x->group))
        bad(f, "a transposed matrix B of bytes has no %u columns", s->n);
}

/* Columns of the block's own tensor memory, and of its peer's. */
static void need_columns(hw_frame *f, const hw_tmem_mma *x, const char *what, uint32_t column,
                         uint32_t columns)
{
    hw_tmem_need(f, f->owner, what, column, columns);
    if (x->group == 2)
        hw_tmem_need(f, hw_tmem_peer(f, what), what, column, columns);
}

/* ---- scales (9.7.16.10.7) ---- */

enum { SUBWORD_SHIFT = 30 };

/* The two bits of an address above its lane are a place in the word that the instruction descriptor has too. */
static uint16_t scale_column(hw_frame *f, const hw_tmem_mma *x, uint32_t address, uint32_t rows,
                             uint32_t last)
{
    uint32_t columns =
        (rows + HW_TMEM_UNIT - 1) / HW_TMEM_UNIT + last / 4 * hw_tmem_scale_columns(rows);
    hw_tmem_area at = hw_tmem_at(address & ((UINT32_C(1) << SUBWORD_SHIFT) - 1));
    if (at.lane)
        bad(f, "scales do not begin in lane %u", at.lane);
    need_columns(f, x, "tcgen05.mma, scales", at.column, columns);
    return (uint16_t)at.column;
}

static void read_scales(hw_frame *f, const hw_tmem_mma *x, const shape *s, hw_tmem_product *p,
                        const uint32_t at[2])
{
    bool ue8m0 = field(s->bits, 23, 1);
    uint32_t count = (uint32_t)(p->k >> p->sparse) / x->block, a = field(s->bits, 29, 2),
             b = field(s->bits, 4, 2);
    if (!ue8m0 && (x->kind != HW_TMEM_MXF4NVF4 || x->block != 16))
        bad(f, "scales of E4M3 are for .kind::mxf4nvf4 with blocks of 16");
    uint32_t step = p->k != K_96 ? count : x->block == 16 ? 2 : 1;
    if (a % step || b % step)
        bad(f, "%u scales do not begin at byte %u of a cell", count, a % step ? a : b);
    p->scale.type = ue8m0 ? HW_TMEM_UE8M0 : HW_TMEM_UE4M3;
    p->scale.each = (uint8_t)(p->k / count);
    p->scale.byte_a = (uint8_t)a;
    p->scale.byte_b = (uint8_t)b;
    p->scale.column_a = scale_column(f, x, at[0], p->rows, a + count - 1);
    p->scale.column_b = scale_column(f, x, at[1], (uint32_t)p->n / p->parts, b + count - 1);
}

/* ---- which elements a sparse A has (9.7.16.10.8) ---- */

/* Of elements of 16 and 32 bits the descriptor selects one of two columns. */
static void read_indices(hw_frame *f, const hw_tmem_mma *x, const shape *s, hw_tmem_product *p,
                         uint32_t address)
{
    bool one = x->kind == HW_TMEM_F16 || x->kind == HW_TMEM_TF32;
    uint32_t selector = x->flags & HW_TMEM_SCALED ? 0 : field(s->bits, 0, 2);
    hw_tmem_area at = hw_tmem_at(address);
    if (at.lane != p->d_at >> 16)
        bad(f, "the indices of a sparse A begin in lane %u of tensor memory, D in lane %u", at.lane,
            p->d_at >> 16);
    if (selector > one)
        bad(f, "a sparsity selector of %u", selector);
    need_columns(f, x, "tcgen05.mma, indices of A", at.column + selector, one ? 1 : 2);
    p->indices = (uint16_t)(at.column + selector);
}

/* ---- columns of B that are zeros (9.7.16.4.3) ---- */

static void read_zero_columns(hw_frame *f, uint64_t d, hw_tmem_product *p)
{
    uint32_t span[2] = { (uint32_t)(d >> 48 & 255) + 1, (uint32_t)(d >> 40 & 255) + 1 };
    uint32_t each = (uint32_t)p->n / p->parts;
    p->shift = d >> 56 & 63;
    if (p->shift > (p->rows == 32 ? 16 : 32))
        bad(f, "a shift of %u columns", p->shift);
    for (uint32_t part = 0; part < p->parts && d >> 39 & 1; part++) {
        uint32_t skip = d >> 8 * part & 255;
        bool zero = d >> (32 + part) & 1;
        for (uint32_t n = 0, left = span[zero]; n < each + skip; n++, left--) {
            if (left == 0)
                left = span[zero = !zero];
            uint32_t column = part * each + n - skip;
            if (n >= skip && zero)
                p->zero[column / 32] |= UINT32_C(1) << column % 32;
        }
    }
}

/* ---- where A and D lie (9.7.16.10.5) ---- */

static void read_layout(const hw_tmem_mma *x, const shape *s, hw_tmem_product *p)
{
    p->n = (uint16_t)s->n;
    p->rows = (uint16_t)(s->m / x->group);
    p->nblocks = x->group;
    bool half = p->rows == 64 && !(x->flags & HW_TMEM_WS);
    p->spread = half && (x->group == 1 || x->flags & HW_TMEM_SPARSE);
    p->parts = p->spread ? 1 : (uint8_t)(HW_TMEM_LANES / p->rows);
}

static void check_cells(hw_frame *f, const hw_tmem_mma *x, const hw_tmem_product *p, hw_block *b)
{
    hw_tmem_area d = hw_tmem_at(p->d_at), a = hw_tmem_at((uint32_t)p->a_at);
    if (d.lane && !(p->spread && d.lane == SPREAD_LANE))
        bad(f, "this matrix D does not begin in lane %u", d.lane);
    hw_tmem_need(f, b, "tcgen05.mma, matrix D", d.column, (uint32_t)p->n / p->parts);
    if (!p->a_in_cells)
        return;
    if (a.lane != d.lane)
        bad(f, "A begins in lane %u of tensor memory, D in lane %u", a.lane, d.lane);
    hw_tmem_need(f, b, "tcgen05.mma, matrix A", a.column,
                 (uint32_t)(p->k >> p->sparse) * kinds[x->kind].bits / 32);
}

/* ---- one product ---- */

static uint32_t u32_of(const hw_lane_arrays *io, unsigned i, unsigned lane)
{
    return ((const uint32_t *)io->src[i])[lane];
}

static uint64_t u64_of(const hw_lane_arrays *io, unsigned i, unsigned lane)
{
    return ((const uint64_t *)io->src[i])[lane];
}

static void take_block(hw_frame *f, const hw_tmem_mma *x, hw_tmem_product *p, unsigned which,
                       hw_block *b)
{
    check_cells(f, x, p, b);
    p->block[which].shared = b->frames[0].shared;
    p->block[which].cells = b->tmem->cells;
}

/* The even block of a pair comes first, whoever says so. */
static void take_blocks(hw_frame *f, const hw_tmem_mma *x, hw_tmem_product *p)
{
    hw_block *b = f->owner;
    uint32_t own = x->group == 2 ? b->rank & 1 : 0;
    take_block(f, x, p, own, b);
    if (x->group == 2)
        take_block(f, x, p, own ^ 1, hw_tmem_peer(f, "tcgen05.mma"));
}

static void take_matrices(hw_frame *f, const hw_tmem_product *p)
{
    if (p->a_in_cells && p->mn_a)
        bad(f, "a matrix A in tensor memory cannot be transposed");
    if (!p->a_in_cells) {
        hw_tmem_check_descriptor(f, "tcgen05.mma, matrix A", p->a_at);
        check_major(f, p->a, p->mn_a, p->a_at);
    }
    hw_tmem_check_descriptor(f, "tcgen05.mma, matrix B", p->b_at);
    check_major(f, p->b, p->mn_b, p->b_at);
}

/* What follows the five sources that all have, in the order of hw_wir_tensor.h. */
static void take_more(hw_frame *f, const hw_tmem_mma *x, const shape *s, hw_tmem_product *p,
                      const hw_lane_arrays *io, unsigned lane)
{
    unsigned next = 5;
    if (x->flags & HW_TMEM_SPARSE)
        read_indices(f, x, s, p, u32_of(io, next++, lane));
    if (x->flags & HW_TMEM_SCALED) {
        read_scales(f, x, s, p, (uint32_t[]){ u32_of(io, next, lane), u32_of(io, next + 1, lane) });
        next += 2;
    }
    if (x->flags & HW_TMEM_ZERO_MASK)
        read_zero_columns(f, u64_of(io, next++, lane), p);
    for (unsigned w = 0; x->flags & HW_TMEM_DISABLE && w < 4u * x->group; w++)
        p->block[w / 4].keep[w % 4] = u32_of(io, next + w, lane);
}

static void multiply(hw_frame *f, const hw_tmem_mma *x, const hw_lane_arrays *io, unsigned lane)
{
    shape s = shape_of(u32_of(io, 3, lane));
    hw_tmem_product p = { .a_in_cells = x->flags & HW_TMEM_A_CELLS,
                          .a_shifted = x->flags & HW_TMEM_A_SHIFTED,
                          .adds = ((const uint8_t *)io->src[4])[lane] & 1,
                          .scale_d = x->scale_d,
                          .d_at = u32_of(io, 0, lane),
                          .a_at = u64_of(io, 1, lane),
                          .b_at = u64_of(io, 2, lane) };
    if (x->flags &
        HW_TMEM_SCALED) /* bits 29 to 31 and, in part, 24 to 26 mean other things there */
        s.m &= 128u | 256u;
    check_shape(f, x, &s);
    read_types(f, x, &s, &p);
    read_layout(x, &s, &p);
    take_matrices(f, &p);
    take_blocks(f, x, &p);
    take_more(f, x, &s, &p, io, lane);
    hw_jit_tmem_multiply(&p);
}

void hw_h_tmem_mma(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    hw_tmem_mma x;
    memcpy(&x, &aux, sizeof x);
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        f->fault_lanes = 1u << l;
        hw_tmem_join(f, x.group);
        multiply(f, &x, io, l);
    }
    f->fault_lanes = 0;
}

/* ---- commit ---- */

void hw_h_tmem_commit(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    uint32_t blocks = f->cluster[0] * f->cluster[1] * f->cluster[2];
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        uint64_t at = u64_of(io, 0, l);
        f->fault_lanes = 1u << l;
        hw_tmem_join(f, (uint32_t)(aux >> HW_TMEM_GROUP));
        if (!(aux & HW_TMEM_MULTICAST)) {
            hw_mbarrier_arrive(f, at);
            continue;
        }
        for (uint32_t mask = u32_of(io, 1, l); mask; mask &= mask - 1) {
            uint32_t rank = (uint32_t)__builtin_ctz(mask);
            if (rank >= blocks)
                hw_raise(f, HW_F_ILLEGAL_ADDRESS, f->fault_loc,
                         "tcgen05.commit to block %u of a cluster of %u blocks", rank, blocks);
            hw_mbarrier_arrive(f, hw_in_block(f, at, rank));
        }
    }
    f->fault_lanes = 0;
}

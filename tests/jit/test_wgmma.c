/* SPDX-License-Identifier: Apache-2.0
 * Helper WGMMA against the fragments and the canonical layouts of the PTX ISA (9.7.15.5.1), element by element. */
#include "elements.h"
#include "gmma.h"
#include "hw_jit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>

enum { LANES = 32, WARPS = 4, D_MOST = 128, M = 64, N_MOST = 256, K_MOST = 256, SHARED = 64 << 10 };

static double a[M][K_MOST], b[K_MOST][N_MOST], d[M][N_MOST];
static double stored[M][K_MOST]; /* A as it is given: of a sparse one half its elements */
static uint32_t indices[WARPS][LANES];
static uint8_t shared[2 * SHARED];
static uint32_t dregs[WARPS][D_MOST][LANES], aregs[WARPS][4][LANES];
static unsigned seed = 1;

static unsigned next(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % n;
}

static unsigned bits_of(unsigned type)
{
    switch (type) {
    case HW_MMA_F16:
    case HW_MMA_BF16:
        return 16;
    case HW_MMA_TF32:
    case HW_MMA_F32:
    case HW_MMA_S32:
        return 32;
    case HW_MMA_B1:
        return 1;
    default:
        return 8;
    }
}

static double decode(unsigned type, uint32_t bits)
{
    if (type == HW_MMA_S32)
        return (int32_t)bits;
    if (type == HW_MMA_F16) {
        _Float16 h;
        uint16_t half = (uint16_t)bits;
        memcpy(&h, &half, sizeof h);
        return (double)h;
    }
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double number(unsigned type)
{
    switch (type) {
    case HW_MMA_U8:
        return next(256);
    case HW_MMA_S8:
        return (double)next(256) - 128;
    case HW_MMA_B1:
        return next(2);
    default:
        return (double)next(9) - 4;
    }
}

static void put(uint8_t *at, unsigned type, unsigned element, double v)
{
    uint32_t x = (uint32_t)encode(type, v);
    if (type == HW_MMA_B1)
        at[element / 8] |= (uint8_t)(x << element % 8);
    else
        memcpy(at + element * bits_of(type) / 8, &x, bits_of(type) / 8);
}

/* Place of the element e of lane l's register list: the manual's figures, of warp w's sixteen rows. */
static unsigned d_row(unsigned w, unsigned l, unsigned e)
{
    return w * 16 + l / 4 + 8 * (e / 2 % 2);
}
static unsigned d_col(unsigned l, unsigned e)
{
    return e / 4 * 8 + l % 4 * 2 + e % 2;
}

/* Elements a register holds, in halves of the row of 32 bytes: rows l/4, l/4 + 8, then the other half. */
static void fill_a_registers(unsigned type, unsigned k)
{
    unsigned each = 32 / bits_of(type);
    memset(aregs, 0, sizeof aregs);
    for (unsigned w = 0; w < WARPS; w++)
        for (unsigned l = 0; l < LANES; l++)
            for (unsigned r = 0; r < 4; r++)
                for (unsigned e = 0; e < each; e++)
                    put((uint8_t *)&aregs[w][r][l], type, e,
                        stored[w * 16 + l / 4 + 8 * (r % 2)][l % 4 * each + e + k / 2 * (r / 2)]);
}

static void fill_shared(const gmma_layout *g, unsigned type, bool is_a, unsigned mn, unsigned k,
                        unsigned offset)
{
    uint8_t *to = shared + (is_a ? 0 : SHARED) + offset;
    memset(to, 0, SHARED - offset);
    gmma_layout bytes = *g;
    bytes.bits = type == HW_MMA_B1 ? 8 : g->bits;
    for (unsigned i = 0; i < mn; i++)
        for (unsigned j = 0; j < k; j++) {
            unsigned each = type == HW_MMA_B1 ? 8 : 1;
            size_t at = gmma_place(&bytes, i, j / each);
            assert_true(at + offset < SHARED);
            put(to + at, type, j % each, is_a ? stored[i][j] : b[j][i]);
        }
}

static gmma_layout layout(unsigned type, int mode, int mn_major, unsigned mn, unsigned k)
{
    gmma_layout g = { bits_of(type), mode, mn_major, 16, 0 };
    size_t atom = 128 * gmma_width(&g), across = 8 * gmma_width(&g);
    if (!mn_major) {
        g.stride = mode ? atom + 1024 : 288;
        g.leading = mode ? 16 : 288 * mn / 8 + 32;
    } else if (mode) {
        g.stride = atom;
        g.leading = k / 8 * atom;
        if (mn <= across)
            g.leading = 0;
    } else {
        g.stride = 144;
        g.leading = 144 * mn / 8 + 16;
    }
    return g;
}

static void expect(const hw_wgmma *x, bool adds, unsigned k)
{
    unsigned per = x->d == HW_MMA_F16 ? 2 : 1;
    for (unsigned w = 0; w < WARPS; w++)
        for (unsigned l = 0; l < LANES; l++)
            for (unsigned e = 0; e < x->n / 2; e++) {
                unsigned row = d_row(w, l, e), col = d_col(l, e);
                double want = 0;
                for (unsigned i = 0; i < k; i++)
                    want += a[row][i] * b[i][col];
                want = (x->flags & HW_WGMMA_NEGATE ? -want : want) + (adds ? d[row][col] : 0);
                if (x->flags & HW_WGMMA_SATURATE)
                    want = fmin(fmax(want, INT32_MIN), INT32_MAX);
                double got = decode(x->d, dregs[w][e / per][l] >> (e % per * 16));
                if (got != want)
                    print_error("n %u, types %u %u %u, flags %u: row %u, column %u\n", x->n, x->a,
                                x->b, x->d, x->flags, row, col);
                assert_true(got == want);
            }
}

static void fill_numbers(const hw_wgmma *x, unsigned k, double base)
{
    for (unsigned i = 0; i < k; i++) {
        for (unsigned j = 0; j < M; j++)
            a[j][i] = number(x->a);
        for (unsigned j = 0; j < x->n; j++)
            b[i][j] = number(x->b);
    }
    for (unsigned i = 0; i < M; i++)
        for (unsigned j = 0; j < x->n; j++)
            d[i][j] = base + next(9);
}

static void fill_d_registers(const hw_wgmma *x)
{
    unsigned per = x->d == HW_MMA_F16 ? 2 : 1;
    memset(dregs, 0, sizeof dregs);
    for (unsigned w = 0; w < WARPS; w++)
        for (unsigned l = 0; l < LANES; l++)
            for (unsigned e = 0; e < x->n / 2; e++)
                dregs[w][e / per][l] |= (uint32_t)encode(x->d, d[d_row(w, l, e)][d_col(l, e)])
                                        << (e % per * 16);
}

static void call(const hw_wgmma *x, unsigned w, bool adds, uint64_t desc_a, uint64_t desc_b)
{
    uint8_t add[LANES];
    uint64_t da[LANES], db[LANES], aux;
    memset(add, adds, sizeof add);
    for (unsigned l = 0; l < LANES; l++) {
        da[l] = desc_a;
        db[l] = desc_b;
    }
    const void *src[7 + D_MOST] = { add, db, da };
    void *dst[D_MOST];
    uint32_t n = 3, nd = x->n / (x->d == HW_MMA_F16 ? 4u : 2u);
    for (unsigned r = 0; x->flags & HW_WGMMA_A_REGISTERS && r < 4; r++)
        src[2 + r] = aregs[w][r], n = 6;
    for (unsigned r = 0; r < nd; r++)
        src[n + r] = dst[r] = dregs[w][r];
    hw_frame f = { .shared = shared, .warp = 4 + w, .nwarps = 8 };
    bool sparse = x->flags & HW_WGMMA_SPARSE;
    src[n + nd] = indices[w];
    hw_lane_arrays io = { .src = src, .dst = dst, .nsrc = n + nd + sparse, .ndst = nd };
    memcpy(&aux, x, sizeof aux);
    hw_jit_helpers[HW_H_WGMMA](&f, UINT32_MAX, &io, aux);
}

/* Which lane's bits are the indices of row's chunk of four (of elements of 32 bits: two): figures 176, 178, 180 and 181. */
static void put_indices(unsigned row, unsigned chunk, unsigned bits, unsigned selector, uint32_t v)
{
    unsigned lower = row % 16 / 8, lane = row % 8 * 4, shift;
    if (bits == 8) { /* a row to a lane, columns 0 to 31 and 32 to 63 */
        lane += chunk / 8 * 2 + lower;
        shift = chunk % 8 * 4;
    } else { /* both rows to a lane, half the columns */
        lane += selector * 2 + chunk / 4;
        shift = chunk % 4 * 4 + 16 * lower;
    }
    indices[row / 16][lane] = (indices[row / 16][lane] & ~(15u << shift)) | v << shift;
}

/* Half of A's elements become zeros, those that the indices do not name. */
static void make_sparse(const hw_wgmma *x, unsigned k)
{
    unsigned bits = bits_of(x->a), chunk = bits == 32 ? 2 : 4;
    for (unsigned w = 0; w < WARPS; w++)
        for (unsigned l = 0; l < LANES; l++)
            indices[w][l] = next(65536) << 16 | next(65536);
    for (unsigned row = 0; row < M; row++)
        for (unsigned c = 0; c < k / chunk; c++) {
            unsigned first = next(3), second = first + 1 + next(3 - first);
            if (bits == 32)
                first = next(2) * 2, second = first + 1;
            put_indices(row, c, bits, x->selector, first | second << 2);
            double *whole = &a[row][c * chunk], old[4] = { whole[0], whole[1], whole[2], whole[3] };
            memset(whole, 0, chunk * sizeof *whole);
            if (bits == 32) {
                stored[row][c] = whole[first / 2] = old[0];
                continue;
            }
            stored[row][c * 2] = whole[first] = old[0];
            stored[row][c * 2 + 1] = whole[second] = old[1];
        }
}

/* Descriptors whose swizzle's pattern begins `lines` of 128 bytes past a boundary say so. */
static uint64_t describe(const gmma_layout *g, uint32_t start, unsigned lines)
{
    return gmma_descriptor(g, start + lines * 128) | (uint64_t)(g->mode ? lines & 7 : 0) << 49;
}

static void run_at(hw_wgmma x, int mode_a, int mode_b, bool adds, double base, unsigned lines)
{
    bool sparse = x.flags & HW_WGMMA_SPARSE;
    unsigned given = 256 / bits_of(x.a), k = sparse ? 2 * given : given;
    gmma_layout ga = layout(x.a, mode_a, x.flags & HW_WGMMA_MN_A, M, given);
    gmma_layout gb = layout(x.b, mode_b, x.flags & HW_WGMMA_MN_B, x.n, k);
    fill_numbers(&x, k, base);
    memcpy(stored, a, sizeof a);
    if (sparse)
        make_sparse(&x, k);
    fill_shared(&ga, x.a, true, M, given, lines * 128);
    fill_shared(&gb, x.b, false, x.n, k, lines * 128);
    fill_a_registers(x.a, given);
    fill_d_registers(&x);
    for (unsigned w = 0; w < WARPS; w++)
        call(&x, w, adds, describe(&ga, 0, lines), describe(&gb, SHARED, lines));
    expect(&x, adds, k);
}

static void run(hw_wgmma x, int mode_a, int mode_b, bool adds, double base)
{
    run_at(x, mode_a, mode_b, adds, base, 0);
}

static const struct {
    uint8_t a, b, d;
} types[] = {
    { HW_MMA_F16, HW_MMA_F16, HW_MMA_F32 },   { HW_MMA_F16, HW_MMA_F16, HW_MMA_F16 },
    { HW_MMA_BF16, HW_MMA_BF16, HW_MMA_F32 }, { HW_MMA_TF32, HW_MMA_TF32, HW_MMA_F32 },
    { HW_MMA_E4M3, HW_MMA_E5M2, HW_MMA_F32 }, { HW_MMA_E5M2, HW_MMA_E4M3, HW_MMA_F16 },
    { HW_MMA_S8, HW_MMA_U8, HW_MMA_S32 },     { HW_MMA_U8, HW_MMA_S8, HW_MMA_S32 },
    { HW_MMA_B1, HW_MMA_B1, HW_MMA_S32 },
};

static void each_type(uint16_t n, int mode, uint8_t flags, bool adds)
{
    for (size_t t = 0; t < HW_COUNTOF(types); t++) {
        hw_wgmma x = { .n = n, .a = types[t].a, .b = types[t].b, .d = types[t].d, .flags = flags };
        if (flags & (HW_WGMMA_MN_A | HW_WGMMA_MN_B) && bits_of(x.a) != 16)
            continue;
        if (flags & HW_WGMMA_NEGATE && x.d == HW_MMA_S32)
            continue;
        run(x, mode, 3 - mode, adds, 0);
    }
}

static void test_all(void **state)
{
    (void)state;
    static const uint16_t ns[] = { 8, 16, 24, 64, 128 };
    for (size_t i = 0; i < HW_COUNTOF(ns); i++)
        for (int mode = 0; mode < 4; mode++)
            for (unsigned flags = 0; flags < 16; flags++)
                each_type(ns[i], mode, (uint8_t)flags, (flags ^ (unsigned)mode) & 1);
}

/* Of B's columns 64 bytes: swizzled K-major rows of 32 hold no more than half. */
static void test_sparse(void **state)
{
    (void)state;
    static const uint16_t ns[] = { 8, 24, 64 };
    for (size_t i = 0; i < HW_COUNTOF(ns); i++)
        for (int mode_b = 0; mode_b < 4; mode_b++)
            for (unsigned flags = 0; flags < 16; flags++)
                for (size_t t = 0; t + 1 < HW_COUNTOF(types); t++) {
                    hw_wgmma x = { .n = ns[i], .a = types[t].a, .b = types[t].b, .d = types[t].d };
                    x.flags = (uint8_t)(flags | HW_WGMMA_SPARSE);
                    x.selector = bits_of(x.a) == 8 ? 0 : (uint8_t)next(2);
                    bool mn = flags & (HW_WGMMA_MN_A | HW_WGMMA_MN_B);
                    if ((mn && bits_of(x.a) != 16) || (mode_b == 3 && !(flags & HW_WGMMA_MN_B)) ||
                        (flags & HW_WGMMA_NEGATE && x.d == HW_MMA_S32))
                        continue;
                    run(x, (int)(flags + i) & 3, mode_b, flags & 1, 0);
                }
}

static void test_base_offset(void **state)
{
    (void)state;
    for (unsigned lines = 1; lines < 8; lines++)
        for (int mode = 1; mode < 4; mode++)
            for (unsigned flags = 0; flags < 8; flags += 2) {
                hw_wgmma x = { .n = 24, .a = HW_MMA_F16, .b = HW_MMA_F16, .d = HW_MMA_F32 };
                x.flags = (uint8_t)flags;
                run_at(x, mode, 4 - mode, true, 0, lines);
            }
}

static void test_widest(void **state)
{
    (void)state;
    for (int mode = 0; mode < 4; mode += 3)
        each_type(256, mode, mode ? HW_WGMMA_MN_B : HW_WGMMA_A_REGISTERS, true);
}

static void test_saturation(void **state)
{
    (void)state;
    hw_wgmma x = {
        .n = 16, .a = HW_MMA_U8, .b = HW_MMA_U8, .d = HW_MMA_S32, .flags = HW_WGMMA_SATURATE
    };
    run(x, 1, 1, true, INT32_MAX - 100000);
    x.a = HW_MMA_S8;
    run(x, 1, 1, true, INT32_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),        cmocka_unit_test(test_widest),
        cmocka_unit_test(test_sparse),     cmocka_unit_test(test_base_offset),
        cmocka_unit_test(test_saturation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

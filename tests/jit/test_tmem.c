/* SPDX-License-Identifier: Apache-2.0
 * Products in cells of tensor memory (hw_jit_tmem.h) element by element, on random shapes and layouts. tests/async/tcgen.cu has all of them, through the instructions;
 * this one needs no compiler. With an argument: how long products of 128 x 256 take. */
#include "elements.h"
#include "gmma.h"
#include "hw_jit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 128, N_MOST = 256, K_MOST = 32, SHARED = 64 << 10 };

static uint8_t shared[2][2 * SHARED]; /* of each block: A's, B's */
static uint32_t cells[2][HW_TMEM_COLUMNS][HW_TMEM_LANES], want[2][HW_TMEM_COLUMNS][HW_TMEM_LANES];
static double a[2 * ROWS][K_MOST], b[N_MOST][K_MOST];
static unsigned seed = 1;

static unsigned next(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % n;
}

static const struct kind {
    uint8_t type, d;
    uint8_t bits, k;
} kinds[] = { { HW_MMA_F16, HW_MMA_F32, 16, 16 },  { HW_MMA_F16, HW_MMA_F16, 16, 16 },
              { HW_MMA_BF16, HW_MMA_F32, 16, 16 }, { HW_MMA_TF32, HW_MMA_F32, 32, 8 },
              { HW_MMA_S8, HW_MMA_S32, 8, 32 },    { HW_MMA_E5M2, HW_MMA_F32, 8, 32 } };

static void fill(uint8_t *to, const gmma_layout *g, unsigned type, double (*v)[K_MOST], unsigned n,
                 unsigned k)
{
    memset(to, 0, SHARED);
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < k; j++) {
            uint32_t x = (uint32_t)encode(type, v[i][j]);
            memcpy(to + gmma_place(g, i, j), &x, g->bits / 8);
        }
}

/* Dense, of one step of 32 bytes of k. */
static gmma_layout layout(unsigned bits, int mode, int mn, unsigned rows)
{
    gmma_layout g = { bits, mode, mn, 16, 0 };
    unsigned wide = gmma_width(&g), k = 256 / bits;
    g.stride = mn && mode ? (size_t)wide * 16 * gmma_deep(&g) : 128 * wide;
    g.leading = !mode ? 128 * (mn ? rows * bits / 128 : rows / 8) : g.stride * k / gmma_deep(&g);
    return g;
}

/* The manual's figures of D, 9.7.16.10.5. */
static uint32_t *place(uint32_t (*c)[HW_TMEM_COLUMNS][HW_TMEM_LANES], const hw_tmem_product *p,
                       unsigned row, unsigned col)
{
    unsigned r = row % p->rows, each = (unsigned)p->n / p->parts;
    unsigned lane = p->spread ? r % 16 + r / 16 * 32 : r + col / each * (HW_TMEM_LANES / p->parts);
    return &c[row / p->rows][(p->d_at & 0xffff) + col % each][lane + (p->d_at >> 16)];
}

static hw_tmem_product random_product(const struct kind *kind, gmma_layout *ga, gmma_layout *gb)
{
    hw_tmem_product p = { .a = kind->type, .b = kind->type, .d = kind->d, .k = kind->k };
    p.nblocks = (uint8_t)(1 + next(2));
    p.rows = (uint16_t)(64 << next(2));
    p.spread = p.rows == 64 && p.nblocks == 1;
    p.parts = p.rows == 64 && !p.spread ? 2 : 1;
    p.n = (uint16_t)(32 * (1 + next(8)));
    p.adds = next(2);
    p.negates = kind->type != HW_MMA_S8 && next(2);
    p.mn_a = kind->bits == 16 && next(2);
    p.mn_b = kind->bits == 16 && next(2);
    p.d_at = next(64) | (p.spread ? next(2) * 16 << 16 : 0);
    *ga = layout(kind->bits, (int)next(4), p.mn_a, p.rows);
    *gb = layout(kind->bits, (int)next(4), p.mn_b, (unsigned)p.n / p.nblocks);
    p.a_at = tcgen_descriptor(ga, 0);
    p.b_at = tcgen_descriptor(gb, SHARED);
    for (unsigned i = 0; i < p.nblocks; i++) {
        p.block[i].shared = shared[i];
        p.block[i].cells = cells[i];
        p.block[i].keep[next(4)] = next(2) ? 0xf0f00ff1u : 0;
    }
    return p;
}

static void expect_product(const hw_tmem_product *p, double (*d)[N_MOST])
{
    for (unsigned row = 0; row < (unsigned)p->rows * p->nblocks; row++)
        for (unsigned col = 0; col < p->n; col++) {
            uint32_t *to = place(want, p, row, col);
            unsigned lane = (unsigned)(to - &want[row / p->rows][0][0]) % HW_TMEM_LANES;
            double sum = p->adds ? d[row][col] : 0;
            for (unsigned k = 0; k < p->k; k++)
                sum += (p->negates ? -1 : 1) * a[row][k] * b[col][k];
            if (!(p->block[row / p->rows].keep[lane / 32] >> lane % 32 & 1))
                *to = (uint32_t)encode(p->d, sum);
        }
}

static void check(const struct kind *kind)
{
    static double d[2 * ROWS][N_MOST];
    gmma_layout ga, gb;
    hw_tmem_product p = random_product(kind, &ga, &gb);
    for (unsigned i = 0; i < 2 * ROWS * K_MOST; i++)
        (&a[0][0])[i] = (double)next(9) - 4;
    for (unsigned i = 0; i < N_MOST * K_MOST; i++)
        (&b[0][0])[i] = (double)next(9) - 4;
    for (unsigned i = 0; i < sizeof cells / sizeof(uint32_t); i++)
        (&cells[0][0][0])[i] = (uint32_t)i * 2654435761u;
    for (unsigned row = 0; row < (unsigned)p.rows * p.nblocks; row++)
        for (unsigned col = 0; col < p.n; col++) {
            d[row][col] = (double)next(100) - 50;
            *place(cells, &p, row, col) = (uint32_t)encode(p.d, d[row][col]);
        }
    for (unsigned i = 0; i < p.nblocks; i++) {
        unsigned each = (unsigned)p.n / p.nblocks;
        fill(shared[i], &ga, p.a, a + i * p.rows, p.rows, p.k);
        fill(shared[i] + SHARED, &gb, p.b, b + i * each, each, p.k);
    }
    memcpy(want, cells, sizeof want);
    expect_product(&p, d);
    hw_jit_tmem_multiply(&p);
    assert_memory_equal(cells, want, sizeof want);
}

static void products(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 60; round++)
        check(&kinds[round % (sizeof kinds / sizeof *kinds)]);
}

/* Copies: rows of 32 bytes, to lanes. */
static void copies(void **state)
{
    (void)state;
    gmma_layout g = layout(8, 1, 0, HW_TMEM_LANES);
    const hw_tmem_copy how = { HW_TMEM_ROWS_128, 2, HW_TMEM_AS_IS, 1, { 0 } };
    const hw_tmem_block block = { .shared = shared[0], .cells = cells[0] };
    for (unsigned i = 0; i < SHARED; i++)
        shared[0][i] = (uint8_t)next(256);
    memset(cells, 0, sizeof cells);
    hw_jit_tmem_copy(&block, 40, tcgen_descriptor(&g, 0), &how);
    for (unsigned row = 0; row < HW_TMEM_LANES; row++)
        for (unsigned byte = 0; byte < 32; byte++)
            assert_int_equal(cells[0][40 + byte / 4][row] >> byte % 4 * 8 & 255,
                             shared[0][gmma_place(&g, row, byte)]);
}

static void measure(void)
{
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        gmma_layout ga = layout(kinds[i].bits, 1, 0, ROWS),
                    gb = layout(kinds[i].bits, 1, 0, N_MOST);
        hw_tmem_product p = { .a = kinds[i].type,
                              .b = kinds[i].type,
                              .d = kinds[i].d,
                              .k = kinds[i].k,
                              .nblocks = 1,
                              .parts = 1,
                              .adds = true,
                              .rows = ROWS,
                              .n = N_MOST,
                              .a_at = tcgen_descriptor(&ga, 0),
                              .b_at = tcgen_descriptor(&gb, SHARED),
                              .block = { { .shared = shared[0], .cells = cells[0] } } };
        memset(shared, 0, sizeof shared);
        clock_t start = clock();
        for (unsigned n = 0; n < 1000; n++)
            hw_jit_tmem_multiply(&p);
        double us = (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
        printf("type %u: %.1f us, %.1f products a ns\n", kinds[i].type, us,
               ROWS * N_MOST * kinds[i].k / us / 1e3);
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        measure();
        return 0;
    }
    const struct CMUnitTest tests[] = { cmocka_unit_test(products), cmocka_unit_test(copies) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

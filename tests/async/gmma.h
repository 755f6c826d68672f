// SPDX-License-Identifier: Apache-2.0
// Where elements of factors stand in shared memory: the canonical layouts of PTX ISA 9.7.15.5.1.2.1.3 and 9.7.16.3.3, shapes and strides as they are tabled there.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct gmma_layout {
    unsigned bits; // of an element
    int mode; // wgmma's: 0 none, 1 128B, 2 64B, 3 32B; of tcgen05 alone 4 128B with atoms of 32B
    int mn_major;           // else K-major
    size_t leading, stride; // LBO, SBO in bytes
} gmma_layout;

static inline unsigned gmma_width(const gmma_layout *g) // of a swizzle atom, in pieces of 16 bytes
{
    static const unsigned widths[] = { 1, 8, 4, 2, 8 };
    return widths[g->mode];
}

static inline unsigned gmma_deep(const gmma_layout *g) // rows of an atom that are k, MN-major
{
    return g->mode == 4 ? 4 : 8;
}

// Byte offset of the element in row (of A; of B: column) mn and of number k.
static inline size_t gmma_place(const gmma_layout *g, unsigned mn, unsigned k)
{
    size_t T = 128 / g->bits, W = gmma_width(g), LBO = g->leading * 8 / g->bits,
           SBO = g->stride * 8 / g->bits, at;
    if (!g->mn_major) // ((8,m),(T,2k)):((W T,SBO),(1,LBO or T))
        at = mn % 8 * (W * T) + mn / 8 * SBO + k % T + k / T * (g->mode ? T : LBO);
    else if (g->mode) // ((T,W,m),(8,k)):((1,T,LBO),(W T,SBO)), of mode 4 (4,k)
        at = mn % T + mn / T % W * T + mn / (T * W) * LBO + k % gmma_deep(g) * (W * T) +
             k / gmma_deep(g) * SBO;
    else // ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
        at = mn % T + mn / T * SBO + k % 8 * T + k / 8 * LBO;
    at = at * g->bits / 8;
    // Swizzle<B,4,3>: B = 0, 1, 2, 3 bits from bit 7 on are added to those from bit 4 on
    size_t line = at / 128;
    if (g->mode == 4) // Swizzle<2,5,2>
        return at ^ (line % 4) * 32;
    return at ^ (line % W) * 16;
}

static inline uint64_t gmma_descriptor(const gmma_layout *g, uint32_t start)
{
    return (start & 0x3ffff) >> 4 | (uint64_t)(g->leading >> 4) << 16 |
           (uint64_t)(g->stride >> 4) << 32 | (uint64_t)g->mode << 62;
}

static inline uint64_t tcgen_descriptor(const gmma_layout *g, uint32_t start)
{
    static const uint64_t modes[] = { 0, 2, 4, 6, 1 };
    return (start & 0x3ffff) >> 4 | (uint64_t)(g->leading >> 4) << 16 |
           (uint64_t)(g->stride >> 4) << 32 | UINT64_C(1) << 46 | modes[g->mode] << 61;
}

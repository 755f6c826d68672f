/* SPDX-License-Identifier: Apache-2.0
 *
 * jit: the arithmetic of tensor memory (PTX ISA 9.7.16.9, 9.7.16.10), for room exec, which says what an instruction means and checks it.
 * Cells are [column][lane]. Everything is done when a function returns; floats are summed in double, in ascending order of k, and rounded once.
 */
#ifndef HW_JIT_TMEM_H
#define HW_JIT_TMEM_H

#include "hw_wir.h"

typedef uint32_t hw_tmem_column[HW_TMEM_LANES];

typedef struct hw_tmem_block { /* of the one or two that take part */
    const uint8_t *shared;
    hw_tmem_column *cells;
    uint32_t keep[HW_TMEM_LANES / 32]; /* lanes of D that stay as they are */
} hw_tmem_block;

/* Bits of a descriptor of shared memory: the swizzle from SWIZZLE on, of which PAIRS exchanges pairs of pieces, LINES single ones in 128 bytes;
 * ABSOLUTE: the leading dimension is where pieces behind such a line stand. */
enum { HW_TMEM_SWIZZLE = 61, HW_TMEM_PAIRS = 1, HW_TMEM_LINES = 2, HW_TMEM_ABSOLUTE = 52 };

typedef enum hw_tmem_scales { HW_TMEM_NO_SCALES, HW_TMEM_UE8M0, HW_TMEM_UE4M3 } hw_tmem_scales;

/* D = A * B (+ D). Each block has `rows` of A and D; of B's n columns a pair has half each. D's columns are cut into `parts`, which lie
 * beside each other in lanes 128 / parts apart; where `spread`, sixteen lanes are left out after every sixteen. A in cells stands in the
 * lanes of D that it is for. Floats of 6 and 4 bits have a byte each there; in shared memory sixteen stand in the first of 16 bytes.
 * Each `each` elements of k have a scale, side by side in the bytes of a cell from `byte` on, for a row of A or column of B the cell of lane and
 * column row % 32 and row / 32, in each quarter of the lanes that need them. Column n of B is the one of number n + shift, or zeros.
 * A sparse A has half its elements; four bits each say which, of elements of 16 and 32 bits eight rows' in the lanes of D of eight and eight others'
 * in the upper half of their cells, the further ones of k in the next eight lanes; of others each row's in its lane and two columns. */
typedef struct hw_tmem_product {
    uint8_t a, b, d; /* hw_mma_type */
    uint8_t nblocks, parts;
    bool spread, adds, saturates, negates, a_in_cells, a_shifted, mn_a, mn_b, sparse;
    uint16_t rows, n, k;
    uint8_t scale_d;
    uint64_t a_at, b_at; /* descriptors; a_in_cells: tensor address */
    uint32_t d_at;
    uint16_t indices; /* column of a sparse A's */
    struct {
        uint8_t type /* hw_tmem_scales */, each, byte_a, byte_b;
        uint16_t column_a, column_b;
    } scale;
    uint32_t shift, zero[8]; /* bits of columns */
    hw_tmem_block block[2];
} hw_tmem_product;

/* Columns that four scales of each of n rows of A or columns of B take where more follow. */
static inline uint32_t hw_tmem_scale_columns(uint32_t n)
{
    return (n + 127) / 128 * 4;
}

void hw_jit_tmem_multiply(const hw_tmem_product *p);

/* Rows of shared memory to lanes; to: tensor address. */
void hw_jit_tmem_copy(const hw_tmem_block *b, uint32_t to, uint64_t from, const hw_tmem_copy *how);

#endif

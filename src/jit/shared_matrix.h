/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices in shared memory as descriptors name them (PTX ISA 9.7.15.5.1, 9.7.16.3, 9.7.16.4.1): pieces of 16 bytes, along k ("K-major") or along
 * the rows of A or columns of B ("MN-major"), eight or, swizzled, 64 to 8 of them in a core whose rows are 16 to 128 bytes; the descriptor
 * has two distances between cores. A swizzle exchanges pieces by the address's bits 7 to 9, as those of tensor maps do, or pairs of pieces
 * by bits 7 and 8 (private to the products of room jit).
 */
#ifndef HW_JIT_SHARED_MATRIX_H
#define HW_JIT_SHARED_MATRIX_H

#include "matrix.h"

enum { PIECE = 16 };
enum { SWIZZLE_NONE, SWIZZLE_128_PAIRS, SWIZZLE_128, SWIZZLE_64, SWIZZLE_32 };

typedef struct shared_matrix {
    const uint8_t *shared;
    uint32_t start, leading, stride; /* bytes */
    uint32_t row;                    /* bytes of a core's row */
    uint32_t deep;                   /* rows of one, where these are k */
    uint32_t mask, shift;            /* bits of the address that are changed, and by which */
    bool
        absolute; /* K-major: `leading` is where pieces behind the end of a line of 128 bytes stand */
    uint32_t pattern; /* where the swizzle's pattern starts: the matrix base offset, in bytes */
} shared_matrix;

static inline shared_matrix shared_matrix_of(const uint8_t *shared, uint64_t descriptor,
                                             unsigned swizzle)
{
    /* clang-format off */
    static const struct {
        uint8_t row, deep, mask, shift;
    } modes[] = {
        [SWIZZLE_NONE] = { PIECE, 8, 0, 3 }, [SWIZZLE_128_PAIRS] = { 128, 4, 0x60, 2 }, [SWIZZLE_128] = { 128, 8, 0x70, 3 },
        [SWIZZLE_64] = { 64, 8, 0x30, 3 },   [SWIZZLE_32] = { 32, 8, 0x10, 3 },
    };
    /* clang-format on */
    return (shared_matrix){ .shared = shared,
                            .start = (uint32_t)(descriptor & 0x3fff) << 4,
                            .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                            .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                            .row = modes[swizzle].row,
                            .deep = modes[swizzle].deep,
                            .mask = modes[swizzle].mask,
                            .shift = modes[swizzle].shift,
                            .pattern = (uint32_t)(descriptor >> 49 & 7) << 7 };
}

INLINED const uint8_t *piece_at(const shared_matrix *m, uint32_t offset)
{
    uint32_t at = m->start + offset;
    return m->shared + (at ^ ((at - m->pattern) >> m->shift & m->mask));
}

/* K-major: a piece of a row of A or column of B, counted along k. */
INLINED const uint8_t *piece_of_row(const shared_matrix *m, uint32_t row, uint32_t piece)
{
    uint32_t along = (m->mask ? PIECE : m->leading) * piece;
    if (m->absolute && m->start % 128 + along >= 128)
        along += m->leading - m->start / 128 * 128 - 128;
    return piece_at(m, row % EIGHT * m->row + row / EIGHT * m->stride + along);
}

/* MN-major: the elements of piece `group` of those of one k. */
INLINED const uint8_t *piece_of_k(const shared_matrix *m, uint32_t group, uint32_t k)
{
    uint32_t groups = m->row / PIECE, core = group / groups, next = k / m->deep;
    uint32_t cores =
        m->mask ? core * m->leading + next * m->stride : core * m->stride + next * m->leading;
    return piece_at(m, group % groups * PIECE + k % m->deep * m->row + cores);
}

#endif

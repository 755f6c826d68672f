/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commonest rules need to know of accesses, found with vector instructions where the
 * processor has them, 16 accesses side by side: how many distinct units, sectors and lines the
 * lanes of each touch, and what they ask of 32 banks.
 *
 *   unit  an aligned piece of memory of an access's width.
 *   key   a lane's unit, counted from the access's own origin; lanes that take no part have NOBODY.
 */
#ifndef HW_MODEL_MANY_H
#define HW_MODEL_MANY_H

#include "hw_event.h"

enum { MANY = 16, MANY_PLANES = 6 };

/* What of a bank's goes one after the other. */
enum {
    MANY_WORDS,   /* distinct words */
    MANY_DUAL,    /* distinct rows of 64 words: banks that give two words of one row at once */
    MANY_THREADS, /* lanes */
    MANY_RULES
};

typedef struct many_keys {
    _Alignas(64) uint32_t key[MANY][HW_WARP_LANES];
    _Alignas(64) uint32_t shift[MANY]; /* log2 of the width, 0 .. 4 */
    uint32_t lanes[MANY];              /* how many take part, not 0 */
} many_keys;

typedef struct many {
    _Alignas(64) uint32_t units[MANY]; /* distinct units */
    uint32_t sectors[MANY];            /* distinct 32-byte sectors */
    uint32_t lines[MANY];              /* distinct 128-byte lines */
    uint32_t halves[MANY];             /* distinct 64-byte halves of them */
    uint32_t alike[MANY];              /* lanes on the unit that most lanes have */
    uint32_t parts[MANY],
        part_sectors[MANY]; /* MANY_SPLIT: parts of 8 lanes (4, 2 for 8, 16 bytes a
                                                 lane) that touch anything, and the distinct
                                                 sectors of each, summed */
    /* With banks, by how they serve: most of one bank. */
    uint32_t crowd[MANY_RULES][MANY];
    /* Bit b of plane k is bit k of the number of distinct units in bank b. */
    uint32_t plane[MANY_PLANES][MANY];
} many;

/* Whether this processor can; else nothing below may be called. */
bool hw_model_many_able(void);
/* The keys of access i. False: lanes are too far apart, or not aligned to their width. */
bool hw_model_many_set(many_keys *k, uint32_t i, const hw_access_told *t, uint32_t width);
enum {
    MANY_BANKS = 1,
    MANY_ALIKE = 2,
    MANY_HALVES = 4,
    MANY_SPLIT = 8,
    MANY_RULE = 16 /* << rule: of MANY_DUAL and MANY_THREADS; MANY_WORDS comes with the banks */
};

/* All MANY; rows that were never set give any numbers. MANY_BANKS: crowd and planes instead of
 * sectors and lines. What is not wanted is 0. */
void hw_model_many(const many_keys *k, unsigned wants, many *out);
/* Sums over accesses, in 16 columns each: read all, and start anew, before 2^20 additions. */
typedef struct many_sums {
    uint32_t accesses, conflicted[MANY_RULES]; /* of them those with a crowd */
    uint32_t shared[MANY_RULES];               /* without one, whose lanes share a unit */
    uint32_t additions;
    uint32_t lanes[MANY], sectors[MANY], lines[MANY], halves[MANY], alike[MANY];
    uint32_t parts[MANY], part_sectors[MANY], crowd[MANY_RULES][MANY];
    uint32_t filled[MANY];    /* sectors that the distinct units fill, side by side */
    uint32_t plane[32][MANY]; /* of all units: bit b of plane k is bit k of bank b's */
} many_sums;

/* Adds those of the accesses that are in a mask. */
void hw_model_many_add(many_sums *s, uint32_t accesses, const many_keys *k, const many *m,
                       bool banks);

#endif

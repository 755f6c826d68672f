/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters in generated code: what is counted (count_table.c), how (count.c), and the table's flat
 * form, for copies and the disk cache (count_pack.c).
 */
#ifndef HW_JIT_COUNT_H
#define HW_JIT_COUNT_H

#include "hw_wir.h"
#include "hw_event.h"

/* The instructions of one function and what counts them, by their number in the function. */
typedef struct hw_count_map {
    uint32_t base;                   /* the table's block of block 0 */
    uint32_t *first;                 /* per block: number of its first instruction */
    uint32_t *site, *branch, *guard; /* per instruction; HW_NO_INDEX: none */
    uint32_t *end;                   /* per instruction: the end of threads it leads to, or is */
    /* For count.c: */
    bool *grouped;                      /* per block: its sites know how they are counted */
    uint32_t *leader, *epoch_of, epoch; /* per register: the first site through it, and when */
} hw_count_map;

/* An end of threads that is counted apart. */
typedef struct hw_count_end {
    uint32_t place, function, block;
    uint32_t number; /* in its function */
} hw_count_end;

/* A table being made: its arrays are vectors here. */
typedef struct hw_counting {
    hw_arena *arena;
    hw_count_table t;
    HW_VEC(hw_count_block) blocks;
    HW_VEC(hw_count_inst) insts;
    HW_VEC(hw_site) sites;
    HW_VEC(hw_count_branch) branches;
    HW_VEC(hw_count_end) ends;
    hw_count_map *map; /* per function */
    bool *leads;       /* per site: it is counted, or told, for those like it */
} hw_counting;

/* Blocks, instructions, sites and branches of a prepared module. */
hw_counting *hw_count_tabulate(hw_arena *a, const hw_wir_module *m);
/* The finished table, after all code was generated. Places are left out. */
const hw_count_table *hw_count_finish(hw_counting *c);

/* A table as bytes; and back, with the places of locs. NULL: malformed. Everything lives in a;
 * names are borrowed from locs. */
hw_span hw_count_pack(hw_arena *a, const hw_count_table *t);
const hw_count_table *hw_count_unpack(hw_arena *a, hw_span bytes, const hw_wir_loc *locs,
                                      uint32_t n_locs);

#endif

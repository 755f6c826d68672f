/* SPDX-License-Identifier: Apache-2.0
 * range: the process's one reserved run of addresses and the places carved out of it.
 *
 *   place  where one allocation lies. A guarded place has pages of its own and an unmapped gap
 *          before them, so that an access past the end of the place before faults. When there are so many that the host
 *          would run out of mappings, places come from chunks: shared mappings without gaps.
 *
 * Not locked: mem.c's lock covers it. */
#ifndef HW_MEM_RANGE_H
#define HW_MEM_RANGE_H

#include "hw_base.h"

enum { HW_MEM_GRAIN = 512, HW_MEM_PAGE = 4096 };

typedef struct hw_chunk hw_chunk;

typedef struct hw_mem_place {
    uint64_t base;     /* of the allocation */
    uint64_t lo, size; /* what is taken from the range or the chunk, gap included */
    uint64_t gap;      /* of a guarded place: not mapped, at its start */
    hw_chunk *in;      /* NULL: guarded */
} hw_mem_place;

hw_status hw_range_reserve(hw_diag *d);
uint64_t hw_range_lo(void);
uint64_t hw_range_size(void);
/* Mapped up to the next multiple of page (a power of two, at least HW_MEM_PAGE) where addresses and
 * the host allow that, else of HW_MEM_PAGE. */
hw_status hw_range_place(uint64_t size, uint64_t align, uint64_t page, hw_mem_place *out);
/* With pages of its own in any case. */
hw_status hw_range_place_guarded(uint64_t size, uint64_t align, uint64_t page, hw_mem_place *out);
void hw_range_release(const hw_mem_place *p);

#endif

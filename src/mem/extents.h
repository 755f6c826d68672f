/* SPDX-License-Identifier: Apache-2.0
 * extents: the free parts of a run of addresses, sorted, neighbours merged; first fit. Not locked.
 */
#ifndef HW_MEM_EXTENTS_H
#define HW_MEM_EXTENTS_H

#include "hw_base.h"

typedef struct hw_extent {
    uint64_t lo, size;
} hw_extent;

typedef struct hw_extents {
    hw_extent *ptr; /* ascending by lo, no two adjacent */
    size_t len, cap;
} hw_extents;

/* Take the lowest free [*lo, *lo + size) with *lo a multiple of align (a power of two). */
bool hw_extents_take(hw_extents *e, uint64_t size, uint64_t align, uint64_t *lo);
void hw_extents_give(hw_extents *e, uint64_t lo, uint64_t size);
void hw_extents_free(hw_extents *e);

#endif

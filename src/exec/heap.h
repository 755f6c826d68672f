/* SPDX-License-Identifier: Apache-2.0
 *
 * heap: what device malloc and free give out. Book-keeping lies outside device memory, so a kernel
 * that writes past its memory cannot break it. Thread-safe. Blocks are multiples of 16 bytes.
 */
#ifndef HW_EXEC_HEAP_H
#define HW_EXEC_HEAP_H

#include "hw_mem.h"

#include <pthread.h>

enum { HW_HEAP_BINS = 32 };

typedef struct hw_heap {
    pthread_mutex_t lock;
    hw_mem *mem;
    uint64_t base, size; /* base 0: not yet used */
    uint32_t *tag;       /* at a block's first and last granule: its granules * 2 + used */
    uint32_t *next, *prev;
    uint32_t granules;
    uint32_t bin[HW_HEAP_BINS]; /* first free block by log2 of its granules, index + 1 */
} hw_heap;

void hw_heap_init(hw_heap *h, hw_mem *mem, uint64_t size);
void hw_heap_free_all(hw_heap *h);
hw_status hw_heap_resize(hw_heap *h, uint64_t size); /* before its first use */
uint64_t hw_heap_take(hw_heap *h, uint64_t bytes);   /* 0: full */
bool hw_heap_give(hw_heap *h, uint64_t addr);        /* false: not a block in use */

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Random kernels (random.c), and the memory that they count on. */
#ifndef TESTS_JIT_RANDOM_H
#define TESTS_JIT_RANDOM_H

#include "hw_wir.h"

enum {
    IN_BYTES = 1 << 16, /* read only */
    OWN = 1024,         /* bytes of a thread's own global memory */
    MOST_THREADS = 256,
    OUT_BYTES = OWN * MOST_THREADS,
    LINE_BYTES = MOST_THREADS * 16, /* arrays of one element a thread */
    SHARED_OWN = 64,
    SHARED_BYTES = SHARED_OWN * MOST_THREADS,
    LOCAL_STRIDE = 256,
    FUEL = 24
};

extern uint64_t rng;
uint64_t rnd(void);
uint32_t below(uint32_t n);

/* flat: blocks of one dimension; whole: of whole warps; large: so many blocks of code that pending masks lie in memory. */
hw_wir_module *make(hw_arena *a, bool flat, bool whole, bool large);

#endif

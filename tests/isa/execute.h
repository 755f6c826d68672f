/* SPDX-License-Identifier: Apache-2.0
 * How the cases are executed: one kernel of warps of 32 lanes, a warp a block. Two ways: the plain
 * interpreter (execute_interp.c) and generated machine code (execute_jit.c). */
#ifndef HW_TEST_EXECUTE_H
#define HW_TEST_EXECUTE_H

#include "hw_wir.h"

extern const char *const execute_name;
/* Zeroed memory that kernels may touch; never freed. */
void *execute_memory(size_t bytes);
typedef struct execute_job {
    hw_wir_module *w;
    const void *params; /* the packed parameter space */
    unsigned blocks, lanes;
    const uint64_t *symbols; /* addresses, by symbol of w; NULL: it has none */
} execute_job;
/* Run blocks 0..n-1, a warp each. False after a message. */
bool execute(const execute_job *j);

#endif

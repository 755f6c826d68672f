/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting a launch: each worker's counters, what they come to, and the listener's part.
 */
#ifndef HW_EXEC_COUNT_H
#define HW_EXEC_COUNT_H

#include "exec.h"

/* A worker's counts; written by its thread only. */
struct hw_tally {
    const hw_count_table *table, *slow_table;
    uint64_t *counters, *slow; /* of the code, and of its no_shapes variant (NULL until needed) */
    const hw_listener *listener;
    void *state; /* the listener's */
    uint64_t blocks_done;
};

/* After the code is there and before blocks run: makes a tally for each worker. */
hw_status hw_count_begin(hw_run *r, hw_diag *d);
/* Tells the listener the sums, and frees all. Nothing if hw_count_begin was not reached. */
void hw_count_end(hw_run *r, uint64_t wall_ns, hw_status s);
/* A warp of this worker goes on in the slow variant: its counters. NULL: out of memory. */
uint64_t *hw_count_slow(hw_worker *k, const hw_code *slow);
void hw_count_ended(struct hw_tally *t); /* a block ended */
/* The callback of generated code. */
void hw_count_listen(hw_frame *f, uint32_t site, uint32_t lanes, const uint64_t *addresses);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting a launch: each worker's counters, what they come to, and the listener's part.
 */
#ifndef HW_EXEC_COUNT_H
#define HW_EXEC_COUNT_H

#include "exec.h"

/* A worker's counts; written by its thread only. */
struct hw_tally {
    _Alignas(128) const hw_count_table *table; /* no cache line is two workers' */
    const hw_count_table *slow_table;
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
/* A texture or surface access of these lanes, bytes each, touched n distinct sectors. */
void hw_count_sectors(hw_frame *f, uint32_t lanes, uint32_t bytes, const uint64_t *sector,
                      uint32_t n);
/* What a bulk copy touches of global memory: runs of bytes, gathered while it is carried out and then told. */
typedef struct hw_touched {
    uint64_t *sector; /* addresses */
    size_t n, cap;
    uint64_t bytes;
} hw_touched;
void hw_count_run(hw_touched *t, uint64_t address, uint64_t bytes);
void hw_count_bulk(hw_frame *f, uint32_t lane, bool store, hw_touched *t); /* and frees t */
void hw_count_ended(struct hw_tally *t, uint64_t block);                   /* a block ended */
/* Tell what is on the worker's tapes: before its blocks' frames change. */
void hw_count_empty(struct hw_tally *t);
/* The callback of generated code: a tape is full. */
void hw_count_listen(hw_frame *f);

#endif

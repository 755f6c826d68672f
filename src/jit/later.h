/* SPDX-License-Identifier: Apache-2.0
 *
 * Work for later: one thread of low priority that does jobs in order. */
#ifndef HW_JIT_LATER_H
#define HW_JIT_LATER_H

#include "hw_base.h"

typedef struct hw_later hw_later;
typedef void hw_later_fn(void *job);

hw_later *hw_later_new(void);
/* Waits for the job that has begun; the others are dropped. */
void hw_later_free(hw_later *l);
/* run(job), then drop(job), on the thread; if the thread cannot be had or has ended, only drop. */
void hw_later_add(hw_later *l, hw_later_fn *run, hw_later_fn *drop, void *job);

#endif

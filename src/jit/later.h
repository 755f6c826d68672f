/* SPDX-License-Identifier: Apache-2.0
 *
 * Work for later: one thread of low priority that does jobs in order.
 *
 * The process may end while a job is in the middle of LLVM, whose destructors then run. So before
 * them the thread is stopped where it stands; jobs that have not begun are forgotten.
 */
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

/* Where the code of libraries that jobs run in is: any address in each, or NULL. */
void hw_later_prepare(const void *const *codes, unsigned n);
/* Called by threads that may be the main one: when it ends the process, the thread stops first. */
void hw_later_watch(void);
/* Called after such libraries did something: what they do at exit comes after the thread stops. */
void hw_later_renew(void);

#endif

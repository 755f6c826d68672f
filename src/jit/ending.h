/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the process while threads are in the middle of LLVM, whose destructors then run.
 *
 *   use      a thread is in the code generator. Before LLVM's destructors such threads are stopped where they stand,
 *            as soon as that is in code which holds no lock of the C library; threads that come later never return.
 *   opening  a thread opens the code generator, and LLVM's constructors run: the end of the process waits for it.
 *
 * exit() first runs its own thread's thread-local destructors, then what was registered, the latest first, then the
 * destructors of libraries. At the first we wait until nobody opens; at the second we come before all of LLVM's, since
 * what it registers once it is open never gets there. The program's own handlers may come before and after.
 */
#ifndef HW_JIT_ENDING_H
#define HW_JIT_ENDING_H

#include "hw_base.h"

#include <pthread.h>
#include <signal.h>

typedef struct hw_use {
    struct hw_use *next;
    pthread_t thread;
    sigset_t mask; /* before */
    _Atomic bool stopped;
} hw_use;

/* Around each use; u is the caller's, until the second call. */
void hw_use_begin(hw_use *u);
void hw_use_end(hw_use *u);

void hw_opening_begin(void);
/* codes: any address in each of the libraries, or NULL. at_exit: has a function called before LLVM's destructors; NULL:
 * nothing was opened. */
void hw_opening_end(const void *const *codes, unsigned n, void (*at_exit)(void (*fn)(void)));

/* Called by threads that use the library: their thread-local destructors take part. */
void hw_ending_watch(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * exec: a launch carried out - grid, multiprocessors, blocks, warps, barriers, worker threads - and
 * the streams that order launches, copies and host functions.
 *
 *   exec    one device's engine: worker pool, streams, device heap, printf buffer.
 *   launch  a kernel's code + grid + arguments. Blocks start in ascending order; each worker runs
 * one block at a time to its end (a cooperative launch keeps all blocks resident and switches
 * between them when they wait). fault   how a launch ended badly: status, block, thread, place,
 * address. stream  an ordered queue of tasks with its own thread, started lazily. The legacy stream
 * waits for all blocking streams and they for it (CUDA Runtime API, "Stream synchronization
 * behavior"). event   a mark in a stream: recorded, waited for, timed.
 *
 * A fault never ends the process: SIGSEGV/SIGBUS/SIGFPE/SIGILL in generated code is turned into a
 * fault by one signal handler (chained to the program's own for anything else).
 */
#ifndef HW_EXEC_H
#define HW_EXEC_H

#include "hw_base.h"
#include "hw_device.h"
#include "hw_event.h"
#include "hw_jit.h"
#include "hw_mem.h"

typedef struct hw_exec hw_exec;
typedef struct hw_stream hw_stream;
typedef struct hw_timeline hw_timeline; /* an event */

typedef struct hw_fault {
    hw_status status; /* HW_OK: none */
    const char *kernel;
    uint32_t block[3], thread[3];
    hw_wir_loc loc;   /* line 0 and ptx_line 0: unknown */
    uint64_t address; /* of the access, if it was one */
    char text[512];   /* a sentence for people */
} hw_fault;

/* Which code of a kernel runs: the first tier until the second is made in the background, if its
 * running is worth that; or only one of them. */
typedef enum { HW_EXEC_BOTH_TIERS, HW_EXEC_FIRST_TIER, HW_EXEC_SECOND_TIER } hw_exec_tiers;

typedef struct hw_exec_options {
    unsigned workers;      /* 0: one a processor */
    uint64_t printf_bytes; /* FIFO size, default 1 MiB (CUDA Programming Guide, printf limits) */
    uint64_t heap_bytes;   /* device malloc, default 8 MiB */
    uint64_t stack_bytes; /* a thread's stack limit, default 1024 (cudaLimitStackSize); local arrays
                             come on top */
    uint64_t timeout_ms;  /* of one launch; 0: none (HALFWARP_TIMEOUT) */
    hw_exec_tiers tiers;  /* of code */
} hw_exec_options;

hw_exec *hw_exec_new(const hw_device *dev, hw_mem *mem, hw_jit *jit, const hw_exec_options *o);
void hw_exec_free(hw_exec *x); /* waits for running work */

enum { HW_DEVICE_FUNC_ATTRIBUTES = 144 }; /* bytes of a struct cudaFuncAttributes */
/* A thread's call of the device runtime (device_call.def): operands in order, addresses checked. */
typedef struct hw_device_call {
    hw_device_function function;
    uint64_t block; /* linear index */
    uint32_t thread;
    uint32_t lanes; /* how many of the warp call; 0 in all but the first of them */
    bool last;      /* of them */
    uint64_t args[8];
    uint32_t dims[2][3]; /* of the operands that are a dim3, in order */
} hw_device_call;
/* Who answers: called by workers, several at once; the calls of a block come in its order. A call of a warp is one of
 * each of its lanes, upwards; from the first to the last the worker does nothing else. */
typedef struct hw_device_runtime {
    uint64_t (*call)(void *ctx, const hw_device_call *c);
    void *ctx;
} hw_device_runtime;

typedef struct hw_launch {
    const hw_jit_source *source;
    uint32_t grid[3], block[3]; /* checked by the caller against the device */
    uint32_t cluster[3];        /* blocks; 0: no clusters are said */
    uint32_t dynamic_shared_bytes;
    const void *params; /* the packed parameter space, copied at submission */
    uint32_t param_bytes;
    /* device address of variable `external_id` of the module; called while the code is set up */
    uint64_t (*symbol_address)(void *ctx, uint32_t external_id);
    void *symbol_ctx;
    bool cooperative;
    const hw_device_runtime *runtime; /* NULL: a call of it is a fault; borrowed */
    const hw_listener *listener;      /* NULL: nobody listens; borrowed */
} hw_launch;

/* Carry out a launch now, on the calling thread and the pool. HW_OK, a compile error (diag), or a
 * fault's status with *fault filled. printf output is written to stdout at the end of the launch,
 * in order of blocks. */
hw_status hw_exec_launch(hw_exec *x, const hw_launch *l, hw_fault *fault, hw_diag *d);

/* Where code comes from: hw_jit_get, unless a test puts something else in its place. */
typedef hw_status hw_code_fn(void *ctx, const hw_jit_source *s, const hw_variant *v,
                             const hw_code **out, hw_diag *d);
void hw_exec_code_from(hw_exec *x, hw_code_fn *get, void *ctx);

/* ---- streams ---- */
enum { HW_STREAM_NONBLOCKING = 1 };
/* The legacy default stream of x; always there. */
hw_stream *hw_stream_legacy(hw_exec *x);
hw_stream *hw_stream_new(hw_exec *x, uint32_t flags, int priority);
int hw_stream_priority(const hw_stream *s);
/* Returns at once; the stream's memory goes when its work is done (as cuStreamDestroy). */
void hw_stream_destroy(hw_stream *s);
/* Append a task: run(ctx) on the stream's thread in order, then drop(ctx) (may be NULL) wherever. A
 * task that returns other than HW_OK makes the exec's sticky error; later launch and copy tasks are
 * then skipped (drop still runs), marks are not. */
typedef hw_status hw_task_fn(void *ctx, hw_fault *fault);
hw_status hw_stream_submit(hw_stream *s, hw_task_fn *run, void (*drop)(void *ctx), void *ctx);
/* Host functions run even after a fault is not promised; see cuLaunchHostFunc. */
hw_status hw_stream_submit_host(hw_stream *s, void (*fn)(void *user), void *user);
bool hw_stream_idle(hw_stream *s); /* all done? (for the legacy stream: and all blocking streams) */
hw_status hw_stream_wait(hw_stream *s); /* until idle; returns the sticky status */
hw_status hw_exec_wait(hw_exec *x);     /* all streams */
hw_status
hw_exec_sticky(hw_exec *x,
               hw_fault *out);  /* HW_OK or the first fault since the last reset; out may be NULL */
void hw_exec_reset(hw_exec *x); /* waits, then clears the fault */

/* ---- events ---- */
hw_timeline *hw_timeline_new(bool timed, bool blocking_sync);
void hw_timeline_destroy(hw_timeline *e); /* its memory goes when no stream refers to it */
void hw_timeline_record(hw_timeline *e, hw_stream *s);
void hw_timeline_block(hw_stream *s, hw_timeline *e); /* s waits for e's last record */
bool hw_timeline_reached(hw_timeline *e);             /* never recorded counts as reached */
void hw_timeline_wait(hw_timeline *e);
bool hw_timeline_recorded(hw_timeline *e); /* was it ever recorded */
/* Nanoseconds of host monotonic time when it was reached; valid when reached and timed. */
uint64_t hw_timeline_ns(hw_timeline *e);

/* ---- device runtime limits (cuCtxSetLimit) ---- */
typedef enum { HW_EXEC_STACK, HW_EXEC_PRINTF, HW_EXEC_HEAP } hw_exec_limit;
hw_status hw_exec_set_limit(hw_exec *x, hw_exec_limit which, uint64_t value);
uint64_t hw_exec_get_limit(hw_exec *x, hw_exec_limit which);
/* Does the device heap hold these bytes? */
bool hw_exec_heap_holds(hw_exec *x, uint64_t addr, uint64_t bytes);

#endif

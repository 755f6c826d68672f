/* SPDX-License-Identifier: Apache-2.0
 * rig: an exec on a small set-up whose kernels are C functions of a warp's frame. */
#ifndef RIG_H
#define RIG_H

#include "hw_exec.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
/* cmocka needs the four headers above it */
#include <cmocka.h>

typedef struct rig {
    hw_arena *arena;
    const hw_device *dev;
    hw_mem *mem;
    hw_jit *jit; /* or NULL */
    hw_exec *x;
    hw_code code, slow; /* what the next launch runs; slow: its no_shapes variant */
    hw_variant asked;   /* the last variant asked for */
    hw_fault fault;     /* of the last launch */
    unsigned workers;
    const hw_listener *listener; /* of the next launches */
    const char *name;            /* of the next kernels that are C functions; NULL: "kernel" */
} rig;

rig *rig_new(unsigned workers, const hw_exec_options *more);
void rig_free(rig *r);
uint64_t rig_alloc(rig *r, uint64_t bytes); /* zeroed */

typedef struct rig_shape {
    uint32_t grid[3], block[3];
    uint32_t shared;
    bool cooperative, suspends;
} rig_shape;

/* Run a kernel; params are uint64_t. */
hw_status rig_run(rig *r, hw_warp_fn *fn, rig_shape s, unsigned nparams, const uint64_t *params);
#define RUN(r, fn, shape, ...)                                                        \
    rig_run((r), (fn), shape, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
            (uint64_t[]){ __VA_ARGS__ })

/* The same with generated code: kernels are warp IR texts. */
rig *rig_new_generated(const char *device, unsigned workers, const hw_exec_options *more);
rig *rig_new_cached(const char *device, unsigned workers, const char *cache_dir);
hw_status rig_run_text(rig *r, const char *text, rig_shape s, unsigned nparams,
                       const uint64_t *params);
#define RUN_TEXT(r, text, shape, ...)                                                        \
    rig_run_text((r), (text), shape, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
                 (uint64_t[]){ __VA_ARGS__ })

/* For kernels. */
static inline uint64_t param(const hw_frame *f, unsigned i)
{
    return ((const uint64_t *)(const void *)f->params)[i];
}
static inline uint64_t block_index(const hw_frame *f)
{
    return f->ctaid[0] +
           (uint64_t)f->nctaid[0] * (f->ctaid[1] + (uint64_t)f->nctaid[1] * f->ctaid[2]);
}
static inline uint32_t *words(uint64_t addr)
{
    return (uint32_t *)(uintptr_t)addr;
}
static inline bool stop_asked(const hw_frame *f)
{
    return __atomic_load_n(f->stop, __ATOMIC_RELAXED) != 0;
}
/* Suspend: `return wait_at(f, next, id, count)`. */
static inline uint32_t wait_at(hw_frame *f, uint32_t next, uint32_t id, uint32_t count)
{
    f->resume = next;
    f->bar_id = id;
    f->bar_count = count;
    f->bar_kind = HW_BAR_SYNC;
    f->bar_lanes = f->lanes;
    return HW_WARP_BARRIER;
}
static inline uint32_t yield_at(hw_frame *f, uint32_t next)
{
    f->resume = next;
    return HW_WARP_YIELD;
}
#define FOR_LANES(l, mask)            \
    for (uint32_t l = 0; l < 32; l++) \
        if (((mask) >> l) & 1)

/* What a stream prints while fn runs; to be freed. */
char *rig_capture(FILE *stream, void (*fn)(void *ctx), void *ctx);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * event: the words in which execution is described, and who listens. Header only.
 *
 *   frame  one warp's state, shared by generated code (jit), exec and helpers. Layout: frame.def,
 * once. code   what generated code for a kernel variant needs beside its instructions. event  a
 * warp-level fact a listener hears, batched: memory accesses with 32 addresses and a mask
 * (hw_counters.h).
 */
#ifndef HW_EVENT_H
#define HW_EVENT_H

#include "hw_base.h"

enum { HW_WARP_LANES = 32 };
/* A spin loop lets others run when frame.spins is a multiple of this. */
enum { HW_SPINS_A_TURN = 64 };

typedef struct hw_frame hw_frame;

/* Lane arrays of one HELPER call: value i of lane l of width w bytes stands at dst[i] + l*w. I1
 * values are bytes 0/1. */
typedef struct hw_lane_arrays {
    void *const *dst;
    const void *const *src;
    uint32_t ndst, nsrc;
} hw_lane_arrays;
typedef void hw_helper_fn(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux);

/* Called by generated code when its quick check of an address failed: `addr` of `bytes` is outside
 * the device range or misaligned. Returns if the access is fine after all (registered host memory);
 * else ends the launch (never returns). */
typedef void hw_address_fn(hw_frame *f, uint64_t addr, uint32_t bytes, uint32_t loc);
/* Ends the launch with a fault (hw_status) at an instruction; never returns. */
typedef void hw_fault_fn(hw_frame *f, uint32_t status, uint32_t loc);

/* One table a process, pointed to by every frame: how generated code reaches C. No other external
 * symbol is needed by generated code, so cached objects link in microseconds. */
typedef struct hw_callbacks {
    hw_address_fn *bad_address;
    hw_fault_fn *fault;
    hw_helper_fn *const *helpers; /* by hw_wir_helper */
    /* The tape before f->counters is full: go through it and empty it. */
    void (*listen)(hw_frame *f);
    /* which = CLOCK's imm: 0 cycles (host time at the device's clock rate), 1 nanoseconds. */
    uint64_t (*clock)(hw_frame *f, uint32_t which);
    /* BARRIER_ARRIVE: this warp arrives at barrier id for count threads (0: all) and goes on. */
    void (*arrive)(hw_frame *f, uint32_t id, uint32_t count, uint32_t lanes);
    /* These lanes are parked at the barriers id[lane] for count[lane] threads (NULL: all), kind
     * frame.bar_kind, frame.bar_lanes those whose predicate holds; frame.lanes is up to date. Lanes in
     * frame.blocked may not go on. */
    void (*park)(hw_frame *f, const uint32_t *id, const uint32_t *count, uint32_t lanes);
    /* The same at a warp barrier, each lane for the lanes mask[lane]. */
    void (*sync)(hw_frame *f, const uint32_t *mask, uint32_t lanes);
} hw_callbacks;

/* What a warp's code returns. */
typedef enum hw_warp_status {
    HW_WARP_DONE,    /* every lane ended */
    HW_WARP_BARRIER, /* suspended at barrier frame.bar_id for frame.bar_count threads (0: all), kind
                        frame.bar_kind */
    HW_WARP_YIELD,   /* suspended in a spin loop: run others, then resume */
    HW_WARP_DEOPT,   /* a wrap guard failed: resume in the no_shapes variant */
    HW_WARP_PARKED,  /* every lane that has not ended is in frame.blocked */
    HW_WARP_MET,     /* suspended at barrier 0 for the whole block; frame.bar_* is not set */
} hw_warp_status;

/* Code whose warps hand on their turn (hw_code.relays): where one is MET or DONE and frame.next is
 * another, that one's turn begins in the same call; what the call returns is the last one's. */
typedef struct hw_turns {
    hw_frame *volatile running; /* whose turn it is */
    uint64_t over;              /* warps that were DONE and have handed on */
} hw_turns;

enum { HW_BAR_SYNC, HW_BAR_POPC, HW_BAR_AND, HW_BAR_OR };

struct hw_frame {
#define HW_FRAME(ctype, name, count, text) ctype name count;
#include "frame.def"
#undef HW_FRAME
};

typedef uint32_t hw_warp_fn(hw_frame *f); /* returns hw_warp_status */

enum {                      /* hw_variant.listeners */
       HW_LISTEN_COUNT = 1, /* counters; accesses of known patterns are told at the end */
       HW_LISTEN_ACCESS =
           2, /* every access but those to shared memory is told, in the order of the warp, with where it goes */
};

#include "hw_counters.h"

#endif

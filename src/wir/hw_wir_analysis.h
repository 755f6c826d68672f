/* SPDX-License-Identifier: Apache-2.0
 * What is known of a warp-IR function under a variant: order, liveness, divergence, shapes, spin
 * loops. Part of hw_wir.h, which includes it. */
#ifndef HW_WIR_ANALYSIS_RESULTS_H
#define HW_WIR_ANALYSIS_RESULTS_H

#include "hw_wir.h"

/* The shape of a register: what is known of its 32 lane values at every use.
 *   UNIFORM  one value S, the same in all lanes that use it
 *   AFFINE   value[lane] = S + c[lane] + d[lane] * R; c and d known now, S and R one value a warp at
 *            run time (d all zero: no R). Arithmetic in the register's own width, wrapping.
 *            c[0] = d[0] = 0 always: S is lane 0's value (whether or not lane 0 executes).
 *   VARYING  anything
 * For I1: UNIFORM or VARYING. Equal vectors are the same pointer.
 *
 * How generated code finds S and R of a result that is not VARYING:
 *   S  the operation applied to the S of its sources, for every operation whose sources are not
 *      VARYING. (Uniform results of VARYING sources: BALLOT, VOTE_*, REDUX, MATCH_ALL, ELECT, SHFL
 *      from one fixed lane, BARRIER_RED; LOAD's address is always a source with S.)
 *   R  of the first source that has d; if none has one, the instruction is MUL and R is the UNIFORM
 *      source's S. SEXT/ZEXT/TRUNC convert R as they convert S. LOCAL_ADDR: d[lane] = lane and
 *      R = frame.local_stride. */
typedef enum { HW_SHAPE_UNIFORM, HW_SHAPE_AFFINE, HW_SHAPE_VARYING } hw_shape_kind;
typedef struct hw_shape {
    hw_shape_kind kind;
    const int64_t *c; /* 32; NULL = zeros */
    const int64_t *d; /* 32; NULL = zeros */
} hw_shape;

/* A variant: what generated code may assume. Part of the code cache's key. */
typedef struct hw_variant {
    uint32_t block[3];  /* threads in x, y, z; all blocks of the launch have them */
    uint32_t listeners; /* set of HW_LISTEN_*; 0: nobody */
    bool independent;   /* lanes of a warp must make independent progress (device field) */
    bool small_grid;    /* grid.{x,y,z} * block.{x,y,z} each fit in 31 bits: ctaid*ntid+tid does not
                           wrap */
    bool
        lockstep_first; /* the device has independent lanes, but this variant bets that no lane of a
                            warp waits for another (independent is false): a spin loop leaves for the
                            slow variant when exec asks it to (frame.give_up) */
    bool no_shapes; /* slow variant: no assumption of unwrapped addresses (target of a failed guard)
                     */
    bool cooperative; /* several blocks share a worker: spin loops must suspend */
    bool
        whole_blocks; /* code whose warps never wait may run all of a block's (hw_code.whole_block) */
    uint8_t tier;     /* 0 quick, 1 optimised */
} hw_variant;

typedef struct hw_wir_analysis {
    uint32_t nblocks, nregs;
    uint32_t *order;    /* linear order of blocks for code generation: reverse postorder with every
                           loop contiguous */
    uint32_t *position; /* inverse of order */
    uint32_t *idom, *ipdom; /* block indices, UINT32_MAX: none */
    uint32_t *loop_header;  /* innermost loop's header, UINT32_MAX: none */
    uint32_t **preds, *npreds;
    /* Liveness between blocks. Most registers live inside one block only; the others ("global")
     * have a bit in the sets. Ask with hw_wir_live_in/out; or go over the bits of a set with
     * live_reg. */
    uint32_t nlive;     /* bits of a set */
    uint32_t *live_bit; /* per register: its bit; UINT32_MAX: never live between blocks */
    uint32_t *live_reg; /* per bit: its register */
    uint64_t **live_in_set, **live_out_set; /* per block */
    bool
        *divergent_branch; /* per block: its terminator can send lanes of one warp different ways */
    bool *divergent;       /* per block: may run with only some of the warp's live lanes */
    /* Per block: the blocks where lanes may wait while it runs (a bit a block). NULL: nobody waits. */
    uint64_t **waiting;
    /* Per instruction (first_insn[block] + i): its results must be merged under the executing mask
     * (and the guard) because lanes not executing may still need the old value; all results are
     * VARYING then. Where it is not set: write all lanes freely, but a guarded instruction with a
     * UNIFORM guard writes only if the guard holds. */
    bool *blend;
    uint32_t *first_insn; /* per block, into per-instruction arrays; [nblocks] = total */
    hw_shape *shape;      /* per register */
    bool *wrap_guard; /* per instruction: SEXT/ZEXT (32 to 64) of an AFFINE source whose result's
                         shape holds only if S + c (+ d*R) does not wrap; jit must test it,
                         and there those with this guard_at too, which can be computed there */
    uint32_t
        *guard_at;   /* per instruction: where its wrap guard is tested; UINT32_MAX: it has none */
    bool spins;      /* a loop waits for memory another lane, warp or block writes */
    bool *spin_loop; /* per block: it is the header of such a loop */
    bool *one_lane_spins; /* per block: ... that one lane of a warp runs: it most likely waits for
                             other warps (for the block or grid), rarely for the rest of its own */
    bool spins_divergent; /* lanes of one warp can wait for each other: needs independent lanes */
    bool waits_apart; /* lanes of one warp can come to a barrier or warp barrier at different times,
                             or to different ones: hw_wir_may_part of some instruction */
    bool any_order;   /* the divergence results hold for any choice of the next block: lanes may be
                       parked at a block's start while others run (independent, and spins_divergent or
                       waits_apart) */
    bool has_f64, has_ftz_f32, has_noftz_f32; /* to choose MXCSR */
    uint32_t max_live; /* registers live at once, in 32-bit units: an estimate of a real register
                          count */
} hw_wir_analysis;

/* Analyse one function under a variant. Everything lives in a.
 * The divergence results (divergent, blend, shape) hold for linear order: among the blocks where
 * lanes wait, the one smallest in position runs next, with all lanes that wait there; see also
 * any_order. Lanes that ended
 * (EXIT; RET in a kernel) wait nowhere. */
const hw_wir_analysis *hw_wir_analyse(hw_arena *a, const hw_wir_module *m, uint32_t function,
                                      const hw_variant *v);

/* Can a barrier or warp barrier be come to by some lanes of a warp without the others, or with other
 * operands? */
bool hw_wir_may_part(const hw_wir_analysis *o, uint32_t block, const hw_wir_insn *i);

enum { HW_WIR_CALL_BYTES = 16 }; /* of a lane's stack that a call costs beside local arrays */
/* Could CALLI i of a function be a call of f: do the types of what is passed agree? */
bool hw_wir_can_call(const hw_wir_function *caller, const hw_wir_insn *i, const hw_wir_function *f);

static inline bool hw_bit(const uint64_t *set, uint32_t i)
{
    return (set[i / 64] >> (i % 64)) & 1;
}
static inline bool hw_wir_live_in(const hw_wir_analysis *n, uint32_t block, uint32_t reg)
{
    return n->live_bit[reg] != UINT32_MAX && hw_bit(n->live_in_set[block], n->live_bit[reg]);
}
static inline bool hw_wir_live_out(const hw_wir_analysis *n, uint32_t block, uint32_t reg)
{
    return n->live_bit[reg] != UINT32_MAX && hw_bit(n->live_out_set[block], n->live_bit[reg]);
}

#include "hw_wir_async.h"

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The analyses' shared working state (private to room wir).
 *
 *   cfg.c    order, loops, predecessors, dominators
 *   live.c   liveness
 *   range.c  intervals of lane 0's values
 *   shape.c  shapes
 *   guards.c wrap guards that are tested together
 *   wait.c   where lanes can wait while others run: divergent blocks and blends
 *   single.c blocks that only one lane runs
 *   spin.c   loops that wait for somebody else's memory
 * analysis.c runs them; shapes and waits depend on each other and are iterated to a fixpoint.
 */
#ifndef HW_WIR_ANALYSIS_H
#define HW_WIR_ANALYSIS_H

#include "inside.h"

enum { LANES = 32 };
#define NONE32 UINT32_MAX

/* What is known of lane 0's value of a register, by whatever way it was computed: lo <= v <= hi as
 * a signed number of the register's width, with at least `zeros` low zero bits. */
typedef struct range {
    int64_t lo, hi;
    uint8_t zeros; /* 64: the value is 0 */
    bool known;    /* false: no definition seen yet */
} range;

typedef struct loop {
    uint32_t header, parent; /* block; index into loops or NONE32 */
    uint32_t first, end;     /* positions [first, end) */
} loop;

typedef struct analysis {
    hw_arena *arena;   /* results live here */
    hw_arena *scratch; /* freed at the end */
    const hw_wir_module *m;
    const hw_wir_function *f;
    const hw_variant *v;
    hw_wir_analysis *out;
    uint32_t nblocks, nregs, ninsns;
    uint32_t nreachable; /* positions below are reachable from the entry */

    /* cfg.c */
    HW_VEC(loop) loops; /* outer before inner */
    uint32_t *loop_of;  /* per block: innermost loop's index or NONE32 */

    /* by instruction index */
    const hw_wir_insn **insns;
    uint32_t *block_of;
    uint32_t *only_def;           /* per register: its only definition, or NONE32 */
    bool *single;                 /* per block: at most one lane of a warp ever runs it */
    uint32_t *users, *first_user; /* per register: instructions that read it (operand or guard) */
    bool *guarded_live;           /* a guarded definition's old value is wanted after it */

    range *ranges;    /* per register */
    uint8_t *shaped;  /* per register: 0 no definition seen yet */
    hw_shape *shapes; /* = out->shape */
    struct lane_vectors *vectors;

    uint32_t *queue, queue_head, queue_len; /* ring of instructions to look at again */
    bool *queued;

    struct waits *waits; /* wait.c */
    bool pessimistic;    /* every branch and guard that is no immediate counts as divergent */
} analysis;

void hw_wir_find_cfg(analysis *n);
void hw_wir_find_liveness(analysis *n);
void hw_wir_find_ranges(analysis *n);
void hw_wir_start_shapes(analysis *n);
void hw_wir_spread_shapes(analysis *n); /* work off the queue */
void hw_wir_make_varying(analysis *n, uint32_t reg);
void hw_wir_finish_shapes(analysis *n);
void hw_wir_group_guards(analysis *n);
void hw_wir_find_single(analysis *n);
void hw_wir_find_waits(analysis *n);
void hw_wir_publish_waits(analysis *n);
bool hw_wir_find_blends(analysis *n); /* true: a new one was found */
void hw_wir_find_spins(analysis *n);

/* The terminator of a block. */
static inline const hw_wir_insn *hw_wir_last(const hw_wir_block *b)
{
    return &b->insns.ptr[b->insns.len - 1];
}

static inline bool is_varying(const analysis *n, hw_wir_val v)
{
    if (v.kind != HW_V_REG || n->pessimistic)
        return v.kind == HW_V_REG;
    return n->shaped[v.reg] && n->shapes[v.reg].kind != HW_SHAPE_UNIFORM;
}

static inline void enqueue(analysis *n, uint32_t insn)
{
    if (n->queued[insn])
        return;
    n->queued[insn] = true;
    uint32_t at = n->queue_head + n->queue_len++;
    n->queue[at >= n->ninsns ? at - n->ninsns : at] = insn;
}

static inline uint32_t dequeue(analysis *n) /* queue_len > 0 */
{
    uint32_t insn = n->queue[n->queue_head];
    n->queue_head = n->queue_head + 1 == n->ninsns ? 0 : n->queue_head + 1;
    n->queue_len--;
    n->queued[insn] = false;
    return insn;
}

static inline void enqueue_users(analysis *n, uint32_t reg)
{
    for (uint32_t k = n->first_user[reg]; k < n->first_user[reg + 1]; k++)
        enqueue(n, n->users[k]);
}

/* One lane's result of a pure integer operation whose operands are known; false: not one of those.
 * Values are bits, zero-extended. (eval.c; also used by simplify.c) */
bool hw_wir_eval(const hw_wir_insn *i, const uint64_t *src, uint64_t *out);
bool hw_wir_can_eval(const hw_wir_insn *i);

/* A block's warps, and a component of a thread's index in it. */
static inline uint32_t hw_wir_warps(const hw_variant *v)
{
    return (v->block[0] * v->block[1] * v->block[2] + LANES - 1) / LANES;
}
static inline uint32_t hw_wir_tid(const hw_variant *v, unsigned axis, uint32_t thread)
{
    uint32_t row = thread / v->block[0];
    return axis == 0 ? thread % v->block[0] : axis == 1 ? row % v->block[1] : row / v->block[1];
}

static inline int64_t sign_extend(uint64_t v, unsigned bits)
{
    return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

#endif

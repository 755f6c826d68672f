/* SPDX-License-Identifier: Apache-2.0
 * Blocks that at most one lane of a warp ever runs: those behind `if (threadIdx.x == 0)` and the
 * like. Their branches cannot part lanes, whatever they test. */
#include "analysis.h"

enum { MOST_DEPTH = 4 }; /* of AND, OR, NOT between a test and its branch */

/* The only definition of a register if it is outside all loops and unguarded (so that a lane's value
 * never changes); else NULL. */
static const hw_wir_insn *only_def(const analysis *n, hw_wir_val v)
{
    if (v.kind != HW_V_REG || n->only_def[v.reg] == NONE32)
        return NULL;
    uint32_t index = n->only_def[v.reg];
    const hw_wir_insn *i = n->insns[index];
    bool fixed = n->loop_of[n->block_of[index]] == NONE32 && i->guard.kind == HW_V_NONE;
    return fixed ? i : NULL;
}

static bool is_fixed(const analysis *n, hw_wir_val v)
{
    return v.kind == HW_V_IMM || only_def(n, v) != NULL;
}

/* Different in all lanes: S + c, no two c equal. */
static bool all_differ(const analysis *n, hw_wir_val v)
{
    if (v.kind != HW_V_REG || n->shapes[v.reg].kind != HW_SHAPE_AFFINE || n->shapes[v.reg].d)
        return false;
    const int64_t *c = n->shapes[v.reg].c;
    for (int a = 0; a < LANES; a++)
        for (int b = 0; b < a; b++)
            if (c[a] == c[b])
                return false;
    return true;
}

static bool is_uniform(const analysis *n, hw_wir_val v)
{
    return v.kind == HW_V_IMM || n->shapes[v.reg].kind == HW_SHAPE_UNIFORM;
}

static bool compares_lanes(const analysis *n, const hw_wir_insn *i)
{
    for (int k = 0; k < 2; k++)
        if (all_differ(n, i->src[k]) && is_uniform(n, i->src[1 - k]))
            return is_fixed(n, i->src[0]) && is_fixed(n, i->src[1]);
    return false;
}

/* Is predicate v equal to `value` in one and the same lane only, if in any? */
static bool one_lane(const analysis *n, hw_wir_val v, bool value, int depth)
{
    const hw_wir_insn *i = only_def(n, v);
    if (!i || depth == MOST_DEPTH)
        return false;
    switch (i->op) {
    case HW_W_ICMP:
        return i->cond == (value ? HW_C_EQ : HW_C_NE) && compares_lanes(n, i);
    case HW_W_ELECT:
        return value && i->dst[1].kind == HW_V_REG && i->dst[1].reg == v.reg;
    case HW_W_NOT:
        return one_lane(n, i->src[0], !value, depth + 1);
    case HW_W_MOV:
        return one_lane(n, i->src[0], value, depth + 1);
    case HW_W_AND:
    case HW_W_OR:
        return value == (i->op == HW_W_AND) && (one_lane(n, i->src[0], value, depth + 1) ||
                                                one_lane(n, i->src[1], value, depth + 1));
    default:
        return false;
    }
}

/* The target only one lane takes, if nothing else leads there; else NONE32. */
static uint32_t single_target(const analysis *n, uint32_t block)
{
    const hw_wir_block *b = &n->f->blocks.ptr[block];
    const hw_wir_insn *last = hw_wir_last(b);
    if (last->op != HW_W_CBR || b->targets[0] == b->targets[1])
        return NONE32;
    for (uint32_t k = 0; k < 2; k++)
        if (n->out->npreds[b->targets[k]] == 1 && one_lane(n, last->src[0], k == 0, 0))
            return b->targets[k];
    return NONE32;
}

void hw_wir_find_single(analysis *n)
{
    memset(n->single, 0, n->nblocks * sizeof *n->single);
    for (uint32_t b = 0; b < n->nblocks; b++) {
        uint32_t t = single_target(n, b);
        if (t != NONE32)
            n->single[t] = true;
    }
    for (uint32_t p = 0; p < n->nreachable; p++) { /* dominators come first in order */
        uint32_t b = n->out->order[p], up = n->out->idom[b];
        n->single[b] |= up != NONE32 && n->single[up];
    }
}

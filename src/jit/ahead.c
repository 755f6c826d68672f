/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetching for loops that walk through memory in long steps: threads of a grid striding over an
 * array. The host's prefetchers follow short steps, not those from page to page. What is fetched is
 * guessed from how far the address came since the load ran last.
 */
#include "access.h"

#include <stdlib.h>

enum { SHORT_STEP = 1024, MOST_DEPTH = 8, TURNS_AHEAD = 16, LINE = 64 };

/* How a value changes from one turn of a loop to the next. */
typedef struct step {
    enum { FIXED, MOVES, UNKNOWN } kind;
    bool known;
    int64_t by; /* if known */
} step;

static const step fixed = { FIXED, true, 0 }, unknown = { UNKNOWN, false, 0 };

typedef struct loop {
    uint32_t first, last; /* positions */
} loop;

static bool loop_of(const hw_gen *g, uint32_t block, loop *l)
{
    uint32_t header = g->an->loop_header[block];
    if (header == UINT32_MAX)
        return false;
    l->first = l->last = g->an->position[header];
    for (uint32_t i = 0; i < g->an->npreds[header]; i++)
        if (g->an->position[g->an->preds[header][i]] > l->last)
            l->last = g->an->position[g->an->preds[header][i]];
    return g->an->position[block] <= l->last;
}

/* The only definition of a register within the loop; *n: how many there are. */
static const hw_wir_insn *definition(const hw_gen *g, const loop *l, uint32_t reg, unsigned *n)
{
    const hw_wir_insn *found = NULL;
    *n = 0;
    for (uint32_t k = l->first; k <= l->last; k++) {
        const hw_wir_block *w = &g->f->blocks.ptr[g->an->order[k]];
        for (size_t i = 0; i < w->insns.len; i++)
            for (uint32_t d = 0; d < w->insns.ptr[i].ndst; d++)
                if (w->insns.ptr[i].dst[d].kind == HW_V_REG && w->insns.ptr[i].dst[d].reg == reg) {
                    found = &w->insns.ptr[i];
                    ++*n;
                }
    }
    return found;
}

static step step_of(const hw_gen *g, const loop *l, hw_wir_val v, unsigned depth);

static step sum(step a, step b, int sign)
{
    if (a.kind == UNKNOWN || b.kind == UNKNOWN)
        return unknown;
    bool known = a.known && b.known;
    return (step){ a.kind == MOVES || b.kind == MOVES ? MOVES : FIXED, known,
                   known ? (int64_t)((uint64_t)a.by + (uint64_t)(b.by * sign)) : 0 };
}

static step times(step a, hw_wir_val by, bool shift)
{
    if (a.kind != MOVES)
        return a;
    a.known &= by.kind == HW_V_IMM && by.imm < 1 << 16 && llabs(a.by) < 1 << 30;
    if (a.known && (!shift || by.imm < 16))
        a.by *= shift ? (int64_t)1 << by.imm : (int64_t)by.imm;
    return a;
}

static step product(const hw_gen *g, const loop *l, const hw_wir_insn *in, unsigned depth)
{
    step a = step_of(g, l, in->src[0], depth), b = step_of(g, l, in->src[1], depth);
    if (a.kind == UNKNOWN || b.kind == UNKNOWN || (a.kind == MOVES && b.kind == MOVES))
        return unknown;
    return a.kind == MOVES ? times(a, in->src[1], false) : times(b, in->src[0], false);
}

/* x = x + something fixed, perhaps by way of other registers. */
static step turn(const hw_gen *g, const loop *l, uint32_t reg, const hw_wir_insn *in)
{
    step all = fixed;
    for (unsigned i = 0, n; in && i < MOST_DEPTH; i++) {
        hw_wir_val next = in->src[0];
        if (in->op == HW_W_ADD || in->op == HW_W_SUB) {
            step other = step_of(g, l, in->src[1], 1);
            if (other.kind != FIXED)
                return unknown;
            bool known = in->src[1].kind == HW_V_IMM && all.known;
            int64_t by = (int64_t)in->src[1].imm;
            if (hw_wir_bits((hw_wir_type)in->type) == 32)
                by = (int32_t)by;
            all = (step){ MOVES, known, all.by + (in->op == HW_W_SUB ? -by : by) };
        } else if (in->op != HW_W_MOV) {
            return unknown;
        }
        if (next.kind == HW_V_REG && next.reg == reg)
            return all;
        in = next.kind == HW_V_REG ? definition(g, l, next.reg, &n) : NULL;
        if (n != 1)
            return unknown;
    }
    return unknown;
}

static step step_of(const hw_gen *g, const loop *l, hw_wir_val v, unsigned depth)
{
    unsigned n;
    if (v.kind != HW_V_REG)
        return fixed;
    const hw_wir_insn *in = definition(g, l, v.reg, &n);
    if (n == 0)
        return fixed;
    if (n > 1 || depth >= MOST_DEPTH || in->guard.kind == HW_V_REG)
        return unknown;
    step s = turn(g, l, v.reg, in);
    if (s.kind != UNKNOWN)
        return s;
    switch (in->op) {
    case HW_W_MOV:
    case HW_W_SEXT:
    case HW_W_ZEXT:
        return step_of(g, l, in->src[0], depth + 1);
    case HW_W_ADD:
        return sum(step_of(g, l, in->src[0], depth + 1), step_of(g, l, in->src[1], depth + 1), 1);
    case HW_W_SUB:
        return sum(step_of(g, l, in->src[0], depth + 1), step_of(g, l, in->src[1], depth + 1), -1);
    case HW_W_SHL:
        return times(step_of(g, l, in->src[0], depth + 1), in->src[1], true);
    case HW_W_MUL:
        return product(g, l, in, depth + 1);
    default:
        return unknown;
    }
}

static bool suspends(const hw_gen *g, const loop *l)
{
    for (uint32_t k = l->first; k <= l->last; k++) {
        const hw_wir_block *w = &g->f->blocks.ptr[g->an->order[k]];
        for (size_t i = 0; i < w->insns.len; i++)
            if (hw_wir_ops[w->insns.ptr[i].op].flags & HW_WF_S)
                return true;
    }
    return false;
}

void hwg_fetch_ahead(hw_gen *g, const hw_access *a)
{
    loop l;
    if (!g->v->tier || g->version != GEN_FULL || a->base || !loop_of(g, g->block, &l))
        return;
    step s = step_of(g, &l, a->in->src[0], 0);
    if (s.kind != MOVES || (s.known && llabs(s.by) < SHORT_STEP) || suspends(g, &l))
        return;
    hw_lv last = hwg_alloca(g, g->i64, "last"), now = a->addr.s;
    hw_lv moved = b_sub(g, now, LLVMBuildLoad2(g->b, g->i64, last, ""));
    hw_lv at = b_add(g, now, b_mul(g, moved, hwg_k(g->i64, TURNS_AHEAD)));
    LLVMBuildStore(g->b, now, last);
    for (unsigned i = 0; i < GEN_LANES * a->bytes; i += LINE)
        hwg_prefetch(g, hwg_pointer(g, a, at, (int64_t)i));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetching for loops that walk through memory in long steps: threads of a grid striding over an
 * array. The host's prefetchers follow short steps, not those from page to page. The step is read
 * from the code where it can be, else guessed from how far the address came since the load ran last.
 * And for blocks of several rows, which the host's prefetchers see begin again and again: what the
 * next block will load at the same place, as the worker that runs this one mostly runs that too.
 */
#include "access.h"

#include <stdlib.h>

enum { FURTHEST_BLOCK = 4096, DEEP = 2 * 8 };
enum { SHORT_STEP = 1024, MOST_DEPTH = 8, TURNS_AHEAD = 16, LINE = 64 };

/* How a value changes from one turn of a loop to the next: by + scale * reg, if known. */
typedef struct step {
    enum { FIXED, MOVES, UNKNOWN } kind;
    bool known;
    int64_t by, scale;
    hw_wir_val reg; /* NONE: by alone */
} step;

static const step fixed = { FIXED, true, 0, 0, { HW_V_NONE, 0, 0 } },
                  unknown = { UNKNOWN, false, 0, 0, { HW_V_NONE, 0, 0 } };

typedef struct loop {
    uint32_t first, last; /* positions */
    bool blocks;          /* not a loop: from a block to the next one in x */
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
static const hw_wir_insn *definition(hw_gen *g, const loop *l, uint32_t reg, unsigned *n)
{
    const hw_wir_insn *found = NULL;
    *n = 0;
    if (l->blocks) {
        found = hwg_only_definition(g, reg);
        *n = found ? 1 : 2;
        return found;
    }
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

static step step_of(hw_gen *g, const loop *l, hw_wir_val v, unsigned depth);

static step sum(step a, step b, int sign)
{
    if (a.kind == UNKNOWN || b.kind == UNKNOWN)
        return unknown;
    step r = a.kind == MOVES ? a : b;
    if (a.kind == MOVES && b.kind == MOVES) {
        r.known = a.known && b.known && b.reg.kind == HW_V_NONE;
        r.by = (int64_t)((uint64_t)a.by + (uint64_t)b.by * (uint64_t)sign);
    } else if (b.kind == MOVES) {
        r.by *= sign;
        r.scale *= sign;
    }
    return r;
}

/* A block's size is a constant of the code. */
static hw_wir_val constant(hw_gen *g, const loop *l, hw_wir_val v)
{
    const hw_wir_insn *in = l->blocks && v.kind == HW_V_REG ? hwg_only_definition(g, v.reg) : NULL;
    if (in && in->op == HW_W_SREG && in->imm >= HW_SR_NTID_X && in->imm <= HW_SR_NTID_Z)
        return hw_wir_imm(g->v->block[in->imm - HW_SR_NTID_X]);
    return v;
}

static step times(step a, hw_wir_val by, bool shift)
{
    if (a.kind != MOVES)
        return a;
    a.known &= by.kind == HW_V_IMM && by.imm < (shift ? 16 : 1 << 16) && llabs(a.by) < 1 << 30;
    int64_t k = !a.known ? 1 : shift ? (int64_t)1 << by.imm : (int64_t)by.imm;
    a.by *= k;
    a.scale *= k;
    return a;
}

static step product(hw_gen *g, const loop *l, const hw_wir_insn *in, unsigned depth)
{
    step a = step_of(g, l, in->src[0], depth), b = step_of(g, l, in->src[1], depth);
    if (a.kind == UNKNOWN || b.kind == UNKNOWN || (a.kind == MOVES && b.kind == MOVES))
        return unknown;
    return a.kind == MOVES ? times(a, constant(g, l, in->src[1]), false)
                           : times(b, constant(g, l, in->src[0]), false);
}

/* What an addition or subtraction of something fixed adds. */
static step added(hw_gen *g, const loop *l, const hw_wir_insn *in, unsigned depth)
{
    hw_wir_val by = in->src[1];
    int sign = in->op == HW_W_SUB ? -1 : 1;
    bool narrow = hw_wir_bits((hw_wir_type)in->type) == 32;
    if (step_of(g, l, by, depth).kind != FIXED)
        return unknown;
    step s = { MOVES, true, 0, sign, by };
    if (by.kind != HW_V_REG)
        s = (step){ MOVES, true, narrow ? (int32_t)by.imm : (int64_t)by.imm, 0, HW_WIR_NONE };
    else if (g->an->shape[by.reg].kind != HW_SHAPE_UNIFORM)
        s.known = false;
    s.by *= sign;
    return s;
}

/* x = x + something fixed, perhaps by way of other registers. */
static step turn(hw_gen *g, const loop *l, uint32_t reg, const hw_wir_insn *in, unsigned depth)
{
    step all = fixed;
    for (unsigned i = 0, n = 1; n == 1 && i < MOST_DEPTH; i++) {
        if (in->op == HW_W_ADD || in->op == HW_W_SUB)
            all = sum(all, added(g, l, in, depth + 1), 1);
        else if (in->op != HW_W_MOV)
            return unknown;
        hw_wir_val next = in->src[0];
        if (next.kind != HW_V_REG || next.reg == reg)
            return next.kind == HW_V_REG ? all : unknown;
        in = definition(g, l, next.reg, &n);
    }
    return unknown;
}

/* What differs from block to block, and what surely does not. */
static step from_block(const hw_wir_insn *in)
{
    if (in->op == HW_W_SREG)
        return in->imm == HW_SR_CTAID_X ? (step){ MOVES, true, 1, 0, HW_WIR_NONE } : fixed;
    bool param = in->op == HW_W_LOAD && in->space == HW_SPACE_PARAM;
    return param || in->op == HW_W_SYMBOL || in->op == HW_W_PARAM_ADDR ? fixed : unknown;
}

static bool all_fixed(hw_gen *g, const loop *l, const hw_wir_insn *in, unsigned depth)
{
    bool all = hw_wir_ops[in->op].flags & HW_WF_P;
    for (uint32_t i = 0; i < in->nsrc && all; i++)
        all = step_of(g, l, in->src[i], depth).kind == FIXED;
    return all;
}

static step step_of(hw_gen *g, const loop *l, hw_wir_val v, unsigned depth)
{
    unsigned n;
    if (v.kind != HW_V_REG)
        return fixed;
    const hw_wir_insn *in = definition(g, l, v.reg, &n);
    if (n == 0)
        return fixed;
    if (n > 1 || depth >= (l->blocks ? DEEP : MOST_DEPTH) || in->guard.kind == HW_V_REG)
        return unknown;
    step s = l->blocks ? from_block(in) : turn(g, l, v.reg, in, depth);
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
        return l->blocks && all_fixed(g, l, in, depth + 1) ? fixed : unknown;
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

/* The distance of so many turns; NULL: the loop does not tell. */
static hw_lv distance(hw_gen *g, const step *s, unsigned turns)
{
    if (!s->known)
        return NULL;
    hw_lv by = hwg_k(g->i64, (uint64_t)(s->by * turns));
    if (s->reg.kind != HW_V_REG)
        return by;
    hw_lv r = hwg_read(g, s->reg, g->f->regs.ptr[s->reg.reg].type).s;
    if (LLVMTypeOf(r) == g->i32)
        r = b_sext(g, r, g->i64);
    return b_add(g, by, b_mul(g, r, hwg_k(g->i64, (uint64_t)(s->scale * turns))));
}

/* The same, as far as the address came since last time. */
static hw_lv distance_seen(hw_gen *g, hw_lv now)
{
    hw_lv last = hwg_alloca(g, g->i64, "last");
    hw_lv moved = b_sub(g, now, LLVMBuildLoad2(g->b, g->i64, last, ""));
    LLVMBuildStore(g->b, now, last);
    return b_mul(g, moved, hwg_k(g->i64, TURNS_AHEAD));
}

static void fetch(hw_gen *g, const hw_access *a, hw_lv at, int64_t offset, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i += LINE)
        hwg_prefetch(g, hwg_pointer(g, a, at, offset + (int64_t)i));
}

/* What the next block loads here. */
static void fetch_for_next(hw_gen *g, const hw_access *a, hw_lv now, int64_t offset, unsigned bytes)
{
    const loop blocks = { .blocks = true };
    if (g->v->block[1] * g->v->block[2] == 1)
        return;
    step s = step_of(g, &blocks, a->in->src[0], 0);
    if (s.kind == MOVES && s.known && llabs(s.by) >= LINE && llabs(s.by) <= FURTHEST_BLOCK)
        fetch(g, a, b_add(g, now, hwg_k(g->i64, (uint64_t)s.by)), offset, bytes);
}

/* Not where warps wait for each other in the loop and take turns: it gains nothing (measured). */
void hwg_fetch_ahead(hw_gen *g, const hw_access *a, hw_lv now, int64_t offset, unsigned bytes)
{
    loop l = { 0 };
    if (g->lean || !g->v->tier || g->version != GEN_FULL || a->base)
        return;
    if (g->an->loop_header[g->block] == UINT32_MAX)
        fetch_for_next(g, a, now, offset, bytes);
    if (!loop_of(g, g->block, &l))
        return;
    step s = step_of(g, &l, a->in->src[0], 0);
    bool near = s.known && s.reg.kind == HW_V_NONE && llabs(s.by) < SHORT_STEP;
    if (s.kind != MOVES || near || suspends(g, &l))
        return;
    hw_lv by = distance(g, &s, TURNS_AHEAD);
    fetch(g, a, b_add(g, now, by ? by : distance_seen(g, now)), offset, bytes);
}

/* SPDX-License-Identifier: Apache-2.0
 * The control-flow graph made fit for linear order and for SSA (see prepare.c). Each step keeps what
 * the function does. */
#include "prepare.h"
#include "analysis.h"

static uint32_t add_block(hw_arena *a, hw_wir_function *f)
{
    hw_vec_push(a, &f->blocks, (hw_wir_block){ .label = NULL });
    return (uint32_t)f->blocks.len - 1;
}

static void set_targets(hw_arena *a, hw_wir_block *b, uint32_t n, uint32_t first)
{
    b->ntargets = n;
    b->targets = n ? HW_NEW_N(a, uint32_t, n) : NULL;
    if (n)
        b->targets[0] = first;
}

static uint32_t add_branch_to(hw_arena *a, hw_wir_function *f, uint32_t target, uint32_t loc)
{
    uint32_t b = add_block(a, f);
    hw_wir_insn br = { .op = HW_W_BR, .count = 1, .loc = loc };
    hw_vec_push(a, &f->blocks.ptr[b].insns, br);
    set_targets(a, &f->blocks.ptr[b], 1, target);
    return b;
}

/* ---- branches to branches and to exits ---- */

/* A branch that is counted stays, and so does where it stands. */
static bool is_counted(const hw_wir_insn *i)
{
    return (i->flags & HW_I_HEAD) != 0;
}

static bool only_branches(const hw_wir_block *b)
{
    const hw_wir_insn *i = &b->insns.ptr[0];
    return b->insns.len == 1 && i->op == HW_W_BR && !is_counted(i);
}

/* Where a branch to t really leads; a cycle of empty blocks stays what it is. */
static uint32_t final_target(const hw_wir_function *f, uint32_t t)
{
    uint32_t start = t;
    for (size_t steps = 0; steps < 32 && only_branches(&f->blocks.ptr[t]); steps++) {
        t = f->blocks.ptr[t].targets[0];
        if (t == start)
            return start;
    }
    return t;
}

static bool only_exits(const hw_wir_block *b)
{
    const hw_wir_insn *i = &b->insns.ptr[0];
    bool ends = i->op == HW_W_RET || i->op == HW_W_EXIT;
    return b->insns.len == 1 && ends && i->guard.kind == HW_V_NONE;
}

/* The end of lanes that stands alone in block b gets a number, under which it is counted wherever lanes
 * that come to it end. */
static hw_wir_insn end_at(hw_wir_module *m, hw_wir_block *b, hw_wir_insn like)
{
    hw_wir_insn *end = &b->insns.ptr[0];
    if (is_counted(end) && !end->imm) {
        end->imm = ++m->ends;
        end->aux = end->loc;
    }
    return (hw_wir_insn){ .op = HW_W_EXIT,
                          .count = 1,
                          .flags = like.flags & (HW_I_HEAD | HW_I_CALLS),
                          .loc = like.loc,
                          .imm = end->imm,
                          .aux = end->aux };
}

static void end_block(hw_wir_module *m, hw_wir_block *b, hw_wir_insn end, uint32_t stay)
{
    b->insns.ptr[b->insns.len - 1] = end;
    set_targets(m->arena, b, end.guard.kind == HW_V_REG, stay);
}

/* In a kernel, lanes that branch to an exit end at once: nobody has to wait for them. */
static void exit_early(hw_wir_module *m, hw_wir_function *f, hw_wir_block *b)
{
    const hw_wir_insn last = *hw_wir_last(b);
    hw_wir_block *to = b->ntargets ? &f->blocks.ptr[b->targets[0]] : NULL;
    bool yes = to && only_exits(to);
    if (last.op == HW_W_BR && yes &&
        !is_counted(&last)) { /* the exit stands here, not the branch */
        hw_wir_insn end = end_at(m, to, last);
        end.loc = to->insns.ptr[0].loc;
        end_block(m, b, end, 0);
        return;
    }
    if (last.op != HW_W_CBR || last.src[0].kind != HW_V_REG)
        return;
    bool no = only_exits(&f->blocks.ptr[b->targets[1]]);
    if (yes && no && !is_counted(&last)) {
        end_block(m, b, end_at(m, to, last), 0);
    } else if (yes != no) {
        hw_wir_insn end = end_at(m, &f->blocks.ptr[b->targets[no]], last);
        end.guard = last.src[0];
        end.flags |= no ? HW_I_NEG_GUARD : 0;
        end.flags |= no != ((last.flags & HW_I_ELSE) != 0) ? HW_I_ELSE : 0;
        end_block(m, b, end, b->targets[yes]);
    }
}

/* A conditional branch whose way is known. */
static void fold_branch(hw_arena *a, hw_wir_block *b)
{
    hw_wir_insn *last = &b->insns.ptr[b->insns.len - 1];
    if (last->op != HW_W_CBR || is_counted(last))
        return;
    bool known = last->src[0].kind == HW_V_IMM;
    if (!known && b->targets[0] != b->targets[1])
        return;
    uint32_t t = known && !(last->src[0].imm & 1) ? b->targets[1] : b->targets[0];
    *last = (hw_wir_insn){ .op = HW_W_BR, .count = 1, .loc = last->loc };
    set_targets(a, b, 1, t);
}

static void thread_branches(hw_wir_module *m, hw_wir_function *f)
{
    for (uint32_t b = 0; b < f->blocks.len; b++) {
        hw_wir_block *block = &f->blocks.ptr[b];
        for (uint32_t k = 0; k < block->ntargets; k++)
            block->targets[k] = final_target(f, block->targets[k]);
        fold_branch(m->arena, block);
        if (f->is_kernel)
            exit_early(m, f, block);
    }
}

/* ---- suspending instructions ---- */

static bool ends_block(const hw_wir_insn *i)
{
    return hw_wir_is(i, HW_WF_S) || hw_wir_waits(i->op);
}

/* The rest of block b after instruction k becomes a block of its own. */
static uint32_t split_after(hw_arena *a, hw_wir_function *f, uint32_t b, size_t k)
{
    uint32_t rest = add_block(a, f);
    hw_wir_block *from = &f->blocks.ptr[b], *to = &f->blocks.ptr[rest];
    to->targets = from->targets;
    to->ntargets = from->ntargets;
    to->insns.ptr = from->insns.ptr + k + 1; /* shares the array: both only shrink or move */
    to->insns.len = to->insns.cap = from->insns.len - k - 1;
    from->insns.len = from->insns.cap = k + 1;
    return rest;
}

/* Lanes for which a guarded barrier does not hold go round it. */
static void branch_round(hw_arena *a, hw_wir_function *f, uint32_t b, size_t k)
{
    uint32_t rest = split_after(a, f, b, k), wait = add_block(a, f);
    hw_wir_block *from = &f->blocks.ptr[b];
    hw_wir_insn i = from->insns.ptr[k], br = { .op = HW_W_BR, .count = 1, .loc = i.loc };
    hw_wir_insn cbr = { .op = HW_W_CBR, .type = HW_T_I1, .count = 1, .nsrc = 1, .loc = i.loc };
    bool negated = (i.flags & HW_I_NEG_GUARD) != 0;
    cbr.src = HW_NEW(a, hw_wir_val);
    cbr.src[0] = i.guard;
    set_targets(a, from, 2, wait);
    from->targets[negated] = wait;
    from->targets[!negated] = rest;
    cbr.flags = (i.flags & (HW_I_HEAD | HW_I_CALLS)) | (negated ? HW_I_ELSE : 0);
    from->insns.ptr[k] = cbr;
    i.guard = HW_WIR_NONE;
    i.flags &= ~(uint32_t)(HW_I_NEG_GUARD | HW_I_HEAD);
    hw_vec_push(a, &f->blocks.ptr[wait].insns, i);
    hw_vec_push(a, &f->blocks.ptr[wait].insns, br);
    set_targets(a, &f->blocks.ptr[wait], 1, rest);
}

/* Whatever suspends a warp ends its block, so that lanes can be parked at the next one's start. Where
 * a barrier's result is given to them nothing else leads to. */
static void split_at_suspensions(hw_arena *a, hw_wir_function *f)
{
    for (uint32_t b = 0; b < f->blocks.len; b++) { /* the rest is looked at in its turn */
        size_t k = 0, len = f->blocks.ptr[b].insns.len;
        while (k < len && !ends_block(&f->blocks.ptr[b].insns.ptr[k]))
            k++;
        if (k >= len)
            continue;
        const hw_wir_insn *i = &f->blocks.ptr[b].insns.ptr[k];
        if (i->guard.kind == HW_V_REG && hw_wir_waits(i->op)) {
            branch_round(a, f, b, k);
            continue;
        }
        bool then_branch = k + 2 == len && f->blocks.ptr[b].insns.ptr[k + 1].op == HW_W_BR;
        if (then_branch && i->op != HW_W_BARRIER_RED)
            continue;
        uint32_t loc = i->loc, rest = split_after(a, f, b, k);
        hw_wir_insn br = { .op = HW_W_BR, .count = 1, .loc = loc };
        hw_vec_push(a, &f->blocks.ptr[b].insns, br);
        set_targets(a, &f->blocks.ptr[b], 1, rest);
    }
}

/* ---- unreachable blocks ---- */

void hw_wir_remove_unreachable(hw_wir_function *f)
{
    hw_arena *scratch = hw_arena_new();
    uint32_t *stack = HW_NEW_N(scratch, uint32_t, f->blocks.len), depth = 0, kept = 0;
    uint32_t *index =
        HW_NEW_N(scratch, uint32_t, f->blocks.len); /* first: reached; then: new index */
    index[0] = 1;
    stack[depth++] = 0;
    while (depth) {
        const hw_wir_block *b = &f->blocks.ptr[stack[--depth]];
        for (uint32_t k = 0; k < b->ntargets; k++)
            if (!index[b->targets[k]]) {
                index[b->targets[k]] = 1;
                stack[depth++] = b->targets[k];
            }
    }
    for (uint32_t b = 0; b < f->blocks.len; b++)
        if (index[b]) {
            f->blocks.ptr[kept] = f->blocks.ptr[b];
            index[b] = kept++;
        }
    f->blocks.len = kept;
    for (uint32_t b = 0; b < kept; b++)
        for (uint32_t k = 0; k < f->blocks.ptr[b].ntargets; k++)
            f->blocks.ptr[b].targets[k] = index[f->blocks.ptr[b].targets[k]];
    hw_arena_free(scratch);
}

/* ---- entry, latches, critical edges ---- */

static void free_entry(hw_arena *a, hw_wir_function *f)
{
    bool entered = false;
    for (uint32_t b = 0; b < f->blocks.len; b++)
        for (uint32_t k = 0; k < f->blocks.ptr[b].ntargets; k++)
            entered |= f->blocks.ptr[b].targets[k] == 0;
    if (!entered)
        return;
    uint32_t copy = add_block(a, f);
    f->blocks.ptr[copy] = f->blocks.ptr[0];
    for (uint32_t b = 1; b < f->blocks.len; b++)
        for (uint32_t k = 0; k < f->blocks.ptr[b].ntargets; k++)
            if (f->blocks.ptr[b].targets[k] == 0)
                f->blocks.ptr[b].targets[k] = copy;
    f->blocks.ptr[0] = (hw_wir_block){ .label = NULL };
    hw_wir_insn br = { .op = HW_W_BR, .count = 1 };
    hw_vec_push(a, &f->blocks.ptr[0].insns, br);
    set_targets(a, &f->blocks.ptr[0], 1, copy);
}

/* Back edges of a loop meet in one block, so that lanes meet before the next turn. */
static void merge_latches(hw_arena *a, hw_wir_function *f, hw_arena *scratch)
{
    analysis n = { .arena = scratch, .scratch = scratch, .f = f };
    n.out = HW_NEW(scratch, hw_wir_analysis);
    n.nblocks = (uint32_t)f->blocks.len;
    hw_wir_find_cfg(&n);
    for (size_t x = 0; x < n.loops.len; x++) {
        const loop *l = &n.loops.ptr[x];
        uint32_t back = 0;
        for (uint32_t k = 0; k < n.out->npreds[l->header]; k++) {
            uint32_t from = n.out->position[n.out->preds[l->header][k]];
            back += from >= l->first && from < l->end;
        }
        if (back < 2)
            continue;
        uint32_t latch = add_branch_to(a, f, l->header, 0);
        for (uint32_t p = l->first; p < l->end; p++) {
            hw_wir_block *b = &f->blocks.ptr[n.out->order[p]];
            for (uint32_t k = 0; k < b->ntargets; k++)
                if (b->targets[k] == l->header)
                    b->targets[k] = latch;
        }
    }
}

static bool parts(const hw_wir_block *b)
{
    for (uint32_t k = 1; k < b->ntargets; k++)
        if (b->targets[k] != b->targets[0])
            return true;
    return false;
}

static void split_critical_edges(hw_arena *a, hw_wir_function *f, hw_arena *scratch)
{
    uint32_t count = (uint32_t)f->blocks.len;
    uint32_t *entries = HW_NEW_N(scratch, uint32_t, count);
    uint32_t *split = HW_NEW_N(scratch, uint32_t, count); /* of the block in hand: t -> new block */
    for (uint32_t b = 0; b < count; b++)
        for (uint32_t k = 0; k < f->blocks.ptr[b].ntargets; k++)
            entries[f->blocks.ptr[b].targets[k]]++;
    for (uint32_t b = 0; b < count; b++) {
        if (!parts(&f->blocks.ptr[b]))
            continue;
        uint32_t n = f->blocks.ptr[b].ntargets, loc = hw_wir_last(&f->blocks.ptr[b])->loc;
        uint32_t *targets = f->blocks.ptr[b].targets;
        uint32_t *old = HW_NEW_N(scratch, uint32_t, n);
        memcpy(old, targets, n * sizeof *old);
        for (uint32_t k = 0; k < n; k++) {
            if (entries[old[k]] < 2)
                continue;
            if (!split[old[k]])
                split[old[k]] = add_branch_to(a, f, old[k], loc);
            targets[k] = split[old[k]];
        }
        for (uint32_t k = 0; k < n; k++)
            split[old[k]] = 0;
    }
}

void hw_wir_tidy_graph(hw_wir_module *m, hw_wir_function *f)
{
    hw_arena *scratch = hw_arena_new();
    thread_branches(m, f);
    hw_wir_remove_unreachable(f);
    split_at_suspensions(m->arena, f);
    free_entry(m->arena, f);
    merge_latches(m->arena, f, scratch);
    split_critical_edges(m->arena, f, scratch);
    hw_arena_free(scratch);
}

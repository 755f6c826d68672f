/* SPDX-License-Identifier: Apache-2.0
 * Spin loops: loops that wait for memory which another lane, warp or block writes.
 *
 * Inside a loop, "awaited" values come from volatile, relaxed or acquire loads, from atomics that
 * only look (add 0, or 0 ...), and from attempts to take a lock: CAS and EXCH at an address that
 * does not change in the loop (a CAS whose expected value was itself read in the loop always lets
 * somebody go on: no lock). With a nanosleep in the loop, plain loads count too. The loop spins if
 * an exit depends on an awaited value, through data or through control. Results that do not decide
 * an exit (histograms, counters) do not matter. Too many loops found costs speed, one too few a
 * hang: so the rules lean towards finding. */
#include "analysis.h"

enum { MOST_PASSES = 16 };

typedef struct spinner {
    analysis *n;
    const loop *l;
    uint32_t *defs, *fixed_defs; /* per register, in this loop: definitions; those seen constant */
    bool *fixed, *awaited;
    bool has_yield, has_barrier;
    bool memory_awaited; /* an awaited value was stored to local memory */
    bool changed, spins, divergent;
    uint32_t until;         /* positions before it are under an awaited branch seen in this pass */
    bool divergent_control; /* ... that is divergent */
} spinner;

typedef void insn_fn(spinner *s, const hw_wir_insn *i);

static void each_insn(spinner *s, insn_fn *fn)
{
    for (uint32_t p = s->l->first; p < s->l->end; p++) {
        const hw_wir_block *b = &s->n->f->blocks.ptr[s->n->out->order[p]];
        for (size_t k = 0; k < b->insns.len; k++)
            fn(s, &b->insns.ptr[k]);
    }
}

static bool shared_space(const hw_wir_insn *i)
{
    return i->space == HW_SPACE_GENERIC || i->space == HW_SPACE_GLOBAL ||
           i->space == HW_SPACE_SHARED;
}

/* Is a phase complete: other warps and other lanes complete it. */
static bool asks_barrier(const hw_wir_insn *i)
{
    return i->op == HW_W_HELPER && i->imm == HW_H_MBARRIER_WAIT;
}

static bool may_await(const hw_wir_insn *i)
{
    if (asks_barrier(i))
        return true;
    return (i->op == HW_W_ATOM || i->op == HW_W_LOAD) && shared_space(i) &&
           !(i->flags & HW_I_READONLY);
}

/* ---- what does not change in the loop ---- */

static bool is_fixed(const spinner *s, hw_wir_val v)
{
    return v.kind != HW_V_REG || s->defs[v.reg] == 0 || s->fixed[v.reg];
}

static void count_defs(spinner *s, const hw_wir_insn *i)
{
    for (uint32_t d = 0; d < i->ndst; d++)
        if (i->dst[d].kind == HW_V_REG)
            s->defs[i->dst[d].reg]++;
    s->has_yield |= i->op == HW_W_YIELD;
    s->has_barrier |= i->op == HW_W_BARRIER || i->op == HW_W_BARRIER_RED;
}

static void clear_defs(spinner *s, const hw_wir_insn *i)
{
    for (uint32_t d = 0; d < i->ndst; d++)
        if (i->dst[d].kind == HW_V_REG) {
            uint32_t reg = i->dst[d].reg;
            s->defs[reg] = s->fixed_defs[reg] = 0;
            s->fixed[reg] = s->awaited[reg] = false;
        }
}

/* Code without optimisation keeps its variables in local memory: such a load counts as constant. */
static bool computes_fixed(const spinner *s, const hw_wir_insn *i)
{
    bool still_load = i->op == HW_W_LOAD && (!shared_space(i) || (i->flags & HW_I_READONLY));
    if (!hw_wir_is(i, HW_WF_P) && !still_load)
        return false;
    for (uint32_t k = 0; k < i->nsrc; k++)
        if (!is_fixed(s, i->src[k]))
            return false;
    return is_fixed(s, i->guard);
}

static void count_fixed(spinner *s, const hw_wir_insn *i)
{
    if (i->ndst == 0 || !computes_fixed(s, i))
        return;
    for (uint32_t d = 0; d < i->ndst; d++) {
        if (i->dst[d].kind != HW_V_REG)
            continue;
        uint32_t reg = i->dst[d].reg;
        if (++s->fixed_defs[reg] == s->defs[reg] && !s->fixed[reg])
            s->fixed[reg] = s->changed = true;
    }
}

static void reset_fixed(spinner *s, const hw_wir_insn *i)
{
    for (uint32_t d = 0; d < i->ndst; d++)
        if (i->dst[d].kind == HW_V_REG)
            s->fixed_defs[i->dst[d].reg] = 0;
}

static void find_fixed(spinner *s)
{
    s->changed = true;
    for (int pass = 0; pass < MOST_PASSES && s->changed; pass++) {
        s->changed = false;
        each_insn(s, reset_fixed);
        each_insn(s, count_fixed);
    }
}

/* ---- awaited values ---- */

static bool is_awaited(const spinner *s, hw_wir_val v)
{
    return v.kind == HW_V_REG && s->awaited[v.reg];
}

static bool is_imm(hw_wir_val v, uint64_t bits)
{
    return v.kind == HW_V_IMM && v.imm == bits;
}

static bool atomic_awaits(const spinner *s, const hw_wir_insn *i)
{
    switch (i->atom) {
    case HW_ATOM_CAS:
        return is_fixed(s, i->src[0]) && is_fixed(s, i->src[1]);
    case HW_ATOM_EXCH:
        return is_fixed(s, i->src[0]);
    case HW_ATOM_ADD:
    case HW_ATOM_OR:
    case HW_ATOM_XOR:
    case HW_ATOM_MAX_U:
        return is_imm(i->src[1], 0);
    case HW_ATOM_AND:
    case HW_ATOM_MIN_U:
        return is_imm(i->src[1], hw_wir_mask(hw_wir_bits(i->type)));
    default:
        return false;
    }
}

static bool awaits(const spinner *s, const hw_wir_insn *i)
{
    if (!may_await(i))
        return false;
    if (asks_barrier(i))
        return true;
    if (i->op == HW_W_ATOM)
        return atomic_awaits(s, i);
    return s->has_yield || (i->flags & (HW_I_VOLATILE | HW_I_ACQUIRE));
}

static bool may_be_local(const spinner *s, const hw_wir_insn *i)
{
    return i->space == HW_SPACE_LOCAL || (i->space == HW_SPACE_GENERIC && s->n->f->local_bytes > 0);
}

static bool depends(spinner *s, const hw_wir_insn *i, uint32_t p)
{
    if (p < s->until || awaits(s, i) || is_awaited(s, i->guard))
        return true;
    for (uint32_t k = 0; k < i->nsrc; k++)
        if (is_awaited(s, i->src[k]))
            return true;
    return i->op == HW_W_LOAD && s->memory_awaited && may_be_local(s, i);
}

static void spread_insn(spinner *s, const hw_wir_insn *i, uint32_t p)
{
    if (!depends(s, i, p))
        return;
    for (uint32_t d = 0; d < i->ndst; d++)
        if (i->dst[d].kind == HW_V_REG && !s->awaited[i->dst[d].reg])
            s->awaited[i->dst[d].reg] = s->changed = true;
    if (i->op == HW_W_STORE && may_be_local(s, i) && !s->memory_awaited)
        s->memory_awaited = s->changed = true;
}

static bool leaves(const spinner *s, const hw_wir_block *b)
{
    for (uint32_t k = 0; k < b->ntargets; k++) {
        uint32_t t = s->n->out->position[b->targets[k]];
        if (t < s->l->first || t >= s->l->end)
            return true;
    }
    const hw_wir_insn *last = hw_wir_last(b);
    return (last->op == HW_W_EXIT || last->op == HW_W_RET) && last->guard.kind == HW_V_REG;
}

static bool parts_lanes(const analysis *n, uint32_t block)
{
    const hw_wir_insn *last = hw_wir_last(&n->f->blocks.ptr[block]);
    return (n->out->divergent_branch[block] || is_varying(n, last->guard)) && !n->single[block];
}

/* An awaited branch controls what lies between it and its post-dominator, or the loop's rest. */
static void end_block(spinner *s, const hw_wir_block *b, uint32_t p)
{
    const hw_wir_insn *last = hw_wir_last(b);
    uint32_t block = s->n->out->order[p];
    bool under = p < s->until;
    bool decided = is_awaited(s, last->nsrc ? last->src[0] : last->guard);
    if (leaves(s, b) && (under || decided)) {
        s->spins = true;
        s->divergent |= parts_lanes(s->n, block) || (under && s->divergent_control);
    }
    if (!decided)
        return;
    uint32_t join = s->n->out->ipdom[block];
    uint32_t end = join == NONE32 ? s->l->end : s->n->out->position[join];
    if (end <= p || end > s->l->end)
        end = s->l->end;
    if (end > s->until)
        s->until = end;
    s->divergent_control |= parts_lanes(s->n, block);
}

static void spread_awaited(spinner *s)
{
    s->changed = true;
    for (int pass = 0; pass < MOST_PASSES && s->changed; pass++) {
        s->changed = s->divergent_control = false;
        s->until = 0;
        for (uint32_t p = s->l->first; p < s->l->end; p++) {
            const hw_wir_block *b = &s->n->f->blocks.ptr[s->n->out->order[p]];
            for (size_t k = 0; k < b->insns.len; k++)
                spread_insn(s, &b->insns.ptr[k], p);
            end_block(s, b, p);
        }
    }
}

static void examine(spinner *s, const loop *l)
{
    s->l = l;
    s->has_yield = s->has_barrier = s->memory_awaited = s->spins = s->divergent = false;
    each_insn(s, count_defs);
    find_fixed(s);
    spread_awaited(s);
    each_insn(s, clear_defs);
    if (!s->spins)
        return;
    s->n->out->spins = true;
    s->n->out->spin_loop[l->header] = true;
    /* A loop that lanes leave together may still wait for lanes that are elsewhere, if only some of the
     * warp's run it. Devices in lock-step hang there too, but what other warps bring looks alike. */
    const hw_variant *v = s->n->v;
    bool some_lanes = s->n->out->divergent[l->header];
    s->n->out->one_lane_spins[l->header] = s->n->single[l->header];
    bool apart = s->divergent || ((v->independent || v->lockstep_first) && some_lanes);
    /* A loop with a block-wide barrier keeps its lanes together anyway. */
    s->n->out->spins_divergent |= apart && !s->has_barrier;
}

void hw_wir_find_spins(analysis *n)
{
    spinner s = { .n = n };
    uint32_t *before = HW_NEW_N(n->scratch, uint32_t, n->nblocks + 1);
    for (uint32_t p = 0; p < n->nblocks; p++) {
        const hw_wir_block *b = &n->f->blocks.ptr[n->out->order[p]];
        before[p + 1] = before[p];
        for (size_t k = 0; k < b->insns.len; k++)
            before[p + 1] += may_await(&b->insns.ptr[k]);
    }
    s.defs = HW_NEW_N(n->scratch, uint32_t, n->nregs + 1);
    s.fixed_defs = HW_NEW_N(n->scratch, uint32_t, n->nregs + 1);
    s.fixed = HW_NEW_N(n->scratch, bool, n->nregs + 1);
    s.awaited = HW_NEW_N(n->scratch, bool, n->nregs + 1);
    for (size_t k = 0; k < n->loops.len; k++) {
        const loop *l = &n->loops.ptr[k];
        if (before[l->end] != before[l->first])
            examine(&s, l);
    }
}

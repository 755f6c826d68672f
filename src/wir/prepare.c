/* SPDX-License-Identifier: Apache-2.0
 * hw_wir_prepare: a module made ready for analysis and code generation.
 *
 * Per function, callees first: calls inlined; then graph.c's clean-up (lanes that go straight to an
 * exit end at the branch, so that they wait nowhere; one latch a loop; no critical edges; the entry
 * without predecessors; suspending instructions last in their block). Then flatten.c. Functions that
 * nothing calls any more lose their bodies. */
#include "prepare.h"

enum {
    SMALL_CALLEE = 120,       /* instructions: inlined wherever it is called */
    LARGEST_CALLER = 20000,   /* until the caller has grown to this */
    LARGEST_AT_ALL = 1 << 20, /* even callees that must be inlined are not beyond this */
};

typedef struct preparer {
    hw_wir_module *m;
    uint8_t *state; /* per function */
    bool *recursive, *suspends;
    uint32_t *callers; /* call sites in the module, before inlining */
    hw_arena *scratch;
} preparer;

enum { NEW, OPEN, DONE };

static size_t size_of(const hw_wir_function *f)
{
    size_t n = 0;
    for (size_t b = 0; b < f->blocks.len; b++)
        n += f->blocks.ptr[b].insns.len;
    return n;
}

static bool wants_inlining(const preparer *p, uint32_t caller, uint32_t callee, size_t caller_size)
{
    const hw_wir_function *g = &p->m->functions.ptr[callee];
    if (callee == caller || p->state[callee] != DONE || p->recursive[callee] || !g->defined)
        return false;
    size_t size = size_of(g);
    if (p->suspends[callee])
        return caller_size + size < LARGEST_AT_ALL;
    bool cheap = size <= SMALL_CALLEE || p->callers[callee] == 1;
    return cheap && caller_size + size < LARGEST_CALLER;
}

/* ---- one inlined call ---- */

typedef struct inliner {
    hw_wir_module *m;
    hw_wir_function *f;       /* caller */
    const hw_wir_function *g; /* callee */
    uint32_t first_reg, first_block, resume;
    uint32_t local_base;
} inliner;

static hw_wir_val moved(const inliner *x, hw_wir_val v)
{
    if (v.kind == HW_V_REG)
        v.reg += x->first_reg;
    return v;
}

static hw_wir_val *moved_all(const inliner *x, const hw_wir_val *v, uint32_t n)
{
    hw_wir_val *copy = HW_NEW_N(x->m->arena, hw_wir_val, n);
    for (uint32_t k = 0; k < n; k++)
        copy[k] = moved(x, v[k]);
    return copy;
}

static hw_wir_insn copy_insn(const inliner *x, const hw_wir_insn *i)
{
    hw_wir_insn c = *i;
    c.dst = moved_all(x, i->dst, i->ndst);
    c.src = moved_all(x, i->src, i->nsrc);
    c.guard = moved(x, i->guard);
    if (c.op == HW_W_LOCAL_ADDR)
        c.imm += x->local_base;
    return c;
}

/* A return becomes a branch to where the caller goes on. */
static void copy_return(const inliner *x, hw_wir_block *to, const hw_wir_insn *ret, uint32_t stay)
{
    hw_arena *a = x->m->arena;
    hw_wir_insn i = { .op = HW_W_BR, .count = 1, .loc = ret->loc };
    i.flags = ret->flags & HW_I_HEAD ? HW_I_HEAD | HW_I_CALLS : HW_I_CALLS;
    bool guarded = ret->guard.kind == HW_V_REG;
    to->ntargets = guarded ? 2 : 1;
    to->targets = HW_NEW_N(a, uint32_t, 2);
    to->targets[0] = x->resume;
    if (guarded) {
        bool negated = (ret->flags & HW_I_NEG_GUARD) != 0;
        i.op = HW_W_CBR;
        i.type = HW_T_I1;
        i.nsrc = 1;
        i.src = HW_NEW(a, hw_wir_val);
        i.src[0] = moved(x, ret->guard);
        i.flags |= negated ? HW_I_ELSE : 0;
        to->targets[negated] = x->resume;
        to->targets[!negated] = stay + x->first_block;
    }
    hw_vec_push(a, &to->insns, i);
}

static void copy_block(const inliner *x, const hw_wir_block *from, hw_wir_block *to)
{
    hw_arena *a = x->m->arena;
    for (size_t k = 0; k < from->insns.len; k++) {
        const hw_wir_insn *i = &from->insns.ptr[k];
        if (i->op == HW_W_RET) {
            copy_return(x, to, i, from->ntargets ? from->targets[0] : 0);
            return;
        }
        hw_vec_push(a, &to->insns, copy_insn(x, i));
    }
    to->ntargets = from->ntargets;
    to->targets = HW_NEW_N(a, uint32_t, from->ntargets);
    for (uint32_t k = 0; k < from->ntargets; k++)
        to->targets[k] = from->targets[k] + x->first_block;
}

static void copy_body(inliner *x)
{
    hw_arena *a = x->m->arena;
    for (size_t r = 0; r < x->g->regs.len; r++)
        hw_vec_push(a, &x->f->regs, x->g->regs.ptr[r]);
    for (size_t b = 0; b < x->g->blocks.len; b++)
        hw_vec_push(a, &x->f->blocks, (hw_wir_block){ .label = NULL });
    for (size_t b = 0; b < x->g->blocks.len; b++)
        copy_block(x, &x->g->blocks.ptr[b], &x->f->blocks.ptr[x->first_block + b]);
}

static hw_wir_insn move_insn(hw_arena *a, hw_wir_type t, hw_wir_val dst, hw_wir_val src,
                             uint32_t loc)
{
    hw_wir_insn i = { .op = HW_W_MOV, .type = (uint8_t)t, .count = 1, .ndst = 1, .nsrc = 1 };
    i.loc = loc;
    i.flags = HW_I_MADE;
    i.dst = HW_NEW(a, hw_wir_val);
    i.src = HW_NEW(a, hw_wir_val);
    i.dst[0] = dst;
    i.src[0] = src;
    return i;
}

/* Cut block b before instruction k: the rest, without k itself, goes to a new block. */
static uint32_t cut_block(hw_arena *a, hw_wir_function *f, uint32_t b, size_t k)
{
    hw_wir_block *from = &f->blocks.ptr[b];
    hw_wir_block rest = { .targets = from->targets, .ntargets = from->ntargets };
    for (size_t j = k + 1; j < from->insns.len; j++)
        hw_vec_push(a, &rest.insns, from->insns.ptr[j]);
    from->insns.len = k;
    from->targets = NULL;
    from->ntargets = 0;
    hw_vec_push(a, &f->blocks, rest);
    return (uint32_t)f->blocks.len - 1;
}

static void end_with(hw_arena *a, hw_wir_block *b, hw_wir_insn last, uint32_t n,
                     const uint32_t *targets)
{
    hw_vec_push(a, &b->insns, last);
    b->targets = HW_NEW_N(a, uint32_t, n);
    b->ntargets = n;
    memcpy(b->targets, targets, n * sizeof *targets);
}

/* The call's place: arguments moved to the callee's registers, a branch into its body; a guarded
 * call branches around it. The results come back at the start of the callee's last block: a block of
 * moves before `after`. Returns the block the caller goes on in. */
static uint32_t inline_call(hw_wir_module *m, hw_wir_function *f, uint32_t b, size_t k,
                            uint32_t local_base)
{
    hw_arena *a = m->arena;
    hw_wir_insn call = f->blocks.ptr[b].insns.ptr[k];
    inliner x = { .m = m, .f = f, .g = &m->functions.ptr[call.imm], .local_base = local_base };
    uint32_t after = cut_block(a, f, b, k);
    hw_vec_push(a, &f->blocks, (hw_wir_block){ .label = NULL });
    x.resume = (uint32_t)f->blocks.len - 1;
    hw_vec_push(a, &f->blocks, (hw_wir_block){ .label = NULL });
    uint32_t enter = (uint32_t)f->blocks.len - 1;
    x.first_reg = (uint32_t)f->regs.len;
    x.first_block = (uint32_t)f->blocks.len;
    copy_body(&x);
    uint32_t flags = (call.flags & HW_I_HEAD) | HW_I_CALLS;
    hw_wir_insn br = { .op = HW_W_BR, .count = 1, .loc = call.loc };
    for (uint32_t p = 0; p < call.nsrc; p++) {
        uint32_t param = x.g->params[p];
        hw_vec_push(a, &f->blocks.ptr[enter].insns,
                    move_insn(a, x.g->regs.ptr[param].type, hw_wir_reg(param + x.first_reg),
                              call.src[p], call.loc));
    }
    end_with(a, &f->blocks.ptr[enter], br, 1, &x.first_block);
    for (uint32_t r = 0; r < call.ndst; r++) {
        uint32_t result = x.g->results[r];
        if (call.dst[r].kind == HW_V_REG)
            hw_vec_push(a, &f->blocks.ptr[x.resume].insns,
                        move_insn(a, x.g->regs.ptr[result].type, call.dst[r],
                                  hw_wir_reg(result + x.first_reg), call.loc));
    }
    end_with(a, &f->blocks.ptr[x.resume], br, 1, &after);
    if (call.guard.kind != HW_V_REG) {
        br.flags = flags;
        end_with(a, &f->blocks.ptr[b], br, 1, &enter);
        return after;
    }
    hw_wir_insn cbr = { .op = HW_W_CBR, .type = HW_T_I1, .count = 1, .nsrc = 1, .loc = call.loc };
    cbr.flags = call.flags & HW_I_NEG_GUARD ? flags | HW_I_ELSE : flags;
    cbr.src = HW_NEW(a, hw_wir_val);
    cbr.src[0] = call.guard;
    bool negated = (call.flags & HW_I_NEG_GUARD) != 0;
    end_with(a, &f->blocks.ptr[b], cbr, 2,
             (uint32_t[]){ negated ? after : enter, negated ? enter : after });
    return after;
}

/* Blocks made by inlining hold no calls to look at: the callee is finished. */
static void inline_calls(preparer *p, uint32_t function)
{
    hw_wir_function *f = &p->m->functions.ptr[function];
    uint32_t base = f->local_bytes, blocks = (uint32_t)f->blocks.len;
    size_t size = size_of(f);
    for (uint32_t start = 0; start < blocks; start++)
        for (uint32_t b = start, k = 0; k < f->blocks.ptr[b].insns.len; k++) {
            const hw_wir_insn *i = &f->blocks.ptr[b].insns.ptr[k];
            if (i->op != HW_W_CALL || !wants_inlining(p, function, (uint32_t)i->imm, size))
                continue;
            const hw_wir_function *g = &p->m->functions.ptr[i->imm];
            size += size_of(g);
            if (base + g->local_bytes > f->local_bytes)
                f->local_bytes = base + g->local_bytes;
            b = inline_call(p->m, f, b, k, base);
            k = UINT32_MAX; /* go on at the start of the rest */
        }
}

/* ---- the call graph ---- */

static void prepare_function(preparer *p, uint32_t function);

static void visit_callees(preparer *p, uint32_t function)
{
    hw_wir_function *f = &p->m->functions.ptr[function];
    for (size_t b = 0; b < f->blocks.len; b++)
        for (size_t k = 0; k < f->blocks.ptr[b].insns.len; k++) {
            const hw_wir_insn *i = &f->blocks.ptr[b].insns.ptr[k];
            if (i->op != HW_W_CALL)
                continue;
            uint32_t callee = (uint32_t)i->imm;
            if (p->state[callee] == NEW)
                prepare_function(p, callee);
            else if (p->state[callee] == OPEN)
                p->recursive[callee] = true;
        }
}

static bool calls_suspending(const preparer *p, const hw_wir_function *f)
{
    for (size_t b = 0; b < f->blocks.len; b++)
        for (size_t k = 0; k < f->blocks.ptr[b].insns.len; k++) {
            const hw_wir_insn *i = &f->blocks.ptr[b].insns.ptr[k];
            if (i->op == HW_W_CALL && p->suspends[i->imm])
                return true;
        }
    return false;
}

static void prepare_function(preparer *p, uint32_t function)
{
    hw_wir_function *f = &p->m->functions.ptr[function];
    p->state[function] = OPEN;
    if (f->defined) {
        visit_callees(p, function);
        inline_calls(p, function);
        p->suspends[function] = hw_wir_may_suspend(f, true) || calls_suspending(p, f);
        if (hw_wir_may_spin(f))
            hw_wir_let_meet(p->m, f);
        hw_wir_tidy_graph(p->m, f);
    }
    p->state[function] = DONE;
}

static void count_callers(preparer *p)
{
    for (size_t x = 0; x < p->m->functions.len; x++) {
        const hw_wir_function *f = &p->m->functions.ptr[x];
        for (size_t b = 0; b < f->blocks.len; b++)
            for (size_t k = 0; k < f->blocks.ptr[b].insns.len; k++) {
                const hw_wir_insn *i = &f->blocks.ptr[b].insns.ptr[k];
                if (i->op == HW_W_CALL)
                    p->callers[i->imm]++;
                else if (i->op == HW_W_FUNC_ADDR)
                    p->callers[i->imm] += 2; /* stays in any case */
            }
    }
}

/* Functions that the kernel no longer reaches lose their bodies. */
static void drop_unreached(preparer *p)
{
    uint32_t *stack = HW_NEW_N(p->scratch, uint32_t, p->m->functions.len + 1), depth = 0;
    bool *reached = HW_NEW_N(p->scratch, bool, p->m->functions.len + 1);
    reached[0] = true;
    stack[depth++] = 0;
    while (depth) {
        const hw_wir_function *f = &p->m->functions.ptr[stack[--depth]];
        for (size_t b = 0; b < f->blocks.len; b++)
            for (size_t k = 0; k < f->blocks.ptr[b].insns.len; k++) {
                const hw_wir_insn *i = &f->blocks.ptr[b].insns.ptr[k];
                bool names = i->op == HW_W_CALL || i->op == HW_W_FUNC_ADDR;
                if (!names || reached[i->imm])
                    continue;
                reached[i->imm] = true;
                stack[depth++] = (uint32_t)i->imm;
            }
    }
    for (size_t k = 0; k < p->m->functions.len; k++) {
        hw_wir_function *f = &p->m->functions.ptr[k];
        if (reached[k] || p->m->uses_indirect_calls)
            continue; /* a table in memory may hold its value, whether it is called by name or not */
        f->defined = false;
        f->blocks.len = 0;
    }
}

/* What only says how instructions are counted. */
static void forget_counting(hw_wir_block *b)
{
    const uint32_t counting =
        HW_I_HEAD | HW_I_MADE | HW_I_CALLS | HW_I_MOVE_PARAM | HW_I_ELSE | HW_I_MATRIX;
    size_t n = 0;
    for (size_t k = 0; k < b->insns.len; k++) {
        if (b->insns.ptr[k].op == HW_W_NOP)
            continue;
        b->insns.ptr[n] = b->insns.ptr[k];
        b->insns.ptr[n++].flags &= ~counting;
    }
    b->insns.len = n;
}

hw_status hw_wir_prepare(hw_wir_module *m, hw_diag *d)
{
    if (m->functions.len == 0)
        return hw_fail(d, HW_E_INTERNAL, "a module without functions");
    for (size_t f = 0; f < m->functions.len && !m->counted; f++)
        for (size_t b = 0; b < m->functions.ptr[f].blocks.len; b++)
            forget_counting(&m->functions.ptr[f].blocks.ptr[b]);
    preparer p = { .m = m, .scratch = hw_arena_new() };
    p.state = HW_NEW_N(p.scratch, uint8_t, m->functions.len);
    p.recursive = HW_NEW_N(p.scratch, bool, m->functions.len);
    p.suspends = HW_NEW_N(p.scratch, bool, m->functions.len);
    p.callers = HW_NEW_N(p.scratch, uint32_t, m->functions.len);
    count_callers(&p);
    for (uint32_t k = 0; k < m->functions.len; k++)
        if (p.state[k] == NEW)
            prepare_function(&p, k);
    hw_wir_flatten_calls(m);
    drop_unreached(&p);
    hw_arena_free(p.scratch);
    return HW_OK;
}

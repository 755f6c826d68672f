/* SPDX-License-Identifier: Apache-2.0
 * hw_wir_analyse: runs the analyses in order and iterates those that depend on each other. */
#include "analysis.h"
#include "prepare.h"

enum { MOST_ROUNDS = 24 };

static void number_insns(analysis *n)
{
    hw_wir_analysis *o = n->out;
    o->first_insn = HW_NEW_N(n->arena, uint32_t, n->nblocks + 1);
    for (uint32_t b = 0; b < n->nblocks; b++)
        o->first_insn[b + 1] = o->first_insn[b] + (uint32_t)n->f->blocks.ptr[b].insns.len;
    n->ninsns = o->first_insn[n->nblocks];
    n->block_of = HW_NEW_N(n->scratch, uint32_t, n->ninsns + 1);
    n->insns = HW_NEW_N(n->scratch, const hw_wir_insn *, n->ninsns + 1);
    for (uint32_t b = 0; b < n->nblocks; b++)
        for (uint32_t k = o->first_insn[b]; k < o->first_insn[b + 1]; k++) {
            n->insns[k] = &n->f->blocks.ptr[b].insns.ptr[k - o->first_insn[b]];
            n->block_of[k] = b;
        }
}

static void find_only_defs(analysis *n)
{
    uint8_t *seen = HW_NEW_N(n->scratch, uint8_t, n->nregs + 1);
    n->only_def = HW_NEW_N(n->scratch, uint32_t, n->nregs + 1);
    memset(n->only_def, 0xff, n->nregs * sizeof *n->only_def);
    for (uint32_t k = 0; k < n->ninsns; k++)
        for (uint32_t d = 0; d < n->insns[k]->ndst; d++) {
            hw_wir_val v = n->insns[k]->dst[d];
            if (v.kind != HW_V_REG)
                continue;
            n->only_def[v.reg] = seen[v.reg] ? NONE32 : k;
            seen[v.reg] = 1;
        }
    for (uint32_t k = 0; k < n->f->nparams; k++)
        n->only_def[n->f->params[k]] = NONE32;
}

/* Per register, the instructions that read it. */
static void find_users(analysis *n)
{
    n->first_user = HW_NEW_N(n->scratch, uint32_t, n->nregs + 2);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < n->ninsns; k++)
            for (uint32_t s = 0; s <= n->insns[k]->nsrc; s++) {
                const hw_wir_insn *i = n->insns[k];
                hw_wir_val v = s < i->nsrc ? i->src[s] : i->guard;
                if (v.kind != HW_V_REG)
                    continue;
                if (pass == 0)
                    n->first_user[v.reg + 2]++;
                else
                    n->users[n->first_user[v.reg + 1]++] = k;
            }
        if (pass == 1)
            break;
        for (uint32_t r = 0; r < n->nregs; r++)
            n->first_user[r + 2] += n->first_user[r + 1];
        n->users = HW_NEW_N(n->scratch, uint32_t, n->first_user[n->nregs + 1] + 1);
    }
}

/* ---- floating-point modes ---- */

static bool has_type(const hw_wir_insn *i, hw_wir_type t)
{
    bool converts = strchr(hw_wir_signature[i->op], 'u') != NULL;
    return i->type == t || (converts && i->type2 == t);
}

/* Operations that treat denormals by mode: not moves, sign changes, classification, min/max of bits
 * in integer registers. */
static bool is_arithmetic(const hw_wir_insn *i)
{
    bool in_range = i->op >= HW_W_FCVT && i->op <= HW_W_TANH_APPROX;
    bool bits_only = i->op == HW_W_FNEG || i->op == HW_W_FABS || i->op == HW_W_FCOPYSIGN ||
                     i->op == HW_W_FCLASS || i->op == HW_W_I2F_S || i->op == HW_W_I2F_U;
    return in_range && (!bits_only || (i->flags & HW_I_FTZ));
}

/* A helper that computes in doubles has them among its results: products of matrices. */
static bool makes_doubles(const analysis *n, const hw_wir_insn *i)
{
    return i->op == HW_W_HELPER && i->ndst && i->dst[0].kind == HW_V_REG &&
           n->f->regs.ptr[i->dst[0].reg].type == HW_T_F64;
}

static void find_modes(analysis *n)
{
    for (uint32_t k = 0; k < n->ninsns; k++) {
        const hw_wir_insn *i = n->insns[k];
        n->out->has_f64 |= makes_doubles(n, i);
        if (!is_arithmetic(i))
            continue;
        n->out->has_f64 |= has_type(i, HW_T_F64);
        bool single = has_type(i, HW_T_F32) || has_type(i, HW_T_BF16) || has_type(i, HW_T_V2BF16);
        if (!single)
            continue;
        if (i->flags & HW_I_FTZ)
            n->out->has_ftz_f32 = true;
        else
            n->out->has_noftz_f32 = true;
    }
}

/* ---- calls ---- */

static bool may_await(const hw_wir_insn *i)
{
    bool takes = i->op == HW_W_ATOM && (i->atom == HW_ATOM_CAS || i->atom == HW_ATOM_EXCH);
    bool looks = i->op == HW_W_LOAD && (i->flags & (HW_I_VOLATILE | HW_I_ACQUIRE));
    bool asks = i->op == HW_W_HELPER && i->imm == HW_H_MBARRIER_WAIT;
    return takes || looks || asks || i->op == HW_W_YIELD;
}

/* Could a warp have to be suspended inside: a barrier, a yield, or a loop that may spin? */
bool hw_wir_may_suspend(const hw_wir_function *f, bool spins_suspend)
{
    bool waits = false, asks_barrier = false, loops = false;
    for (uint32_t b = 0; b < f->blocks.len; b++) {
        const hw_wir_block *block = &f->blocks.ptr[b];
        for (size_t k = 0; k < block->insns.len; k++) {
            const hw_wir_insn *i = &block->insns.ptr[k];
            if (hw_wir_is(i, HW_WF_S) || hw_wir_waits(i->op))
                return true;
            waits |= i->op == HW_W_ATOM && (i->atom == HW_ATOM_CAS || i->atom == HW_ATOM_EXCH);
            asks_barrier |= i->op == HW_W_HELPER && i->imm == HW_H_MBARRIER_WAIT;
            waits |= i->op == HW_W_LOAD && (i->flags & (HW_I_VOLATILE | HW_I_ACQUIRE));
        }
        for (uint32_t k = 0; k < block->ntargets; k++)
            loops |= block->targets[k] <= b;
    }
    /* What an mbarrier waits for is usually brought by warps of the same block. */
    return ((spins_suspend && waits) || asks_barrier) && loops;
}

/* Could a loop wait for others' memory? */
bool hw_wir_may_spin(const hw_wir_function *f)
{
    bool waits = false, loops = false;
    for (uint32_t b = 0; b < f->blocks.len; b++) {
        const hw_wir_block *block = &f->blocks.ptr[b];
        for (size_t k = 0; k < block->insns.len; k++)
            waits |= may_await(&block->insns.ptr[k]);
        for (uint32_t k = 0; k < block->ntargets; k++)
            loops |= block->targets[k] <= b;
    }
    return waits && loops;
}

/* ---- divergence ---- */

bool hw_wir_may_part(const hw_wir_analysis *o, uint32_t block, const hw_wir_insn *i)
{
    if (!hw_wir_waits(i->op))
        return false;
    bool parts = o->divergent[block];
    for (uint32_t k = 0; k < i->nsrc && k < 2; k++)
        parts |= i->src[k].kind == HW_V_REG && o->shape[i->src[k].reg].kind != HW_SHAPE_UNIFORM;
    return parts;
}

static bool lanes_wait_apart(const analysis *n)
{
    for (uint32_t k = 0; k < n->ninsns; k++)
        if (hw_wir_may_part(n->out, n->block_of[k], n->insns[k]) &&
            !(n->insns[k]->flags & HW_I_MEETS))
            return true;
    return false;
}

/* Shapes say which branches diverge, these where lanes can wait, that which definitions need blends,
 * and those which registers are varying. From "nothing varies" down to the greatest fixpoint. */
static void iterate(analysis *n)
{
    for (int round = 0;; round++) {
        hw_wir_spread_shapes(n);
        hw_wir_find_single(n);
        hw_wir_find_waits(n);
        bool changed = hw_wir_find_blends(n);
        hw_wir_spread_shapes(n);
        if (!changed)
            return;
        if (round >= MOST_ROUNDS)
            n->pessimistic =
                true; /* blends no longer depend on shapes: the next round is the last */
    }
}

static void find_divergence(analysis *n)
{
    hw_wir_analysis *o = n->out;
    o->divergent_branch = HW_NEW_N(n->arena, bool, n->nblocks);
    o->divergent = HW_NEW_N(n->arena, bool, n->nblocks);
    o->spin_loop = HW_NEW_N(n->arena, bool, n->nblocks);
    o->one_lane_spins = HW_NEW_N(n->arena, bool, n->nblocks);
    o->blend = HW_NEW_N(n->arena, bool, n->ninsns + 1);
    hw_wir_start_shapes(n);
    iterate(n);
    hw_wir_find_spins(n);
    o->waits_apart = lanes_wait_apart(n);
    o->any_order = n->v->independent && (o->spins_divergent || o->waits_apart);
    if (o->any_order) {
        iterate(n);
        hw_wir_find_spins(n);
    }
    hw_wir_finish_shapes(n);
    hw_wir_publish_waits(n);
}

static bool sane(const hw_variant *v)
{
    uint64_t threads = (uint64_t)v->block[0] * v->block[1] * v->block[2];
    return threads > 0 && v->block[0] <= 1024 && v->block[1] <= 1024 && threads <= 1024;
}

const hw_wir_analysis *hw_wir_analyse(hw_arena *a, const hw_wir_module *m, uint32_t function,
                                      const hw_variant *v)
{
    HW_CHECK(sane(v) && m->functions.ptr[function].blocks.len > 0);
    analysis n = { .arena = a, .scratch = hw_arena_new(), .m = m, .v = v };
    n.f = &m->functions.ptr[function];
    n.out = HW_NEW(a, hw_wir_analysis);
    n.nblocks = n.out->nblocks = (uint32_t)n.f->blocks.len;
    n.nregs = n.out->nregs = (uint32_t)n.f->regs.len;
    number_insns(&n);
    n.queue = HW_NEW_N(n.scratch, uint32_t, n.ninsns + 1);
    n.queued = HW_NEW_N(n.scratch, bool, n.ninsns + 1);
    hw_wir_find_cfg(&n);
    find_users(&n);
    find_only_defs(&n);
    n.single = HW_NEW_N(n.scratch, bool, n.nblocks);
    hw_wir_find_liveness(&n);
    hw_wir_find_ranges(&n);
    find_divergence(&n);
    find_modes(&n);
    hw_arena_free(n.scratch);
    return n.out;
}

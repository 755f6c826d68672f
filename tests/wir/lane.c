/* SPDX-License-Identifier: Apache-2.0
 * One lane of warp IR: see lane.h. */
#include "lane.h"
#include "interp.h"

enum { SOURCES = 17 };

static uint64_t read_value(hw_wir_val v, const uint64_t *regs)
{
    return v.kind == HW_V_REG ? regs[v.reg] : v.imm;
}

static bool guard_holds(const hw_wir_insn *i, const uint64_t *regs)
{
    if (i->guard.kind != HW_V_REG)
        return true;
    return (regs[i->guard.reg] & 1) != ((i->flags & HW_I_NEG_GUARD) != 0);
}

static void write_value(const hw_wir_function *f, hw_wir_val dst, uint64_t v, uint64_t *regs)
{
    if (dst.kind == HW_V_REG)
        regs[dst.reg] = v & (uint64_t)interp_mask(hw_wir_bits(f->regs.ptr[dst.reg].type));
}

static void access(const hw_wir_function *f, const hw_wir_insn *i, const lane_env *env,
                   uint32_t lane, uint64_t *regs)
{
    uint64_t v[SOURCES] = { 0 };
    for (uint32_t k = 1; k < i->nsrc && k < SOURCES; k++)
        v[k - 1] = read_value(i->src[k], regs);
    env->memory(env->ctx, lane, i, read_value(i->src[0], regs) + i->imm, v);
    for (uint32_t d = 0; d < i->ndst; d++)
        write_value(f, i->dst[d], v[d], regs);
}

static bool has_no_effect(const hw_wir_insn *i)
{
    return i->op == HW_W_FENCE || i->op == HW_W_PREFETCH || i->op == HW_W_YIELD ||
           i->op == HW_W_NOP || i->op == HW_W_WARPSYNC || i->op == HW_W_BARRIER ||
           i->op == HW_W_BARRIER_ARRIVE;
}

static bool is_special(const hw_wir_insn *i)
{
    return i->op >= HW_W_SREG && i->op <= HW_W_SHARED_BASE;
}

bool lane_execute(const hw_wir_function *f, const hw_wir_insn *i, const lane_env *env,
                  uint32_t lane, uint64_t *regs)
{
    if (has_no_effect(i) || !guard_holds(i, regs))
        return true;
    if (i->op == HW_W_LOAD || i->op == HW_W_STORE || i->op == HW_W_ATOM || i->op == HW_W_RED) {
        access(f, i, env, lane, regs);
        return true;
    }
    u128 s[4] = { 0 }, d = 0;
    if (is_special(i)) {
        d = env->special(env->ctx, lane, i);
    } else {
        for (uint32_t k = 0; k < i->nsrc && k < 4; k++)
            s[k] = read_value(i->src[k], regs);
        if (i->nsrc > 4 || !interp_pure(i, s, &d))
            return false;
    }
    write_value(f, i->dst[0], (uint64_t)d, regs);
    return true;
}

uint32_t lane_branch(const hw_wir_block *b, const uint64_t *regs)
{
    const hw_wir_insn *last = &b->insns.ptr[b->insns.len - 1];
    switch (last->op) {
    case HW_W_BR:
        return 0;
    case HW_W_CBR:
        return read_value(last->src[0], regs) & 1 ? 0 : 1;
    case HW_W_BRX: {
        uint64_t t = read_value(last->src[0], regs);
        return t < b->ntargets ? (uint32_t)t : UINT32_MAX;
    }
    default:
        return guard_holds(last, regs) ? UINT32_MAX : 0;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrap guards put together. A warp that fails one leaves for the slow variant with all that lives there, and the code that
 * carries it over is long. So guards whose operands can be computed at an earlier one of their block are tested there, all
 * at once: leaving early is leaving all the same.
 */
#include "analysis.h"

enum { MOST_TOGETHER = 32 }; /* what is computed early has to be kept */

/* Cheap, without effects, and never a fault. */
static const bool pure[HW_W_COUNT] = {
    [HW_W_MOV] = true,   [HW_W_ADD] = true,   [HW_W_SUB] = true,   [HW_W_MUL] = true,
    [HW_W_AND] = true,   [HW_W_OR] = true,    [HW_W_XOR] = true,   [HW_W_NOT] = true,
    [HW_W_SHL] = true,   [HW_W_SHR_U] = true, [HW_W_SHR_S] = true, [HW_W_ZEXT] = true,
    [HW_W_SEXT] = true,  [HW_W_TRUNC] = true, [HW_W_MIN_U] = true, [HW_W_MIN_S] = true,
    [HW_W_MAX_U] = true, [HW_W_MAX_S] = true,
};

/* Of registers written since the leader. */
typedef struct since {
    uint32_t leader;
    bool known; /* can be computed there */
} since;

static bool is_fixed(const analysis *n, const since *regs, uint32_t leader, hw_wir_val v)
{
    if (v.kind != HW_V_REG)
        return true;
    if (regs[v.reg].leader == leader)
        return regs[v.reg].known;
    return n->shapes[v.reg].kind != HW_SHAPE_VARYING;
}

static bool can_come_first(const analysis *n, const since *regs, uint32_t leader, uint32_t k)
{
    const hw_wir_insn *i = n->insns[k];
    bool ok = pure[i->op] && i->guard.kind != HW_V_REG && i->ndst == 1 &&
              i->dst[0].kind == HW_V_REG && n->shapes[i->dst[0].reg].kind != HW_SHAPE_VARYING;
    for (uint32_t s = 0; s < i->nsrc; s++)
        ok = ok && is_fixed(n, regs, leader, i->src[s]);
    return ok;
}

static void gather(analysis *n, since *regs, uint32_t leader, uint32_t end)
{
    bool *guard = n->out->wrap_guard;
    uint32_t members = 1;
    n->out->guard_at[leader] = leader;
    for (uint32_t k = leader; k < end && members < MOST_TOGETHER; k++) {
        const hw_wir_insn *i = n->insns[k];
        if (hw_wir_ops[i->op].flags & HW_WF_S)
            return;
        bool known = k == leader ? i->guard.kind != HW_V_REG : can_come_first(n, regs, leader, k);
        if (known && guard[k] && k != leader) {
            guard[k] = false;
            n->out->guard_at[k] = leader;
            members++;
        }
        for (uint32_t d = 0; d < i->ndst; d++)
            if (i->dst[d].kind == HW_V_REG)
                regs[i->dst[d].reg] = (since){ leader, known };
    }
}

void hw_wir_group_guards(analysis *n)
{
    since *regs = HW_NEW_N(n->scratch, since, n->nregs + 1);
    for (uint32_t r = 0; r < n->nregs; r++)
        regs[r].leader = NONE32;
    n->out->guard_at = HW_NEW_N(n->arena, uint32_t, n->ninsns + 1);
    memset(n->out->guard_at, 0xff, n->ninsns * sizeof *n->out->guard_at);
    for (uint32_t k = 0; k < n->ninsns; k++)
        if (n->out->wrap_guard[k])
            gather(n, regs, k, n->out->first_insn[n->block_of[k] + 1]);
}

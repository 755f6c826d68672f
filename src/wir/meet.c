/* SPDX-License-Identifier: Apache-2.0
 * Lanes that meet: shuffles, votes and the like with .sync wait for the lanes of their mask (PTX ISA,
 * "shfl.sync"). Where all lanes go together nothing has to be done. But where some wait in a spin loop
 * others overtake them, so that in functions with such loops a warp barrier stands before each; only
 * code whose lanes run independently looks at it. */
#include "prepare.h"

/* Where the mask is among the operands. */
static const hw_wir_val *mask_of(const hw_wir_insn *i)
{
    return &i->src[i->nsrc - 1];
}

static bool gives(const hw_wir_insn *i, hw_wir_val v)
{
    bool found = false;
    for (uint32_t d = 0; d < i->ndst; d++)
        found |= v.kind == HW_V_REG && i->dst[d].kind == HW_V_REG && i->dst[d].reg == v.reg;
    return found;
}

/* Before all operations of the same PTX instruction, if the mask is there by then. */
static size_t place(const hw_wir_block *b, size_t k)
{
    size_t at = k;
    while (at > 0 && b->insns.ptr[k].loc != 0 && b->insns.ptr[at - 1].loc == b->insns.ptr[k].loc &&
           !gives(&b->insns.ptr[at - 1], *mask_of(&b->insns.ptr[k])))
        at--;
    return at;
}

static hw_wir_insn meeting(hw_arena *a, const hw_wir_insn *of)
{
    hw_wir_insn i = { .op = HW_W_WARPSYNC, .count = 1, .nsrc = 1, .flags = HW_I_MEETS };
    i.loc = of->loc;
    i.src = HW_NEW(a, hw_wir_val);
    i.src[0] = *mask_of(of);
    return i;
}

/* Guarded ones are left alone: lanes go round them. */
void hw_wir_let_meet(hw_wir_module *m, hw_wir_function *f)
{
    for (size_t b = 0; b < f->blocks.len; b++)
        for (size_t k = 0; k < f->blocks.ptr[b].insns.len; k++) {
            hw_wir_block *block = &f->blocks.ptr[b];
            hw_wir_insn *i = &block->insns.ptr[k];
            if (!(i->flags & HW_I_MEETS) || i->op == HW_W_WARPSYNC || i->guard.kind == HW_V_REG)
                continue;
            i->flags &= ~(uint32_t)HW_I_MEETS;
            hw_wir_insn before = meeting(m->arena, i);
            size_t at = place(block, k);
            hw_vec_push(m->arena, &block->insns, before);
            memmove(&block->insns.ptr[at + 1], &block->insns.ptr[at],
                    (block->insns.len - 1 - at) * sizeof before);
            block->insns.ptr[at] = before;
            k++;
        }
}

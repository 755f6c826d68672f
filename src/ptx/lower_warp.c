/* SPDX-License-Identifier: Apache-2.0
 * Instructions across lanes and barriers (PTX ISA 9.7.13): they act under the guard. */
#include "lower.h"

static hw_wir_insn *effect(lw *l, hw_wir_op op, hw_wir_type t, uint32_t nd, const hw_wir_val *dst,
                           uint32_t ns, const hw_wir_val *src)
{
    hw_wir_insn *i = hw_wir_emit(&l->b, op, t, nd, dst, ns, src);
    lw_effect(l, i);
    return i;
}

/* Registers of d or d|p; '_' and a missing p are not wanted. */
static void results(const ptx_operand *o, hw_wir_val dst[2])
{
    const ptx_operand *d = o->kind == PTX_O_PAIR ? &o->items[0] : o;
    dst[0] = d->kind == PTX_O_REG ? hw_wir_reg(d->reg) : HW_WIR_NONE;
    dst[1] = HW_WIR_NONE;
    if (o->kind == PTX_O_PAIR && o->items[1].kind == PTX_O_REG)
        dst[1] = hw_wir_reg(o->items[1].reg);
}

/* The same across lanes; those of the .sync forms wait for one another. */
static hw_wir_insn *lanes(lw *l, hw_wir_op op, hw_wir_type t, uint32_t nd, const hw_wir_val *dst,
                          uint32_t ns, const hw_wir_val *src)
{
    hw_wir_insn *i = effect(l, op, t, nd, dst, ns, src);
    i->flags |= lw_has(l, PTX_M_sync) ? HW_I_MEETS : 0;
    return i;
}

/* The member mask: an operand of the .sync forms, all lanes in the older ones. */
static hw_wir_val members(lw *l, unsigned n)
{
    return lw_has(l, PTX_M_sync) ? lw_source(l, n) : hw_wir_imm(UINT32_MAX);
}

void w_shfl(lw *l)
{
    static const struct {
        uint8_t mod, kind;
    } kinds[] = { { PTX_M_up, HW_SHFL_UP },
                  { PTX_M_down, HW_SHFL_DOWN },
                  { PTX_M_bfly, HW_SHFL_BFLY },
                  { PTX_M_idx, HW_SHFL_IDX } };
    hw_wir_val dst[2], src[4];
    results(&l->i->ops[0], dst);
    for (unsigned k = 0; k < 3; k++)
        src[k] = lw_source(l, k);
    src[3] = members(l, 3);
    hw_wir_insn *i = lanes(l, HW_W_SHFL, HW_T_I32, 2, dst, 4, src);
    for (size_t k = 0; k < HW_COUNTOF(kinds); k++)
        if (lw_has(l, kinds[k].mod))
            i->imm = kinds[k].kind;
}

void w_vote(lw *l)
{
    hw_wir_op op = lw_has(l, PTX_M_ballot) ? HW_W_BALLOT
                   : lw_has(l, PTX_M_all)  ? HW_W_VOTE_ALL
                   : lw_has(l, PTX_M_any)  ? HW_W_VOTE_ANY
                                           : HW_W_VOTE_UNI;
    hw_wir_val dst[2], src[2] = { lw_source(l, 0), members(l, 1) };
    results(&l->i->ops[0], dst);
    lanes(l, op, HW_T_I1, 1, dst, 2, src);
}

void w_match(lw *l)
{
    hw_wir_val dst[2], src[2] = { lw_source(l, 0), lw_source(l, 1) };
    results(&l->i->ops[0], dst);
    if (lw_has(l, PTX_M_all))
        lanes(l, HW_W_MATCH_ALL, l->t[0], 2, dst, 2, src);
    else
        lanes(l, HW_W_MATCH_ANY, l->t[0], 1, dst, 2, src);
}

/* The pattern of a float as an integer of its order, and back: negative ones are turned around. */
static hw_wir_val ordered(lw *l, hw_wir_val a)
{
    hw_wir_val sign = hw_wir_op2(&l->b, HW_W_SHR_S, HW_T_I32, a, hw_wir_imm(31));
    sign = hw_wir_op2(&l->b, HW_W_AND, HW_T_I32, sign, hw_wir_imm(0x7fffffff));
    return hw_wir_op2(&l->b, HW_W_XOR, HW_T_I32, a, sign);
}

void w_redux(lw *l)
{
    static const struct {
        uint8_t mod, is_unsigned, is_signed;
    } ops[] = {
        { PTX_M_add, HW_ATOM_ADD, HW_ATOM_ADD },     { PTX_M_min, HW_ATOM_MIN_U, HW_ATOM_MIN_S },
        { PTX_M_max, HW_ATOM_MAX_U, HW_ATOM_MAX_S }, { PTX_M_and, HW_ATOM_AND, HW_ATOM_AND },
        { PTX_M_or, HW_ATOM_OR, HW_ATOM_OR },        { PTX_M_xor, HW_ATOM_XOR, HW_ATOM_XOR },
    };
    hw_wir_val dst[2], src[2] = { lw_source(l, 0), lw_source(l, 1) };
    results(&l->i->ops[0], dst);
    hw_wir_insn *i = lanes(l, HW_W_REDUX, HW_T_I32, 1, dst, 2, src);
    for (size_t k = 0; k < HW_COUNTOF(ops); k++)
        if (l->x->boolop == ops[k].mod)
            i->atom = lw_signed(l, 0) ? ops[k].is_signed : ops[k].is_unsigned;
}

/* Floats are reduced as signed integers in their order. A NaN is greater or less than all of them:
 * with .NaN so that it wins, else so that it loses to every number (PTX ISA, redux.sync). */
void w_redux_float(lw *l)
{
    bool min = lw_has(l, PTX_M_min);
    uint64_t nan = min == lw_has(l, PTX_M_NaN) ? 0x80000000 : 0x7fffffff;
    hw_wir_val mask = lw_source(l, 1), a = lw_in_register(l, HW_T_I32, lw_source(l, 0));
    hw_wir_val magnitude = hw_wir_op2(&l->b, HW_W_AND, HW_T_I32, a, hw_wir_imm(0x7fffffff));
    hw_wir_val is_nan =
        hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_GT_U, HW_T_I32, magnitude, hw_wir_imm(0x7f800000));
    hw_wir_val key = lw_has(l, PTX_M_abs) ? magnitude : ordered(l, a);
    key = hw_wir_op3(&l->b, HW_W_SELECT, HW_T_I32, is_nan, hw_wir_imm(nan), key);
    hw_wir_val found = lw_temp(l, HW_T_I32);
    hw_wir_insn *i = lanes(l, HW_W_REDUX, HW_T_I32, 1, &found, 2, (hw_wir_val[]){ key, mask });
    i->atom = min ? HW_ATOM_MIN_S : HW_ATOM_MAX_S;
    hw_wir_val none = hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_EQ, HW_T_I32, found, hw_wir_imm(nan));
    hw_wir_val r =
        hw_wir_op3(&l->b, HW_W_SELECT, HW_T_I32, none, hw_wir_imm(0x7fffffff), ordered(l, found));
    lw_set(l, &l->i->ops[0], PTX_F32, r);
}

void w_activemask(lw *l)
{
    hw_wir_val dst[2];
    results(&l->i->ops[0], dst);
    effect(l, HW_W_ACTIVEMASK, HW_T_I32, 1, dst, 0, NULL);
}

void w_elect(lw *l)
{
    hw_wir_val dst[2], src = lw_source(l, 0);
    results(&l->i->ops[0], dst);
    lanes(l, HW_W_ELECT, HW_T_I32, 2, dst, 1, &src);
}

void w_barwarp(lw *l)
{
    hw_wir_val mask = lw_source(l, 0);
    effect(l, HW_W_WARPSYNC, HW_T_NONE, 0, NULL, 1, &mask);
}

/* ---- barriers of a block ---- */

static void reduction(lw *l)
{
    const ptx_operand *o = l->i->ops;
    hw_wir_val dst[2];
    results(&o[0], dst);
    hw_wir_val id = lw_read(l, &o[1], PTX_U32);
    hw_wir_val count = l->i->nops == 4 ? lw_read(l, &o[2], PTX_U32) : HW_WIR_NONE;
    hw_wir_val p = lw_read(l, &o[l->i->nops - 1], PTX_PRED);
    hw_wir_insn *i =
        effect(l, HW_W_BARRIER_RED, HW_T_NONE, 1, dst, 3, (hw_wir_val[]){ id, count, p });
    i->imm = lw_has(l, PTX_M_and) ? 1 : lw_has(l, PTX_M_or) ? 2 : 0;
}

void w_bar(lw *l)
{
    if (lw_has(l, PTX_M_red)) {
        reduction(l);
        return;
    }
    const ptx_operand *o = l->i->ops;
    hw_wir_val src[2] = { hw_wir_imm(0), HW_WIR_NONE };
    for (uint32_t k = 0; k < l->i->nops && k < 2; k++)
        src[k] = lw_read(l, &o[k], PTX_U32);
    hw_wir_op op = lw_has(l, PTX_M_arrive) ? HW_W_BARRIER_ARRIVE : HW_W_BARRIER;
    effect(l, op, HW_T_NONE, 0, NULL, 2, src);
}

void w_cluster_barrier(lw *l)
{
    hw_wir_op op = lw_has(l, PTX_M_arrive) ? HW_W_BARRIER_ARRIVE : HW_W_BARRIER;
    effect(l, op, HW_T_NONE, 0, NULL, 2,
           (hw_wir_val[]){ hw_wir_imm(HW_BARRIER_CLUSTER), HW_WIR_NONE });
}

void w_yield(lw *l)
{
    effect(l, HW_W_YIELD, HW_T_NONE, 0, NULL, 0, NULL);
}

void w_unsupported(lw *l)
{
    const char *text = hw_arena_cstr(l->arena, l->i->opcode);
    for (uint32_t k = 0; k < l->i->nmods; k++)
        text = hw_arena_printf(l->arena, "%s.%.*s", text, HW_STR_ARG(l->i->mods[k]));
    lw_fail(l, "'%s' is not supported", text);
}

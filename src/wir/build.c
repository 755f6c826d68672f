/* SPDX-License-Identifier: Apache-2.0
 * Building warp IR: modules, functions, blocks, registers, instructions. */
#include "inside.h"

hw_wir_module *hw_wir_module_new(hw_arena *a)
{
    hw_wir_module *m = HW_NEW(a, hw_wir_module);
    m->arena = a;
    hw_vec_push(a, &m->locs, (hw_wir_loc){ 0 });
    return m;
}

uint32_t hw_wir_function_new(hw_wir_module *m, const char *name, bool is_kernel)
{
    hw_vec_push(m->arena, &m->functions,
                (hw_wir_function){ .name = name, .is_kernel = is_kernel, .defined = true });
    return (uint32_t)m->functions.len - 1;
}

static hw_wir_function *function_of(hw_wir_builder *b)
{
    return &b->m->functions.ptr[b->function];
}

uint32_t hw_wir_block_new(hw_wir_builder *b, const char *label)
{
    hw_wir_function *f = function_of(b);
    hw_vec_push(b->m->arena, &f->blocks, (hw_wir_block){ .label = label });
    return (uint32_t)f->blocks.len - 1;
}

uint32_t hw_wir_reg_new(hw_wir_builder *b, hw_wir_type t, const char *name)
{
    hw_wir_function *f = function_of(b);
    hw_vec_push(b->m->arena, &f->regs,
                (hw_wir_reg_info){ .type = (uint8_t)hw_wir_reg_type(t), .name = name });
    return (uint32_t)f->regs.len - 1;
}

uint32_t hw_wir_symbol_id(hw_wir_module *m, const char *name, uint32_t external_id)
{
    for (size_t i = 0; i < m->symbols.len; i++)
        if (m->symbols.ptr[i].external_id == external_id)
            return (uint32_t)i;
    hw_vec_push(m->arena, &m->symbols, (hw_wir_symbol){ name, external_id });
    return (uint32_t)m->symbols.len - 1;
}

static hw_wir_val *copy_values(hw_arena *a, uint32_t n, const hw_wir_val *values)
{
    if (!n)
        return NULL;
    hw_wir_val *copy = HW_NEW_N(a, hw_wir_val, n);
    memcpy(copy, values, n * sizeof *copy);
    return copy;
}

/* Branches take no guard: they are the guard. */
static bool takes_guard(hw_wir_op op)
{
    return op != HW_W_BR && op != HW_W_CBR && op != HW_W_BRX;
}

hw_wir_insn *hw_wir_emit(hw_wir_builder *b, hw_wir_op op, hw_wir_type t, uint32_t ndst,
                         const hw_wir_val *dst, uint32_t nsrc, const hw_wir_val *src)
{
    HW_CHECK(ndst < 256 && nsrc < 256);
    hw_arena *a = b->m->arena;
    hw_wir_insn insn = { .op = (uint16_t)op,
                         .type = (uint8_t)t,
                         .count = 1,
                         .ndst = (uint8_t)ndst,
                         .nsrc = (uint8_t)nsrc,
                         .dst = copy_values(a, ndst, dst),
                         .src = copy_values(a, nsrc, src),
                         .loc = b->loc };
    if (takes_guard(op) && b->guard.kind == HW_V_REG) {
        insn.guard = b->guard;
        insn.flags = b->guard_negated ? HW_I_NEG_GUARD : 0;
    }
    insn.flags |= b->head | b->marks;
    b->head = 0;
    hw_wir_block *block = &function_of(b)->blocks.ptr[b->block];
    hw_vec_push(a, &block->insns, insn);
    return &block->insns.ptr[block->insns.len - 1];
}

void hw_wir_set_targets(hw_wir_builder *b, uint32_t n, const uint32_t *targets)
{
    hw_wir_block *block = &function_of(b)->blocks.ptr[b->block];
    block->ntargets = n;
    block->targets = n ? HW_NEW_N(b->m->arena, uint32_t, n) : NULL;
    if (n)
        memcpy(block->targets, targets, n * sizeof *targets);
}

/* One result in a fresh register of result_type, whatever the builder's guard. */
static hw_wir_insn *emit_fresh(hw_wir_builder *b, hw_wir_op op, hw_wir_type t,
                               hw_wir_type result_type, uint32_t nsrc, const hw_wir_val *src)
{
    hw_wir_val guard = b->guard;
    b->guard = HW_WIR_NONE;
    hw_wir_val dst = hw_wir_reg(hw_wir_reg_new(b, result_type, NULL));
    hw_wir_insn *i = hw_wir_emit(b, op, t, 1, &dst, nsrc, src);
    b->guard = guard;
    return i;
}

/* The result type of an operation without type2: some count or test rather than compute. */
static hw_wir_type result_type(hw_wir_op op, hw_wir_type t)
{
    hw_wir_insn probe = { .op = (uint16_t)op, .type = (uint8_t)t };
    hw_wir_type r = hw_wir_dst_type(&probe, 0);
    return r == HW_T_NONE ? t : r;
}

hw_wir_val hw_wir_op1(hw_wir_builder *b, hw_wir_op op, hw_wir_type t, hw_wir_val a)
{
    return emit_fresh(b, op, t, result_type(op, t), 1, &a)->dst[0];
}

hw_wir_val hw_wir_op2(hw_wir_builder *b, hw_wir_op op, hw_wir_type t, hw_wir_val a, hw_wir_val c)
{
    return emit_fresh(b, op, t, result_type(op, t), 2, (hw_wir_val[]){ a, c })->dst[0];
}

hw_wir_val hw_wir_op3(hw_wir_builder *b, hw_wir_op op, hw_wir_type t, hw_wir_val a, hw_wir_val c,
                      hw_wir_val e)
{
    return emit_fresh(b, op, t, result_type(op, t), 3, (hw_wir_val[]){ a, c, e })->dst[0];
}

hw_wir_val hw_wir_cvt(hw_wir_builder *b, hw_wir_op op, hw_wir_type from, hw_wir_type to,
                      hw_wir_val a)
{
    hw_wir_insn *i = emit_fresh(b, op, from, to, 1, &a);
    i->type2 = (uint8_t)to;
    return i->dst[0];
}

hw_wir_val hw_wir_cmp(hw_wir_builder *b, hw_wir_op op, hw_wir_cond c, hw_wir_type t, hw_wir_val a,
                      hw_wir_val e)
{
    hw_wir_insn *i = emit_fresh(b, op, t, HW_T_I1, 2, (hw_wir_val[]){ a, e });
    i->cond = (uint8_t)c;
    return i->dst[0];
}

void hw_wir_mov(hw_wir_builder *b, hw_wir_type t, hw_wir_val dst, hw_wir_val src)
{
    hw_wir_emit(b, HW_W_MOV, t, 1, &dst, 1, &src);
}

void hw_wir_br(hw_wir_builder *b, uint32_t target)
{
    hw_wir_emit(b, HW_W_BR, HW_T_NONE, 0, NULL, 0, NULL);
    hw_wir_set_targets(b, 1, &target);
}

void hw_wir_cbr(hw_wir_builder *b, hw_wir_val pred, uint32_t yes, uint32_t no)
{
    hw_wir_emit(b, HW_W_CBR, HW_T_I1, 0, NULL, 1, &pred);
    hw_wir_set_targets(b, 2, (uint32_t[]){ yes, no });
}

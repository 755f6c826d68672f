/* SPDX-License-Identifier: Apache-2.0
 * Operands of PTX instructions as warp-IR values: reading, converting, writing. */
#include "lower.h"

hw_status lw_fail(lw *l, const char *fmt, ...)
{
    if (l->status != HW_OK)
        return l->status;
    l->status = HW_E_UNSUPPORTED;
    if (!l->lm->d)
        return l->status;
    va_list ap;
    va_start(ap, fmt);
    const char *text = hw_arena_vprintf(l->lm->d->arena, fmt, ap);
    va_end(ap);
    const struct hw_ptx_unit *u = l->f->unit;
    hw_place at = l->i ? hw_ptx_place(u, l->i->place) : (hw_place){ .file = u->origin };
    return l->status = hw_fail_at(l->lm->d, HW_E_UNSUPPORTED, at, "%s", text);
}

hw_wir_val lw_temp(lw *l, hw_wir_type t)
{
    return hw_wir_reg(hw_wir_reg_new(&l->b, t, NULL));
}

hw_wir_val lw_const(hw_wir_type t, uint64_t bits)
{
    unsigned n = hw_wir_bits(t);
    return hw_wir_imm(n >= 64 ? bits : bits & ((UINT64_C(1) << n) - 1));
}

hw_wir_insn *lw_last(lw *l)
{
    hw_wir_function *f = &l->lm->m->functions.ptr[l->b.function];
    hw_wir_block *b = &f->blocks.ptr[l->b.block];
    return b->insns.len ? &b->insns.ptr[b->insns.len - 1] : NULL;
}

hw_wir_type lw_reg_type(const lw *l, uint32_t reg)
{
    return l->lm->m->functions.ptr[l->b.function].regs.ptr[reg].type;
}

void lw_effect(lw *l, hw_wir_insn *i)
{
    i->guard = l->guard;
    if (l->guard.kind == HW_V_REG && l->guard_negated)
        i->flags |= HW_I_NEG_GUARD;
}

hw_wir_val lw_cvt(lw *l, hw_wir_op op, hw_wir_type from, hw_wir_type to, hw_wir_val v)
{
    return hw_wir_cvt(&l->b, op, from, to, v);
}

hw_wir_val lw_nullary(lw *l, hw_wir_op op, hw_wir_type t, uint64_t imm)
{
    hw_wir_val d = lw_temp(l, t);
    hw_wir_emit(&l->b, op, t, 1, &d, 0, NULL)->imm = imm;
    return d;
}

/* An integer value in another width. */
hw_wir_val lw_fit(lw *l, hw_wir_val v, hw_wir_type from, hw_wir_type to, bool is_signed)
{
    unsigned a = hw_wir_bits(from), b = hw_wir_bits(to);
    from = hw_wir_reg_type(from);
    to = hw_wir_reg_type(to);
    if (a == b)
        return v;
    if (v.kind == HW_V_IMM) {
        if (is_signed && a < b && a < 64 && ((v.imm >> (a - 1)) & 1))
            v.imm |= ~UINT64_C(0) << a;
        return lw_const(to, v.imm);
    }
    return lw_cvt(l, a > b ? HW_W_TRUNC : is_signed ? HW_W_SEXT : HW_W_ZEXT, from, to, v);
}

/* Bits bit.. of a value, as wide as `to`. */
hw_wir_val lw_part(lw *l, hw_wir_val v, hw_wir_type from, unsigned bit, hw_wir_type to)
{
    from = hw_wir_reg_type(from);
    if (v.kind == HW_V_IMM)
        return lw_const(to, bit >= 64 ? 0 : v.imm >> bit);
    if (bit)
        v = hw_wir_op2(&l->b, HW_W_SHR_U, from, v, hw_wir_imm(bit));
    return lw_fit(l, v, from, to, false);
}

/* ---- reading ---- */

static hw_wir_val read_literal(const ptx_operand *o, ptx_type t)
{
    if (o->kind == PTX_O_INT)
        return t == PTX_PRED ? hw_wir_imm(o->bits != 0) : lw_const(ptx_wir_type(t), o->bits);
    if (t == PTX_F32) {
        uint32_t bits = (uint32_t)o->bits;
        if (!o->is_single) {
            float f = (float)o->value;
            memcpy(&bits, &f, sizeof bits);
        }
        return hw_wir_imm(bits);
    }
    if (o->is_single && t == PTX_F64) { /* in a .b32 it is the pattern itself */
        uint64_t bits;
        double v = o->value;
        memcpy(&bits, &v, sizeof bits);
        return hw_wir_imm(bits);
    }
    return hw_wir_imm(o->bits);
}

static hw_wir_val sreg_in_full(lw *l, const ptx_sreg *r, int component)
{
    unsigned c = component < 0 ? 0 : (unsigned)component;
    hw_wir_type t = r->bits == 64 ? HW_T_I64 : r->bits == 1 ? HW_T_I1 : HW_T_I32;
    switch ((ptx_sreg_how)r->how) {
    case PTX_SR_SREG:
        return lw_nullary(l, HW_W_SREG, t, r->value);
    case PTX_SR_DIM:
        return c < 3 ? lw_nullary(l, HW_W_SREG, t, r->value + c) : hw_wir_imm(0);
    case PTX_SR_CLOCK:
        return lw_nullary(l, HW_W_CLOCK, t, r->value);
    case PTX_SR_HIGH:
        return lw_part(l, lw_nullary(l, HW_W_CLOCK, HW_T_I64, r->value), HW_T_I64, 32, HW_T_I32);
    case PTX_SR_CLUSTER:
        return lw_cluster_sreg(l, r->value, c);
    default:
        return hw_wir_imm(r->value);
    }
}

static hw_wir_val read_sreg(lw *l, const ptx_operand *o, ptx_type t)
{
    int id = hw_ptx_sreg(o->name);
    if (id < 0)
        return hw_wir_imm(0);
    const ptx_sreg *r = &ptx_sregs[id];
    hw_wir_val v = sreg_in_full(l, r, o->component);
    if (r->bits == 1)
        return v;
    return lw_fit(l, v, r->bits == 64 ? HW_T_I64 : HW_T_I32, ptx_wir_type(t), false);
}

static hw_wir_val plus(lw *l, hw_wir_val address, int64_t offset)
{
    return offset ? hw_wir_op2(&l->b, HW_W_ADD, HW_T_I64, address, hw_wir_imm((uint64_t)offset))
                  : address;
}

/* The address of a variable, parameter or function as its state space has it (I64); shared
 * variables: the offset. */
hw_wir_val lw_symbol_address(lw *l, const ptx_symbol *s, int64_t offset)
{
    const ptx_symbol *real = hw_ptx_resolve(s);
    if (real->kind == PTX_SYM_FUNCTION) {
        if (!real->function || !real->function->has_body) {
            lw_fail(l, "the address of '%.*s' cannot be taken", HW_STR_ARG(s->name));
            return hw_wir_imm(0);
        }
        if (real->function->is_kernel)
            return hw_wir_imm(HW_PTX_KERNEL_HANDLE | real->index);
        return lw_nullary(l, HW_W_FUNC_ADDR, HW_T_I64, lw_function_id(real));
    }
    switch (real->space) {
    case PTX_SPACE_SHARED: {
        uint32_t at = hw_ptx_shared_offset(l->lm->layout, real);
        return hw_wir_imm((uint64_t)at + (uint64_t)offset);
    }
    case PTX_SPACE_LOCAL:
        return lw_nullary(l, HW_W_LOCAL_ADDR, HW_T_I64, real->offset + (uint64_t)offset);
    case PTX_SPACE_PARAM: {
        const lw_place *p = lw_find_place(l, real);
        if (!p)
            return lw_nullary(l, HW_W_PARAM_ADDR, HW_T_I64, real->offset + (uint64_t)offset);
        if (p->kind == LW_FRAME)
            return lw_nullary(l, HW_W_LOCAL_ADDR, HW_T_I64, p->offset + (uint64_t)offset);
        return plus(l, hw_wir_reg(p->reg), offset);
    }
    default:
        return plus(l,
                    lw_nullary(l, HW_W_SYMBOL, HW_T_I64,
                               hw_wir_symbol_id(l->lm->m, hw_arena_cstr(l->arena, real->name),
                                                real->index)),
                    offset);
    }
}

static hw_wir_val read_reg(lw *l, const ptx_operand *o, ptx_type t)
{
    hw_wir_val v = hw_wir_reg(o->reg);
    if (o->negated)
        return hw_wir_op1(&l->b, HW_W_NOT, HW_T_I1, v);
    hw_wir_type have = ptx_wir_type(l->f->regs.ptr[o->reg].type), want = ptx_wir_type(t);
    return lw_fit(l, v, have, want, false);
}

hw_wir_val lw_read(lw *l, const ptx_operand *o, ptx_type t)
{
    switch (o->kind) {
    case PTX_O_REG:
        return read_reg(l, o, t);
    case PTX_O_INT:
    case PTX_O_FLOAT:
        return read_literal(o, t);
    case PTX_O_SREG:
        return read_sreg(l, o, t);
    case PTX_O_SYMBOL:
        return lw_fit(l, lw_symbol_address(l, o->symbol, o->offset), HW_T_I64, ptx_wir_type(t),
                      false);
    default:
        lw_fail(l, "an operand of this kind is not supported here");
        return hw_wir_imm(0);
    }
}

hw_wir_val lw_source(lw *l, unsigned n)
{
    const ptx_row *r = l->x->row;
    unsigned k = r->ndest + n;
    HW_CHECK(k < r->nspecs);
    return lw_read(l, &l->i->ops[k], hw_ptx_spec_type(&r->specs[k], l->x));
}

/* ---- writing ---- */

static bool is_temp(const lw *l, hw_wir_val v)
{
    return v.kind == HW_V_REG && v.reg >= l->first_temp;
}

/* Write v to register reg under the guard: by the instruction that made v, if it was the last. */
static void put(lw *l, uint32_t reg, hw_wir_type t, hw_wir_val v)
{
    hw_wir_insn *last = lw_last(l);
    if (is_temp(l, v) && last && last->ndst == 1 && last->dst[0].reg == v.reg &&
        last->guard.kind == HW_V_NONE) {
        last->dst[0] = hw_wir_reg(reg);
        lw_effect(l, last);
        hw_wir_function *f = &l->lm->m->functions.ptr[l->b.function];
        if (v.reg + 1 == f->regs.len)
            f->regs.len--;
        return;
    }
    hw_wir_mov(&l->b, t, hw_wir_reg(reg), v);
    lw_effect(l, lw_last(l));
}

void lw_set(lw *l, const ptx_operand *o, ptx_type t, hw_wir_val v)
{
    if (o->kind == PTX_O_PAIR)
        o = &o->items[0];
    if (o->kind != PTX_O_REG)
        return;
    hw_wir_type have = ptx_wir_type(t);
    hw_wir_type want = hw_wir_reg_type(ptx_wir_type(l->f->regs.ptr[o->reg].type));
    v = lw_fit(l, v, have, want, hw_ptx_class(t) == PTX_CL_SIGNED);
    put(l, o->reg, want, v);
}

void lw_result(lw *l, hw_wir_val v)
{
    lw_set(l, &l->i->ops[0], hw_ptx_spec_type(&l->x->row->specs[0], l->x), v);
}

hw_wir_val lw_target(lw *l, const ptx_operand *o, hw_wir_type t, bool *direct)
{
    *direct = true;
    if (o->kind != PTX_O_REG)
        return HW_WIR_NONE;
    hw_wir_type have = hw_wir_reg_type(ptx_wir_type(l->f->regs.ptr[o->reg].type));
    if (have == hw_wir_reg_type(t))
        return hw_wir_reg(o->reg);
    *direct = false;
    return lw_temp(l, t);
}

/* ---- float operations: each modifier once ---- */

static void apply_modifiers(const lw *l, hw_wir_insn *i)
{
    static const struct {
        uint8_t mod;
        uint32_t flag;
    } flags[] = { { PTX_M_ftz, HW_I_FTZ },         { PTX_M_sat, HW_I_SAT },
                  { PTX_M_NaN, HW_I_NAN },         { PTX_M_relu, HW_I_RELU },
                  { PTX_M_xorsign, HW_I_XORSIGN }, { PTX_M_abs, HW_I_MINMAX_ABS } };
    for (size_t k = 0; k < HW_COUNTOF(flags); k++)
        if (lw_has(l, flags[k].mod))
            i->flags |= flags[k].flag;
    i->round = l->x->round;
}

hw_wir_val lw_float(lw *l, hw_wir_op op, hw_wir_type t, unsigned n, hw_wir_val a, hw_wir_val b,
                    hw_wir_val c)
{
    hw_wir_val d = n == 1   ? hw_wir_op1(&l->b, op, t, a)
                   : n == 2 ? hw_wir_op2(&l->b, op, t, a, b)
                            : hw_wir_op3(&l->b, op, t, a, b, c);
    apply_modifiers(l, lw_last(l));
    return d;
}

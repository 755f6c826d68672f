/* SPDX-License-Identifier: Apache-2.0
 * Memory instructions: ld, st, atom, red, fences, prefetch, cp.async (PTX ISA 9.7.9, 9.7.13). */
#include "lower.h"

static const uint8_t wir_spaces[] = {
    [PTX_SPACE_NONE] = HW_SPACE_GENERIC,  [PTX_SPACE_PARAM] = HW_SPACE_PARAM,
    [PTX_SPACE_LOCAL] = HW_SPACE_LOCAL,   [PTX_SPACE_SHARED] = HW_SPACE_SHARED,
    [PTX_SPACE_GLOBAL] = HW_SPACE_GLOBAL, [PTX_SPACE_CONST] = HW_SPACE_CONST,
    [PTX_SPACE_REG] = HW_SPACE_GENERIC,   [PTX_SPACE_TEX] = HW_SPACE_GENERIC,
};

/* A register as an address: 64 bits, or 32 in shared memory. */
static hw_wir_val register_address(lw *l, const ptx_operand *o, hw_wir_space space)
{
    hw_wir_type t = hw_wir_reg_type(ptx_wir_type(l->f->regs.ptr[o->reg].type));
    hw_wir_type want = space == HW_SPACE_SHARED && t != HW_T_I64 ? HW_T_I32 : HW_T_I64;
    return lw_fit(l, hw_wir_reg(o->reg), t, want, false);
}

/* A variable named where another space (or none) is said is meant in its own. */
static void symbol_address(lw *l, const ptx_operand *o, lw_address *a)
{
    const ptx_symbol *s = hw_ptx_resolve(o->symbol);
    if (s->kind != PTX_SYM_FUNCTION && s->space == PTX_SPACE_SHARED) {
        a->space = HW_SPACE_SHARED;
        a->base = hw_wir_imm(hw_ptx_shared_offset(l->lm->layout, s));
        a->offset = (uint64_t)o->offset;
        return;
    }
    if (s->space == PTX_SPACE_LOCAL)
        a->space = HW_SPACE_LOCAL;
    else if (a->space == HW_SPACE_SHARED)
        a->space = HW_SPACE_GENERIC;
    a->base = lw_symbol_address(l, s, 0);
    a->offset = (uint64_t)o->offset;
}

lw_address lw_find_address(lw *l, const ptx_operand *o, ptx_space space)
{
    lw_address a = { HW_WIR_NONE, 0, wir_spaces[space] };
    const ptx_operand *base = o->kind == PTX_O_ADDRESS ? &o->items[0] : o;
    if (base->kind == PTX_O_SYMBOL) {
        symbol_address(l, base, &a);
    } else if (base->kind == PTX_O_REG) {
        a.base = register_address(l, base, a.space);
        a.offset = o->kind == PTX_O_ADDRESS ? (uint64_t)base->offset : 0;
    } else {
        a.base = hw_wir_imm(base->bits);
    }
    return a;
}

/* The same for an access of its own; in .shared::cluster a register may name another block's memory. */
static lw_address access_address(lw *l, const ptx_operand *o)
{
    lw_address a = lw_find_address(l, o, l->x->space);
    if (a.space == HW_SPACE_SHARED && a.base.kind == HW_V_REG && lw_has(l, PTX_M_shared_cluster)) {
        hw_wir_val at = lw_fit(l, a.base, lw_reg_type(l, a.base.reg), HW_T_I64, false);
        a.base = lw_cluster_to_generic(l, at, true);
        a.space = HW_SPACE_GENERIC;
    }
    return a;
}

/* What volatile, relaxed, acquire, release, mmio and the cache operators mean for an access. */
static void set_order(const lw *l, hw_wir_insn *i)
{
    static const struct {
        uint8_t mod;
        uint32_t flags;
    } orders[] = {
        { PTX_M_volatile, HW_I_VOLATILE },
        { PTX_M_mmio, HW_I_VOLATILE },
        { PTX_M_relaxed, HW_I_VOLATILE },
        { PTX_M_acquire, HW_I_VOLATILE | HW_I_ACQUIRE },
        { PTX_M_release, HW_I_VOLATILE | HW_I_RELEASE },
        { PTX_M_acq_rel, HW_I_VOLATILE | HW_I_ACQUIRE | HW_I_RELEASE },
        { PTX_M_cg, HW_I_L2 },
        { PTX_M_cv, HW_I_L2 },
    };
    for (size_t k = 0; k < HW_COUNTOF(orders); k++)
        if (lw_has(l, orders[k].mod))
            i->flags |= orders[k].flags;
    if (i->flags & HW_I_VOLATILE || i->op == HW_W_ATOM || i->op == HW_W_RED)
        i->scope = l->x->scope;
}

/* ---- variables of call frames: registers unless they are in memory ---- */

static const lw_place *frame_place(const lw *l, const ptx_operand *o)
{
    const ptx_operand *base = o->kind == PTX_O_ADDRESS ? &o->items[0] : o;
    return base->kind == PTX_O_SYMBOL ? lw_find_place(l, hw_ptx_resolve(base->symbol)) : NULL;
}

static int64_t frame_offset(const ptx_operand *o)
{
    return o->kind == PTX_O_ADDRESS ? o->items[0].offset : o->offset;
}

static const ptx_operand *element(const ptx_operand *o, unsigned k)
{
    return o->kind == PTX_O_VECTOR ? &o->items[k] : o;
}

static bool outside(lw *l, const lw_place *p, int64_t at, unsigned bits)
{
    if (at >= 0 && (uint64_t)at * 8 + bits <= hw_wir_bits(p->type))
        return false;
    lw_fail(l, "an access beyond the end of parameter '%.*s'", HW_STR_ARG(p->symbol->name));
    return true;
}

static void load_from_register(lw *l, const lw_place *p, int64_t at)
{
    ptx_type t = l->x->type[0];
    hw_wir_type w = hw_wir_reg_type(l->t[0]);
    const ptx_operand *d = &l->i->ops[0];
    if (outside(l, p, at, hw_wir_bits(w) * l->x->vec))
        return;
    for (unsigned k = 0; k < l->x->vec; k++) {
        unsigned bit = (unsigned)at * 8 + k * hw_wir_bits(w);
        lw_set(l, element(d, k), t, lw_part(l, hw_wir_reg(p->reg), p->type, bit, w));
    }
}

static void store_to_register(lw *l, const lw_place *p, int64_t at)
{
    ptx_type t = l->x->type[0];
    hw_wir_type w = hw_wir_reg_type(l->t[0]), whole = p->type;
    const ptx_operand *v = &l->i->ops[1];
    unsigned bits = hw_wir_bits(w);
    if (outside(l, p, at, bits * l->x->vec))
        return;
    for (unsigned k = 0; k < l->x->vec; k++) {
        unsigned bit = (unsigned)at * 8 + k * bits;
        hw_wir_val x = lw_read(l, element(v, k), t);
        if (bits < hw_wir_bits(whole)) { /* put it among the others */
            uint64_t mask = (bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1) << bit;
            x = lw_fit(l, x, w, whole, false);
            if (bit)
                x = hw_wir_op2(&l->b, HW_W_SHL, whole, x, hw_wir_imm(bit));
            hw_wir_val rest =
                hw_wir_op2(&l->b, HW_W_AND, whole, hw_wir_reg(p->reg), lw_const(whole, ~mask));
            x = hw_wir_op2(&l->b, HW_W_OR, whole, rest, x);
        }
        hw_wir_mov(&l->b, whole, hw_wir_reg(p->reg), x);
        lw_effect(l, lw_last(l));
    }
}

/* ---- ld and st ---- */

static bool is_readonly(const lw *l, const lw_address *a)
{
    return lw_has(l, PTX_M_nc) || l->x->row->id == PTX_ROW_ldu || a->space == HW_SPACE_CONST ||
           (a->space == HW_SPACE_PARAM && l->f->is_kernel);
}

static void emit_load(lw *l, const lw_address *a)
{
    ptx_type t = l->x->type[0];
    const ptx_operand *d = &l->i->ops[0];
    hw_wir_val dst[8];
    bool direct[8];
    for (unsigned k = 0; k < l->x->vec; k++) {
        dst[k] = lw_target(l, element(d, k), l->t[0], &direct[k]);
        for (unsigned j = 0; j < k && direct[k]; j++) /* {%r1, %r1}: the last one stays */
            if (dst[j].kind == HW_V_REG && dst[k].kind == HW_V_REG && dst[j].reg == dst[k].reg)
                dst[j] = HW_WIR_NONE;
    }
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_LOAD, l->t[0], l->x->vec, dst, 1, &a->base);
    i->imm = a->offset;
    i->space = (uint8_t)a->space;
    i->count = l->x->vec;
    if (is_readonly(l, a))
        i->flags |= HW_I_READONLY;
    set_order(l, i);
    lw_effect(l, i);
    for (unsigned k = 0; k < l->x->vec; k++)
        if (!direct[k])
            lw_set(l, element(d, k), t, dst[k]);
}

/* Parameters of a device function that live in memory are its caller's local memory. */
static void settle_param(const lw *l, const lw_place *p, lw_address *a)
{
    if (p || (a->space == HW_SPACE_PARAM && !l->f->is_kernel))
        a->space = HW_SPACE_GENERIC;
}

/* Parameters of functions are one kind of instruction, wherever they are. */
static void mark_param(lw *l, const lw_place *p)
{
    if (p || (l->x->space == PTX_SPACE_PARAM && !l->f->is_kernel))
        l->b.marks |= HW_I_MOVE_PARAM;
}

void w_ld(lw *l)
{
    const lw_place *p = frame_place(l, &l->i->ops[1]);
    mark_param(l, p);
    if (p && p->kind == LW_REG) {
        load_from_register(l, p, frame_offset(&l->i->ops[1]));
        return;
    }
    lw_address a = access_address(l, &l->i->ops[1]);
    settle_param(l, p, &a);
    emit_load(l, &a);
}

void w_st(lw *l)
{
    const lw_place *p = frame_place(l, &l->i->ops[0]);
    mark_param(l, p);
    if (p && p->kind == LW_REG) {
        store_to_register(l, p, frame_offset(&l->i->ops[0]));
        return;
    }
    lw_address a = access_address(l, &l->i->ops[0]);
    settle_param(l, p, &a);
    hw_wir_val src[9] = { a.base };
    for (unsigned k = 0; k < l->x->vec; k++)
        src[1 + k] = lw_read(l, element(&l->i->ops[1], k), l->x->type[0]);
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_STORE, l->t[0], 0, NULL, 1u + l->x->vec, src);
    i->imm = a.offset;
    i->space = (uint8_t)a.space;
    i->count = l->x->vec;
    set_order(l, i);
    lw_effect(l, i);
}

/* ---- atom and red ---- */

static bool is_float_type(hw_wir_type t)
{
    return t >= HW_T_F16 && t <= HW_T_V2BF16;
}

hw_wir_atom lw_atom_of(const lw *l)
{
    static const struct {
        uint8_t mod, is_unsigned, is_signed, is_float;
    } ops[] = {
        { PTX_M_add, HW_ATOM_ADD, HW_ATOM_ADD, HW_ATOM_FADD },
        { PTX_M_min, HW_ATOM_MIN_U, HW_ATOM_MIN_S, HW_ATOM_FMIN },
        { PTX_M_max, HW_ATOM_MAX_U, HW_ATOM_MAX_S, HW_ATOM_FMAX },
        { PTX_M_inc, HW_ATOM_INC, HW_ATOM_INC, HW_ATOM_INC },
        { PTX_M_dec, HW_ATOM_DEC, HW_ATOM_DEC, HW_ATOM_DEC },
        { PTX_M_and, HW_ATOM_AND, HW_ATOM_AND, HW_ATOM_AND },
        { PTX_M_or, HW_ATOM_OR, HW_ATOM_OR, HW_ATOM_OR },
        { PTX_M_xor, HW_ATOM_XOR, HW_ATOM_XOR, HW_ATOM_XOR },
        { PTX_M_cas, HW_ATOM_CAS, HW_ATOM_CAS, HW_ATOM_CAS },
        { PTX_M_exch, HW_ATOM_EXCH, HW_ATOM_EXCH, HW_ATOM_EXCH },
    };
    const ptx_type t = l->x->type[0];
    for (size_t k = 0; k < HW_COUNTOF(ops); k++)
        if (l->x->boolop == ops[k].mod)
            return is_float_type(ptx_wir_type(t))     ? ops[k].is_float
                   : hw_ptx_class(t) == PTX_CL_SIGNED ? ops[k].is_signed
                                                      : ops[k].is_unsigned;
    return HW_ATOM_ADD;
}

static void one_atomic(lw *l, const lw_address *a, unsigned k, const ptx_operand *d,
                       const ptx_operand *const *values, unsigned nvalues)
{
    hw_wir_val src[3] = { a->base }, dst = HW_WIR_NONE;
    for (unsigned v = 0; v < nvalues; v++)
        src[1 + v] = lw_read(l, element(values[v], k), l->x->type[0]);
    bool direct = true;
    if (d)
        dst = lw_target(l, element(d, k), l->t[0], &direct);
    bool red = !d || dst.kind == HW_V_NONE;
    hw_wir_insn *i =
        hw_wir_emit(&l->b, red ? HW_W_RED : HW_W_ATOM, l->t[0], !red, &dst, 1 + nvalues, src);
    i->imm = a->offset + k * (hw_wir_bits(l->t[0]) / 8);
    i->space = (uint8_t)a->space;
    i->atom = lw_atom_of(l);
    if (lw_has(l, PTX_M_noftz))
        i->flags |= HW_I_NOFTZ_MEM;
    set_order(l, i);
    lw_effect(l, i);
    if (!direct)
        lw_set(l, element(d, k), l->x->type[0], dst);
}

/* Vector atomics are atomic by element only (PTX ISA, atom), so an operation each. */
void w_atom(lw *l)
{
    bool has_result = l->x->row->ndest == 1;
    const ptx_operand *o = l->i->ops;
    const ptx_operand *d = has_result ? o++ : NULL;
    lw_address a = access_address(l, o++);
    unsigned nvalues = l->x->boolop == PTX_M_cas ? 2 : 1;
    const ptx_operand *values[2] = { o, o + 1 };
    for (unsigned k = 0; k < l->x->vec; k++)
        one_atomic(l, &a, k, d, values, nvalues);
}

/* ---- order and hints ---- */

void w_fence(lw *l)
{
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_FENCE, HW_T_NONE, 0, NULL, 0, NULL);
    i->scope = l->x->scope;
    lw_effect(l, i);
}

void w_prefetch(lw *l)
{
    lw_address a = lw_find_address(l, &l->i->ops[0], l->x->space);
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_PREFETCH, HW_T_I8, 0, NULL, 1, &a.base);
    i->imm = a.offset;
    i->space = (uint8_t)a.space;
    lw_effect(l, i);
}

static hw_wir_val with_offset(lw *l, const lw_address *a, hw_wir_type t)
{
    if (!a->offset)
        return a->base;
    if (a->base.kind == HW_V_IMM)
        return lw_const(t, a->base.imm + a->offset);
    return hw_wir_op2(&l->b, HW_W_ADD, t, a->base, lw_const(t, a->offset));
}

/* Bytes read by cp.async: all, the src-size operand's, or none where ignore-src holds. */
static hw_wir_val copy_bytes(lw *l, uint64_t size)
{
    if (l->i->nops < 4 || (l->i->nops == 4 && lw_has(l, PTX_M_L2_cache_hint)))
        return hw_wir_imm(size);
    const ptx_operand *o = &l->i->ops[3];
    if (o->kind != PTX_O_REG || l->f->regs.ptr[o->reg].type != PTX_PRED)
        return lw_read(l, o, PTX_U32);
    return hw_wir_op3(&l->b, HW_W_SELECT, HW_T_I32, lw_read(l, o, PTX_PRED), hw_wir_imm(0),
                      hw_wir_imm(size));
}

/* Completes at once: commit and wait then have nothing to do. */
void w_cp_async(lw *l)
{
    lw_address to = lw_find_address(l, &l->i->ops[0], PTX_SPACE_SHARED);
    lw_address from = lw_find_address(l, &l->i->ops[1], PTX_SPACE_GLOBAL);
    uint64_t size = l->i->ops[2].bits;
    hw_wir_type t = to.base.kind == HW_V_REG
                        ? l->lm->m->functions.ptr[l->b.function].regs.ptr[to.base.reg].type
                        : HW_T_I32;
    hw_wir_val src[3] = { with_offset(l, &to, t), with_offset(l, &from, HW_T_I64),
                          copy_bytes(l, size) };
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_COPY, HW_T_I8, 0, NULL, 3, src);
    i->imm = size;
    lw_effect(l, i);
}

/* SPDX-License-Identifier: Apache-2.0
 * Moves, conversions and address conversions (PTX ISA 9.7.9: mov, cvt, cvt.pack, cvta, isspacep).
 */
#include "lower.h"

#define T (l->t[0])
#define U (l->t[1])

static hw_wir_val i32(lw *l, hw_wir_op op, hw_wir_val a, uint64_t b)
{
    return hw_wir_op2(&l->b, op, HW_T_I32, a, hw_wir_imm(b));
}

static hw_wir_val sel(lw *l, hw_wir_type t, hw_wir_val p, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_op3(&l->b, HW_W_SELECT, t, p, a, b);
}

/* ---- mov ---- */

static hw_wir_type int_type(unsigned bits)
{
    switch (bits) {
    case 8:
        return HW_T_I8;
    case 16:
        return HW_T_I16;
    case 32:
        return HW_T_I32;
    case 64:
        return HW_T_I64;
    default:
        return HW_T_I128;
    }
}

static ptx_type untyped(unsigned bits)
{
    return bits == 8 ? PTX_B8 : bits == 16 ? PTX_B16 : bits == 32 ? PTX_B32 : PTX_B64;
}

/* A part of a pack: a register of any type of that size, or a literal. */
static hw_wir_val read_part(const ptx_operand *o, unsigned bits)
{
    return o->kind == PTX_O_REG ? hw_wir_reg(o->reg) : lw_const(int_type(bits), o->bits);
}

static hw_wir_val pack(lw *l, const ptx_operand *v, ptx_type t)
{
    unsigned bits = ptx_types[t].bits, each = bits / v->nitems;
    hw_wir_type whole = int_type(bits);
    hw_wir_val r = HW_WIR_NONE;
    for (uint32_t k = 0; k < v->nitems; k++) {
        hw_wir_val p = lw_fit(l, read_part(&v->items[k], each), int_type(each), whole, false);
        if (k)
            p = hw_wir_op2(&l->b, HW_W_SHL, whole, p, hw_wir_imm(k * each));
        r = k ? hw_wir_op2(&l->b, HW_W_OR, whole, r, p) : p;
    }
    return r;
}

static void unpack(lw *l, const ptx_operand *d, ptx_type t, hw_wir_val v)
{
    unsigned bits = ptx_types[t].bits, each = bits / d->nitems;
    for (uint32_t k = 0; k < d->nitems; k++)
        if (d->items[k].kind == PTX_O_REG)
            lw_set(l, &d->items[k], untyped(each),
                   lw_part(l, v, int_type(bits), k * each, int_type(each)));
}

static void mov_vector(lw *l, const ptx_operand *d, const ptx_operand *a, ptx_type t)
{
    hw_wir_val parts[8] = { { 0 } };
    ptx_operand part = *a;
    for (unsigned k = 0; k < l->x->vec; k++) { /* all are read before any is written */
        if (a->kind == PTX_O_VECTOR)
            part = a->items[k];
        else
            part.component = (int8_t)k;
        parts[k] = lw_temp(l, T);
        hw_wir_mov(&l->b, T, parts[k], lw_read(l, &part, t));
    }
    for (unsigned k = 0; d->kind == PTX_O_VECTOR && k < l->x->vec; k++)
        lw_set(l, &d->items[k], t, parts[k]);
}

void w_mov(lw *l)
{
    const ptx_operand *d = &l->i->ops[0], *a = &l->i->ops[1];
    ptx_type t = l->x->type[0];
    if (l->x->vec > 1) {
        mov_vector(l, d, a, t);
        return;
    }
    hw_wir_val v = a->kind == PTX_O_VECTOR ? pack(l, a, t) : lw_read(l, a, t);
    if (d->kind == PTX_O_VECTOR)
        unpack(l, d, t, v);
    else
        lw_set(l, d, t, v);
}

/* ---- integer to integer ---- */

static uint64_t max_of(unsigned bits, bool is_signed)
{
    unsigned n = is_signed ? bits - 1 : bits;
    return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* Clamp a value of type U to T's range; .sat on integers (PTX ISA, cvt). */
static hw_wir_val clamp(lw *l, hw_wir_val a)
{
    bool from_signed = lw_signed(l, 1), to_signed = lw_signed(l, 0);
    unsigned from = hw_wir_bits(U), to = hw_wir_bits(T);
    uint64_t high = max_of(to, to_signed);
    if (from_signed && !to_signed)
        a = hw_wir_op2(&l->b, HW_W_MAX_S, U, a, hw_wir_imm(0));
    if (from_signed && to_signed && to < from)
        a = hw_wir_op2(&l->b, HW_W_MAX_S, U, a, lw_const(U, ~high));
    if (high < max_of(from, from_signed))
        a = hw_wir_op2(&l->b, from_signed ? HW_W_MIN_S : HW_W_MIN_U, U, a, lw_const(U, high));
    return a;
}

hw_wir_val w_cvt_ii(lw *l, hw_wir_val a)
{
    if (l->x->sat)
        a = clamp(l, a);
    return lw_fit(l, a, U, T, lw_signed(l, 1));
}

/* ---- with floats ---- */

static hw_wir_val convert(lw *l, hw_wir_op op, hw_wir_type from, hw_wir_type to, hw_wir_val a)
{
    hw_wir_val d = lw_cvt(l, op, from, to, a);
    hw_wir_insn *i = lw_last(l);
    i->round = l->x->round;
    i->flags |= (l->x->ftz ? HW_I_FTZ : 0u) | (l->x->sat ? HW_I_SAT : 0u) |
                (lw_has(l, PTX_M_relu) ? HW_I_RELU : 0u);
    return d;
}

static uint64_t minus_zero(hw_wir_type t)
{
    return UINT64_C(1) << (hw_wir_bits(t) - 1);
}

/* .sat: x + -0 is x, clamped. */
static hw_wir_val saturate(lw *l, hw_wir_val a)
{
    hw_wir_val d = hw_wir_op2(&l->b, HW_W_FADD, T, a, lw_const(T, minus_zero(T)));
    lw_last(l)->flags |= HW_I_SAT;
    return d;
}

hw_wir_val w_cvt_if(lw *l, hw_wir_val a)
{
    hw_wir_val d = lw_cvt(l, lw_signed(l, 1) ? HW_W_I2F_S : HW_W_I2F_U, U, T, a);
    lw_last(l)->round = l->x->round;
    return l->x->sat ? saturate(l, d) : d;
}

/* NaN: 0, but the value 1 << (width - 1) when the source is f64 or the result has 64 bits. */
hw_wir_val w_cvt_fi(lw *l, hw_wir_val a)
{
    hw_wir_val d = convert(l, lw_signed(l, 0) ? HW_W_F2I_S : HW_W_F2I_U, U, T, a);
    if (U == HW_T_F64 || T == HW_T_I64)
        lw_last(l)->flags |= HW_I_NAN_MIN;
    return d;
}

/* .ftz of f32: a subnormal becomes a zero of its sign. */
static hw_wir_val flush(lw *l, hw_wir_val a)
{
    hw_wir_val e = i32(l, HW_W_AND, a, 0x7f800000);
    hw_wir_val small = hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_EQ, HW_T_I32, e, hw_wir_imm(0));
    return sel(l, HW_T_I32, small, i32(l, HW_W_AND, a, 0x80000000), a);
}

hw_wir_val w_cvt_same(lw *l, hw_wir_val a)
{
    if (l->x->ftz)
        a = flush(l, a);
    return l->x->sat ? saturate(l, a) : a;
}

/* .satfinite: what overflowed becomes the largest finite value (NaN stays). */
static hw_wir_val no_infinity(lw *l, hw_wir_type half, hw_wir_val v)
{
    uint64_t infinity = half == HW_T_F16 ? 0x7c00 : 0x7f80;
    hw_wir_val m = hw_wir_op2(&l->b, HW_W_AND, HW_T_I16, v, hw_wir_imm(0x7fff));
    hw_wir_val over = hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_EQ, HW_T_I16, m, hw_wir_imm(infinity));
    return sel(l, HW_T_I16, over, hw_wir_op2(&l->b, HW_W_SUB, HW_T_I16, v, hw_wir_imm(1)), v);
}

static hw_wir_val to_half(lw *l, hw_wir_type half, hw_wir_val a)
{
    hw_wir_val v = convert(l, HW_W_FCVT, HW_T_F32, half, a);
    return lw_has(l, PTX_M_satfinite) ? no_infinity(l, half, v) : v;
}

hw_wir_val w_cvt_ff(lw *l, hw_wir_val a)
{
    if (hw_wir_bits(T) == 16 && hw_wir_bits(U) == 16) /* f16 <-> bf16: f32 holds both */
        return to_half(l, T, lw_cvt(l, HW_W_FCVT, U, HW_T_F32, a));
    if (hw_wir_bits(T) == 16 && U == HW_T_F32)
        return to_half(l, T, a);
    return convert(l, HW_W_FCVT, U, T, a);
}

hw_wir_val w_cvt_round(lw *l, hw_wir_val a)
{
    return lw_float(l, HW_W_FRINT, T, 1, a, HW_WIR_NONE, HW_WIR_NONE);
}

static hw_wir_val join(lw *l, hw_wir_val low, hw_wir_val high)
{
    low = lw_fit(l, low, HW_T_I16, HW_T_I32, false);
    high = i32(l, HW_W_SHL, lw_fit(l, high, HW_T_I16, HW_T_I32, false), 16);
    return hw_wir_op2(&l->b, HW_W_OR, HW_T_I32, low, high);
}

/* a goes to the upper half, b to the lower. */
hw_wir_val w_cvt_pack_half(lw *l, hw_wir_val a, hw_wir_val b)
{
    hw_wir_type half = T == HW_T_V2F16 ? HW_T_F16 : HW_T_BF16;
    hw_wir_val high = to_half(l, half, a);
    return join(l, to_half(l, half, b), high);
}

/* f32 with 10 bits of fraction: round on the pattern; infinities and NaNs as they are. */
hw_wir_val w_cvt_tf32(lw *l, hw_wir_val a)
{
    hw_wir_val up = a;
    if (lw_has(l, PTX_M_rna))
        up = i32(l, HW_W_ADD, a, 0x1000);
    else if (lw_has(l, PTX_M_rn))
        up = hw_wir_op2(&l->b, HW_W_ADD, HW_T_I32, i32(l, HW_W_ADD, a, 0xfff),
                        i32(l, HW_W_AND, i32(l, HW_W_SHR_U, a, 13), 1));
    hw_wir_val r = i32(l, HW_W_AND, up, 0xffffe000);
    hw_wir_val magnitude = i32(l, HW_W_AND, a, 0x7fffffff);
    if (lw_has(l, PTX_M_satfinite)) {
        hw_wir_val m = i32(l, HW_W_MIN_U, i32(l, HW_W_AND, r, 0x7fffffff), 0x7f7fe000);
        r = hw_wir_op2(&l->b, HW_W_OR, HW_T_I32, m, i32(l, HW_W_AND, a, 0x80000000));
    }
    uint64_t special = lw_has(l, PTX_M_satfinite) ? 0x7f800000 : 0x7f7fffff;
    hw_wir_val odd =
        hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_GT_U, HW_T_I32, magnitude, hw_wir_imm(special));
    r = sel(l, HW_T_I32, odd, a, r);
    if (!lw_has(l, PTX_M_relu))
        return r;
    hw_wir_val positive = hw_wir_op2(&l->b, HW_W_FMAX, HW_T_F32, r, hw_wir_imm(0));
    lw_last(l)->flags |= HW_I_NAN;
    return positive;
}

/* ---- narrow floats: two a register, a helper each ---- */

static uint32_t narrow_type(ptx_type t)
{
    static const uint8_t types[PTX_TYPE_COUNT] = {
        [PTX_E4M3X2] = HW_NARROW_E4M3, [PTX_E5M2X2] = HW_NARROW_E5M2,
        [PTX_E2M3X2] = HW_NARROW_E2M3, [PTX_E3M2X2] = HW_NARROW_E3M2,
        [PTX_E2M1X2] = HW_NARROW_E2M1, [PTX_UE8M0X2] = HW_NARROW_UE8M0,
        [PTX_F16X2] = HW_NARROW_F16,   [PTX_BF16X2] = HW_NARROW_BF16,
        [PTX_E4M3X4] = HW_NARROW_E4M3, [PTX_E5M2X4] = HW_NARROW_E5M2,
        [PTX_E2M3X4] = HW_NARROW_E2M3, [PTX_E3M2X4] = HW_NARROW_E3M2,
        [PTX_E2M1X4] = HW_NARROW_E2M1
    };
    return types[t];
}

static hw_wir_val narrow(lw *l, uint32_t how, ptx_type form, hw_wir_type result, uint32_t n,
                         const hw_wir_val *src)
{
    hw_wir_val d = lw_temp(l, result);
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_HELPER, result, 1, &d, n, src);
    i->imm = HW_H_NARROW;
    i->aux = how | narrow_type(form) << HW_NARROW_TYPE_SHIFT |
             (lw_has(l, PTX_M_relu) ? HW_NARROW_RELU : 0u) |
             (l->x->round == HW_ROUND_P ? HW_NARROW_UP : 0u) |
             (lw_has(l, PTX_M_satfinite) ? HW_NARROW_FINITE : 0u);
    return d;
}

static hw_wir_type narrow_pair(const lw *l)
{
    return l->x->type[0] == PTX_E2M1X2 ? HW_T_I8 : HW_T_I16;
}

hw_wir_val w_narrow_singles(lw *l, hw_wir_val a, hw_wir_val b)
{
    hw_wir_val src[2] = { lw_in_register(l, HW_T_F32, a), lw_in_register(l, HW_T_F32, b) };
    return narrow(l, HW_NARROW_FROM_SINGLES, l->x->type[0], narrow_pair(l), 2, src);
}

hw_wir_val w_narrow_pair(lw *l, hw_wir_val a)
{
    uint32_t how = l->x->type[1] == PTX_BF16X2 ? HW_NARROW_FROM_BF16 : HW_NARROW_FROM_HALVES;
    return narrow(l, how, l->x->type[0], narrow_pair(l), 1, &a);
}

hw_wir_val w_widen(lw *l, hw_wir_val a)
{
    return narrow(l, HW_NARROW_WIDEN, l->x->type[1], HW_T_I32, 1, &a);
}

/* .rs: two singles or {four}, then random bits. */
void w_narrow_random(lw *l)
{
    const ptx_operand *o = l->i->ops;
    uint32_t n = l->i->nops == 3 ? 4 : 2;
    hw_wir_val src[5];
    if (n == 4 && !lw_are_sources(l, &o[1], n, 32))
        return;
    for (uint32_t k = 0; k < n; k++)
        src[k] = lw_in_register(
            l, HW_T_F32, lw_read(l, n == 4 ? lw_fragment_part(&o[1], k) : &o[1 + k], PTX_F32));
    src[n] = lw_in_register(l, HW_T_I32, lw_read(l, &o[l->i->nops - 1], PTX_B32));
    ptx_type t = l->x->type[0];
    hw_wir_type result = t == PTX_E2M1X4 ? HW_T_I16 : HW_T_I32;
    lw_result(l, narrow(l, HW_NARROW_RANDOM, t, result, n + 1, src));
}

/* cvt.pack.sat: a and b clamped to T; c supplies what is above them. */
hw_wir_val w_cvt_pack(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c)
{
    unsigned bits = ptx_types[l->x->type[0]].bits; /* 2 to 16 */
    bool is_signed = ptx_types[l->x->type[0]].text[0] == 's';
    uint64_t high = max_of(bits, is_signed), low = is_signed ? ~high & UINT32_MAX : 0;
    hw_wir_val parts[2] = { b, a };
    hw_wir_val r = bits == 16 ? hw_wir_imm(0) : i32(l, HW_W_SHL, c, 2 * bits);
    for (unsigned k = 0; k < 2; k++) {
        hw_wir_val p = i32(l, HW_W_MIN_S, i32(l, HW_W_MAX_S, parts[k], low), high);
        p = i32(l, HW_W_AND, p, (UINT64_C(1) << bits) - 1);
        if (k)
            p = i32(l, HW_W_SHL, p, bits);
        r = hw_wir_op2(&l->b, HW_W_OR, HW_T_I32, r, p);
    }
    return r;
}

/* ---- state spaces: all but shared are generic addresses already ---- */

hw_wir_val w_cvta(lw *l, hw_wir_val a, bool to)
{
    if (l->x->space != PTX_SPACE_SHARED)
        return a;
    if (lw_has(l, PTX_M_shared_cluster))
        return lw_cvta_cluster(l, a, to);
    hw_wir_val base = lw_nullary(l, HW_W_SHARED_BASE, HW_T_I64, 0);
    base = lw_fit(l, base, HW_T_I64, T, false);
    return hw_wir_op2(&l->b, to ? HW_W_SUB : HW_W_ADD, T, a, base);
}

static hw_wir_space space_of(ptx_space s)
{
    static const uint8_t spaces[] = { [PTX_SPACE_PARAM] = HW_SPACE_PARAM,
                                      [PTX_SPACE_LOCAL] = HW_SPACE_LOCAL,
                                      [PTX_SPACE_SHARED] = HW_SPACE_SHARED,
                                      [PTX_SPACE_GLOBAL] = HW_SPACE_GLOBAL,
                                      [PTX_SPACE_CONST] = HW_SPACE_CONST };
    return spaces[s];
}

hw_wir_val w_isspacep(lw *l)
{
    const ptx_operand *a = &l->i->ops[1];
    bool narrow = a->kind == PTX_O_REG && ptx_types[l->f->regs.ptr[a->reg].type].bits == 32;
    hw_wir_val v = lw_read(l, a, narrow ? PTX_U32 : PTX_U64);
    if (narrow)
        v = lw_fit(l, v, HW_T_I32, HW_T_I64, false);
    hw_wir_val p = hw_wir_op1(&l->b, HW_W_ISSPACE, HW_T_I64, v);
    lw_last(l)->space = space_of(l->x->space);
    return lw_has(l, PTX_M_shared_cluster) ? lw_is_in_cluster(l, v, p) : p;
}

/* SPDX-License-Identifier: Apache-2.0
 * Floating-point instructions, comparison and selection that are more than one operation
 * (PTX ISA 9.7.3 to 9.7.6). */
#include "lower.h"

#define T (l->t[0])
#define U (l->t[1])

/* mad.f32 of sm_1x rounds the product toward zero before the sum (PTX ISA, mad). */
hw_wir_val w_mad_1x(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c)
{
    hw_wir_val p = lw_float(l, HW_W_FMUL, T, 2, a, b, HW_WIR_NONE);
    lw_last(l)->round = HW_ROUND_Z;
    lw_last(l)->flags &= ~(uint32_t)HW_I_SAT;
    return lw_float(l, HW_W_FADD, T, 2, p, c, HW_WIR_NONE);
}

/* rcp.approx.ftz.f64, rsqrt.approx.f64: only the upper 32 bits of input and result count; the lower
 * ones are taken as zero and given as zero (PTX ISA, rcp.approx.ftz.f64). */
hw_wir_val w_approx64(lw *l, hw_wir_op op, hw_wir_val a)
{
    return lw_float(l, op, HW_T_F64, 1, a, HW_WIR_NONE, HW_WIR_NONE);
}

/* A pair of f32 in 64 bits, each half by itself (PTX ISA, add.f32x2). */
hw_wir_val w_two(lw *l, hw_wir_op op, unsigned nsrc)
{
    hw_wir_val src[3], r = HW_WIR_NONE;
    for (unsigned k = 0; k < nsrc; k++)
        src[k] = lw_source(l, k);
    for (unsigned half = 0; half < 2; half++) {
        hw_wir_val p[3] = { HW_WIR_NONE, HW_WIR_NONE, HW_WIR_NONE };
        for (unsigned k = 0; k < nsrc; k++)
            p[k] = lw_part(l, src[k], HW_T_I64, 32 * half, HW_T_I32);
        hw_wir_val v = lw_float(l, op, HW_T_F32, nsrc, p[0], p[1], p[2]);
        v = lw_fit(l, v, HW_T_I32, HW_T_I64, false);
        if (half)
            v = hw_wir_op2(&l->b, HW_W_SHL, HW_T_I64, v, hw_wir_imm(32));
        r = half ? hw_wir_op2(&l->b, HW_W_OR, HW_T_I64, r, v) : v;
    }
    return r;
}

hw_wir_val w_testp(lw *l, hw_wir_val a)
{
    static const struct {
        uint8_t mod, class;
    } tests[] = { { PTX_M_finite, HW_CLASS_FINITE }, { PTX_M_infinite, HW_CLASS_INFINITE },
                  { PTX_M_number, HW_CLASS_NUMBER }, { PTX_M_notanumber, HW_CLASS_NAN },
                  { PTX_M_normal, HW_CLASS_NORMAL }, { PTX_M_subnormal, HW_CLASS_SUBNORMAL } };
    hw_wir_val p = hw_wir_op1(&l->b, HW_W_FCLASS, T, a);
    for (size_t k = 0; k < HW_COUNTOF(tests); k++)
        if (lw_has(l, tests[k].mod))
            lw_last(l)->imm = tests[k].class;
    return p;
}

hw_wir_val w_to_f32(lw *l, hw_wir_val a)
{
    return lw_cvt(l, HW_W_FCVT, U, HW_T_F32, a);
}

static hw_wir_val one_half(lw *l, hw_wir_op op, hw_wir_type half, hw_wir_val a)
{
    hw_wir_val f = lw_cvt(l, HW_W_FCVT, half, HW_T_F32, a);
    return lw_cvt(l, HW_W_FCVT, HW_T_F32, half, hw_wir_op1(&l->b, op, HW_T_F32, f));
}

static hw_wir_val join(lw *l, hw_wir_val low, hw_wir_val high)
{
    low = lw_fit(l, low, HW_T_I16, HW_T_I32, false);
    high = lw_fit(l, high, HW_T_I16, HW_T_I32, false);
    high = hw_wir_op2(&l->b, HW_W_SHL, HW_T_I32, high, hw_wir_imm(16));
    return hw_wir_op2(&l->b, HW_W_OR, HW_T_I32, low, high);
}

static bool is_pair(hw_wir_type t)
{
    return t == HW_T_V2F16 || t == HW_T_V2BF16;
}

static hw_wir_type part_type(hw_wir_type t)
{
    return t == HW_T_V2F16 ? HW_T_F16 : t == HW_T_V2BF16 ? HW_T_BF16 : t;
}

hw_wir_val w_half_via_f32(lw *l, hw_wir_op op, hw_wir_val a)
{
    hw_wir_type half = part_type(T);
    if (!is_pair(T))
        return one_half(l, op, half, a);
    hw_wir_val low = one_half(l, op, half, lw_part(l, a, HW_T_I32, 0, HW_T_I16));
    hw_wir_val high = one_half(l, op, half, lw_part(l, a, HW_T_I32, 16, HW_T_I16));
    return join(l, low, high);
}

/* The NaN that a tensor map fills in outside: not the one that arithmetic gives. */
static uint64_t outside_nan(hw_wir_type half)
{
    return half == HW_T_F16 ? 0x7eff : 0x7fdf;
}

static hw_wir_val one_fma_oob(lw *l, hw_wir_type half, const hw_wir_val src[3], hw_wir_val d)
{
    hw_wir_val any = HW_WIR_NONE;
    for (unsigned k = 0; k < 3; k++) {
        hw_wir_val p =
            hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_EQ, HW_T_I16, src[k], hw_wir_imm(outside_nan(half)));
        any = k ? hw_wir_op2(&l->b, HW_W_OR, HW_T_I1, any, p) : p;
    }
    return hw_wir_op3(&l->b, HW_W_SELECT, HW_T_I16, any, hw_wir_imm(0), d);
}

/* fma.oob: +0 where an operand comes from outside a tensor (PTX ISA 9.7.4.4). */
hw_wir_val w_fma_oob(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c)
{
    hw_wir_val d = lw_float(l, HW_W_FFMA, T, 3, a, b, c), src[3] = { a, b, c }, halves[2];
    if (!is_pair(T))
        return one_fma_oob(l, T, src, d);
    for (unsigned half = 0; half < 2; half++) {
        hw_wir_val parts[3];
        for (unsigned k = 0; k < 3; k++)
            parts[k] = lw_part(l, src[k], HW_T_I32, 16 * half, HW_T_I16);
        hw_wir_val r = lw_part(l, d, HW_T_I32, 16 * half, HW_T_I16);
        halves[half] = one_fma_oob(l, part_type(T), parts, r);
    }
    return join(l, halves[0], halves[1]);
}

/* ---- comparisons ---- */

typedef struct comparison {
    uint8_t mod, is_signed, is_unsigned, is_float; /* hw_wir_cond of each; 0 there: EQ */
} comparison;

/* clang-format off */
static const comparison comparisons[] = {
    { PTX_M_eq,  HW_C_EQ,   HW_C_EQ,   HW_C_FEQ },  { PTX_M_ne,  HW_C_NE,   HW_C_NE,   HW_C_FNE },
    { PTX_M_lt,  HW_C_LT_S, HW_C_LT_U, HW_C_FLT },  { PTX_M_le,  HW_C_LE_S, HW_C_LE_U, HW_C_FLE },
    { PTX_M_gt,  HW_C_GT_S, HW_C_GT_U, HW_C_FGT },  { PTX_M_ge,  HW_C_GE_S, HW_C_GE_U, HW_C_FGE },
    { PTX_M_lo,  HW_C_LT_U, HW_C_LT_U, HW_C_FLT },  { PTX_M_ls,  HW_C_LE_U, HW_C_LE_U, HW_C_FLE },
    { PTX_M_hi,  HW_C_GT_U, HW_C_GT_U, HW_C_FGT },  { PTX_M_hs,  HW_C_GE_U, HW_C_GE_U, HW_C_FGE },
    { PTX_M_equ, 0, 0, HW_C_FEQU }, { PTX_M_neu, 0, 0, HW_C_FNEU }, { PTX_M_ltu, 0, 0, HW_C_FLTU },
    { PTX_M_leu, 0, 0, HW_C_FLEU }, { PTX_M_gtu, 0, 0, HW_C_FGTU }, { PTX_M_geu, 0, 0, HW_C_FGEU },
    { PTX_M_num, 0, 0, HW_C_FNUM }, { PTX_M_nan, 0, 0, HW_C_FNAN },
};
/* clang-format on */

static bool is_float(hw_wir_type t)
{
    return t == HW_T_F16 || t == HW_T_BF16 || t == HW_T_F32 || t == HW_T_F64;
}

static hw_wir_val compare(lw *l, hw_wir_type t, bool is_signed, hw_wir_val a, hw_wir_val b)
{
    const comparison *c = comparisons;
    while (c->mod != l->x->cmp)
        c++;
    if (!is_float(t))
        return hw_wir_cmp(&l->b, HW_W_ICMP, is_signed ? c->is_signed : c->is_unsigned, t, a, b);
    hw_wir_val p = hw_wir_cmp(&l->b, HW_W_FCMP, c->is_float, t, a, b);
    if (l->x->ftz)
        lw_last(l)->flags |= HW_I_FTZ;
    return p;
}

static hw_wir_val negate(lw *l, hw_wir_val p)
{
    return hw_wir_op1(&l->b, HW_W_NOT, HW_T_I1, p);
}

/* p, combined with the third source if the form has .and, .or, .xor. */
static hw_wir_val combine(lw *l, hw_wir_val p, unsigned source)
{
    static const struct {
        uint8_t mod, op;
    } ops[] = { { PTX_M_and, HW_W_AND }, { PTX_M_or, HW_W_OR }, { PTX_M_xor, HW_W_XOR } };
    for (size_t k = 0; k < HW_COUNTOF(ops); k++)
        if (l->x->boolop == ops[k].mod)
            return hw_wir_op2(&l->b, ops[k].op, HW_T_I1, p, lw_source(l, source));
    return p;
}

/* Both halves of a packed comparison give a predicate each. */
static void setp_pair(lw *l, hw_wir_val a, hw_wir_val b)
{
    const ptx_operand *d = &l->i->ops[0];
    hw_wir_val p[2];
    for (unsigned k = 0; k < 2; k++) {
        hw_wir_val x = lw_part(l, a, HW_T_I32, 16 * k, HW_T_I16);
        hw_wir_val y = lw_part(l, b, HW_T_I32, 16 * k, HW_T_I16);
        p[k] = combine(l, compare(l, part_type(T), false, x, y), 2);
    }
    if (d->kind == PTX_O_PAIR) {
        lw_set(l, &d->items[1], PTX_PRED, p[1]);
        lw_set(l, &d->items[0], PTX_PRED, p[0]);
        return;
    }
    lw_set(l, d, PTX_PRED, hw_wir_op2(&l->b, HW_W_AND, HW_T_I1, p[0], p[1]));
}

/* setp d|q: q is the same with the comparison negated (PTX ISA, setp). */
void w_setp(lw *l)
{
    hw_wir_val a = lw_source(l, 0), b = lw_source(l, 1);
    if (is_pair(T)) {
        setp_pair(l, a, b);
        return;
    }
    const ptx_operand *d = &l->i->ops[0];
    hw_wir_val p = compare(l, T, lw_signed(l, 0), a, b);
    if (d->kind != PTX_O_PAIR) {
        lw_set(l, d, PTX_PRED, combine(l, p, 2));
        return;
    }
    /* both are computed before either is written: a source may be a result */
    hw_wir_val both[2] = { combine(l, p, 2), HW_WIR_NONE };
    both[1] = combine(l, negate(l, p), 2);
    hw_wir_val copy = lw_temp(l, HW_T_I1);
    hw_wir_mov(&l->b, HW_T_I1, copy, both[0]);
    lw_set(l, &d->items[1], PTX_PRED, both[1]);
    lw_set(l, &d->items[0], PTX_PRED, copy);
}

/* What set writes for true, by its result's type: all ones or 1.0. */
static uint64_t set_true(hw_wir_type t)
{
    switch (t) {
    case HW_T_F32:
        return 0x3f800000;
    case HW_T_F16:
        return 0x3c00;
    case HW_T_BF16:
        return 0x3f80;
    default:
        return UINT64_MAX;
    }
}

static hw_wir_val set_value(lw *l, hw_wir_type result, hw_wir_type t, hw_wir_val a, hw_wir_val b)
{
    hw_wir_val p = combine(l, compare(l, t, lw_signed(l, 1), a, b), 2);
    return hw_wir_op3(&l->b, HW_W_SELECT, result, p, lw_const(result, set_true(result)),
                      hw_wir_imm(0));
}

static hw_wir_val half_of(lw *l, hw_wir_val v, unsigned k)
{
    return lw_part(l, v, HW_T_I32, 16 * k, HW_T_I16);
}

hw_wir_val w_set(lw *l)
{
    hw_wir_val a = lw_source(l, 0), b = lw_source(l, 1);
    if (!is_pair(U))
        return set_value(l, T, U, a, b);
    /* packed: a result a half, integers get 16 bits each */
    hw_wir_type part = is_pair(T) ? part_type(T) : HW_T_I16;
    hw_wir_val low = set_value(l, part, part_type(U), half_of(l, a, 0), half_of(l, b, 0));
    hw_wir_val high = set_value(l, part, part_type(U), half_of(l, a, 1), half_of(l, b, 1));
    return join(l, low, high);
}

hw_wir_val w_slct(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c)
{
    bool f = l->x->row->id == PTX_ROW_slct_f32;
    hw_wir_val p = hw_wir_cmp(&l->b, f ? HW_W_FCMP : HW_W_ICMP, f ? HW_C_FGE : HW_C_GE_S,
                              f ? HW_T_F32 : HW_T_I32, c, hw_wir_imm(0));
    if (l->x->ftz)
        lw_last(l)->flags |= HW_I_FTZ;
    return hw_wir_op3(&l->b, HW_W_SELECT, T, p, a, b);
}

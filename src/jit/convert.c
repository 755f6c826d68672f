/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between floats, and between floats and integers (PTX ISA, cvt).
 */
#include "float.h"
#include "ops.h"

static bool plain_float(unsigned t)
{
    return t == HW_T_F16 || t == HW_T_BF16 || t == HW_T_F32 || t == HW_T_F64;
}

/* SAT, RELU and FTZ of a result already rounded. */
static hw_lv finish(hw_gen *g, const hw_wir_insn *in, hw_lv bits)
{
    if (!(in->flags & (HW_I_SAT | HW_I_RELU | HW_I_FTZ)))
        return bits;
    hw_wir_insn rest = *in;
    rest.type = in->type2;
    return hwg_from_float(g, in, in->type2, hwg_to_float(g, &rest, in->type2, bits));
}

LANE(fcvt)
{
    if (!plain_float(in->type) || !plain_float(in->type2)) {
        hwg_fail(g, HW_E_UNSUPPORTED, "conversion between packed floats");
        return a[0];
    }
    hw_lv x = hwg_to_float(g, in, in->type, a[0]);
    if (in->type2 == HW_T_F64 && in->type != HW_T_F64)
        x = LLVMBuildFPExt(g->b, x, hwg_like(x, g->f64), "");
    bool directed = in->round == HW_ROUND_Z || in->round == HW_ROUND_M || in->round == HW_ROUND_P;
    if (in->type2 == HW_T_F64 || !directed)
        return hwg_from_float(g, in, in->type2, x);
    return finish(g, in, hwg_narrow(g, x, in->type2, in->round));
}

static hw_lt int_type(hw_gen *g, unsigned type)
{
    return hwg_reg_type(g, hw_wir_reg_type((hw_wir_type)type));
}

LANE(f2i)
{
    static const char *const rounder[] = { "llvm.roundeven", NULL, "llvm.floor", "llvm.ceil",
                                           "llvm.round" };
    bool is_signed = in->op == HW_W_F2I_S;
    hw_lv x = hwg_to_float(g, in, in->type, a[0]);
    if (rounder[in->round])
        x = hwg_intr1(g, rounder[in->round], x);
    hw_lt to = hwg_like(x, int_type(g, in->type2)), types[] = { to, LLVMTypeOf(x) };
    hw_lv r = hwg_intr(g, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat", 2, types, 1, &x);
    if (in->flags & HW_I_NAN_MIN) {
        unsigned w = hw_wir_bits((hw_wir_type)in->type2);
        hw_lv least = hwg_k(to, UINT64_C(1) << (w - 1));
        r = b_select(g, b_fcmp(g, LLVMRealUNO, x, x), least, r);
    }
    return r;
}

static hw_lv int_to(hw_gen *g, hw_lv x, hw_lt elem, bool is_signed)
{
    hw_lt t = hwg_like(x, elem);
    return is_signed ? LLVMBuildSIToFP(g->b, x, t, "") : LLVMBuildUIToFP(g->b, x, t, "");
}

/* A 64-bit integer as the nearest double, and how that compares with it. */
typedef struct nearest {
    hw_lv f, above, below, negative;
} nearest;

static nearest to_double(hw_gen *g, hw_lv x, bool is_signed)
{
    nearest n = { .f = int_to(g, x, g->f64, is_signed) };
    hw_lt types[] = { LLVMTypeOf(x), LLVMTypeOf(n.f) };
    hw_lv back = hwg_intr(g, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat", 2, types, 1, &n.f);
    hw_lv end = hwg_kf(types[1], is_signed ? 9223372036854775808.0 : 18446744073709551616.0);
    hw_lv past = b_fcmp(g, LLVMRealOGE, n.f, end);
    n.above = b_or(g, past, b_icmp(g, is_signed ? LLVMIntSGT : LLVMIntUGT, back, x));
    n.below = b_icmp(g, is_signed ? LLVMIntSLT : LLVMIntULT, back, x);
    n.below = b_and(g, b_not(g, past), n.below);
    n.negative = is_signed ? b_icmp(g, LLVMIntSLT, x, hwg_klike(x, 0)) : hwg_klike(past, 0);
    return n;
}

/* Rounded to odd instead: rounding to a narrower type is then exact. */
static hw_lv wide_odd(hw_gen *g, hw_lv x, bool is_signed)
{
    nearest n = to_double(g, x, is_signed);
    hw_lv too_far = b_zext(g, b_select(g, n.negative, n.below, n.above), g->i64);
    hw_lv inexact = b_zext(g, b_or(g, n.above, n.below), g->i64);
    return hwg_as(g, b_or(g, b_sub(g, hwg_bits(g, n.f), too_far), inexact), g->f64);
}

/* An integer as a float to narrow from: exact, or rounded to odd. */
static hw_lv widest(hw_gen *g, const hw_wir_insn *in, hw_lv x, bool is_signed)
{
    return hw_wir_bits((hw_wir_type)in->type) > 32 ? wide_odd(g, x, is_signed)
                                                   : int_to(g, x, g->f64, is_signed);
}

LANE(i2f)
{
    bool is_signed = in->op == HW_W_I2F_S;
    bool to_nearest = in->round == HW_ROUND_N || in->round == HW_ROUND_NA;
    if (to_nearest && in->type2 == HW_T_F64)
        return hwg_from_float(g, in, in->type2, int_to(g, a[0], g->f64, is_signed));
    if (to_nearest && in->type2 == HW_T_F32)
        return hwg_from_float(g, in, in->type2, int_to(g, a[0], g->f32, is_signed));
    if (in->type2 != HW_T_F64) {
        hw_lv x = widest(g, in, a[0], is_signed);
        return finish(g, in, hwg_narrow(g, x, in->type2, in->round));
    }
    if (hw_wir_bits((hw_wir_type)in->type) <= 32)
        return finish(g, in, hwg_bits(g, int_to(g, a[0], g->f64, is_signed)));
    nearest n = to_double(g, a[0], is_signed);
    hw_lv bits = hwg_directed(g, hwg_bits(g, n.f), n.above, n.below, n.negative, in->round);
    return finish(g, in, bits);
}

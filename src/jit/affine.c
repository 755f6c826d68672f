/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that are not VARYING although an operand is AFFINE: one scalar operation instead of a
 * vector one. The analysis promises (hw_wir.h): S of the result is the operation applied to the S
 * of its sources; R is that of the first source with a row term, or a product's uniform factor.
 */
#include "gen.h"

/* Least and greatest of 32 lane constants. */
void hwg_extremes(const int64_t *x, int64_t *lo, int64_t *hi)
{
    *lo = *hi = x ? x[0] : 0;
    for (unsigned l = 1; x && l < GEN_LANES; l++) {
        *lo = x[l] < *lo ? x[l] : *lo;
        *hi = x[l] > *hi ? x[l] : *hi;
    }
}

/* s + c + d*r stays within 32 bits (signed or unsigned) in every lane: an i1. All in 64 bits. */
static hw_lv stays(hw_gen *g, hw_lanes x, hw_lv s64, hw_lv r64, bool is_signed)
{
    int64_t clo, chi, dlo, dhi;
    hwg_extremes(x.c, &clo, &chi);
    hwg_extremes(x.d, &dlo, &dhi);
    hw_lv lo = b_add(g, s64, hwg_k(g->i64, (uint64_t)clo));
    hw_lv hi = b_add(g, s64, hwg_k(g->i64, (uint64_t)chi));
    if (x.d) {
        hw_lv p = b_mul(g, r64, hwg_k(g->i64, (uint64_t)dlo));
        hw_lv q = b_mul(g, r64, hwg_k(g->i64, (uint64_t)dhi));
        lo = b_add(g, lo, hwg_intr2(g, "llvm.smin", p, q));
        hi = b_add(g, hi, hwg_intr2(g, "llvm.smax", p, q));
    }
    hw_lv bias = hwg_k(g->i64, is_signed ? (uint64_t)1 << 31 : 0);
    hw_lv top = hwg_k(g->i64, (uint64_t)1 << 32);
    hw_lv a = b_icmp(g, LLVMIntULT, b_add(g, lo, bias), top);
    if (clo == chi && !x.d)
        return a;
    return b_and(g, a, b_icmp(g, LLVMIntULT, b_add(g, hi, bias), top));
}

static bool resizes(const hw_wir_insn *in)
{
    return in->op == HW_W_SEXT || in->op == HW_W_ZEXT || in->op == HW_W_TRUNC;
}

/* The row factor of the result. */
static hw_lv row_factor(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a)
{
    hw_lt t = hwg_reg_type(g, hw_wir_reg_type((hw_wir_type)in->type2));
    for (unsigned i = 0; i < in->nsrc; i++)
        if (a[i].d && resizes(in)) /* signed even for ZEXT: a row step may go down */
            return in->op == HW_W_TRUNC ? b_trunc(g, a[i].r, t) : b_sext(g, a[i].r, t);
        else if (a[i].d)
            return a[i].r;
    return a[0].kind == HW_SHAPE_UNIFORM ? a[0].s : a[1].s;
}

bool hwg_affine(hw_gen *g, const hw_wir_insn *in)
{
    const hw_shape *to = &g->an->shape[in->dst[0].reg];
    if (to->kind == HW_SHAPE_VARYING || in->nsrc == 0)
        return false;
    hw_lanes a[8];
    hw_lv s[8];
    for (unsigned i = 0; i < in->nsrc; i++) {
        a[i] = hwg_src(g, in, i);
        if (a[i].kind == HW_SHAPE_VARYING)
            return false;
        s[i] = a[i].s;
    }
    hw_lanes out = { .kind = to->kind, .c = to->c, .d = to->d };
    out.s = hw_gen_ops[in->op].lane(g, in, s);
    if (to->d)
        out.r = row_factor(g, in, a);
    if (g->an->wrap_guard[g->an->first_insn[g->block] + g->index])
        hwg_deopt(g, stays(g, a[0], out.s, out.r, in->op == HW_W_SEXT));
    hwg_write(g, in->dst[0], out);
    return true;
}

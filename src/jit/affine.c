/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on values of known shape, s + c[lane] + d[lane] * r: a few scalar instructions instead
 * of a vector one. A rule answers with the result's shape in terms of its operands'; regs.c says it
 * in the terms of the destination. Where no rule applies the operation is evaluated for lane 0
 * (and, for a row term, one more lane) as a scalar.
 */
#include "gen.h"

typedef bool rule_fn(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, hw_lanes *out);

static int64_t at(const int64_t *x, unsigned l)
{
    return x ? x[l] : 0;
}

/* p*x + q*y lane by lane; NULL if all zero. */
static const int64_t *combine(hw_gen *g, const int64_t *x, int64_t p, const int64_t *y, int64_t q)
{
    int64_t *z = HW_NEW_N(g->arena, int64_t, GEN_LANES);
    bool any = false;
    for (unsigned l = 0; l < GEN_LANES; l++) {
        z[l] = (int64_t)((uint64_t)p * (uint64_t)at(x, l) + (uint64_t)q * (uint64_t)at(y, l));
        any |= z[l] != 0;
    }
    return any ? z : NULL;
}

static bool constant(hw_lanes x, int64_t *k)
{
    if (x.kind != HW_SHAPE_UNIFORM || !LLVMIsAConstantInt(x.s))
        return false;
    *k = LLVMConstIntGetSExtValue(x.s);
    return true;
}

static bool rule_mov(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, hw_lanes *out)
{
    (void)g, (void)in;
    *out = a[0];
    return true;
}

static bool sum(hw_gen *g, const hw_lanes *a, int64_t sign, hw_lanes *out)
{
    if (a[0].d && a[1].d)
        return false;
    out->s = sign > 0 ? b_add(g, a[0].s, a[1].s) : b_sub(g, a[0].s, a[1].s);
    out->c = combine(g, a[0].c, 1, a[1].c, sign);
    out->d = combine(g, a[0].d, 1, a[1].d, sign);
    out->r = a[0].d ? a[0].r : a[1].r;
    return true;
}

static bool rule_add(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, hw_lanes *out)
{
    (void)in;
    return sum(g, a, 1, out);
}

static bool rule_sub(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, hw_lanes *out)
{
    (void)in;
    return sum(g, a, -1, out);
}

/* All lanes of c equal: part of s. */
static bool flat(const int64_t *c)
{
    for (unsigned l = 1; l < GEN_LANES; l++)
        if (at(c, l) != at(c, 0))
            return false;
    return true;
}

static bool product(hw_gen *g, hw_lanes x, hw_lanes u, hw_lanes *out)
{
    int64_t k;
    if (u.kind != HW_SHAPE_UNIFORM)
        return false;
    *out = x;
    out->s = b_mul(g, x.s, u.s);
    if (constant(u, &k)) {
        out->c = combine(g, x.c, k, NULL, 0);
        out->d = combine(g, x.d, k, NULL, 0);
    } else if (!x.d) {
        out->c = NULL;
        out->d = x.c;
        out->r = u.s;
    } else if (flat(x.c)) {
        if (x.c)
            out->s = b_mul(g, b_add(g, x.s, hwg_klike(x.s, (uint64_t)at(x.c, 0))), u.s);
        out->c = NULL;
        out->r = b_mul(g, x.r, u.s);
    } else {
        return false;
    }
    return true;
}

static bool rule_mul(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, hw_lanes *out)
{
    (void)in;
    return product(g, a[0], a[1], out) || product(g, a[1], a[0], out);
}

static bool rule_shl(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, hw_lanes *out)
{
    int64_t k;
    unsigned bits = hw_wir_bits((hw_wir_type)in->type);
    if (!constant(a[1], &k) || (uint64_t)k >= bits || k >= 63)
        return false;
    return product(g, a[0], hwg_uniform(hwg_klike(a[0].s, (uint64_t)1 << k)), out);
}

static hw_lv widen(hw_gen *g, const hw_wir_insn *in, hw_lv x)
{
    hw_lt t = hwg_reg_type(g, hw_wir_reg_type((hw_wir_type)in->type2));
    return in->op == HW_W_SEXT   ? b_sext(g, x, t)
           : in->op == HW_W_ZEXT ? b_zext(g, x, t)
                                 : b_trunc(g, x, t);
}

static void extremes(const int64_t *x, int64_t *lo, int64_t *hi)
{
    *lo = *hi = at(x, 0);
    for (unsigned l = 1; l < GEN_LANES; l++) {
        *lo = at(x, l) < *lo ? at(x, l) : *lo;
        *hi = at(x, l) > *hi ? at(x, l) : *hi;
    }
}

/* s + c + d*r stays within 32 bits (signed or unsigned) in every lane: an i1. All in 64 bits. */
static hw_lv stays(hw_gen *g, hw_lanes x, hw_lv s64, hw_lv r64, bool is_signed)
{
    int64_t clo, chi, dlo, dhi;
    extremes(x.c, &clo, &chi);
    extremes(x.d, &dlo, &dhi);
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
    hw_lv b = b_icmp(g, LLVMIntULT, b_add(g, hi, bias), top);
    return b_and(g, a, b);
}

static bool rule_extend(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, hw_lanes *out)
{
    *out = a[0];
    out->s = widen(g, in, a[0].s);
    /* The row factor is signed whatever the extension: a row step may go down. */
    out->r = a[0].d ? b_sext(g, a[0].r, hwg_elem(out->s)) : NULL;
    if (g->an->wrap_guard[g->an->first_insn[g->block] + g->index])
        hwg_deopt(g, stays(g, a[0], out->s, out->r, in->op == HW_W_SEXT));
    return true;
}

static bool rule_trunc(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, hw_lanes *out)
{
    *out = a[0];
    out->s = widen(g, in, a[0].s);
    out->r = a[0].d ? widen(g, in, a[0].r) : NULL;
    return true;
}

static bool rule_not(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, hw_lanes *out)
{
    (void)in;
    out->s = b_not(g, a[0].s);
    out->c = combine(g, a[0].c, -1, NULL, 0);
    out->d = combine(g, a[0].d, -1, NULL, 0);
    out->r = a[0].r;
    return true;
}

static rule_fn *const rules[HW_W_COUNT] = {
    [HW_W_MOV] = rule_mov,     [HW_W_BITCAST] = rule_mov, [HW_W_ADD] = rule_add,
    [HW_W_SUB] = rule_sub,     [HW_W_MUL] = rule_mul,     [HW_W_SHL] = rule_shl,
    [HW_W_SEXT] = rule_extend, [HW_W_ZEXT] = rule_extend, [HW_W_TRUNC] = rule_trunc,
    [HW_W_NOT] = rule_not,
};

/* ---- evaluation of single lanes ---- */

static hw_lv in_lane(hw_gen *g, hw_lanes x, unsigned l)
{
    if (x.kind == HW_SHAPE_UNIFORM)
        return x.s;
    if (x.kind == HW_SHAPE_VARYING)
        return LLVMBuildExtractElement(g->b, x.v, LLVMConstInt(g->i32, l, false), "");
    hw_lv v = b_add(g, x.s, hwg_klike(x.s, (uint64_t)at(x.c, l)));
    return x.d ? b_add(g, v, b_mul(g, x.r, hwg_klike(x.r, (uint64_t)at(x.d, l)))) : v;
}

static hw_lv evaluate(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, unsigned l)
{
    hw_lv x[4];
    for (unsigned i = 0; i < in->nsrc; i++)
        x[i] = in_lane(g, a[i], l);
    return hw_gen_ops[in->op].lane(g, in, x);
}

/* A lane whose row number differs from lane 0's by one. */
static unsigned next_row(const int64_t *d)
{
    for (unsigned l = 1; l < GEN_LANES; l++)
        if (d[l] - d[0] == 1 || d[l] - d[0] == -1)
            return l;
    return 0;
}

static bool by_lanes(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a, const hw_shape *to,
                     hw_lanes *out)
{
    hw_lv v0 = evaluate(g, in, a, 0);
    out->c = to->c;
    out->d = to->d;
    out->s = b_sub(g, v0, hwg_klike(v0, (uint64_t)at(to->c, 0)));
    if (!to->d)
        return true;
    unsigned l = next_row(to->d);
    if (!l)
        return false;
    hw_lv step = b_sub(g, evaluate(g, in, a, l), v0);
    step = b_sub(g, step, hwg_klike(v0, (uint64_t)(at(to->c, l) - at(to->c, 0))));
    out->r = to->d[l] > to->d[0] ? step : LLVMBuildNeg(g->b, step, "");
    out->s = b_sub(g, out->s, b_mul(g, out->r, hwg_klike(v0, (uint64_t)to->d[0])));
    return true;
}

bool hwg_affine(hw_gen *g, const hw_wir_insn *in)
{
    if (in->ndst != 1 || !hwg_wanted(in->dst[0]) || in->nsrc > 4 || !hw_gen_ops[in->op].lane)
        return false;
    const hw_shape *to = &g->an->shape[in->dst[0].reg];
    if (to->kind != HW_SHAPE_AFFINE)
        return false;
    hw_lanes a[4], out = { .kind = HW_SHAPE_AFFINE };
    bool known = true;
    for (unsigned i = 0; i < in->nsrc; i++) {
        a[i] = hwg_src(g, in, i);
        known &= a[i].kind != HW_SHAPE_VARYING;
    }
    rule_fn *rule = rules[in->op];
    if (known && rule && rule(g, in, a, &out)) {
        out.kind = out.c || out.d ? HW_SHAPE_AFFINE : HW_SHAPE_UNIFORM;
        hwg_write(g, in->dst[0], out);
        return true;
    }
    out = (hw_lanes){ .kind = HW_SHAPE_AFFINE };
    if (!by_lanes(g, in, a, to, &out))
        return false;
    hwg_write(g, in->dst[0], out);
    return true;
}

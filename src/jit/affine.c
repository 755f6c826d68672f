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

/* The operation on scalars; `a` are its sources, none VARYING. */
static hw_lanes combine(hw_gen *g, const hw_wir_insn *in, const hw_lanes *a)
{
    const hw_shape *to = &g->an->shape[in->dst[0].reg];
    hw_lanes out = { .kind = to->kind, .c = to->c, .d = to->d };
    hw_lv s[8];
    for (unsigned i = 0; i < in->nsrc; i++)
        s[i] = a[i].s;
    out.s = hw_gen_ops[in->op].lane(g, in, s);
    if (to->d)
        out.r = row_factor(g, in, a);
    return out;
}

/* ---- guards tested here for later instructions of the block (wir, guards.c) ---- */

typedef struct early {
    const hw_wir_insn *insns; /* of the block */
    uint32_t leader;
    uint32_t first_insn;
    bool *wanted;
    hw_lanes *value;
} early;

/* The instruction from the leader on that wrote it before instruction i; UINT32_MAX: none, it is in its slot. */
static uint32_t definition(const early *e, uint32_t i, hw_wir_val v)
{
    while (v.kind == HW_V_REG && i-- > e->leader)
        for (uint32_t d = 0; d < e->insns[i].ndst; d++)
            if (e->insns[i].dst[d].kind == HW_V_REG && e->insns[i].dst[d].reg == v.reg)
                return i;
    return UINT32_MAX;
}

/* Marks what the guards of the leader's group need; the last of them. */
static uint32_t want(const hw_gen *g, early *e, uint32_t n)
{
    uint32_t last = e->leader;
    for (uint32_t i = e->leader + 1; i < n; i++)
        if (g->an->guard_at[e->first_insn + i] == e->first_insn + e->leader)
            e->wanted[last = i] = true;
    for (uint32_t i = last; i > e->leader; i--)
        for (uint32_t k = 0; e->wanted[i] && k < e->insns[i].nsrc; k++) {
            uint32_t d = definition(e, i, e->insns[i].src[k]);
            if (d != UINT32_MAX)
                e->wanted[d] = true;
        }
    return last;
}

static void compute(hw_gen *g, early *e, uint32_t i, hw_lanes a[8])
{
    const hw_wir_insn *in = &e->insns[i];
    for (unsigned k = 0; k < in->nsrc; k++) {
        uint32_t d = definition(e, i, in->src[k]);
        a[k] = d == UINT32_MAX ? hwg_src(g, in, k) : e->value[d];
    }
    e->value[i] = combine(g, in, a);
}

/* `first` is the leader's own result. */
static hw_lv others_stay(hw_gen *g, hw_lanes first)
{
    const hw_wir_block *w = &g->f->blocks.ptr[g->block];
    uint32_t n = (uint32_t)w->insns.len;
    early e = { w->insns.ptr, g->index, g->an->first_insn[g->block], HW_NEW_N(g->arena, bool, n),
                HW_NEW_N(g->arena, hw_lanes, n) };
    uint32_t last = want(g, &e, n);
    hw_lv all = LLVMConstInt(g->i1, 1, false);
    e.value[e.leader] = first;
    for (uint32_t i = e.leader + 1; i <= last; i++) {
        hw_lanes a[8];
        if (!e.wanted[i])
            continue;
        compute(g, &e, i, a);
        const hw_lanes *x = &e.value[i];
        if (g->an->guard_at[e.first_insn + i] == e.first_insn + e.leader)
            all = b_and(g, all, stays(g, a[0], x->s, x->r, e.insns[i].op == HW_W_SEXT));
    }
    return all;
}

bool hwg_affine(hw_gen *g, const hw_wir_insn *in)
{
    if (g->an->shape[in->dst[0].reg].kind == HW_SHAPE_VARYING || in->nsrc == 0)
        return false;
    hw_lanes a[8];
    for (unsigned i = 0; i < in->nsrc; i++) {
        a[i] = hwg_src(g, in, i);
        if (a[i].kind == HW_SHAPE_VARYING)
            return false;
    }
    hw_lanes out = combine(g, in, a);
    if (g->an->wrap_guard[g->an->first_insn[g->block] + g->index]) {
        hw_lv mine = stays(g, a[0], out.s, out.r, in->op == HW_W_SEXT);
        hwg_deopt(g, b_and(g, mine, others_stay(g, out)));
    }
    hwg_write(g, in->dst[0], out);
    return true;
}

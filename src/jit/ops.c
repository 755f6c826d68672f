/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of emitters, and the driver of one instruction: guard, operands, emitter, result.
 */
#include "ops.h"

const hw_gen_op hw_gen_ops[HW_W_COUNT] = {
#define HW_LANE(op, fn)  [HW_W_##op] = { .lane = hwg_lane_##fn },
#define HW_WHOLE(op, fn) [HW_W_##op] = { .whole = hwg_whole_##fn },
#include "ops.def"
#undef HW_LANE
#undef HW_WHOLE
};

/* The guard as a mask of lanes, combined with the block's. */
hw_lv hwg_executing(hw_gen *g, const hw_wir_insn *in)
{
    if (in->guard.kind != HW_V_REG)
        return g->mask;
    hw_lanes p = hwg_read(g, in->guard, HW_T_I1);
    bool negated = in->flags & HW_I_NEG_GUARD;
    hw_lv none = hwg_k(g->i32, 0);
    if (p.kind == HW_SHAPE_UNIFORM)
        return negated ? b_select(g, p.s, none, g->mask) : b_select(g, p.s, g->mask, none);
    hw_lv m = hwg_vec_mask(g, p.v);
    return b_and(g, g->mask, negated ? b_not(g, m) : m);
}

/* ---- addresses of the form base + extended 32-bit index * scale ---- */

static hw_gen_index *known_index(hw_gen *g, hw_wir_val v)
{
    if (v.kind != HW_V_REG || g->index_of[v.reg].stamp != g->stamp)
        return NULL;
    return &g->index_of[v.reg];
}

static bool scaled(hw_gen *g, const hw_wir_insn *in, hw_gen_index *out)
{
    const hw_gen_index *k = known_index(g, in->src[0]);
    if (!k || in->src[1].kind != HW_V_IMM || in->src[1].imm > 8 || !LLVMIsConstant(k->base))
        return false;
    *out = *k;
    out->scale *= in->op == HW_W_SHL ? (int64_t)1 << in->src[1].imm : (int64_t)in->src[1].imm;
    return out->scale != 0;
}

static bool moved(hw_gen *g, const hw_wir_insn *in, const hw_lanes *x, hw_gen_index *out)
{
    for (unsigned i = 0; i < 2; i++) {
        const hw_gen_index *k = known_index(g, in->src[i]);
        if (!k || x[1 - i].kind != HW_SHAPE_UNIFORM)
            continue;
        *out = *k;
        out->base = b_add(g, k->base, x[1 - i].s);
        return true;
    }
    return false;
}

/* After a varying 64-bit result was written: what it is made of, for gathers. */
static void remember_index(hw_gen *g, const hw_wir_insn *in, const hw_lanes *x)
{
    hw_gen_index out = { 0 };
    bool known = false;
    if ((in->op == HW_W_SEXT || in->op == HW_W_ZEXT) && in->type == HW_T_I32) {
        hw_lv v = hwg_vector(g, x[0], HW_T_I32);
        out = (hw_gen_index){ hwg_k(g->i64, 0), v, 1, in->op == HW_W_SEXT, 0 };
        known = true;
    } else if (in->op == HW_W_MUL || in->op == HW_W_SHL) {
        known = scaled(g, in, &out);
    } else if (in->op == HW_W_ADD) {
        known = moved(g, in, x, &out);
    } else if (in->op == HW_W_MOV && known_index(g, in->src[0])) {
        out = *known_index(g, in->src[0]);
        known = true;
    }
    out.stamp = known ? g->stamp : 0;
    g->index_of[in->dst[0].reg] = out;
}

static void lane_wise(hw_gen *g, const hw_wir_insn *in, hw_gen_lane_fn *fn)
{
    hw_lanes x[8];
    hw_lv a[8] = { 0 };
    bool scalar = true;
    HW_CHECK(in->nsrc <= HW_COUNTOF(x));
    for (unsigned i = 0; i < in->nsrc; i++) {
        x[i] = hwg_src(g, in, i);
        scalar &= x[i].kind == HW_SHAPE_UNIFORM;
    }
    for (unsigned i = 0; i < in->nsrc; i++)
        a[i] = scalar ? x[i].s : hwg_vector(g, x[i], hwg_src_type(g, in, i));
    hw_lv r;
    if (!scalar && hwg_outlines(g, in)) {
        hw_lt elem = hwg_reg_type(g, hwg_dst_type(g, in->dst[0]));
        r = hwg_outlined(g, in, fn, a, hwg_vec_of(elem, GEN_LANES));
    } else {
        r = fn(g, in, a);
    }
    hwg_write(g, in->dst[0], scalar ? hwg_uniform(r) : hwg_varying(r));
    if (!scalar && in->guard.kind != HW_V_REG && hwg_dst_type(g, in->dst[0]) == HW_T_I64)
        remember_index(g, in, x);
}

WHOLE(nop)
{
    (void)g;
    (void)in;
}

/* Must the code be jumped over when no lane executes? Results of pure ones are just not kept. */
static bool has_effect(const hw_wir_insn *in)
{
    return hw_wir_ops[in->op].flags & (HW_WF_M | HW_WF_E | HW_WF_S);
}

void hwg_insn(hw_gen *g, const hw_wir_insn *in)
{
    const hw_gen_op *op = &hw_gen_ops[in->op];
    g->in = in;
    hwg_debug_at(g, in);
    g->exec = hwg_executing(g, in);
    hwg_count_guard(g);
    if (op->lane) {
        if (hwg_wanted(in->dst[0]) && !hwg_affine(g, in))
            lane_wise(g, in, op->lane);
        return;
    }
    if (!op->whole) {
        hwg_fail(g, HW_E_UNSUPPORTED, "warp operation %s", hw_wir_ops[in->op].name);
        return;
    }
    if (in->guard.kind != HW_V_REG || !has_effect(in)) {
        hwg_count_access(g, in);
        op->whole(g, in);
        return;
    }
    hw_lb yes = hwg_block(g, "guarded"), join = hwg_block(g, "join");
    LLVMBuildCondBr(g->b, b_icmp(g, LLVMIntNE, g->exec, hwg_k(g->i32, 0)), yes, join);
    hwg_at(g, yes);
    hwg_count_access(g, in);
    op->whole(g, in);
    LLVMBuildBr(g->b, join);
    hwg_at(g, join);
}

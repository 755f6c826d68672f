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

static void lane_wise(hw_gen *g, const hw_wir_insn *in, hw_gen_lane_fn *fn)
{
    hw_lanes x[8];
    hw_lv a[8];
    bool scalar = true;
    HW_CHECK(in->nsrc <= HW_COUNTOF(x));
    for (unsigned i = 0; i < in->nsrc; i++) {
        x[i] = hwg_src(g, in, i);
        scalar &= x[i].kind == HW_SHAPE_UNIFORM;
    }
    for (unsigned i = 0; i < in->nsrc; i++)
        a[i] = scalar ? x[i].s : hwg_vector(g, x[i], hwg_src_type(g, in, i));
    hw_lv r = fn(g, in, a);
    hwg_write(g, in->dst[0], scalar ? hwg_uniform(r) : hwg_varying(r));
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
    g->exec = hwg_executing(g, in);
    if (op->lane) {
        if (hwg_wanted(in->dst[0]) && !hwg_affine(g, in))
            lane_wise(g, in, op->lane);
        return;
    }
    HW_CHECK(op->whole);
    if (in->guard.kind != HW_V_REG || !has_effect(in)) {
        op->whole(g, in);
        return;
    }
    hw_lb yes = hwg_block(g, "guarded"), join = hwg_block(g, "join");
    LLVMBuildCondBr(g->b, b_icmp(g, LLVMIntNE, g->exec, hwg_k(g->i32, 0)), yes, join);
    hwg_at(g, yes);
    op->whole(g, in);
    LLVMBuildBr(g->b, join);
    hwg_at(g, join);
}

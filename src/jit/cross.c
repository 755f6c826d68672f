/* SPDX-License-Identifier: Apache-2.0
 *
 * Across lanes: votes, shuffles, matches, reductions. All lanes of a warp are in one vector, so
 * these are shuffles and arithmetic on masks.
 */
#include "access.h"
#include "ops.h"

/* ---- votes ---- */

static hw_lv lanes_with(hw_gen *g, const hw_wir_insn *in, unsigned i)
{
    hw_lanes p = hwg_src(g, in, i);
    if (p.kind == HW_SHAPE_UNIFORM)
        return b_select(g, p.s, g->exec, hwg_k(g->i32, 0));
    return b_and(g, hwg_vec_mask(g, p.v), g->exec);
}

/* A mask operand: one value, or one a lane. */
static hw_lv members(hw_gen *g, const hw_wir_insn *in, unsigned i)
{
    hw_lanes m = hwg_src(g, in, i);
    return m.kind == HW_SHAPE_UNIFORM ? m.s : hwg_src_vec(g, in, i);
}

static hw_lanes of_lanes(hw_lv x)
{
    return hwg_lanes(x) == 1 ? hwg_uniform(x) : hwg_varying(x);
}

WHOLE(vote)
{
    hw_lv b = members(g, in, 1);
    hw_lv yes = b_and(g, hwg_splat(g, lanes_with(g, in, 0), hwg_lanes(b)), b);
    hw_lv all = b_and(g, hwg_splat(g, g->exec, hwg_lanes(b)), b), zero = hwg_klike(b, 0), r = yes;
    if (in->op == HW_W_VOTE_ALL)
        r = b_icmp(g, LLVMIntEQ, yes, all);
    else if (in->op == HW_W_VOTE_ANY)
        r = b_icmp(g, LLVMIntNE, yes, zero);
    else if (in->op == HW_W_VOTE_UNI)
        r = b_or(g, b_icmp(g, LLVMIntEQ, yes, all), b_icmp(g, LLVMIntEQ, yes, zero));
    hwg_write(g, in->dst[0], of_lanes(r));
}

WHOLE(activemask)
{
    hwg_write(g, in->dst[0], hwg_uniform(g->exec));
}

static hw_lv lane_numbers(hw_gen *g)
{
    int64_t x[GEN_LANES];
    for (unsigned l = 0; l < GEN_LANES; l++)
        x[l] = l;
    return hwg_kvec(g, g->i32, x, GEN_LANES);
}

WHOLE(elect)
{
    hw_lv m = members(g, in, 0), n = hwg_splat(g, g->exec, hwg_lanes(m));
    m = b_and(g, m, n);
    hw_lt t = LLVMTypeOf(m);
    hw_lv low = hwg_intr(g, "llvm.cttz", 1, &t, 2, (hw_lv[]){ m, LLVMConstInt(g->i1, 0, false) });
    hwg_write(g, in->dst[0], of_lanes(low));
    hw_lv me = hwg_lanes(low) == 1 ? hwg_splat(g, low, GEN_LANES) : low;
    hwg_write(g, in->dst[1], hwg_varying(b_icmp(g, LLVMIntEQ, lane_numbers(g), me)));
}

/* ---- shuffles (PTX ISA, shfl.sync) ---- */

typedef struct route {
    hw_lv from, inside; /* source lane, predicate */
} route;

static route route_of(hw_gen *g, const hw_wir_insn *in)
{
    hw_lv b = hwg_src_vec(g, in, 1), c = hwg_src_vec(g, in, 2), lane = lane_numbers(g);
    hw_lv low = hwg_klike(b, 31), bval = b_and(g, b, low), cval = b_and(g, c, low);
    hw_lv seg = b_and(g, b_lshr(g, c, hwg_klike(c, 8)), low), other = b_xor(g, seg, low);
    hw_lv least = b_and(g, lane, seg), most = b_or(g, least, b_and(g, cval, other)), j = lane;
    switch (in->imm) {
    case HW_SHFL_UP:
        j = b_sub(g, lane, bval);
        break;
    case HW_SHFL_DOWN:
        j = b_add(g, lane, bval);
        break;
    case HW_SHFL_BFLY:
        j = b_xor(g, lane, bval);
        break;
    default:
        j = b_or(g, least, b_and(g, bval, other));
    }
    hw_lv ok = b_icmp(g, in->imm == HW_SHFL_UP ? LLVMIntSGE : LLVMIntSLE, j, most);
    return (route){ b_and(g, b_select(g, ok, j, lane), low), ok };
}

/* x[from[lane]] for variable lanes. */
static hw_lv permute(hw_gen *g, hw_lv x, hw_lv from)
{
    if (LLVMIsConstant(from)) {
        int idx[GEN_LANES];
        for (unsigned l = 0; l < GEN_LANES; l++)
            idx[l] = (int)LLVMConstIntGetZExtValue(LLVMGetAggregateElement(from, l));
        return hwg_shuffle(g, x, NULL, idx, GEN_LANES);
    }
    if (!g->avx512) {
        hw_lv mem = hwg_scratch(g), off = b_zext(g, b_shl(g, from, hwg_klike(from, 2)), g->i64);
        hwg_store(g, x, mem, 64);
        hw_lv p = LLVMBuildGEP2(g->b, g->i8, mem, &off, 1, "");
        hw_lt t = LLVMTypeOf(x), types[] = { t, LLVMTypeOf(p) };
        hw_lv all = hwg_mask_vec(g, hwg_k(g->i32, UINT32_MAX));
        hw_lv a[] = { p, hwg_k(g->i32, 4), all, LLVMGetPoison(t) };
        return hwg_intr(g, "llvm.masked.gather", 2, types, 4, a);
    }
    int lo[16], hi[16], both[GEN_LANES];
    for (int l = 0; l < GEN_LANES; l++) {
        if (l < 16) {
            lo[l] = l;
            hi[l] = l + 16;
        }
        both[l] = l;
    }
    hw_lv a = hwg_shuffle(g, x, NULL, lo, 16), b = hwg_shuffle(g, x, NULL, hi, 16), r[2];
    for (unsigned i = 0; i < 2; i++) {
        hw_lv idx = hwg_shuffle(g, from, NULL, i ? hi : lo, 16);
        r[i] = hwg_intr(g, "llvm.x86.avx512.vpermi2var.d.512", 0, NULL, 3, (hw_lv[]){ a, idx, b });
    }
    return hwg_shuffle(g, r[0], r[1], both, GEN_LANES);
}

/* What lanes give that do not take part is undefined in PTX; on devices they give 0, and programs
 * that add up fewer values than a warp has lanes count on it. */
static hw_lv given(hw_gen *g, const hw_wir_insn *in)
{
    hw_lv x = hwg_src_vec(g, in, 0);
    return hwg_all_execute(g) ? x : b_select(g, hwg_mask_vec(g, g->exec), x, hwg_klike(x, 0));
}

WHOLE(shfl)
{
    route r = route_of(g, in);
    hw_lanes x = hwg_src(g, in, 0);
    hw_lv v = x.kind == HW_SHAPE_UNIFORM ? NULL : permute(g, given(g, in), r.from);
    hwg_write(g, in->dst[0], v ? hwg_varying(v) : x);
    hwg_write(g, in->dst[1], hwg_varying(r.inside));
}

/* ---- loops over groups of lanes ---- */

typedef struct groups {
    hw_lb loop, end, from;
    hw_lv left; /* lanes not done yet */
} groups;

static groups begin_groups(hw_gen *g)
{
    groups q = { .loop = hwg_block(g, "group"), .end = hwg_block(g, "grouped") };
    q.from = LLVMGetInsertBlock(g->b);
    hw_lv some = b_icmp(g, LLVMIntNE, g->exec, hwg_k(g->i32, 0));
    LLVMBuildCondBr(g->b, some, q.loop, q.end);
    hwg_at(g, q.loop);
    q.left = LLVMBuildPhi(g->b, g->i32, "");
    LLVMAddIncoming(q.left, &g->exec, &q.from, 1);
    return q;
}

static void end_groups(hw_gen *g, groups *q, hw_lv done)
{
    hw_lv rest = b_and(g, q->left, b_not(g, done));
    hw_lb here = LLVMGetInsertBlock(g->b);
    LLVMBuildCondBr(g->b, b_icmp(g, LLVMIntNE, rest, hwg_k(g->i32, 0)), q->loop, q->end);
    LLVMAddIncoming(q->left, &rest, &here, 1);
    hwg_at(g, q->end);
}

static hw_lv lane_of(hw_gen *g, hw_lv v, hw_lv lane)
{
    return LLVMBuildExtractElement(g->b, v, b_and(g, lane, hwg_k(g->i32, 31)), "");
}

static hw_lv bit_of(hw_gen *g, hw_lv lane)
{
    return b_shl(g, hwg_k(g->i32, 1), b_and(g, lane, hwg_k(g->i32, 31)));
}

static void put_lanes(hw_gen *g, hw_lv slot, hw_lv mask, hw_lv x)
{
    hw_lv old = LLVMBuildLoad2(g->b, LLVMGetAllocatedType(slot), slot, "");
    LLVMBuildStore(g->b, b_select(g, hwg_mask_vec(g, mask), hwg_splat(g, x, GEN_LANES), old), slot);
}

static hw_lv get_lanes(hw_gen *g, hw_lv slot)
{
    return LLVMBuildLoad2(g->b, LLVMGetAllocatedType(slot), slot, "");
}

/* ---- match ---- */

static void match_any(hw_gen *g, const hw_wir_insn *in, hw_lv a, hw_lv b)
{
    hw_lv slot = hwg_alloca(g, LLVMVectorType(g->i32, GEN_LANES), "match");
    groups q = begin_groups(g);
    hw_lv first = hwg_first_lane(g, q.left);
    hw_lv same = b_icmp(g, LLVMIntEQ, a, hwg_splat(g, lane_of(g, a, first), GEN_LANES));
    hw_lv m = b_and(g, hwg_vec_mask(g, same), g->exec);
    put_lanes(g, slot, m, m);
    end_groups(g, &q, m);
    hw_lv bv = hwg_lanes(b) == 1 ? hwg_splat(g, b, GEN_LANES) : b;
    hw_lv r = b_and(g, get_lanes(g, slot), bv);
    hwg_write(g, in->dst[0], hwg_varying(r));
}

static void match_all(hw_gen *g, const hw_wir_insn *in, hw_lv a, hw_lv b)
{
    hw_lv value = hwg_alloca(g, LLVMVectorType(g->i32, GEN_LANES), "match");
    hw_lv mask = hwg_alloca(g, g->i32, "match");
    hw_lv bv = hwg_lanes(b) == 1 ? hwg_splat(g, b, GEN_LANES) : b;
    LLVMBuildStore(g->b, hwg_k(g->i32, 0), mask);
    groups q = begin_groups(g);
    hw_lv first = hwg_first_lane(g, q.left);
    hw_lv mine = b_and(g, lane_of(g, bv, first), g->exec);
    hw_lv same = b_icmp(g, LLVMIntEQ, a, hwg_splat(g, lane_of(g, a, first), GEN_LANES));
    hw_lv missing = b_and(g, mine, b_not(g, hwg_vec_mask(g, same)));
    hw_lv ok = b_icmp(g, LLVMIntEQ, missing, hwg_k(g->i32, 0));
    hw_lv r = b_select(g, ok, mine, hwg_k(g->i32, 0));
    hw_lv done = b_or(g, mine, bit_of(g, first));
    put_lanes(g, value, done, r);
    hw_lv old = LLVMBuildLoad2(g->b, g->i32, mask, "");
    hw_lv with = b_or(g, old, b_select(g, ok, done, hwg_k(g->i32, 0)));
    LLVMBuildStore(g->b, with, mask);
    end_groups(g, &q, done);
    hw_lv p = LLVMBuildLoad2(g->b, g->i32, mask, "");
    hwg_write(g, in->dst[0], hwg_varying(get_lanes(g, value)));
    hwg_write(g, in->dst[1], hwg_varying(hwg_mask_vec(g, p)));
}

WHOLE(match)
{
    hw_lv a = hwg_src_vec(g, in, 0), b = members(g, in, 1);
    if (in->op == HW_W_MATCH_ANY)
        match_any(g, in, a, b);
    else
        match_all(g, in, a, b);
}

/* ---- reductions ---- */

typedef struct reduction {
    const char *name;
    uint64_t identity;
} reduction;

static const reduction reductions[HW_ATOM_COUNT] = {
    [HW_ATOM_ADD] = { "llvm.vector.reduce.add", 0 },
    [HW_ATOM_MIN_S] = { "llvm.vector.reduce.smin", 0x7fffffff },
    [HW_ATOM_MIN_U] = { "llvm.vector.reduce.umin", 0xffffffff },
    [HW_ATOM_MAX_S] = { "llvm.vector.reduce.smax", 0x80000000 },
    [HW_ATOM_MAX_U] = { "llvm.vector.reduce.umax", 0 },
    [HW_ATOM_AND] = { "llvm.vector.reduce.and", 0xffffffff },
    [HW_ATOM_OR] = { "llvm.vector.reduce.or", 0 },
    [HW_ATOM_XOR] = { "llvm.vector.reduce.xor", 0 },
};

static hw_lv reduce(hw_gen *g, const reduction *r, hw_lv a, hw_lv mask)
{
    return hwg_intr1(g, r->name, b_select(g, hwg_mask_vec(g, mask), a, hwg_klike(a, r->identity)));
}

WHOLE(redux)
{
    const reduction *r = &reductions[in->atom];
    if (!r->name || in->type != HW_T_I32) {
        hwg_fail(g, HW_E_UNSUPPORTED, "this reduction across lanes");
        return;
    }
    hw_lv a = hwg_src_vec(g, in, 0), b = members(g, in, 1);
    if (hwg_lanes(b) == 1) {
        hwg_write(g, in->dst[0], hwg_uniform(reduce(g, r, a, b_and(g, b, g->exec))));
        return;
    }
    hw_lv slot = hwg_alloca(g, LLVMVectorType(g->i32, GEN_LANES), "redux");
    groups q = begin_groups(g);
    hw_lv first = hwg_first_lane(g, q.left);
    hw_lv mine = b_and(g, lane_of(g, b, first), g->exec);
    hw_lv done = b_or(g, mine, bit_of(g, first));
    put_lanes(g, slot, done, reduce(g, r, a, mine));
    end_groups(g, &q, done);
    hwg_write(g, in->dst[0], hwg_varying(get_lanes(g, slot)));
}

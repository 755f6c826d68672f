/* SPDX-License-Identifier: Apache-2.0
 *
 * Integer division of vectors, which processors do not have: through floating point where that is
 * exact (a quotient of integers below 2^53 cannot round up to the next integer), else lane by lane.
 */
#include "ops.h"

static unsigned bits_of(hw_lv v)
{
    return LLVMGetIntTypeWidth(hwg_elem(v));
}

typedef struct quotient {
    hw_lv q, r;
} quotient;

/* Unsigned, b not 0, both exact in type f. */
static quotient by_float(hw_gen *g, hw_lv a, hw_lv b, hw_lt f)
{
    hw_lt ft = hwg_like(a, f);
    hw_lv x = LLVMBuildUIToFP(g->b, a, ft, ""), y = LLVMBuildUIToFP(g->b, b, ft, "");
    hw_lv q = LLVMBuildFPToUI(g->b, b_fdiv(g, x, y), LLVMTypeOf(a), "");
    return (quotient){ q, b_sub(g, a, b_mul(g, q, b)) };
}

typedef struct lane_divide {
    hw_lv a, b; /* memory: 32 values each; a receives the quotient */
} lane_divide;

static void divide_lane(hw_gen *g, hw_lv lane, void *ctx)
{
    lane_divide *m = ctx;
    hw_lv off = b_shl(g, b_zext(g, lane, g->i64), hwg_k(g->i64, 3));
    hw_lv pa = hwg_gep(g, m->a, off), pb = hwg_gep(g, m->b, off);
    hwg_store(g, b_udiv(g, hwg_load(g, g->i64, pa, 8), hwg_load(g, g->i64, pb, 8)), pa, 8);
}

static hw_lv by_lane(hw_gen *g, hw_lv a, hw_lv b)
{
    lane_divide m = { hwg_scratch(g), hwg_gep_k(g, hwg_scratch(g), 8 * GEN_LANES) };
    hwg_store(g, a, m.a, 64);
    hwg_store(g, b, m.b, 64);
    hwg_lane_loop(g, hwg_k(g->i32, UINT32_MAX), divide_lane, &m);
    return hwg_load(g, LLVMTypeOf(a), m.a, 64);
}

/* 64 bits: mostly sizes and indices far below 2^53. */
static quotient wide(hw_gen *g, hw_lv a, hw_lv b)
{
    hw_lb quick = hwg_block(g, "quick"), slow = hwg_block(g, "slow"), end = hwg_block(g, "divided");
    hw_lv high = b_or(g, a, b), limit = hwg_klike(a, UINT64_C(1) << 52);
    hw_lv small = hwg_vec_mask(g, b_icmp(g, LLVMIntULT, high, limit));
    LLVMBuildCondBr(g->b, b_icmp(g, LLVMIntEQ, small, hwg_k(g->i32, UINT32_MAX)), quick, slow);
    hwg_at(g, quick);
    hw_lv q1 = by_float(g, a, b, g->f64).q;
    quick = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, end);
    hwg_at(g, slow);
    hw_lv q2 = by_lane(g, a, b);
    slow = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, end);
    hwg_at(g, end);
    hw_lv q = LLVMBuildPhi(g->b, LLVMTypeOf(a), "");
    LLVMAddIncoming(q, (hw_lv[]){ q1, q2 }, (hw_lb[]){ quick, slow }, 2);
    return (quotient){ q, b_sub(g, a, b_mul(g, q, b)) };
}

static quotient narrow(hw_gen *g, hw_lv a, hw_lv b)
{
    hw_lt t = hwg_elem(a);
    quotient w = by_float(g, b_zext(g, a, g->i32), b_zext(g, b, g->i32), g->f32);
    return (quotient){ b_trunc(g, w.q, t), b_trunc(g, w.r, t) };
}

static bool constant_divisor(hw_lv b)
{
    if (hwg_lanes(b) > 1)
        b = LLVMIsConstant(b) ? LLVMGetAggregateElement(b, 0) : NULL;
    return b && LLVMIsAConstantInt(b) && LLVMConstIntGetZExtValue(b) != 0;
}

/* Unsigned quotient and remainder, b not 0. */
static quotient divide(hw_gen *g, hw_lv a, hw_lv b)
{
    if (hwg_lanes(a) == 1 || constant_divisor(b))
        return (quotient){ b_udiv(g, a, b), b_urem(g, a, b) };
    unsigned w = bits_of(a);
    if (w <= 16)
        return narrow(g, a, b);
    return w == 32 ? by_float(g, a, b, g->f64) : wide(g, a, b);
}

static hw_lv magnitude(hw_gen *g, hw_lv x)
{
    hw_lt t = LLVMTypeOf(x);
    return hwg_intr(g, "llvm.abs", 1, &t, 2, (hw_lv[]){ x, LLVMConstInt(g->i1, 0, false) });
}

static hw_lv negate_if(hw_gen *g, hw_lv sign, hw_lv x)
{
    hw_lv neg = b_icmp(g, LLVMIntSLT, sign, hwg_klike(sign, 0));
    return b_select(g, neg, LLVMBuildNeg(g->b, x, ""), x);
}

static quotient divide_any(hw_gen *g, const hw_lv *a, bool is_signed)
{
    hw_lv zero = hwg_klike(a[0], 0), none = b_icmp(g, LLVMIntEQ, a[1], zero);
    hw_lv b = b_select(g, none, hwg_klike(zero, 1), a[1]);
    quotient z = { 0 };
    if (is_signed) {
        z = divide(g, magnitude(g, a[0]), magnitude(g, b));
        z.q = negate_if(g, b_xor(g, a[0], b), z.q);
        z.r = negate_if(g, a[0], z.r);
    } else {
        z = divide(g, a[0], b);
    }
    z.q = b_select(g, none, hwg_klike(zero, UINT64_MAX), z.q);
    z.r = b_select(g, none, a[0], z.r);
    return z;
}

LANE(div_u)
{
    (void)in;
    return divide_any(g, a, false).q;
}

LANE(div_s)
{
    (void)in;
    return divide_any(g, a, true).q;
}

LANE(rem_u)
{
    (void)in;
    return divide_any(g, a, false).r;
}

LANE(rem_s)
{
    (void)in;
    return divide_any(g, a, true).r;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * PTX's approximate functions, within the errors that the PTX ISA documents, by sequences of exactly
 * rounded operations only: the same bits on every processor and for single values and vectors.
 *
 * Coefficients: minimax fits (Remez exchange) of this project; the largest relative error of each
 * polynomial stands beside it. Rounding adds about 2^-24 a step.
 */
#include "float.h"
#include "ops.h"

#include <math.h>

hw_lv hwg_polynomial(hw_gen *g, hw_lv x, const double *c, unsigned n)
{
    hw_lt t = LLVMTypeOf(x);
    hw_lv r = hwg_kf(t, c[0]);
    for (unsigned i = 1; i < n; i++)
        r = hwg_fma(g, r, x, hwg_kf(t, c[i]));
    return r;
}

static hw_lv kf(hw_lv like, double x)
{
    return hwg_kf(LLVMTypeOf(like), x);
}

static hw_lv neg(hw_gen *g, hw_lv x)
{
    return LLVMBuildFNeg(g->b, x, "");
}

typedef hw_lv function1(hw_gen *g, hw_lv x);

static hw_lv apply(hw_gen *g, const hw_wir_insn *in, hw_lv a, function1 *f)
{
    return hwg_from_float(g, in, in->type, f(g, hwg_to_float(g, in, in->type, a)));
}

/* ---- reciprocals and roots ---- */

static hw_lv rcp(hw_gen *g, hw_lv x)
{
    return b_fdiv(g, kf(x, 1), x);
}

static hw_lv root(hw_gen *g, hw_lv x)
{
    return hwg_intr1(g, "llvm.sqrt", x);
}

static hw_lv exact_rsqrt(hw_gen *g, hw_lv x)
{
    return rcp(g, root(g, x));
}

/* rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 give the upper half of the result's bits. */
static hw_lv upper_half(hw_gen *g, const hw_wir_insn *in, hw_lv bits)
{
    bool cut = in->type == HW_T_F64 && in->flags & HW_I_FTZ;
    return cut ? b_and(g, bits, hwg_klike(bits, UINT64_C(0xffffffff00000000))) : bits;
}

LANE(rcp)
{
    return upper_half(g, in, apply(g, in, a[0], rcp));
}

LANE(sqrt)
{
    return apply(g, in, a[0], root);
}

LANE(div_approx)
{
    hw_lv x = hwg_to_float(g, in, in->type, a[0]), y = hwg_to_float(g, in, in->type, a[1]);
    return hwg_from_float(g, in, in->type, b_fdiv(g, x, y));
}

LANE(div_full)
{
    return hwg_lane_div_approx(g, in, a);
}

/* Normal positive x: an estimate y from the bits (3.5 %), then y / sqrt(1 - r) as a polynomial of
 * r = 1 - x y^2, which is within 0.0682. Far cheaper than a root and a division. */
static hw_lv quick_rsqrt(hw_gen *g, hw_lv x)
{
    static const double c[] = { 0.27495063552200477, 0.3139303645812014, 0.3749976999698563,
                                0.4999983483636645 }; /* 2^-25.3 of the result */
    hw_lv bits = hwg_bits(g, x);
    hw_lv guess = b_sub(g, hwg_klike(bits, 0x5f374730), b_lshr(g, bits, hwg_klike(bits, 1)));
    hw_lv y = hwg_as(g, guess, g->f32);
    hw_lv r = hwg_fma(g, neg(g, b_fmul(g, x, y)), y, kf(x, 1));
    return hwg_fma(g, b_fmul(g, y, r), hwg_polynomial(g, r, c, 4), y);
}

static hw_lv any_lane(hw_gen *g, hw_lv bits)
{
    if (hwg_lanes(bits) == 1)
        return bits;
    if (hwg_lanes(bits) == GEN_LANES) /* lanes that do not execute hold anything */
        return b_icmp(g, LLVMIntNE, b_and(g, hwg_vec_mask(g, bits), g->exec), hwg_k(g->i32, 0));
    hw_lv m = b_bitcast(g, bits, hwg_int(g, hwg_lanes(bits)));
    return b_icmp(g, LLVMIntNE, m, hwg_klike(m, 0));
}

/* Zeros, denormals, infinities, NaNs and negative numbers are rare: aside, exactly. */
static hw_lv rsqrt(hw_gen *g, hw_lv x)
{
    hw_lv bits = hwg_bits(g, x), quick = quick_rsqrt(g, x);
    hw_lv off = b_sub(g, bits, hwg_klike(bits, 0x00800000));
    hw_lv odd = b_icmp(g, LLVMIntUGE, off, hwg_klike(bits, 0x7f000000));
    hw_lb from = LLVMGetInsertBlock(g->b), aside = hwg_block(g, "special"),
          on = hwg_block(g, "rsqrt");
    hwg_unlikely(g, any_lane(g, odd), aside, on);
    hwg_at(g, aside);
    hw_lv exact = b_select(g, odd, exact_rsqrt(g, x), quick);
    LLVMBuildBr(g->b, on);
    hwg_at(g, on);
    hw_lv r = LLVMBuildPhi(g->b, LLVMTypeOf(x), "");
    LLVMAddIncoming(r, (hw_lv[]){ quick, exact }, (hw_lb[]){ from, aside }, 2);
    return r;
}

LANE(rsqrt)
{
    function1 *f = in->type == HW_T_F64 ? exact_rsqrt : rsqrt;
    return upper_half(g, in, apply(g, in, a[0], f));
}

/* ---- sine and cosine ---- */

static const double MAGIC = 12582912.0; /* 1.5 * 2^23: adding it rounds to an integer */

/* An x too large to be reduced leaves anything: made something in [-1, 1], whose sine and cosine are
 * there too (PTX ISA, sin: no bound there). NaN stays. */
static hw_lv bounded(hw_gen *g, hw_lv x)
{
    x = b_select(g, b_fcmp(g, LLVMRealOGT, x, kf(x, 1)), kf(x, 1), x);
    return b_select(g, b_fcmp(g, LLVMRealOLT, x, kf(x, -1)), kf(x, -1), x);
}

/* r in [-pi/4, pi/4] and the quadrant's bits of x = quadrant * pi/2 + r. */
static hw_lv reduce(hw_gen *g, hw_lv x, hw_lv *quadrant)
{
    static const double parts[] = { 1.57079601287841796875, 3.1391647326017846353352069854736e-07,
                                    5.3903029534742383e-15 };
    hw_lv k = hwg_fma(g, x, kf(x, M_2_PI), kf(x, MAGIC));
    hw_lv n = neg(g, b_fsub(g, k, kf(x, MAGIC))), r = x;
    for (unsigned i = 0; i < HW_COUNTOF(parts); i++)
        r = hwg_fma(g, n, kf(x, parts[i]), r);
    *quadrant = hwg_bits(g, k);
    return bounded(g, r);
}

static hw_lv wave(hw_gen *g, hw_lv x, unsigned add)
{
    static const double s[] = { -0.00019509063364847346, 0.0083321185112586234,
                                -0.16666654023120081 }; /* 2^-27.9 */
    static const double c[] = { 2.4429212907875296e-05, -0.0013887288930736952,
                                0.041666645310787419 }; /* 2^-33 */
    hw_lv q, r = reduce(g, x, &q), y = b_fmul(g, r, r);
    hw_lv sine = hwg_fma(g, b_fmul(g, r, y), hwg_polynomial(g, y, s, 3), r);
    hw_lv half = hwg_fma(g, y, kf(x, -0.5), kf(x, 1));
    hw_lv cosine = hwg_fma(g, b_fmul(g, y, y), hwg_polynomial(g, y, c, 3), half);
    q = b_add(g, q, hwg_klike(q, add));
    hw_lv swap = b_icmp(g, LLVMIntNE, b_and(g, q, hwg_klike(q, 1)), hwg_klike(q, 0));
    hw_lv r1 = b_select(g, swap, cosine, sine);
    hw_lv sign = b_shl(g, b_and(g, q, hwg_klike(q, 2)), hwg_klike(q, 30));
    return hwg_as(g, b_xor(g, hwg_bits(g, r1), sign), g->f32);
}

static hw_lv sine(hw_gen *g, hw_lv x)
{
    return wave(g, x, 0);
}

static hw_lv cosine(hw_gen *g, hw_lv x)
{
    return wave(g, x, 1);
}

LANE(sin)
{
    return apply(g, in, a[0], sine);
}

LANE(cos)
{
    return apply(g, in, a[0], cosine);
}

/* ---- powers of two, logarithm ---- */

static hw_lv power_of_two(hw_gen *g, hw_lv i)
{
    hw_lv e = b_add(g, i, hwg_klike(i, 127));
    return hwg_as(g, b_shl(g, e, hwg_klike(e, 23)), g->f32);
}

static hw_lv ex2(hw_gen *g, hw_lv x)
{
    static const double c[] = { 0.00015336325588150829, 0.0013399742681598124, 0.009618517340580137,
                                0.055503292423422043,   0.2402264669163473,    0.69314720552335329,
                                1.0000000005725496 }; /* 2^-29 */
    x = b_select(g, b_fcmp(g, LLVMRealOLT, x, kf(x, -151)), kf(x, -151), x);
    x = b_select(g, b_fcmp(g, LLVMRealOGT, x, kf(x, 129)), kf(x, 129), x);
    hw_lv k = b_fadd(g, x, kf(x, MAGIC)), n = b_fsub(g, k, kf(x, MAGIC));
    hw_lv i = hwg_bits(g, k);
    i = b_sub(g, i, hwg_klike(i, 0x4b400000)); /* MAGIC's bits */
    hw_lv p = hwg_polynomial(g, b_fsub(g, x, n), c, 7);
    hw_lv half = b_ashr(g, i, hwg_klike(i, 1)); /* in two steps: results may be denormal */
    p = b_fmul(g, p, power_of_two(g, half));
    return b_fmul(g, p, power_of_two(g, b_sub(g, i, half)));
}

LANE(ex2)
{
    return apply(g, in, a[0], ex2);
}

static hw_lv lg2(hw_gen *g, hw_lv x)
{
    static const double c[] = { -0.11058607638304482, 0.18653881393711599, -0.19099591085504281,
                                0.20454308057170156,  -0.2396181349672708, 0.28857024814276966,
                                -0.36069671236486794, 0.48089819643150744, -0.72134735065524846,
                                1.4426950409379895 }; /* 2^-27.9 */
    hw_lv tiny = b_fcmp(g, LLVMRealOLT, x, kf(x, 0x1p-126));
    hw_lv bits = hwg_bits(g, b_select(g, tiny, b_fmul(g, x, kf(x, 0x1p23)), x));
    /* exponent such that the rest lies between the roots of 1/2 and 2 */
    hw_lv e = b_ashr(g, b_sub(g, bits, hwg_klike(bits, 0x3f3504f3)), hwg_klike(bits, 23));
    hw_lv m = hwg_as(g, b_sub(g, bits, b_shl(g, e, hwg_klike(e, 23))), g->f32);
    hw_lv t = b_fsub(g, m, kf(x, 1));
    e = b_sub(g, e, b_select(g, tiny, hwg_klike(e, 23), hwg_klike(e, 0)));
    hw_lv ef = LLVMBuildSIToFP(g->b, e, LLVMTypeOf(x), "");
    hw_lv r = hwg_fma(g, t, hwg_polynomial(g, t, c, 10), ef);
    r = b_select(g, b_fcmp(g, LLVMRealOEQ, x, kf(x, INFINITY)), x, r);
    r = b_select(g, b_fcmp(g, LLVMRealOEQ, x, kf(x, 0)), kf(x, -INFINITY), r);
    hw_lv nan = hwg_as(g, hwg_klike(bits, 0x7fffffff), g->f32);
    return b_select(g, b_fcmp(g, LLVMRealULT, x, kf(x, 0)), nan, r);
}

LANE(lg2)
{
    return apply(g, in, a[0], lg2);
}

/* ---- hyperbolic tangent ---- */

static hw_lv tanh1(hw_gen *g, hw_lv x)
{
    static const double c[] = { 0.01549015562523777, -0.05215938808600281, 0.13312980659241974,
                                -0.33332677038469416 }; /* 2^-22.9 up to 0.6 */
    hw_lv m = hwg_intr1(g, "llvm.fabs", x), y = b_fmul(g, x, x);
    hw_lv small = hwg_fma(g, b_fmul(g, x, y), hwg_polynomial(g, y, c, 4), x);
    hw_lv e = ex2(g, b_fmul(g, m, kf(x, 2.8853900817779268)));
    hw_lv big = b_fsub(g, kf(x, 1), b_fdiv(g, kf(x, 2), b_fadd(g, e, kf(x, 1))));
    big = hwg_intr2(g, "llvm.copysign", big, x);
    return b_select(g, b_fcmp(g, LLVMRealOLT, m, kf(x, 0.6)), small, big);
}

LANE(tanh)
{
    return apply(g, in, a[0], tanh1);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Float arithmetic with PTX's rounding modes, flushing, saturation and NaN rules.
 *
 * Halves (F16, BF16) are computed in f32 and rounded once, fused products in f64 rounded to odd
 * first: f32 has more than twice their digits, so nothing is rounded twice.
 */
#include "float.h"
#include "ops.h"

#include <stdio.h>

static bool is_half(unsigned t)
{
    return t == HW_T_F16 || t == HW_T_V2F16;
}

static bool is_bf16(unsigned t)
{
    return t == HW_T_BF16 || t == HW_T_V2BF16;
}

static bool is_pair(unsigned t)
{
    return t == HW_T_V2F16 || t == HW_T_V2BF16;
}

/* ---- bits and floats ---- */

hw_lv hwg_bits(hw_gen *g, hw_lv x)
{
    hw_lt e = hwg_elem(x);
    return b_cast_elem(g, x, e == g->f64 ? g->i64 : e == g->f16 ? g->i16 : g->i32);
}

hw_lv hwg_as(hw_gen *g, hw_lv bits, hw_lt elem)
{
    return b_cast_elem(g, bits, elem);
}

/* Denormals of a format with this exponent mask become zeros of the same sign. */
static hw_lv flush_bits(hw_gen *g, hw_lv bits, uint64_t exponent)
{
    unsigned w = LLVMGetIntTypeWidth(hwg_elem(bits));
    hw_lv sign = b_and(g, bits, hwg_klike(bits, UINT64_C(1) << (w - 1)));
    hw_lv e = b_and(g, bits, hwg_klike(bits, exponent));
    return b_select(g, b_icmp(g, LLVMIntEQ, e, hwg_klike(e, 0)), sign, bits);
}

static hw_lv flush(hw_gen *g, const hw_wir_insn *in, unsigned type, hw_lv bits)
{
    static const uint64_t exponent[HW_T_COUNT] = {
        [HW_T_F16] = 0x7c00,    [HW_T_V2F16] = 0x7c00,   [HW_T_BF16] = 0x7f80,
        [HW_T_V2BF16] = 0x7f80, [HW_T_F32] = 0x7f800000, [HW_T_F64] = UINT64_C(0x7ff0000000000000),
    };
    /* FMIN and FMAX select a source, which the processor's flushing mode leaves as it is */
    bool selects = in->op == HW_W_FMIN || in->op == HW_W_FMAX;
    bool by_hand = in->flags & HW_I_FTZ && !(g->flush_all && type == HW_T_F32 && !selects);
    /* .ftz of conversions between f32 and f64 means the f32 side only */
    if (type == HW_T_F64 && in->op == HW_W_FCVT)
        by_hand = false;
    return by_hand ? flush_bits(g, bits, exponent[type]) : bits;
}

static hw_lv split(hw_gen *g, unsigned type, hw_lv bits)
{
    return is_pair(type) ? b_bitcast(g, bits, LLVMVectorType(g->i16, 2 * hwg_lanes(bits))) : bits;
}

static hw_lv unsplit(hw_gen *g, unsigned type, hw_lv bits)
{
    return is_pair(type) ? b_bitcast(g, bits, hwg_vec_of(g->i32, hwg_lanes(bits) / 2)) : bits;
}

hw_lv hwg_to_float(hw_gen *g, const hw_wir_insn *in, unsigned type, hw_lv bits)
{
    bits = flush(g, in, type, split(g, type, bits));
    if (is_half(type))
        return LLVMBuildFPExt(g->b, hwg_as(g, bits, g->f16), hwg_like(bits, g->f32), "");
    if (is_bf16(type)) {
        hw_lv w = b_zext(g, bits, g->i32);
        return hwg_as(g, b_shl(g, w, hwg_klike(w, 16)), g->f32);
    }
    return hwg_as(g, bits, type == HW_T_F64 ? g->f64 : g->f32);
}

static hw_lv is_nan(hw_gen *g, hw_lv x)
{
    return b_fcmp(g, LLVMRealUNO, x, x);
}

/* f32 to bf16, nearest even. */
static hw_lv to_bf16(hw_gen *g, hw_lv x)
{
    hw_lv b = hwg_bits(g, x);
    hw_lv odd = b_and(g, b_lshr(g, b, hwg_klike(b, 16)), hwg_klike(b, 1));
    hw_lv r = b_add(g, b, b_add(g, odd, hwg_klike(b, 0x7fff)));
    r = b_trunc(g, b_lshr(g, r, hwg_klike(r, 16)), g->i16);
    return b_select(g, is_nan(g, x), hwg_klike(r, 0x7fff), r);
}

/* The bits of float x in a type, to nearest even. x: float, or double rounded to odd before. */
static hw_lv nearest_bits(hw_gen *g, hw_lv x, unsigned type)
{
    if (type == HW_T_F64 || (type == HW_T_F32 && hwg_elem(x) == g->f32))
        return hwg_bits(g, x);
    if (type == HW_T_F32)
        return hwg_bits(g, LLVMBuildFPTrunc(g->b, x, hwg_like(x, g->f32), ""));
    if (hwg_elem(x) == g->f64)
        x = hwg_odd(g, x);
    if (is_bf16(type))
        return to_bf16(g, x);
    hw_lv h = hwg_bits(g, LLVMBuildFPTrunc(g->b, x, hwg_like(x, g->f16), ""));
    return b_select(g, is_nan(g, x), hwg_klike(h, 0x7fff), h);
}

static hw_lv clamp01(hw_gen *g, hw_lv x)
{
    hw_lv zero = hwg_kf(LLVMTypeOf(x), 0), one = hwg_kf(LLVMTypeOf(x), 1);
    x = b_select(g, b_fcmp(g, LLVMRealOGT, x, zero), x, zero);
    return b_select(g, b_fcmp(g, LLVMRealOLT, x, one), x, one);
}

hw_lv hwg_from_float(hw_gen *g, const hw_wir_insn *in, unsigned type, hw_lv x)
{
    if (in->flags & HW_I_SAT)
        x = clamp01(g, x);
    hw_lv zero = hwg_kf(LLVMTypeOf(x), 0);
    if (in->flags & HW_I_RELU)
        x = b_select(g, b_fcmp(g, LLVMRealOLE, x, zero), zero, x);
    return unsplit(g, type, flush(g, in, type, nearest_bits(g, x, type)));
}

hw_lv hwg_odd(hw_gen *g, hw_lv x)
{
    hw_lv f = LLVMBuildFPTrunc(g->b, x, hwg_like(x, g->f32), "");
    hw_lv back = LLVMBuildFPExt(g->b, f, LLVMTypeOf(x), "");
    hw_lv ax = hwg_intr1(g, "llvm.fabs", x), ab = hwg_intr1(g, "llvm.fabs", back);
    hw_lv b = hwg_bits(g, f);
    hw_lv over = b_zext(g, b_fcmp(g, LLVMRealOGT, ab, ax), g->i32);
    hw_lv inexact = b_zext(g, b_fcmp(g, LLVMRealONE, back, x), g->i32);
    return hwg_as(g, b_or(g, b_sub(g, b, over), inexact), g->f32);
}

/* ---- rounding modes ---- */

/* bits of a value stepped to its neighbour above (or below). */
static hw_lv step(hw_gen *g, hw_lv bits, bool up)
{
    unsigned w = LLVMGetIntTypeWidth(hwg_elem(bits));
    hw_lv zero = hwg_klike(bits, 0), one = hwg_klike(bits, 1);
    hw_lv sign = hwg_klike(bits, UINT64_C(1) << (w - 1));
    hw_lv negative = b_icmp(g, LLVMIntSLT, bits, zero);
    hw_lv more = b_add(g, bits, one), less = b_sub(g, bits, one);
    hw_lv is_zero = b_icmp(g, LLVMIntEQ, b_and(g, bits, b_not(g, sign)), zero);
    hw_lv r = up ? b_select(g, negative, less, more) : b_select(g, negative, more, less);
    return b_select(g, is_zero, up ? one : b_or(g, sign, one), r);
}

/* Correct the nearest value's bits, given how it compares with the exact one. */
hw_lv hwg_directed(hw_gen *g, hw_lv bits, hw_lv above, hw_lv below, hw_lv negative, unsigned mode)
{
    hw_lv down = step(g, bits, false), up = step(g, bits, true);
    if (mode == HW_ROUND_M)
        return b_select(g, above, down, bits);
    if (mode == HW_ROUND_P)
        return b_select(g, below, up, bits);
    hw_lv fix = b_select(g, negative, below, above);
    hw_lv to = b_select(g, negative, up, down);
    return b_select(g, fix, to, bits);
}

hw_lv hwg_narrow(hw_gen *g, hw_lv x, unsigned type, unsigned mode)
{
    hw_lv bits = nearest_bits(g, x, type);
    if (mode != HW_ROUND_Z && mode != HW_ROUND_M && mode != HW_ROUND_P)
        return bits;
    const hw_wir_insn plain = { .op = HW_W_FCVT };
    hw_lv back = hwg_to_float(g, &plain, type, bits);
    if (hwg_elem(back) != hwg_elem(x))
        back = LLVMBuildFPExt(g->b, back, LLVMTypeOf(x), "");
    hw_lv negative = b_fcmp(g, LLVMRealOLT, x, hwg_kf(LLVMTypeOf(x), 0));
    return hwg_directed(g, bits, b_fcmp(g, LLVMRealOGT, back, x), b_fcmp(g, LLVMRealOLT, back, x),
                        negative, mode);
}

/* ---- operations in a rounding mode ---- */

typedef enum { R_ADD, R_SUB, R_MUL, R_DIV, R_SQRT, R_FMA, R_COUNT } arith;

static unsigned mode_immediate(unsigned round)
{
    return round == HW_ROUND_M ? 9 : round == HW_ROUND_P ? 10 : round == HW_ROUND_Z ? 11 : 8;
}

static hw_lv part(hw_gen *g, hw_lv x, unsigned first, unsigned n)
{
    int idx[16];
    if (hwg_lanes(x) == 1)
        return hwg_splat(g, x, n);
    for (unsigned i = 0; i < n; i++)
        idx[i] = (int)(first + i);
    return hwg_shuffle(g, x, NULL, idx, n);
}

static hw_lv append(hw_gen *g, hw_lv a, hw_lv b)
{
    int idx[256];
    unsigned n = hwg_lanes(a), m = hwg_lanes(b);
    int widen[256];
    for (unsigned i = 0; i < n; i++)
        widen[i] = i < m ? (int)i : -1;
    if (m < n)
        b = hwg_shuffle(g, b, NULL, widen, n);
    for (unsigned i = 0; i < n + m; i++)
        idx[i] = (int)i;
    return hwg_shuffle(g, a, b, idx, n + m);
}

/* AVX-512 instructions carry their rounding mode. */
static hw_lv embedded(hw_gen *g, arith op, unsigned round, const hw_lv *a, unsigned n)
{
    static const char *const names[R_COUNT] = { "add", "sub", "mul", "div", "sqrt", "vfmadd" };
    bool f64 = hwg_elem(a[0]) == g->f64;
    char name[64];
    snprintf(name, sizeof name, "llvm.x86.avx512.%s.%s.512", names[op], f64 ? "pd" : "ps");
    unsigned lanes = hwg_lanes(a[0]), w = f64 ? 8 : 16;
    hw_lv out = NULL, x[4];
    for (unsigned l = 0; l < lanes; l += w) {
        for (unsigned i = 0; i < n; i++)
            x[i] = part(g, a[i], l, w);
        x[n] = hwg_k(g->i32, mode_immediate(round));
        hw_lv r = hwg_intr(g, name, 0, NULL, n + 1, x);
        out = out ? append(g, out, r) : r;
    }
    return lanes == 1 ? LLVMBuildExtractElement(g->b, out, hwg_k(g->i32, 0), "") : out;
}

/* Hosts without: C under fesetround, through memory. */
static hw_lv in_c(hw_gen *g, arith op, unsigned round, const hw_lv *a, unsigned n)
{
    hw_lt t = LLVMTypeOf(a[0]), args[] = { g->ptr, g->i32, g->i32, g->i32, g->i32 };
    bool f64 = hwg_elem(a[0]) == g->f64;
    unsigned bytes = hwg_lanes(a[0]) * (f64 ? 8 : 4);
    hw_lv mem = hwg_alloca_raw(g, LLVMArrayType2(g->i8, 3 * 256), 64, "rounding");
    for (unsigned i = 0; i < n; i++)
        hwg_store(g, a[i], hwg_gep_k(g, mem, (int64_t)i * 256), f64 ? 8 : 4);
    hw_lt ft = LLVMFunctionType(g->voidt, args, 5, false);
    hw_lv x[] = { mem, hwg_k(g->i32, op), hwg_k(g->i32, round), hwg_k(g->i32, f64),
                  hwg_k(g->i32, bytes) };
    LLVMBuildCall2(g->b, ft, hwg_extern(g, "hw_jit_rounded", ft), x, 5, "");
    return hwg_load(g, t, mem, f64 ? 8 : 4);
}

hw_lv hwg_fma(hw_gen *g, hw_lv a, hw_lv b, hw_lv c)
{
    return hwg_intr3(g, "llvm.fma", a, b, c);
}

static hw_lv arithmetic(hw_gen *g, const hw_wir_insn *in, arith op, const hw_lv *a, unsigned n)
{
    bool nearest = in->round == HW_ROUND_N || in->round == HW_ROUND_NA;
    if (!nearest)
        return g->avx512 ? embedded(g, op, in->round, a, n) : in_c(g, op, in->round, a, n);
    switch (op) {
    case R_ADD:
        return b_fadd(g, a[0], a[1]);
    case R_SUB:
        return b_fsub(g, a[0], a[1]);
    case R_MUL:
        return b_fmul(g, a[0], a[1]);
    case R_DIV:
        return b_fdiv(g, a[0], a[1]);
    case R_SQRT:
        return hwg_intr1(g, "llvm.sqrt", a[0]);
    default:
        return hwg_fma(g, a[0], a[1], a[2]);
    }
}

static hw_lv operate(hw_gen *g, const hw_wir_insn *in, arith op, const hw_lv *a, unsigned n)
{
    hw_lv x[3];
    for (unsigned i = 0; i < n; i++)
        x[i] = hwg_to_float(g, in, in->type, a[i]);
    return hwg_from_float(g, in, in->type, arithmetic(g, in, op, x, n));
}

#define ARITHMETIC(name, op, n)          \
    LANE(name)                           \
    {                                    \
        return operate(g, in, op, a, n); \
    }
ARITHMETIC(fadd, R_ADD, 2)
ARITHMETIC(fsub, R_SUB, 2)
ARITHMETIC(fmul, R_MUL, 2)
ARITHMETIC(fdiv, R_DIV, 2)
ARITHMETIC(fsqrt, R_SQRT, 1)

/* p + c in f64 rounded to odd, p exact. */
static hw_lv sum_odd(hw_gen *g, hw_lv p, hw_lv c)
{
    hw_lv s = b_fadd(g, p, c), bb = b_fsub(g, s, p);
    hw_lv e = b_fadd(g, b_fsub(g, p, b_fsub(g, s, bb)), b_fsub(g, c, bb));
    hw_lv zero = hwg_kf(LLVMTypeOf(s), 0), b = hwg_bits(g, s);
    hw_lv inexact = b_fcmp(g, LLVMRealONE, e, zero);
    hw_lv opposite = b_icmp(g, LLVMIntSLT, b_xor(g, hwg_bits(g, e), b), hwg_klike(b, 0));
    hw_lv down = b_zext(g, b_and(g, inexact, opposite), g->i64);
    hw_lv r = b_or(g, b_sub(g, b, down), b_zext(g, inexact, g->i64));
    return hwg_as(g, r, g->f64);
}

/* a * b + c of halves in f32, where the product is exact, rounded to odd: of the two neighbours the sum lies between
 * the odd one. */
static hw_lv fma_odd(hw_gen *g, hw_lv a, hw_lv b, hw_lv c)
{
    hw_lv x[] = { b_fmul(g, a, b), c };
    hw_lv down = embedded(g, R_ADD, HW_ROUND_M, x, 2), up = embedded(g, R_ADD, HW_ROUND_P, x, 2);
    hw_lv last = b_and(g, hwg_bits(g, down), hwg_klike(hwg_bits(g, down), 1));
    return b_select(g, b_icmp(g, LLVMIntNE, last, hwg_klike(last, 0)), down, up);
}

LANE(ffma)
{
    if (in->type == HW_T_F32 || in->type == HW_T_F64)
        return operate(g, in, R_FMA, a, 3);
    hw_lv x[3];
    if (is_half(in->type) && g->avx512 && hwg_lanes(a[0]) == GEN_LANES) {
        for (unsigned i = 0; i < 3; i++)
            x[i] = hwg_to_float(g, in, in->type, a[i]);
        return hwg_from_float(g, in, in->type, fma_odd(g, x[0], x[1], x[2]));
    }
    for (unsigned i = 0; i < 3; i++) {
        x[i] = hwg_to_float(g, in, in->type, a[i]);
        x[i] = LLVMBuildFPExt(g->b, x[i], hwg_like(x[i], g->f64), "");
    }
    return hwg_from_float(g, in, in->type, sum_odd(g, b_fmul(g, x[0], x[1]), x[2]));
}

/* ---- signs ---- */

static uint64_t sign_mask(unsigned type)
{
    return is_pair(type) ? 0x80008000 : UINT64_C(1) << (hw_wir_bits((hw_wir_type)type) - 1);
}

static hw_lv flush_whole(hw_gen *g, const hw_wir_insn *in, hw_lv bits)
{
    /* sign operations are bit operations: MXCSR does not flush for them */
    static const uint64_t exponent[HW_T_COUNT] = {
        [HW_T_F16] = 0x7c00, [HW_T_V2F16] = 0x7c00, [HW_T_F32] = 0x7f800000
    };
    if (!(in->flags & HW_I_FTZ) || !exponent[in->type])
        return bits;
    return unsplit(g, in->type, flush_bits(g, split(g, in->type, bits), exponent[in->type]));
}

LANE(fneg)
{
    hw_lv x = flush_whole(g, in, a[0]);
    return b_xor(g, x, hwg_klike(x, sign_mask(in->type)));
}

LANE(fabs)
{
    hw_lv x = flush_whole(g, in, a[0]);
    return b_and(g, x, hwg_klike(x, ~sign_mask(in->type)));
}

LANE(fcopysign)
{
    hw_lv sign = hwg_klike(a[0], sign_mask(in->type));
    return b_or(g, b_and(g, a[0], sign), b_and(g, a[1], b_not(g, sign)));
}

/* ---- minimum and maximum ---- */

static hw_lv canonical_nan(hw_gen *g, hw_lv x)
{
    bool f64 = hwg_elem(x) == g->f64;
    hw_lv bits =
        hwg_k(hwg_like(x, f64 ? g->i64 : g->i32), f64 ? UINT64_C(0x7fffffffffffffff) : 0x7fffffff);
    return hwg_as(g, bits, hwg_elem(x));
}

LANE(fminmax)
{
    bool max = in->op == HW_W_FMAX;
    hw_lv x = hwg_to_float(g, in, in->type, a[0]), y = hwg_to_float(g, in, in->type, a[1]);
    hw_lv signs = b_xor(g, hwg_bits(g, x), hwg_bits(g, y));
    if (in->flags & HW_I_MINMAX_ABS || in->flags & HW_I_XORSIGN) {
        x = hwg_intr1(g, "llvm.fabs", x);
        y = hwg_intr1(g, "llvm.fabs", y);
    }
    hw_lv r = b_select(g, b_fcmp(g, max ? LLVMRealOGT : LLVMRealOLT, x, y), x, y);
    hw_lv bx = hwg_bits(g, x), by = hwg_bits(g, y);
    hw_lv zeros = hwg_as(g, max ? b_and(g, bx, by) : b_or(g, bx, by), hwg_elem(x));
    r = b_select(g, b_fcmp(g, LLVMRealOEQ, x, y), zeros, r);
    hw_lv xn = is_nan(g, x), yn = is_nan(g, y), nan = canonical_nan(g, x);
    if (in->flags & HW_I_NAN) {
        r = b_select(g, b_or(g, xn, yn), nan, r);
    } else {
        r = b_select(g, yn, x, r);
        r = b_select(g, b_and(g, xn, yn), nan, r);
    }
    if (in->flags & HW_I_XORSIGN) {
        hw_lv b = hwg_bits(g, r),
              top = hwg_klike(b, hwg_elem(x) == g->f64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31);
        r = hwg_as(g, b_or(g, b_and(g, b, b_not(g, top)), b_and(g, signs, top)), hwg_elem(x));
    }
    return hwg_from_float(g, in, in->type, r);
}

/* ---- to integral values ---- */

static const char *rounder(unsigned mode)
{
    static const char *const names[] = { "llvm.roundeven", "llvm.trunc", "llvm.floor", "llvm.ceil",
                                         "llvm.round" };
    return names[mode];
}

LANE(frint)
{
    hw_lv x = hwg_to_float(g, in, in->type, a[0]);
    return hwg_from_float(g, in, in->type, hwg_intr1(g, rounder(in->round), x));
}

/* ---- comparison and classes ---- */

LANE(fcmp)
{
    static const LLVMRealPredicate p[HW_C_COUNT] = {
        [HW_C_FEQ] = LLVMRealOEQ,  [HW_C_FNE] = LLVMRealONE,  [HW_C_FLT] = LLVMRealOLT,
        [HW_C_FLE] = LLVMRealOLE,  [HW_C_FGT] = LLVMRealOGT,  [HW_C_FGE] = LLVMRealOGE,
        [HW_C_FEQU] = LLVMRealUEQ, [HW_C_FNEU] = LLVMRealUNE, [HW_C_FLTU] = LLVMRealULT,
        [HW_C_FLEU] = LLVMRealULE, [HW_C_FGTU] = LLVMRealUGT, [HW_C_FGEU] = LLVMRealUGE,
        [HW_C_FNUM] = LLVMRealORD, [HW_C_FNAN] = LLVMRealUNO,
    };
    if (is_pair(in->type)) {
        hwg_fail(g, HW_E_UNSUPPORTED, "comparison of packed floats");
        return hwg_k(hwg_like(a[0], g->i1), 0);
    }
    return b_fcmp(g, p[in->cond], hwg_to_float(g, in, in->type, a[0]),
                  hwg_to_float(g, in, in->type, a[1]));
}

LANE(fclass)
{
    static const uint64_t exponents[HW_T_COUNT] = {
        [HW_T_F16] = 0x7c00,
        [HW_T_BF16] = 0x7f80,
        [HW_T_F32] = 0x7f800000,
        [HW_T_F64] = UINT64_C(0x7ff0000000000000),
    };
    uint64_t ebits = exponents[in->type];
    hw_lv m = b_and(g, a[0], hwg_klike(a[0], ~sign_mask(in->type)));
    hw_lv top = hwg_klike(m, ebits), zero = hwg_klike(m, 0);
    hw_lv no_exponent = b_icmp(g, LLVMIntEQ, b_and(g, m, top), zero);
    hw_lv subnormal = b_and(g, no_exponent, b_icmp(g, LLVMIntNE, m, zero));
    hw_lv finite = b_icmp(g, LLVMIntULT, m, top), nan = b_icmp(g, LLVMIntUGT, m, top);
    const hw_lv is[] = {
        finite,   b_icmp(g, LLVMIntEQ, m, top),          b_not(g, nan),
        nan,      b_and(g, finite, b_not(g, subnormal)), /* zeros count as normal */
        subnormal
    };
    hw_lv r = hwg_klike(finite, 0);
    for (unsigned i = 0; i < HW_COUNTOF(is); i++)
        if (in->imm >> i & 1)
            r = b_or(g, r, is[i]);
    return r;
}

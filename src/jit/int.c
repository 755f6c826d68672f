/* SPDX-License-Identifier: Apache-2.0
 *
 * Integer operations, lane by lane: every emitter serves single values and vectors alike.
 */
#include "ops.h"

#define UNUSED_IN (void)in

static unsigned bits_of(hw_lv v)
{
    return LLVMGetIntTypeWidth(hwg_elem(v));
}

/* ---- plain ones ---- */
#define SIMPLE(name, fn)          \
    LANE(name)                    \
    {                             \
        UNUSED_IN;                \
        return fn(g, a[0], a[1]); \
    }
SIMPLE(and, b_and)
SIMPLE(or, b_or)
SIMPLE(xor, b_xor)

/* Types of parts (V2I16, V4I8): the lanes' parts side by side in one longer vector. */
static hw_lv parts(hw_gen *g, const hw_wir_insn *in, hw_lv x)
{
    if (in->type == HW_T_V2I16)
        return b_bitcast(g, x, hwg_vec_of(g->i16, 2 * hwg_lanes(x)));
    if (in->type == HW_T_V4I8)
        return b_bitcast(g, x, hwg_vec_of(g->i8, 4 * hwg_lanes(x)));
    return x;
}

static hw_lv whole(hw_gen *g, hw_lv parts_value, hw_lv like)
{
    return b_bitcast(g, parts_value, LLVMTypeOf(like));
}

#define PARTED(name, expr)                                    \
    LANE(name)                                                \
    {                                                         \
        hw_lv x = parts(g, in, a[0]), y = parts(g, in, a[1]); \
        return whole(g, expr, a[0]);                          \
    }
PARTED(add, b_add(g, x, y))
PARTED(sub, b_sub(g, x, y))
PARTED(mul, b_mul(g, x, y))
PARTED(min_u, hwg_intr2(g, "llvm.umin", x, y))
PARTED(min_s, hwg_intr2(g, "llvm.smin", x, y))
PARTED(max_u, hwg_intr2(g, "llvm.umax", x, y))
PARTED(max_s, hwg_intr2(g, "llvm.smax", x, y))
PARTED(add_sat, hwg_intr2(g, "llvm.sadd.sat", x, y))
PARTED(sub_sat, hwg_intr2(g, "llvm.ssub.sat", x, y))

LANE(mov)
{
    (void)g, UNUSED_IN;
    return a[0];
}

LANE(select)
{
    UNUSED_IN;
    return b_select(g, a[0], a[1], a[2]);
}

LANE(not)
{
    UNUSED_IN;
    return b_not(g, a[0]);
}

static hw_lv with_flag(hw_gen *g, const char *name, hw_lv x, bool flag)
{
    hw_lt t = LLVMTypeOf(x);
    return hwg_intr(g, name, 1, &t, 2, (hw_lv[]){ x, LLVMConstInt(g->i1, flag, false) });
}

LANE(abs)
{
    return whole(g, with_flag(g, "llvm.abs", parts(g, in, a[0]), false), a[0]);
}

static hw_lv to_i32(hw_gen *g, hw_lv x)
{
    return bits_of(x) > 32 ? b_trunc(g, x, g->i32) : bits_of(x) < 32 ? b_zext(g, x, g->i32) : x;
}

LANE(popc)
{
    UNUSED_IN;
    return to_i32(g, hwg_intr1(g, "llvm.ctpop", a[0]));
}

LANE(clz)
{
    UNUSED_IN;
    return to_i32(g, with_flag(g, "llvm.ctlz", a[0], false));
}

LANE(brev)
{
    UNUSED_IN;
    return hwg_intr1(g, "llvm.bitreverse", a[0]);
}

LANE(icmp)
{
    static const LLVMIntPredicate p[] = {
        [HW_C_EQ] = LLVMIntEQ,    [HW_C_NE] = LLVMIntNE,    [HW_C_LT_S] = LLVMIntSLT,
        [HW_C_LE_S] = LLVMIntSLE, [HW_C_GT_S] = LLVMIntSGT, [HW_C_GE_S] = LLVMIntSGE,
        [HW_C_LT_U] = LLVMIntULT, [HW_C_LE_U] = LLVMIntULE, [HW_C_GT_U] = LLVMIntUGT,
        [HW_C_GE_U] = LLVMIntUGE,
    };
    return b_icmp(g, p[in->cond], a[0], a[1]);
}

/* ---- high halves ---- */
static hw_lv low_half(hw_gen *g, hw_lv x)
{
    return b_and(g, x, hwg_klike(x, 0xffffffff));
}

static hw_lv high_half(hw_gen *g, hw_lv x)
{
    return b_lshr(g, x, hwg_klike(x, 32));
}

/* The high 64 bits of an unsigned 64 x 64 product by 32-bit halves (no 128-bit vectors). */
static hw_lv mulhi_u64(hw_gen *g, hw_lv x, hw_lv y)
{
    hw_lv xl = low_half(g, x), xh = high_half(g, x), yl = low_half(g, y), yh = high_half(g, y);
    hw_lv t = b_add(g, b_mul(g, xh, yl), high_half(g, b_mul(g, xl, yl)));
    hw_lv u = b_add(g, b_mul(g, xl, yh), low_half(g, t));
    return b_add(g, b_add(g, b_mul(g, xh, yh), high_half(g, t)), high_half(g, u));
}

static hw_lv if_negative(hw_gen *g, hw_lv x, hw_lv y)
{
    return b_and(g, b_ashr(g, x, hwg_klike(x, bits_of(x) - 1)), y);
}

static hw_lv mulhi(hw_gen *g, const hw_lv *a, bool is_signed)
{
    unsigned w = bits_of(a[0]);
    if (w == 64 && hwg_lanes(a[0]) > 1) {
        hw_lv hi = mulhi_u64(g, a[0], a[1]);
        if (!is_signed)
            return hi;
        hi = b_sub(g, hi, if_negative(g, a[0], a[1]));
        return b_sub(g, hi, if_negative(g, a[1], a[0]));
    }
    hw_lt wide = hwg_int(g, 2 * w);
    hw_lv x = is_signed ? b_sext(g, a[0], wide) : b_zext(g, a[0], wide);
    hw_lv y = is_signed ? b_sext(g, a[1], wide) : b_zext(g, a[1], wide);
    hw_lv p = b_mul(g, x, y);
    return b_trunc(g, b_lshr(g, p, hwg_klike(p, w)), hwg_elem(a[0]));
}

LANE(mulhi_u)
{
    UNUSED_IN;
    return mulhi(g, a, false);
}

LANE(mulhi_s)
{
    UNUSED_IN;
    return mulhi(g, a, true);
}

/* ---- shifts: amounts are I32, of any size ---- */
static hw_lv amount(hw_gen *g, hw_lv b, hw_lv like)
{
    unsigned w = bits_of(like);
    return w > 32 ? b_zext(g, b, hwg_elem(like)) : w < 32 ? b_trunc(g, b, hwg_elem(like)) : b;
}

/* x shifted; `far` where the amount reaches the width. The unused side of a select may be poison. */
static hw_lv shift(hw_gen *g, hw_lv (*fn)(hw_gen *, hw_lv, hw_lv), hw_lv x, hw_lv b, hw_lv far)
{
    hw_lv near = b_icmp(g, LLVMIntULT, b, hwg_klike(b, bits_of(x)));
    return b_select(g, near, fn(g, x, amount(g, b, x)), far);
}

static hw_lv shl(hw_gen *g, hw_lv x, hw_lv b)
{
    return shift(g, b_shl, x, b, hwg_klike(x, 0));
}

static hw_lv shr(hw_gen *g, hw_lv x, hw_lv b)
{
    return shift(g, b_lshr, x, b, hwg_klike(x, 0));
}

static hw_lv sar(hw_gen *g, hw_lv x, hw_lv b)
{
    hw_lv most = hwg_klike(b, bits_of(x) - 1);
    return b_ashr(g, x, amount(g, hwg_intr2(g, "llvm.umin", b, most), x));
}

LANE(shl)
{
    UNUSED_IN;
    return shl(g, a[0], a[1]);
}

LANE(shr_u)
{
    UNUSED_IN;
    return shr(g, a[0], a[1]);
}

LANE(shr_s)
{
    UNUSED_IN;
    return sar(g, a[0], a[1]);
}

LANE(fshl)
{
    UNUSED_IN;
    return hwg_intr3(g, "llvm.fshl", a[1], a[0], amount(g, a[2], a[0]));
}

LANE(fshr)
{
    UNUSED_IN;
    return hwg_intr3(g, "llvm.fshr", a[1], a[0], amount(g, a[2], a[0]));
}

/* ---- bit fields (PTX ISA, bfe and bfi) ---- */
static hw_lv low_byte(hw_gen *g, hw_lv x)
{
    return b_and(g, x, hwg_klike(x, 0xff));
}

/* The lowest n bits set, all for n >= width. */
static hw_lv low_mask(hw_gen *g, hw_lv like, hw_lv n)
{
    return b_not(g, shl(g, hwg_klike(like, UINT64_MAX), n));
}

LANE(bfe_u)
{
    UNUSED_IN;
    hw_lv x = shr(g, a[0], low_byte(g, a[1]));
    return b_and(g, x, low_mask(g, x, low_byte(g, a[2])));
}

LANE(bfe_s)
{
    UNUSED_IN;
    unsigned w = bits_of(a[0]);
    hw_lv x = sar(g, a[0], low_byte(g, a[1])), len = low_byte(g, a[2]);
    hw_lv n = hwg_intr2(g, "llvm.umin", len, hwg_klike(len, w));
    hw_lv k = amount(g, b_sub(g, hwg_klike(n, w), n), x);
    hw_lv y = b_ashr(g, b_shl(g, x, k), k);
    return b_select(g, b_icmp(g, LLVMIntEQ, len, hwg_klike(len, 0)), hwg_klike(x, 0), y);
}

LANE(bfi)
{
    UNUSED_IN;
    hw_lv pos = low_byte(g, a[2]);
    hw_lv mask = shl(g, low_mask(g, a[0], low_byte(g, a[3])), pos);
    hw_lv put = b_and(g, shl(g, a[0], pos), mask);
    return b_or(g, b_and(g, a[1], b_not(g, mask)), put);
}

/* ---- logic by truth table ---- */

/* A function of two inputs by its 4-bit table (bit 2x+y). */
static hw_lv table2(hw_gen *g, unsigned t, hw_lv x, hw_lv y)
{
    hw_lv zero = hwg_klike(x, 0);
    switch (t < 8 ? t : 15 - t) {
    case 0:
        return t < 8 ? zero : b_not(g, zero);
    case 1:
        return t < 8 ? b_not(g, b_or(g, x, y)) : b_or(g, x, y);
    case 2:
        return t < 8 ? b_and(g, b_not(g, x), y) : b_or(g, x, b_not(g, y));
    case 3:
        return t < 8 ? b_not(g, x) : x;
    case 4:
        return t < 8 ? b_and(g, x, b_not(g, y)) : b_or(g, b_not(g, x), y);
    case 5:
        return t < 8 ? b_not(g, y) : y;
    case 6:
        return t < 8 ? b_xor(g, x, y) : b_not(g, b_xor(g, x, y));
    default:
        return t < 8 ? b_not(g, b_and(g, x, y)) : b_and(g, x, y);
    }
}

/* The products of unsigned bytes of a and signed ones of b added to c (VNNI), sixteen lanes at a time. */
static hw_lv add_products(hw_gen *g, hw_lv c, hw_lv a, hw_lv b)
{
    enum { HALF = GEN_LANES / 2 };
    int idx[GEN_LANES];
    hw_lv half[2];
    for (int l = 0; l < GEN_LANES; l++)
        idx[l] = l;
    for (int h = 0; h < 2; h++) {
        hw_lv x[] = { hwg_shuffle(g, c, NULL, idx + HALF * h, HALF),
                      hwg_shuffle(g, a, NULL, idx + HALF * h, HALF),
                      hwg_shuffle(g, b, NULL, idx + HALF * h, HALF) };
        half[h] = hwg_intr(g, "llvm.x86.avx512.vpdpbusd.512", 0, NULL, 3, x);
    }
    return hwg_shuffle(g, half[0], half[1], idx, GEN_LANES);
}

/* Signed bytes for unsigned ones are 128 less and the other way round; what that makes is taken off. */
static hw_lv dot4_vector(hw_gen *g, const hw_wir_insn *in, hw_lv a, hw_lv b, hw_lv c)
{
    bool sa = in->imm & 1, sb = in->imm & 2;
    hw_lv zero = hwg_klike(c, 0), off = hwg_klike(c, 0x80808080);
    if (sa && !sb)
        return add_products(g, c, b, a);
    if (!sa && sb)
        return add_products(g, c, a, b);
    if (sa)
        return b_sub(g, add_products(g, c, b_xor(g, a, off), b), add_products(g, zero, off, b));
    return b_sub(g, add_products(g, c, a, b_xor(g, b, off)), add_products(g, zero, a, off));
}

static hw_lv byte_of(hw_gen *g, hw_lv x, unsigned k, bool is_signed)
{
    x = b_shl(g, x, hwg_klike(x, 24 - 8 * k));
    return is_signed ? b_ashr(g, x, hwg_klike(x, 24)) : b_lshr(g, x, hwg_klike(x, 24));
}

LANE(dot4)
{
    hw_lv sum = a[2];
    if (g->vnni && hwg_lanes(sum) == GEN_LANES)
        return dot4_vector(g, in, a[0], a[1], sum);
    for (unsigned k = 0; k < 4; k++) {
        hw_lv x = byte_of(g, a[0], k, in->imm & 1), y = byte_of(g, a[1], k, in->imm & 2);
        sum = b_add(g, sum, b_mul(g, x, y));
    }
    return sum;
}

LANE(lop3)
{
    unsigned t = (unsigned)in->imm & 0xff, hi = t >> 4, lo = t & 15;
    if (hi == lo)
        return table2(g, hi, a[1], a[2]);
    if (hi == 15 - lo)
        return b_xor(g, a[0], table2(g, lo, a[1], a[2]));
    if (lo == 0)
        return b_and(g, a[0], table2(g, hi, a[1], a[2]));
    if (hi == 0)
        return b_and(g, b_not(g, a[0]), table2(g, lo, a[1], a[2]));
    hw_lv yes = b_and(g, a[0], table2(g, hi, a[1], a[2]));
    return b_or(g, yes, b_and(g, b_not(g, a[0]), table2(g, lo, a[1], a[2])));
}

/* ---- bytes: PTX prmt, default mode ---- */
static hw_lv prmt_constant(hw_gen *g, const hw_lv *a, uint64_t sel)
{
    unsigned n = hwg_lanes(a[0]);
    hw_lt bytes = LLVMVectorType(g->i8, 4 * n);
    hw_lv x = b_bitcast(g, a[0], bytes), y = b_bitcast(g, a[1], bytes);
    int idx[128];
    hw_lv sign[128];
    bool any = false;
    for (unsigned i = 0; i < 4 * n; i++) {
        unsigned s = (unsigned)(sel >> (4 * (i % 4))) & 15;
        idx[i] = (int)(i / 4 * 4 + (s & 3) + (s & 4 ? 4 * n : 0));
        sign[i] = LLVMConstInt(g->i1, s >> 3, false);
        any |= s >> 3;
    }
    hw_lv z = hwg_shuffle(g, x, y, idx, 4 * n);
    if (any)
        z = b_select(g, LLVMConstVector(sign, 4 * n), b_ashr(g, z, hwg_klike(z, 7)), z);
    return b_bitcast(g, z, LLVMTypeOf(a[0]));
}

LANE(prmt)
{
    UNUSED_IN;
    hw_lv k = hwg_lanes(a[2]) > 1 && LLVMIsConstant(a[2]) ? LLVMGetAggregateElement(a[2], 0) : a[2];
    if (in->src[2].kind == HW_V_IMM)
        return prmt_constant(g, a, LLVMConstIntGetZExtValue(k));
    hw_lv x = b_zext(g, a[0], g->i64), y = b_zext(g, a[1], g->i64);
    hw_lv both = b_or(g, x, b_shl(g, y, hwg_klike(y, 32))), out = hwg_klike(a[0], 0);
    for (unsigned i = 0; i < 4; i++) {
        hw_lv s = b_lshr(g, a[2], hwg_klike(a[2], 4 * i));
        hw_lv n = b_shl(g, b_and(g, s, hwg_klike(s, 7)), hwg_klike(s, 3));
        hw_lv byte = b_trunc(g, b_lshr(g, both, b_zext(g, n, g->i64)), g->i8);
        hw_lv neg = b_icmp(g, LLVMIntNE, b_and(g, s, hwg_klike(s, 8)), hwg_klike(s, 0));
        byte = b_select(g, neg, b_ashr(g, byte, hwg_klike(byte, 7)), byte);
        hw_lv wide = b_zext(g, byte, g->i32);
        out = b_or(g, out, b_shl(g, wide, hwg_klike(wide, 8 * i)));
    }
    return out;
}

/* ---- widths ---- */
static hw_lt target(hw_gen *g, const hw_wir_insn *in)
{
    return hwg_reg_type(g, hw_wir_reg_type((hw_wir_type)in->type2));
}

LANE(zext)
{
    return b_zext(g, a[0], target(g, in));
}

LANE(sext)
{
    return b_sext(g, a[0], target(g, in));
}

LANE(trunc)
{
    return b_trunc(g, a[0], target(g, in));
}

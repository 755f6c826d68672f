/* SPDX-License-Identifier: Apache-2.0
 * A plain interpreter of warp IR for tests: see interp.h. */
#include "interp.h"
#include "soft.h"

#include <stdlib.h>

enum { LANES = 32, DEPTH = 16, MAX_STEPS = 10000000 };

typedef struct frame {
    const hw_wir_function *f;
    u128 (*regs)[LANES];
    uint32_t at[LANES], in[LANES]; /* block, instruction */
    uint32_t live;                 /* lanes still in this function */
    uint64_t local;                /* offset of its local memory */
} frame;

static u128 mask_of(unsigned bits)
{
    return bits >= 128 ? ~(u128)0 : ((u128)1 << bits) - 1;
}

static __int128 sign_of(u128 v, unsigned bits)
{
    return bits >= 128 ? (__int128)v : (__int128)(v << (128 - bits)) >> (128 - bits);
}

/* ---- floats ---- */

static soft_format format_of(hw_wir_type t)
{
    return t == HW_T_F16 ? SOFT_F16 : t == HW_T_BF16 ? SOFT_BF16 : SOFT_F32;
}

static double widen(hw_wir_type t, u128 v)
{
    return t == HW_T_F64 ? soft_double((uint64_t)v) : soft_widen((uint64_t)v, format_of(t));
}

static bool is_subnormal(hw_wir_type t, u128 v)
{
    unsigned fraction = t == HW_T_F16 ? 10 : t == HW_T_BF16 ? 7 : t == HW_T_F32 ? 23 : 52;
    unsigned bits = hw_wir_bits(t);
    u128 m = v & mask_of(fraction), e = (v & mask_of(bits - 1)) >> fraction;
    return e == 0 && m != 0;
}

static u128 flush(const hw_wir_insn *i, hw_wir_type t, u128 v)
{
    bool wide = t == HW_T_F64 && i->op != HW_W_RCP_APPROX && i->op != HW_W_RSQRT_APPROX;
    if ((i->flags & HW_I_FTZ) && !wide && is_subnormal(t, v))
        return v & ((u128)1 << (hw_wir_bits(t) - 1));
    return v;
}

static const int c_rounds[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD, FE_TONEAREST };

static double arithmetic(unsigned op, double a, double b, double c)
{
    volatile double x = a, y = b, z = c;
    switch (op) {
    case HW_W_FADD:
        return x + y;
    case HW_W_FSUB:
        return x - y;
    case HW_W_FMUL:
        return x * y;
    case HW_W_FDIV:
        return x / y;
    case HW_W_FFMA:
        return fma(x, y, z);
    default:
        return sqrt(x);
    }
}

static u128 finish_float(const hw_wir_insn *i, hw_wir_type t, u128 r)
{
    double v = widen(t, r);
    u128 one = t == HW_T_F64 ? soft_bits64(1.0) : soft_narrow(1.0, format_of(t), SOFT_RN);
    if (i->flags & HW_I_SAT)
        r = !(v > 0) ? 0 : v > 1 ? one : r;
    if ((i->flags & HW_I_RELU) && v < 0)
        r = 0;
    if ((i->flags & HW_I_RELU) && v == 0)
        r = 0;
    return flush(i, t, r);
}

static u128 float_op(const hw_wir_insn *i, const u128 *s)
{
    hw_wir_type t = i->type;
    double v[3] = { 0 };
    for (unsigned k = 0; k < i->nsrc && k < 3; k++)
        v[k] = widen(t, flush(i, t, s[k]));
    u128 r;
    if (t == HW_T_F64) {
        fesetround(c_rounds[i->round]);
        r = soft_bits64(arithmetic(i->op, v[0], v[1], v[2]));
        fesetround(FE_TONEAREST);
    } else {
        double x;
        SOFT_ODD(x, arithmetic(i->op, v[0], v[1], v[2]));
        if (x == 0 && i->round == HW_ROUND_M) { /* the sign of an exact zero sum */
            fesetround(FE_DOWNWARD);
            x = arithmetic(i->op, v[0], v[1], v[2]);
            fesetround(FE_TONEAREST);
        }
        r = soft_narrow(x, format_of(t), i->round);
    }
    return finish_float(i, t, r);
}

static u128 approx_op(const hw_wir_insn *i, const u128 *s)
{
    hw_wir_type t = i->type;
    double a = widen(t, flush(i, t, s[0])), b = i->nsrc > 1 ? widen(t, flush(i, t, s[1])) : 0, r;
    switch (i->op) {
    case HW_W_RCP_APPROX:
        r = 1 / a;
        break;
    case HW_W_RSQRT_APPROX:
        r = 1 / sqrt(a);
        break;
    case HW_W_SQRT_APPROX:
        r = sqrt(a);
        break;
    case HW_W_SIN_APPROX:
        r = sin(a);
        break;
    case HW_W_COS_APPROX:
        r = cos(a);
        break;
    case HW_W_EX2_APPROX:
        r = exp2(a);
        break;
    case HW_W_LG2_APPROX:
        r = log2(a);
        break;
    case HW_W_TANH_APPROX:
        r = tanh(a);
        break;
    default:
        r = a / b;
        break;
    }
    return finish_float(i, t, t == HW_T_F64 ? soft_bits64(r) : soft_narrow(r, format_of(t), 0));
}

static u128 min_max(const hw_wir_insn *i, u128 a, u128 b)
{
    hw_wir_type t = i->type;
    u128 sign = (u128)1 << (hw_wir_bits(t) - 1), out = 0;
    a = flush(i, t, a);
    b = flush(i, t, b);
    if (i->flags & HW_I_XORSIGN)
        out = (a ^ b) & sign;
    if (i->flags & (HW_I_MINMAX_ABS | HW_I_XORSIGN)) {
        a &= ~sign;
        b &= ~sign;
    }
    double x = widen(t, a), y = widen(t, b);
    bool nan = isnan(x) || isnan(y);
    if ((nan && (i->flags & HW_I_NAN)) || (isnan(x) && isnan(y)))
        return t == HW_T_F64 ? soft_bits64(NAN) : soft_narrow(NAN, format_of(t), 0);
    bool a_first;
    if (nan)
        a_first = isnan(y);
    else if (x == y)
        a_first = (i->op == HW_W_FMIN) == ((a & sign) != 0);
    else
        a_first = (x < y) == (i->op == HW_W_FMIN);
    u128 r = (a_first ? a : b) | out;
    if ((i->flags & HW_I_RELU) && widen(t, r) <= 0)
        r = 0;
    return r;
}

static bool float_compare(unsigned cond, double x, double y)
{
    bool nan = isnan(x) || isnan(y);
    bool r[] = { x == y, x != y && !nan, x<y, x <= y, x> y, x >= y };
    if (cond == HW_C_FNUM)
        return !nan;
    if (cond == HW_C_FNAN)
        return nan;
    return cond >= HW_C_FEQU ? nan || r[cond - HW_C_FEQU] : r[cond - HW_C_FEQ];
}

static bool classify(u128 imm, hw_wir_type t, u128 v)
{
    double x = widen(t, v);
    bool sub = is_subnormal(t, v);
    unsigned set = (isfinite(x) ? HW_CLASS_FINITE : 0u) | (isinf(x) ? HW_CLASS_INFINITE : 0u) |
                   (isnan(x) ? HW_CLASS_NAN : HW_CLASS_NUMBER) |
                   (isfinite(x) && !sub ? HW_CLASS_NORMAL : 0u) | (sub ? HW_CLASS_SUBNORMAL : 0u);
    return (set & (unsigned)imm) != 0;
}

static double round_integral(double v, unsigned round)
{
    switch (round) {
    case HW_ROUND_Z:
        return trunc(v);
    case HW_ROUND_M:
        return floor(v);
    case HW_ROUND_P:
        return ceil(v);
    default:
        return rint(v);
    }
}

static u128 float_to_int(const hw_wir_insn *i, u128 a)
{
    unsigned bits = hw_wir_bits(i->type2);
    bool is_signed = i->op == HW_W_F2I_S;
    double v = widen(i->type, flush(i, i->type, a));
    if (isnan(v))
        return i->flags & HW_I_NAN_MIN ? (u128)1 << (bits - 1) : 0;
    v = round_integral(v, i->round);
    double top = ldexp(1.0, (int)(is_signed ? bits - 1 : bits));
    if (v >= top)
        return mask_of(is_signed ? bits - 1 : bits);
    if (!is_signed && v <= 0)
        return 0;
    if (is_signed && v <= -top)
        return (u128)1 << (bits - 1);
    return (u128)(__int128)v & mask_of(bits);
}

static u128 int_to_float(const hw_wir_insn *i, u128 a)
{
    unsigned bits = hw_wir_bits(i->type);
    hw_wir_type t = i->type2;
    __int128 v = i->op == HW_W_I2F_S ? sign_of(a, bits) : (__int128)a;
    if (t == HW_T_F64) {
        fesetround(c_rounds[i->round]);
        volatile double r = i->op == HW_W_I2F_S ? (double)(int64_t)v : (double)(uint64_t)v;
        fesetround(FE_TONEAREST);
        return finish_float(i, t, soft_bits64(r));
    }
    double x;
    SOFT_ODD(x, i->op == HW_W_I2F_S ? (double)(int64_t)v : (double)(uint64_t)v);
    return finish_float(i, t, soft_narrow(x, format_of(t), i->round));
}

static u128 float_to_float(const hw_wir_insn *i, u128 a)
{
    double v = widen(i->type, flush(i, i->type, a));
    hw_wir_type t = i->type2;
    u128 r = t == HW_T_F64 ? soft_bits64(v) : soft_narrow(v, format_of(t), i->round);
    return finish_float(i, t, r);
}

/* ---- integers ---- */

static u128 reverse(u128 v, unsigned bits)
{
    u128 r = 0;
    for (unsigned k = 0; k < bits; k++)
        r |= ((v >> k) & 1) << (bits - 1 - k);
    return r;
}

static unsigned leading_zeros(u128 v, unsigned bits)
{
    unsigned n = 0;
    while (n < bits && !((v >> (bits - 1 - n)) & 1))
        n++;
    return n;
}

static unsigned ones(u128 v)
{
    unsigned n = 0;
    for (; v; v &= v - 1)
        n++;
    return n;
}

static u128 permute(u128 a, u128 b, u128 c)
{
    u128 bytes = a | b << 32, r = 0;
    for (unsigned k = 0; k < 4; k++) {
        unsigned sel = (unsigned)(c >> (4 * k)) & 15;
        unsigned byte = (unsigned)(bytes >> (8 * (sel & 7))) & 0xff;
        r |= (u128)(sel & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << (8 * k);
    }
    return r;
}

static u128 lookup3(u128 a, u128 b, u128 c, uint64_t table, unsigned bits)
{
    u128 r = 0;
    for (unsigned k = 0; k < bits; k++) {
        unsigned at = (unsigned)((((a >> k) & 1) << 2) | (((b >> k) & 1) << 1) | ((c >> k) & 1));
        r |= (u128)((table >> at) & 1) << k;
    }
    return r;
}

static u128 field_extract(u128 a, u128 b, u128 c, unsigned bits, bool is_signed)
{
    unsigned pos = (unsigned)b & 0xff, len = (unsigned)c & 0xff;
    if (len == 0)
        return 0;
    unsigned top = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;
    bool s = is_signed && ((a >> top) & 1);
    u128 r = 0;
    for (unsigned k = 0; k < bits; k++) {
        bool bit = k < len && pos + k < bits ? (a >> (pos + k)) & 1 : s;
        r |= (u128)bit << k;
    }
    return r;
}

static u128 field_insert(u128 a, u128 b, u128 c, u128 d, unsigned bits)
{
    unsigned pos = (unsigned)c & 0xff, len = (unsigned)d & 0xff;
    for (unsigned k = 0; k < len && pos + k < bits; k++) {
        b &= ~((u128)1 << (pos + k));
        b |= ((a >> k) & 1) << (pos + k);
    }
    return b;
}

static __int128 saturate(__int128 v, unsigned bits)
{
    __int128 high = ((__int128)1 << (bits - 1)) - 1;
    return v > high ? high : v < -high - 1 ? -high - 1 : v;
}

static u128 shift(unsigned op, u128 a, u128 n, unsigned bits)
{
    if (op == HW_W_SHL)
        return n >= bits ? 0 : a << (unsigned)n;
    if (op == HW_W_SHR_U)
        return n >= bits ? 0 : a >> (unsigned)n;
    return (u128)(sign_of(a, bits) >> (n >= bits ? bits - 1 : (unsigned)n));
}

static u128 divide(unsigned op, u128 a, u128 b, unsigned bits)
{
    bool rem = op == HW_W_REM_U || op == HW_W_REM_S;
    if (b == 0)
        return rem ? a : mask_of(bits);
    if (op == HW_W_DIV_U || op == HW_W_REM_U)
        return rem ? a % b : a / b;
    __int128 x = sign_of(a, bits), y = sign_of(b, bits);
    return (u128)(rem ? x % y : x / y);
}

static bool int_compare(unsigned cond, u128 a, u128 b, unsigned bits)
{
    __int128 x = sign_of(a, bits), y = sign_of(b, bits);
    bool r[] = { a == b, a != b, x<y, x <= y, x> y, x >= y, a<b, a <= b, a> b, a >= b };
    return r[cond];
}

static u128 high_product(unsigned op, u128 a, u128 b, unsigned bits)
{
    if (op == HW_W_MULHI_U)
        return (a * b) >> bits;
    return (u128)((sign_of(a, bits) * sign_of(b, bits)) >> bits);
}

/* What one lane of a pure operation gives; false: not known here. */
static bool int_op(const hw_wir_insn *i, const u128 *s, u128 *d)
{
    unsigned bits = hw_wir_bits(i->type);
    u128 a = s[0], b = i->nsrc > 1 ? s[1] : 0, c = i->nsrc > 2 ? s[2] : 0;
    __int128 x = sign_of(a, bits ? bits : 1), y = sign_of(b, bits ? bits : 1);
    switch (i->op) {
    case HW_W_MOV:
    case HW_W_BITCAST:
    case HW_W_ZEXT:
    case HW_W_TRUNC:
        *d = a;
        break;
    case HW_W_SEXT:
        *d = (u128)x;
        break;
    case HW_W_SELECT:
        *d = a ? b : c;
        break;
    case HW_W_ADD:
        *d = a + b;
        break;
    case HW_W_SUB:
        *d = a - b;
        break;
    case HW_W_MUL:
        *d = a * b;
        break;
    case HW_W_MULHI_U:
    case HW_W_MULHI_S:
        *d = high_product(i->op, a, b, bits);
        break;
    case HW_W_DIV_U:
    case HW_W_DIV_S:
    case HW_W_REM_U:
    case HW_W_REM_S:
        *d = divide(i->op, a, b, bits);
        break;
    case HW_W_MIN_U:
        *d = a < b ? a : b;
        break;
    case HW_W_MAX_U:
        *d = a > b ? a : b;
        break;
    case HW_W_MIN_S:
        *d = (u128)(x < y ? x : y);
        break;
    case HW_W_MAX_S:
        *d = (u128)(x > y ? x : y);
        break;
    case HW_W_ADD_SAT_S:
        *d = (u128)saturate(x + y, bits);
        break;
    case HW_W_SUB_SAT_S:
        *d = (u128)saturate(x - y, bits);
        break;
    case HW_W_ABS:
        *d = (u128)(x < 0 ? -x : x);
        break;
    case HW_W_AND:
        *d = a & b;
        break;
    case HW_W_OR:
        *d = a | b;
        break;
    case HW_W_XOR:
        *d = a ^ b;
        break;
    case HW_W_NOT:
        *d = ~a;
        break;
    case HW_W_SHL:
    case HW_W_SHR_U:
    case HW_W_SHR_S:
        *d = shift(i->op, a, b, bits);
        break;
    case HW_W_FSHL:
        *d = ((b << bits | a) << ((unsigned)c % bits)) >> bits;
        break;
    case HW_W_FSHR:
        *d = (b << bits | a) >> ((unsigned)c % bits);
        break;
    case HW_W_POPC:
        *d = ones(a);
        break;
    case HW_W_CLZ:
        *d = leading_zeros(a, bits);
        break;
    case HW_W_BREV:
        *d = reverse(a, bits);
        break;
    case HW_W_PRMT:
        *d = permute(a, b, c);
        break;
    case HW_W_LOP3:
        *d = lookup3(a, b, c, i->imm, bits);
        break;
    case HW_W_BFE_U:
    case HW_W_BFE_S:
        *d = field_extract(a, b, c, bits, i->op == HW_W_BFE_S);
        break;
    case HW_W_BFI:
        *d = field_insert(a, b, c, s[3], bits);
        break;
    case HW_W_ICMP:
        *d = int_compare(i->cond, a, b, bits);
        break;
    default:
        return false;
    }
    return true;
}

static bool scalar_op(const hw_wir_insn *i, const u128 *s, u128 *d)
{
    switch (i->op) {
    case HW_W_FADD:
    case HW_W_FSUB:
    case HW_W_FMUL:
    case HW_W_FDIV:
    case HW_W_FFMA:
    case HW_W_FSQRT:
        *d = float_op(i, s);
        break;
    case HW_W_FMIN:
    case HW_W_FMAX:
        *d = min_max(i, s[0], s[1]);
        break;
    case HW_W_FNEG:
        *d = flush(i, i->type, s[0]) ^ (u128)1 << (hw_wir_bits(i->type) - 1);
        break;
    case HW_W_FABS:
        *d = flush(i, i->type, s[0]) & mask_of(hw_wir_bits(i->type) - 1);
        break;
    case HW_W_FCOPYSIGN: {
        u128 m = mask_of(hw_wir_bits(i->type) - 1);
        *d = (s[1] & m) | (s[0] & ~m);
        break;
    }
    case HW_W_FRINT: {
        u128 v = flush(i, i->type, s[0]);
        double r = round_integral(widen(i->type, v), i->round);
        *d = finish_float(i, i->type,
                          i->type == HW_T_F64 ? soft_bits64(r)
                                              : soft_narrow(r, format_of(i->type), 0));
        break;
    }
    case HW_W_FCMP:
        *d = float_compare(i->cond, widen(i->type, flush(i, i->type, s[0])),
                           widen(i->type, flush(i, i->type, s[1])));
        break;
    case HW_W_FCLASS:
        *d = classify(i->imm, i->type, s[0]);
        break;
    case HW_W_FCVT:
        *d = float_to_float(i, s[0]);
        break;
    case HW_W_F2I_S:
    case HW_W_F2I_U:
        *d = float_to_int(i, s[0]);
        break;
    case HW_W_I2F_S:
    case HW_W_I2F_U:
        *d = int_to_float(i, s[0]);
        break;
    default:
        if (i->op >= HW_W_RCP_APPROX && i->op <= HW_W_TANH_APPROX) {
            *d = approx_op(i, s);
            break;
        }
        return int_op(i, s, d);
    }
    return true;
}

/* Packed types: the operation on each part. */
static bool pure_op(const hw_wir_insn *i, const u128 *s, u128 *d)
{
    static const struct {
        uint8_t packed, part, n;
    } kinds[] = { { HW_T_V2F16, HW_T_F16, 2 },
                  { HW_T_V2BF16, HW_T_BF16, 2 },
                  { HW_T_V2I16, HW_T_I16, 2 },
                  { HW_T_V4I8, HW_T_I8, 4 } };
    bool whole = i->op == HW_W_MOV || i->op == HW_W_SELECT || i->op == HW_W_BITCAST;
    for (size_t k = 0; k < HW_COUNTOF(kinds) && !whole; k++) {
        if (i->type != kinds[k].packed)
            continue;
        unsigned bits = 32u / kinds[k].n;
        hw_wir_insn part = *i;
        part.type = kinds[k].part;
        *d = 0;
        for (unsigned p = 0; p < kinds[k].n; p++) {
            u128 ps[4] = { 0 }, pd = 0;
            for (unsigned j = 0; j < i->nsrc && j < 4; j++)
                ps[j] = (s[j] >> (p * bits)) & mask_of(bits);
            if (!scalar_op(&part, ps, &pd))
                return false;
            *d |= (pd & mask_of(bits)) << (p * bits);
        }
        return true;
    }
    return scalar_op(i, s, d);
}

/* ---- memory and what a lane knows ---- */

static uint64_t address_of(const interp *x, const hw_wir_insn *i, u128 base)
{
    uint64_t a = (uint64_t)base + i->imm;
    return i->space == HW_SPACE_SHARED ? (uint64_t)(uintptr_t)x->shared + a : a;
}

static u128 load(uint64_t a, unsigned bits)
{
    u128 v = 0;
    memcpy(&v, (const void *)(uintptr_t)a, bits / 8);
    return v;
}

static void store(uint64_t a, u128 v, unsigned bits)
{
    memcpy((void *)(uintptr_t)a, &v, bits / 8);
}

static u128 atomic(const hw_wir_insn *i, u128 old, const u128 *s)
{
    unsigned bits = hw_wir_bits(i->type);
    u128 v = s[1];
    __int128 x = sign_of(old, bits), y = sign_of(v, bits);
    hw_wir_insn add = { .op = HW_W_FADD, .type = i->type, .nsrc = 2 };
    u128 r = 0;
    switch (i->atom) {
    case HW_ATOM_ADD:
        return old + v;
    case HW_ATOM_MIN_S:
        return (u128)(x < y ? x : y);
    case HW_ATOM_MAX_S:
        return (u128)(x > y ? x : y);
    case HW_ATOM_MIN_U:
        return old < v ? old : v;
    case HW_ATOM_MAX_U:
        return old > v ? old : v;
    case HW_ATOM_AND:
        return old & v;
    case HW_ATOM_OR:
        return old | v;
    case HW_ATOM_XOR:
        return old ^ v;
    case HW_ATOM_EXCH:
        return v;
    case HW_ATOM_CAS:
        return old == v ? s[2] : old;
    case HW_ATOM_INC:
        return old >= v ? 0 : old + 1;
    case HW_ATOM_DEC:
        return old == 0 || old > v ? v : old - 1;
    case HW_ATOM_FADD:
        pure_op(&add, (u128[]){ old, v }, &r);
        return r;
    default:
        add.op = i->atom == HW_ATOM_FMIN ? HW_W_FMIN : HW_W_FMAX;
        pure_op(&add, (u128[]){ old, v }, &r);
        return r;
    }
}

static u128 special(const interp *x, unsigned sr, unsigned lane)
{
    uint32_t t = x->warp * LANES + lane, nx = x->ntid[0] ? x->ntid[0] : 1,
             ny = x->ntid[1] ? x->ntid[1] : 1;
    uint32_t bit = UINT32_C(1) << lane;
    switch (sr) {
    case HW_SR_TID_X:
        return t % nx;
    case HW_SR_TID_Y:
        return t / nx % ny;
    case HW_SR_TID_Z:
        return t / nx / ny;
    case HW_SR_NTID_X:
    case HW_SR_NTID_Y:
    case HW_SR_NTID_Z:
        return x->ntid[sr - HW_SR_NTID_X];
    case HW_SR_CTAID_X:
    case HW_SR_CTAID_Y:
    case HW_SR_CTAID_Z:
        return x->ctaid[sr - HW_SR_CTAID_X];
    case HW_SR_NCTAID_X:
    case HW_SR_NCTAID_Y:
    case HW_SR_NCTAID_Z:
        return x->nctaid[sr - HW_SR_NCTAID_X];
    case HW_SR_LANEID:
        return lane;
    case HW_SR_WARPID:
        return x->warp;
    case HW_SR_LANEMASK_EQ:
        return bit;
    case HW_SR_LANEMASK_LE:
        return bit | (bit - 1);
    case HW_SR_LANEMASK_LT:
        return bit - 1;
    case HW_SR_LANEMASK_GE:
        return ~(bit - 1);
    case HW_SR_LANEMASK_GT:
        return ~(bit | (bit - 1));
    default:
        return 0;
    }
}

static bool known_op(const interp *x, const frame *f, const hw_wir_insn *i, unsigned lane, u128 *d)
{
    switch (i->op) {
    case HW_W_SREG:
        *d = special(x, (unsigned)i->imm, lane);
        return true;
    case HW_W_CLOCK:
        *d = 0;
        return true;
    case HW_W_PARAM_ADDR:
        *d = (uint64_t)(uintptr_t)x->params + i->imm;
        return true;
    case HW_W_SYMBOL:
        *d = x->symbols[i->imm];
        return true;
    case HW_W_FUNC_ADDR:
        *d = i->imm + 1;
        return true;
    case HW_W_LOCAL_ADDR:
        *d = (uint64_t)(uintptr_t)x->local + lane * x->local_stride + f->local + i->imm;
        return true;
    case HW_W_SHARED_BASE:
        *d = (uint64_t)(uintptr_t)x->shared;
        return true;
    default:
        return false;
    }
}

/* ---- across lanes ---- */

static u128 value(const frame *f, hw_wir_val v, unsigned lane)
{
    return v.kind == HW_V_REG ? f->regs[v.reg][lane] : v.imm;
}

static void set(frame *f, hw_wir_val d, unsigned lane, u128 v)
{
    if (d.kind == HW_V_REG)
        f->regs[d.reg][lane] = v & mask_of(hw_wir_bits(f->f->regs.ptr[d.reg].type));
}

static uint32_t ballot(const frame *f, const hw_wir_insn *i, uint32_t act, uint32_t members)
{
    uint32_t r = 0;
    for (unsigned l = 0; l < LANES; l++)
        if (((act & members) >> l) & 1)
            r |= (uint32_t)(value(f, i->src[0], l) != 0) << l;
    return r;
}

static void shuffle(frame *f, const hw_wir_insn *i, uint32_t act)
{
    u128 r[LANES];
    bool p[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        unsigned b = (unsigned)value(f, i->src[1], l), c = (unsigned)value(f, i->src[2], l);
        unsigned seg = (c >> 8) & 31, clamp = c & 31, max = (l & seg) | (clamp & ~seg), j = l;
        unsigned low = l & seg;
        b &= 31;
        if (i->imm == HW_SHFL_UP)
            j = l - b, p[l] = (int)j >= (int)max;
        else if (i->imm == HW_SHFL_DOWN)
            j = l + b, p[l] = j <= max;
        else if (i->imm == HW_SHFL_BFLY)
            j = l ^ b, p[l] = j <= max;
        else
            j = low | (b & ~seg), p[l] = j <= max;
        r[l] = value(f, i->src[0], p[l] ? j & 31 : l);
    }
    for (unsigned l = 0; l < LANES; l++)
        if ((act >> l) & 1) {
            set(f, i->dst[0], l, r[l]);
            set(f, i->dst[1], l, p[l]);
        }
}

static u128 reduce(const frame *f, const hw_wir_insn *i, uint32_t lanes)
{
    bool first = true;
    u128 r = 0;
    hw_wir_insn one = *i;
    for (unsigned l = 0; l < LANES; l++)
        if ((lanes >> l) & 1) {
            u128 v = value(f, i->src[0], l);
            r = first ? v : atomic(&one, r, (u128[]){ 0, v }) & mask_of(32);
            first = false;
        }
    return r;
}

static uint32_t equal_lanes(const frame *f, const hw_wir_insn *i, unsigned l, uint32_t lanes)
{
    uint32_t r = 0;
    for (unsigned k = 0; k < LANES; k++)
        if ((lanes >> k) & 1)
            r |= (uint32_t)(value(f, i->src[0], k) == value(f, i->src[0], l)) << k;
    return r;
}

static void lane_result(frame *f, const hw_wir_insn *i, unsigned l, uint32_t act)
{
    uint32_t members = i->nsrc > 1 ? (uint32_t)value(f, i->src[1], l) & act : act;
    uint32_t votes = i->nsrc == 2 && i->op <= HW_W_VOTE_UNI ? ballot(f, i, act, members) : 0;
    switch (i->op) {
    case HW_W_BALLOT:
        set(f, i->dst[0], l, votes);
        break;
    case HW_W_ACTIVEMASK:
        set(f, i->dst[0], l, act);
        break;
    case HW_W_VOTE_ALL:
        set(f, i->dst[0], l, votes == members);
        break;
    case HW_W_VOTE_ANY:
        set(f, i->dst[0], l, votes != 0);
        break;
    case HW_W_VOTE_UNI:
        set(f, i->dst[0], l, votes == members || votes == 0);
        break;
    case HW_W_MATCH_ANY:
        set(f, i->dst[0], l, equal_lanes(f, i, l, members));
        break;
    case HW_W_MATCH_ALL: {
        bool all = equal_lanes(f, i, l, members) == members;
        set(f, i->dst[0], l, all ? members : 0);
        set(f, i->dst[1], l, all);
        break;
    }
    case HW_W_REDUX:
        set(f, i->dst[0], l, reduce(f, i, members));
        break;
    default: { /* ELECT */
        uint32_t m = (uint32_t)value(f, i->src[0], l) & act;
        unsigned leader = m ? (unsigned)__builtin_ctz(m) : 0;
        set(f, i->dst[0], l, leader);
        set(f, i->dst[1], l, leader == l);
        break;
    }
    }
}

static void across(frame *f, const hw_wir_insn *i, uint32_t act)
{
    if (i->op == HW_W_SHFL) {
        shuffle(f, i, act);
        return;
    }
    /* all lanes read before one writes */
    frame copy = *f;
    u128(*before)[LANES] = malloc(sizeof *before * f->f->regs.len);
    u128(*after)[LANES] = f->regs;
    memcpy(before, f->regs, sizeof *before * f->f->regs.len);
    copy.regs = before;
    for (unsigned l = 0; l < LANES; l++) {
        if (!((act >> l) & 1))
            continue;
        frame one = copy;
        lane_result(&one, i, l, act);
        for (unsigned k = 0; k < i->ndst; k++)
            if (i->dst[k].kind == HW_V_REG) {
                u128 v = before[i->dst[k].reg][l];
                before[i->dst[k].reg][l] = after[i->dst[k].reg][l];
                after[i->dst[k].reg][l] = v;
            }
    }
    free(before);
}

/* ---- running ---- */

static bool run_function(interp *x, const hw_wir_function *f, uint32_t act, uint64_t local,
                         const hw_wir_insn *call, frame *caller, unsigned depth);

static bool call_function(interp *x, frame *f, const hw_wir_insn *i, uint32_t act, unsigned depth)
{
    if (i->op == HW_W_CALL)
        return run_function(x, &x->m->functions.ptr[i->imm], act, f->local + f->f->local_bytes, i,
                            f, depth + 1);
    for (unsigned l = 0; l < LANES; l++) {
        if (!((act >> l) & 1))
            continue;
        u128 which = value(f, i->src[0], l);
        hw_wir_insn direct = *i;
        direct.src = i->src + 1;
        direct.nsrc--;
        if (which == 0 || which > x->m->functions.len) {
            x->failed = "indirect call of no function";
            return false;
        }
        if (!run_function(x, &x->m->functions.ptr[which - 1], UINT32_C(1) << l,
                          f->local + f->f->local_bytes, &direct, f, depth + 1))
            return false;
    }
    return true;
}

static void copy_bytes(interp *x, const u128 *s, uint64_t size)
{
    uint8_t *to = x->shared + (uint32_t)s[0];
    uint64_t n = (uint64_t)s[2] < size ? (uint64_t)s[2] : size;
    memcpy(to, (const void *)(uintptr_t)(uint64_t)s[1], n);
    memset(to + n, 0, size - n);
}

/* Helpers of pure arithmetic; others are not for this interpreter. */
static bool help(frame *f, const hw_wir_insn *i, unsigned l, const u128 *s)
{
    if (i->imm != HW_H_FNS)
        return false;
    uint32_t mask = (uint32_t)s[0], base = (uint32_t)s[1];
    int32_t offset = (int32_t)(uint32_t)s[2], step = offset < 0 ? -1 : 1;
    int64_t n = offset < 0 ? -(int64_t)offset : offset;
    u128 r = UINT32_MAX;
    if (n == 0)
        r = base < 32 && (mask >> base) & 1 ? base : UINT32_MAX;
    for (int64_t at = base; n > 0 && at >= 0 && at < 32; at += step)
        if ((mask >> at) & 1 && --n == 0)
            r = (u128)at;
    set(f, i->dst[0], l, r);
    return true;
}

static bool lane_op(interp *x, frame *f, const hw_wir_insn *i, unsigned l)
{
    u128 s[16], d = 0;
    for (unsigned k = 0; k < i->nsrc && k < 16; k++)
        s[k] = value(f, i->src[k], l);
    unsigned bits = hw_wir_bits(i->type);
    switch (i->op) {
    case HW_W_LOAD:
        for (unsigned k = 0; k < i->ndst; k++)
            set(f, i->dst[k], l, load(address_of(x, i, s[0]) + k * bits / 8, bits));
        return true;
    case HW_W_STORE:
        for (unsigned k = 1; k < i->nsrc; k++)
            store(address_of(x, i, s[0]) + (k - 1) * bits / 8, s[k], bits);
        return true;
    case HW_W_ATOM:
    case HW_W_RED: {
        uint64_t a = address_of(x, i, s[0]);
        u128 old = load(a, bits);
        store(a, atomic(i, old, s), bits);
        if (i->ndst)
            set(f, i->dst[0], l, old);
        return true;
    }
    case HW_W_COPY:
        copy_bytes(x, s, i->imm);
        return true;
    case HW_W_FENCE:
    case HW_W_PREFETCH:
    case HW_W_WARPSYNC:
    case HW_W_YIELD:
        return true;
    case HW_W_HELPER:
        if (help(f, i, l, s))
            return true;
        x->failed = "a helper that it does not know";
        return false;
    case HW_W_ISSPACE: {
        uint64_t a = (uint64_t)s[0], sh = (uint64_t)(uintptr_t)x->shared;
        bool shared = a >= sh && a < sh + 65536;
        set(f, i->dst[0], l, (i->space == HW_SPACE_SHARED) == shared);
        return true;
    }
    default:
        break;
    }
    if (!known_op(x, f, i, l, &d) && !pure_op(i, s, &d)) {
        x->failed = hw_wir_ops[i->op].name;
        return false;
    }
    set(f, i->dst[0], l, d);
    return true;
}

static uint32_t guarded(const frame *f, const hw_wir_insn *i, uint32_t act)
{
    uint32_t r = 0;
    if (i->guard.kind != HW_V_REG)
        return act;
    for (unsigned l = 0; l < LANES; l++)
        if ((act >> l) & 1 && (value(f, i->guard, l) != 0) != ((i->flags & HW_I_NEG_GUARD) != 0))
            r |= UINT32_C(1) << l;
    return r;
}

static void go(frame *f, unsigned l, uint32_t block)
{
    f->at[l] = block;
    f->in[l] = 0;
}

static bool terminate(interp *x, frame *f, const hw_wir_block *b, const hw_wir_insn *i,
                      uint32_t act)
{
    uint32_t on = guarded(f, i, act);
    for (unsigned l = 0; l < LANES; l++) {
        if (!((act >> l) & 1))
            continue;
        bool taken = (on >> l) & 1;
        if (i->op == HW_W_BR)
            go(f, l, b->targets[0]);
        else if (i->op == HW_W_CBR)
            go(f, l, b->targets[value(f, i->src[0], l) ? 0 : 1]);
        else if (i->op == HW_W_BRX && value(f, i->src[0], l) < b->ntargets)
            go(f, l, b->targets[(uint32_t)value(f, i->src[0], l)]);
        else if (i->op == HW_W_BRX || (i->op == HW_W_TRAP && taken)) {
            x->failed = "trap";
            return false;
        } else if (taken) {
            f->live &= ~(UINT32_C(1) << l);
            if (i->op == HW_W_EXIT)
                x->lanes &= ~(UINT32_C(1) << l);
        } else {
            go(f, l, b->targets[0]);
        }
    }
    return true;
}

static uint32_t choose(const frame *f)
{
    uint32_t block = UINT32_MAX, in = 0, act = 0;
    for (unsigned l = 0; l < LANES; l++) {
        if (!((f->live >> l) & 1))
            continue;
        if (f->at[l] < block || (f->at[l] == block && f->in[l] < in)) {
            block = f->at[l];
            in = f->in[l];
            act = 0;
        }
        if (f->at[l] == block && f->in[l] == in)
            act |= UINT32_C(1) << l;
    }
    return act;
}

static bool step(interp *x, frame *f, uint32_t act, unsigned depth)
{
    unsigned first = (unsigned)__builtin_ctz(act);
    const hw_wir_block *b = &f->f->blocks.ptr[f->at[first]];
    const hw_wir_insn *i = &b->insns.ptr[f->in[first]];
    if (hw_wir_ops[i->op].flags & HW_WF_T)
        return terminate(x, f, b, i, act);
    uint32_t on = guarded(f, i, act);
    if (hw_wir_ops[i->op].flags & HW_WF_X) {
        if (on)
            across(f, i, on);
    } else if (i->op == HW_W_CALL || i->op == HW_W_CALLI) {
        if (on && !call_function(x, f, i, on, depth))
            return false;
        f->live &= x->lanes;
    } else {
        for (unsigned l = 0; l < LANES; l++)
            if ((on >> l) & 1 && !lane_op(x, f, i, l))
                return false;
    }
    for (unsigned l = 0; l < LANES; l++)
        if ((act >> l) & 1)
            f->in[l]++;
    return true;
}

static bool run_function(interp *x, const hw_wir_function *f, uint32_t act, uint64_t local,
                         const hw_wir_insn *call, frame *caller, unsigned depth)
{
    if (depth > DEPTH || !f->defined) {
        x->failed = "call too deep or of nothing";
        return false;
    }
    frame fr = { .f = f, .live = act, .local = local };
    fr.regs = calloc(f->regs.len + 1, sizeof *fr.regs);
    for (unsigned l = 0; call && l < LANES; l++)
        for (uint32_t k = 0; k < f->nparams && k < call->nsrc; k++)
            fr.regs[f->params[k]][l] = value(caller, call->src[k], l);
    bool ok = true;
    for (unsigned n = 0; ok && fr.live; n++) {
        ok = n < MAX_STEPS && step(x, &fr, choose(&fr), depth);
        if (n >= MAX_STEPS)
            x->failed = "too many steps";
    }
    for (unsigned l = 0; ok && call && l < LANES; l++)
        for (uint32_t k = 0; (act & x->lanes) >> l & 1 && k < call->ndst; k++)
            set(caller, call->dst[k], l, fr.regs[f->results[k]][l]);
    free(fr.regs);
    return ok;
}

bool interp_run(interp *x)
{
    x->failed = NULL;
    return run_function(x, &x->m->functions.ptr[0], x->lanes, 0, NULL, NULL, 0);
}

/* SPDX-License-Identifier: Apache-2.0
 * The plain interpreter's arithmetic: what one lane of a pure operation gives. */
#include "interp.h"
#include "soft.h"

u128 interp_mask(unsigned bits)
{
    return bits >= 128 ? ~(u128)0 : ((u128)1 << bits) - 1;
}

__int128 interp_sign(u128 v, unsigned bits)
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
    u128 m = v & interp_mask(fraction), e = (v & interp_mask(bits - 1)) >> fraction;
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
        return interp_mask(is_signed ? bits - 1 : bits);
    if (!is_signed && v <= 0)
        return 0;
    if (is_signed && v <= -top)
        return (u128)1 << (bits - 1);
    return (u128)(__int128)v & interp_mask(bits);
}

static u128 int_to_float(const hw_wir_insn *i, u128 a)
{
    unsigned bits = hw_wir_bits(i->type);
    hw_wir_type t = i->type2;
    __int128 v = i->op == HW_W_I2F_S ? interp_sign(a, bits) : (__int128)a;
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

static u128 dot4(u128 a, u128 b, u128 c, uint64_t signs)
{
    int64_t sum = (int64_t)c;
    for (int k = 0; k < 4; k++) {
        int64_t x = (int64_t)(a >> 8 * k & 255), y = (int64_t)(b >> 8 * k & 255);
        x -= signs & 1 && x > 127 ? 256 : 0;
        y -= signs & 2 && y > 127 ? 256 : 0;
        sum += x * y;
    }
    return (uint32_t)sum;
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
    return (u128)(interp_sign(a, bits) >> (n >= bits ? bits - 1 : (unsigned)n));
}

static u128 divide(unsigned op, u128 a, u128 b, unsigned bits)
{
    bool rem = op == HW_W_REM_U || op == HW_W_REM_S;
    if (b == 0)
        return rem ? a : interp_mask(bits);
    if (op == HW_W_DIV_U || op == HW_W_REM_U)
        return rem ? a % b : a / b;
    __int128 x = interp_sign(a, bits), y = interp_sign(b, bits);
    return (u128)(rem ? x % y : x / y);
}

static bool int_compare(unsigned cond, u128 a, u128 b, unsigned bits)
{
    __int128 x = interp_sign(a, bits), y = interp_sign(b, bits);
    bool r[] = { a == b, a != b, x<y, x <= y, x> y, x >= y, a<b, a <= b, a> b, a >= b };
    return r[cond];
}

static u128 high_product(unsigned op, u128 a, u128 b, unsigned bits)
{
    if (op == HW_W_MULHI_U)
        return (a * b) >> bits;
    return (u128)((interp_sign(a, bits) * interp_sign(b, bits)) >> bits);
}

/* Moves and arithmetic; false: not one of them. */
static bool arithmetic_op(const hw_wir_insn *i, const u128 *s, u128 *d)
{
    unsigned bits = hw_wir_bits(i->type);
    u128 a = s[0], b = i->nsrc > 1 ? s[1] : 0, c = i->nsrc > 2 ? s[2] : 0;
    __int128 x = interp_sign(a, bits ? bits : 1), y = interp_sign(b, bits ? bits : 1);
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
    default:
        return false;
    }
    return true;
}

/* Logic, shifts, bits and comparison. */
static bool bit_op(const hw_wir_insn *i, const u128 *s, u128 *d)
{
    unsigned bits = hw_wir_bits(i->type);
    u128 a = s[0], b = i->nsrc > 1 ? s[1] : 0, c = i->nsrc > 2 ? s[2] : 0;
    switch (i->op) {
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
    case HW_W_DOT4:
        *d = dot4(a, b, c, i->imm);
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
        *d = flush(i, i->type, s[0]) & interp_mask(hw_wir_bits(i->type) - 1);
        break;
    case HW_W_FCOPYSIGN: {
        u128 m = interp_mask(hw_wir_bits(i->type) - 1);
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
        return arithmetic_op(i, s, d) || bit_op(i, s, d);
    }
    return true;
}

/* Packed types: the operation on each part. */
bool interp_pure(const hw_wir_insn *i, const u128 *s, u128 *d)
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
                ps[j] = (s[j] >> (p * bits)) & interp_mask(bits);
            if (!scalar_op(&part, ps, &pd))
                return false;
            *d |= (pd & interp_mask(bits)) << (p * bits);
        }
        return true;
    }
    return scalar_op(i, s, d);
}

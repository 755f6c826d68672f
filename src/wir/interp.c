/* SPDX-License-Identifier: Apache-2.0
 * The reference interpreter: what one lane does, in plain C, as the oracle of tests.
 * Rounding modes use the processor's; operands pass through volatile variables so that the compiler
 * cannot compute ahead of a change of mode. */
#include "analysis.h"
#include "hw_wir_interp.h"

#include <fenv.h>
#include <math.h>

typedef struct op_input {
    const hw_wir_insn *i;
    uint64_t v[5];
} op_input;

/* ---- floats ---- */

static double flush(const hw_wir_insn *i, hw_wir_type t, double x)
{
    bool flushes = (i->flags & HW_I_FTZ) && t == HW_T_F32;
    return flushes && x != 0 && fabs(x) < 0x1p-126 ? copysign(0, x) : x;
}

static double get_float(const hw_wir_insn *i, hw_wir_type t, uint64_t bits)
{
    if (t == HW_T_F64) {
        double d;
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    float f;
    uint32_t low = (uint32_t)bits;
    memcpy(&f, &low, sizeof f);
    return flush(i, t, (double)f);
}

static const uint64_t canonical_nan32 = 0x7fffffff, canonical_nan64 = 0x7ff8000000000000;

/* Bits of a result that is exact in type t already. */
static uint64_t put_float(const hw_wir_insn *i, hw_wir_type t, double x)
{
    if ((i->flags & HW_I_SAT) && !(x > 0))
        x = 0;
    if ((i->flags & HW_I_SAT) && x > 1)
        x = 1;
    if (t == HW_T_F64) {
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return x != x ? canonical_nan64 : bits;
    }
    float f = (float)flush(i, t, x);
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return x != x ? canonical_nan32 : bits;
}

static int rounding_of(const hw_wir_insn *i)
{
    static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD,
                                 FE_TONEAREST };
    return modes[i->round];
}

static double compute64(const hw_wir_insn *i, const double *s)
{
    volatile double a = s[0], b = s[1], c = s[2];
    switch (i->op) {
    case HW_W_FADD:
        return a + b;
    case HW_W_FSUB:
        return a - b;
    case HW_W_FMUL:
        return a * b;
    case HW_W_FDIV:
        return a / b;
    case HW_W_FFMA:
        return fma(a, b, c);
    default:
        return sqrt(a);
    }
}

static double compute32(const hw_wir_insn *i, const double *s)
{
    volatile float a = (float)s[0], b = (float)s[1], c = (float)s[2], r;
    switch (i->op) {
    case HW_W_FADD:
        r = a + b;
        break;
    case HW_W_FSUB:
        r = a - b;
        break;
    case HW_W_FMUL:
        r = a * b;
        break;
    case HW_W_FDIV:
        r = a / b;
        break;
    case HW_W_FFMA:
        r = fmaf(a, b, c);
        break;
    default:
        r = sqrtf(a);
        break;
    }
    return (double)r;
}

static hw_status float_arithmetic(const op_input *x, uint64_t *out)
{
    const hw_wir_insn *i = x->i;
    double s[3] = { 0 };
    for (uint32_t k = 0; k < i->nsrc; k++)
        s[k] = get_float(i, i->type, x->v[k]);
    int old = fegetround();
    fesetround(rounding_of(i));
    volatile double r = i->type == HW_T_F64 ? compute64(i, s) : compute32(i, s);
    fesetround(old);
    *out = put_float(i, i->type, r);
    return HW_OK;
}

/* A NaN loses against a number unless the NAN flag is set; -0 < +0. */
static hw_status float_minmax(const op_input *x, uint64_t *out)
{
    const hw_wir_insn *i = x->i;
    double a = get_float(i, i->type, x->v[0]), b = get_float(i, i->type, x->v[1]);
    if (i->flags & (HW_I_XORSIGN | HW_I_MINMAX_ABS | HW_I_RELU))
        return HW_E_UNSUPPORTED;
    bool first = a < b || (a == b && signbit(a));
    if (i->op == HW_W_FMAX)
        first = a > b || (a == b && !signbit(a));
    double r = first ? a : b;
    if (a != a || b != b)
        r = (i->flags & HW_I_NAN) ? NAN : a != a ? b : a;
    *out = put_float(i, i->type, r);
    return HW_OK;
}

static hw_status float_sign(const op_input *x, uint64_t *out)
{
    const hw_wir_insn *i = x->i;
    uint64_t sign = (uint64_t)1 << (hw_wir_bits(i->type) - 1), v = x->v[0];
    if (i->flags & HW_I_FTZ)
        return HW_E_UNSUPPORTED;
    if (i->op == HW_W_FNEG)
        *out = v ^ sign;
    else if (i->op == HW_W_FABS)
        *out = v & ~sign;
    else
        *out = (v & sign) | (x->v[1] & ~sign);
    return HW_OK;
}

static hw_status float_compare(const op_input *x, uint64_t *out)
{
    const hw_wir_insn *i = x->i;
    double a = get_float(i, i->type, x->v[0]), b = get_float(i, i->type, x->v[1]);
    bool unordered = a != a || b != b;
    bool results[] = { a == b, a != b, a<b, a <= b, a> b, a >= b };
    if (i->cond == HW_C_FNUM || i->cond == HW_C_FNAN)
        *out = unordered == (i->cond == HW_C_FNAN);
    else if (i->cond >= HW_C_FEQU)
        *out = unordered || results[i->cond - HW_C_FEQU];
    else
        *out = !unordered && results[i->cond - HW_C_FEQ];
    return HW_OK;
}

static double rounded(const hw_wir_insn *i, double a)
{
    switch (i->round) {
    case HW_ROUND_Z:
        return trunc(a);
    case HW_ROUND_M:
        return floor(a);
    case HW_ROUND_P:
        return ceil(a);
    default:
        return nearbyint(a);
    }
}

static hw_status float_rint(const op_input *x, uint64_t *out)
{
    *out = put_float(x->i, x->i->type, rounded(x->i, get_float(x->i, x->i->type, x->v[0])));
    return HW_OK;
}

static hw_status float_to_int(const op_input *x, uint64_t *out)
{
    const hw_wir_insn *i = x->i;
    unsigned bits = hw_wir_bits(i->type2);
    double a = rounded(i, get_float(i, i->type, x->v[0]));
    bool is_signed = i->op == HW_W_F2I_S;
    double top = ldexp(1, (int)bits - is_signed), bottom = is_signed ? -top : 0;
    uint64_t most = hw_wir_mask(bits - is_signed);
    uint64_t least = is_signed ? (uint64_t)1 << (bits - 1) : 0;
    if (a != a)
        *out = i->flags & HW_I_NAN_MIN ? (uint64_t)1 << (bits - 1) : 0;
    else if (a >= top)
        *out = most;
    else if (a < bottom)
        *out = least;
    else
        *out = (is_signed ? (uint64_t)(int64_t)a : (uint64_t)a) & hw_wir_mask(bits);
    return HW_OK;
}

static hw_status int_to_float(const op_input *x, uint64_t *out)
{
    const hw_wir_insn *i = x->i;
    volatile int64_t s = sign_extend(x->v[0], hw_wir_bits(i->type));
    volatile uint64_t u = x->v[0];
    bool is_signed = i->op == HW_W_I2F_S;
    int old = fegetround();
    fesetround(rounding_of(i));
    volatile double d = is_signed ? (double)s : (double)u;
    volatile float f = is_signed ? (float)s : (float)u;
    fesetround(old);
    *out = put_float(i, i->type2, i->type2 == HW_T_F64 ? d : (double)f);
    return HW_OK;
}

static hw_status float_to_float(const op_input *x, uint64_t *out)
{
    const hw_wir_insn *i = x->i;
    volatile double a = get_float(i, i->type, x->v[0]);
    int old = fegetround();
    fesetround(rounding_of(i));
    volatile float f = (float)a;
    fesetround(old);
    *out = put_float(i, i->type2, i->type2 == HW_T_F64 ? a : (double)f);
    return HW_OK;
}

typedef hw_status float_fn(const op_input *x, uint64_t *out);
static float_fn *const floats[HW_W_COUNT] = {
    [HW_W_FADD] = float_arithmetic, [HW_W_FSUB] = float_arithmetic, [HW_W_FMUL] = float_arithmetic,
    [HW_W_FDIV] = float_arithmetic, [HW_W_FFMA] = float_arithmetic, [HW_W_FSQRT] = float_arithmetic,
    [HW_W_FMIN] = float_minmax,     [HW_W_FMAX] = float_minmax,     [HW_W_FNEG] = float_sign,
    [HW_W_FABS] = float_sign,       [HW_W_FCOPYSIGN] = float_sign,  [HW_W_FCMP] = float_compare,
    [HW_W_FRINT] = float_rint,      [HW_W_F2I_S] = float_to_int,    [HW_W_F2I_U] = float_to_int,
    [HW_W_I2F_S] = int_to_float,    [HW_W_I2F_U] = int_to_float,    [HW_W_FCVT] = float_to_float,
};

static bool single_or_double(hw_wir_type t)
{
    return t == HW_T_F32 || t == HW_T_F64;
}

static bool has_float_types(const hw_wir_insn *i)
{
    bool from_int = i->op == HW_W_I2F_S || i->op == HW_W_I2F_U;
    bool to_float = from_int || i->op == HW_W_FCVT;
    return (from_int || single_or_double(i->type)) && (!to_float || single_or_double(i->type2)) &&
           hw_wir_bits(i->type) <= 64 && hw_wir_bits(i->type2) <= 64;
}

/* ---- one instruction ---- */

static uint64_t read_value(hw_wir_val v, const uint64_t *regs)
{
    return v.kind == HW_V_REG ? regs[v.reg] : v.imm;
}

static bool guard_holds(const hw_wir_insn *i, const uint64_t *regs)
{
    if (i->guard.kind != HW_V_REG)
        return true;
    return (regs[i->guard.reg] & 1) != ((i->flags & HW_I_NEG_GUARD) != 0);
}

static void write_value(const hw_wir_function *f, hw_wir_val dst, uint64_t v, uint64_t *regs)
{
    if (dst.kind == HW_V_REG)
        regs[dst.reg] = v & hw_wir_mask(hw_wir_bits(f->regs.ptr[dst.reg].type));
}

static hw_status access(const hw_wir_function *f, const hw_wir_insn *i, const hw_wir_env *env,
                        uint32_t lane, uint64_t *regs)
{
    uint64_t v[17] = { 0 };
    if (i->nsrc > HW_COUNTOF(v))
        return HW_E_UNSUPPORTED;
    for (uint32_t k = 1; k < i->nsrc; k++)
        v[k - 1] = read_value(i->src[k], regs);
    HW_TRY(env->memory(env->ctx, lane, i, read_value(i->src[0], regs) + i->imm, v));
    for (uint32_t d = 0; d < i->ndst; d++)
        write_value(f, i->dst[d], v[d], regs);
    return HW_OK;
}

static bool has_no_effect(const hw_wir_insn *i)
{
    return i->op == HW_W_FENCE || i->op == HW_W_PREFETCH || i->op == HW_W_YIELD ||
           i->op == HW_W_WARPSYNC || i->op == HW_W_BARRIER || i->op == HW_W_BARRIER_ARRIVE;
}

static bool is_special(const hw_wir_insn *i)
{
    return i->op >= HW_W_SREG && i->op <= HW_W_SHARED_BASE;
}

hw_status hw_wir_interpret_insn(const hw_wir_function *f, const hw_wir_insn *i,
                                const hw_wir_env *env, uint32_t lane, uint64_t *regs)
{
    if (has_no_effect(i) || !guard_holds(i, regs))
        return HW_OK;
    bool memory =
        i->op == HW_W_LOAD || i->op == HW_W_STORE || i->op == HW_W_ATOM || i->op == HW_W_RED;
    if (memory)
        return access(f, i, env, lane, regs);
    uint64_t out = 0;
    op_input x = { .i = i };
    if (is_special(i)) {
        out = env->special(env->ctx, lane, i);
    } else {
        if (!hw_wir_is(i, HW_WF_P) || i->nsrc > HW_COUNTOF(x.v))
            return HW_E_UNSUPPORTED;
        for (uint32_t k = 0; k < i->nsrc; k++)
            x.v[k] = read_value(i->src[k], regs);
        if (floats[i->op]) {
            if (!has_float_types(i))
                return HW_E_UNSUPPORTED;
            HW_TRY(floats[i->op](&x, &out));
        } else if (!hw_wir_eval(i, x.v, &out)) {
            return HW_E_UNSUPPORTED;
        }
    }
    write_value(f, i->dst[0], out, regs);
    return HW_OK;
}

uint32_t hw_wir_interpret_branch(const hw_wir_block *b, const uint64_t *regs)
{
    const hw_wir_insn *last = hw_wir_last(b);
    switch (last->op) {
    case HW_W_BR:
        return 0;
    case HW_W_CBR:
        return read_value(last->src[0], regs) & 1 ? 0 : 1;
    case HW_W_BRX: {
        uint64_t t = read_value(last->src[0], regs);
        return t < b->ntargets ? (uint32_t)t : UINT32_MAX;
    }
    default:
        return guard_holds(last, regs) ? UINT32_MAX : 0;
    }
}

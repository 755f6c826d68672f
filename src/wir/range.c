/* SPDX-License-Identifier: Apache-2.0
 * Intervals and low zero bits of lane 0's values (the S of shapes), flow-insensitive: a register's
 * range covers all its definitions. Serves to prove that 32-bit sums do not wrap before they are
 * extended, and that tid & 31, tid >> 5 and the like stay lane constants. */
#include "analysis.h"

enum { MOST_CHANGES = 4 }; /* of a register's interval, then it is taken to be anything */

static unsigned reg_bits(const analysis *n, uint32_t reg)
{
    return hw_wir_bits(n->f->regs.ptr[reg].type);
}

static range anything(unsigned bits)
{
    if (bits == 1)
        return (range){ 0, 1, 0, true };
    int64_t lo = bits >= 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    return (range){ lo, ~lo, 0, true };
}

static uint8_t zeros_of(int64_t v)
{
    return v ? (uint8_t)__builtin_ctzll((uint64_t)v) : 64;
}

static range exactly(int64_t v)
{
    return (range){ v, v, zeros_of(v), true };
}

static int64_t signed_value(uint64_t v, unsigned bits)
{
    return bits == 1 ? (int64_t)(v & 1) : sign_extend(v, bits);
}

static range operand(const analysis *n, const hw_wir_insn *i, uint32_t k)
{
    hw_wir_val v = i->src[k];
    if (v.kind == HW_V_REG)
        return n->ranges[v.reg];
    hw_wir_type t = hw_wir_src_type(i, k);
    return exactly(signed_value(v.imm, t == HW_T_NONE ? 64 : hw_wir_bits(t)));
}

/* [lo, hi] if it fits in a register of `bits`, else anything; low zero bits survive wrapping. */
static range fit(__int128 lo, __int128 hi, unsigned zeros, unsigned bits)
{
    range r = anything(bits);
    if (lo >= r.lo && hi <= r.hi)
        r = (range){ (int64_t)lo, (int64_t)hi, 0, true };
    r.zeros = (uint8_t)(zeros > 64 ? 64 : zeros);
    return r;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool is_const(range r)
{
    return r.known && r.lo == r.hi;
}

/* ---- rules: sources are known; b is the width of the operation's type ---- */

typedef range rule_fn(const hw_wir_insn *i, const range *s, unsigned b);

static range r_first(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i, (void)b;
    return s[0];
}

static range join(range a, range c)
{
    return (range){ a.lo < c.lo ? a.lo : c.lo, a.hi > c.hi ? a.hi : c.hi,
                    (uint8_t)least(a.zeros, c.zeros), true };
}

static range r_select(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i, (void)b;
    return join(s[1], s[2]);
}

static range r_add(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    return fit((__int128)s[0].lo + s[1].lo, (__int128)s[0].hi + s[1].hi,
               least(s[0].zeros, s[1].zeros), b);
}

static range r_sub(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    return fit((__int128)s[0].lo - s[1].hi, (__int128)s[0].hi - s[1].lo,
               least(s[0].zeros, s[1].zeros), b);
}

static range r_mul(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    __int128 p[4] = { (__int128)s[0].lo * s[1].lo, (__int128)s[0].lo * s[1].hi,
                      (__int128)s[0].hi * s[1].lo, (__int128)s[0].hi * s[1].hi };
    __int128 lo = p[0], hi = p[0];
    for (int k = 1; k < 4; k++) {
        lo = p[k] < lo ? p[k] : lo;
        hi = p[k] > hi ? p[k] : hi;
    }
    return fit(lo, hi, s[0].zeros + s[1].zeros, b);
}

static range r_shl(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    if (!is_const(s[1]) || s[1].lo < 0 || s[1].lo >= (int64_t)b)
        return anything(b);
    unsigned by = (unsigned)s[1].lo;
    return fit((__int128)s[0].lo * ((__int128)1 << by), (__int128)s[0].hi * ((__int128)1 << by),
               s[0].zeros + by, b);
}

static range shifted(range r, unsigned by)
{
    return (range){ r.lo >> by, r.hi >> by,
                    (uint8_t)(r.zeros == 64  ? 64
                              : r.zeros > by ? r.zeros - by
                                             : 0),
                    true };
}

static range r_shr_s(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    if (!is_const(s[1]) || s[1].lo < 0 || s[1].lo >= (int64_t)b)
        return anything(b);
    return shifted(s[0], (unsigned)s[1].lo);
}

static range r_shr_u(const hw_wir_insn *i, const range *s, unsigned b)
{
    if (s[0].lo >= 0)
        return r_shr_s(i, s, b);
    if (!is_const(s[1]) || s[1].lo <= 0 || s[1].lo >= (int64_t)b)
        return anything(b);
    unsigned by = (unsigned)s[1].lo;
    return (range){ 0, (int64_t)hw_wir_mask(b - by), shifted(s[0], by).zeros, true };
}

static range r_and(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    unsigned zeros = s[0].zeros > s[1].zeros ? s[0].zeros : s[1].zeros;
    range r = anything(b);
    for (int k = 0; k < 2; k++)
        if (s[k].lo >= 0)
            r = (range){ 0, r.lo == 0 && r.hi < s[k].hi ? r.hi : s[k].hi, 0, true };
    r.zeros = (uint8_t)zeros;
    return r;
}

/* OR and XOR of numbers >= 0 stay below the next power of two. */
static range r_or(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    range r = anything(b);
    if (s[0].lo >= 0 && s[1].lo >= 0) {
        uint64_t most = (uint64_t)(s[0].hi | s[1].hi);
        r = (range){ 0, most ? (int64_t)(UINT64_MAX >> __builtin_clzll(most)) : 0, 0, true };
    }
    r.zeros = (uint8_t)least(s[0].zeros, s[1].zeros);
    return r;
}

static range r_min_s(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i, (void)b;
    range r = join(s[0], s[1]);
    r.hi = s[0].hi < s[1].hi ? s[0].hi : s[1].hi;
    return r;
}

static range r_max_s(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i, (void)b;
    range r = join(s[0], s[1]);
    r.lo = s[0].lo > s[1].lo ? s[0].lo : s[1].lo;
    return r;
}

static range r_min_u(const hw_wir_insn *i, const range *s, unsigned b)
{
    if (s[0].lo >= 0 && s[1].lo >= 0)
        return r_min_s(i, s, b);
    for (int k = 0; k < 2; k++)
        if (s[k].lo >= 0)
            return (range){ 0, s[k].hi, 0, true };
    return anything(b);
}

static range r_max_u(const hw_wir_insn *i, const range *s, unsigned b)
{
    return s[0].lo >= 0 && s[1].lo >= 0 ? r_max_s(i, s, b) : anything(b);
}

static range r_div(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    if (s[0].lo < 0 || s[1].lo <= 0)
        return anything(b);
    return (range){ s[0].lo / s[1].hi, s[0].hi / s[1].lo, 0, true };
}

static range r_rem(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    if (s[0].lo < 0 || s[1].lo <= 0)
        return anything(b);
    return (range){ 0, s[0].hi < s[1].hi - 1 ? s[0].hi : s[1].hi - 1, 0, true };
}

static range r_bfe_u(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    if (!is_const(s[2]) || s[2].lo < 0 || s[2].lo >= (int64_t)b)
        return anything(b);
    range r = { 0, (int64_t)hw_wir_mask((unsigned)s[2].lo), 0, true };
    if (is_const(s[1]) && s[1].lo >= 0 && s[1].lo < (int64_t)b)
        r.zeros = shifted(s[0], (unsigned)s[1].lo).zeros;
    return r;
}

static range r_zext(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i;
    if (s[0].lo >= 0)
        return s[0];
    return (range){ 0, (int64_t)hw_wir_mask(b), s[0].zeros, true };
}

static range r_trunc(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)b;
    return fit(s[0].lo, s[0].hi, s[0].zeros, hw_wir_bits(i->type2));
}

static range r_count(const hw_wir_insn *i, const range *s, unsigned b)
{
    (void)i, (void)s;
    return (range){ 0, b, 0, true };
}

static rule_fn *const rules[HW_W_COUNT] = {
    [HW_W_MOV] = r_first,   [HW_W_BITCAST] = r_first, [HW_W_SELECT] = r_select,
    [HW_W_ADD] = r_add,     [HW_W_SUB] = r_sub,       [HW_W_MUL] = r_mul,
    [HW_W_SHL] = r_shl,     [HW_W_SHR_S] = r_shr_s,   [HW_W_SHR_U] = r_shr_u,
    [HW_W_AND] = r_and,     [HW_W_OR] = r_or,         [HW_W_XOR] = r_or,
    [HW_W_MIN_S] = r_min_s, [HW_W_MAX_S] = r_max_s,   [HW_W_MIN_U] = r_min_u,
    [HW_W_MAX_U] = r_max_u, [HW_W_DIV_S] = r_div,     [HW_W_DIV_U] = r_div,
    [HW_W_REM_S] = r_rem,   [HW_W_REM_U] = r_rem,     [HW_W_BFE_U] = r_bfe_u,
    [HW_W_ZEXT] = r_zext,   [HW_W_SEXT] = r_first,    [HW_W_TRUNC] = r_trunc,
    [HW_W_POPC] = r_count,  [HW_W_CLZ] = r_count,
};

/* ---- special registers ---- */

enum { MOST_BLOCKS_X = INT32_MAX, MOST_BLOCKS_YZ = 65535 }; /* CUDA's limits of a grid */

static int64_t most_blocks(const analysis *n, unsigned axis)
{
    int64_t limit = axis == 0 ? MOST_BLOCKS_X : MOST_BLOCKS_YZ;
    int64_t threads = n->v->block[axis] ? n->v->block[axis] : 1;
    int64_t small = INT32_MAX / threads;
    return n->v->small_grid && small < limit ? small : limit;
}

static range lane0_tid(const analysis *n, unsigned axis)
{
    range r = exactly(0);
    for (uint32_t w = 0; w < hw_wir_warps(n->v); w++)
        r = join(r, exactly(hw_wir_tid(n->v, axis, w * LANES)));
    return r;
}

static range sreg_range(const analysis *n, const hw_wir_insn *i)
{
    unsigned bits = hw_wir_bits(i->type);
    switch (i->imm) {
    case HW_SR_TID_X:
    case HW_SR_TID_Y:
    case HW_SR_TID_Z:
        return lane0_tid(n, (unsigned)i->imm - HW_SR_TID_X);
    case HW_SR_NTID_X:
    case HW_SR_NTID_Y:
    case HW_SR_NTID_Z:
        return exactly(n->v->block[i->imm - HW_SR_NTID_X]);
    case HW_SR_CTAID_X:
    case HW_SR_CTAID_Y:
    case HW_SR_CTAID_Z:
        return (range){ 0, most_blocks(n, (unsigned)i->imm - HW_SR_CTAID_X) - 1, 0, true };
    case HW_SR_NCTAID_X:
    case HW_SR_NCTAID_Y:
    case HW_SR_NCTAID_Z:
        return (range){ 1, most_blocks(n, (unsigned)i->imm - HW_SR_NCTAID_X), 0, true };
    case HW_SR_LANEID:
    case HW_SR_LANEMASK_LT:
        return exactly(0);
    case HW_SR_LANEMASK_EQ:
    case HW_SR_LANEMASK_LE:
        return exactly(1);
    case HW_SR_LANEMASK_GE:
        return exactly(-1);
    case HW_SR_LANEMASK_GT:
        return exactly(-2);
    case HW_SR_WARPID:
    case HW_SR_NWARPID:
        return (range){ 0, LANES, 0, true }; /* at most 1024 threads a block */
    default:
        return anything(bits);
    }
}

/* ---- the fixpoint ---- */

static bool evaluate(const hw_wir_insn *i, const range *s, unsigned bits, range *out)
{
    uint64_t v[4];
    for (uint32_t k = 0; k < i->nsrc; k++) {
        if (!is_const(s[k]) || k == HW_COUNTOF(v))
            return false;
        hw_wir_type t = hw_wir_src_type(i, k);
        v[k] = (uint64_t)s[k].lo & hw_wir_mask(hw_wir_bits(t));
    }
    uint64_t r;
    if (i->nsrc == 0 || !hw_wir_eval(i, v, &r))
        return false;
    *out = exactly(signed_value(r, bits));
    return true;
}

static bool has_rule(const hw_wir_insn *i)
{
    bool packed =
        i->type >= HW_T_V2F16 && i->op != HW_W_MOV && i->op != HW_W_BITCAST && i->op != HW_W_SELECT;
    return i->nsrc <= 4 && !packed && hw_wir_bits(i->type) <= 64 && hw_wir_bits(i->type2) <= 64 &&
           (rules[i->op] || hw_wir_can_eval(i));
}

/* The range of the first result; known = false: a source has no definition yet. */
static range result_range(const analysis *n, const hw_wir_insn *i, unsigned bits)
{
    if (i->op == HW_W_SREG)
        return sreg_range(n, i);
    if (!has_rule(i) || bits > 64)
        return anything(bits);
    range s[4] = { { 0 } }, r;
    for (uint32_t k = 0; k < i->nsrc; k++) {
        s[k] = operand(n, i, k);
        if (!s[k].known)
            return (range){ 0 };
    }
    if (evaluate(i, s, bits, &r))
        return r;
    unsigned from = hw_wir_bits(i->type);
    if (!rules[i->op] || (from == 1 && bits > 1 && i->op == HW_W_SEXT) ||
        (bits == 1 && i->op != HW_W_MOV))
        return anything(bits);
    return rules[i->op](i, s, from);
}

static bool same(range a, range b)
{
    return a.lo == b.lo && a.hi == b.hi && a.zeros == b.zeros && a.known == b.known;
}

static void define(analysis *n, uint32_t reg, range r, uint8_t *changes)
{
    range *old = &n->ranges[reg];
    if (!r.known)
        return;
    range next = old->known ? join(*old, r) : r;
    if (same(next, *old))
        return;
    if (old->known && ++changes[reg] > MOST_CHANGES) {
        uint8_t zeros = next.zeros;
        next = anything(reg_bits(n, reg));
        next.zeros = zeros;
        if (same(next, *old))
            return;
    }
    *old = next;
    enqueue_users(n, reg);
}

static void start(analysis *n)
{
    bool *defined = HW_NEW_N(n->scratch, bool, n->nregs + 1);
    for (uint32_t k = 0; k < n->ninsns; k++) {
        for (uint32_t d = 0; d < n->insns[k]->ndst; d++)
            if (n->insns[k]->dst[d].kind == HW_V_REG)
                defined[n->insns[k]->dst[d].reg] = true;
        enqueue(n, k);
    }
    for (uint32_t r = 0; r < n->nregs; r++)
        if (!defined[r])
            n->ranges[r] = anything(reg_bits(n, r));
    for (uint32_t k = 0; k < n->f->nparams; k++)
        n->ranges[n->f->params[k]] = anything(reg_bits(n, n->f->params[k]));
}

void hw_wir_find_ranges(analysis *n)
{
    uint8_t *changes = HW_NEW_N(n->scratch, uint8_t, n->nregs + 1);
    n->ranges = HW_NEW_N(n->scratch, range, n->nregs + 1);
    start(n);
    while (n->queue_len) {
        const hw_wir_insn *i = n->insns[dequeue(n)];
        for (uint32_t d = 0; d < i->ndst; d++) {
            if (i->dst[d].kind != HW_V_REG)
                continue;
            uint32_t reg = i->dst[d].reg;
            define(n, reg, d ? anything(reg_bits(n, reg)) : result_range(n, i, reg_bits(n, reg)),
                   changes);
        }
    }
    for (uint32_t r = 0; r < n->nregs; r++)
        if (!n->ranges[r].known)
            n->ranges[r] = anything(reg_bits(n, r));
}

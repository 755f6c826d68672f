/* SPDX-License-Identifier: Apache-2.0
 * What one lane computes, for the pure integer operations up to 64 bits: constant folding, lane
 * constants, and the reference interpreter. Values are bits, zero-extended. */
#include "analysis.h"

/* b: width of the operation's type in bits; results are cut to the result's width by the caller. */
typedef uint64_t eval_fn(const hw_wir_insn *i, const uint64_t *s, unsigned b);

static int64_t sx(uint64_t v, unsigned b)
{
    return sign_extend(v, b);
}

static uint64_t e_mov(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0];
}
static uint64_t e_select(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0] & 1 ? s[1] : s[2];
}
static uint64_t e_add(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0] + s[1];
}
static uint64_t e_sub(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0] - s[1];
}
static uint64_t e_mul(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0] * s[1];
}
static uint64_t e_mulhi_u(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return (uint64_t)(((unsigned __int128)s[0] * s[1]) >> b);
}
static uint64_t e_mulhi_s(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return (uint64_t)(((__int128)sx(s[0], b) * sx(s[1], b)) >> b);
}
static uint64_t e_div_u(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[1] ? s[0] / s[1] : UINT64_MAX;
}
static uint64_t e_rem_u(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[1] ? s[0] % s[1] : s[0];
}
static uint64_t e_div_s(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    int64_t x = sx(s[0], b), y = sx(s[1], b);
    if (y == 0)
        return UINT64_MAX;
    return y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y);
}
static uint64_t e_rem_s(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    int64_t x = sx(s[0], b), y = sx(s[1], b);
    if (y == 0)
        return s[0];
    return y == -1 ? 0 : (uint64_t)(x % y);
}
static uint64_t e_min_u(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0] < s[1] ? s[0] : s[1];
}
static uint64_t e_max_u(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0] > s[1] ? s[0] : s[1];
}
static uint64_t e_min_s(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return sx(s[0], b) < sx(s[1], b) ? s[0] : s[1];
}
static uint64_t e_max_s(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return sx(s[0], b) > sx(s[1], b) ? s[0] : s[1];
}
static uint64_t clamp_s(__int128 v, unsigned b)
{
    __int128 max = ((__int128)1 << (b - 1)) - 1, min = -max - 1;
    return (uint64_t)(v > max ? max : v < min ? min : v);
}
static uint64_t e_add_sat(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return clamp_s((__int128)sx(s[0], b) + sx(s[1], b), b);
}
static uint64_t e_sub_sat(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return clamp_s((__int128)sx(s[0], b) - sx(s[1], b), b);
}
static uint64_t e_abs(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return sx(s[0], b) < 0 ? 0 - s[0] : s[0];
}
static uint64_t e_and(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0] & s[1];
}
static uint64_t e_or(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0] | s[1];
}
static uint64_t e_xor(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return s[0] ^ s[1];
}
static uint64_t e_not(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return ~s[0];
}
static uint64_t e_shl(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return s[1] >= b ? 0 : s[0] << s[1];
}
static uint64_t e_shr_u(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return s[1] >= b ? 0 : s[0] >> s[1];
}
static uint64_t e_shr_s(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return (uint64_t)(sx(s[0], b) >> (s[1] >= b ? b - 1 : s[1]));
}
static uint64_t e_fshl(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    unsigned n = (unsigned)s[2] % b;
    return n ? s[1] << n | s[0] >> (b - n) : s[1];
}
static uint64_t e_fshr(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    unsigned n = (unsigned)s[2] % b;
    return n ? s[0] >> n | s[1] << (b - n) : s[0];
}
static uint64_t e_popc(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    return (uint64_t)__builtin_popcountll(s[0]);
}
static uint64_t e_clz(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return s[0] ? (uint64_t)__builtin_clzll(s[0]) - (64 - b) : b;
}
static uint64_t e_brev(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    uint64_t r = 0;
    for (unsigned k = 0; k < b; k++)
        r |= (s[0] >> k & 1) << (b - 1 - k);
    return r;
}
static uint64_t e_prmt(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i, (void)b;
    uint64_t pool = s[0] | s[1] << 32, r = 0;
    for (unsigned k = 0; k < 4; k++) {
        unsigned nibble = (unsigned)(s[2] >> (4 * k)) & 15;
        uint64_t byte = pool >> (8 * (nibble & 7)) & 0xff;
        if (nibble & 8)
            byte = byte & 0x80 ? 0xff : 0;
        r |= byte << (8 * k);
    }
    return r;
}
static uint64_t e_lop3(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)b;
    uint64_t r = 0;
    for (unsigned k = 0; k < 8; k++)
        if (i->imm >> k & 1)
            r |= (k & 4 ? s[0] : ~s[0]) & (k & 2 ? s[1] : ~s[1]) & (k & 1 ? s[2] : ~s[2]);
    return r;
}
static uint64_t e_dot4(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)b;
    uint32_t sum = (uint32_t)s[2];
    for (unsigned k = 0; k < 32; k += 8) {
        uint8_t x = (uint8_t)(s[0] >> k), y = (uint8_t)(s[1] >> k);
        int p = i->imm & 1 ? (int8_t)x : x, q = i->imm & 2 ? (int8_t)y : y;
        sum += (uint32_t)(p * q);
    }
    return sum;
}
static uint64_t e_bfe_u(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    unsigned at = s[1] & 255, len = s[2] & 255;
    return at >= b ? 0 : s[0] >> at & hw_wir_mask(len);
}
static uint64_t e_bfe_s(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    unsigned at = s[1] & 255, len = s[2] & 255;
    if (len == 0)
        return 0;
    unsigned sign_at = at + len - 1 < b - 1 ? at + len - 1 : b - 1;
    uint64_t sign = s[0] >> sign_at & 1 ? UINT64_MAX : 0;
    if (at >= b)
        return sign;
    uint64_t field = hw_wir_mask(sign_at - at + 1);
    return (s[0] >> at & field) | (sign & ~field);
}
static uint64_t e_bfi(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    unsigned at = s[2] & 255, len = s[3] & 255;
    if (at >= b)
        return s[1];
    uint64_t field = hw_wir_mask(len) << at;
    return (s[1] & ~field) | (s[0] << at & field);
}
static uint64_t e_icmp(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    int64_t x = sx(s[0], b), y = sx(s[1], b);
    switch (i->cond) {
    case HW_C_EQ:
        return s[0] == s[1];
    case HW_C_NE:
        return s[0] != s[1];
    case HW_C_LT_S:
        return x < y;
    case HW_C_LE_S:
        return x <= y;
    case HW_C_GT_S:
        return x > y;
    case HW_C_GE_S:
        return x >= y;
    case HW_C_LT_U:
        return s[0] < s[1];
    case HW_C_LE_U:
        return s[0] <= s[1];
    case HW_C_GT_U:
        return s[0] > s[1];
    default:
        return s[0] >= s[1];
    }
}
static uint64_t e_sext(const hw_wir_insn *i, const uint64_t *s, unsigned b)
{
    (void)i;
    return (uint64_t)sx(s[0], b);
}

static eval_fn *const table[HW_W_COUNT] = {
    [HW_W_MOV] = e_mov,           [HW_W_SELECT] = e_select,
    [HW_W_ADD] = e_add,           [HW_W_SUB] = e_sub,
    [HW_W_MUL] = e_mul,           [HW_W_MULHI_U] = e_mulhi_u,
    [HW_W_MULHI_S] = e_mulhi_s,   [HW_W_DIV_U] = e_div_u,
    [HW_W_DIV_S] = e_div_s,       [HW_W_REM_U] = e_rem_u,
    [HW_W_REM_S] = e_rem_s,       [HW_W_MIN_U] = e_min_u,
    [HW_W_MIN_S] = e_min_s,       [HW_W_MAX_U] = e_max_u,
    [HW_W_MAX_S] = e_max_s,       [HW_W_ADD_SAT_S] = e_add_sat,
    [HW_W_SUB_SAT_S] = e_sub_sat, [HW_W_ABS] = e_abs,
    [HW_W_AND] = e_and,           [HW_W_OR] = e_or,
    [HW_W_XOR] = e_xor,           [HW_W_NOT] = e_not,
    [HW_W_SHL] = e_shl,           [HW_W_SHR_U] = e_shr_u,
    [HW_W_SHR_S] = e_shr_s,       [HW_W_FSHL] = e_fshl,
    [HW_W_FSHR] = e_fshr,         [HW_W_POPC] = e_popc,
    [HW_W_CLZ] = e_clz,           [HW_W_BREV] = e_brev,
    [HW_W_PRMT] = e_prmt,         [HW_W_LOP3] = e_lop3,
    [HW_W_DOT4] = e_dot4,         [HW_W_BFE_U] = e_bfe_u,
    [HW_W_BFE_S] = e_bfe_s,       [HW_W_BFI] = e_bfi,
    [HW_W_ICMP] = e_icmp,         [HW_W_ZEXT] = e_mov,
    [HW_W_SEXT] = e_sext,         [HW_W_TRUNC] = e_mov,
    [HW_W_BITCAST] = e_mov,
};

static bool is_packed(hw_wir_type t)
{
    return t >= HW_T_V2F16;
}

bool hw_wir_can_eval(const hw_wir_insn *i)
{
    unsigned from = hw_wir_bits(i->type);
    if (!table[i->op] || from == 0 || from > 64 || hw_wir_bits(i->type2) > 64)
        return false;
    bool moves = i->op == HW_W_MOV || i->op == HW_W_SELECT || i->op == HW_W_BITCAST;
    return moves || !is_packed(i->type);
}

bool hw_wir_eval(const hw_wir_insn *i, const uint64_t *src, uint64_t *out)
{
    if (!hw_wir_can_eval(i))
        return false;
    uint64_t v = table[i->op](i, src, hw_wir_bits(i->type));
    *out = v & hw_wir_mask(hw_wir_bits(hw_wir_dst_type(i, 0)));
    return true;
}

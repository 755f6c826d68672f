/* SPDX-License-Identifier: Apache-2.0
 * Integer instructions that are more than one warp-IR operation (PTX ISA 9.7.1, 9.7.2, 9.7.8). */
#include "lower.h"

#define T (l->t[0])

static hw_wir_val op2(lw *l, hw_wir_op op, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_op2(&l->b, op, T, a, b);
}

static hw_wir_val icmp(lw *l, hw_wir_cond c, hw_wir_type t, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_cmp(&l->b, HW_W_ICMP, c, t, a, b);
}

static hw_wir_val select(lw *l, hw_wir_type t, hw_wir_val p, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_op3(&l->b, HW_W_SELECT, t, p, a, b);
}

hw_wir_val w_bool(lw *l, hw_wir_val p, uint64_t yes, uint64_t no)
{
    return select(l, T, p, lw_const(T, yes), lw_const(T, no));
}

/* ---- the carry flag: one I1 register a function ---- */

static void set_carry(lw *l, hw_wir_val v)
{
    hw_wir_mov(&l->b, HW_T_I1, hw_wir_reg(l->carry), v);
    lw_effect(l, lw_last(l));
}

static hw_wir_val carry_in(lw *l)
{
    return w_bool(l, hw_wir_reg(l->carry), 1, 0);
}

hw_wir_val w_addc(lw *l, hw_wir_val a, hw_wir_val b, bool in, bool out)
{
    hw_wir_val s = op2(l, HW_W_ADD, a, b), r = s, carry = HW_WIR_NONE;
    if (out)
        carry = icmp(l, HW_C_LT_U, T, s, a);
    if (in) {
        r = op2(l, HW_W_ADD, s, carry_in(l));
        if (out)
            carry = hw_wir_op2(&l->b, HW_W_OR, HW_T_I1, carry, icmp(l, HW_C_LT_U, T, r, s));
    }
    if (out)
        set_carry(l, carry);
    return r;
}

/* A subtraction is a + ~b + 1: the flag it leaves is the carry of that sum, so set where nothing was
 * borrowed, and subc adds it in place of the 1. */
hw_wir_val w_subc(lw *l, hw_wir_val a, hw_wir_val b, bool in, bool out)
{
    hw_wir_val s = op2(l, HW_W_SUB, a, b), r = s, carry = HW_WIR_NONE;
    if (out)
        carry = icmp(l, HW_C_GE_U, T, a, b);
    if (in) {
        hw_wir_val borrow = w_bool(l, hw_wir_reg(l->carry), 0, 1);
        r = op2(l, HW_W_SUB, s, borrow);
        if (out)
            carry = hw_wir_op2(&l->b, HW_W_AND, HW_T_I1, carry, icmp(l, HW_C_GE_U, T, s, borrow));
    }
    if (out)
        set_carry(l, carry);
    return r;
}

/* ---- products ---- */

hw_wir_val w_mulwide(lw *l, hw_wir_val a, hw_wir_val b)
{
    hw_wir_type wide = ptx_wir_type(hw_ptx_spec_type(&l->x->row->specs[0], l->x));
    bool s = lw_signed(l, 0);
    a = lw_fit(l, a, T, wide, s);
    b = lw_fit(l, b, T, wide, s);
    return hw_wir_op2(&l->b, HW_W_MUL, wide, a, b);
}

/* A field of `bits` bits at `bit`, extended to 32 by its sign or zeros. */
static hw_wir_val field(lw *l, hw_wir_val v, unsigned bit, unsigned bits, bool is_signed)
{
    hw_wir_type t = HW_T_I32;
    if (bit + bits < 32)
        v = hw_wir_op2(&l->b, HW_W_SHL, t, v, hw_wir_imm(32 - bits - bit));
    if (bits == 32)
        return v;
    return hw_wir_op2(&l->b, is_signed ? HW_W_SHR_S : HW_W_SHR_U, t, v, hw_wir_imm(32 - bits));
}

/* 24 x 24 bits give 48: .lo is bits 31..0, .hi bits 47..16. */
hw_wir_val w_mul24(lw *l, hw_wir_val a, hw_wir_val b, bool high)
{
    bool s = lw_signed(l, 0);
    a = field(l, a, 0, 24, s);
    b = field(l, b, 0, 24, s);
    if (!high)
        return op2(l, HW_W_MUL, a, b);
    a = lw_fit(l, a, HW_T_I32, HW_T_I64, s);
    b = lw_fit(l, b, HW_T_I32, HW_T_I64, s);
    return lw_part(l, hw_wir_op2(&l->b, HW_W_MUL, HW_T_I64, a, b), HW_T_I64, 16, HW_T_I32);
}

hw_wir_val w_dp(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c, unsigned part, unsigned first)
{
    bool sa = lw_signed(l, 0), sb = lw_signed(l, 1);
    unsigned n = part == 8 ? 4 : 2;
    if (part == 8) {
        hw_wir_val d = hw_wir_op3(&l->b, HW_W_DOT4, HW_T_I32, a, b, c);
        lw_last(l)->imm = (sa ? 1u : 0) | (sb ? 2u : 0);
        return d;
    }
    for (unsigned k = 0; k < n; k++) {
        hw_wir_val x = field(l, a, k * part, part, sa);
        hw_wir_val y = field(l, b, (first + k) * 8, 8, sb);
        hw_wir_val p = hw_wir_op2(&l->b, HW_W_MUL, HW_T_I32, x, y);
        c = hw_wir_op2(&l->b, HW_W_ADD, HW_T_I32, c, p);
    }
    return c;
}

hw_wir_val w_absdiff(lw *l, hw_wir_val a, hw_wir_val b)
{
    bool s = lw_signed(l, 0);
    hw_wir_val high = op2(l, s ? HW_W_MAX_S : HW_W_MAX_U, a, b);
    hw_wir_val low = op2(l, s ? HW_W_MIN_S : HW_W_MIN_U, a, b);
    return op2(l, HW_W_SUB, high, low);
}

/* ---- bits ---- */

/* The highest bit that is not the sign, 0xffffffff if none; with shiftamt the shift that brings it
 * to the top. */
hw_wir_val w_bfind(lw *l, hw_wir_val a, bool shiftamt)
{
    unsigned bits = hw_wir_bits(T);
    if (lw_signed(l, 0))
        a = op2(l, HW_W_XOR, a, op2(l, HW_W_SHR_S, a, hw_wir_imm(bits - 1)));
    hw_wir_val n = hw_wir_op1(&l->b, HW_W_CLZ, T, a);
    hw_wir_val none = icmp(l, HW_C_EQ, T, a, hw_wir_imm(0));
    if (!shiftamt)
        n = hw_wir_op2(&l->b, HW_W_SUB, HW_T_I32, hw_wir_imm(bits - 1), n);
    return select(l, HW_T_I32, none, hw_wir_imm(UINT32_MAX), n);
}

void w_fns(lw *l)
{
    hw_wir_val src[3], d = lw_temp(l, HW_T_I32);
    for (unsigned k = 0; k < 3; k++)
        src[k] = lw_in_register(l, HW_T_I32, lw_source(l, k));
    hw_wir_emit(&l->b, HW_W_HELPER, HW_T_I32, 1, &d, 3, src)->imm = HW_H_FNS;
    lw_result(l, d);
}

hw_wir_val w_bfi(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c, hw_wir_val d)
{
    hw_wir_val r = lw_temp(l, T);
    hw_wir_emit(&l->b, HW_W_BFI, T, 1, &r, 4, (hw_wir_val[]){ a, b, c, d });
    return r;
}

/* A count for a mode: .clamp keeps up to 32, .wrap takes it modulo 32. */
static hw_wir_val count(lw *l, hw_wir_val n, bool wrap)
{
    return wrap ? hw_wir_op2(&l->b, HW_W_AND, HW_T_I32, n, hw_wir_imm(31))
                : hw_wir_op2(&l->b, HW_W_MIN_U, HW_T_I32, n, hw_wir_imm(32));
}

/* Keep n low bits, extended to 32: n = 0 gives 0. */
hw_wir_val w_szext(lw *l, hw_wir_val a, hw_wir_val n, bool wrap)
{
    n = count(l, n, wrap);
    hw_wir_val shift = hw_wir_op2(&l->b, HW_W_SUB, HW_T_I32, hw_wir_imm(32), n);
    hw_wir_val up = hw_wir_op2(&l->b, HW_W_SHL, HW_T_I32, a, shift);
    return hw_wir_op2(&l->b, lw_signed(l, 0) ? HW_W_SHR_S : HW_W_SHR_U, HW_T_I32, up, shift);
}

/* n ones from bit a up. */
hw_wir_val w_bmsk(lw *l, hw_wir_val a, hw_wir_val n, bool wrap)
{
    a = count(l, a, wrap);
    n = count(l, n, wrap);
    hw_wir_val top = hw_wir_op2(&l->b, HW_W_SHL, HW_T_I32, hw_wir_imm(UINT32_MAX), n);
    hw_wir_val ones = hw_wir_op1(&l->b, HW_W_NOT, HW_T_I32, top);
    return hw_wir_op2(&l->b, HW_W_SHL, HW_T_I32, ones, a);
}

static hw_wir_val lop3(lw *l)
{
    hw_wir_val d =
        hw_wir_op3(&l->b, HW_W_LOP3, HW_T_I32, lw_source(l, 0), lw_source(l, 1), lw_source(l, 2));
    lw_last(l)->imm = lw_source(l, 3).imm & 0xff;
    return d;
}

hw_wir_val w_lop3(lw *l)
{
    return lop3(l);
}

/* d|p: p = (d != 0) and/or q. */
void w_lop3_bool(lw *l)
{
    hw_wir_val d = lop3(l);
    hw_wir_val p = icmp(l, HW_C_NE, HW_T_I32, d, hw_wir_imm(0));
    p = hw_wir_op2(&l->b, lw_has(l, PTX_M_or) ? HW_W_OR : HW_W_AND, HW_T_I1, p, lw_source(l, 4));
    const ptx_operand *pair = &l->i->ops[0];
    lw_set(l, &pair->items[1], PTX_PRED, p);
    lw_set(l, &pair->items[0], PTX_B32, d);
}

hw_wir_val w_shf(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c, bool left)
{
    hw_wir_op op = left ? HW_W_FSHL : HW_W_FSHR;
    if (lw_has(l, PTX_M_wrap) || (c.kind == HW_V_IMM && (uint32_t)c.imm < 32))
        return hw_wir_op3(&l->b, op, HW_T_I32, a, b, c);
    /* clamp: 32 and more give the whole low (left) or high (right) word */
    hw_wir_val r = hw_wir_op3(&l->b, op, HW_T_I32, a, b, c);
    hw_wir_val far = icmp(l, HW_C_GE_U, HW_T_I32, c, hw_wir_imm(32));
    return select(l, HW_T_I32, far, left ? a : b, r);
}

/* ---- prmt: the modes are shifts and selector tables (PTX ISA, prmt) ---- */

static hw_wir_val prmt(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c)
{
    return hw_wir_op3(&l->b, HW_W_PRMT, HW_T_I32, a, b, c);
}

/* Selector nibbles of each mode for c = 0..3, byte 0 first. */
static const struct {
    uint8_t mod;
    uint16_t selector[4];
} prmt_modes[] = {
    { PTX_M_f4e, { 0x3210, 0x4321, 0x5432, 0x6543 } },
    { PTX_M_b4e, { 0x5670, 0x6701, 0x7012, 0x0123 } },
    { PTX_M_rc8, { 0x0000, 0x1111, 0x2222, 0x3333 } },
    { PTX_M_ecl, { 0x3210, 0x3211, 0x3222, 0x3333 } },
    { PTX_M_ecr, { 0x0000, 0x1110, 0x2210, 0x3210 } },
    { PTX_M_rc16, { 0x1010, 0x3232, 0x1010, 0x3232 } },
};

hw_wir_val w_prmt(lw *l, hw_wir_val a, hw_wir_val b, hw_wir_val c)
{
    for (size_t m = 0; m < HW_COUNTOF(prmt_modes); m++) {
        if (!lw_has(l, prmt_modes[m].mod))
            continue;
        const uint16_t *s = prmt_modes[m].selector;
        uint64_t table = s[0] | (uint64_t)s[1] << 16 | (uint64_t)s[2] << 32 | (uint64_t)s[3] << 48;
        hw_wir_val which = hw_wir_op2(&l->b, HW_W_AND, HW_T_I32, c, hw_wir_imm(3));
        which = hw_wir_op2(&l->b, HW_W_SHL, HW_T_I32, which, hw_wir_imm(4));
        hw_wir_val sel = hw_wir_op2(&l->b, HW_W_SHR_U, HW_T_I64, hw_wir_imm(table), which);
        return prmt(l, a, b, lw_fit(l, sel, HW_T_I64, HW_T_I32, false));
    }
    return prmt(l, a, b, c);
}

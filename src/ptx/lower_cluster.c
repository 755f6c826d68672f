/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared memory of a cluster's blocks (PTX ISA 5.1.7, 9.7.9.23). All of it lies in one piece: the block of rank r at
 * CLUSTER_BASE + r * WINDOW. As 32 bits an address is rank + 1 in units of WINDOW and an offset, or, below WINDOW, an offset in the
 * block's own memory.
 */
#include "lower.h"

enum { WINDOW_BITS = 24 };
static const uint64_t WINDOW = UINT64_C(1) << WINDOW_BITS;

static hw_wir_val i64(lw *l, hw_wir_op op, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_op2(&l->b, op, HW_T_I64, a, b);
}

static hw_wir_val cluster_base(lw *l)
{
    return lw_nullary(l, HW_W_SREG, HW_T_I64, HW_SR_CLUSTER_BASE);
}

hw_wir_val lw_cluster_to_generic(lw *l, hw_wir_val offset, bool cluster)
{
    hw_wir_val base = lw_nullary(l, HW_W_SHARED_BASE, HW_T_I64, 0);
    if (cluster) {
        hw_wir_val own =
            hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_LT_U, HW_T_I64, offset, hw_wir_imm(WINDOW));
        hw_wir_val others = i64(l, HW_W_SUB, cluster_base(l), hw_wir_imm(WINDOW));
        base = hw_wir_op3(&l->b, HW_W_SELECT, HW_T_I64, own, base, others);
    }
    return i64(l, HW_W_ADD, base, offset);
}

/* The same place in the memory of the even block of a pair. */
hw_wir_val lw_in_even_block(lw *l, hw_wir_val generic)
{
    hw_wir_val at = i64(l, HW_W_SUB, generic, cluster_base(l));
    at = i64(l, HW_W_AND, at, hw_wir_imm(~WINDOW));
    return i64(l, HW_W_ADD, at, cluster_base(l));
}

static hw_wir_val cluster_from_generic(lw *l, hw_wir_val generic)
{
    return i64(l, HW_W_ADD, i64(l, HW_W_SUB, generic, cluster_base(l)), hw_wir_imm(WINDOW));
}

/* cvta of .shared::cluster, to generic and back. */
hw_wir_val lw_cvta_cluster(lw *l, hw_wir_val a, bool to)
{
    hw_wir_val v = lw_fit(l, a, l->t[0], HW_T_I64, false);
    v = to ? cluster_from_generic(l, v) : lw_cluster_to_generic(l, v, true);
    return lw_fit(l, v, HW_T_I64, l->t[0], false);
}

/* The same place in the memory of another block. */
hw_wir_val w_mapa(lw *l, hw_wir_val a, hw_wir_val rank)
{
    hw_wir_val v = lw_fit(l, a, l->t[0], HW_T_I64, false);
    bool narrow = lw_has(l, PTX_M_shared_cluster);
    if (!narrow)
        v = i64(l, HW_W_SUB, v, cluster_base(l));
    v = i64(l, HW_W_AND, v, hw_wir_imm(WINDOW - 1));
    hw_wir_val r = lw_fit(l, rank, HW_T_I32, HW_T_I64, false);
    if (narrow)
        r = i64(l, HW_W_ADD, r, hw_wir_imm(1));
    v = i64(l, HW_W_ADD, v, i64(l, HW_W_SHL, r, hw_wir_imm(WINDOW_BITS)));
    if (!narrow)
        v = i64(l, HW_W_ADD, v, cluster_base(l));
    return lw_fit(l, v, HW_T_I64, l->t[0], false);
}

hw_wir_val w_getctarank(lw *l, hw_wir_val a)
{
    hw_wir_val v = lw_fit(l, a, l->t[0], HW_T_I64, false);
    if (lw_has(l, PTX_M_shared_cluster))
        v = lw_cluster_to_generic(l, v, true);
    v = i64(l, HW_W_SHR_U, i64(l, HW_W_SUB, v, cluster_base(l)), hw_wir_imm(WINDOW_BITS));
    return lw_fit(l, v, HW_T_I64, HW_T_I32, false);
}

static hw_wir_val size_of(lw *l, unsigned c)
{
    return lw_nullary(l, HW_W_SREG, HW_T_I32, HW_SR_CLUSTER_NCTAID_X + c);
}

static hw_wir_val i32(lw *l, hw_wir_op op, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_op2(&l->b, op, HW_T_I32, a, b);
}

static hw_wir_val blocks_of(lw *l)
{
    return i32(l, HW_W_MUL, i32(l, HW_W_MUL, size_of(l, 0), size_of(l, 1)), size_of(l, 2));
}

/* A generic address is in the memory of a block of the cluster. */
hw_wir_val lw_is_in_cluster(lw *l, hw_wir_val generic, hw_wir_val in_own)
{
    hw_wir_val n = blocks_of(l);
    hw_wir_val several = hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_GT_U, HW_T_I32, n, hw_wir_imm(1));
    n = hw_wir_op3(&l->b, HW_W_SELECT, HW_T_I32, several, n, hw_wir_imm(0));
    n = i64(l, HW_W_SHL, lw_fit(l, n, HW_T_I32, HW_T_I64, false), hw_wir_imm(WINDOW_BITS));
    hw_wir_val at = i64(l, HW_W_SUB, generic, cluster_base(l));
    hw_wir_val in = hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_LT_U, HW_T_I64, at, n);
    return hw_wir_op2(&l->b, HW_W_OR, HW_T_I1, in, in_own);
}

/* ---- special registers: of the block index and the cluster's size (PTX ISA 10.13 to 10.19) ---- */

static hw_wir_val in_cluster(lw *l, unsigned c)
{
    return i32(l, HW_W_REM_U, lw_nullary(l, HW_W_SREG, HW_T_I32, HW_SR_CTAID_X + c), size_of(l, c));
}

hw_wir_val lw_cluster_sreg(lw *l, unsigned which, unsigned c)
{
    if (which <= LW_CLUSTER_CTAID && c > 2)
        return hw_wir_imm(0);
    switch (which) {
    case LW_CLUSTER_ID:
        return i32(l, HW_W_DIV_U, lw_nullary(l, HW_W_SREG, HW_T_I32, HW_SR_CTAID_X + c),
                   size_of(l, c));
    case LW_CLUSTER_COUNT:
        return i32(l, HW_W_DIV_U, lw_nullary(l, HW_W_SREG, HW_T_I32, HW_SR_NCTAID_X + c),
                   size_of(l, c));
    case LW_CLUSTER_CTAID:
        return in_cluster(l, c);
    case LW_CLUSTER_NRANK:
        return blocks_of(l);
    case LW_CLUSTER_RANK: {
        hw_wir_val row =
            i32(l, HW_W_ADD, in_cluster(l, 1), i32(l, HW_W_MUL, in_cluster(l, 2), size_of(l, 1)));
        return i32(l, HW_W_ADD, in_cluster(l, 0), i32(l, HW_W_MUL, row, size_of(l, 0)));
    }
    default:
        return hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_NE, HW_T_I32,
                          lw_nullary(l, HW_W_SREG, HW_T_I32, HW_SR_CLUSTER_EXPLICIT),
                          hw_wir_imm(0));
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * The warp column of ptx.def as functions, one a row. The names its expressions use are below. */
#include "lower.h"

#define T             (l->t[0])
#define WIDE          (ptx_wir_type(hw_ptx_spec_type(&l->x->row->specs[0], l->x)))
#define A             lw_source(l, 0)
#define B             lw_source(l, 1)
#define C             lw_source(l, 2)
#define E             lw_source(l, 3)
#define D(value)      lw_result(l, (value))
#define HAS(mod)      lw_has(l, PTX_M_##mod)
#define IMM(bits)     hw_wir_imm(bits)
#define ONE           hw_wir_imm(T == HW_T_F64 ? UINT64_C(0x3ff0000000000000) : UINT64_C(0x3f800000))
#define OP1(op, v)    hw_wir_op1(&l->b, HW_W_##op, T, (v))
#define OP2(op, v, w) hw_wir_op2(&l->b, HW_W_##op, T, (v), (w))
/* Signed and unsigned forms of an operation, by T. */
#define S2(op, v, w) hw_wir_op2(&l->b, lw_signed(l, 0) ? HW_W_##op##_S : HW_W_##op##_U, T, (v), (w))
#define S3(op, v, w, x) \
    hw_wir_op3(&l->b, lw_signed(l, 0) ? HW_W_##op##_S : HW_W_##op##_U, T, (v), (w), (x))
#define ICMP(cond, v, w) hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_##cond, T, (v), (w))
#define F1(op, v)        lw_float(l, HW_W_##op, T, 1, (v), HW_WIR_NONE, HW_WIR_NONE)
#define F2(op, v, w)     lw_float(l, HW_W_##op, T, 2, (v), (w), HW_WIR_NONE)
#define F3(op, v, w, x)  lw_float(l, HW_W_##op, T, 3, (v), (w), (x))
#define NOTHING          (void)l

#define ROW(id, form, operands, types, since, target, unit, lane, warp) \
    static void row_##id(lw *l)                                         \
    {                                                                   \
        warp;                                                           \
    }
#include "ptx.def"
#undef ROW

lw_row_fn *const lw_rows[PTX_ROW_COUNT] = {
#define ROW(id, form, operands, types, since, target, unit, lane, warp) [PTX_ROW_##id] = row_##id,
#include "ptx.def"
#undef ROW
};

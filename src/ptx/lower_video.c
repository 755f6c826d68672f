/* SPDX-License-Identifier: Apache-2.0
 * Video instructions, scalar and SIMD (PTX ISA 9.7.17, 9.7.18). Values have 34 bits at most, so all
 * is computed in 64 bits (scalar) or, on bytes and halves, in 32 (SIMD). */
#include "lower.h"

typedef struct selector { /* .b2: unit 8, {2}; .h10: unit 16, {0, 1} (lowest lane first) */
    unsigned unit, n;
    uint8_t at[4];
} selector;

static selector selector_of(const ptx_operand *o)
{
    selector s = { 32, 0, { 0 } };
    if (o->kind != PTX_O_REG || !o->bits)
        return s;
    s.unit = (o->bits & 0xff) == 'h' ? 16 : 8;
    for (uint64_t c = o->bits >> 8; c; c >>= 8) { /* digits are written highest lane first */
        for (unsigned k = s.n; k > 0; k--)
            s.at[k] = s.at[k - 1];
        s.at[0] = (uint8_t)((c & 0xff) - '0');
        s.n++;
    }
    return s;
}

static hw_wir_val op(lw *l, hw_wir_op o, hw_wir_type t, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_op2(&l->b, o, t, a, b);
}

static hw_wir_val imm(hw_wir_type t, int64_t v)
{
    return lw_const(t, (uint64_t)v);
}

/* `bits` bits from `bit` of a 32-bit value, extended to 32. */
static hw_wir_val extract(lw *l, hw_wir_val v, unsigned bit, unsigned bits, bool is_signed)
{
    if (bits == 32)
        return v;
    if (bit + bits < 32)
        v = op(l, HW_W_SHL, HW_T_I32, v, hw_wir_imm(32 - bit - bits));
    return op(l, is_signed ? HW_W_SHR_S : HW_W_SHR_U, HW_T_I32, v, hw_wir_imm(32 - bits));
}

static hw_wir_val clamp(lw *l, hw_wir_type t, hw_wir_val v, unsigned bits, bool is_signed)
{
    int64_t high = is_signed ? (INT64_C(1) << (bits - 1)) - 1 : (INT64_C(1) << bits) - 1;
    int64_t low = is_signed ? -high - 1 : 0;
    v = op(l, HW_W_MAX_S, t, v, imm(t, low));
    return op(l, HW_W_MIN_S, t, v, imm(t, high));
}

/* ---- scalar ---- */

/* Operand k (1, 2) as 64 bits, by its selector and the type of index `type`. */
static hw_wir_val part(lw *l, unsigned k, unsigned type)
{
    const ptx_operand *o = &l->i->ops[k];
    selector s = selector_of(o);
    bool is_signed = lw_signed(l, type);
    hw_wir_val v = lw_read(l, o, PTX_U32);
    v = extract(l, v, s.n ? s.unit * s.at[0] : 0, s.unit, is_signed);
    return lw_fit(l, v, HW_T_I32, HW_T_I64, is_signed);
}

static hw_wir_val difference(lw *l, hw_wir_type t, hw_wir_val a, hw_wir_val b)
{
    return op(l, HW_W_SUB, t, op(l, HW_W_MAX_S, t, a, b), op(l, HW_W_MIN_S, t, a, b));
}

static hw_wir_val compare(lw *l, hw_wir_type t, hw_wir_val a, hw_wir_val b)
{
    static const struct {
        uint8_t mod, cond;
    } conds[] = { { PTX_M_eq, HW_C_EQ },   { PTX_M_ne, HW_C_NE },   { PTX_M_lt, HW_C_LT_S },
                  { PTX_M_le, HW_C_LE_S }, { PTX_M_gt, HW_C_GT_S }, { PTX_M_ge, HW_C_GE_S } };
    hw_wir_cond c = HW_C_EQ;
    for (size_t k = 0; k < HW_COUNTOF(conds); k++)
        if (l->x->cmp == conds[k].mod)
            c = conds[k].cond;
    hw_wir_val p = hw_wir_cmp(&l->b, HW_W_ICMP, c, t, a, b);
    return hw_wir_op3(&l->b, HW_W_SELECT, t, p, hw_wir_imm(1), hw_wir_imm(0));
}

static hw_wir_val shift(lw *l, hw_wir_val a, bool left)
{
    hw_wir_val n = lw_fit(l, part(l, 2, 2), HW_T_I64, HW_T_I32, false);
    if (lw_has(l, PTX_M_wrap))
        n = op(l, HW_W_AND, HW_T_I32, n, hw_wir_imm(31));
    else
        n = op(l, HW_W_MIN_U, HW_T_I32, n, hw_wir_imm(32));
    return op(l, left ? HW_W_SHL : HW_W_SHR_S, HW_T_I64, a, n);
}

static hw_wir_val operate(lw *l, hw_wir_type t, hw_wir_val a, hw_wir_val b)
{
    switch (l->x->row->id) {
    case PTX_ROW_vadd:
    case PTX_ROW_vadd2:
    case PTX_ROW_vadd4:
        return op(l, HW_W_ADD, t, a, b);
    case PTX_ROW_vsub:
    case PTX_ROW_vsub2:
    case PTX_ROW_vsub4:
        return op(l, HW_W_SUB, t, a, b);
    case PTX_ROW_vabsdiff:
    case PTX_ROW_vabsdiff2:
    case PTX_ROW_vabsdiff4:
        return difference(l, t, a, b);
    case PTX_ROW_vmin:
    case PTX_ROW_vmin2:
    case PTX_ROW_vmin4:
        return op(l, HW_W_MIN_S, t, a, b);
    case PTX_ROW_vmax:
    case PTX_ROW_vmax2:
    case PTX_ROW_vmax4:
        return op(l, HW_W_MAX_S, t, a, b);
    case PTX_ROW_vavrg2:
    case PTX_ROW_vavrg4: /* rounds up from halves at and above zero: (s + (s >= 0)) >> 1 */
    {
        hw_wir_val s = op(l, HW_W_ADD, t, a, b);
        hw_wir_val up = op(l, HW_W_ADD, t, s, hw_wir_imm(1));
        up = op(l, HW_W_ADD, t, up, op(l, HW_W_SHR_S, t, s, hw_wir_imm(31)));
        return op(l, HW_W_SHR_S, t, up, hw_wir_imm(1));
    }
    default:
        return compare(l, t, a, b);
    }
}

static hw_wir_val compute(lw *l)
{
    bool set = l->x->row->id == PTX_ROW_vset;
    hw_wir_val a = part(l, 1, set ? 0 : 1);
    if (l->x->row->id == PTX_ROW_vshl || l->x->row->id == PTX_ROW_vshr)
        return shift(l, a, l->x->row->id == PTX_ROW_vshl);
    return operate(l, HW_T_I64, a, part(l, 2, set ? 1 : 2));
}

/* v with the third operand: an operation, or the parts that the result's selector leaves. */
static hw_wir_val finish(lw *l, hw_wir_val v, selector d, bool is_signed)
{
    v = lw_fit(l, v, HW_T_I64, HW_T_I32, false);
    if (l->i->nops < 4)
        return v;
    hw_wir_val c = lw_source(l, 2);
    switch (l->x->boolop) {
    case PTX_M_add:
        return op(l, HW_W_ADD, HW_T_I32, v, c);
    case PTX_M_min:
        return op(l, is_signed ? HW_W_MIN_S : HW_W_MIN_U, HW_T_I32, v, c);
    case PTX_M_max:
        return op(l, is_signed ? HW_W_MAX_S : HW_W_MAX_U, HW_T_I32, v, c);
    default:
        break;
    }
    if (!d.n)
        return v;
    unsigned bit = d.unit * d.at[0];
    hw_wir_val mask = hw_wir_imm(((UINT64_C(1) << d.unit) - 1) << bit);
    v = op(l, HW_W_SHL, HW_T_I32, v, hw_wir_imm(bit));
    v = hw_wir_op3(&l->b, HW_W_LOP3, HW_T_I32, v, c, mask);
    lw_last(l)->imm = 0xe4; /* (v & mask) | (c & ~mask) */
    return v;
}

void w_video(lw *l)
{
    bool is_signed = l->x->row->id != PTX_ROW_vset && lw_signed(l, 0);
    selector d = selector_of(&l->i->ops[0]);
    hw_wir_val v = compute(l);
    if (l->x->sat)
        v = clamp(l, HW_T_I64, v, d.unit, is_signed);
    lw_set(l, &l->i->ops[0], PTX_U32, finish(l, v, d, is_signed));
}

static bool may_negate(const lw *l, bool product, bool c)
{
    return !(product && c) && !(lw_has(l, PTX_M_po) && (product || c));
}

/* The product is unsigned if both factors are and it is not negated; c has its sign. The sum is
 * unsigned if the product is and c is not negated (PTX ISA, vmad). */
void w_vmad(lw *l)
{
    const ptx_operand *o = l->i->ops;
    bool minus = o[1].minus != o[2].minus, minus_c = o[3].minus;
    if (!may_negate(l, o[1].minus || o[2].minus, minus_c)) {
        lw_fail(l, "of vmad either one factor or c may be negated, and nothing with .po");
        return;
    }
    bool product_signed = lw_signed(l, 1) || lw_signed(l, 2) || minus;
    bool is_signed = product_signed || minus_c;
    hw_wir_val p = op(l, HW_W_MUL, HW_T_I64, part(l, 1, 1), part(l, 2, 2));
    hw_wir_val c = lw_fit(l, lw_source(l, 2), HW_T_I32, HW_T_I64, product_signed);
    if (minus)
        p = op(l, HW_W_SUB, HW_T_I64, hw_wir_imm(0), p);
    p = op(l, minus_c ? HW_W_SUB : HW_W_ADD, HW_T_I64, p, c);
    if (lw_has(l, PTX_M_po))
        p = op(l, HW_W_ADD, HW_T_I64, p, hw_wir_imm(1));
    unsigned scale = lw_has(l, PTX_M_shr7) ? 7 : lw_has(l, PTX_M_shr15) ? 15 : 0;
    if (scale)
        p = op(l, is_signed ? HW_W_SHR_S : HW_W_SHR_U, HW_T_I64, p, hw_wir_imm(scale));
    if (l->x->sat)
        p = clamp(l, HW_T_I64, p, 32, is_signed);
    lw_set(l, &o[0], PTX_U32, lw_fit(l, p, HW_T_I64, HW_T_I32, false));
}

/* ---- SIMD ---- */

/* Lane k of an operand: its selector picks from the lanes of a (low) and b (high). */
static hw_wir_val lane(lw *l, unsigned operand, unsigned lanes, unsigned k, unsigned type)
{
    selector s = selector_of(&l->i->ops[operand]);
    unsigned at = s.n ? s.at[k] : k + (operand == 2 ? lanes : 0), unit = 32 / lanes;
    hw_wir_val v = lw_read(l, &l->i->ops[at < lanes ? 1 : 2], PTX_U32);
    return extract(l, v, unit * (at % lanes), unit, lw_signed(l, type));
}

static bool selected(const selector *mask, unsigned k)
{
    if (!mask->n)
        return true;
    for (unsigned j = 0; j < mask->n; j++)
        if (mask->at[j] == k)
            return true;
    return false;
}

static hw_wir_val insert(lw *l, hw_wir_val into, hw_wir_val v, unsigned bit, unsigned unit)
{
    uint64_t field = ((UINT64_C(1) << unit) - 1) << bit;
    v = op(l, HW_W_SHL, HW_T_I32, v, hw_wir_imm(bit));
    v = op(l, HW_W_AND, HW_T_I32, v, hw_wir_imm(field));
    into = op(l, HW_W_AND, HW_T_I32, into, lw_const(HW_T_I32, ~field));
    return op(l, HW_W_OR, HW_T_I32, into, v);
}

void w_video_simd(lw *l, unsigned lanes)
{
    bool set = l->x->row->id == PTX_ROW_vset2 || l->x->row->id == PTX_ROW_vset4;
    bool add = lw_has(l, PTX_M_add), is_signed = !set && lw_signed(l, 0);
    unsigned unit = 32 / lanes, a_type = set ? 0 : 1;
    selector mask = selector_of(&l->i->ops[0]);
    hw_wir_val r = lw_source(l, 2);
    for (unsigned k = 0; k < lanes; k++) {
        if (!selected(&mask, k))
            continue;
        hw_wir_val a = lane(l, 1, lanes, k, a_type), b = lane(l, 2, lanes, k, a_type + 1);
        hw_wir_val v = operate(l, HW_T_I32, a, b);
        if (l->x->sat)
            v = clamp(l, HW_T_I32, v, unit, is_signed);
        r = add ? op(l, HW_W_ADD, HW_T_I32, r, v) : insert(l, r, v, k * unit, unit);
    }
    lw_set(l, &l->i->ops[0], PTX_U32, r);
}

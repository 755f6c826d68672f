/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of a warpgroup (PTX ISA 9.7.15). A warp's sixteen rows are a helper's (WGMMA), done when the instruction is, which the
 * manual allows: fences and groups have nothing to do. But whoever has waited for a group may take it that all four warps have read their
 * factors, so that wait_group is a barrier of the warpgroup.
 */
#include "lower.h"

enum { A_PARTS = 4, D_PARTS_MOST = 128, WARPGROUP_THREADS = 128 };

/* m64nNkK */
static uint32_t columns(const lw *l)
{
    static const char prefix[] = "m64n";
    for (uint32_t k = 0; k < l->i->nmods; k++) {
        hw_str m = l->i->mods[k];
        uint32_t n = 0;
        if (!hw_str_starts(m, HW_STR(prefix)))
            continue;
        for (size_t c = sizeof prefix - 1; c < m.len && m.ptr[c] >= '0' && m.ptr[c] <= '9'; c++)
            n = n * 10 + (uint32_t)(m.ptr[c] - '0');
        return n;
    }
    return 0;
}

/* A constant operand that is one of two; `yes` is the second. */
static bool flag(lw *l, const ptx_operand *o, int64_t no, int64_t yes, bool *set)
{
    int64_t v = o->kind == PTX_O_INT ? (int64_t)o->bits : INT64_MAX;
    if (v != no && v != yes) {
        lw_fail(l, "%lld or %lld is expected", (long long)no, (long long)yes);
        return false;
    }
    *set ^= v == yes;
    return true;
}

typedef struct form { /* what follows D, A, B and scale-d */
    bool scales, turns_a, turns_b;
} form;

static form form_of(const lw *l)
{
    bool is_int = l->x->type[0] == PTX_S32;
    bool halves = l->x->type[1] == PTX_F16 || l->x->type[1] == PTX_BF16;
    bool registers = l->i->nops > 1 && l->i->ops[1].kind == PTX_O_VECTOR;
    return (form){ .scales = !is_int, .turns_a = halves && !registers, .turns_b = halves };
}

static bool is_sparse(const lw *l)
{
    return lw_has(l, PTX_M_sp);
}

static bool flags(lw *l, const form *m, uint8_t *out)
{
    uint32_t k = is_sparse(l) ? 6 : 4, n = k + 2u * m->scales + m->turns_a + m->turns_b;
    const ptx_operand *o = l->i->ops;
    bool negate = false, a = false, b = false;
    if (l->i->nops != n) {
        lw_fail(l, "%u operands where %u are expected", l->i->nops, n);
        return false;
    }
    if (m->scales && (!flag(l, &o[k], 1, -1, &negate) || !flag(l, &o[k + 1], 1, -1, &negate)))
        return false;
    k += 2u * m->scales;
    if (m->turns_a && !flag(l, &o[k++], 0, 1, &a))
        return false;
    if (m->turns_b && !flag(l, &o[k++], 0, 1, &b))
        return false;
    *out |=
        (uint8_t)((negate ? HW_WGMMA_NEGATE : 0) | (a ? HW_WGMMA_MN_A : 0) |
                  (b ? HW_WGMMA_MN_B : 0) | (lw_has(l, PTX_M_satfinite) ? HW_WGMMA_SATURATE : 0));
    return true;
}

static hw_wir_val descriptor(lw *l, const ptx_operand *o)
{
    bool fits = o->kind == PTX_O_INT ||
                (o->kind == PTX_O_REG && ptx_types[l->f->regs.ptr[o->reg].type].bits == 64);
    if (!fits) {
        lw_fail(l, "a matrix descriptor of 64 bits is expected");
        return hw_wir_imm(0);
    }
    return lw_in_register(l, HW_T_I64, lw_read(l, o, PTX_B64));
}

static hw_wir_val adds(lw *l, const ptx_operand *o)
{
    bool fits =
        o->kind == PTX_O_INT || (o->kind == PTX_O_REG && l->f->regs.ptr[o->reg].type == PTX_PRED);
    if (!fits) {
        lw_fail(l, "a predicate is expected");
        return hw_wir_imm(0);
    }
    return lw_in_register(l, HW_T_I1, lw_read(l, o, PTX_PRED));
}

/* The register of indices and the constant that says which lanes have them. */
static bool indices(lw *l, const ptx_operand *o, hw_wir_val *v, uint8_t *selector)
{
    bool fits = o[0].kind == PTX_O_REG && ptx_types[l->f->regs.ptr[o[0].reg].type].bits == 32 &&
                o[1].kind == PTX_O_INT && o[1].bits <= 3;
    if (!fits) {
        lw_fail(l, "a register of indices and a selector of 0 to 3 are expected");
        return false;
    }
    *v = lw_in_register(l, HW_T_I32, lw_read(l, &o[0], PTX_B32));
    *selector = (uint8_t)o[1].bits;
    return true;
}

void w_wgmma(lw *l)
{
    const ptx_operand *o = l->i->ops;
    const uint8_t *t = l->x->type;
    hw_wgmma x = { .n = (uint16_t)columns(l),
                   .a = lw_mma_type(t[1]),
                   .b = lw_mma_type(t[2]),
                   .d = lw_mma_type(t[0]) };
    form m = form_of(l);
    hw_wir_val places = HW_WIR_NONE;
    if (!flags(l, &m, &x.flags))
        return;
    if (is_sparse(l)) {
        x.flags |= HW_WGMMA_SPARSE;
        if (!indices(l, &o[3], &places, &x.selector))
            return;
    }
    uint32_t ns = 0, nd = x.n / (t[0] == PTX_F16 ? 4u : 2u);
    hw_wir_val src[2 + A_PARTS + D_PARTS_MOST + 1];
    src[ns++] = adds(l, &o[is_sparse(l) ? 5 : 3]);
    src[ns++] = descriptor(l, &o[2]);
    if (o[1].kind == PTX_O_VECTOR) {
        x.flags |= HW_WGMMA_A_REGISTERS;
        if (!lw_are_sources(l, &o[1], A_PARTS, 32))
            return;
        for (uint32_t k = 0; k < A_PARTS; k++)
            src[ns++] = lw_source_part(l, &o[1], k, 32);
    } else {
        src[ns++] = descriptor(l, &o[1]);
    }
    if (o[0].kind != PTX_O_VECTOR || !lw_is_fragment(l, &o[0], nd, 32)) {
        lw_fail(l, "a list of %u registers is expected", nd);
        return;
    }
    for (uint32_t k = 0; k < nd; k++)
        src[ns + k] = hw_wir_reg(o[0].items[k].reg);
    src[ns + nd] = places;
    hw_wir_insn *i =
        hw_wir_emit(&l->b, HW_W_HELPER, HW_T_NONE, nd, src + ns, ns + nd + is_sparse(l), src);
    i->imm = HW_H_WGMMA;
    memcpy(&i->aux, &x, sizeof x); /* of 8 bytes both */
    lw_effect(l, i);
}

void w_wgmma_wait(lw *l)
{
    hw_wir_val src[2] = { hw_wir_imm(HW_BARRIER_WARPGROUP), hw_wir_imm(WARPGROUP_THREADS) };
    lw_effect(l, hw_wir_emit(&l->b, HW_W_BARRIER, HW_T_NONE, 0, NULL, 2, src));
}

/* SPDX-License-Identifier: Apache-2.0
 * Products of matrices by a warp (PTX ISA 9.7.14): mma and wmma.mma as calls of helper MMA; the four small products of
 * mma.m8n8k4, sparse ones and those whose factors have scales as calls of MMA_MORE. */
#include "lower.h"

/* ---- fragments: {r0, r1 ...} or one register ---- */

uint32_t lw_fragment_parts(const ptx_operand *o)
{
    return o->kind == PTX_O_VECTOR ? o->nitems : 1;
}

const ptx_operand *lw_fragment_part(const ptx_operand *o, uint32_t k)
{
    return o->kind == PTX_O_VECTOR ? &o->items[k] : o;
}

bool lw_operands_are(lw *l, uint32_t least, uint32_t most)
{
    if (l->i->nops >= least && l->i->nops <= most)
        return true;
    lw_fail(l, "%u operands where %u are expected", l->i->nops, least);
    return false;
}

/* others: kinds of operands, as bits, that may stand for a register. */
static bool is_list(lw *l, const ptx_operand *o, uint32_t n, unsigned bits, uint32_t others)
{
    bool fits = lw_fragment_parts(o) == n;
    for (uint32_t k = 0; fits && k < n; k++) {
        const ptx_operand *p = lw_fragment_part(o, k);
        fits = p->kind == PTX_O_REG ? ptx_types[l->f->regs.ptr[p->reg].type].bits == bits
                                    : (others >> p->kind) & 1;
    }
    if (!fits)
        lw_fail(l, "a fragment of %u registers of %u bits is expected", n, bits);
    return fits;
}

bool lw_is_fragment(lw *l, const ptx_operand *o, uint32_t n, unsigned bits)
{
    return is_list(l, o, n, bits, 0);
}

bool lw_are_sources(lw *l, const ptx_operand *o, uint32_t n, unsigned bits)
{
    return is_list(l, o, n, bits, 1u << PTX_O_INT | 1u << PTX_O_FLOAT);
}

bool lw_are_results(lw *l, const ptx_operand *o, uint32_t n, unsigned bits)
{
    return is_list(l, o, n, bits, 1u << PTX_O_SINK);
}

hw_wir_val lw_source_part(lw *l, const ptx_operand *o, uint32_t k, unsigned bits)
{
    const ptx_operand *p = lw_fragment_part(o, k);
    if (p->kind == PTX_O_REG)
        return hw_wir_reg(p->reg);
    ptx_type t = p->kind == PTX_O_FLOAT ? (bits == 64 ? PTX_F64 : PTX_F32)
                                        : (bits == 64 ? PTX_B64 : PTX_B32);
    return lw_in_register(l, hw_wir_reg_type(ptx_wir_type(t)), lw_read(l, p, t));
}

/* ---- shapes and types ---- */

/* clang-format off */
static const struct {
    uint8_t mod, m, n, k;
} shapes[] = {
    { PTX_M_m16n8k4, 16, 8, 4 },    { PTX_M_m16n8k8, 16, 8, 8 },    { PTX_M_m16n8k16, 16, 8, 16 },
    { PTX_M_m16n8k32, 16, 8, 32 },  { PTX_M_m8n8k4, 8, 8, 4 },      { PTX_M_m8n8k16, 8, 8, 16 },
    { PTX_M_m16n16k16, 16, 16, 16 }, { PTX_M_m32n8k16, 32, 8, 16 }, { PTX_M_m8n32k16, 8, 32, 16 },
    { PTX_M_m16n16k8, 16, 16, 8 },  { PTX_M_m8n8k32, 8, 8, 32 },    { PTX_M_m16n8k64, 16, 8, 64 },
    { PTX_M_m8n8k128, 8, 8, 128 },  { PTX_M_m16n8k128, 16, 8, 128 }, { PTX_M_m16n8k256, 16, 8, 0 },
};
static const struct {
    uint8_t type, mma, bits;
} elements[] = {
    { PTX_F16, HW_MMA_F16, 16 }, { PTX_BF16, HW_MMA_BF16, 16 }, { PTX_TF32, HW_MMA_TF32, 32 },
    { PTX_F32, HW_MMA_F32, 32 }, { PTX_F64, HW_MMA_F64, 64 },   { PTX_S8, HW_MMA_S8, 8 },
    { PTX_U8, HW_MMA_U8, 8 },    { PTX_S32, HW_MMA_S32, 32 },   { PTX_E4M3, HW_MMA_E4M3, 8 },
    { PTX_E5M2, HW_MMA_E5M2, 8 }, { PTX_S4, HW_MMA_S4, 4 },     { PTX_U4, HW_MMA_U4, 4 },
    { PTX_B1, HW_MMA_B1, 1 },    { PTX_E3M2, HW_MMA_E3M2, 8 },  { PTX_E2M3, HW_MMA_E2M3, 8 },
    { PTX_E2M1, HW_MMA_E2M1, 8 },
};
/* clang-format on */

hw_mma lw_mma_shape(const lw *l)
{
    for (size_t k = 0; k < HW_COUNTOF(shapes); k++)
        if (lw_has(l, shapes[k].mod))
            return (hw_mma){ .m = shapes[k].m, .n = shapes[k].n, .k = shapes[k].k };
    return (hw_mma){ 0 };
}

uint8_t lw_mma_type(uint8_t t)
{
    for (size_t k = 0; k < HW_COUNTOF(elements); k++)
        if (elements[k].type == t)
            return elements[k].mma;
    return HW_MMA_F16;
}

unsigned lw_element_bits(uint8_t t)
{
    for (size_t k = 0; k < HW_COUNTOF(elements); k++)
        if (elements[k].type == t)
            return elements[k].bits;
    return 0;
}

uint32_t lw_fragment_size(const lw *l, uint32_t count, uint8_t type, bool is_factor)
{
    bool wmma = hw_str_is(l->i->opcode, "wmma");
    unsigned bits = lw_element_bits(type), in_register = bits == 64 ? 1 : 32 / bits;
    return wmma && type == PTX_F16 && is_factor ? 8 : count / 32 / in_register;
}

/* ---- operands ---- */

typedef struct call { /* of a helper */
    hw_wir_val src[32], dst[8];
    uint32_t nsrc, ndst;
} call;

static bool add_sources(lw *l, call *c, const ptx_operand *o, uint32_t n, uint8_t type)
{
    unsigned bits = type == PTX_F64 ? 64 : 32;
    if (!lw_are_sources(l, o, n, bits))
        return false;
    for (uint32_t k = 0; k < n; k++)
        c->src[c->nsrc++] = lw_source_part(l, o, k, bits);
    return true;
}

static bool add_results(lw *l, call *c, const ptx_operand *o, uint32_t n, uint8_t type)
{
    bool wide = type == PTX_F64;
    if (!lw_are_results(l, o, n, wide ? 64 : 32))
        return false;
    for (uint32_t k = 0; k < n; k++) {
        const ptx_operand *p = lw_fragment_part(o, k);
        c->dst[c->ndst++] =
            p->kind == PTX_O_REG ? hw_wir_reg(p->reg) : lw_temp(l, wide ? HW_T_F64 : HW_T_I32);
    }
    return true;
}

/* D, A, B and C, of so many registers each. */
static bool add_matrices(lw *l, call *c, const uint32_t n[4], const uint8_t t[4])
{
    const ptx_operand *o = l->i->ops;
    return add_results(l, c, &o[0], n[0], t[0]) && add_sources(l, c, &o[1], n[1], t[1]) &&
           add_sources(l, c, &o[2], n[2], t[2]) && add_sources(l, c, &o[3], n[3], t[3]);
}

static void emit(lw *l, const call *c, hw_wir_helper helper, uint64_t aux)
{
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_HELPER, HW_T_NONE, c->ndst, c->dst, c->nsrc, c->src);
    i->imm = helper;
    i->aux = aux;
    lw_effect(l, i);
}

/* ---- dense products ---- */

static void product(lw *l, hw_mma x, const uint8_t t[4])
{
    call c = { 0 };
    uint32_t k = x.k ? x.k : 256, mk = x.m * k, kn = k * x.n, mn = (uint32_t)x.m * x.n;
    const uint32_t n[4] = { lw_fragment_size(l, mn, t[0], false),
                            lw_fragment_size(l, mk, t[1], true),
                            lw_fragment_size(l, kn, t[2], true),
                            lw_fragment_size(l, mn, t[3], false) };
    if (!lw_operands_are(l, 4, 4) || !add_matrices(l, &c, n, t))
        return;
    x.d = lw_mma_type(t[0]);
    x.a = lw_mma_type(t[1]);
    x.b = lw_mma_type(t[2]);
    x.c = lw_mma_type(t[3]);
    x.flags |= (lw_has(l, PTX_M_satfinite) ? HW_MMA_SATURATE : 0) |
               (lw_has(l, PTX_M_and) ? HW_MMA_AND : 0) |
               (uint8_t)(l->x->round << HW_MMA_ROUND_SHIFT);
    uint64_t aux;
    memcpy(&aux, &x, sizeof aux); /* of 8 bytes both */
    emit(l, &c, HW_H_MMA, aux);
}

void w_mma(lw *l)
{
    product(l, lw_mma_shape(l), l->x->type);
}

/* wmma.mma of halves names the types of D and C only. */
void w_wmma_mma(lw *l)
{
    hw_mma x = lw_mma_shape(l);
    x.flags = HW_MMA_WMMA;
    uint8_t halves[4] = { l->x->type[0], PTX_F16, PTX_F16, l->x->type[1] };
    product(l, x, l->x->ntypes == 2 ? halves : l->x->type);
}

/* ---- four products at once: mma.m8n8k4 of halves (9.7.14.5.1) ---- */

static bool has_pairs(const lw *l)
{
    return lw_has(l, PTX_M_kind_mxf4) || lw_has(l, PTX_M_kind_mxf4nvf4);
}

static void finish_more(lw *l, const call *c, hw_mma_more x, const uint8_t t[4])
{
    x.d = lw_mma_type(t[0]);
    x.a = lw_mma_type(t[1]);
    x.b = lw_mma_type(t[2]);
    x.c = lw_mma_type(t[3]);
    if (has_pairs(l))
        x.a = x.b = HW_MMA_E2M1_PAIRS;
    x.flags |= lw_has(l, PTX_M_satfinite) ? HW_MMA_SATURATE : 0;
    uint64_t aux;
    memcpy(&aux, &x, sizeof aux);
    emit(l, c, HW_H_MMA_MORE, aux);
}

void w_mma_quads(lw *l)
{
    call c = { 0 };
    hw_mma_more x = { .k = 4, .flags = HW_MMA_QUADS };
    const uint8_t *t = l->x->type;
    uint8_t flag[2] = { HW_MMA_COL_A, HW_MMA_ROW_B };
    const uint32_t n[4] = { t[0] == PTX_F16 ? 4 : 8, 2, 2, t[3] == PTX_F16 ? 4 : 8 };
    if (t[3] == PTX_F32 && t[0] != PTX_F32) {
        lw_fail(l, "D is .f32 where C is");
        return;
    }
    for (uint32_t k = 0, layout = 0; k < l->i->nmods && layout < 2; k++) { /* A's, then B's */
        bool row = hw_str_is(l->i->mods[k], "row");
        if (!row && !hw_str_is(l->i->mods[k], "col"))
            continue;
        x.flags |= row == (layout == 1) ? flag[layout] : 0;
        layout++;
    }
    if (lw_operands_are(l, 4, 4) && add_matrices(l, &c, n, t))
        finish_more(l, &c, x, t);
}

/* ---- sparse and scaled products ---- */

static hw_wir_val word(lw *l, const ptx_operand *o, ptx_type t)
{
    hw_wir_type w = ptx_wir_type(t);
    hw_wir_val v = lw_fit(l, lw_read(l, o, t), w, HW_T_I32, false);
    return lw_in_register(l, HW_T_I32, v);
}

/* The selector of the lanes that hold indices: a constant. */
static bool selector(lw *l, const ptx_operand *o, uint8_t *out)
{
    if (o->kind != PTX_O_INT || o->bits > 3) {
        lw_fail(l, "a constant of 0 to 3 is expected, the sparsity selector");
        return false;
    }
    *out = (uint8_t)o->bits;
    return true;
}

/* Scales, {byte, thread}: of A and of B. Vectors of one are plain operands. */
static bool scales(lw *l, call *c, const ptx_operand *o)
{
    for (unsigned k = 0; k < 2; k++, o += 2) {
        if (lw_fragment_parts(&o[0]) != 1 || lw_fragment_parts(&o[1]) != 2) {
            lw_fail(l, "scales and {byte, thread} are expected");
            return false;
        }
        c->src[c->nsrc++] = word(l, lw_fragment_part(&o[0], 0), PTX_B32);
        for (unsigned e = 0; e < 2; e++)
            c->src[c->nsrc++] = word(l, lw_fragment_part(&o[1], e), PTX_U16);
    }
    return l->status == HW_OK;
}

/* How many scales a row of A has. */
static uint8_t scale_count(const lw *l)
{
    if (!lw_has(l, PTX_M_block_scale))
        return 0;
    if (lw_has(l, PTX_M_scale_vec_4))
        return 4;
    return lw_has(l, PTX_M_kind_mxf8f6f4) ? 1 : 2;
}

/* D, A, B and C of a 16 x 8 product. */
static bool add_more_matrices(lw *l, call *c, const hw_mma_more *x)
{
    const uint8_t *t = l->x->type;
    uint32_t stored = x->flags & HW_MMA_SPARSE ? x->k / 2 : x->k;
    unsigned bits = has_pairs(l) ? 4 : t[1] == PTX_E2M1 ? 8 : lw_element_bits(t[1]);
    const uint32_t n[4] = { t[0] == PTX_F16 ? 2 : 4, 16 * stored * bits / 1024,
                            8u * x->k * bits / 1024, t[3] == PTX_F16 ? 2 : 4 };
    if (t[0] != t[3]) {
        lw_fail(l, "C and D are of one type");
        return false;
    }
    return add_matrices(l, c, n, t);
}

void w_mma_more(lw *l)
{
    call c = { 0 };
    bool sparse = lw_has(l, PTX_M_sp) || lw_has(l, PTX_M_sp_ordered);
    hw_mma_more x = { .k = lw_mma_shape(l).k,
                      .scales = scale_count(l),
                      .flags = sparse ? HW_MMA_SPARSE : 0 };
    const ptx_operand *o = l->i->ops;
    uint32_t operands = 4 + (sparse ? 2u : 0) + (x.scales ? 4u : 0);
    if (!lw_operands_are(l, operands, operands) || !add_more_matrices(l, &c, &x))
        return;
    if (sparse) {
        c.src[c.nsrc++] = word(l, &o[4], PTX_B32);
        if (!selector(l, &o[5], &x.selector))
            return;
    }
    if (x.scales) {
        if (!scales(l, &c, &o[operands - 4]))
            return;
        x.flags |= l->x->type[4] == PTX_UE4M3 ? HW_MMA_UE4M3 : 0;
    }
    finish_more(l, &c, x, l->x->type);
}

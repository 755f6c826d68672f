/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces: tex, tld4, suld, sust as calls of the helpers that read them (PTX ISA 9.7.10, 9.7.11). The
 * operands have a syntax of their own, [object, {coordinates}], so they are read here and not by a row's specs.
 * aux is built as room mem's hw_texture.h says; the numbers are repeated here because ptx does not see mem.
 */
#include "lower.h"

enum { INTEGER = 1 << 3, LEVEL = 1 << 4, GRAD = 1 << 5, GATHER = 1 << 6, CHANNEL_SHIFT = 8 };
enum { BYTES_SHIFT = 16, COUNT_SHIFT = 20, STORE = 1 << 24, CLAMP = 1 << 25, ZERO = 1 << 26 };
enum { SAMPLES = 1 << 27, REDUCE = 1 << 28, FORMAT = 1 << 29, ATOM_SHIFT = 32, TYPE_SHIFT = 40 };
enum { MAX_OPERANDS = 24 };

static const struct {
    const char *name;
    uint8_t dims;
    bool layered;
} geometries[] = { { "1d", 1, false },  { "2d", 2, false }, { "3d", 3, false },
                   { "a1d", 1, true },  { "a2d", 2, true }, { "cube", 3, false },
                   { "acube", 3, true } };

typedef struct access {
    uint64_t aux;
    unsigned geometry, dims;
    bool layered;
    hw_wir_val src[MAX_OPERANDS];
    uint32_t nsrc;
} access;

static bool says(const lw *l, const char *mod)
{
    for (uint32_t k = 0; k < l->i->nmods; k++)
        if (hw_str_is(l->i->mods[k], mod))
            return true;
    return false;
}

static bool find_geometry(lw *l, access *a)
{
    for (unsigned g = 0; g < HW_COUNTOF(geometries); g++)
        if (says(l, geometries[g].name)) {
            a->geometry = g;
            a->aux = g;
            a->dims = geometries[g].dims;
            a->layered = geometries[g].layered;
            return true;
        }
    w_unsupported(l);
    return false;
}

/* The k-th part of a vector operand, or the operand itself. */
static const ptx_operand *part(const ptx_operand *o, uint32_t k)
{
    if (o->kind == PTX_O_VECTOR)
        return k < o->nitems ? &o->items[k] : NULL;
    return k == 0 ? o : NULL;
}

static bool give(lw *l, access *a, const ptx_operand *o, ptx_type t)
{
    if (!o || a->nsrc == MAX_OPERANDS) {
        lw_fail(l, "too few coordinates");
        return false;
    }
    a->src[a->nsrc++] = lw_in_register(l, hw_wir_reg_type(ptx_wir_type(t)), lw_read(l, o, t));
    return l->status == HW_OK;
}

/* [object, {layer, x, y, z}]: only objects of the bindless kind, named by a 64-bit value. */
static bool give_place(lw *l, access *a, const ptx_operand *o, ptx_type t)
{
    if (o->kind != PTX_O_ADDRESS || o->nitems < 2 || o->items[0].kind != PTX_O_REG ||
        o->nitems > 2) {
        lw_fail(l, "only texture and surface objects with one handle are supported, no references");
        return false;
    }
    uint32_t k = 0;
    const ptx_operand *at = &o->items[1];
    if (!give(l, a, &o->items[0], PTX_U64) || (a->layered && !give(l, a, part(at, k++), PTX_U32)))
        return false;
    for (unsigned d = 0; d < a->dims; d++)
        if (!give(l, a, part(at, k++), t))
            return false;
    return true;
}

static void call(lw *l, const access *a, hw_wir_helper helper, uint32_t ndst, const hw_wir_val *dst)
{
    hw_wir_insn *i = hw_wir_emit(&l->b, HW_W_HELPER, HW_T_I32, ndst, dst, a->nsrc, a->src);
    i->imm = helper;
    i->aux = a->aux;
    lw_effect(l, i);
}

/* The list of results; with |p also whether the texels are resident, which they always are. */
static const ptx_operand *results(lw *l)
{
    const ptx_operand *o = &l->i->ops[0];
    if (o->kind != PTX_O_PAIR)
        return o;
    lw_set(l, &o->items[1], PTX_PRED, hw_wir_imm(1));
    return &o->items[0];
}

/* Results in fresh registers, then in the instruction's. */
static void call_for(lw *l, const access *a, hw_wir_helper helper, uint32_t n, ptx_type t)
{
    hw_wir_val dst[4] = { 0 };
    for (uint32_t c = 0; c < n; c++)
        dst[c] = lw_temp(l, hw_wir_reg_type(ptx_wir_type(t)));
    call(l, a, helper, n, dst);
    const ptx_operand *to = results(l);
    for (uint32_t c = 0; c < n; c++) {
        const ptx_operand *o = part(to, c);
        if (o)
            lw_set(l, o, t, dst[c]);
    }
}

/* Four floats that become halves: one a register, or two. */
static void call_for_halves(lw *l, const access *a, bool pairs)
{
    hw_wir_val dst[4];
    for (uint32_t c = 0; c < 4; c++)
        dst[c] = lw_temp(l, HW_T_F32);
    call(l, a, HW_H_TEX, 4, dst);
    const ptx_operand *to = results(l);
    for (uint32_t c = 0; c < 4; c++) {
        dst[c] = lw_cvt(l, HW_W_FCVT, HW_T_F32, HW_T_F16, dst[c]);
        if (!pairs && part(to, c))
            lw_set(l, part(to, c), PTX_F16, dst[c]);
        dst[c] = pairs ? lw_fit(l, dst[c], HW_T_I16, HW_T_I32, false) : dst[c];
    }
    for (uint32_t c = 0; pairs && c < 4; c += 2) {
        hw_wir_val high = hw_wir_op2(&l->b, HW_W_SHL, HW_T_I32, dst[c + 1], hw_wir_imm(16));
        high = hw_wir_op2(&l->b, HW_W_OR, HW_T_I32, high, dst[c]);
        if (part(to, c / 2))
            lw_set(l, part(to, c / 2), PTX_B32, high);
    }
}

/* The last two words of a texture instruction are the types of results and coordinates. */
static bool is_last_but(const lw *l, uint32_t back, const char *word)
{
    return l->i->nmods > back && hw_str_is(l->i->mods[l->i->nmods - 1 - back], word);
}

static bool gradients(lw *l, access *a, uint32_t first)
{
    for (uint32_t k = first; k < first + 2; k++)
        for (unsigned d = 0; d < a->dims; d++)
            if (k >= l->i->nops || !give(l, a, part(&l->i->ops[k], d), PTX_F32))
                return false;
    return true;
}

/* What follows the place: a level, in the coordinates' type, or derivatives. */
static bool give_level(lw *l, access *a)
{
    uint32_t behind = a->aux & GRAD ? 4 : a->aux & LEVEL ? 3 : 2;
    if (l->i->nops > behind) {
        lw_fail(l, "offsets and depth comparison are not supported");
        return false;
    }
    if (a->aux & GRAD)
        return gradients(l, a, 2);
    if (!(a->aux & LEVEL))
        return true;
    bool integer = a->aux & INTEGER;
    if (!give(l, a, l->i->nops > 2 ? &l->i->ops[2] : NULL, integer ? PTX_S32 : PTX_F32))
        return false;
    if (integer) {
        hw_wir_val *level = &a->src[a->nsrc - 1];
        *level = lw_in_register(l, HW_T_F32, lw_cvt(l, HW_W_I2F_S, HW_T_I32, HW_T_F32, *level));
    }
    return true;
}

static bool has_list(const lw *l)
{
    const ptx_operand *o = &l->i->ops[0];
    return l->i->nops >= 2 && (o->kind == PTX_O_PAIR ? &o->items[0] : o)->kind == PTX_O_VECTOR;
}

void w_tex(lw *l)
{
    access a = { 0 };
    bool pairs = is_last_but(l, 1, "f16x2"), half = is_last_but(l, 1, "f16") || pairs;
    if (!says(l, pairs ? "v2" : "v4") || !has_list(l)) {
        w_unsupported(l);
        return;
    }
    if (!find_geometry(l, &a))
        return;
    bool integer = is_last_but(l, 0, "s32");
    a.aux |= integer ? INTEGER : 0;
    a.aux |= says(l, "level") ? LEVEL : says(l, "grad") ? GRAD : 0;
    if (!give_place(l, &a, &l->i->ops[1], integer ? PTX_S32 : PTX_F32) || !give_level(l, &a))
        return;
    if (half)
        call_for_halves(l, &a, pairs);
    else
        call_for(l, &a, HW_H_TEX, 4, is_last_but(l, 1, "f32") ? PTX_F32 : PTX_B32);
}

void w_tld4(lw *l)
{
    static const char *const channels[] = { "r", "g", "b", "a" };
    access a = { .aux = GATHER };
    if (!has_list(l)) {
        w_unsupported(l);
        return;
    }
    if (l->i->nops != 2) {
        lw_fail(l, "offsets and depth comparison are not supported");
        return;
    }
    if (!find_geometry(l, &a))
        return;
    a.aux |= GATHER;
    for (unsigned c = 0; c < 4; c++)
        if (says(l, channels[c]))
            a.aux |= (uint64_t)c << CHANNEL_SHIFT;
    if (give_place(l, &a, &l->i->ops[1], PTX_F32))
        call_for(l, &a, HW_H_TEX, 4, is_last_but(l, 1, "f32") ? PTX_F32 : PTX_B32);
}

static ptx_type element(const lw *l, uint64_t *aux)
{
    static const struct {
        const char *name;
        uint8_t bytes;
    } sizes[] = { { "b8", 1 }, { "b16", 2 }, { "b32", 4 }, { "b64", 8 } };
    unsigned bytes = 0, count = says(l, "v2") ? 2 : says(l, "v4") ? 4 : 1;
    for (unsigned k = 0; k < HW_COUNTOF(sizes); k++)
        if (says(l, sizes[k].name))
            bytes = sizes[k].bytes;
    *aux |= (uint64_t)bytes << BYTES_SHIFT | (uint64_t)count << COUNT_SHIFT;
    *aux |= says(l, "clamp") ? CLAMP : says(l, "zero") ? ZERO : 0;
    return bytes == 8 ? PTX_B64 : bytes ? PTX_B32 : PTX_NONE;
}

/* A value of 1 or 2 bytes in the 32-bit register the helper takes it in. */
static bool give_value(lw *l, access *a, const ptx_operand *o)
{
    unsigned bytes = (unsigned)(a->aux >> BYTES_SHIFT) & 15;
    if (bytes >= 4)
        return give(l, a, o, bytes == 8 ? PTX_B64 : PTX_B32);
    if (!o || a->nsrc == MAX_OPERANDS)
        return false;
    hw_wir_val v = lw_fit(l, lw_read(l, o, PTX_B16), HW_T_I16, HW_T_I32, false);
    a->src[a->nsrc++] = lw_in_register(l, HW_T_I32, v);
    return l->status == HW_OK;
}

void w_suld(lw *l)
{
    access a = { 0 };
    if (!says(l, "b") || l->i->nops != 2) {
        w_unsupported(l);
        return;
    }
    if (!find_geometry(l, &a))
        return;
    ptx_type t = element(l, &a.aux);
    if (t == PTX_NONE) {
        w_unsupported(l);
        return;
    }
    uint32_t count = (uint32_t)(a.aux >> COUNT_SHIFT) & 7;
    if (give_place(l, &a, &l->i->ops[1], PTX_S32))
        call_for(l, &a, HW_H_SURF, count, t);
}

/* sust.p: 32-bit channels, as many as the list has, which become one texel. */
static void store_formatted(lw *l, access *a)
{
    uint32_t count = says(l, "v2") ? 2 : says(l, "v4") ? 4 : 1;
    a->aux |= STORE | FORMAT | SAMPLES;
    if (!says(l, "b32") || !give_place(l, a, &l->i->ops[0], PTX_S32)) {
        w_unsupported(l);
        return;
    }
    for (uint32_t k = 0; k < count; k++)
        if (!give(l, a, part(&l->i->ops[1], k), PTX_B32))
            return;
    call(l, a, HW_H_SURF, 0, NULL);
}

void w_sust(lw *l)
{
    access a = { 0 };
    if (says(l, "b") == says(l, "p") || l->i->nops != 2) {
        w_unsupported(l);
        return;
    }
    if (!find_geometry(l, &a))
        return;
    if (element(l, &a.aux) == PTX_NONE) {
        w_unsupported(l);
        return;
    }
    if (says(l, "p")) {
        store_formatted(l, &a);
        return;
    }
    a.aux |= STORE;
    if (!give_place(l, &a, &l->i->ops[0], PTX_S32))
        return;
    for (uint32_t k = 0; k < ((uint32_t)(a.aux >> COUNT_SHIFT) & 7); k++)
        if (!give_value(l, &a, part(&l->i->ops[1], k))) {
            w_unsupported(l);
            return;
        }
    call(l, &a, HW_H_SURF, 0, NULL);
}

/* ---- reductions of surfaces ---- */

/* clang-format off */
static const struct {
    const char *name;
    uint8_t is_unsigned, is_signed;
} reductions[] = {
    { "add", HW_ATOM_ADD, HW_ATOM_ADD }, { "min", HW_ATOM_MIN_U, HW_ATOM_MIN_S },
    { "max", HW_ATOM_MAX_U, HW_ATOM_MAX_S }, { "and", HW_ATOM_AND, HW_ATOM_AND },
    { "or", HW_ATOM_OR, HW_ATOM_OR },
};
static const struct {
    const char *name;
    uint8_t type;
    bool is_signed;
} reduced[] = {
    { "u32", PTX_U32, false }, { "s32", PTX_S32, true }, { "b32", PTX_B32, false },
    { "u64", PTX_U64, false }, { "s64", PTX_S64, true }, { "b64", PTX_B64, false },
};
/* clang-format on */

void w_sured(lw *l)
{
    access a = { 0 };
    ptx_type t = PTX_NONE;
    bool found = false;
    if (says(l, "b") == says(l, "p") || l->i->nops != 2) {
        w_unsupported(l);
        return;
    }
    if (!find_geometry(l, &a))
        return;
    for (size_t k = 0; k < HW_COUNTOF(reduced); k++) {
        if (!says(l, reduced[k].name))
            continue;
        t = reduced[k].type;
        for (size_t r = 0; r < HW_COUNTOF(reductions); r++)
            if (says(l, reductions[r].name)) {
                found = true;
                a.aux |= (uint64_t)(reduced[k].is_signed ? reductions[r].is_signed
                                                         : reductions[r].is_unsigned)
                         << ATOM_SHIFT;
            }
    }
    if (!found) {
        w_unsupported(l);
        return;
    }
    a.aux |= REDUCE | (says(l, "p") ? SAMPLES : 0) | (says(l, "clamp") ? CLAMP : 0) |
             (says(l, "zero") ? ZERO : 0) | (uint64_t)(ptx_types[t].bits / 8) << BYTES_SHIFT |
             UINT64_C(1) << COUNT_SHIFT | (uint64_t)ptx_wir_type(t) << TYPE_SHIFT;
    if (give_place(l, &a, &l->i->ops[0], PTX_S32) && give(l, &a, &l->i->ops[1], t))
        call(l, &a, HW_H_SURF, 0, NULL);
}

/* ---- txq, suq ---- */

/* In the order of hw_texture_query. What a channel's type and order are called is the source language's business. */
static const char *const queries[] = { "width",       "height",
                                       "depth",       "normalized_coords",
                                       "array_size",  "num_mipmap_levels",
                                       "num_samples", "filter_mode",
                                       "addr_mode_0", "addr_mode_1",
                                       "addr_mode_2", "memory_layout" };

void w_texture_query(lw *l)
{
    access a = { 0 };
    const ptx_operand *o = l->i->ops;
    bool level = says(l, "level");
    if (l->i->nops != (level ? 3u : 2u) || o[1].kind != PTX_O_ADDRESS ||
        o[1].items[0].kind != PTX_O_REG) {
        lw_fail(l, "only texture and surface objects are supported, no references");
        return;
    }
    size_t q = 0;
    while (q < HW_COUNTOF(queries) && !says(l, queries[q]))
        q++;
    if (q == HW_COUNTOF(queries)) {
        w_unsupported(l);
        return;
    }
    a.aux = q;
    if (!give(l, &a, &o[1].items[0], PTX_U64))
        return;
    if (level)
        give(l, &a, &o[2], PTX_U32);
    else
        a.src[a.nsrc++] = lw_in_register(l, HW_T_I32, hw_wir_imm(0));
    call_for(l, &a, HW_H_TEX_QUERY, 1, PTX_B32);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces: tex, tld4, suld, sust as calls of the helpers that read them (PTX ISA 9.7.10, 9.7.11). The
 * operands have a syntax of their own, [object, {coordinates}], so they are read here and not by a row's specs.
 * aux is built as room mem's hw_texture.h says; the numbers are repeated here because ptx does not see mem.
 */
#include "lower.h"

enum { INTEGER = 1 << 3, LEVEL = 1 << 4, GRAD = 1 << 5, GATHER = 1 << 6, CHANNEL_SHIFT = 8 };
enum { BYTES_SHIFT = 16, COUNT_SHIFT = 20, STORE = 1 << 24, CLAMP = 1 << 25, ZERO = 1 << 26 };
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

/* Results in fresh registers, then in the instruction's. */
static void call_for(lw *l, const access *a, hw_wir_helper helper, uint32_t n, ptx_type t)
{
    hw_wir_val dst[4] = { 0 };
    for (uint32_t c = 0; c < n; c++)
        dst[c] = lw_temp(l, hw_wir_reg_type(ptx_wir_type(t)));
    call(l, a, helper, n, dst);
    for (uint32_t c = 0; c < n; c++) {
        const ptx_operand *o = part(&l->i->ops[0], c);
        if (o)
            lw_set(l, o, t, dst[c]);
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

/* What follows the place: a level, or derivatives. */
static bool give_level(lw *l, access *a)
{
    if (a->aux & GRAD)
        return gradients(l, a, 2);
    return !(a->aux & LEVEL) || give(l, a, l->i->nops > 2 ? &l->i->ops[2] : NULL, PTX_F32);
}

void w_tex(lw *l)
{
    access a = { 0 };
    bool half = is_last_but(l, 1, "f16") || is_last_but(l, 1, "f16x2");
    if (half || !says(l, "v4") || l->i->nops < 2 || l->i->ops[0].kind != PTX_O_VECTOR) {
        w_unsupported(l);
        return;
    }
    if (!find_geometry(l, &a))
        return;
    bool integer = is_last_but(l, 0, "s32");
    a.aux |= integer ? INTEGER : 0;
    a.aux |= says(l, "level") ? LEVEL : says(l, "grad") ? GRAD : 0;
    if (give_place(l, &a, &l->i->ops[1], integer ? PTX_S32 : PTX_F32) && give_level(l, &a))
        call_for(l, &a, HW_H_TEX, 4, is_last_but(l, 1, "f32") ? PTX_F32 : PTX_B32);
}

void w_tld4(lw *l)
{
    static const char *const channels[] = { "r", "g", "b", "a" };
    access a = { .aux = GATHER };
    if (l->i->nops != 2 || l->i->ops[0].kind != PTX_O_VECTOR) {
        w_unsupported(l);
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

void w_sust(lw *l)
{
    access a = { 0 };
    if (!says(l, "b") || l->i->nops != 2) {
        w_unsupported(l);
        return;
    }
    if (!find_geometry(l, &a))
        return;
    if (element(l, &a.aux) == PTX_NONE) {
        w_unsupported(l);
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

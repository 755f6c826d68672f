/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads of neighbouring words through one address, found in a block and done at once: fields of a
 * structure, an unrolled loop over a row. Where lanes follow each other it becomes one wide load
 * taken apart; where they go anywhere, one 16-byte load a lane and a transposition, a third of the
 * price of four gathers.
 */
#include "access.h"

enum { MOST_LOADS = 64, WORD = 4, MOST_AHEAD = 8, AHEAD = 4096 };

typedef struct found {
    const hw_wir_insn *in;
    uint32_t index;
} found;

static bool is_word_load(const hw_wir_insn *in)
{
    return in->op == HW_W_LOAD && in->count == 1 && hw_wir_bits((hw_wir_type)in->type) == 32 &&
           !(in->flags & (HW_I_VOLATILE | HW_I_ACQUIRE)) && hw_wir_dst_type(in, 0) == HW_T_I32;
}

static bool may_write(const hw_wir_insn *in)
{
    return in->op != HW_W_LOAD && in->op != HW_W_PREFETCH &&
           hw_wir_ops[in->op].flags & (HW_WF_M | HW_WF_E | HW_WF_S | HW_WF_X);
}

static bool quiet_between(const hw_wir_block *w, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (may_write(&w->insns.ptr[i]))
            return false;
    return true;
}

static void sort_by_offset(found *f, unsigned n)
{
    for (unsigned i = 1; i < n; i++)
        for (unsigned k = i; k > 0 && (int64_t)f[k].in->imm < (int64_t)f[k - 1].in->imm; k--) {
            found t = f[k];
            f[k] = f[k - 1];
            f[k - 1] = t;
        }
}

/* Words a lane that make a bundle for an address of this shape; 0: none. */
static unsigned bundle_words(const hw_shape *s)
{
    if (s->kind == HW_SHAPE_VARYING)
        return 4;
    if (s->kind == HW_SHAPE_UNIFORM || s->d || !s->c)
        return 0;
    int64_t step = s->c[1] - s->c[0];
    for (unsigned l = 1; l < GEN_LANES; l++)
        if (s->c[l] - s->c[l - 1] != step)
            return 0;
    return step == 8 || step == 12 || step == 16 ? (unsigned)step / WORD : 0;
}

static void make_bundle(hw_gen *g, const hw_wir_block *w, const found *f, unsigned n)
{
    uint32_t first = UINT32_MAX, last = 0;
    for (unsigned i = 0; i < n; i++) {
        if (f[i].in->imm != f[0].in->imm + (uint64_t)i * WORD)
            return;
        first = f[i].index < first ? f[i].index : first;
        last = f[i].index > last ? f[i].index : last;
    }
    if (!quiet_between(w, first, last))
        return;
    hw_gen_bundle *b = HW_NEW(g->arena, hw_gen_bundle);
    b->n = n;
    b->offset = (int64_t)f[0].in->imm;
    b->first = first;
    b->in = &w->insns.ptr[first];
    hw_vec_push(g->arena, &g->bundles, b);
    for (unsigned i = 0; i < n; i++)
        g->bundle_of[f[i].index] = b;
}

static void from_group(hw_gen *g, const hw_wir_block *w, const hw_gen_group *q)
{
    found f[MOST_LOADS];
    unsigned n = 0, words = bundle_words(&g->an->shape[q->member[0]->src[0].reg]);
    if (!words || q->n < words)
        return;
    for (uint32_t i = 0; i < q->n; i++)
        if (is_word_load(q->member[i]))
            f[n++] = (found){ q->member[i], (uint32_t)(q->member[i] - w->insns.ptr) };
    sort_by_offset(f, n);
    for (unsigned i = 0; i + words <= n;) {
        make_bundle(g, w, &f[i], words);
        i += g->bundle_of[f[i].index] ? words : 1;
    }
}

/* Could the bundle be loaded here already? Few words ahead only: it occupies registers. */
bool hwg_bundle_ready(const hw_gen *g, const hw_gen_bundle *b)
{
    const hw_wir_block *w = &g->f->blocks.ptr[g->block];
    if (b->first <= g->index || b->first - g->index > MOST_AHEAD ||
        !quiet_between(w, g->index, b->first))
        return false;
    for (uint32_t i = g->index; i < b->first; i++)
        for (uint32_t k = 0; k < w->insns.ptr[i].ndst; k++)
            if (w->insns.ptr[i].dst[k].kind == HW_V_REG &&
                w->insns.ptr[i].dst[k].reg == b->in->src[0].reg)
                return false;
    return true;
}

/* The distance at which to prefetch: if the block moves the lanes' addresses on by a constant. */
int64_t hwg_bundle_ahead(const hw_gen *g, const hw_gen_bundle *b)
{
    const hw_wir_block *w = &g->f->blocks.ptr[g->block];
    uint32_t reg = b->in->src[0].reg;
    for (size_t i = 0; i < w->insns.len; i++) {
        const hw_wir_insn *in = &w->insns.ptr[i];
        if (in->op == HW_W_ADD && in->dst[0].kind == HW_V_REG && in->dst[0].reg == reg &&
            in->src[0].kind == HW_V_REG && in->src[0].reg == reg && in->src[1].kind == HW_V_IMM)
            return (int64_t)in->src[1].imm < 0 ? -AHEAD : AHEAD;
    }
    return 0;
}

void hwg_bundles(hw_gen *g, uint32_t block)
{
    g->bundles.len = 0;
    const hw_wir_block *w = &g->f->blocks.ptr[block];
    g->bundle_of = HW_NEW_N(g->arena, hw_gen_bundle *, w->insns.len);
    for (uint32_t i = 0; i < w->insns.len && !g->lean; i++) {
        const hw_gen_group *q = g->group_of[i];
        if (q && q->member[0] == &w->insns.ptr[i] && q->n > 1)
            from_group(g, w, q);
    }
}

/* ---- one 16-byte load a lane ---- */

/* Into the second-level cache: lanes that walk through memory will want it there. */
void hwg_prefetch(hw_gen *g, hw_lv p)
{
    hw_lv a[] = { p, hwg_k(g->i32, 0), hwg_k(g->i32, 1), hwg_k(g->i32, 1) };
    hwg_intr(g, "llvm.prefetch", 1, &g->ptr, 4, a);
}

static hw_lv four_lanes(hw_gen *g, hw_lv addresses, unsigned lane, int64_t ahead)
{
    static const int low[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    hw_lt t = LLVMVectorType(g->i32, 4);
    hw_lv x[4];
    for (unsigned i = 0; i < 4; i++) {
        hw_lv at = LLVMBuildExtractElement(g->b, addresses, hwg_k(g->i32, lane + 4 * i), "");
        hw_lv p = LLVMBuildIntToPtr(g->b, at, g->ptr, "");
        x[i] = hwg_load(g, t, p, WORD);
        if (ahead)
            hwg_prefetch(g, hwg_gep_k(g, p, ahead));
    }
    hw_lv lo = hwg_shuffle(g, x[0], x[1], low, 8), hi = hwg_shuffle(g, x[2], x[3], low, 8);
    return hwg_shuffle(g, lo, hi, all, 16);
}

static hw_lv interleaved(hw_gen *g, hw_lv a, hw_lv b, const int *four)
{
    int idx[16];
    for (int i = 0; i < 16; i++)
        idx[i] = i / 4 * 4 + four[i % 4] % 4 + (four[i % 4] >= 4 ? 16 : 0);
    return hwg_shuffle(g, a, b, idx, 16);
}

/* Lanes k*16 .. k*16+15: their four words as four vectors. */
static void transpose16(hw_gen *g, hw_lv addresses, unsigned k, int64_t ahead, hw_lv *out)
{
    static const int lo[] = { 0, 4, 1, 5 }, hi[] = { 2, 6, 3, 7 };
    static const int first[] = { 0, 1, 4, 5 }, second[] = { 2, 3, 6, 7 };
    hw_lv z[4];
    for (unsigned j = 0; j < 4; j++)
        z[j] = four_lanes(g, addresses, 16 * k + j, ahead);
    hw_lv u0 = interleaved(g, z[0], z[1], lo), u1 = interleaved(g, z[0], z[1], hi);
    hw_lv u2 = interleaved(g, z[2], z[3], lo), u3 = interleaved(g, z[2], z[3], hi);
    out[0] = interleaved(g, u0, u2, first);
    out[1] = interleaved(g, u0, u2, second);
    out[2] = interleaved(g, u1, u3, first);
    out[3] = interleaved(g, u1, u3, second);
}

void hwg_load_quads(hw_gen *g, const hw_access *a, int64_t ahead, hw_lv *words)
{
    hw_lv p = hwg_pointers(g, a, 0), half[2][4];
    hw_lv v = LLVMBuildPtrToInt(g->b, p, LLVMVectorType(g->i64, GEN_LANES), "");
    if (!hwg_all_execute(g)) { /* other lanes read what is surely there */
        hw_lv safe = LLVMBuildPtrToInt(g->b, hwg_scratch(g), g->i64, "");
        v = b_select(g, hwg_mask_vec(g, g->exec), v, hwg_splat(g, safe, GEN_LANES));
    }
    int both[GEN_LANES];
    for (int i = 0; i < GEN_LANES; i++)
        both[i] = i;
    for (unsigned k = 0; k < 2; k++)
        transpose16(g, v, k, ahead, half[k]);
    for (unsigned i = 0; i < 4; i++)
        words[i] = hwg_shuffle(g, half[0][i], half[1][i], both, GEN_LANES);
}

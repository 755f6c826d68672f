/* SPDX-License-Identifier: Apache-2.0
 *
 * Where registers are kept while a warp waits, and when they need not be stored: each has a place of
 * its own in frame.save, which holds its value until it is written again. What is known to be held
 * is not stored at the next barrier. Registers that are set once, before the loop in which the warp
 * waits again and again, are stored where they are set.
 *
 * What is held is found along the ways that control goes in the generated code: to a block's targets,
 * and by way of the checks (flow.c) to any later block where lanes wait.
 */
#include "gen.h"

enum { PLACE_ALIGN = 64 };

typedef struct planner {
    hw_gen *g;
    size_t words;    /* of a set of registers */
    uint64_t **live; /* per instruction: kept by it; NULL: it does not suspend */
    uint64_t **in;   /* per block, then per check */
    bool *in_loop;   /* per block: in a loop in which warps wait */
} planner;

static bool suspends(const hw_wir_insn *in)
{
    return hw_wir_ops[in->op].flags & HW_WF_S;
}

static const hw_wir_block *block_of(const planner *p, uint32_t b)
{
    return &p->g->f->blocks.ptr[b];
}

static uint64_t *new_set(const planner *p)
{
    return HW_NEW_N(p->g->arena, uint64_t, p->words);
}

static void exclude(uint64_t *set, uint32_t r)
{
    set[r / 64] &= ~(UINT64_C(1) << (r % 64));
}

/* ---- which registers are kept ---- */

static bool find_live(planner *p)
{
    hw_gen *g = p->g;
    bool any = false;
    for (uint32_t k = 0; k < g->norder; k++) {
        uint32_t b = g->an->order[k];
        const hw_wir_block *w = block_of(p, b);
        for (uint32_t i = 0; i < w->insns.len; i++)
            if (suspends(&w->insns.ptr[i])) {
                p->live[g->an->first_insn[b] + i] = hwg_live_before(g, b, i + 1);
                any = true;
            }
    }
    return any;
}

static void give_place(hw_gen *g, hw_lt t, uint32_t *at)
{
    uint32_t bytes = hwg_bytes_of(t), align = bytes < PLACE_ALIGN ? bytes : PLACE_ALIGN;
    *at = (g->save_end + align - 1) / align * align;
    g->save_end = *at + bytes;
}

/* Small ones first, so that they lie close together. */
static void give_places(planner *p)
{
    hw_gen *g = p->g;
    uint64_t *all = new_set(p);
    for (uint32_t i = 0; i < g->an->first_insn[g->an->nblocks]; i++)
        for (size_t k = 0; p->live[i] && k < p->words; k++)
            all[k] |= p->live[i][k];
    g->place = HW_NEW_N(g->arena, hw_gen_place, g->f->regs.len + 1);
    for (int vectors = 0; vectors < 2; vectors++)
        for (uint32_t r = 0; r < g->f->regs.len; r++) {
            if (!hw_bit(all, r))
                continue;
            hw_gen_reg s = hwg_slots(g, r);
            if ((LLVMGetTypeKind(s.type) == LLVMVectorTypeKind) != vectors)
                continue;
            give_place(g, s.type, &g->place[r].s);
            if (s.slot_r)
                give_place(g, s.type, &g->place[r].r);
        }
}

/* ---- those stored where they are set ---- */

/* Blocks of loops in which warps wait. */
static void find_loops(planner *p)
{
    hw_gen *g = p->g;
    for (uint32_t k = 0; k < g->norder; k++) {
        const hw_wir_block *w = block_of(p, g->an->order[k]);
        for (uint32_t t = 0; t < w->ntargets; t++) {
            uint32_t from = g->an->position[w->targets[t]];
            bool waits = false;
            for (uint32_t i = from; i <= k; i++) {
                const hw_wir_block *x = block_of(p, g->an->order[i]);
                for (size_t n = 0; n < x->insns.len; n++)
                    waits |= suspends(&x->insns.ptr[n]);
            }
            for (uint32_t i = from; i <= k && waits; i++)
                p->in_loop[g->an->order[i]] = true;
        }
    }
}

/* Kept in such loops, not set in any loop, and surely set before. */
static void choose_early(planner *p)
{
    hw_gen *g = p->g;
    uint64_t *early = new_set(p);
    for (uint32_t b = 0; b < g->an->nblocks; b++)
        for (uint32_t i = g->an->first_insn[b]; i < g->an->first_insn[b + 1]; i++)
            for (size_t k = 0; p->in_loop[b] && p->live[i] && k < p->words; k++)
                early[k] |= p->live[i][k];
    for (uint32_t b = 0; b < g->an->nblocks; b++) {
        const hw_wir_block *w = block_of(p, b);
        for (size_t i = 0; i < w->insns.len && g->an->loop_header[b] != UINT32_MAX; i++)
            for (uint32_t d = 0; d < w->insns.ptr[i].ndst; d++)
                if (w->insns.ptr[i].dst[d].kind == HW_V_REG)
                    exclude(early, w->insns.ptr[i].dst[d].reg);
    }
    for (uint32_t i = 0; i < g->an->nlive; i++)
        if (hw_bit(g->an->live_in_set[g->an->order[0]], i))
            exclude(early, g->an->live_reg[i]);
    g->early = early;
}

/* ---- what is held ---- */

static void pass_block(planner *p, uint32_t b, uint64_t *set, bool keep)
{
    hw_gen *g = p->g;
    const hw_wir_block *w = block_of(p, b);
    for (uint32_t i = 0; i < w->insns.len; i++) {
        const hw_wir_insn *in = &w->insns.ptr[i];
        const uint64_t *live = p->live[g->an->first_insn[b] + i];
        if (live && keep) {
            g->held[g->an->first_insn[b] + i] = new_set(p);
            memcpy(g->held[g->an->first_insn[b] + i], set, p->words * sizeof *set);
        }
        for (size_t k = 0; live && k < p->words; k++)
            set[k] |= live[k];
        for (uint32_t d = 0; d < in->ndst; d++)
            if (in->dst[d].kind == HW_V_REG && !hw_bit(g->early, in->dst[d].reg))
                exclude(set, in->dst[d].reg);
        /* the result of a reduction is written after it was left out */
        if (live && in->ndst && in->dst[0].kind == HW_V_REG)
            exclude(set, in->dst[0].reg);
    }
}

static bool meet_with(planner *p, uint64_t *to, const uint64_t *from)
{
    bool changed = false;
    for (size_t k = 0; k < p->words; k++) {
        uint64_t x = to[k] & from[k];
        changed |= x != to[k];
        to[k] = x;
    }
    return changed;
}

static bool flow_from(planner *p, uint32_t k, uint64_t *set)
{
    hw_gen *g = p->g;
    uint32_t n = g->an->nblocks, b = g->an->order[k];
    bool changed = meet_with(p, p->in[b], p->in[n + k]);
    changed |= meet_with(p, p->in[n + k + 1], p->in[n + k]);
    memcpy(set, p->in[b], p->words * sizeof *set);
    pass_block(p, b, set, false);
    const hw_wir_block *w = block_of(p, b);
    for (uint32_t t = 0; t < w->ntargets; t++)
        changed |= meet_with(p, p->in[w->targets[t]], set);
    if (hwg_parts_lanes(g, b))
        changed |= meet_with(p, p->in[n + k + 1], set);
    return changed;
}

static void find_held(planner *p)
{
    hw_gen *g = p->g;
    uint32_t n = g->an->nblocks;
    uint64_t *set = new_set(p);
    p->in = HW_NEW_N(g->arena, uint64_t *, 2 * (size_t)n + 1);
    for (uint32_t i = 0; i < 2 * n + 1; i++) {
        p->in[i] = new_set(p);
        memset(p->in[i], 0xff, p->words * sizeof *set);
    }
    memcpy(p->in[g->an->order[0]], g->early, p->words * sizeof *set);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = 0; k < g->norder; k++)
            changed |= flow_from(p, k, set);
    }
    g->held = HW_NEW_N(g->arena, uint64_t *, g->an->first_insn[n] + 1);
    for (uint32_t k = 0; k < g->norder; k++) {
        memcpy(set, p->in[g->an->order[k]], p->words * sizeof *set);
        pass_block(p, g->an->order[k], set, true);
    }
}

/* ---- for the other files ---- */

void hwg_plan_places(hw_gen *g)
{
    g->place = NULL;
    g->early = NULL;
    g->held = NULL;
    if (!g->f->is_kernel || g->lean || g->v->no_shapes || g->rotate || g->an->spins)
        return;
    planner p = { .g = g, .words = g->f->regs.len / 64 + 1 };
    p.live = HW_NEW_N(g->arena, uint64_t *, g->an->first_insn[g->an->nblocks] + 1);
    p.in_loop = HW_NEW_N(g->arena, bool, g->an->nblocks);
    if (!find_live(&p))
        return;
    g->save_end = (g->an->nblocks + 1) * 4; /* the masks come first */
    give_places(&p);
    find_loops(&p);
    choose_early(&p);
    find_held(&p);
    g->save_end = (g->save_end + 63) / 64 * 64;
    if (g->save_end > g->info->save_bytes)
        g->info->save_bytes = g->save_end;
}

/* The instruction that p is the end of holds the register's value in its place. */
bool hwg_is_held(const hw_gen *g, const hw_gen_point *p, uint32_t reg)
{
    const uint64_t *held = g->held[g->an->first_insn[p->block] + p->index - 1];
    return hw_bit(held, reg);
}

hw_lv hwg_place(hw_gen *g, uint32_t reg, unsigned which)
{
    const hw_gen_place *at = &g->place[reg];
    return hwg_gep_k(g, hwg_frame_once(g, offsetof(hw_frame, save), g->ptr), which ? at->r : at->s);
}

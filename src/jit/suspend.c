/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaving a warp's code in the middle and coming back (continuations): barriers, spin loops,
 * failed guards. At such a point the live registers go to frame.save, frame.resume says where, and
 * the function returns; its entry switches on frame.resume. Registers being allocas, SROA turns the
 * rest into ordinary data flow.
 *
 * Layout of frame.save: what canonical points keep; the homes, pending masks first; then for each
 * other point [u32 mask, u32 pending mask a block], if lanes may wait, and each live register in
 * order of its number, aligned to its size. Canonical points are read by another variant: the mask
 * and pending masks of all blocks; registers that live from block to block, each in a place of its
 * own; then those that live within the point's block. A register is 32 lanes, then S, then R.
 * Which registers must not depend on the variant either. Where registers have homes, all points
 * share the code that carries those over.
 */
#include "ops.h"

enum { SAVE, RESTORE };
enum { REGS_A_BLOCK = 32, PLACE_ALIGN = 64 };

typedef struct layout {
    uint32_t at;
    int what;
    hw_lv base;
    bool canonical;
} layout;

/* ---- what is live ---- */

static void mark(uint64_t *set, hw_wir_val v, bool on)
{
    if (v.kind != HW_V_REG)
        return;
    if (on)
        set[v.reg / 64] |= (uint64_t)1 << (v.reg % 64);
    else
        set[v.reg / 64] &= ~((uint64_t)1 << (v.reg % 64));
}

/* The last position that may have run when `block` runs: its own, or the end of a loop round it. */
static uint32_t ran_before(const hw_gen *g, uint32_t block)
{
    uint32_t here = g->an->position[block], last = here;
    for (uint32_t k = here; k < g->norder; k++) {
        const hw_wir_block *w = &g->f->blocks.ptr[g->an->order[k]];
        for (uint32_t i = 0; i < w->ntargets; i++)
            if (g->an->position[w->targets[i]] <= here)
                last = k;
    }
    return last;
}

/* Are lanes parked at b? */
static bool is_parked_at(const hw_gen *g, uint32_t b)
{
    bool parked = false;
    for (uint32_t k = 0; k < g->an->npreds[b]; k++)
        parked |= hwg_parks_after(g, g->an->preds[b][k]);
    return parked;
}

/* The first place where lanes may be overtaken by others: a spin loop or a barrier. */
static uint32_t first_stay(const hw_gen *g)
{
    uint32_t k = 0;
    while (k < g->norder && !g->an->spin_loop[g->an->order[k]] &&
           !hwg_parks_after(g, g->an->order[k]))
        k++;
    return k;
}

/* Can lanes wait at b while `block` runs? Some block before must have sent them there, and in linear
 * order it comes later. */
static bool may_be_waiting(const hw_gen *g, uint32_t b, uint32_t block, uint32_t ran)
{
    if (!g->pend[b])
        return false;
    if (g->rotate && ran >= first_stay(g)) /* lanes may have run ahead, or stayed behind */
        return g->an->position[b] > g->an->position[block] || g->an->spin_loop[b] ||
               is_parked_at(g, b);
    if (g->an->position[b] <= g->an->position[block])
        return false;
    for (uint32_t k = 0; k < g->an->npreds[b]; k++)
        if (g->an->position[g->an->preds[b][k]] <= ran)
            return true;
    return false;
}

/* The same for a canonical point: for any variant, so by what no variant changes. */
static bool may_be_waiting_anywhere(const hw_gen *g, uint32_t b, uint32_t block, uint32_t ran)
{
    const hw_wir_analysis *an = g->an;
    bool parks = hwg_may_park(g);
    if ((an->spins && an->spin_loop[b]) || (parks && is_parked_at(g, b)))
        return true;
    if (an->position[b] <= an->position[block])
        return false;
    bool sent = an->spins || parks;
    for (uint32_t k = 0; k < an->npreds[b] && !sent; k++)
        sent = an->position[an->preds[b][k]] <= ran;
    return sent;
}

static bool is_needed(const hw_gen *g, const hw_gen_point *p, uint32_t b, uint32_t ran)
{
    if (p->canonical)
        return may_be_waiting_anywhere(g, b, p->block, ran);
    return g->an->divergent[p->block] && may_be_waiting(g, b, p->block, ran);
}

static void mark_live_in(hw_gen *g, uint64_t *set, uint32_t b)
{
    for (uint32_t i = 0; i < g->an->nlive; i++)
        if (hw_bit(g->an->live_in_set[b], i))
            mark(set, hw_wir_reg(g->an->live_reg[i]), true);
}

static uint64_t *live_before(hw_gen *g, const hw_gen_point *p)
{
    uint32_t block = p->block, index = p->index;
    uint64_t *set = HW_NEW_N(g->arena, uint64_t, g->f->regs.len / 64 + 1);
    for (uint32_t b = 0; p->parked && b < g->an->nblocks; b++)
        if (g->pend[b])
            mark_live_in(g, set, b);
    if (p->parked)
        return set;
    for (uint32_t i = 0; i < g->an->nlive; i++)
        if (hw_bit(g->an->live_out_set[block], i))
            mark(set, hw_wir_reg(g->an->live_reg[i]), true);
    const hw_wir_block *w = &g->f->blocks.ptr[block];
    for (uint32_t i = (uint32_t)w->insns.len; i-- > index;) {
        const hw_wir_insn *in = &w->insns.ptr[i];
        for (uint32_t k = 0; k < in->ndst; k++)
            if (in->guard.kind != HW_V_REG)
                mark(set, in->dst[k], false);
        for (uint32_t k = 0; k < in->nsrc; k++)
            mark(set, in->src[k], true);
        mark(set, in->guard, true);
    }
    /* what lanes that wait elsewhere need */
    uint32_t ran = ran_before(g, block);
    for (uint32_t b = 0; b < g->an->nblocks; b++)
        if (is_needed(g, p, b, ran))
            mark_live_in(g, set, b);
    return set;
}

uint64_t *hwg_live_before(hw_gen *g, uint32_t block, uint32_t index)
{
    const hw_gen_point p = { .block = block, .index = index };
    return live_before(g, &p);
}

/* ---- moving values ---- */

static hw_lv place(hw_gen *g, layout *l, uint32_t bytes, uint32_t align)
{
    l->at = (l->at + align - 1) / align * align;
    hw_lv p = hwg_gep_k(g, l->base, l->at);
    l->at += bytes;
    return p;
}

uint32_t hwg_bytes_of(hw_lt t)
{
    uint32_t n = 1;
    if (LLVMGetTypeKind(t) == LLVMVectorTypeKind) {
        n = LLVMGetVectorSize(t);
        t = LLVMGetElementType(t);
    }
    uint32_t bits = LLVMGetIntTypeWidth(t);
    return n * (bits < 8 ? 1 : bits / 8);
}

static uint32_t align_of(hw_lt t)
{
    uint32_t n = hwg_bytes_of(t);
    return n > 64 ? 64 : n;
}

hw_lv hwg_load_home(hw_gen *g, hw_lt t, hw_lv p)
{
    hw_lv x = hwg_load(g, t == g->i1 ? g->i8 : t, p, align_of(t));
    return t == g->i1 ? b_trunc(g, x, t) : x;
}

void hwg_store_home(hw_gen *g, hw_lv x, hw_lv p)
{
    hw_lt t = LLVMTypeOf(x);
    hwg_store(g, t == g->i1 ? b_zext(g, x, g->i8) : x, p, align_of(t));
}

static void break_block(hw_gen *g)
{
    hw_lb more = hwg_block(g, "more");
    LLVMBuildBr(g->b, more);
    hwg_at(g, more);
}

/* Between frame.save and a slot: an alloca, or for canonical layouts a home. */
static void move_as(hw_gen *g, layout *l, hw_lv slot, hw_lt t)
{
    bool alloca = LLVMIsAAllocaInst(slot);
    uint32_t align = align_of(t);
    hw_lt mem = t == g->i1 ? g->i8 : t;
    hw_lv p = place(g, l, hwg_bytes_of(t), align);
    if (l->what == SAVE) {
        hw_lv x = alloca ? LLVMBuildLoad2(g->b, t, slot, "") : hwg_load_home(g, t, slot);
        hwg_store(g, t == g->i1 ? b_zext(g, x, mem) : x, p, align);
        return;
    }
    hw_lv x = hwg_load(g, mem, p, align);
    if (alloca)
        LLVMBuildStore(g->b, t == g->i1 ? b_trunc(g, x, t) : x, slot);
    else
        hwg_store(g, x, slot, align);
}

static void skip(hw_gen *g, layout *l, hw_lt t)
{
    place(g, l, hwg_bytes_of(t), align_of(t));
}

/* 32 lanes, S, R, each if this variant has it; what is missing is left out but keeps its place. */
static void move_canonical(hw_gen *g, layout *l, uint32_t reg)
{
    unsigned type = g->f->regs.ptr[reg].type;
    hw_lt elem = hwg_reg_type(g, type);
    hw_lt vec = type == HW_T_I1 ? g->i32 : LLVMVectorType(elem, GEN_LANES);
    hw_gen_reg r = hwg_slots(g, reg);
    bool varying = g->an->shape[reg].kind == HW_SHAPE_VARYING;
    if (varying) {
        move_as(g, l, r.slot, r.type);
        skip(g, l, elem);
        skip(g, l, elem);
        return;
    }
    hw_lv p = place(g, l, hwg_bytes_of(vec), align_of(vec));
    if (l->what == SAVE) {
        hw_lv v = hwg_vector(g, hwg_read(g, hw_wir_reg(reg), type), type);
        hwg_store(g, type == HW_T_I1 ? hwg_vec_mask(g, v) : v, p, align_of(vec));
    }
    move_as(g, l, r.slot, r.type);
    if (r.slot_r)
        move_as(g, l, r.slot_r, r.type);
    else
        skip(g, l, elem);
}

/* The same, for the masks, whose places do not depend on it. */
static bool mask_may_be_set(const hw_gen *g, uint32_t b, uint32_t block, uint32_t ran)
{
    const uint64_t *waiting = g->an->waiting[block];
    return may_be_waiting(g, b, block, ran) &&
           (g->rotate || g->fast || (waiting && hw_bit(waiting, b)));
}

static void move_masks_together(hw_gen *g, layout *l)
{
    if (g->masks_stay && !l->canonical)
        return;
    bool saves = l->what == SAVE;
    hw_lv p = hwg_gep_k(g, l->base, l->at), n = hwg_k(g->i64, g->an->nblocks * UINT64_C(4));
    LLVMBuildMemCpy(g->b, saves ? p : g->masks, 4, saves ? g->masks : p, 4, n);
    l->at += g->an->nblocks * 4;
}

static void move_masks(hw_gen *g, layout *l, const hw_gen_point *p)
{
    uint32_t block = p->block;
    if (!p->parked && !l->canonical && !g->an->divergent[block])
        return;
    if (!p->parked)
        move_as(g, l, g->mask_slot, g->i32);
    if (g->masks) {
        move_masks_together(g, l);
        return;
    }
    for (uint32_t b = 0; p->parked && b < g->an->nblocks; b++)
        if (g->pend[b])
            move_as(g, l, g->pend[b], g->i32);
    if (p->parked)
        return;
    uint32_t ran = ran_before(g, block);
    if (l->canonical && l->what == SAVE) /* most are zero */
        LLVMBuildMemSet(g->b, hwg_gep_k(g, l->base, l->at), hwg_k(g->i8, 0),
                        hwg_k(g->i64, g->an->nblocks * UINT64_C(4)), 4);
    for (uint32_t b = 0; b < g->an->nblocks; b++)
        if (mask_may_be_set(g, b, block, ran))
            move_as(g, l, g->pend[b], g->i32);
        else if (l->canonical)
            l->at += 4;
}

static void move_reg(hw_gen *g, layout *l, uint32_t reg)
{
    hw_gen_reg slots = hwg_slots(g, reg);
    uint32_t bit = g->an->live_bit[reg], at = l->at;
    if (!l->canonical) {
        move_as(g, l, slots.slot, slots.type);
        if (slots.slot_r)
            move_as(g, l, slots.slot_r, slots.type);
    } else if (bit == UINT32_MAX) {
        move_canonical(g, l, reg);
    } else {
        l->at = g->carried_at[bit];
        move_canonical(g, l, reg);
        l->at = at;
    }
}

static void need_bytes(hw_gen *g, uint32_t bytes)
{
    if (bytes > g->info->save_bytes)
        g->info->save_bytes = (bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
}

/* Between a register's place and its allocas. */
static void move_to_place(hw_gen *g, const hw_gen_point *p, uint32_t reg, int what)
{
    hw_gen_reg r = hwg_slots(g, reg);
    if (what == SAVE && hwg_is_held(g, p, reg))
        return;
    for (unsigned i = 0; i < (r.slot_r ? 2u : 1u); i++) {
        hw_lv slot = i ? r.slot_r : r.slot, at = hwg_place(g, reg, i);
        if (what == SAVE)
            hwg_store_home(g, LLVMBuildLoad2(g->b, r.type, slot, ""), at);
        else
            LLVMBuildStore(g->b, hwg_load_home(g, r.type, at), slot);
    }
}

static void move_all(hw_gen *g, const hw_gen_point *p, int what)
{
    layout l = { .what = what,
                 .base = hwg_frame(g, offsetof(hw_frame, save), g->ptr),
                 .canonical = p->canonical };
    l.at = p->canonical ? 0 : g->homes_limit;
    uint64_t *set = live_before(g, p);
    mark(set, p->except, false);
    move_masks(g, &l, p);
    if (p->canonical)
        l.at = g->carried_limit;
    for (uint32_t r = 0, n = 0; r < g->f->regs.len; r++) {
        if (!hw_bit(set, r) || hwg_slots(g, r).home)
            continue;                /* it is there, or comes with all others (carry_homes) */
        if (++n % REGS_A_BLOCK == 0) /* LLVM takes quadratic time over long blocks */
            break_block(g);
        if (!p->canonical && g->place)
            move_to_place(g, p, r, what);
        else
            move_reg(g, &l, r);
    }
    need_bytes(g, l.at);
}

/* All homes, to or from their canonical places. */
static void carry_homes(hw_gen *g, int what)
{
    layout l = { .what = what,
                 .base = hwg_frame(g, offsetof(hw_frame, save), g->ptr),
                 .canonical = true };
    for (uint32_t i = 0; i < g->an->nlive; i++) {
        if (i % REGS_A_BLOCK == REGS_A_BLOCK - 1)
            break_block(g);
        move_reg(g, &l, g->an->live_reg[i]);
    }
}

/* ---- canonical places ---- */

static uint32_t canonical_bytes(const hw_gen *g, uint32_t reg)
{
    uint32_t bits = hw_wir_bits(g->f->regs.ptr[reg].type);
    uint32_t elem = bits < 8 ? 1 : bits / 8, vec = bits < 8 ? 4 : GEN_LANES * elem;
    return (vec + 2 * elem + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
}

/* The most bytes of registers that live within a block, at any place of it. */
static uint32_t most_within(const hw_gen *g, const hw_wir_block *w, bool *live)
{
    uint32_t now = 0, most = 0;
    for (size_t i = w->insns.len; i-- > 0;) {
        const hw_wir_insn *in = &w->insns.ptr[i];
        for (uint32_t k = 0; k < in->ndst; k++)
            if (in->dst[k].kind == HW_V_REG && live[in->dst[k].reg] && in->guard.kind != HW_V_REG) {
                live[in->dst[k].reg] = false;
                now -= canonical_bytes(g, in->dst[k].reg);
            }
        for (uint32_t k = 0; k <= in->nsrc; k++) {
            hw_wir_val v = k < in->nsrc ? in->src[k] : in->guard;
            if (v.kind != HW_V_REG || live[v.reg] || g->crosses[v.reg])
                continue;
            live[v.reg] = true;
            now += canonical_bytes(g, v.reg);
        }
        most = now > most ? now : most;
    }
    return most;
}

uint32_t hwg_carried_init(hw_gen *g)
{
    uint32_t at = (uint32_t)sizeof(uint32_t) * (1 + g->an->nblocks), within = 0;
    at = (at + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
    g->carried_at = HW_NEW_N(g->arena, uint32_t, g->an->nlive + 1);
    for (uint32_t i = 0; i < g->an->nlive; i++) {
        g->carried_at[i] = at;
        at += canonical_bytes(g, g->an->live_reg[i]);
    }
    g->carried_limit = at;
    bool *live = HW_NEW_N(g->arena, bool, g->f->regs.len + 1);
    for (uint32_t b = 0; b < g->an->nblocks; b++) {
        uint32_t n = most_within(g, &g->f->blocks.ptr[b], live);
        within = n > within ? n : within;
    }
    return at + within;
}

/* ---- points ---- */

static hw_gen_point *new_point(hw_gen *g, uint32_t id, uint32_t index, uint32_t status)
{
    hw_gen_point *p = HW_NEW(g->arena, hw_gen_point);
    p->id = id;
    p->block = g->block;
    p->index = index;
    p->status = status;
    hw_vec_push(g->arena, &g->points, p);
    return p;
}

/* Where a warp leaves, or comes in from the other variant, before the instruction at hand. One that
 * suspends has a point of its own behind it. */
static hw_gen_point *before(hw_gen *g)
{
    uint32_t i = g->an->first_insn[g->block] + g->index, all = g->an->first_insn[g->an->nblocks];
    bool suspends = hw_wir_ops[g->f->blocks.ptr[g->block].insns.ptr[g->index].op].flags & HW_WF_S;
    if (!g->before_of)
        g->before_of = HW_NEW_N(g->arena, hw_gen_point *, all + 1);
    if (!g->before_of[i])
        g->before_of[i] = new_point(g, suspends ? all + i + 1 : i + 1, g->index, HW_WARP_DEOPT);
    g->before_of[i]->canonical = true;
    return g->before_of[i];
}

static hw_gen_point *point(hw_gen *g, uint32_t status, bool at_start)
{
    uint32_t i = g->an->first_insn[g->block] + g->index;
    if (!g->point_of)
        g->point_of = HW_NEW_N(g->arena, hw_gen_point *, g->an->first_insn[g->an->nblocks] + 1);
    if (g->point_of[i])
        return g->point_of[i];
    g->point_of[i] = new_point(g, i + 1, at_start ? g->index : g->index + 1, status);
    return g->point_of[i];
}

hw_lb hwg_all_parked(hw_gen *g)
{
    hw_gen_point *p = new_point(g, 2 * g->an->first_insn[g->an->nblocks] + 2, 0, HW_WARP_PARKED);
    p->parked = true;
    p->leave = hwg_block(g, "parked");
    p->go_on[GEN_MASKED] = g->check[0];
    g->info->suspends = true;
    return p->leave;
}

static void leave(hw_gen *g, hw_gen_point *p)
{
    if (!p->leave)
        p->leave = hwg_block(g, "leave");
    LLVMBuildStore(g->b, g->mask, g->mask_slot);
    LLVMBuildBr(g->b, p->leave);
}

static void come_back(hw_gen *g, hw_gen_point *p)
{
    p->go_on[g->version] = hwg_block(g, "resumed");
    hwg_at(g, p->go_on[g->version]);
    hwg_set_mask(g);
    g->stamp++;
}

static void suspend(hw_gen *g, hw_gen_point *p)
{
    if (!g->f->is_kernel) {
        hwg_fail(g, HW_E_UNSUPPORTED, "a function that waits and could not be inlined");
        return;
    }
    g->info->suspends = true;
    leave(g, p);
    come_back(g, p);
}

static void set_frame(hw_gen *g, size_t offset, hw_lv x)
{
    LLVMBuildStore(g->b, x, hwg_frame_addr(g, offset));
}

/* The way out of points whose registers have homes; its phi is what leaving returns. */
static hw_lv way_out(hw_gen *g)
{
    if (g->carry)
        return LLVMGetFirstInstruction(g->carry);
    hw_lb here = LLVMGetInsertBlock(g->b);
    g->carry = hwg_block(g, "carry");
    hwg_at(g, g->carry);
    hw_lv status = LLVMBuildPhi(g->b, g->i32, "");
    carry_homes(g, SAVE);
    LLVMBuildRet(g->b, status);
    hwg_at(g, here);
    return status;
}

static void finish_leave(hw_gen *g, hw_gen_point *p)
{
    hw_lv status = hwg_k(g->i32, p->status);
    hwg_at(g, p->leave);
    move_all(g, p, SAVE);
    set_frame(g, offsetof(hw_frame, resume), hwg_k(g->i32, p->id));
    set_frame(g, offsetof(hw_frame, lanes), LLVMBuildLoad2(g->b, g->i32, g->live, ""));
    if (p->status == HW_WARP_MET) {
        LLVMBuildBr(g->b, g->meet);
        return;
    }
    if (!p->canonical || !g->homes) {
        LLVMBuildRet(g->b, status);
        return;
    }
    hw_lb here = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(way_out(g), &status, &here, 1);
    LLVMBuildBr(g->b, g->carry);
}

/* The way in of those points: the switch behind it. */
static hw_lv way_in(hw_gen *g, hw_lv id, hw_lb bad)
{
    if (g->carried)
        return LLVMGetBasicBlockTerminator(g->carried_end);
    g->carried = hwg_block(g, "carried");
    hwg_at(g, g->carried);
    carry_homes(g, RESTORE);
    g->carried_end = LLVMGetInsertBlock(g->b);
    return LLVMBuildSwitch(g->b, id, bad, (unsigned)g->points.len + 1);
}

static void finish_resume(hw_gen *g, hw_gen_point *p, hw_lv sw)
{
    hw_lb b = hwg_block(g, "resume"), first = b;
    if (p->canonical && g->homes) {
        hw_lv next = way_in(g, LLVMGetOperand(sw, 0), LLVMGetSwitchDefaultDest(sw));
        LLVMAddCase(next, hwg_k(g->i32, p->id), b);
        first = g->carried;
    }
    LLVMAddCase(sw, hwg_k(g->i32, p->id), first);
    hwg_at(g, b);
    move_all(g, p, RESTORE);
    if (!p->go_on[GEN_FULL] || !p->go_on[GEN_MASKED]) {
        LLVMBuildBr(g->b, p->go_on[p->go_on[GEN_FULL] ? GEN_FULL : GEN_MASKED]);
        return;
    }
    hw_lv from = g->an->divergent[p->block] ? g->mask_slot : g->live;
    hw_lv m = LLVMBuildLoad2(g->b, g->i32, from, "");
    hw_lv full = b_icmp(g, LLVMIntEQ, m, hwg_k(g->i32, UINT32_MAX));
    LLVMBuildCondBr(g->b, full, p->go_on[GEN_FULL], p->go_on[GEN_MASKED]);
}

/* Where a warp begins: registers are zero, as allocas are. */
static hw_lb fresh(hw_gen *g, hw_lb start)
{
    if (!g->homes)
        return start;
    hw_lb b = hwg_block(g, "fresh");
    hwg_at(g, b);
    hw_lv homes = hwg_gep_k(g, hwg_frame(g, offsetof(hw_frame, save), g->ptr), g->homes_base);
    LLVMBuildMemSet(g->b, homes, hwg_k(g->i8, 0), hwg_k(g->i64, g->homes_limit - g->homes_base),
                    64);
    LLVMBuildBr(g->b, start);
    return b;
}

void hwg_points_finish(hw_gen *g, hw_lb start)
{
    start = fresh(g, start);
    hw_lb dispatch = hwg_block(g, "dispatch"), bad = NULL;
    hwg_at(g, dispatch);
    hw_lv sw = NULL;
    for (size_t i = 0; i < g->points.len; i++) {
        hw_gen_point *p = g->points.ptr[i];
        if (p->leave)
            finish_leave(g, p);
        if (!p->go_on[GEN_FULL] && !p->go_on[GEN_MASKED])
            continue;
        if (!sw) {
            bad = hwg_block(g, "bad_resume");
            hwg_at(g, dispatch);
            hw_lv id = hwg_frame(g, offsetof(hw_frame, resume), g->i32);
            sw = LLVMBuildSwitch(g->b, id, bad, (unsigned)g->points.len + 1);
            LLVMAddCase(sw, hwg_k(g->i32, 0), start);
            hwg_at(g, bad);
            hwg_fault(g, HW_E_INTERNAL, 0);
        }
        finish_resume(g, p, sw);
    }
    if (!sw) {
        hwg_at(g, dispatch);
        LLVMBuildBr(g->b, start);
    }
    hwg_at(g, g->entry);
    if (g->each != g->entry) {
        hw_lv warp = hwg_gep_k(g, g->own, offsetof(hw_frame, warp));
        LLVMBuildStore(
            g->b, g->info->whole_block ? hwg_k(g->i32, 0) : LLVMBuildLoad2(g->b, g->i32, warp, ""),
            g->warp);
        LLVMBuildStore(g->b, g->own, g->frame_slot);
        LLVMBuildBr(g->b, g->each);
    }
    hwg_at(g, g->each);
    LLVMBuildBr(g->b, dispatch);
}

/* ---- guards ---- */

void hwg_deopt(hw_gen *g, hw_lv ok)
{
    hw_gen_point *p = before(g);
    g->info->suspends = true;
    hw_lb out = hwg_block(g, "deopt"), on = hwg_block(g, "on");
    hwg_likely(g, ok, on, out);
    hwg_at(g, out);
    leave(g, p);
    hwg_at(g, on);
}

void hwg_arrival(hw_gen *g)
{
    const hw_wir_insn *in = &g->f->blocks.ptr[g->block].insns.ptr[g->index];
    if (!g->deopts_to ||
        (!g->deopts_to[g->an->first_insn[g->block] + g->index] && !hwg_bet_lost_here(g, in)))
        return;
    hw_gen_point *p = before(g);
    p->go_on[g->version] = hwg_block(g, "arrived");
    LLVMBuildStore(g->b, g->mask, g->mask_slot);
    LLVMBuildBr(g->b, p->go_on[g->version]);
    hwg_at(g, p->go_on[g->version]);
    hwg_set_mask(g);
    g->stamp++;
}

/* ---- barriers ---- */

static hw_lv one_of(hw_gen *g, const hw_wir_insn *in, unsigned i)
{
    hw_lanes x = hwg_src(g, in, i);
    if (x.kind == HW_SHAPE_UNIFORM)
        return x.s;
    hw_lv l = b_and(g, hwg_first_lane(g, g->exec), hwg_k(g->i32, 31));
    return LLVMBuildExtractElement(g->b, hwg_src_vec(g, in, i), l, "");
}

/* This warp's part of a reduction. */
static hw_lv contribution(hw_gen *g, const hw_wir_insn *in)
{
    hw_lv m = b_and(g, hwg_vec_mask(g, hwg_src_vec(g, in, 2)), g->exec);
    if (in->imm == 0)
        return hwg_intr1(g, "llvm.ctpop", m);
    hw_lv yes =
        in->imm == 1 ? b_icmp(g, LLVMIntEQ, m, g->exec) : b_icmp(g, LLVMIntNE, m, hwg_k(g->i32, 0));
    return b_zext(g, yes, g->i32);
}

static void reduced(hw_gen *g, const hw_wir_insn *in, hw_lv x)
{
    if (in->op != HW_W_BARRIER_RED)
        return;
    g->exec = hwg_executing(g, in);
    if (in->imm)
        x = b_icmp(g, LLVMIntNE, x, hwg_k(g->i32, 0));
    hwg_write(g, in->dst[0], hwg_uniform(x));
}

/* Barrier 0 for the whole block and nothing more: what nearly all are. */
static bool is_plain(const hw_wir_insn *in)
{
    return in->op == HW_W_BARRIER && in->src[0].kind == HW_V_IMM && in->src[0].imm == 0 &&
           in->src[1].kind == HW_V_NONE;
}

static void meet(hw_gen *g)
{
    g->info->relays = true;
    if (!g->meet)
        g->meet = hwg_block(g, "meet");
    suspend(g, point(g, HW_WARP_MET, false));
}

static void tell_barrier(hw_gen *g, const hw_wir_insn *in, hw_lv value)
{
    bool red = in->op == HW_W_BARRIER_RED, whole = in->src[1].kind == HW_V_NONE;
    set_frame(g, offsetof(hw_frame, bar_id), one_of(g, in, 0));
    set_frame(g, offsetof(hw_frame, bar_count), whole ? hwg_k(g->i32, 0) : one_of(g, in, 1));
    set_frame(g, offsetof(hw_frame, bar_kind),
              hwg_k(g->i32, red ? (unsigned)in->imm + HW_BAR_POPC : HW_BAR_SYNC));
    set_frame(g, offsetof(hw_frame, bar_value), value);
    set_frame(g, offsetof(hw_frame, bar_lanes), g->exec);
}

WHOLE(barrier)
{
    if (hwg_parks(g, in)) {
        hwg_park(g, in);
        return;
    }
    hwg_bet(g, in);
    const uint32_t *n = g->v->block;
    bool red = in->op == HW_W_BARRIER_RED;
    hw_lv value = red ? contribution(g, in) : hwg_k(g->i32, 0);
    bool whole = in->src[1].kind == HW_V_NONE;
    bool cluster = in->src[0].kind == HW_V_IMM && in->src[0].imm == HW_BARRIER_CLUSTER;
    if (whole && !cluster && !g->an->divergent[g->block] &&
        (uint64_t)n[0] * n[1] * n[2] <= GEN_LANES) {
        reduced(g, in, value); /* the only warp of its block */
        return;
    }
    if (is_plain(in) && hwg_may_relay(g)) {
        meet(g);
        return;
    }
    tell_barrier(g, in, value);
    hw_gen_point *p = point(g, HW_WARP_BARRIER, false);
    p->except = red ? in->dst[0] : HW_WIR_NONE;
    if (red && (in->guard.kind == HW_V_REG || g->an->divergent[g->block]))
        p->except = HW_WIR_NONE;
    suspend(g, p);
    reduced(g, in, hwg_frame(g, offsetof(hw_frame, bar_value), g->i32));
}

WHOLE(arrive)
{
    hw_lt args[] = { g->ptr, g->i32, g->i32, g->i32 };
    if (g->f->is_kernel)
        set_frame(g, offsetof(hw_frame, lanes), LLVMBuildLoad2(g->b, g->i32, g->live, ""));
    hw_lv a[] = { g->frame, one_of(g, in, 0),
                  in->src[1].kind == HW_V_NONE ? hwg_k(g->i32, 0) : one_of(g, in, 1), g->exec };
    hwg_callback(g, offsetof(hw_callbacks, arrive), LLVMFunctionType(g->voidt, args, 4, false), a,
                 4);
}

WHOLE(yield)
{
    (void)in;
    suspend(g, point(g, HW_WARP_YIELD, false));
}

/* ---- spin loops ---- */

enum { SPINS_A_TURN = HW_SPINS_A_TURN, SPINS_TO_LIVELOCK = 1 << 18 };

/* The spin loop that the block goes back to; UINT32_MAX: none. */
static uint32_t spins_here(const hw_gen *g)
{
    const hw_wir_block *w = &g->f->blocks.ptr[g->block];
    for (uint32_t i = 0; i < w->ntargets; i++) {
        uint32_t t = w->targets[i];
        bool spins = g->an->spin_loop[t] || (g->fast && g->fast->spin_loop[t]);
        if (g->an->position[t] <= g->an->position[g->block] && spins)
            return t;
    }
    return UINT32_MAX;
}

/* On a device whose warps go in lock-step: the same lanes spin, others wait for them at the exit,
 * and what they spin on is not coming. */
static void diagnose_livelock(hw_gen *g, hw_lv spins, uint32_t loc)
{
    hw_lv others = b_and(g, LLVMBuildLoad2(g->b, g->i32, g->live, ""), b_not(g, g->mask));
    hw_lv stuck = b_and(g, b_icmp(g, LLVMIntNE, others, hwg_k(g->i32, 0)),
                        b_icmp(g, LLVMIntUGT, spins, hwg_k(g->i32, SPINS_TO_LIVELOCK)));
    hw_lb bad = hwg_block(g, "livelock"), on = hwg_block(g, "on");
    hwg_unlikely(g, stuck, bad, on);
    hwg_at(g, bad);
    hwg_fault(g, HW_F_LIVELOCK, loc);
    hwg_at(g, on);
}

/* The bet may be lost: go on in the slow variant, whose lanes run independently. */
static void give_up(hw_gen *g, uint32_t loop)
{
    hw_gen_point *p =
        new_point(g, g->an->first_insn[g->block] + g->index + 1, g->index, HW_WARP_DEOPT);
    p->canonical = true;
    hw_lb out = hwg_block(g, "give_up"), on = hwg_block(g, "on");
    hw_lv asked = hwg_frame(g, offsetof(hw_frame, give_up), g->i32);
    hw_lv least = hwg_k(g->i32, g->an->one_lane_spins[loop]);
    hwg_unlikely(g, b_icmp(g, LLVMIntUGT, asked, least), out, on);
    hwg_at(g, out);
    leave(g, p);
    hwg_at(g, on);
}

void hwg_spin(hw_gen *g, const hw_wir_insn *in)
{
    uint32_t loop = spins_here(g);
    if (loop == UINT32_MAX || !g->f->is_kernel)
        return;
    g->info->spins = true;
    if (g->rotate)
        LLVMBuildStore(g->b, hwg_k(g->i1, 0), g->rotate);
    hw_lv same = b_icmp(g, LLVMIntEQ, hwg_frame(g, offsetof(hw_frame, spin_mask), g->i32), g->mask);
    hw_lv old = hwg_frame(g, offsetof(hw_frame, spins), g->i32);
    hw_lv spins = b_add(g, b_select(g, same, old, hwg_k(g->i32, 0)), hwg_k(g->i32, 1));
    set_frame(g, offsetof(hw_frame, spins), spins);
    set_frame(g, offsetof(hw_frame, spin_mask), g->mask);
    set_frame(g, offsetof(hw_frame, spin_loc), hwg_k(g->i32, in->loc));
    hw_lv turn = b_and(g, spins, hwg_k(g->i32, SPINS_A_TURN - 1));
    hw_lb rest = hwg_block(g, "rest"), on = hwg_block(g, "on");
    hwg_unlikely(g, b_icmp(g, LLVMIntEQ, turn, hwg_k(g->i32, 0)), rest, on);
    hwg_at(g, rest);
    if (g->v->lockstep_first && g->an->spins_divergent)
        give_up(g, loop);
    else if (!g->v->independent && g->an->spins_divergent)
        diagnose_livelock(g, spins, in->loc);
    hw_gen_point *p = point(g, HW_WARP_YIELD, true);
    p->canonical |= g->fast != NULL; /* warps of the fast variant arrive here too */
    suspend(g, p);
    if (g->rotate)
        LLVMBuildStore(g->b, hwg_k(g->i1, 1), g->rotate);
    LLVMBuildBr(g->b, on);
    hwg_at(g, on);
    hwg_set_mask(g);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Control flow of a warp whose lanes go different ways.
 *
 * Blocks stand in the analysis's linear order. Lanes that branch to a block wait there: pend[block]
 * is a mask. After a divergent block control goes to the check of the next position; check k lets
 * the lanes waiting at block k run, if there are any, else goes on to check k + 1. So control always
 * continues at the first block, in order, with waiting lanes (the order that the analysis assumes),
 * and lanes meet again where paths join. Lanes that branch back run on at once.
 *
 * Where lanes must make progress independently, lanes that spun for a while stay waiting at their
 * loop and control goes on to later blocks; after the last it comes back to the first. Lanes that
 * are parked at a barrier wait like others but may not run (park.c).
 *
 * A block that is not `divergent` runs with all live lanes: nobody waits elsewhere, so its uniform
 * branches jump directly. Where all flows into a check surely meet at its block, the check tests
 * nothing. FULL copies run with all 32 lanes and leave for the masked code where lanes part.
 */
#include "gen.h"

/* ---- facts about the graph ---- */

static const hw_wir_insn *terminator(const hw_gen *g, uint32_t b)
{
    const hw_wir_block *k = &g->f->blocks.ptr[b];
    return &k->insns.ptr[k->insns.len - 1];
}

bool hwg_is_exit(const hw_gen *g, uint32_t b)
{
    const hw_wir_block *k = &g->f->blocks.ptr[b];
    const hw_wir_insn *t = &k->insns.ptr[0];
    bool ends = g->f->is_kernel ? t->op == HW_W_EXIT || t->op == HW_W_RET : t->op == HW_W_RET;
    return k->insns.len == 1 && ends && t->guard.kind != HW_V_REG;
}

static bool goes_back(const hw_gen *g)
{
    const hw_wir_block *w = &g->f->blocks.ptr[g->block];
    for (uint32_t i = 0; i < w->ntargets; i++)
        if (g->an->position[w->targets[i]] <= g->an->position[g->block])
            return true;
    return false;
}

static bool is_target(const hw_wir_block *w, uint32_t t)
{
    for (uint32_t i = 0; i < w->ntargets; i++)
        if (w->targets[i] == t)
            return true;
    return false;
}

/* Can block b send lanes off while others go elsewhere or wait? */
bool hwg_parts_lanes(const hw_gen *g, uint32_t b)
{
    const hw_wir_insn *t = terminator(g, b);
    bool varying = t->nsrc && t->src[0].kind == HW_V_REG &&
                   g->an->shape[t->src[0].reg].kind != HW_SHAPE_UNIFORM;
    return g->an->divergent[b] || g->an->divergent_branch[b] || varying ||
           t->guard.kind == HW_V_REG;
}

enum { MOST_BLOCKS_FOR_VALUES = 300 };

bool hwg_masks_together(const hw_gen *g)
{
    return g->an->nblocks > MOST_BLOCKS_FOR_VALUES;
}

/* In memory that SROA leaves alone: its work grows with masks times blocks. Where registers are kept in frame.save, the masks are
 * too: when the warp leaves and comes back they are there. */
static hw_lv opaque_masks(hw_gen *g)
{
    if (g->masks_stay)
        return hwg_masks_home(g);
    hw_lt t = LLVMArrayType2(g->i32, g->an->nblocks);
    hw_lv all = hwg_alloca_raw(g, t, 64, "pend");
    hw_lt ft = LLVMFunctionType(g->voidt, &g->ptr, 1, false);
    hw_lb here = LLVMGetInsertBlock(g->b);
    hw_lv seen =
        LLVMGetInlineAsm(ft, "", 0, "r,~{memory}", 11, true, false, LLVMInlineAsmDialectATT, false);
    hwg_at(g, g->each);
    LLVMBuildMemSet(g->b, all, hwg_k(g->i8, 0), hwg_k(g->i64, g->an->nblocks * UINT64_C(4)), 64);
    LLVMBuildCall2(g->b, ft, seen, &all, 1, "");
    hwg_at(g, here);
    return all;
}

static void make_pend(hw_gen *g)
{
    hw_lv all = g->masks = hwg_masks_together(g) ? opaque_masks(g) : NULL;
    for (uint32_t b = 0; b < g->an->nblocks; b++) {
        if (!g->may_wait[b])
            continue;
        hw_lb here = LLVMGetInsertBlock(g->b);
        hwg_at(g, g->each);
        g->pend[b] = all ? hwg_gep_k(g, all, (int64_t)b * 4) : NULL;
        hwg_at(g, here);
        if (!all)
            g->pend[b] = hwg_alloca(g, g->i32, "pend");
    }
}

static void find_waits(hw_gen *g)
{
    g->may_wait = HW_NEW_N(g->arena, bool, g->an->nblocks);
    for (uint32_t k = 0; k < g->norder; k++) {
        uint32_t b = g->an->order[k];
        const hw_wir_block *w = &g->f->blocks.ptr[b];
        const hw_wir_insn *t = terminator(g, b);
        if (g->rotate && hwg_parks_after(g, b) && hw_wir_may_part(g->an, b, t - 1))
            g->may_wait[w->targets[0]] = true;
        if (!hwg_parts_lanes(g, b))
            continue;
        g->exits_divergent |= t->op == HW_W_EXIT || t->op == HW_W_RET;
        for (uint32_t i = 0; i < w->ntargets; i++) {
            g->exits_divergent |= hwg_is_exit(g, w->targets[i]);
            g->may_wait[w->targets[i]] |= !hwg_is_exit(g, w->targets[i]);
        }
    }
    make_pend(g);
}

/* ---- moving lanes ---- */

static hw_lv get(hw_gen *g, hw_lv slot)
{
    return LLVMBuildLoad2(g->b, g->i32, slot, "");
}

static void set(hw_gen *g, hw_lv slot, hw_lv x)
{
    LLVMBuildStore(g->b, x, slot);
}

static hw_lv nonzero(hw_gen *g, hw_lv x)
{
    return b_icmp(g, LLVMIntNE, x, hwg_k(g->i32, 0));
}

static hw_lv all_lanes(hw_gen *g, hw_lv x)
{
    return b_icmp(g, LLVMIntEQ, x, hwg_k(g->i32, UINT32_MAX));
}

void hwg_set_mask(hw_gen *g)
{
    if (g->version == GEN_FULL)
        g->mask = hwg_k(g->i32, UINT32_MAX);
    else
        g->mask = get(g, g->an->divergent[g->block] ? g->mask_slot : g->live);
}

static void end_lanes(hw_gen *g, hw_lv m)
{
    set(g, g->live, b_and(g, get(g, g->live), b_not(g, m)));
}

/* Lanes m go to block t: they end, or wait. */
static void wait_at(hw_gen *g, uint32_t t, hw_lv m)
{
    if (hwg_is_exit(g, t)) {
        hwg_count_end_at(g, t, m);
        end_lanes(g, m);
    } else {
        set(g, g->pend[t], b_or(g, get(g, g->pend[t]), m));
    }
}

/* Lanes are about to part where nobody waits. Said in code, it ends the data flow of all pending
 * masks here: else each of them is carried through every join before. */
static void nobody_waits(hw_gen *g)
{
    if ((g->an->divergent[g->block] && g->version != GEN_FULL) || g->rotate ||
        hwg_masks_together(g))
        return;
    for (uint32_t b = 0; b < g->an->nblocks; b++)
        if (g->pend[b])
            set(g, g->pend[b], hwg_k(g->i32, 0));
}

/* All lanes that run go to t and nobody waits elsewhere. */
static void enter(hw_gen *g, uint32_t t)
{
    if (g->version == GEN_FULL) {
        LLVMBuildBr(g->b, g->body[GEN_FULL][t]);
        return;
    }
    if (g->an->divergent[t])
        nobody_waits(g);
    set(g, g->mask_slot, g->mask);
    LLVMBuildBr(g->b, g->body[GEN_MASKED][t]);
}

/* Where the lanes waiting at b are let run; control comes here only if there are some. */
static hw_lb take_label(hw_gen *g, uint32_t b)
{
    if (!g->take[b])
        g->take[b] = hwg_block(g, "take");
    return g->take[b];
}

/* After lanes were sent off: control goes to the first of them in the order. */
static void dispatch(hw_gen *g)
{
    const hw_wir_block *w = &g->f->blocks.ptr[g->block];
    uint32_t here = g->an->position[g->block];
    bool all_go = w->ntargets == 1 && terminator(g, g->block)->guard.kind != HW_V_REG;
    if (g->rotate && goes_back(g)) { /* lanes that spun long let those further on run */
        hw_lb stay = hwg_block(g, "stay");
        LLVMBuildCondBr(g->b, LLVMBuildLoad2(g->b, g->i1, g->rotate, ""), g->check[here + 1], stay);
        hwg_at(g, stay);
    }
    for (uint32_t at = 0; at <= here && goes_back(g); at++) {
        uint32_t t = g->an->order[at];
        if (!is_target(w, t) || hwg_is_exit(g, t))
            continue;
        if (all_go && !g->rotate) {
            LLVMBuildBr(g->b, take_label(g, t));
            return;
        }
        hw_lb next = hwg_block(g, "on");
        LLVMBuildCondBr(g->b, nonzero(g, hwg_ready(g, t)), take_label(g, t), next);
        hwg_at(g, next);
    }
    LLVMBuildBr(g->b, g->check[here + 1]);
}

/* ---- terminators ---- */

static bool parked_here(const hw_gen *g)
{
    return hwg_parks_after(g, g->block) && hwg_parks(g, terminator(g, g->block) - 1);
}

static void go(hw_gen *g, uint32_t t)
{
    if (!parked_here(g) && (g->version == GEN_FULL || !g->an->divergent[g->block])) {
        enter(g, t);
        return;
    }
    if (parked_here(g)) /* even if they end there: not before the barrier lets them */
        set(g, g->pend[t], b_or(g, get(g, g->pend[t]), g->mask));
    else
        wait_at(g, t, g->mask);
    dispatch(g);
}

static void end_br(hw_gen *g, const hw_wir_insn *in)
{
    (void)in;
    go(g, g->f->blocks.ptr[g->block].targets[0]);
}

/* Nobody waits, and lanes of g->mask part into those that end and `stay`, which go to t. */
static void end_some(hw_gen *g, uint32_t t, hw_lv stay)
{
    hw_lb some = hwg_block(g, "stay");
    set(g, g->live, stay);
    LLVMBuildCondBr(g->b, nonzero(g, stay), some, g->done);
    hwg_at(g, some);
    if (g->an->divergent[t])
        nobody_waits(g);
    set(g, g->mask_slot, stay);
    LLVMBuildBr(g->b, g->body[GEN_MASKED][t]);
}

/* Lanes in `yes` go to t, the others of the block to f. */
static void part(hw_gen *g, uint32_t t, uint32_t f, hw_lv yes)
{
    hw_lv no = b_and(g, g->mask, b_not(g, yes));
    if (!g->an->divergent[g->block] && hwg_is_exit(g, t) && !hwg_is_exit(g, f)) {
        hwg_count_end_at(g, t, yes);
        end_some(g, f, no);
    } else if (!g->an->divergent[g->block] && hwg_is_exit(g, f) && !hwg_is_exit(g, t)) {
        hwg_count_end_at(g, f, no);
        end_some(g, t, yes);
    } else {
        nobody_waits(g);
        wait_at(g, t, yes);
        wait_at(g, f, no);
        dispatch(g);
    }
}

/* In a FULL copy: if all or no lanes are in m, stay in full code; else go on where lanes part. */
static void unanimous(hw_gen *g, hw_lv m, hw_lb all, hw_lb none)
{
    hw_lb not_all = hwg_block(g, "some"), mixed = hwg_block(g, "mixed");
    LLVMBuildCondBr(g->b, all_lanes(g, m), all, not_all);
    hwg_at(g, not_all);
    LLVMBuildCondBr(g->b, nonzero(g, m), mixed, none);
    hwg_at(g, mixed);
}

static void end_cbr(hw_gen *g, const hw_wir_insn *in)
{
    const uint32_t *t = g->f->blocks.ptr[g->block].targets;
    hw_lanes p = hwg_src(g, in, 0);
    if (g->count)
        hwg_count_taken(g, p.kind == HW_SHAPE_UNIFORM ? p.s : hwg_vec_mask(g, p.v));
    if (t[0] == t[1]) {
        hwg_count_uniform(g);
        go(g, t[0]);
    } else if (p.kind == HW_SHAPE_UNIFORM) {
        hwg_count_uniform(g);
        hw_lb yes = hwg_block(g, "yes"), no = hwg_block(g, "no");
        LLVMBuildCondBr(g->b, p.s, yes, no);
        hwg_at(g, yes);
        go(g, t[0]);
        hwg_at(g, no);
        go(g, t[1]);
    } else {
        hw_lv m = hwg_vec_mask(g, p.v);
        if (g->version == GEN_FULL)
            unanimous(g, m, g->body[GEN_FULL][t[0]], g->body[GEN_FULL][t[1]]);
        hw_lv some = b_and(g, g->mask, m);
        hwg_count_parting(g, some);
        part(g, t[0], t[1], some);
    }
}

static void brx_uniform(hw_gen *g, hw_lv index, const hw_wir_block *w, hw_lb bad)
{
    hw_lv sw = LLVMBuildSwitch(g->b, index, bad, w->ntargets);
    for (uint32_t i = 0; i < w->ntargets; i++) {
        hw_lb to = hwg_block(g, "case");
        LLVMAddCase(sw, LLVMConstInt(g->i32, i, false), to);
        hwg_at(g, to);
        go(g, w->targets[i]);
    }
}

static void end_brx(hw_gen *g, const hw_wir_insn *in)
{
    const hw_wir_block *w = &g->f->blocks.ptr[g->block];
    hw_lanes x = hwg_src(g, in, 0);
    hw_lb bad = hwg_block(g, "outside");
    if (x.kind == HW_SHAPE_UNIFORM) {
        hwg_count_uniform(g);
        if (g->count)
            hwg_count_taken(g, b_icmp(g, LLVMIntEQ, x.s, hwg_klike(x.s, w->ntargets - 1)));
        brx_uniform(g, x.s, w, bad);
    } else {
        hw_lv v = hwg_src_vec(g, in, 0);
        hw_lv out = hwg_vec_mask(g, b_icmp(g, LLVMIntUGE, v, hwg_klike(v, w->ntargets)));
        hw_lb good = hwg_block(g, "inside");
        hwg_unlikely(g, nonzero(g, b_and(g, out, g->mask)), bad, good);
        hwg_at(g, good);
        if (g->count)
            hwg_count_taken(
                g, hwg_vec_mask(g, b_icmp(g, LLVMIntEQ, v, hwg_klike(v, w->ntargets - 1))));
        hwg_count_ways(g, v);
        nobody_waits(g);
        for (uint32_t i = 0; i < w->ntargets; i++) {
            hw_lv m = hwg_vec_mask(g, b_icmp(g, LLVMIntEQ, v, hwg_klike(v, i)));
            wait_at(g, w->targets[i], b_and(g, m, g->mask));
        }
        dispatch(g);
    }
    hwg_at(g, bad);
    hwg_fault(g, HW_F_ILLEGAL_INSTRUCTION, in->loc);
}

/* EXIT and RET. Guarded: the other lanes go on to target 0. */
static void end_lanes_here(hw_gen *g, const hw_wir_insn *in)
{
    if (in->op == HW_W_EXIT && !g->f->is_kernel) {
        hwg_fail(g, HW_E_UNSUPPORTED, "exit in a function that could not be inlined");
        return;
    }
    hwg_count_guard(g);
    if (in->guard.kind != HW_V_REG) {
        hwg_count_end_here(g);
        end_lanes(g, g->mask);
        if (!g->an->divergent[g->block] || g->version == GEN_FULL)
            LLVMBuildBr(g->b, g->done);
        else
            dispatch(g);
        return;
    }
    uint32_t t = g->f->blocks.ptr[g->block].targets[0];
    if (g->version == GEN_FULL) {
        hw_lb none = g->body[GEN_FULL][t], some = hwg_block(g, "ending");
        LLVMBuildCondBr(g->b, nonzero(g, g->exec), some, none);
        hwg_at(g, some);
    }
    hwg_count_end_here(g);
    hwg_count_parting(g, g->exec);
    hw_lv stay = b_and(g, g->mask, b_not(g, g->exec));
    if (!g->an->divergent[g->block]) {
        end_some(g, t, stay);
        return;
    }
    end_lanes(g, g->exec);
    wait_at(g, t, stay);
    dispatch(g);
}

static void end_trap(hw_gen *g, const hw_wir_insn *in)
{
    hwg_count_guard(g);
    if (in->guard.kind == HW_V_REG) {
        hw_lb trap = hwg_block(g, "trap"), on = hwg_block(g, "on");
        hwg_unlikely(g, nonzero(g, g->exec), trap, on);
        hwg_at(g, on);
        go(g, g->f->blocks.ptr[g->block].targets[0]);
        hwg_at(g, trap);
    }
    hwg_fault(g, in->imm ? (unsigned)in->imm : HW_F_TRAP, in->loc);
}

/* Every loop can be stopped from outside (interrupt, time limit, a fault elsewhere). */
static void look_at_stop(hw_gen *g, uint32_t loc)
{
    hw_lv p = hwg_frame_once(g, offsetof(hw_frame, stop), g->ptr);
    hw_lv x = LLVMBuildLoad2(g->b, g->i32, p, "");
    LLVMSetVolatile(x, true);
    hw_lb stop = hwg_block(g, "stop"), on = hwg_block(g, "on");
    hwg_unlikely(g, nonzero(g, x), stop, on);
    hwg_at(g, stop);
    hwg_fault(g, HW_F_TIMEOUT, loc);
    hwg_at(g, on);
}

void hwg_terminator(hw_gen *g, const hw_wir_insn *in)
{
    static void (*const end[HW_W_COUNT])(hw_gen *, const hw_wir_insn *) = {
        [HW_W_BR] = end_br,           [HW_W_CBR] = end_cbr,        [HW_W_BRX] = end_brx,
        [HW_W_EXIT] = end_lanes_here, [HW_W_RET] = end_lanes_here, [HW_W_TRAP] = end_trap,
    };
    hwg_debug_at(g, in);
    if (goes_back(g)) {
        look_at_stop(g, in->loc);
        hwg_spin(g, in);
        g->exec = hwg_executing(g, in);
    }
    end[in->op](g, in);
}

/* ---- checks ---- */

/* The block where every lane that waits while b runs will be, once it is reached. */
static uint32_t meeting(const hw_gen *g, uint32_t b)
{
    do
        b = g->an->ipdom[b];
    while (b != UINT32_MAX && g->an->divergent[b]);
    return b;
}

/* Does control go on to a check after b? Not where, with nobody waiting, lanes only end (end_some). */
static bool goes_to_checks(const hw_gen *g, uint32_t b)
{
    const uint32_t *t = g->f->blocks.ptr[b].targets;
    unsigned op = terminator(g, b)->op;
    bool one_ends = op == HW_W_CBR && hwg_is_exit(g, t[0]) != hwg_is_exit(g, t[1]);
    bool ends = op == HW_W_EXIT || op == HW_W_RET || one_ends;
    return hwg_parts_lanes(g, b) && (g->an->divergent[b] || !ends);
}

/* The blocks where the lanes meet that earlier blocks have parted: flows into a check. */
typedef HW_VEC(uint32_t) flows;

static void add_flow(hw_gen *g, flows *f, uint32_t from)
{
    uint32_t m = meeting(g, from);
    if (m != UINT32_MAX && g->an->position[m] <= g->an->position[from])
        m = UINT32_MAX; /* they meet in an earlier block: control may come by anywhere */
    for (size_t i = 0; i < f->len; i++)
        if (f->ptr[i] == m)
            return;
    hw_vec_push(g->arena, f, m);
}

/* Do all flows into the check at a position meet at its block? Those that met before are dropped. */
static bool all_meet_at(const hw_gen *g, flows *f, uint32_t position)
{
    size_t kept = 0, here = 0;
    for (size_t i = 0; i < f->len; i++) {
        uint32_t m = f->ptr[i];
        if (m != UINT32_MAX && g->an->position[m] < position)
            continue;
        here += m == g->an->order[position];
        f->ptr[kept++] = m;
    }
    f->len = kept;
    return kept && here == kept;
}

/* Let the lanes waiting at b run; in FULL code if they are all. */
static void take(hw_gen *g, uint32_t b)
{
    bool back_to_full = !g->an->divergent[b] || g->an->loop_header[b] == b;
    hw_lv m = g->an->divergent[b] ? hwg_ready(g, b) : get(g, g->live);
    if (g->pend[b])
        set(g, g->pend[b],
            g->rotate ? b_and(g, get(g, g->pend[b]), b_not(g, m)) : hwg_k(g->i32, 0));
    set(g, g->mask_slot, m);
    if (g->fulls && back_to_full)
        LLVMBuildCondBr(g->b, all_lanes(g, m), g->body[GEN_FULL][b], g->body[GEN_MASKED][b]);
    else
        LLVMBuildBr(g->b, g->body[GEN_MASKED][b]);
}

/* Every flow into this check meets at b. */
static void surely(hw_gen *g, uint32_t b)
{
    if (g->exits_divergent)
        LLVMBuildCondBr(g->b, nonzero(g, get(g, g->live)), take_label(g, b), g->done);
    else
        LLVMBuildBr(g->b, take_label(g, b));
}

static hw_lv anybody(hw_gen *g)
{
    hw_lv any = hwg_k(g->i32, 0);
    for (uint32_t b = 0; b < g->an->nblocks; b++)
        if (g->pend[b])
            any = b_or(g, any, get(g, g->pend[b]));
    return any;
}

/* After the last check, where lanes let others run ahead: those that may go on do, from the first
 * check. If all are parked the warp waits. */
static void start_again(hw_gen *g)
{
    hw_lv any = anybody(g), blocked = hwg_frame(g, offsetof(hw_frame, blocked), g->i32);
    hw_lb rest = hwg_block(g, "rest");
    LLVMBuildCondBr(g->b, nonzero(g, b_and(g, any, b_not(g, blocked))), g->check[0], rest);
    hwg_at(g, rest);
    LLVMBuildCondBr(g->b, nonzero(g, any), hwg_all_parked(g), g->done);
}

static void checks(hw_gen *g)
{
    uint32_t n = g->norder;
    flows f = { 0 };
    for (uint32_t k = 0; k < n; k++) {
        uint32_t b = g->an->order[k];
        if (k && goes_to_checks(g, g->an->order[k - 1]))
            add_flow(g, &f, g->an->order[k - 1]);
        hwg_at(g, g->check[k]);
        bool all = all_meet_at(g, &f, k);
        if (!g->an->divergent[b] && all && !g->rotate) {
            surely(g, b);
        } else if (g->pend[b]) {
            LLVMBuildCondBr(g->b, nonzero(g, hwg_ready(g, b)), take_label(g, b), g->check[k + 1]);
        } else {
            LLVMBuildBr(g->b, g->check[k + 1]);
        }
    }
    hwg_at(g, g->check[n]);
    if (g->rotate)
        start_again(g);
    else
        LLVMBuildBr(g->b, g->done);
    for (uint32_t b = 0; b < g->an->nblocks; b++)
        if (g->take[b]) {
            hwg_at(g, g->take[b]);
            take(g, b);
        }
}

/* ---- bodies ---- */

static void body(hw_gen *g, uint32_t b, int version)
{
    const hw_wir_block *w = &g->f->blocks.ptr[b];
    g->block = b;
    g->version = version;
    g->stamp++;
    hwg_at(g, g->body[version][b]);
    hwg_set_mask(g);
    hwg_unpark(g);
    hwg_count_block(g);
    hwg_groups(g, b);
    hwg_bundles(g, b);
    for (g->index = 0; g->index + 1 < w->insns.len && g->failed == HW_OK; g->index++) {
        hwg_arrival(g);
        hwg_insn(g, &w->insns.ptr[g->index]);
    }
    if (g->failed != HW_OK)
        return;
    const hw_wir_insn *t = &w->insns.ptr[g->index];
    g->in = t;
    g->exec = hwg_executing(g, t);
    hwg_terminator(g, t);
}

static void make_labels(hw_gen *g)
{
    uint32_t n = g->norder;
    for (int v = 0; v < GEN_VERSIONS; v++) {
        g->body[v] = HW_NEW_N(g->arena, hw_lb, g->an->nblocks);
        for (uint32_t k = 0; k < n; k++)
            if (v == GEN_MASKED || g->fulls)
                g->body[v][g->an->order[k]] = hwg_block(g, v == GEN_FULL ? "full" : "body");
    }
    g->check = HW_NEW_N(g->arena, hw_lb, n + 1);
    for (uint32_t k = 0; k <= n; k++)
        g->check[k] = hwg_block(g, "check");
}

void hwg_blocks(hw_gen *g)
{
    g->pend = HW_NEW_N(g->arena, hw_lv, g->an->nblocks);
    g->take = HW_NEW_N(g->arena, hw_lb, g->an->nblocks);
    if (g->v->independent && g->an->any_order && hwg_may_park(g))
        g->rotate = hwg_alloca(g, g->i1, "rotate");
    make_labels(g);
    find_waits(g);
    hwg_plan_places(g);
    for (int v = 0; v < GEN_VERSIONS; v++)
        for (uint32_t k = 0; k < g->norder && g->failed == HW_OK; k++)
            if (v == GEN_MASKED || g->fulls)
                body(g, g->an->order[k], v);
    if (g->failed == HW_OK)
        checks(g);
}

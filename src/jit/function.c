/* SPDX-License-Identifier: Apache-2.0
 *
 * One function of the module made an LLVM function.
 */
#include "gen.h"

enum { MOST_INSNS_FOR_FULL = 600 };

static void attribute(hw_gen *g, hw_lv fn, const char *name, const char *value)
{
    LLVMAttributeRef a = value ? LLVMCreateStringAttribute(g->cx, name, (unsigned)strlen(name),
                                                           value, (unsigned)strlen(value))
                               : LLVMCreateEnumAttribute(
                                     g->cx, LLVMGetEnumAttributeKindForName(name, strlen(name)), 0);
    LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

void hwg_attributes(hw_gen *g, hw_lv fn)
{
    attribute(g, fn, "nounwind", NULL);
    attribute(g, fn, "min-legal-vector-width", "512");
    attribute(g, fn, "prefer-vector-width", "512");
    attribute(g, fn, "no-jump-tables", "true");
    attribute(g, fn, "no-builtins", "");
}

static void reset(hw_gen *g, uint32_t index)
{
    g->findex = index;
    g->f = &g->m->functions.ptr[index];
    memset(g->once, 0, sizeof g->once);
    memset(g->limit, 0, sizeof g->limit);
    g->open = NULL;
    g->def_of = NULL;
    g->points.len = 0;
    g->point_of = g->before_of = NULL;
    g->fast = NULL;
    g->deopts_to = NULL;
    g->exits_divergent = false;
    g->scratch = NULL;
    g->local_used = NULL;
    g->io = NULL;
    g->rotate = g->warp = g->frame_slot = NULL;
    g->meet = NULL;
    g->carry = g->carried = NULL;
    g->ended = NULL;
    g->stamp = 1;
    g->in = NULL;
}

/* In the slow variant: where warps of the fast one may arrive. */
static void find_arrivals(hw_gen *g)
{
    if (!g->v->no_shapes || !g->f->is_kernel)
        return;
    hw_variant fast = *g->v;
    fast.lockstep_first |= fast.independent;
    fast.no_shapes = fast.independent = false;
    g->fast = hw_wir_analyse(g->arena, g->m, g->findex, &fast);
    g->deopts_to = g->fast->wrap_guard;
}

/* Called functions cannot give up their assumptions half-way: they make none. */
static const hw_variant *variant_for(hw_gen *g)
{
    if (g->f->is_kernel)
        return g->v;
    hw_variant *v = HW_NEW(g->arena, hw_variant);
    *v = *g->v;
    v->no_shapes = true;
    return v;
}

static uint32_t warps(const hw_gen *g)
{
    const uint32_t *n = g->v->block;
    return (uint32_t)(((uint64_t)n[0] * n[1] * n[2] + GEN_LANES - 1) / GEN_LANES);
}

static void start_function(hw_gen *g)
{
    g->entry = g->each = hwg_block(g, "entry");
    if (g->f->is_kernel && g->v->whole_blocks && warps(g) > 1) {
        g->each = hwg_block(g, "each");
        g->warp = hwg_alloca_raw(g, g->i32, 0, "warp");
        g->frame_slot = hwg_alloca_raw(g, g->ptr, 0, "frame");
        hwg_at(g, g->each);
        g->frame = LLVMBuildLoad2(g->b, g->ptr, g->frame_slot, "");
    }
    g->done = hwg_block(g, "done");
    hwg_at(g, g->entry);
    hwg_regs_init(g);
    g->live = hwg_alloca(g, g->i32, "live");
    g->mask_slot = hwg_alloca(g, g->i32, "mask");
    hwg_at(g, g->each);
    hw_lv lanes =
        g->f->is_kernel ? hwg_frame(g, offsetof(hw_frame, lanes), g->i32) : LLVMGetParam(g->fn, 1);
    LLVMBuildStore(g->b, lanes, g->live);
    if (!g->f->is_kernel) {
        g->io = LLVMGetParam(g->fn, 2);
        g->local_used = LLVMGetParam(g->fn, 3);
    }
}

static void first_block(hw_gen *g)
{
    uint32_t first = g->an->order[0];
    hw_lv lanes = LLVMBuildLoad2(g->b, g->i32, g->live, "");
    LLVMBuildStore(g->b, lanes, g->mask_slot);
    if (g->fulls) {
        hw_lv full = b_icmp(g, LLVMIntEQ, lanes, hwg_k(g->i32, UINT32_MAX));
        LLVMBuildCondBr(g->b, full, g->body[GEN_FULL][first], g->body[GEN_MASKED][first]);
    } else {
        LLVMBuildBr(g->b, g->body[GEN_MASKED][first]);
    }
}

static void set_frame(hw_gen *g, size_t offset, hw_lv x)
{
    LLVMBuildStore(g->b, x, hwg_frame_addr(g, offset));
}

static bool module_has(const hw_gen *g, bool (*is)(const hw_wir_insn *in))
{
    for (size_t f = 0; f < g->m->functions.len; f++)
        for (size_t b = 0; b < g->m->functions.ptr[f].blocks.len; b++) {
            const hw_wir_block *w = &g->m->functions.ptr[f].blocks.ptr[b];
            for (size_t i = 0; i < w->insns.len; i++)
                if (is(&w->insns.ptr[i]))
                    return true;
        }
    return false;
}

static bool arrives(const hw_wir_insn *in)
{
    return in->op == HW_W_BARRIER_ARRIVE;
}

static bool waits_at_mbarrier(const hw_wir_insn *in)
{
    return in->op == HW_W_HELPER && in->imm == HW_H_MBARRIER_WAIT;
}

bool hwg_may_relay(const hw_gen *g)
{
    return g->warp && !g->v->no_shapes && !module_has(g, waits_at_mbarrier);
}

/* Does no warp ever wait, nor come in from other code, nor is looked at by others? */
static bool runs_through(const hw_gen *g)
{
    return g->warp && !g->info->suspends && !g->points.len && !g->v->no_shapes &&
           !module_has(g, arrives);
}

/* The frame becomes that of the next warp, if there is one. */
static void next_warp(hw_gen *g)
{
    enum { TID_BYTES = 3 * GEN_LANES * sizeof(uint32_t) };
    const uint32_t *n = g->v->block;
    unsigned last = (unsigned)((uint64_t)n[0] * n[1] * n[2] % GEN_LANES);
    hw_lb more = hwg_block(g, "next"), end = hwg_block(g, "end");
    hw_lv warp = b_add(g, hwg_frame_once(g, offsetof(hw_frame, warp), g->i32), hwg_k(g->i32, 1));
    hw_lv tid = hwg_frame(g, offsetof(hw_frame, tid), g->ptr), lanes = hwg_k(g->i32, UINT32_MAX);
    LLVMBuildCondBr(g->b, b_icmp(g, LLVMIntEQ, warp, hwg_k(g->i32, warps(g))), end, more);
    hwg_at(g, more);
    if (last)
        lanes = b_select(g, b_icmp(g, LLVMIntEQ, warp, hwg_k(g->i32, warps(g) - 1)),
                         hwg_k(g->i32, (1u << last) - 1), lanes);
    LLVMBuildStore(g->b, warp, g->warp);
    set_frame(g, offsetof(hw_frame, warp), warp);
    set_frame(g, offsetof(hw_frame, lanes), lanes);
    set_frame(g, offsetof(hw_frame, tid), hwg_gep_k(g, tid, TID_BYTES));
    if (g->count) /* at which ends its lanes have been counted */
        set_frame(g, offsetof(hw_frame, ends), hwg_k(g->i64, 0));
    LLVMBuildBr(g->b, g->each);
    hwg_at(g, end);
}

/* The turn of the frame's next warp, or the end of the call. */
static void hand_on(hw_gen *g, bool done)
{
    hw_lv next = hwg_frame(g, offsetof(hw_frame, next), g->ptr);
    hw_lv turns = hwg_frame_once(g, offsetof(hw_frame, turns), g->ptr);
    hw_lb more = hwg_block(g, "next"), end = hwg_block(g, "end");
    hw_lv none = b_icmp(g, LLVMIntEQ, next, LLVMConstNull(g->ptr));
    LLVMBuildCondBr(g->b, none, end, more);
    hwg_at(g, end);
    LLVMBuildRet(g->b, hwg_k(g->i32, done ? HW_WARP_DONE : HW_WARP_MET));
    hwg_at(g, more);
    if (done) {
        hw_lv bit = b_zext(g, hwg_frame(g, offsetof(hw_frame, warp), g->i32), g->i64);
        hw_lv p = hwg_gep_k(g, turns, offsetof(hw_turns, over));
        bit = b_shl(g, hwg_k(g->i64, 1), bit);
        hwg_store(g, b_or(g, hwg_load(g, g->i64, p, 8), bit), p, 8);
    }
    hwg_store(g, next, hwg_gep_k(g, turns, offsetof(hw_turns, running)), 8);
    LLVMBuildStore(g->b, next, g->frame_slot);
    hw_lv warp = hwg_gep_k(g, next, offsetof(hw_frame, warp));
    LLVMBuildStore(g->b, LLVMBuildLoad2(g->b, g->i32, warp, ""), g->warp);
    LLVMBuildBr(g->b, g->each);
}

static void last_block(hw_gen *g)
{
    hwg_at(g, g->done);
    if (!g->f->is_kernel) {
        hwg_give_results(g);
        LLVMBuildRetVoid(g->b);
        return;
    }
    if (g->findex == 0)
        g->info->whole_block = runs_through(g);
    if (g->info->whole_block)
        next_warp(g);
    set_frame(g, offsetof(hw_frame, lanes), hwg_k(g->i32, 0));
    if (g->info->relays)
        hand_on(g, true);
    else
        LLVMBuildRet(g->b, hwg_k(g->i32, HW_WARP_DONE));
    if (g->meet) {
        hwg_at(g, g->meet);
        hand_on(g, false);
    }
}

static void function(hw_gen *g, uint32_t index)
{
    reset(g, index);
    if (!g->f->defined) {
        hwg_fail(g, HW_E_LINK, "the function has no body");
        return;
    }
    g->an = hw_wir_analyse(g->arena, g->m, index, variant_for(g));
    g->norder = g->an->nblocks;
    if (g->f->is_kernel)
        g->info->registers = g->an->max_live;
    find_arrivals(g);
    g->fulls = g->v->tier && g->an->first_insn[g->an->nblocks] <= MOST_INSNS_FOR_FULL;
    g->frame = g->own = LLVMGetParam(g->fn, 0);
    hwg_debug_function(g);
    start_function(g);
    hw_lb start = hwg_block(g, "start");
    hwg_blocks(g);
    if (g->failed != HW_OK)
        return;
    hwg_at(g, start);
    if (!g->f->is_kernel)
        hwg_receive(g);
    first_block(g);
    last_block(g);
    hwg_points_finish(g, start);
}

hw_status hwg_module(hw_gen *g)
{
    hw_lt t = LLVMFunctionType(g->i32, &g->ptr, 1, false);
    g->fn = LLVMAddFunction(g->mod, HW_CODEGEN_ENTRY, t);
    hwg_attributes(g, g->fn);
    function(g, 0);
    for (size_t i = 0; i < g->called.len && g->failed == HW_OK; i++) {
        g->fn = hwg_callee(g, g->called.ptr[i]);
        function(g, g->called.ptr[i]);
    }
    hwg_stack_needs(g);
    return g->failed;
}

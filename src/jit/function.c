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
    g->rotate = NULL;
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

static void start_function(hw_gen *g)
{
    g->entry = hwg_block(g, "entry");
    g->done = hwg_block(g, "done");
    hwg_at(g, g->entry);
    hwg_regs_init(g);
    g->live = hwg_alloca(g, g->i32, "live");
    g->mask_slot = hwg_alloca(g, g->i32, "mask");
    hwg_at(g, g->entry);
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

static void last_block(hw_gen *g)
{
    hwg_at(g, g->done);
    if (!g->f->is_kernel) {
        hwg_give_results(g);
        LLVMBuildRetVoid(g->b);
        return;
    }
    LLVMBuildStore(g->b, hwg_k(g->i32, 0), hwg_frame_addr(g, offsetof(hw_frame, lanes)));
    LLVMBuildRet(g->b, hwg_k(g->i32, HW_WARP_DONE));
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
    g->frame = LLVMGetParam(g->fn, 0);
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

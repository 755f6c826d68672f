/* SPDX-License-Identifier: Apache-2.0
 *
 * Lean code: long expansions of lane-wise operations (approximate functions, division) as functions
 * of their own, generated and compiled once for all places that use them.
 */
#include "ops.h"

enum { MOST_ARGUMENTS = 3 };

struct hw_gen_outlined {
    hw_wir_insn in; /* what decides the code */
    hw_lv constant[MOST_ARGUMENTS];
    hw_lt type[MOST_ARGUMENTS];
    hw_gen_lane_fn *emit;
    hw_lv fn;
};

bool hwg_outlines(const hw_gen *g, const hw_wir_insn *in)
{
    static const bool is_long[HW_W_COUNT] = {
        [HW_W_DIV_U] = true,       [HW_W_DIV_S] = true,        [HW_W_REM_U] = true,
        [HW_W_REM_S] = true,       [HW_W_RSQRT_APPROX] = true, [HW_W_SIN_APPROX] = true,
        [HW_W_COS_APPROX] = true,  [HW_W_EX2_APPROX] = true,   [HW_W_LG2_APPROX] = true,
        [HW_W_TANH_APPROX] = true,
    };
    return g->lean && is_long[in->op] && in->nsrc <= MOST_ARGUMENTS;
}

static hw_wir_insn what_decides(const hw_wir_insn *in)
{
    return (hw_wir_insn){ .op = in->op,
                          .type = in->type,
                          .type2 = in->type2,
                          .round = in->round,
                          .flags = in->flags & ~(unsigned)HW_I_NEG_GUARD,
                          .nsrc = in->nsrc };
}

static bool same(const hw_gen_outlined *x, const hw_gen_outlined *y)
{
    return x->in.op == y->in.op && x->in.type == y->in.type && x->in.type2 == y->in.type2 &&
           x->in.round == y->in.round && x->in.flags == y->in.flags &&
           memcmp(x->constant, y->constant, sizeof x->constant) == 0 &&
           memcmp(x->type, y->type, sizeof x->type) == 0;
}

/* What an emitter keeps of the function it is in. */
typedef struct context {
    hw_lv fn, exec, frame, own, scratch;
    hw_lb entry, each, here;
    LLVMMetadataRef loc;
    hw_lv once[HW_COUNTOF(((hw_gen *)0)->once)];
} context;

static context leave(hw_gen *g)
{
    context c = { .fn = g->fn,
                  .exec = g->exec,
                  .frame = g->frame,
                  .own = g->own,
                  .scratch = g->scratch,
                  .entry = g->entry,
                  .each = g->each,
                  .here = LLVMGetInsertBlock(g->b),
                  .loc = LLVMGetCurrentDebugLocation2(g->b) };
    memcpy(c.once, g->once, sizeof c.once);
    memset(g->once, 0, sizeof g->once);
    g->scratch = NULL;
    LLVMSetCurrentDebugLocation2(g->b, NULL);
    return c;
}

static void come_back(hw_gen *g, const context *c)
{
    g->fn = c->fn;
    g->exec = c->exec;
    g->frame = c->frame;
    g->own = c->own;
    g->scratch = c->scratch;
    g->entry = c->entry;
    g->each = c->each;
    memcpy(g->once, c->once, sizeof g->once);
    hwg_at(g, c->here);
    LLVMSetCurrentDebugLocation2(g->b, c->loc);
}

hw_lv hwg_outline(hw_gen *g, const char *name, hw_lt result, const hw_lv *args, unsigned n,
                  hw_gen_body_fn *body, void *ctx)
{
    hw_lt types[MOST_ARGUMENTS + 2] = { g->ptr };
    hw_lv params[MOST_ARGUMENTS + 2];
    context c = leave(g);
    HW_CHECK(n < HW_COUNTOF(types));
    for (unsigned i = 0; i < n; i++)
        types[i + 1] = LLVMTypeOf(args[i]);
    hw_lv fn = LLVMAddFunction(g->mod, name, LLVMFunctionType(result, types, n + 1, false));
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    hwg_attributes(g, fn);
    LLVMGetParams(fn, params);
    g->fn = fn;
    g->frame = g->own = params[0];
    g->exec = params[n];
    g->entry = g->each = hwg_block(g, "entry");
    hw_lb start = hwg_block(g, "start");
    hwg_at(g, start);
    LLVMBuildRet(g->b, body(g, params + 1, ctx));
    hwg_at(g, g->entry);
    LLVMBuildBr(g->b, start);
    come_back(g, &c);
    return fn;
}

hw_lv hwg_call_outlined(hw_gen *g, hw_lv fn, const hw_lv *args, unsigned n)
{
    hw_lv all[MOST_ARGUMENTS + 2] = { g->frame };
    for (unsigned i = 0; i < n; i++)
        all[i + 1] = args[i];
    return LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, all, n + 1, "");
}

/* The emitter's code over the parameters and the constants. */
static hw_lv emit_lanes(hw_gen *g, const hw_lv *params, void *ctx)
{
    const hw_gen_outlined *x = ctx;
    hw_lv a[MOST_ARGUMENTS] = { 0 };
    for (unsigned i = 0, at = 0; i < x->in.nsrc; i++)
        a[i] = x->constant[i] ? x->constant[i] : params[at++];
    return x->emit(g, &x->in, a);
}

static hw_gen_outlined *find(hw_gen *g, const hw_gen_outlined *wanted)
{
    for (size_t i = 0; i < g->outlined.len; i++)
        if (same(g->outlined.ptr[i], wanted))
            return g->outlined.ptr[i];
    return NULL;
}

hw_lv hwg_outlined(hw_gen *g, const hw_wir_insn *in, hw_gen_lane_fn *emit, const hw_lv *a,
                   hw_lt result)
{
    hw_gen_outlined wanted = { .in = what_decides(in), .emit = emit };
    hw_lv args[MOST_ARGUMENTS + 1];
    unsigned n = 0;
    for (unsigned i = 0; i < in->nsrc; i++) {
        wanted.type[i] = LLVMTypeOf(a[i]);
        wanted.constant[i] = LLVMIsConstant(a[i]) ? a[i] : NULL;
        if (!wanted.constant[i])
            args[n++] = a[i];
    }
    args[n++] = g->exec;
    hw_gen_outlined *x = find(g, &wanted);
    if (!x) {
        x = HW_NEW(g->arena, hw_gen_outlined);
        *x = wanted;
        x->fn = hwg_outline(g, "lanes", result, args, n, emit_lanes, x);
        hw_vec_push(g->arena, &g->outlined, x);
    }
    return hwg_call_outlined(g, x->fn, args, n);
}

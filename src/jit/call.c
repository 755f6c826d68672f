/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: of warp functions that were neither inlined nor flattened (they do not recurse or wait), by
 * name or by a lane's value, and of C helpers.
 *
 * A called function is `void f(frame, lanes, io, local_used)`. io is memory: each argument as an
 * array of 32 lanes, then each result. Local memory is a stack: local_used bytes of every lane are
 * the callers'.
 */
#include "ops.h"

#include <stdio.h>

static unsigned value_bytes(unsigned type)
{
    unsigned bits = hw_wir_bits((hw_wir_type)type);
    return bits < 8 ? 1 : bits / 8;
}

static unsigned array_bytes(unsigned type)
{
    return (value_bytes(type) * GEN_LANES + 63) / 64 * 64;
}

static unsigned reg_type(const hw_wir_function *f, uint32_t reg)
{
    return f->regs.ptr[reg].type;
}

static void put_array(hw_gen *g, hw_lv v, hw_lv p)
{
    if (hwg_elem(v) == g->i1)
        v = b_zext(g, v, g->i8);
    hwg_store(g, v, p, 32);
}

static hw_lv get_array(hw_gen *g, unsigned type, hw_lv p)
{
    hw_lt t = type == HW_T_I1 ? g->i8 : hwg_reg_type(g, type);
    hw_lv v = hwg_load(g, LLVMVectorType(t, GEN_LANES), p, 32);
    return type == HW_T_I1 ? b_trunc(g, v, g->i1) : v;
}

/* ---- the callee's side ---- */

hw_lv hwg_callee(hw_gen *g, uint32_t index)
{
    char name[32];
    snprintf(name, sizeof name, "f%u", index);
    hw_lv fn = LLVMGetNamedFunction(g->mod, name);
    if (fn)
        return fn;
    hw_lt args[] = { g->ptr, g->i32, g->ptr, g->i64 };
    fn = LLVMAddFunction(g->mod, name, LLVMFunctionType(g->voidt, args, 4, false));
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    hwg_attributes(g, fn);
    hw_vec_push(g->arena, &g->called, index);
    return fn;
}

/* At the start of a called function: its parameters. */
void hwg_receive(hw_gen *g)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < g->f->nparams; i++) {
        unsigned type = reg_type(g->f, g->f->params[i]);
        hw_lv v = get_array(g, type, hwg_gep_k(g, g->io, at));
        hwg_write_raw(g, g->f->params[i], hwg_varying(v));
        at += array_bytes(type);
    }
}

/* At its end: its results. */
void hwg_give_results(hw_gen *g)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < g->f->nparams; i++)
        at += array_bytes(reg_type(g->f, g->f->params[i]));
    for (uint32_t i = 0; i < g->f->nresults; i++) {
        unsigned type = reg_type(g->f, g->f->results[i]);
        hw_lanes x = hwg_read(g, hw_wir_reg(g->f->results[i]), type);
        put_array(g, hwg_vector(g, x, type), hwg_gep_k(g, g->io, at));
        at += array_bytes(type);
    }
}

/* ---- the caller's side ---- */

static hw_lv my_local(hw_gen *g)
{
    return g->local_used ? g->local_used
                         : hwg_frame_once(g, offsetof(hw_frame, local_used), g->i64);
}

/* Local memory used by us and the call; a fault if the callee's does not fit. */
static hw_lv local_for(hw_gen *g, const hw_wir_function *callee, uint32_t loc)
{
    hw_lv used = b_add(g, my_local(g), hwg_k(g->i64, g->f->local_bytes + HW_WIR_CALL_BYTES));
    hw_lv need = b_add(g, used, hwg_k(g->i64, callee->local_bytes));
    hw_lv stride = hwg_frame_once(g, offsetof(hw_frame, local_stride), g->i64);
    hw_lb over = hwg_block(g, "overflow"), on = hwg_block(g, "fits");
    hwg_likely(g, b_icmp(g, LLVMIntULE, need, stride), on, over);
    hwg_at(g, over);
    hwg_fault(g, HW_F_STACK_OVERFLOW, loc);
    hwg_at(g, on);
    return used;
}

static hw_lv new_io(hw_gen *g, const hw_wir_function *callee)
{
    unsigned bytes = 64;
    for (uint32_t i = 0; i < callee->nparams; i++)
        bytes += array_bytes(reg_type(callee, callee->params[i]));
    for (uint32_t i = 0; i < callee->nresults; i++)
        bytes += array_bytes(reg_type(callee, callee->results[i]));
    return hwg_alloca_raw(g, LLVMArrayType2(g->i8, bytes), 64, "io");
}

/* Call function `index` for some lanes; src from operand `first` on. Returns where results stand. */
static hw_lv call(hw_gen *g, const hw_wir_insn *in, uint32_t index, unsigned first, hw_lv lanes)
{
    const hw_wir_function *callee = &g->m->functions.ptr[index];
    hw_lv io = new_io(g, callee), used = local_for(g, callee, in->loc), fn = hwg_callee(g, index);
    uint32_t at = 0;
    for (uint32_t i = 0; i < callee->nparams; i++) {
        unsigned type = reg_type(callee, callee->params[i]);
        hw_lv v = hwg_vector(g, hwg_read(g, in->src[first + i], type), type);
        put_array(g, v, hwg_gep_k(g, io, at));
        at += array_bytes(type);
    }
    LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, (hw_lv[]){ g->frame, lanes, io, used }, 4,
                   "");
    return hwg_gep_k(g, io, at);
}

WHOLE(call)
{
    uint32_t index = (uint32_t)in->imm;
    const hw_wir_function *callee = &g->m->functions.ptr[index];
    hw_lv p = call(g, in, index, 0, g->exec);
    for (uint32_t i = 0; i < in->ndst; i++) {
        unsigned type = reg_type(callee, callee->results[i]);
        hwg_write(g, in->dst[i], hwg_varying(get_array(g, type, p)));
        p = hwg_gep_k(g, p, array_bytes(type));
    }
}

static void merge_results(hw_gen *g, const hw_wir_insn *in, uint32_t index, hw_lv p, hw_lv *slots,
                          hw_lv lanes)
{
    const hw_wir_function *callee = &g->m->functions.ptr[index];
    for (uint32_t i = 0; i < in->ndst; i++) {
        unsigned type = reg_type(callee, callee->results[i]);
        hw_lv v = get_array(g, type, p);
        hw_lv old = LLVMBuildLoad2(g->b, LLVMTypeOf(v), slots[i], "");
        LLVMBuildStore(g->b, b_select(g, hwg_mask_vec(g, lanes), v, old), slots[i]);
        p = hwg_gep_k(g, p, array_bytes(type));
    }
}

static hw_lv *result_slots(hw_gen *g, const hw_wir_insn *in)
{
    hw_lv *slots = HW_NEW_N(g->arena, hw_lv, in->ndst + 1u);
    for (uint32_t i = 0; i < in->ndst; i++) {
        unsigned type = hwg_wanted(in->dst[i]) ? hwg_dst_type(g, in->dst[i]) : HW_T_I64;
        slots[i] = hwg_alloca(g, LLVMVectorType(hwg_reg_type(g, type), GEN_LANES), "result");
    }
    return slots;
}

/* Each distinct target once, with its lanes. */
WHOLE(calli)
{
    hw_lv target = hwg_src_vec(g, in, 0), *slots = result_slots(g, in), exec = g->exec;
    hw_lb from = LLVMGetInsertBlock(g->b), loop = hwg_block(g, "target"),
          end = hwg_block(g, "back");
    hw_lb next = hwg_block(g, "next"), bad = hwg_block(g, "no_function");
    LLVMBuildBr(g->b, loop);
    hwg_at(g, loop);
    hw_lv left = LLVMBuildPhi(g->b, g->i32, "");
    hw_lv lane = b_and(g, hwg_first_lane(g, left), hwg_k(g->i32, 31));
    hw_lv to = LLVMBuildExtractElement(g->b, target, lane, "");
    hw_lv same = b_icmp(g, LLVMIntEQ, target, hwg_splat(g, to, GEN_LANES));
    hw_lv lanes = b_and(g, hwg_vec_mask(g, same), left);
    hw_lv sw = LLVMBuildSwitch(g->b, to, bad, (unsigned)g->m->functions.len);
    for (uint32_t i = 1; i < g->m->functions.len; i++) {
        if (!hw_wir_can_call(g->f, in, &g->m->functions.ptr[i]))
            continue;
        hw_lb one = hwg_block(g, "one");
        LLVMAddCase(sw, hwg_k(g->i64, i + 1), one);
        hwg_at(g, one);
        hw_lv p = call(g, in, i, 1, lanes);
        merge_results(g, in, i, p, slots, lanes);
        LLVMBuildBr(g->b, next);
    }
    hwg_at(g, bad);
    hwg_fault(g, HW_F_INVALID_PC, in->loc);
    hwg_at(g, next);
    hw_lv rest = b_and(g, left, b_not(g, lanes));
    LLVMBuildCondBr(g->b, b_icmp(g, LLVMIntNE, rest, hwg_k(g->i32, 0)), loop, end);
    LLVMAddIncoming(left, (hw_lv[]){ exec, rest }, (hw_lb[]){ from, next }, 2);
    hwg_at(g, end);
    for (uint32_t i = 0; i < in->ndst; i++)
        if (hwg_wanted(in->dst[i]))
            hwg_write(
                g, in->dst[i],
                hwg_varying(LLVMBuildLoad2(g->b, LLVMGetAllocatedType(slots[i]), slots[i], "")));
}

/* ---- C helpers ---- */

static hw_lv pointer_table(hw_gen *g, unsigned n)
{
    return hwg_alloca_raw(g, LLVMArrayType2(g->ptr, n + 1u), 8, "table");
}

static void set_pointer(hw_gen *g, hw_lv table, unsigned i, hw_lv p)
{
    LLVMBuildStore(g->b, p, hwg_gep_k(g, table, (int64_t)i * 8));
}

static hw_lv new_array(hw_gen *g, unsigned type)
{
    return hwg_alloca_raw(g, LLVMArrayType2(g->i8, array_bytes(type)), 64, "lanes");
}

WHOLE(helper)
{
    hw_lv src = pointer_table(g, in->nsrc), dst = pointer_table(g, in->ndst);
    hw_lv *out = HW_NEW_N(g->arena, hw_lv, in->ndst + 1u);
    for (unsigned i = 0; i < in->nsrc; i++) {
        hw_lv p = new_array(g, hwg_src_type(g, in, i));
        put_array(g, hwg_src_vec(g, in, i), p);
        set_pointer(g, src, i, p);
    }
    for (unsigned i = 0; i < in->ndst; i++) {
        out[i] = new_array(g, hwg_wanted(in->dst[i]) ? hwg_dst_type(g, in->dst[i]) : HW_T_I64);
        set_pointer(g, dst, i, out[i]);
    }
    hw_lv io = hwg_alloca_raw(g, LLVMArrayType2(g->i64, sizeof(hw_lane_arrays) / 8), 8, "io");
    LLVMBuildStore(g->b, dst, hwg_gep_k(g, io, offsetof(hw_lane_arrays, dst)));
    LLVMBuildStore(g->b, src, hwg_gep_k(g, io, offsetof(hw_lane_arrays, src)));
    LLVMBuildStore(g->b, hwg_k(g->i32, in->ndst), hwg_gep_k(g, io, offsetof(hw_lane_arrays, ndst)));
    LLVMBuildStore(g->b, hwg_k(g->i32, in->nsrc), hwg_gep_k(g, io, offsetof(hw_lane_arrays, nsrc)));
    LLVMBuildStore(g->b, hwg_k(g->i32, in->loc), hwg_frame_addr(g, offsetof(hw_frame, fault_loc)));
    hw_lv call = hwg_frame_once(g, offsetof(hw_frame, call), g->ptr);
    hw_lv table =
        LLVMBuildLoad2(g->b, g->ptr, hwg_gep_k(g, call, offsetof(hw_callbacks, helpers)), "");
    hw_lv fn = LLVMBuildLoad2(g->b, g->ptr, hwg_gep_k(g, table, (int64_t)in->imm * 8), "");
    hw_lt args[] = { g->ptr, g->i32, g->ptr, g->i64 };
    LLVMBuildCall2(g->b, LLVMFunctionType(g->voidt, args, 4, false), fn,
                   (hw_lv[]){ g->frame, g->exec, io, hwg_k(g->i64, in->aux) }, 4, "");
    for (unsigned i = 0; i < in->ndst; i++)
        if (hwg_wanted(in->dst[i]))
            hwg_write(g, in->dst[i],
                      hwg_varying(get_array(g, hwg_dst_type(g, in->dst[i]), out[i])));
}

/* ---- what calls need ---- */

typedef struct depth {
    const hw_wir_module *m;
    uint8_t *state; /* 0 new, 1 being looked at, 2 done */
    uint32_t *bytes;
    bool recursive;
} depth;

static uint32_t stack_of(depth *d, uint32_t f);

static uint32_t deepest_call(depth *d, uint32_t f)
{
    uint32_t most = 0;
    const hw_wir_function *fn = &d->m->functions.ptr[f];
    for (size_t b = 0; b < fn->blocks.len; b++)
        for (size_t i = 0; i < fn->blocks.ptr[b].insns.len; i++) {
            const hw_wir_insn *in = &fn->blocks.ptr[b].insns.ptr[i];
            bool any = in->op == HW_W_CALLI;
            if (!any && in->op != HW_W_CALL)
                continue;
            for (uint32_t t = any ? 1 : (uint32_t)in->imm;
                 t < (any ? d->m->functions.len : in->imm + 1); t++) {
                if (any && !hw_wir_can_call(fn, in, &d->m->functions.ptr[t]))
                    continue;
                uint32_t n = stack_of(d, t) + HW_WIR_CALL_BYTES;
                most = n > most ? n : most;
            }
        }
    return most;
}

static uint32_t stack_of(depth *d, uint32_t f)
{
    if (d->state[f] == 1)
        d->recursive = true;
    if (d->state[f])
        return d->bytes[f];
    d->state[f] = 1;
    d->bytes[f] = d->m->functions.ptr[f].local_bytes;
    d->bytes[f] += deepest_call(d, f);
    d->state[f] = 2;
    return d->bytes[f];
}

/* Local memory of a lane, callees included; is there recursion. */
void hwg_stack_needs(hw_gen *g)
{
    depth d = { .m = g->m,
                .state = HW_NEW_N(g->arena, uint8_t, g->m->functions.len),
                .bytes = HW_NEW_N(g->arena, uint32_t, g->m->functions.len) };
    uint32_t calls = stack_of(&d, 0), frames = g->m->functions.ptr[0].local_bytes;
    frames += g->m->stack_bytes;
    g->info->local_bytes = calls > frames ? calls : frames;
    g->info->recursive = d.recursive || g->m->deep_stack;
}

/* SPDX-License-Identifier: Apache-2.0
 * Calls of the device runtime: operands read from the warp's registers and checked, lane by lane,
 * then handed to the launch's runtime. Device malloc and free are this room's own. */
#include "exec.h"

static const struct {
    const char *operands;
    char result;
} functions[HW_DC_COUNT] = {
#define HW_DEVICE_CALL(id, name, operands, result) { operands, result },
#include "device_call.def"
#undef HW_DEVICE_CALL
};

static uint64_t operand(hw_frame *f, const hw_lane_arrays *io, uint32_t k, uint32_t lane, char kind)
{
    uint64_t v =
        kind == 'i' ? ((const uint32_t *)io->src[k])[lane] : ((const uint64_t *)io->src[k])[lane];
    uint32_t bytes = kind == 'o'   ? 4
                     : kind == 'O' ? 8
                     : kind == 'd' ? 12
                     : kind == 'A' ? HW_DEVICE_FUNC_ATTRIBUTES
                                   : 0;
    if (bytes && v)
        hw_device_readable(f, v, bytes);
    return v;
}

static void take(hw_frame *f, const hw_lane_arrays *io, uint32_t lane, hw_device_call *c)
{
    const char *operands = functions[c->function].operands;
    for (uint32_t k = 0, dims = 0; operands[k] && k < io->nsrc; k++) {
        c->args[k] = operand(f, io, k, lane, operands[k]);
        if (operands[k] == 'd' && c->args[k])
            memcpy(c->dims[dims++], (const void *)(uintptr_t)c->args[k], sizeof c->dims[0]);
    }
}

/* cudaMalloc and cudaFree in a kernel: as malloc and free. */
static uint64_t memory(hw_exec *x, const hw_device_call *c)
{
    enum { INVALID_VALUE = 1, NO_MEMORY = 2 };
    if (c->function == HW_DC_FREE)
        return c->args[0] && !hw_heap_give(&x->heap, c->args[0]) ? INVALID_VALUE : 0;
    if (!c->args[0])
        return INVALID_VALUE;
    uint64_t p = hw_heap_take(&x->heap, c->args[1]);
    memcpy((void *)(uintptr_t)c->args[0], &p, sizeof p);
    return p ? 0 : NO_MEMORY;
}

static void give(const hw_lane_arrays *io, hw_device_function function, uint32_t lane, uint64_t v)
{
    if (!io->ndst || !io->dst[0])
        return;
    if (functions[function].result == 'p')
        ((uint64_t *)io->dst[0])[lane] = v;
    else
        ((uint32_t *)io->dst[0])[lane] = (uint32_t)v;
}

void hw_h_device_call(hw_frame *f, uint32_t lanes, const hw_lane_arrays *io, uint64_t aux)
{
    const hw_block *b = f->owner;
    const hw_device_runtime *r = b->run->l->runtime;
    const hw_device_function function = (hw_device_function)aux;
    const bool own = function == HW_DC_MALLOC || function == HW_DC_FREE;
    hw_device_call calls[HW_WARP_LANES];
    if (!own && !r)
        hw_raise(f, HW_F_ILLEGAL_INSTRUCTION, f->fault_loc, "this launch has no device runtime");
    /* what may fault comes first: from its first lane to its last the runtime is held */
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        f->fault_lanes = 1u << l;
        calls[l] = (hw_device_call){
            .function = function,
            .block = atomic_load_explicit(&b->index, memory_order_relaxed),
            .thread = f->warp * HW_WARP_LANES + l,
            .lanes = left == lanes ? (uint32_t)__builtin_popcount(lanes) : 0,
            .last = (left & (left - 1)) == 0,
        };
        take(f, io, l, &calls[l]);
    }
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        f->fault_lanes = 1u << l;
        give(io, function, l, own ? memory(b->x, &calls[l]) : r->call(r->ctx, &calls[l]));
    }
    f->fault_lanes = 0;
}

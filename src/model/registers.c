/* SPDX-License-Identifier: Apache-2.0
 *
 * Registers and spills of a kernel on a device: what machine code in the program says, else an
 * estimate from the PTX under the bounds it declares. */
#include "model.h"

const char *const hw_model_source_names[] = {
    [HW_MODEL_ESTIMATE] = "estimate",
    [HW_MODEL_BOUND] = "bound",
    [HW_MODEL_IMAGE] = "image",
};

enum { LEAST = 8 /* what a compiler gives the smallest kernel */, REGISTER_BYTES = 4 };

static uint32_t lower(uint32_t a, uint32_t b)
{
    return b && b < a ? b : a;
}

/* The registers of a thread with which the wanted blocks still fit a multiprocessor. */
static uint32_t by_blocks(const hw_device *d, const hw_model_launch *i)
{
    hw_occupancy_query q = hw_occupancy_query_new();
    hw_occupancy_result r;
    q.threads = i->max_threads;
    if (!i->max_threads || !i->min_blocks)
        return 0;
    for (q.registers = d->occupancy.max_registers_per_thread; q.registers > LEAST; q.registers--)
        if (hw_occupancy(d, &q, &r) && r.blocks >= i->min_blocks)
            break;
    return q.registers;
}

registers hw_model_registers(const hw_device *d, const hw_model_launch *i, uint32_t device,
                             uint32_t live, uint32_t local)
{
    const hw_model_machine *m = &i->machine[device];
    registers r = { .count = live, .source = HW_MODEL_ESTIMATE };
    if (d->vendor != HW_VENDOR_NVIDIA)
        return r;
    uint32_t most = d->occupancy.max_registers_per_thread;
    if (m->registers) {
        r = (registers){ .count = m->registers, .arch = m->arch, .source = HW_MODEL_IMAGE };
        r.spill_bytes = m->local_bytes > local ? m->local_bytes - local : 0;
    } else {
        most = lower(lower(most, i->maxnreg), by_blocks(d, i));
        r.count = live < LEAST ? LEAST : live;
    }
    if (r.count <= most)
        return r;
    r.spill_bytes += (r.count - most) * REGISTER_BYTES;
    r.count = most;
    r.source = HW_MODEL_BOUND;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0
 * One device's engine: made, limited, freed. */
#include "exec.h"

#include <stdlib.h>

static const uint64_t PRINTF_BYTES = UINT64_C(1) << 20, HEAP_BYTES = UINT64_C(8) << 20;
static const uint64_t STACK_BYTES = 1024;

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

hw_exec *hw_exec_new(const hw_device *dev, hw_mem *mem, hw_jit *jit, const hw_exec_options *o)
{
    hw_exec *x = calloc(1, sizeof *x);
    if (!x)
        hw_oom(sizeof *x);
    x->dev = dev;
    x->mem = mem;
    x->jit = jit;
    if (o)
        x->o = *o;
    x->o.workers = x->o.workers ? x->o.workers : hw_cpu_count();
    x->o.printf_bytes = or_default(x->o.printf_bytes, PRINTF_BYTES);
    x->o.heap_bytes = or_default(x->o.heap_bytes, HEAP_BYTES);
    x->o.stack_bytes = or_default(x->o.stack_bytes, STACK_BYTES);
    x->get_code = hw_code_from_jit;
    x->get_code_ctx = jit;
    x->pool = hw_pool_new(x->o.workers);
    x->names = hw_arena_new();
    pthread_mutex_init(&x->lock, NULL);
    hw_heap_init(&x->heap, mem, x->o.heap_bytes);
    x->streams = hw_streams_new();
    hw_fault_install();
    return x;
}

void hw_exec_free(hw_exec *x)
{
    if (!x)
        return;
    if (!hw_streams_free(x->streams))
        return; /* all of it may be in use */
    hw_pool_free(x->pool);
    hw_blocks_free(x);
    while (x->rooms) {
        hw_room *r = x->rooms;
        x->rooms = r->next;
        hw_mem_free(x->mem, r->addr);
        free(r);
    }
    hw_heap_free_all(&x->heap);
    hw_arena_free(x->names);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

void hw_exec_code_from(hw_exec *x, hw_code_fn *get, void *ctx)
{
    x->get_code = get;
    x->get_code_ctx = ctx;
}

hw_status hw_exec_set_limit(hw_exec *x, hw_exec_limit which, uint64_t value)
{
    /* The heap cannot change once a kernel has used it (CUDA C++ Programming Guide, "Heap Memory
     * Allocation"). */
    if (which == HW_EXEC_HEAP)
        HW_TRY(hw_heap_resize(&x->heap, value));
    pthread_mutex_lock(&x->lock);
    uint64_t *const limits[] = { [HW_EXEC_STACK] = &x->o.stack_bytes,
                                 [HW_EXEC_PRINTF] = &x->o.printf_bytes,
                                 [HW_EXEC_HEAP] = &x->o.heap_bytes };
    *limits[which] = value;
    pthread_mutex_unlock(&x->lock);
    return HW_OK;
}

uint64_t hw_exec_get_limit(hw_exec *x, hw_exec_limit which)
{
    pthread_mutex_lock(&x->lock);
    const uint64_t limits[] = { [HW_EXEC_STACK] = x->o.stack_bytes,
                                [HW_EXEC_PRINTF] = x->o.printf_bytes,
                                [HW_EXEC_HEAP] = x->o.heap_bytes };
    uint64_t value = limits[which];
    pthread_mutex_unlock(&x->lock);
    return value;
}

bool hw_exec_heap_holds(hw_exec *x, uint64_t addr, uint64_t bytes)
{
    pthread_mutex_lock(&x->heap.lock);
    uint64_t base = x->heap.base, size = x->heap.size;
    pthread_mutex_unlock(&x->heap.lock);
    return base && addr >= base && bytes <= size && addr - base <= size - bytes;
}

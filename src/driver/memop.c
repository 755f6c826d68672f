/* SPDX-License-Identifier: Apache-2.0
 * Streams' memory operations: wait for a value in memory, write one; batches; profiler control.
 * (CUDA Driver API, "Stream Memory Operations", "Profiler Control".)
 */
#include "driver.h"

#include <stdlib.h>
#include <time.h>

enum { WAIT_GEQ, WAIT_EQ, WAIT_AND, WAIT_NOR, WAIT_FLUSH = 1 << 30 };
enum { OP_WAIT32 = 1, OP_WRITE32 = 2, OP_FLUSH = 3, OP_WAIT64 = 4, OP_WRITE64 = 5, OP_BARRIER = 6 };

typedef struct memop {
    hw_cu_context *ctx;
    int operation;
    uint64_t address, value;
    unsigned flags;
} memop;

static bool satisfied(const memop *op)
{
    bool wide = op->operation == OP_WAIT64;
    uint64_t now = wide ? __atomic_load_n((uint64_t *)(uintptr_t)op->address, __ATOMIC_ACQUIRE)
                        : __atomic_load_n((uint32_t *)(uintptr_t)op->address, __ATOMIC_ACQUIRE);
    switch (op->flags & 3) {
    case WAIT_GEQ: /* cyclic */
        return wide ? (int64_t)(now - op->value) >= 0 : (int32_t)(uint32_t)(now - op->value) >= 0;
    case WAIT_EQ:
        return now == op->value;
    case WAIT_AND:
        return (now & op->value) != 0;
    default:
        return wide ? ~(now | op->value) != 0 : (uint32_t)~(now | op->value) != 0;
    }
}

static hw_status memop_run(void *p, hw_fault *fault)
{
    (void)fault;
    const memop *op = p;
    bool wide = op->operation == OP_WAIT64 || op->operation == OP_WRITE64;
    const struct timespec pause = { 0, 20000 };
    if (op->operation == OP_WRITE32)
        __atomic_store_n((uint32_t *)(uintptr_t)op->address, (uint32_t)op->value, __ATOMIC_RELEASE);
    if (op->operation == OP_WRITE64)
        __atomic_store_n((uint64_t *)(uintptr_t)op->address, op->value, __ATOMIC_RELEASE);
    if (op->operation != OP_WAIT32 && op->operation != OP_WAIT64)
        return HW_OK;
    while (hw_cu_accessible(op->address, wide ? 8 : 4) && !satisfied(op)) {
        if (hw_cu_sticky(op->ctx) != CUDA_SUCCESS || hw_cu_ready() != CUDA_SUCCESS)
            break;
        nanosleep(&pause, NULL);
    }
    return HW_OK;
}

static CUresult memop_submit(CUstream stream, int operation, uint64_t address, uint64_t value,
                             unsigned flags)
{
    hw_cu_stream *s;
    bool wide = operation == OP_WAIT64 || operation == OP_WRITE64;
    bool wait = operation == OP_WAIT32 || operation == OP_WAIT64;
    CU_TRY(hw_cu_find_stream(stream, &s));
    CU_NEED(!s->capture, STREAM_CAPTURE_UNSUPPORTED);
    CU_NEED(wait ? (flags & ~(unsigned)(3 | WAIT_FLUSH)) == 0 : flags <= 1, INVALID_VALUE);
    CU_NEED(address % (wide ? 8 : 4) == 0 && hw_cu_accessible(address, wide ? 8 : 4),
            INVALID_VALUE);
    memop *op = malloc(sizeof *op);
    CU_NEED(op, OUT_OF_MEMORY);
    *op = (memop){ s->ctx, operation, address, value, flags };
    return hw_cu_submit(s, memop_run, free, op);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned int flags)
{
    return memop_submit(stream, OP_WAIT32, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned int flags)
{
    return memop_submit(stream, OP_WAIT64, address, value, flags);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned int flags)
{
    return memop_submit(stream, OP_WRITE32, address, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned int flags)
{
    return memop_submit(stream, OP_WRITE64, address, value, flags);
}

static CUresult batch_item(CUstream stream, const CUstreamBatchMemOpParams *p)
{
    switch (p->operation) {
    case OP_WAIT32:
    case OP_WRITE32:
        return memop_submit(stream, p->operation, p->waitValue.address, p->waitValue.value,
                            p->waitValue.flags);
    case OP_WAIT64:
    case OP_WRITE64:
        return memop_submit(stream, p->operation, p->waitValue.address, p->waitValue.value64,
                            p->waitValue.flags);
    case OP_FLUSH:
    case OP_BARRIER: /* tasks of a stream see what earlier ones wrote */
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *params,
                               unsigned int flags)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(n <= 256 && (params || !n) && flags == 0, INVALID_VALUE);
    for (unsigned i = 0; i < n; i++) {
        CU_TRY(batch_item(stream, &params[i]));
    }
    return CUDA_SUCCESS;
}

/* ---- profiler: there is none to start here; `halfwarp profile` watches from outside ---- */

CUresult cuProfilerInitialize(const char *config, const char *output, CUoutput_mode mode)
{
    (void)config;
    (void)output;
    (void)mode;
    return CUDA_ERROR_PROFILER_DISABLED;
}

CUresult cuProfilerStart(void)
{
    hw_cu_context *ctx;
    return hw_cu_current_any(&ctx);
}

CUresult cuProfilerStop(void)
{
    hw_cu_context *ctx;
    return hw_cu_current_any(&ctx);
}

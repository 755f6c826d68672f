/* SPDX-License-Identifier: Apache-2.0
 * Streams' memory operations: wait for a value in memory, write one; batches; profiler control.
 * (CUDA Driver API, "Stream Memory Operations", "Profiler Control".)
 */
#include "capture.h"

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

/* One operation of a batch, checked. False in *some: there is nothing to do. */
static CUresult memop_of(hw_cu_context *ctx, const CUstreamBatchMemOpParams *p, memop *op,
                         bool *some)
{
    const int kind = (int)p->operation;
    bool wide = kind == OP_WAIT64 || kind == OP_WRITE64,
         wait = kind == OP_WAIT32 || kind == OP_WAIT64;
    const unsigned flags = p->waitValue.flags;
    *some = kind != OP_FLUSH && kind != OP_BARRIER; /* tasks see what earlier ones wrote */
    if (!*some)
        return CUDA_SUCCESS;
    CU_NEED(kind >= OP_WAIT32 && kind <= OP_WRITE64, INVALID_VALUE);
    CU_NEED(wait ? (flags & ~(unsigned)(3 | WAIT_FLUSH)) == 0 : flags <= 1, INVALID_VALUE);
    *op = (memop){ ctx, kind, p->waitValue.address,
                   wide ? p->waitValue.value64 : p->waitValue.value, flags };
    CU_NEED(op->address % (wide ? 8 : 4) == 0 && hw_cu_accessible(op->address, wide ? 8 : 4),
            INVALID_VALUE);
    return CUDA_SUCCESS;
}

CUresult hw_cu_memops_check(hw_cu_context *ctx, const CUstreamBatchMemOpParams *p, unsigned n,
                            unsigned flags)
{
    enum { MOST = 256 };
    memop op;
    bool some;
    CU_NEED(n <= MOST && (p || !n) && flags == 0, INVALID_VALUE);
    for (unsigned i = 0; i < n; i++) {
        CU_TRY(memop_of(ctx, &p[i], &op, &some));
    }
    return CUDA_SUCCESS;
}

CUresult hw_cu_memops_submit(hw_cu_stream *s, const CUstreamBatchMemOpParams *p, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        memop op;
        bool some;
        CU_TRY(memop_of(s->ctx, &p[i], &op, &some));
        memop *task = some ? malloc(sizeof *task) : NULL;
        if (!some)
            continue;
        CU_NEED(task, OUT_OF_MEMORY);
        *task = op;
        CU_TRY(hw_cu_submit(s, memop_run, free, task));
    }
    return CUDA_SUCCESS;
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int n, CUstreamBatchMemOpParams *params,
                               unsigned int flags)
{
    hw_cu_stream *s;
    hw_cu_node *node;
    CU_TRY(hw_cu_find_stream(stream, &s));
    CU_TRY(hw_cu_memops_check(s->ctx, params, n, flags));
    const CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                  .memOp = { s->ctx->handle, n, params, flags } };
    return s->capture ? hw_cu_capture_add(s, &p, &node) : hw_cu_memops_submit(s, params, n);
}

static CUresult one(CUstream stream, int operation, uint64_t address, uint64_t value,
                    unsigned flags)
{
    CUstreamBatchMemOpParams p = { .waitValue = { .operation = operation,
                                                  .address = address,
                                                  .value64 = value,
                                                  .flags = flags } };
    return cuStreamBatchMemOp_v2(stream, 1, &p, 0);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned int flags)
{
    return one(stream, OP_WAIT32, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned int flags)
{
    return one(stream, OP_WAIT64, address, value, flags);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned int flags)
{
    return one(stream, OP_WRITE32, address, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned int flags)
{
    return one(stream, OP_WRITE64, address, value, flags);
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

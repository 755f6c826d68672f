/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph nodes by type: how a description is checked and made ready, copied, submitted; the entry points that add, read
 * and change nodes. Every typed entry point becomes the general one, cuGraphAddNode's.
 */
#include "graph.h"
#include "profile.h"

#include <stdlib.h>

/* ---- kernels ---- */

void hw_cu_node_take_launch(hw_cu_node *n, hw_cu_launch *l)
{
    const hw_cu_function *f = l->f;
    const hw_ptx_kernel *k = &f->program->ptx->kernels[f->index];
    free(n->launch);
    free(n->args);
    n->launch = l;
    n->args = calloc(k->nparams + 1, sizeof *n->args);
    for (uint32_t i = 0; n->args && i < k->nparams; i++) {
        n->args[i] = l->params + k->params[i].offset;
    }
    n->params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    n->params.kernel = (CUDA_KERNEL_NODE_PARAMS_v2){
        .func = hw_cu_function_handle(l->f),
        .gridDimX = l->grid[0],
        .gridDimY = l->grid[1],
        .gridDimZ = l->grid[2],
        .blockDimX = l->block[0],
        .blockDimY = l->block[1],
        .blockDimZ = l->block[2],
        .sharedMemBytes = l->dynamic,
        .kernelParams = n->args,
        .ctx = f->module->ctx->handle,
    };
    n->cooperative = l->cooperative;
}

static CUresult set_kernel(hw_cu_node *n, const CUgraphNodeParams *p)
{
    hw_cu_function *f;
    hw_cu_context *ctx;
    hw_cu_launch *l;
    const CUDA_KERNEL_NODE_PARAMS_v2 *k = &p->kernel;
    CU_TRY(hw_cu_find_function(k->func ? k->func : (CUfunction)k->kern, &f));
    if (f->kind == HW_CU_FUNCTION)
        ctx = f->module->ctx;
    else if (k->ctx)
        CU_TRY(hw_cu_find_context(k->ctx, &ctx));
    else
        CU_TRY(hw_cu_current(&ctx));
    hw_cu_shape s = { { k->gridDimX, k->gridDimY, k->gridDimZ },
                      { k->blockDimX, k->blockDimY, k->blockDimZ },
                      k->sharedMemBytes,
                      n->cooperative,
                      { 0 } };
    if (n->launch)
        memcpy(s.cluster, n->launch->said_cluster, sizeof s.cluster);
    CU_TRY(hw_cu_activate(ctx));
    CU_TRY(hw_cu_launch_new(f, ctx, &s, k->kernelParams, k->extra, &l));
    hw_cu_node_take_launch(n, l);
    return CUDA_SUCCESS;
}

/* Its module may have been unloaded since. */
static bool kernel_is_there(const hw_cu_node *n)
{
    return hw_cu_handle_get(n->params.kernel.func, HW_CU_FUNCTION) == n->launch->f;
}

static CUresult submit_kernel(hw_cu_node *n, hw_cu_stream *s)
{
    CU_NEED(kernel_is_there(n), INVALID_HANDLE);
    hw_cu_launch *l = hw_cu_launch_copy(n->launch);
    CU_NEED(l, OUT_OF_MEMORY);
    return hw_cu_submit_launch(s, l);
}

/* ---- copies and fills ---- */

static CUresult set_memcpy(hw_cu_node *n, const CUgraphNodeParams *p)
{
    CU_TRY(hw_cu_copy_of_3d(&p->memcpy.copyParams, &n->copy));
    n->params.memcpy = p->memcpy;
    return CUDA_SUCCESS;
}

static hw_status memcpy_run(void *p, hw_fault *fault)
{
    (void)fault;
    hw_cu_copy_now(p);
    return HW_OK;
}

static CUresult submit_memcpy(hw_cu_node *n, hw_cu_stream *s)
{
    hw_cu_copy *c = malloc(sizeof *c);
    CU_NEED(c, OUT_OF_MEMORY);
    *c = n->copy;
    return hw_cu_submit(s, memcpy_run, free, c);
}

static CUresult set_memset(hw_cu_node *n, const CUgraphNodeParams *p)
{
    const CUDA_MEMSET_NODE_PARAMS *m = &p->memset.p;
    CU_TRY(hw_cu_fill_of(
        (hw_cu_fill){ m->dst, m->pitch, m->width, m->height, m->value, m->elementSize }, &n->fill));
    n->params.memset = p->memset;
    return CUDA_SUCCESS;
}

static hw_status memset_run(void *p, hw_fault *fault)
{
    (void)fault;
    hw_cu_fill_now(p);
    return HW_OK;
}

static CUresult submit_memset(hw_cu_node *n, hw_cu_stream *s)
{
    hw_cu_fill *f = malloc(sizeof *f);
    CU_NEED(f, OUT_OF_MEMORY);
    *f = n->fill;
    return hw_cu_submit(s, memset_run, free, f);
}

/* ---- host functions, events, nothing ---- */

static CUresult set_host(hw_cu_node *n, const CUgraphNodeParams *p)
{
    CU_NEED(p->host.fn, INVALID_VALUE);
    n->params.host = p->host;
    return CUDA_SUCCESS;
}

static CUresult submit_host(hw_cu_node *n, hw_cu_stream *s)
{
    return hw_cu_submit_host(s, n->params.host.fn, n->params.host.userData);
}

static CUresult set_event(hw_cu_node *n, const CUgraphNodeParams *p)
{
    CU_NEED(hw_cu_handle_get(p->eventWait.event, HW_CU_EVENT), INVALID_HANDLE);
    n->params.eventWait = p->eventWait; /* eventRecord has the same form */
    return CUDA_SUCCESS;
}

static CUresult submit_wait(hw_cu_node *n, hw_cu_stream *s)
{
    hw_cu_event *e = hw_cu_handle_get(n->params.eventWait.event, HW_CU_EVENT);
    CU_NEED(e, INVALID_HANDLE);
    hw_cu_event_block(s, e);
    return CUDA_SUCCESS;
}

static CUresult submit_record(hw_cu_node *n, hw_cu_stream *s)
{
    hw_cu_event *e = hw_cu_handle_get(n->params.eventRecord.event, HW_CU_EVENT);
    CU_NEED(e, INVALID_HANDLE);
    hw_cu_event_record(e, s);
    return CUDA_SUCCESS;
}

static CUresult set_nothing(hw_cu_node *n, const CUgraphNodeParams *p)
{
    (void)n;
    (void)p;
    return CUDA_SUCCESS;
}

static CUresult submit_nothing(hw_cu_node *n, hw_cu_stream *s)
{
    (void)n;
    (void)s;
    return CUDA_SUCCESS;
}

/* ---- child graphs ---- */

static bool is_within(const hw_cu_graph *g, const hw_cu_graph *outer)
{
    while (g && g != outer)
        g = g->parent;
    return g == outer;
}

/* What a child node may not be made of. Memory nodes may be moved but not cloned. */
static CUresult check_child(const hw_cu_node *n, const hw_cu_graph *g, int ownership)
{
    const bool moves = ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    CU_NEED(moves || ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, INVALID_VALUE);
    CU_NEED(!is_within(n->graph, g), INVALID_VALUE);
    CU_NEED(!hw_cu_graph_has(g, CU_GRAPH_NODE_TYPE_CONDITIONAL), INVALID_VALUE);
    CU_NEED(!moves || (n->handle && !n->child && !g->is_child), INVALID_VALUE);
    CU_NEED(moves || (!hw_cu_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC) &&
                      !hw_cu_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_FREE)),
            INVALID_VALUE);
    return CUDA_SUCCESS;
}

static CUresult set_graph(hw_cu_node *n, const CUgraphNodeParams *p)
{
    hw_cu_graph *g, *child;
    CU_TRY(hw_cu_find_graph(p->graph.graph, &g));
    CU_TRY(check_child(n, g, p->graph.ownership));
    if (p->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        child = g;
    else
        CU_TRY(hw_cu_graph_clone(g, n->handle != NULL, &child));
    child->is_child = true;
    child->parent = n->graph;
    if (n->child)
        hw_cu_graph_free(n->child);
    n->child = child;
    n->params.graph.graph = child->handle;
    n->params.graph.ownership = p->graph.ownership;
    return CUDA_SUCCESS;
}

static CUresult submit_graph(hw_cu_node *n, hw_cu_stream *s)
{
    return hw_cu_graph_submit(n->child, s);
}

/* ---- memory: an allocation node's memory stays reserved as long as any graph has the node ---- */

static void memory_release(hw_cu_graph_memory *m)
{
    hw_mem_info info;
    if (!m || --m->refs)
        return;
    hw_cu_block *b = hw_cu_find_block(m->address, &info);
    if (b && info.base == m->address)
        hw_cu_free_block(b);
    m->gpu->graph_bytes -= m->size;
    free(m);
}

static CUresult set_alloc(hw_cu_node *n, const CUgraphNodeParams *p)
{
    hw_cu_context *ctx;
    hw_mem_info info;
    CU_NEED(!n->memory && p->alloc.bytesize, INVALID_VALUE); /* cannot be changed */
    CU_TRY(hw_cu_current(&ctx));
    hw_cu_graph_memory *m = calloc(1, sizeof *m);
    CU_NEED(m, OUT_OF_MEMORY);
    *m = (hw_cu_graph_memory){ .refs = 1, .gpu = ctx->gpu, .size = p->alloc.bytesize };
    CUresult r = hw_cu_alloc(ctx, m->size, 0, HW_MEM_DEVICE, 0, &m->address);
    if (r != CUDA_SUCCESS) {
        free(m);
        return r;
    }
    hw_cu_find_block(m->address, &info)->of_graph = true;
    m->gpu->graph_bytes += m->size;
    if (m->gpu->graph_bytes > m->gpu->graph_high)
        m->gpu->graph_high = m->gpu->graph_bytes;
    n->memory = m;
    n->params.alloc = p->alloc;
    n->params.alloc.dptr = m->address;
    return CUDA_SUCCESS;
}

static CUresult set_free(hw_cu_node *n, const CUgraphNodeParams *p)
{
    hw_mem_info info;
    const hw_cu_block *b = hw_cu_find_block(p->free.dptr, &info);
    CU_NEED(b && b->of_graph && info.base == p->free.dptr, INVALID_VALUE);
    n->params.free = p->free;
    return CUDA_SUCCESS;
}

/* ---- operations on memory ---- */

static CUresult set_memops(hw_cu_node *n, const CUgraphNodeParams *p)
{
    hw_cu_context *ctx;
    if (p->memOp.ctx)
        CU_TRY(hw_cu_find_context(p->memOp.ctx, &ctx));
    else
        CU_TRY(hw_cu_current(&ctx));
    const unsigned count = p->memOp.count;
    CU_TRY(hw_cu_memops_check(ctx, p->memOp.paramArray, count, p->memOp.flags));
    CUstreamBatchMemOpParams *ops = calloc(count ? count : 1, sizeof *ops);
    CU_NEED(ops, OUT_OF_MEMORY);
    if (count)
        memcpy(ops, p->memOp.paramArray, count * sizeof *ops);
    free(n->ops);
    n->ops = ops;
    n->params.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS){ ctx->handle, count, ops, 0 };
    return CUDA_SUCCESS;
}

static CUresult submit_memops(hw_cu_node *n, hw_cu_stream *s)
{
    return hw_cu_memops_submit(s, n->ops, n->params.memOp.count);
}

/* ---- carried out as part of a conditional node ---- */

static hw_status run_kernel(hw_cu_node *n, uint32_t stream, hw_fault *fault)
{
    if (!kernel_is_there(n))
        return HW_OK;
    n->launch->stream = stream;
    hw_cu_profile_submit(n->launch);
    return hw_cu_launch_now(n->launch, fault);
}

static hw_status run_memcpy(hw_cu_node *n, uint32_t stream, hw_fault *fault)
{
    (void)stream;
    return memcpy_run(&n->copy, fault);
}

static hw_status run_memset(hw_cu_node *n, uint32_t stream, hw_fault *fault)
{
    (void)stream;
    return memset_run(&n->fill, fault);
}

static hw_status run_graph(hw_cu_node *n, uint32_t stream, hw_fault *fault)
{
    return hw_cu_graph_run(n->child, stream, fault);
}

static hw_status run_nothing(hw_cu_node *n, uint32_t stream, hw_fault *fault)
{
    (void)n, (void)stream, (void)fault;
    return HW_OK;
}

/* ---- by type ---- */

static const struct {
    CUresult (*set)(hw_cu_node *n, const CUgraphNodeParams *p);
    CUresult (*submit)(hw_cu_node *n, hw_cu_stream *s);
    hw_status (*run)(hw_cu_node *n, uint32_t stream, hw_fault *fault); /* NULL: not in bodies */
} kinds[] = {
    [CU_GRAPH_NODE_TYPE_KERNEL] = { set_kernel, submit_kernel, run_kernel },
    [CU_GRAPH_NODE_TYPE_MEMCPY] = { set_memcpy, submit_memcpy, run_memcpy },
    [CU_GRAPH_NODE_TYPE_MEMSET] = { set_memset, submit_memset, run_memset },
    [CU_GRAPH_NODE_TYPE_HOST] = { set_host, submit_host, NULL },
    [CU_GRAPH_NODE_TYPE_GRAPH] = { set_graph, submit_graph, run_graph },
    [CU_GRAPH_NODE_TYPE_EMPTY] = { set_nothing, submit_nothing, run_nothing },
    [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = { set_event, submit_wait, NULL },
    [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = { set_event, submit_record, NULL },
    [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = { set_alloc, submit_nothing, NULL },
    [CU_GRAPH_NODE_TYPE_MEM_FREE] = { set_free, submit_nothing, NULL },
    [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = { set_memops, submit_memops, NULL },
    [CU_GRAPH_NODE_TYPE_CONDITIONAL] = { hw_cu_conditional_set, hw_cu_conditional_submit,
                                         hw_cu_conditional_run },
};

static bool known(CUgraphNodeType t)
{
    return (unsigned)t < HW_COUNTOF(kinds) && kinds[t].set;
}

CUresult hw_cu_node_set(hw_cu_node *n, const CUgraphNodeParams *p)
{
    CU_NEED(p->type == n->params.type, INVALID_VALUE);
    if (!known(p->type)) {
        hw_cu_notice("graph nodes of type %d are not supported yet (docs/coverage-driver.md)",
                     (int)p->type);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return kinds[p->type].set(n, p);
}

CUresult hw_cu_node_submit(hw_cu_node *n, hw_cu_stream *s)
{
    return n->enabled ? kinds[n->params.type].submit(n, s) : CUDA_SUCCESS;
}

hw_status hw_cu_node_run(hw_cu_node *n, uint32_t stream, hw_fault *fault)
{
    return n->enabled ? kinds[n->params.type].run(n, stream, fault) : HW_OK;
}

bool hw_cu_node_may_be_in_body(const hw_cu_node *n)
{
    return kinds[n->params.type].run != NULL;
}

void hw_cu_node_clear(hw_cu_node *n)
{
    free(n->launch);
    free(n->args);
    free(n->ops);
    hw_cu_conditional_clear(n);
    if (n->child)
        hw_cu_graph_free(n->child);
    memory_release(n->memory);
    n->launch = NULL;
    n->args = NULL;
    n->child = NULL;
    n->memory = NULL;
    n->ops = NULL;
}

static CUresult copy_parts(hw_cu_node *to, const hw_cu_node *from)
{
    const size_t bytes = from->params.memOp.count * sizeof *from->ops;
    if (from->ops) {
        to->ops = malloc(bytes ? bytes : 1);
        CU_NEED(to->ops, OUT_OF_MEMORY);
        memcpy(to->ops, from->ops, bytes);
        to->params.memOp.paramArray = to->ops;
    }
    if (from->condition)
        CU_TRY(hw_cu_conditional_copy(to, from));
    if (!from->child)
        return CUDA_SUCCESS;
    CU_TRY(hw_cu_graph_clone(from->child, to->handle != NULL, &to->child));
    to->child->is_child = true;
    to->child->parent = to->graph;
    to->params.graph.graph = to->child->handle;
    return CUDA_SUCCESS;
}

CUresult hw_cu_node_copy(hw_cu_node *to, const hw_cu_node *from)
{
    to->params = from->params;
    to->copy = from->copy;
    to->fill = from->fill;
    to->enabled = from->enabled;
    to->cooperative = from->cooperative;
    if (from->launch) {
        hw_cu_launch *l = hw_cu_launch_copy(from->launch);
        CU_NEED(l, OUT_OF_MEMORY);
        hw_cu_node_take_launch(to, l);
    }
    if (from->memory) {
        to->memory = from->memory;
        to->memory->refs++;
    }
    if (from->attributes) {
        to->attributes = malloc(16 * sizeof *to->attributes);
        CU_NEED(to->attributes, OUT_OF_MEMORY);
        memcpy(to->attributes, from->attributes, 16 * sizeof *to->attributes);
    }
    return copy_parts(to, from);
}

/* ---- adding ---- */

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph handle, const CUgraphNode *needs, size_t n,
                        CUgraphNodeParams *p)
{
    hw_cu_graph *g;
    hw_cu_node *node;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(out && p, INVALID_VALUE);
    CU_TRY(hw_cu_node_add(g, needs, n, p, &node));
    *out = node->handle;
    if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        p->alloc.dptr = node->params.alloc.dptr;
    if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
        p->graph.graph = node->params.graph.graph;
    if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        p->conditional = node->params.conditional;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *needs,
                           const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *p)
{
    for (size_t i = 0; edges && i < n; i++) {
        CU_NEED(edges[i].type <= 1 && !edges[i].to_port, INVALID_VALUE);
    }
    return cuGraphAddNode(out, g, needs, n, p);
}

static CUDA_KERNEL_NODE_PARAMS_v2 from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS_v2 k = { 0 };
    memcpy(&k, p, sizeof *p); /* v2 begins with v1 */
    return k;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                                 const CUDA_KERNEL_NODE_PARAMS_v2 *k)
{
    CU_NEED(k, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *k };
    return cuGraphAddNode(out, g, needs, n, &p);
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                              const CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    CU_NEED(k, INVALID_VALUE);
    const CUDA_KERNEL_NODE_PARAMS_v2 v2 = from_v1(k);
    return cuGraphAddKernelNode_v2(out, g, needs, n, &v2);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                              const CUDA_MEMCPY3D *c, CUcontext ctx)
{
    CU_NEED(c, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEMCPY,
                            .memcpy = { .copyCtx = ctx, .copyParams = *c } };
    return cuGraphAddNode(out, g, needs, n, &p);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                              const CUDA_MEMSET_NODE_PARAMS *m, CUcontext ctx)
{
    CU_NEED(m, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = { *m, ctx } };
    return cuGraphAddNode(out, g, needs, n, &p);
}

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                            const CUDA_HOST_NODE_PARAMS *h)
{
    CU_NEED(h, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = *h };
    return cuGraphAddNode(out, g, needs, n, &p);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                                  CUgraph child)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = { child, 0 } };
    return cuGraphAddNode(out, g, needs, n, &p);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    return cuGraphAddNode(out, g, needs, n, &p);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                                   CUevent e)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = { e } };
    return cuGraphAddNode(out, g, needs, n, &p);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                                 CUevent e)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = { e } };
    return cuGraphAddNode(out, g, needs, n, &p);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                                CUDA_MEM_ALLOC_NODE_PARAMS *a)
{
    CU_NEED(a, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = *a };
    CU_TRY(cuGraphAddNode(out, g, needs, n, &p));
    a->dptr = p.alloc.dptr;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                               CUdeviceptr address)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = { address } };
    return cuGraphAddNode(out, g, needs, n, &p);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS *m)
{
    CU_NEED(m, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = *m };
    return cuGraphAddNode(out, g, needs, n, &p);
}

/* ---- reading ---- */

static CUresult node_of(CUgraphNode handle, CUgraphNodeType type, hw_cu_node **out)
{
    CU_TRY(hw_cu_find_node(handle, out));
    return (*out)->params.type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* One entry point that reads a part of a node's description. */
#define READ(symbol, TYPE, ctype, member)                       \
    CUresult symbol(CUgraphNode handle, ctype *out)             \
    {                                                           \
        hw_cu_node *n;                                          \
        CU_TRY(node_of(handle, CU_GRAPH_NODE_TYPE_##TYPE, &n)); \
        CU_NEED(out, INVALID_VALUE);                            \
        memcpy(out, &n->params.member, sizeof *out);            \
        return CUDA_SUCCESS;                                    \
    }
READ(cuGraphKernelNodeGetParams, KERNEL, CUDA_KERNEL_NODE_PARAMS_v1, kernel)
READ(cuGraphKernelNodeGetParams_v2, KERNEL, CUDA_KERNEL_NODE_PARAMS_v2, kernel)
READ(cuGraphMemcpyNodeGetParams, MEMCPY, CUDA_MEMCPY3D, memcpy.copyParams)
READ(cuGraphMemsetNodeGetParams, MEMSET, CUDA_MEMSET_NODE_PARAMS, memset.p)
READ(cuGraphHostNodeGetParams, HOST, CUDA_HOST_NODE_PARAMS, host)
READ(cuGraphChildGraphNodeGetGraph, GRAPH, CUgraph, graph.graph)
READ(cuGraphEventRecordNodeGetEvent, EVENT_RECORD, CUevent, eventRecord.event)
READ(cuGraphEventWaitNodeGetEvent, WAIT_EVENT, CUevent, eventWait.event)
READ(cuGraphMemAllocNodeGetParams, MEM_ALLOC, CUDA_MEM_ALLOC_NODE_PARAMS, alloc)
READ(cuGraphBatchMemOpNodeGetParams, BATCH_MEM_OP, CUDA_BATCH_MEM_OP_NODE_PARAMS, memOp)
READ(cuGraphMemFreeNodeGetParams, MEM_FREE, CUdeviceptr, free.dptr)

/* ---- changing: a node of a graph, or (in exec) its copy in an exec ---- */

CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams *p)
{
    hw_cu_node *n;
    CU_TRY(hw_cu_find_node(handle, &n));
    CU_NEED(p, INVALID_VALUE);
    return hw_cu_node_set(n, p);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode handle, CUgraphNodeParams *p)
{
    hw_cu_node *n;
    CU_TRY(hw_cu_find_exec_node(exec, handle, &n));
    CU_NEED(p, INVALID_VALUE);
    return hw_cu_node_set(n, p);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *k)
{
    CU_NEED(k, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *k };
    return cuGraphNodeSetParams(node, &p);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    CU_NEED(k, INVALID_VALUE);
    const CUDA_KERNEL_NODE_PARAMS_v2 v2 = from_v1(k);
    return cuGraphKernelNodeSetParams_v2(node, &v2);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2 *k)
{
    CU_NEED(k, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *k };
    return cuGraphExecNodeSetParams(exec, node, &p);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    CU_NEED(k, INVALID_VALUE);
    const CUDA_KERNEL_NODE_PARAMS_v2 v2 = from_v1(k);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &v2);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *c)
{
    CU_NEED(c, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = { .copyParams = *c } };
    return cuGraphNodeSetParams(node, &p);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *c,
                                        CUcontext ctx)
{
    CU_NEED(c, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEMCPY,
                            .memcpy = { .copyCtx = ctx, .copyParams = *c } };
    return cuGraphExecNodeSetParams(exec, node, &p);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *m)
{
    CU_NEED(m, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = { *m, NULL } };
    return cuGraphNodeSetParams(node, &p);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *m, CUcontext ctx)
{
    CU_NEED(m, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = { *m, ctx } };
    return cuGraphExecNodeSetParams(exec, node, &p);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *h)
{
    CU_NEED(h, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = *h };
    return cuGraphNodeSetParams(node, &p);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS *h)
{
    CU_NEED(h, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = *h };
    return cuGraphExecNodeSetParams(exec, node, &p);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = { child, 0 } };
    return cuGraphExecNodeSetParams(exec, node, &p);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent e)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = { e } };
    return cuGraphNodeSetParams(node, &p);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent e)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = { e } };
    return cuGraphNodeSetParams(node, &p);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent e)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = { e } };
    return cuGraphExecNodeSetParams(exec, node, &p);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent e)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = { e } };
    return cuGraphExecNodeSetParams(exec, node, &p);
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *m)
{
    CU_NEED(m, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = *m };
    return cuGraphNodeSetParams(node, &p);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS *m)
{
    CU_NEED(m, INVALID_VALUE);
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = *m };
    return cuGraphExecNodeSetParams(exec, node, &p);
}

/* ---- attributes of kernel nodes ---- */

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID which,
                                       CUkernelNodeAttrValue *value)
{
    hw_cu_node *n;
    CU_TRY(node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL, &n));
    CU_NEED(value && (unsigned)which < 16, INVALID_VALUE);
    *value = n->attributes ? n->attributes[which] : (CUkernelNodeAttrValue){ .pad = { 0 } };
    if (which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        value->cooperative = n->cooperative;
    const uint32_t *c = n->launch->said_cluster;
    if (which == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        value->clusterDim.x = c[0];
        value->clusterDim.y = c[1];
        value->clusterDim.z = c[2];
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID which,
                                       const CUkernelNodeAttrValue *value)
{
    hw_cu_node *n;
    CU_TRY(node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL, &n));
    CU_NEED(value && (unsigned)which < 16, INVALID_VALUE);
    if (which == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
        const uint32_t c[3] = { value->clusterDim.x, value->clusterDim.y, value->clusterDim.z };
        CU_TRY(hw_cu_say_cluster(n->launch, n->launch->f->module->ctx->gpu, c));
    }
    if (!n->attributes)
        n->attributes = calloc(16, sizeof *n->attributes);
    CU_NEED(n->attributes, OUT_OF_MEMORY);
    n->attributes[which] = *value;
    if (which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        n->cooperative = n->launch->cooperative = value->cooperative != 0;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
    CUkernelNodeAttrValue v;
    for (int i = 1; i < 16; i++) {
        CU_TRY(cuGraphKernelNodeGetAttribute(from, (CUkernelNodeAttrID)i, &v));
        CU_TRY(cuGraphKernelNodeSetAttribute(to, (CUkernelNodeAttrID)i, &v));
    }
    return CUDA_SUCCESS;
}

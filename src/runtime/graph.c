/* SPDX-License-Identifier: Apache-2.0
 * Graphs: the driver's, with kernels, copies and variables said in the runtime's words.
 */
#include "state.h"

typedef hw_cudaGraph_t graph_t;
typedef hw_cudaGraphNode_t node_t;
typedef hw_cudaGraphExec_t exec_t;
typedef const hw_cudaGraphNode_t *nodes_t;

/* clang-format off */
HW_DRIVER_CALL(cudaGraphCreate, (graph_t *graph, unsigned flags), graph_create(graph, flags))
HW_DRIVER_CALL(cudaGraphDestroy, (graph_t graph), graph_destroy(graph))
HW_DRIVER_CALL(cudaGraphClone, (graph_t *to, graph_t graph), graph_clone(to, graph))
HW_DRIVER_CALL(cudaGraphDebugDotPrint, (graph_t graph, const char *path, unsigned flags), graph_dot(graph, path, flags))
HW_DRIVER_CALL(cudaGraphGetNodes, (graph_t graph, node_t *nodes, size_t *n), graph_nodes(graph, nodes, n))
HW_DRIVER_CALL(cudaGraphGetRootNodes, (graph_t graph, node_t *nodes, size_t *n), graph_roots(graph, nodes, n))
HW_DRIVER_CALL(cudaGraphGetEdges, (graph_t graph, node_t *from, node_t *to, void *edges, size_t *n), graph_edges(graph, from, to, edges, n))
HW_DRIVER_CALL(cudaGraphAddDependencies, (graph_t graph, nodes_t from, nodes_t to, const void *edges, size_t n), graph_add_edges(graph, from, to, edges, n))
HW_DRIVER_CALL(cudaGraphRemoveDependencies, (graph_t graph, nodes_t from, nodes_t to, const void *edges, size_t n), graph_remove_edges(graph, from, to, edges, n))
HW_DRIVER_CALL(cudaDeviceGraphMemTrim, (int device), graph_trim(device))
HW_DRIVER_CALL(cudaDeviceGetGraphMemAttribute, (int device, int attribute, void *value), graph_get_memory(device, attribute, value))
HW_DRIVER_CALL(cudaDeviceSetGraphMemAttribute, (int device, int attribute, void *value), graph_set_memory(device, attribute, value))
HW_DRIVER_CALL(cudaGraphRetainUserObject, (graph_t graph, void *object, unsigned n, unsigned flags), graph_retain_object(graph, object, n, flags))
HW_DRIVER_CALL(cudaGraphReleaseUserObject, (graph_t graph, void *object, unsigned n), graph_release_object(graph, object, n))
HW_DRIVER_CALL(cudaUserObjectCreate, (void **object, void *data, void (*destroy)(void *), unsigned n, unsigned flags), object_create(object, data, destroy, n, flags))
HW_DRIVER_CALL(cudaUserObjectRetain, (void *object, unsigned n), object_retain(object, n))
HW_DRIVER_CALL(cudaUserObjectRelease, (void *object, unsigned n), object_release(object, n))

HW_DRIVER_CALL(cudaGraphAddHostNode, (node_t *node, graph_t graph, nodes_t after, size_t n, const void *params), add_host(node, graph, after, n, params))
HW_DRIVER_CALL(cudaGraphAddChildGraphNode, (node_t *node, graph_t graph, nodes_t after, size_t n, graph_t child), add_child(node, graph, after, n, child))
HW_DRIVER_CALL(cudaGraphAddEmptyNode, (node_t *node, graph_t graph, nodes_t after, size_t n), add_empty(node, graph, after, n))
HW_DRIVER_CALL(cudaGraphAddEventRecordNode, (node_t *node, graph_t graph, nodes_t after, size_t n, hw_cudaEvent_t event), add_record(node, graph, after, n, event))
HW_DRIVER_CALL(cudaGraphAddEventWaitNode, (node_t *node, graph_t graph, nodes_t after, size_t n, hw_cudaEvent_t event), add_wait(node, graph, after, n, event))
HW_DRIVER_CALL(cudaGraphAddMemAllocNode, (node_t *node, graph_t graph, nodes_t after, size_t n, void *params), add_alloc(node, graph, after, n, params))
HW_DRIVER_CALL(cudaGraphAddMemFreeNode, (node_t *node, graph_t graph, nodes_t after, size_t n, void *p), add_free(node, graph, after, n, (uintptr_t)p))

HW_DRIVER_CALL(cudaGraphDestroyNode, (node_t node), node_destroy(node))
HW_DRIVER_CALL(cudaGraphNodeFindInClone, (node_t *found, node_t node, graph_t clone), node_in_clone(found, node, clone))
HW_DRIVER_CALL(cudaGraphNodeGetType, (node_t node, int *type), node_type(node, type))
HW_DRIVER_CALL(cudaGraphNodeGetDependencies, (node_t node, node_t *nodes, void *edges, size_t *n), node_before(node, nodes, edges, n))
HW_DRIVER_CALL(cudaGraphNodeGetDependentNodes, (node_t node, node_t *nodes, void *edges, size_t *n), node_after(node, nodes, edges, n))
HW_DRIVER_CALL(cudaGraphKernelNodeCopyAttributes, (node_t to, node_t from), node_copy_attributes(to, from))
HW_DRIVER_CALL(cudaGraphKernelNodeGetAttribute, (node_t node, int attribute, void *value), node_get_attribute(node, attribute, value))
HW_DRIVER_CALL(cudaGraphKernelNodeSetAttribute, (node_t node, int attribute, const void *value), node_set_attribute(node, attribute, value))
HW_DRIVER_CALL(cudaGraphMemsetNodeGetParams, (node_t node, hw_cudaMemsetParams *params), node_get_set(node, params))
HW_DRIVER_CALL(cudaGraphMemsetNodeSetParams, (node_t node, const hw_cudaMemsetParams *params), node_set_set(node, params))
HW_DRIVER_CALL(cudaGraphHostNodeGetParams, (node_t node, void *params), node_get_host(node, params))
HW_DRIVER_CALL(cudaGraphHostNodeSetParams, (node_t node, const void *params), node_set_host(node, params))
HW_DRIVER_CALL(cudaGraphChildGraphNodeGetGraph, (node_t node, graph_t *graph), node_child(node, graph))
HW_DRIVER_CALL(cudaGraphEventRecordNodeGetEvent, (node_t node, hw_cudaEvent_t *event), node_get_record(node, event))
HW_DRIVER_CALL(cudaGraphEventRecordNodeSetEvent, (node_t node, hw_cudaEvent_t event), node_set_record(node, event))
HW_DRIVER_CALL(cudaGraphEventWaitNodeGetEvent, (node_t node, hw_cudaEvent_t *event), node_get_wait(node, event))
HW_DRIVER_CALL(cudaGraphEventWaitNodeSetEvent, (node_t node, hw_cudaEvent_t event), node_set_wait(node, event))
HW_DRIVER_CALL(cudaGraphMemAllocNodeGetParams, (node_t node, void *params), node_get_alloc(node, params))
HW_DRIVER_CALL(cudaGraphMemFreeNodeGetParams, (node_t node, void *p), node_get_free(node, p))

HW_DRIVER_CALL(cudaGraphInstantiate, (exec_t *exec, graph_t graph, unsigned long long flags), instantiate(exec, graph, flags))
HW_DRIVER_CALL(cudaGraphInstantiateWithFlags, (exec_t *exec, graph_t graph, unsigned long long flags), instantiate(exec, graph, flags))
HW_DRIVER_CALL(cudaGraphInstantiateWithParams, (exec_t *exec, graph_t graph, void *params), instantiate_params(exec, graph, params))
HW_DRIVER_CALL(cudaGraphInstantiateWithParams_ptsz, (exec_t *exec, graph_t graph, void *params), instantiate_params(exec, graph, params))
HW_DRIVER_CALL(cudaGraphExecDestroy, (exec_t exec), exec_destroy(exec))
HW_STREAM_CALL(cudaGraphLaunch, (exec_t exec, hw_cudaStream_t stream), exec_launch(exec, stream))
HW_STREAM_CALL(cudaGraphUpload, (exec_t exec, hw_cudaStream_t stream), exec_upload(exec, stream))
HW_DRIVER_CALL(cudaGraphExecGetFlags, (exec_t exec, unsigned long long *flags), exec_flags(exec, flags))
HW_DRIVER_CALL(cudaGraphExecUpdate, (exec_t exec, graph_t graph, void *result), exec_update(exec, graph, result))
HW_DRIVER_CALL(cudaGraphExecHostNodeSetParams, (exec_t exec, node_t node, const void *params), exec_set_host(exec, node, params))
HW_DRIVER_CALL(cudaGraphExecChildGraphNodeSetParams, (exec_t exec, node_t node, graph_t child), exec_set_child(exec, node, child))
HW_DRIVER_CALL(cudaGraphExecEventRecordNodeSetEvent, (exec_t exec, node_t node, hw_cudaEvent_t event), exec_set_record(exec, node, event))
HW_DRIVER_CALL(cudaGraphExecEventWaitNodeSetEvent, (exec_t exec, node_t node, hw_cudaEvent_t event), exec_set_wait(exec, node, event))
HW_DRIVER_CALL(cudaGraphNodeGetEnabled, (exec_t exec, node_t node, unsigned *on), exec_get_enabled(exec, node, on))
HW_DRIVER_CALL(cudaGraphNodeSetEnabled, (exec_t exec, node_t node, unsigned on), exec_set_enabled(exec, node, on))
/* clang-format on */

static int current_context(void **ctx)
{
    int error = hw_cudart_enter();
    return error ? error : hw_cu.ctx_get_current(ctx);
}

HW_CUDA(int, cudaGraphConditionalHandleCreate, unsigned long long *handle, graph_t graph,
        unsigned value, unsigned flags)
{
    void *ctx;
    HW_CUDA_TRY(current_context(&ctx));
    return hw_note(hw_cu.condition_create(handle, graph, ctx, value, flags));
}

/* ---- kernel nodes ---- */

static int kernel_params(const hw_cudaKernelNodeParams *p, hw_kernel_node *out)
{
    if (!p)
        return hw_cudaErrorInvalidValue;
    *out = (hw_kernel_node){ .grid = p->gridDim,
                             .block = p->blockDim,
                             .shared_bytes = p->sharedMemBytes,
                             .args = p->kernelParams,
                             .extra = p->extra };
    int error = current_context(&out->ctx);
    if (!error)
        error = hw_find_kernel(p->func, &out->kern);
    return error ? error : hw_check_config(p->gridDim, p->blockDim);
}

HW_CUDA(int, cudaGraphAddKernelNode, node_t *node, graph_t graph, nodes_t after, size_t n,
        const hw_cudaKernelNodeParams *params)
{
    hw_kernel_node k;
    HW_CUDA_TRY(kernel_params(params, &k));
    return hw_note(hw_cu.add_kernel(node, graph, after, n, &k));
}

HW_CUDA(int, cudaGraphKernelNodeSetParams, node_t node, const hw_cudaKernelNodeParams *params)
{
    hw_kernel_node k;
    HW_CUDA_TRY(kernel_params(params, &k));
    return hw_note(hw_cu.node_set_kernel(node, &k));
}

HW_CUDA(int, cudaGraphExecKernelNodeSetParams, exec_t exec, node_t node,
        const hw_cudaKernelNodeParams *params)
{
    hw_kernel_node k;
    HW_CUDA_TRY(kernel_params(params, &k));
    return hw_note(hw_cu.exec_set_kernel(exec, node, &k));
}

HW_CUDA(int, cudaGraphKernelNodeGetParams, node_t node, hw_cudaKernelNodeParams *params)
{
    hw_kernel_node k;
    if (!params)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_cu.node_get_kernel(node, &k));
    *params = (hw_cudaKernelNodeParams){ k.kern ? k.kern : k.func, k.grid, k.block,
                                         k.shared_bytes,           k.args, k.extra };
    return hw_cudaSuccess;
}

/* ---- copy nodes ---- */

/* A linear copy as a box of one row. */
static int linear_params(void *dst, const void *src, size_t n, int kind, hw_copy3d *out)
{
    hw_cudaMemcpy3DParms p = { .srcPtr = { (void *)src, n, n, 1 },
                               .dstPtr = { dst, n, n, 1 },
                               .extent = { n, 1, 1 },
                               .kind = kind };
    return hw_copy_params(&p, out);
}

static int to_symbol_params(const void *symbol, const void *src, size_t n, size_t offset, int kind,
                            hw_copy3d *out)
{
    void *dst;
    int error = hw_find_variable_part(symbol, n, offset, &dst);
    return error ? error : linear_params(dst, src, n, kind, out);
}

static int from_symbol_params(void *dst, const void *symbol, size_t n, size_t offset, int kind,
                              hw_copy3d *out)
{
    void *src;
    int error = hw_find_variable_part(symbol, n, offset, &src);
    return error ? error : linear_params(dst, src, n, kind, out);
}

static int add_copy(int error, node_t *node, graph_t graph, nodes_t after, size_t n,
                    const hw_copy3d *c)
{
    void *ctx;
    if (!error)
        error = current_context(&ctx);
    return hw_note(error ? error : hw_cu.add_copy(node, graph, after, n, c, ctx));
}

static int set_copy(int error, node_t node, const hw_copy3d *c)
{
    return hw_note(error ? error : hw_cu.node_set_copy(node, c));
}

static int set_exec_copy(int error, exec_t exec, node_t node, const hw_copy3d *c)
{
    void *ctx;
    if (!error)
        error = current_context(&ctx);
    return hw_note(error ? error : hw_cu.exec_set_copy(exec, node, c, ctx));
}

/* The three calls for one way of saying what is copied. */
#define COPY_NODE(suffix, say, params, args)                                                       \
    HW_EXPORT int cudaGraphAddMemcpyNode##suffix(node_t *node, graph_t graph, nodes_t after,       \
                                                 size_t n_after, params);                          \
    int cudaGraphAddMemcpyNode##suffix(node_t *node, graph_t graph, nodes_t after, size_t n_after, \
                                       params)                                                     \
    {                                                                                              \
        hw_copy3d c = { 0 };                                                                       \
        return add_copy(say(args, &c), node, graph, after, n_after, &c);                           \
    }                                                                                              \
    HW_EXPORT int cudaGraphMemcpyNodeSetParams##suffix(node_t node, params);                       \
    int cudaGraphMemcpyNodeSetParams##suffix(node_t node, params)                                  \
    {                                                                                              \
        hw_copy3d c = { 0 };                                                                       \
        return set_copy(say(args, &c), node, &c);                                                  \
    }                                                                                              \
    HW_EXPORT int cudaGraphExecMemcpyNodeSetParams##suffix(exec_t exec, node_t node, params);      \
    int cudaGraphExecMemcpyNodeSetParams##suffix(exec_t exec, node_t node, params)                 \
    {                                                                                              \
        hw_copy3d c = { 0 };                                                                       \
        return set_exec_copy(say(args, &c), exec, node, &c);                                       \
    }
#define LIST(...) __VA_ARGS__

COPY_NODE(, hw_copy_params, LIST(const hw_cudaMemcpy3DParms *p), LIST(p))
COPY_NODE(1D, linear_params, LIST(void *dst, const void *src, size_t n, int kind),
          LIST(dst, src, n, kind))
COPY_NODE(ToSymbol, to_symbol_params,
          LIST(const void *symbol, const void *src, size_t n, size_t offset, int kind),
          LIST(symbol, src, n, offset, kind))
COPY_NODE(FromSymbol, from_symbol_params,
          LIST(void *dst, const void *symbol, size_t n, size_t offset, int kind),
          LIST(dst, symbol, n, offset, kind))

HW_CUDA(int, cudaGraphMemcpyNodeGetParams, node_t node, hw_cudaMemcpy3DParms *params)
{
    hw_copy3d c;
    if (!params)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_cu.node_get_copy(node, &c));
    hw_copy_params_back(&c, params);
    return hw_cudaSuccess;
}

/* ---- set nodes ---- */

HW_CUDA(int, cudaGraphAddMemsetNode, node_t *node, graph_t graph, nodes_t after, size_t n,
        const hw_cudaMemsetParams *params)
{
    void *ctx;
    HW_CUDA_TRY(current_context(&ctx));
    return hw_note(hw_cu.add_set(node, graph, after, n, params, ctx));
}

HW_CUDA(int, cudaGraphExecMemsetNodeSetParams, exec_t exec, node_t node,
        const hw_cudaMemsetParams *params)
{
    void *ctx;
    HW_CUDA_TRY(current_context(&ctx));
    return hw_note(hw_cu.exec_set_set(exec, node, params, ctx));
}

/* ---- nodes of any type ---- */

/* CUgraphNodeParams. */
typedef struct any_node {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        hw_kernel_node kernel;
        struct {
            int flags, reserved;
            void *ctx;
            hw_copy3d params;
        } copy;
        struct {
            hw_cudaMemsetParams params;
            void *ctx;
        } set;
    };
    long long reserved2;
} any_node;

static int any_params(const hw_cudaGraphNodeParams *p, any_node *out)
{
    if (!p)
        return hw_cudaErrorInvalidValue;
    *out = (any_node){ .type = p->type };
    memcpy(out->reserved1, p->reserved1, sizeof out->reserved1);
    switch (p->type) {
    case hw_cudaGraphNodeTypeKernel:
        return kernel_params(&p->kernel, &out->kernel);
    case hw_cudaGraphNodeTypeMemcpy:
        memset(out->reserved1, 0, sizeof out->reserved1);
        int error = hw_copy_params(&p->memcpy.copyParams, &out->copy.params);
        return error ? error : current_context(&out->copy.ctx);
    case hw_cudaGraphNodeTypeMemset:
        return current_context(&out->set.ctx);
    default: /* the same in both interfaces */
        return hw_cudart_enter();
    }
}

HW_CUDA(int, cudaGraphAddNode, node_t *node, graph_t graph, nodes_t after, const void *edges,
        size_t n, hw_cudaGraphNodeParams *params)
{
    any_node any;
    HW_CUDA_TRY(any_params(params, &any));
    HW_CUDA_TRY(hw_cu.add_node(node, graph, after, edges, n, &any));
    if (params->type > hw_cudaGraphNodeTypeMemset) /* some nodes answer in their parameters */
        memcpy(params->reserved1, any.reserved1, sizeof any.reserved1);
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaGraphNodeSetParams, node_t node, hw_cudaGraphNodeParams *params)
{
    any_node any;
    HW_CUDA_TRY(any_params(params, &any));
    return hw_note(hw_cu.node_set(node, &any));
}

HW_CUDA(int, cudaGraphExecNodeSetParams, exec_t exec, node_t node, hw_cudaGraphNodeParams *params)
{
    any_node any;
    HW_CUDA_TRY(any_params(params, &any));
    return hw_note(hw_cu.exec_set(exec, node, &any));
}

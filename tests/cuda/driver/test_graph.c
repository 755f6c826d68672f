/* SPDX-License-Identifier: Apache-2.0
 * Test: graphs made node by node and by capture: order, cloning, updating, memory, errors. Kernel nodes are in
 * test_launch.c. */
#include "rig.h"

#include <pthread.h>

static int calls[8], ncalls;

static void call(void *user)
{
    calls[ncalls++] = (int)(intptr_t)user;
}

static CUgraphNode host_node(CUgraph g, const CUgraphNode *needs, size_t n, intptr_t id)
{
    const CUDA_HOST_NODE_PARAMS p = { call, (void *)id };
    CUgraphNode node;
    OK(cuGraphAddHostNode(&node, g, needs, n, &p));
    return node;
}

static void run(CUgraph g)
{
    CUgraphExec x;
    ncalls = 0;
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, NULL));
    OK(cuGraphExecDestroy(x)); /* the launch does not need it any more */
    OK(cuCtxSynchronize());
}

static void nodes_in_order(void **state)
{
    CUgraph g;
    CUgraphNode list[8];
    size_t n = 8;
    (void)state;
    OK(cuGraphCreate(&g, 0));
    CUgraphNode a = host_node(g, NULL, 0, 1), b = host_node(g, NULL, 0, 2),
                c = host_node(g, &b, 1, 3);
    OK(cuGraphAddDependencies(g, &c, &a, 1));                 /* b, c, a */
    ERR(INVALID_VALUE, cuGraphAddDependencies(g, &a, &b, 1)); /* a circle */
    ERR(INVALID_VALUE, cuGraphAddDependencies(g, &c, &a, 1)); /* there already */
    run(g);
    assert_int_equal(ncalls, 3);
    assert_int_equal(calls[0], 2);
    assert_int_equal(calls[1], 3);
    assert_int_equal(calls[2], 1);
    OK(cuGraphGetNodes(g, list, &n));
    assert_int_equal(n, 3);
    assert_null(list[5]);
    n = 8;
    OK(cuGraphGetRootNodes(g, list, &n));
    assert_int_equal(n, 1);
    assert_ptr_equal(list[0], b);
    OK(cuGraphGetEdges(g, NULL, NULL, &n));
    assert_int_equal(n, 2);
    OK(cuGraphNodeGetDependentNodes(b, list, &n));
    assert_int_equal(n, 1);
    OK(cuGraphRemoveDependencies(g, &c, &a, 1));
    OK(cuGraphNodeGetDependencies(a, NULL, &n));
    assert_int_equal(n, 0);
    OK(cuGraphDestroyNode(c));
    ERR(INVALID_VALUE, cuGraphDestroyNode(c));
    run(g);
    assert_int_equal(ncalls, 2);
    OK(cuGraphDestroy(g));
    ERR(INVALID_VALUE, cuGraphDestroy(g));
    ERR(INVALID_VALUE, cuGraphNodeGetType(a, (CUgraphNodeType *)calls));
}

static void memory_nodes(void **state)
{
    CUgraph g;
    CUgraphNode set, copy;
    CUgraphExec x;
    (void)state;
    CUdeviceptr p = rig_alloc(64), q = rig_alloc(64);
    CUDA_MEMSET_NODE_PARAMS m = { p, 0, 7, 4, 16, 1 };
    const CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                              .srcDevice = p,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = q,
                              .WidthInBytes = 64,
                              .Height = 1,
                              .Depth = 1 };
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddMemsetNode(&set, g, NULL, 0, &m, rig_current()));
    OK(cuGraphAddMemcpyNode(&copy, g, &set, 1, &c, rig_current()));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, NULL));
    assert_int_equal(rig_word(q, 15), 7);
    m.value = 9;
    OK(cuGraphExecMemsetNodeSetParams(x, set, &m, rig_current()));
    OK(cuGraphLaunch(x, NULL));
    assert_int_equal(rig_word(q, 15), 9);
    OK(cuGraphNodeSetEnabled(x, copy, 0));
    m.value = 11;
    OK(cuGraphExecMemsetNodeSetParams(x, set, &m, rig_current()));
    OK(cuGraphLaunch(x, NULL));
    assert_int_equal(rig_word(q, 15), 9);
    assert_int_equal(rig_word(p, 15), 11);
    CUDA_MEMSET_NODE_PARAMS back;
    OK(cuGraphMemsetNodeGetParams(set, &back));
    assert_int_equal(back.value, 7); /* the graph's own is as it was */
    ERR(INVALID_VALUE, cuGraphMemsetNodeGetParams(copy, &back));
    m.width = 17;
    ERR(INVALID_VALUE, cuGraphMemsetNodeSetParams(set, &m));
    OK(cuGraphExecDestroy(x));
    ERR(INVALID_VALUE, cuGraphLaunch(x, NULL));
    OK(cuGraphDestroy(g));
}

static void child_and_clone(void **state)
{
    CUgraph inner, outer, copy, got;
    CUgraphNode a, child, found;
    (void)state;
    OK(cuGraphCreate(&inner, 0));
    a = host_node(inner, NULL, 0, 1);
    host_node(inner, &a, 1, 2);
    OK(cuGraphCreate(&outer, 0));
    OK(cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner));
    host_node(outer, &child, 1, 3);
    OK(cuGraphDestroy(inner));
    run(outer);
    assert_int_equal(ncalls, 3);
    assert_int_equal(calls[2], 3);
    OK(cuGraphChildGraphNodeGetGraph(child, &got));
    ERR(INVALID_VALUE, cuGraphDestroy(got)); /* belongs to the node */
    OK(cuGraphClone(&copy, outer));
    OK(cuGraphNodeFindInClone(&found, child, copy));
    assert_ptr_not_equal(found, child);
    OK(cuGraphDestroy(outer));
    run(copy);
    assert_int_equal(ncalls, 3);
    OK(cuGraphDestroy(copy));
}

static void capture_line(void **state)
{
    CUstream s;
    CUgraph g;
    CUgraphExec x;
    CUstreamCaptureStatus status;
    size_t n;
    uint32_t *out;
    void *pinned;
    (void)state;
    OK(cuMemAllocHost_v2(&pinned, 64));
    out = pinned;
    out[0] = 0;
    CUdeviceptr p = rig_alloc(64);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ERR(ILLEGAL_STATE, cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuStreamIsCapturing(s, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuMemsetD32Async(p, 5, 16, s));
    OK(cuMemcpyDtoHAsync_v2(out, p, 64, s));
    OK(cuLaunchHostFunc(s, call, (void *)1));
    assert_int_equal(out[0], 0); /* nothing has run */
    OK(cuStreamEndCapture(s, &g));
    OK(cuStreamIsCapturing(s, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuGraphGetNodes(g, NULL, &n));
    assert_int_equal(n, 3);
    OK(cuGraphGetEdges(g, NULL, NULL, &n));
    assert_int_equal(n, 2);
    OK(cuGraphInstantiate_v2(&x, g, NULL, NULL, 0));
    ncalls = 0;
    for (int i = 0; i < 3; i++) {
        OK(cuGraphLaunch(x, s));
    }
    OK(cuStreamSynchronize(s));
    assert_int_equal(out[15], 5);
    assert_int_equal(ncalls, 3);
    /* the same again with another value updates the exec */
    CUgraph h;
    OK(cuStreamBeginCapture(s));
    OK(cuMemsetD32Async(p, 6, 16, s));
    OK(cuMemcpyDtoHAsync_v2(out, p, 64, s));
    OK(cuLaunchHostFunc(s, call, (void *)1));
    OK(cuStreamEndCapture(s, &h));
    CUgraphExecUpdateResultInfo info;
    OK(cuGraphExecUpdate_v2(x, h, &info));
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    assert_int_equal(out[15], 6);
    host_node(h, NULL, 0, 9);
    ERR(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(x, h, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(h));
    OK(cuGraphExecDestroy(x));
}

static void capture_fork(void **state)
{
    CUstream s, t;
    CUevent fork, join;
    CUgraph g;
    CUgraphNode roots[4];
    size_t n = 4;
    (void)state;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork, 2));
    OK(cuEventCreate(&join, 2));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuLaunchHostFunc(s, call, (void *)1));
    OK(cuEventRecord(fork, s));
    ERR(CAPTURED_EVENT, cuEventQuery(fork));
    OK(cuStreamWaitEvent(t, fork, 0));
    OK(cuLaunchHostFunc(s, call, (void *)2));
    OK(cuLaunchHostFunc(t, call, (void *)2));
    ERR(STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(t, &g));
    OK(cuEventRecord(join, t));
    OK(cuStreamWaitEvent(s, join, 0));
    OK(cuStreamDestroy_v2(t)); /* joined, so it may go */
    OK(cuLaunchHostFunc(s, call, (void *)3));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetRootNodes(g, roots, &n));
    assert_int_equal(n, 1);
    OK(cuGraphGetEdges(g, NULL, NULL, &n));
    assert_int_equal(n, 4);
    run(g);
    assert_int_equal(ncalls, 4);
    assert_int_equal(calls[0], 1);
    assert_int_equal(calls[3], 3);
    OK(cuGraphDestroy(g));
}

static void capture_errors(void **state)
{
    CUstream s, t, b;
    CUevent e;
    CUgraph g;
    CUdeviceptr p = rig_alloc(64);
    (void)state;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, 0));
    OK(cuEventCreate(&e, 2));
    ERR(STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL));
    ERR(ILLEGAL_STATE, cuStreamEndCapture(s, &g));
    /* waiting spoils it */
    OK(cuStreamBeginCapture(s));
    ERR(STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
    ERR(STREAM_CAPTURE_INVALIDATED, cuLaunchHostFunc(s, call, NULL));
    ERR(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
    assert_null(g);
    /* a stream that joined and did not come back */
    OK(cuStreamBeginCapture(s));
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    OK(cuLaunchHostFunc(t, call, NULL));
    ERR(STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &g));
    OK(cuStreamBeginCapture(s));
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(b, e, 0));
    OK(cuLaunchHostFunc(b, call, NULL));
    OK(cuStreamDestroy_v2(b));
    ERR(STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &g));
    OK(cuStreamCreate(&b, 0));
    /* an event from outside */
    OK(cuEventRecord(e, t));
    OK(cuStreamBeginCapture(s));
    ERR(STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(s, e, 0));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
    /* the legacy stream would wait for a blocking stream that captures */
    OK(cuStreamBeginCapture(b));
    ERR(STREAM_CAPTURE_IMPLICIT, cuMemsetD8Async(p, 1, 1, NULL));
    OK(cuStreamEndCapture(b, &g));
    OK(cuMemsetD8Async(p, 1, 1, NULL));
    OK(cuGraphDestroy(g));
    /* destroyed while it captures */
    OK(cuStreamBeginCapture(b));
    OK(cuStreamDestroy_v2(b));
    OK(cuMemsetD8Async(p, 1, 1, NULL));
}

static void captured_memory(void **state)
{
    CUstream s;
    CUgraph g;
    CUgraphExec x;
    CUdeviceptr p, out = rig_alloc(64);
    uint64_t used;
    (void)state;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(s));
    OK(cuMemAllocAsync(&p, 64, s));
    OK(cuMemsetD32Async(p, 3, 16, s));
    OK(cuMemcpyDtoDAsync_v2(out, p, 64, s));
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphDestroy(g));
    OK(cuGraphLaunch(x, s));
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    assert_int_equal(rig_word(out, 15), 3);
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 64);
    OK(cuGraphExecDestroy(x));
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 0);
    ERR(INVALID_VALUE, cuMemFree_v2(p));
}

static void user_objects(void **state)
{
    CUuserObject u;
    CUgraph g, h;
    (void)state;
    ncalls = 0;
    OK(cuUserObjectCreate(&u, (void *)5, call, 1, 1));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphRetainUserObject(g, u, 1, 1)); /* the reference moves */
    OK(cuGraphClone(&h, g));
    OK(cuGraphDestroy(g));
    assert_int_equal(ncalls, 0);
    OK(cuGraphDestroy(h));
    assert_int_equal(ncalls, 1);
    assert_int_equal(calls[0], 5);
    ERR(INVALID_VALUE, cuUserObjectRelease(u, 1));
}

/* ---- what may not be done while somebody captures (cuThreadExchangeStreamCaptureMode) ---- */

static CUresult alloc_and_free(void)
{
    CUdeviceptr p;
    CUresult r = cuMemAlloc_v2(&p, 64);
    return r == CUDA_SUCCESS ? cuMemFree_v2(p) : r;
}

static void *allocating(void *context)
{
    OK(cuCtxSetCurrent(context));
    return (void *)(uintptr_t)alloc_and_free();
}

static CUresult elsewhere(void)
{
    pthread_t t;
    void *r;
    pthread_create(&t, NULL, allocating, rig_current());
    pthread_join(t, &r);
    return (CUresult)(uintptr_t)r;
}

static void unsafe_calls(void **state)
{
    CUstream s;
    CUgraph g;
    CUevent e;
    void *host;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)state;
    OK(cuStreamCreate(&s, 1));
    OK(cuEventCreate(&e, 0));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ERR(STREAM_CAPTURE_UNSUPPORTED, alloc_and_free());
    ERR(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
    OK(alloc_and_free());
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ERR(STREAM_CAPTURE_UNSUPPORTED, elsewhere());
    ERR(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(elsewhere());
    ERR(STREAM_CAPTURE_UNSUPPORTED, cuMemHostAlloc(&host, 64, 0));
    ERR(STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(e));
    ERR(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(alloc_and_free());
    OK(elsewhere());
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
    /* A thread may say that it knows what it does. */
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(alloc_and_free());
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
    /* A capture that goes with its stream forbids nothing any more. */
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuStreamDestroy_v2(s));
    OK(alloc_and_free());
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_context, rig_end)
    const struct CMUnitTest tests[] = {
        T(nodes_in_order), T(memory_nodes),    T(child_and_clone), T(capture_line), T(capture_fork),
        T(capture_errors), T(captured_memory), T(user_objects),    T(unsafe_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

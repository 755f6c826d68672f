/* SPDX-License-Identifier: Apache-2.0
 * Conditional nodes of graphs: what they do, and what is refused. (CUDA Programming Guide, "Conditional Graph Nodes";
 * Driver API, cuGraphConditionalHandleCreate, CUDA_CONDITIONAL_NODE_PARAMS.) */
#include "rig.h"

static CUmodule module;

static int setup(void **state)
{
    if (rig_context(state))
        return 1;
    char *text = rig_text("conditional.ptx");
    OK(cuModuleLoadData(&module, text));
    free(text);
    return 0;
}

static CUgraph new_graph(void)
{
    CUgraph g;
    OK(cuGraphCreate(&g, 0));
    return g;
}

static CUgraphConditionalHandle new_condition(CUgraph g, unsigned value, unsigned flags)
{
    CUgraphConditionalHandle h;
    OK(cuGraphConditionalHandleCreate(&h, g, rig_current(), value, flags));
    return h;
}

static CUgraphNode kernel(CUgraph g, CUgraphNode after, const char *name, void *a, void *b)
{
    CUgraphNode n;
    void *args[] = { a, b };
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_KERNEL,
                            .kernel = { .gridDimX = 1,
                                        .gridDimY = 1,
                                        .gridDimZ = 1,
                                        .blockDimX = 1,
                                        .blockDimY = 1,
                                        .blockDimZ = 1,
                                        .kernelParams = args } };
    OK(cuModuleGetFunction(&p.kernel.func, module, name));
    OK(cuGraphAddNode_v2(&n, g, &after, NULL, after != NULL, &p));
    return n;
}

static CUgraphNode plus(CUgraph g, CUgraphNode after, CUdeviceptr p, unsigned n)
{
    return kernel(g, after, "plus", &p, &n);
}

static CUresult add(CUgraph g, CUgraphNode after, CUgraphConditionalHandle h,
                    CUgraphConditionalNodeType type, unsigned size, CUgraphNode *n, CUgraph *bodies)
{
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                            .conditional = { .handle = h, .type = type, .size = size } };
    CUresult r = cuGraphAddNode_v2(n, g, &after, NULL, after != NULL, &p);
    for (unsigned i = 0; r == CUDA_SUCCESS && i < size && bodies; i++) {
        bodies[i] = p.conditional.phGraph_out[i];
    }
    return r;
}

static CUgraphExec instantiate(CUgraph g)
{
    CUgraphExec x;
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    return x;
}

static void put(CUdeviceptr p, uint32_t value)
{
    OK(cuMemcpyHtoD_v2(p, &value, 4));
}

static uint32_t after_launch(CUgraphExec x, CUdeviceptr p, uint32_t with, CUdeviceptr result)
{
    put(p, with);
    put(result, 0);
    OK(cuGraphLaunch(x, NULL));
    OK(cuCtxSynchronize());
    return rig_word(result, 0);
}

static void if_else(void **state)
{
    (void)state;
    CUdeviceptr p = rig_alloc(4), out = rig_alloc(4);
    CUgraph g = new_graph(), bodies[2];
    CUgraphNode n;
    CUgraphConditionalHandle h = new_condition(g, 0, 0);
    CUgraphNode first = kernel(g, NULL, "say", &p, &h);
    OK(add(g, first, h, CU_GRAPH_COND_TYPE_IF, 2, &n, bodies));
    plus(bodies[0], NULL, out, 10);
    plus(bodies[1], plus(bodies[1], NULL, out, 100), out, 100);
    plus(g, n, out, 1);
    CUgraphExec x = instantiate(g);
    assert_int_equal(after_launch(x, p, 7, out), 11);
    assert_int_equal(after_launch(x, p, 0, out), 201);
    CUgraphNodeType type;
    OK(cuGraphNodeGetType(n, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_CONDITIONAL);
    /* Launches under way outlive exec and graph. */
    put(out, 0);
    put(p, 1);
    OK(cuGraphLaunch(x, NULL));
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
    OK(cuCtxSynchronize());
    assert_int_equal(rig_word(out, 0), 11);
}

static void while_loop(void **state)
{
    (void)state;
    CUdeviceptr p = rig_alloc(4), out = rig_alloc(4);
    CUgraph g = new_graph(), body;
    CUgraphNode n;
    CUgraphConditionalHandle h = new_condition(g, 1, 1);
    OK(add(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1, &n, &body));
    CUgraphNode last = kernel(body, plus(body, NULL, out, 3), "down", &p, &h);
    (void)last;
    plus(g, n, out, 1000);
    CUgraphExec x = instantiate(g);
    for (unsigned i = 1; i < 6; i++) /* the default makes it run at each launch */
        assert_int_equal(after_launch(x, p, i, out), 1000 + 3 * i);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
}

static void switch_node(void **state)
{
    (void)state;
    CUdeviceptr p = rig_alloc(4), out = rig_alloc(4);
    CUgraph g = new_graph(), bodies[3];
    CUgraphNode n;
    CUgraphConditionalHandle h = new_condition(g, 0, 0);
    OK(add(g, kernel(g, NULL, "say", &p, &h), h, CU_GRAPH_COND_TYPE_SWITCH, 3, &n, bodies));
    for (unsigned i = 0; i < 3; i++)
        plus(bodies[i], NULL, out, i + 1);
    CUgraphExec x = instantiate(g);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(after_launch(x, p, i, out), i < 3 ? i + 1 : 0);
    assert_int_equal(after_launch(x, p, UINT32_MAX, out), 0);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
}

/* A loop in a loop; the inner condition belongs to the outer body, so its default comes back each round. */
static void nested(void **state)
{
    (void)state;
    CUdeviceptr p = rig_alloc(4), q = rig_alloc(4), out = rig_alloc(4);
    CUgraph g = new_graph(), outer, inner;
    CUgraphNode n, m;
    CUgraphConditionalHandle h = new_condition(g, 1, 1);
    OK(add(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1, &n, &outer));
    CUgraphConditionalHandle k = new_condition(outer, 1, 1);
    CUDA_MEMSET_NODE_PARAMS four = { q, 0, 4, 4, 1, 1 };
    CUgraphNode set;
    OK(cuGraphAddMemsetNode(&set, outer, NULL, 0, &four, rig_current()));
    OK(add(outer, set, k, CU_GRAPH_COND_TYPE_WHILE, 1, &m, &inner));
    kernel(inner, plus(inner, NULL, out, 1), "down", &q, &k);
    kernel(outer, m, "down", &p, &h);
    CUgraphExec x = instantiate(g);
    assert_int_equal(after_launch(x, p, 5, out), 20);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
}

static void updated(void **state)
{
    (void)state;
    CUdeviceptr p = rig_alloc(4), out = rig_alloc(4);
    CUgraph g[2], body[2];
    CUgraphNode n, in[2];
    CUgraphExecUpdateResultInfo info;
    for (unsigned i = 0; i < 2; i++) {
        g[i] = new_graph();
        CUgraphConditionalHandle h = new_condition(g[i], 1, 1);
        OK(add(g[i], NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1, &n, &body[i]));
        in[i] = plus(body[i], NULL, out, i + 1);
        kernel(body[i], in[i], "down", &p, &h);
    }
    CUgraphExec x = instantiate(g[0]);
    assert_int_equal(after_launch(x, p, 4, out), 4);
    OK(cuGraphExecUpdate_v2(x, g[1], &info));
    assert_int_equal(after_launch(x, p, 4, out), 8);
    /* A node inside of the body, by the handle it has in the graph that was instantiated. */
    unsigned by = 5;
    void *args[] = { &out, &by };
    CUDA_KERNEL_NODE_PARAMS_v2 k;
    OK(cuGraphKernelNodeGetParams_v2(in[0], &k));
    k.kernelParams = args;
    OK(cuGraphExecKernelNodeSetParams_v2(x, in[0], &k));
    assert_int_equal(after_launch(x, p, 4, out), 20);
    plus(body[1], NULL, out, 1);
    ERR(GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(x, g[1], &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g[0]));
    OK(cuGraphDestroy(g[1]));
}

static void refused(void **state)
{
    (void)state;
    CUgraph g = new_graph(), other = new_graph(), bodies[2], copy;
    CUgraphConditionalHandle h, made;
    CUgraphNode n, m;
    CUgraphExec x, y;
    CUdeviceptr out = rig_alloc(4);
    CUDA_GRAPH_INSTANTIATE_PARAMS how = { 0 };
    ERR(INVALID_VALUE, cuGraphConditionalHandleCreate(NULL, g, NULL, 0, 0));
    ERR(INVALID_VALUE, cuGraphConditionalHandleCreate(&h, g, NULL, 0, 2));
    ERR(INVALID_VALUE, cuGraphConditionalHandleCreate(&h, NULL, NULL, 0, 0));
    h = new_condition(g, 0, 0);
    ERR(INVALID_VALUE, cuGraphInstantiateWithParams(&x, g, &how)); /* unused */
    assert_int_equal(how.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
    ERR(INVALID_VALUE, add(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 0, &n, NULL));
    ERR(INVALID_VALUE, add(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 3, &n, NULL));
    ERR(INVALID_VALUE, add(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 2, &n, NULL));
    ERR(INVALID_VALUE, add(g, NULL, h, CU_GRAPH_COND_TYPE_SWITCH, 0, &n, NULL));
    ERR(INVALID_VALUE, add(g, NULL, h, (CUgraphConditionalNodeType)3, 1, &n, NULL));
    ERR(INVALID_VALUE, add(g, NULL, h + 64, CU_GRAPH_COND_TYPE_IF, 1, &n, NULL));
    ERR(INVALID_VALUE, add(other, NULL, h, CU_GRAPH_COND_TYPE_IF, 1, &n, NULL));
    OK(add(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 1, &n, bodies));
    ERR(INVALID_VALUE, add(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 1, &m, NULL)); /* used */
    ERR(INVALID_VALUE, cuGraphDestroy(bodies[0]));
    ERR(INVALID_VALUE, cuGraphInstantiateWithFlags(&x, bodies[0], 0));
    ERR(INVALID_VALUE, cuGraphClone(&copy, g));
    ERR(INVALID_VALUE, cuGraphAddChildGraphNode(&m, other, NULL, 0, g));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    ERR(INVALID_VALUE, cuGraphInstantiateWithFlags(&y, g, 0)); /* one at a time */
    OK(cuGraphExecDestroy(x));
    OK(cuGraphInstantiateWithFlags(&y, g, 0));
    OK(cuGraphExecDestroy(y));
    /* A node goes, and its handle may be used again. */
    OK(cuGraphDestroyNode(n));
    OK(add(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1, &n, bodies));
    CUevent e;
    OK(cuEventCreate(&e, 0));
    OK(cuGraphAddEventRecordNode(&m, bodies[0], NULL, 0, e));
    ERR(NOT_SUPPORTED, cuGraphInstantiateWithParams(&x, g, &how));
    assert_int_equal(how.result_out, CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
    assert_ptr_equal(how.hErrNode_out, m);
    OK(cuGraphDestroyNode(m));
    made = new_condition(bodies[0], 0, 0);
    OK(add(bodies[0], NULL, made, CU_GRAPH_COND_TYPE_IF, 1, &m, NULL));
    plus(bodies[0], m, out, 1);
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(other));
    OK(cuEventDestroy_v2(e));
}

/* A fault in a body ends the loop and reaches the next call that waits. */
static void fault(void **state)
{
    (void)state;
    CUgraph g = new_graph(), body;
    CUgraphNode n;
    CUgraphConditionalHandle h = new_condition(g, 1, 1);
    OK(add(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1, &n, &body));
    kernel(body, NULL, "broken", NULL, NULL);
    OK(cuGraphLaunch(instantiate(g), NULL));
    ERR(LAUNCH_FAILED, cuCtxSynchronize());
}

static void memory_operations(void **state)
{
    (void)state;
    CUdeviceptr p = rig_alloc(16);
    CUgraph g = new_graph();
    CUgraphNode n;
    CUstreamBatchMemOpParams ops[2] = {
        { .waitValue = { .operation = 2, .address = p, .value = 17 } }, /* write 32 */
        { .waitValue = { .operation = 1,
                         .address = p,
                         .value = 17,
                         .flags = 1 } }, /* wait until equal */
    };
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = { rig_current(), 2, ops, 0 }, back;
    OK(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &params));
    OK(cuGraphBatchMemOpNodeGetParams(n, &back));
    assert_int_equal(back.count, 2);
    assert_ptr_not_equal(back.paramArray, ops);
    CUgraphExec x = instantiate(g);
    OK(cuGraphLaunch(x, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(rig_word(p, 0), 17);
    ops[0].waitValue.value = ops[1].waitValue.value = 18;
    OK(cuGraphExecBatchMemOpNodeSetParams(x, n, &params));
    OK(cuGraphLaunch(x, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(rig_word(p, 0), 18);
    ops[0].waitValue.address = 3;
    ERR(INVALID_VALUE, cuGraphBatchMemOpNodeSetParams(n, &params));
    params.flags = 1;
    ERR(INVALID_VALUE, cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &params));
    /* The same, captured. */
    CUstream s;
    CUgraph captured;
    OK(cuStreamCreate(&s, 1));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuStreamWriteValue32_v2(s, p, 19, 0));
    OK(cuStreamEndCapture(s, &captured));
    CUgraphExec y = instantiate(captured);
    OK(cuGraphLaunch(y, s));
    OK(cuStreamSynchronize(s));
    assert_int_equal(rig_word(p, 0), 19);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphExecDestroy(y));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(captured));
}

/* A child graph that is moved keeps its handle, and may have memory nodes. */
static void moved(void **state)
{
    (void)state;
    CUgraph g = new_graph(), child = new_graph(), got;
    CUgraphNode n, m, a;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                        .location = { CU_MEM_LOCATION_TYPE_DEVICE,
                                                                      0 } },
                                         .bytesize = 64 };
    OK(cuGraphAddMemAllocNode(&a, child, NULL, 0, &alloc));
    OK(cuGraphAddMemFreeNode(&m, child, &a, 1, alloc.dptr));
    ERR(INVALID_VALUE, cuGraphAddChildGraphNode(&n, g, NULL, 0, child));
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_GRAPH,
                            .graph = { child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE } };
    OK(cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &p));
    OK(cuGraphChildGraphNodeGetGraph(n, &got));
    assert_ptr_equal(got, child);
    ERR(INVALID_VALUE, cuGraphDestroy(child));
    ERR(INVALID_VALUE, cuGraphAddNode_v2(&m, g, NULL, NULL, 0, &p)); /* it has an owner */
    CUgraphExec x = instantiate(g);
    OK(cuGraphLaunch(x, NULL));
    OK(cuCtxSynchronize());
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
    ERR(INVALID_VALUE, cuGraphDestroy(child));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(if_else, setup, rig_end),
        cmocka_unit_test_setup_teardown(while_loop, setup, rig_end),
        cmocka_unit_test_setup_teardown(switch_node, setup, rig_end),
        cmocka_unit_test_setup_teardown(nested, setup, rig_end),
        cmocka_unit_test_setup_teardown(updated, setup, rig_end),
        cmocka_unit_test_setup_teardown(refused, setup, rig_end),
        cmocka_unit_test_setup_teardown(memory_operations, setup, rig_end),
        cmocka_unit_test_setup_teardown(moved, setup, rig_end),
        cmocka_unit_test_setup_teardown(fault, setup, rig_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

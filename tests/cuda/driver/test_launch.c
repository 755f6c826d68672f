/* SPDX-License-Identifier: Apache-2.0
 * Test: launches in all forms, their parameters, what is refused; ordering with copies; graphs with kernels. */
#include "rig.h"

#include <pthread.h>

static void vector_add(void **state)
{
    enum { N = 1000 };
    static uint32_t a[N], b[N], c[N];
    uint32_t n = N;
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        a[i] = i;
        b[i] = 3 * i;
    }
    CUdeviceptr da = rig_alloc(sizeof a), db = rig_alloc(sizeof b), dc = rig_alloc(sizeof c);
    OK(cuMemcpyHtoD_v2(da, a, sizeof a));
    OK(cuMemcpyHtoD_v2(db, b, sizeof b));
    OK(rig_launch(rig_kernel("add"), 4, 256, NULL, &dc, &da, &db, &n, NULL));
    OK(cuMemcpyDtoH_v2(c, dc, sizeof c));
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(c[i], 4 * i);
    }
}

static void variables(void **state)
{
    CUdeviceptr p;
    CUfunction f;
    (void)state;
    CUmodule m = rig_module();
    OK(cuModuleGetFunction(&f, m, "count"));
    OK(cuModuleGetGlobal_v2(&p, NULL, m, "counter"));
    OK(cuLaunchKernel(f, 2, 1, 1, 4, 1, 1, 0, NULL, NULL, NULL));
    assert_int_equal(rig_word(p, 0), 7 + 2 * 100);
}

static CUdeviceptr out;

static void check_mixed(void)
{
    assert_int_equal(rig_word(out, 0), 200);
    assert_int_equal(rig_word(out, 1), 50000);
    assert_int_equal(rig_word(out, 2), 0xDEADBEEF);
    assert_int_equal(rig_word(out, 4), 0x55667788);
    OK(cuMemsetD8_v2(out, 0, 64));
}

static void parameters(void **state)
{
    uint8_t b = 200, packed[64] = { 0 };
    uint16_t s = 50000;
    uint64_t pair[2] = { 1, 0x1122334455667788 };
    uint32_t w = 0xDEADBEEF;
    size_t size = 36;
    (void)state;
    out = rig_alloc(64);
    CUfunction f = rig_kernel("mixed");
    OK(rig_launch(f, 1, 1, NULL, &out, &b, &s, pair, &w, NULL));
    check_mixed();
    memcpy(packed, &out, 8);
    packed[8] = b;
    memcpy(packed + 10, &s, 2);
    memcpy(packed + 16, pair, 16);
    memcpy(packed + 32, &w, 4);
    void *extra[] = { (void *)1, packed, (void *)2, &size, NULL };
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    check_mixed();
    size = 35;
    ERR(INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    ERR(INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuFuncSetBlockShape(f, 1, 1, 1)); /* the form of CUDA 2 */
    OK(cuParamSetv(f, 0, packed, 36));
    OK(cuParamSeti(f, 32, w));
    OK(cuParamSetSize(f, 36));
    OK(cuLaunchGrid(f, 1, 1));
    check_mixed();
}

static CUresult shape(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared)
{
    void *params[] = { &out, NULL };
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, NULL, params, NULL);
}

static void refused(void **state)
{
    (void)state;
    out = rig_alloc(64);
    CUfunction f = rig_kernel("limited"), g = rig_kernel("exact"), h = rig_kernel("shared_size");
    OK(shape(f, 1, 1, 1, 64, 1, 1, 0));
    OK(shape(h, 2, 65535, 1, 1, 1, 1, 4));
    ERR(INVALID_VALUE, shape(h, 1, 1, 1, 1025, 1, 1, 4));
    ERR(INVALID_VALUE, shape(h, 1, 1, 1, 5000, 1, 1, 4));
    ERR(INVALID_VALUE, shape(h, 1, 1, 1, 32, 33, 1, 4));
    ERR(INVALID_VALUE, shape(h, 1, 1, 1, 1, 1, 65, 4));
    ERR(INVALID_VALUE, shape(h, 1, 70000, 1, 1, 1, 1, 4));
    ERR(INVALID_VALUE, shape(h, 0, 1, 1, 1, 1, 1, 4));
    ERR(INVALID_VALUE, shape(h, 1, 1, 1, 0, 1, 1, 4));
    ERR(LAUNCH_OUT_OF_RESOURCES, shape(f, 1, 1, 1, 65, 1, 1, 0));
    ERR(INVALID_VALUE, shape(g, 1, 1, 1, 64, 1, 1, 0));
    OK(shape(g, 1, 1, 1, 32, 2, 1, 0));
    ERR(INVALID_HANDLE, shape(NULL, 1, 1, 1, 1, 1, 1, 0));
    ERR(INVALID_HANDLE, shape((CUfunction)rig_current(), 1, 1, 1, 1, 1, 1, 0));
    OK(cuCtxSynchronize());
}

static void shared_memory(void **state)
{
    (void)state;
    out = rig_alloc(64);
    CUfunction f = rig_kernel("shared_size");
    OK(shape(f, 1, 1, 1, 1, 1, 1, 49152));
    assert_int_equal(rig_word(out, 0), 49152);
    ERR(INVALID_VALUE, shape(f, 1, 1, 1, 1, 1, 1, 49156));
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    OK(shape(f, 1, 1, 1, 1, 1, 1, 232448));
    assert_int_equal(rig_word(out, 0), 232448);
    ERR(INVALID_VALUE, shape(f, 1, 1, 1, 1, 1, 1, 232452));
}

static void kernels_of_libraries(void **state)
{
    CUlibrary lib;
    CUkernel k;
    CUfunction f;
    CUdeviceptr p;
    size_t size;
    (void)state;
    char *text = rig_text("kernels.ptx");
    OK(cuLibraryLoadData(&lib, text, NULL, NULL, 0, NULL, NULL, 0));
    free(text);
    OK(cuLibraryGetKernel(&k, lib, "count"));
    OK(cuLaunchKernel((CUfunction)k, 1, 1, 1, 4, 1, 1, 0, NULL, NULL, NULL));
    OK(cuKernelGetFunction(&f, k));
    OK(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, NULL, NULL, NULL));
    OK(cuLibraryGetGlobal(&p, &size, lib, "counter"));
    assert_int_equal(rig_word(p, 0), 7 + 200);
    OK(cuLibraryUnload(lib));
    ERR(INVALID_HANDLE, cuLaunchKernel((CUfunction)k, 1, 1, 1, 4, 1, 1, 0, NULL, NULL, NULL));
}

static void extended(void **state)
{
    uint32_t v = 77;
    (void)state;
    out = rig_alloc(64);
    CUfunction f = rig_kernel("store");
    void *params[] = { &out, &v };
    CUlaunchAttribute attrs[2] = { { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1 },
                                   { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                     .value.clusterDim = { 1, 1, 1 } } };
    CUlaunchConfig c = { 1, 1, 1, 1, 1, 1, 0, NULL, attrs, 2 };
    OK(cuLaunchKernelEx(&c, f, params, NULL));
    assert_int_equal(rig_word(out, 0), 77);
    attrs[1].value.clusterDim.x = 2; /* does not divide the grid */
    ERR(INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&c, f, params, NULL));
    c.numAttrs = 0;
    c.attrs = NULL;
    OK(cuLaunchKernelEx(&c, f, params, NULL));
    ERR(INVALID_VALUE, cuLaunchKernelEx(NULL, f, params, NULL));
}

/* C20: as many blocks as fit meet; one more is refused and does not run. */
static void cooperative(void **state)
{
    int per_sm, sms;
    (void)state;
    out = rig_alloc(64);
    CUfunction f = rig_kernel("meet");
    void *params[] = { &out };
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, f, 1024, 0));
    OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    unsigned blocks = (unsigned)(per_sm * sms);
    ERR(COOPERATIVE_LAUNCH_TOO_LARGE,
        cuLaunchCooperativeKernel(f, blocks + 1, 1, 1, 1024, 1, 1, 0, NULL, params));
    OK(cuCtxSynchronize());
    assert_int_equal(rig_word(out, 0), 0);
    OK(cuLaunchCooperativeKernel(f, 40, 1, 1, 1, 1, 1, 0, NULL, params));
    assert_int_equal(rig_word(out, 0), 40);
    assert_int_equal(rig_word(out, 1), 40 * 40);
}

/* Streams keep the order of launches, copies and sets; events carry it over to others. */
static void ordering(void **state)
{
    CUstream s, t;
    CUevent e;
    uint32_t n = 256;
    (void)state;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, 2));
    CUfunction f = rig_kernel("add");
    CUdeviceptr a = rig_alloc(1024), b = rig_alloc(1024);
    OK(cuMemsetD32Async(a, 1, 256, s));
    for (int i = 0; i < 10; i++) {
        OK(rig_launch(f, 1, 256, s, &a, &a, &a, &n, NULL)); /* doubles */
    }
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    OK(cuMemcpyDtoDAsync_v2(b, a, 1024, t));
    OK(rig_launch(f, 1, 256, t, &b, &b, &a, &n, NULL));
    OK(cuStreamSynchronize(t));
    assert_int_equal(rig_word(b, 255), 2048);
}

static void *in_thread(void *ctx)
{
    uint32_t v = 1, n = 64;
    OK(cuCtxSetCurrent(ctx));
    CUfunction f = rig_kernel("add");
    CUdeviceptr a = rig_alloc(256);
    OK(cuMemsetD32_v2_ptds(a, v, 64));
    for (int i = 0; i < 8; i++) {
        void *params[] = { &a, &a, &a, &n };
        OK(cuLaunchKernel_ptsz(f, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    }
    OK(cuMemcpyDtoH_v2_ptds(&v, a + 252, 4));
    assert_int_equal(v, 256);
    return NULL;
}

static void several_threads(void **state)
{
    pthread_t t[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        pthread_create(&t[i], NULL, in_thread, rig_current());
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
}

static void host_visible(void **state)
{
    uint32_t v = 5;
    static uint32_t own[1024];
    CUdeviceptr p;
    void *h;
    (void)state;
    CUfunction f = rig_kernel("store");
    OK(cuMemAllocHost_v2(&h, 64));
    p = (uintptr_t)h;
    OK(rig_launch(f, 1, 1, NULL, &p, &v, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(*(uint32_t *)h, 5);
    OK(cuMemHostRegister_v2(own, sizeof own, 0));
    OK(cuMemHostGetDevicePointer_v2(&p, own, 0));
    p += 40;
    OK(rig_launch(f, 1, 1, NULL, &p, &v, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(own[10], 5);
    OK(cuMemHostUnregister(own));
}

static void timed(void **state)
{
    CUevent a, b;
    float ms;
    uint32_t v = 5;
    (void)state;
    out = rig_alloc(64);
    CUfunction f = rig_kernel("store");
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuEventRecord(a, NULL));
    OK(rig_launch(f, 100, 32, NULL, &out, &v, NULL));
    OK(cuEventRecord(b, NULL));
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&ms, a, b));
    assert_true(ms >= 0 && ms < 10000);
}

static void graphs(void **state)
{
    CUstream s;
    CUgraph g;
    CUgraphExec x;
    CUgraphNode node;
    uint32_t n = 16, one = 1;
    (void)state;
    CUdeviceptr a = rig_alloc(64), b = rig_alloc(64);
    CUfunction f = rig_kernel("add"), st = rig_kernel("store");
    OK(cuMemsetD32_v2(a, 1, 16));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(s));
    OK(rig_launch(f, 1, 16, s, &a, &a, &a, &n, NULL));
    OK(rig_launch(f, 1, 16, s, &b, &a, &b, &n, NULL));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    for (int i = 0; i < 3; i++) {
        OK(cuGraphLaunch(x, s));
    }
    OK(cuStreamSynchronize(s));
    assert_int_equal(rig_word(a, 15), 8);
    assert_int_equal(rig_word(b, 15), 2 + 4 + 8);
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
    void *params[] = { &a, &one };
    CUDA_KERNEL_NODE_PARAMS_v2 k = { .func = st,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 1,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params };
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddKernelNode_v2(&node, g, NULL, 0, &k));
    OK(cuGraphInstantiateWithFlags(&x, g, 0));
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    assert_int_equal(rig_word(a, 0), 1);
    one = 55;
    OK(cuGraphExecKernelNodeSetParams_v2(x, node, &k));
    OK(cuGraphLaunch(x, s));
    OK(cuStreamSynchronize(s));
    assert_int_equal(rig_word(a, 0), 55);
    CUDA_KERNEL_NODE_PARAMS_v2 got;
    OK(cuGraphKernelNodeGetParams_v2(node, &got));
    assert_ptr_equal(got.func, st);
    assert_int_equal(*(uint32_t *)got.kernelParams[1], 1);
    k.blockDimX = 2000;
    ERR(INVALID_VALUE, cuGraphKernelNodeSetParams_v2(node, &k));
    OK(cuGraphExecDestroy(x));
    OK(cuGraphDestroy(g));
}

/* cudaCG*: the device runtime's grid groups. */
static void grid_groups(void **state)
{
    enum { GRID = 6, BLOCK = 64, N = GRID * BLOCK, ROUNDS = 10 };
    CUmodule m;
    CUfunction f;
    (void)state;
    char *text = rig_text("grid.ptx");
    OK(cuModuleLoadData(&m, text));
    free(text);
    OK(cuModuleGetFunction(&f, m, "around"));
    CUdeviceptr a = rig_alloc(4 * N), b = rig_alloc(4 * N), said = rig_alloc(12);
    unsigned rounds = ROUNDS;
    void *params[] = { &a, &b, &rounds, &said };
    OK(cuLaunchCooperativeKernel(f, GRID / 2, 2, 1, BLOCK / 4, 2, 2, 0, NULL, params));
    OK(cuCtxSynchronize());
    assert_int_equal(rig_word(said, 0), 0);
    assert_int_equal(rig_word(said, 1), N);
    assert_int_equal(rig_word(said, 2), 0);
    for (unsigned i = 0; i < N; i += 13) { /* the last round wrote b; no thread was a round ahead */
        assert_int_equal(rig_word(b, i), ROUNDS);
        assert_int_equal(rig_word(a, i), ROUNDS - 1);
    }
    OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL)); /* no grid group there */
    OK(cuCtxSynchronize());
    assert_int_equal(rig_word(said, 0), 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_context, rig_end)
    const struct CMUnitTest tests[] = {
        T(vector_add),           T(variables), T(parameters),  T(refused),     T(shared_memory),
        T(kernels_of_libraries), T(extended),  T(cooperative), T(ordering),    T(several_threads),
        T(host_visible),         T(timed),     T(graphs),      T(grid_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

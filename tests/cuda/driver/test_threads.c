/* SPDX-License-Identifier: Apache-2.0
 * Many host threads at once, each with streams, events, modules, pools, graphs and callbacks of its own, while kernels
 * are being compiled. Meant for a thread sanitizer too (docs/adding.md); what each computes is checked. */
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 6, ROUNDS = 12, N = 1024 };

static CUcontext shared;
static CUevent baton; /* recorded and waited for by all */
static _Atomic unsigned called;

static void *threads_do(void *(*fn)(void *))
{
    pthread_t t[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, fn, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    return NULL;
}

static void count_call(void *user)
{
    (void)user;
    atomic_fetch_add(&called, 1);
}

/* A kernel of its own text each time, so that there is always something to compile: out = in * factor, in a loop long
 * enough to be worth better code. */
static CUmodule own_module(unsigned factor, CUfunction *f)
{
    CUmodule m;
    char text[1024];
    snprintf(
        text, sizeof text,
        ".version 7.0\n.target sm_52\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %%d<3>;\n.reg .b32 %%r<4>;\n.reg .pred "
        "%%q;\n"
        "ld.param.u64 %%d0, [p];\nmov.u32 %%r0, %%tid.x;\nmul.wide.u32 %%d1, %%r0, 4;\n"
        "add.u64 %%d0, %%d0, %%d1;\nld.global.u32 %%r1, [%%d0];\nmov.u32 %%r2, 0;\nmov.u32 %%r3, "
        "0;\n"
        "again:\nadd.u32 %%r2, %%r2, %%r1;\nadd.u32 %%r3, %%r3, 1;\nsetp.lt.u32 %%q, %%r3, %u;\n"
        "@%%q bra again;\nst.global.u32 [%%d0], %%r2;\nret;\n}\n",
        factor);
    OK(cuModuleLoadData(&m, text));
    OK(cuModuleGetFunction(f, m, "k"));
    return m;
}

static void *mixture(void *arg)
{
    const unsigned id = (unsigned)(uintptr_t)arg;
    OK(cuCtxSetCurrent(shared));
    for (unsigned i = 0; i < ROUNDS; i++) {
        CUstream s, t;
        CUevent e;
        CUfunction f;
        CUdeviceptr p, q;
        uint32_t *host;
        const unsigned factor = 40000 + 16 * i + id;
        OK(cuStreamCreate(&s, i & 1));
        OK(cuStreamCreateWithPriority(&t, 1, -1));
        OK(cuEventCreate(&e, i & 2));
        CUmodule m = own_module(factor, &f);
        OK(cuMemAllocHost_v2((void **)&host, 4 * N));
        OK(cuMemAlloc_v2(&p, 4 * N));
        OK(cuMemAllocAsync(&q, 4 * N, t));
        OK(cuMemsetD32Async(p, 3, N, s));
        for (int k = 0; k < 3; k++) /* the later ones may run better code, made meanwhile */
            OK(rig_launch(f, 1, 256, s, &p, NULL));
        OK(cuEventRecord(e, s));
        OK(cuLaunchHostFunc(s, count_call, NULL));
        OK(cuStreamWaitEvent(t, e, 0));
        OK(cuStreamWaitEvent(t, baton, 0));
        OK(cuEventRecord(baton, t));
        OK(cuMemcpyDtoDAsync_v2(q, p, 4 * N, t));
        OK(cuMemcpyDtoHAsync_v2(host, q, 4 * N, t));
        OK(cuMemFreeAsync(q, t));
        OK(cuStreamSynchronize(t));
        assert_int_equal(host[255], 3 * factor * factor * factor);
        assert_int_equal(host[256], 3);
        OK(cuEventDestroy_v2(e));
        OK(cuMemFree_v2(p));
        OK(cuMemFreeHost(host));
        OK(cuStreamDestroy_v2(s));
        OK(cuStreamDestroy_v2(t));
        OK(cuModuleUnload(m));
    }
    return NULL;
}

static void mixed(void **state)
{
    (void)state;
    shared = rig_current();
    OK(cuEventCreate(&baton, 2));
    atomic_store(&called, 0);
    threads_do(mixture);
    OK(cuCtxSynchronize());
    assert_int_equal(called, THREADS * ROUNDS);
    OK(cuEventDestroy_v2(baton));
}

/* One library, whose modules, functions and code all threads ask for at the same time. */
static CUlibrary library;

static void *same_kernel(void *arg)
{
    (void)arg;
    CUkernel k;
    CUfunction f;
    int regs;
    unsigned n = N;
    OK(cuCtxSetCurrent(shared));
    CUdeviceptr a = rig_alloc(4 * N), b = rig_alloc(4 * N);
    OK(cuMemsetD32_v2(b, 2, N));
    for (int i = 0; i < 20; i++) {
        OK(cuLibraryGetKernel(&k, library, "add"));
        OK(cuKernelGetFunction(&f, k));
        OK(cuFuncGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
        OK(rig_launch((CUfunction)k, N / 64, 64, CU_STREAM_PER_THREAD, &a, &a, &b, &n, NULL));
    }
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    assert_int_equal(rig_word(a, N - 1), 40);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
    return NULL;
}

static void one_library(void **state)
{
    (void)state;
    shared = rig_current();
    char *text = rig_text("kernels.ptx");
    OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    free(text);
    threads_do(same_kernel);
    OK(cuLibraryUnload(library));
}

/* Each thread captures, instantiates and launches; each has a context of its own besides. */
static void *graphs_of_its_own(void *arg)
{
    (void)arg;
    OK(cuCtxSetCurrent(shared));
    CUdeviceptr p = rig_alloc(4 * N);
    for (unsigned i = 0; i < 10; i++) {
        CUstream s;
        CUgraph g;
        CUgraphExec x;
        OK(cuStreamCreate(&s, 1));
        OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        OK(cuMemsetD32Async(p, i, N, s));
        OK(cuLaunchHostFunc(s, count_call, NULL));
        OK(cuStreamEndCapture(s, &g));
        OK(cuGraphInstantiateWithFlags(&x, g, 0));
        OK(cuGraphLaunch(x, s));
        OK(cuGraphLaunch(x, s));
        OK(cuStreamSynchronize(s));
        assert_int_equal(rig_word(p, N - 1), i);
        OK(cuGraphExecDestroy(x));
        OK(cuGraphDestroy(g));
        OK(cuStreamDestroy_v2(s));
        if (i % 4 == 0) {
            CUcontext own;
            OK(cuCtxCreate_v2(&own, 0, 0));
            assert_int_equal(rig_word(rig_alloc(64), 3), 0);
            OK(cuCtxDestroy_v2(own));
            OK(cuCtxSetCurrent(shared));
        }
    }
    OK(cuMemFree_v2(p));
    return NULL;
}

static void graphs(void **state)
{
    (void)state;
    shared = rig_current();
    atomic_store(&called, 0);
    threads_do(graphs_of_its_own);
    assert_int_equal(called, THREADS * 20);
}

/* What a context and a device are told to prefer, by all at once: each value is one that somebody set. */
static void *settings_of_all(void *arg)
{
    const unsigned id = (unsigned)(uintptr_t)arg;
    CUfunc_cache config;
    CUmemoryPool pool;
    size_t limit;
    unsigned flags;
    int active, on = id & 1;
    OK(cuCtxSetCurrent(shared));
    CUdeviceptr p = rig_alloc(64);
    for (unsigned i = 0; i < 50; i++) {
        OK(cuCtxSetCacheConfig((CUfunc_cache)((id + i) % 4)));
        OK(cuCtxGetCacheConfig(&config));
        OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048 + id));
        OK(cuCtxGetLimit(&limit, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
        assert_in_range(limit, 2048, 2048 + THREADS);
        OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, (1 << 20) + id));
        OK(cuDeviceGetDefaultMemPool(&pool, 0));
        OK(cuDeviceSetMemPool(0, pool));
        OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
        OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
        OK(cuCtxGetFlags(&flags));
    }
    OK(cuMemFree_v2(p));
    return NULL;
}

static void settings(void **state)
{
    (void)state;
    shared = rig_current();
    threads_do(settings_of_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mixed, rig_context, rig_end),
        cmocka_unit_test_setup_teardown(one_library, rig_context, rig_end),
        cmocka_unit_test_setup_teardown(graphs, rig_context, rig_end),
        cmocka_unit_test_setup_teardown(settings, rig_context, rig_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Test: kernels that end badly. The fault is the context's: every later call there says it, another context does not
 * know of it, and the primary context is well again after a reset. The process goes on. */
#include "rig.h"

#include <unistd.h>

static CUresult store_with(CUfunction f, CUdeviceptr p)
{
    uint32_t v = 1;
    CUresult r = rig_launch(f, 1, 1, NULL, &p, &v, NULL);
    return r != CUDA_SUCCESS ? r : cuCtxSynchronize();
}

static CUresult store_at(CUdeviceptr p)
{
    return store_with(rig_kernel("store"), p);
}

/* Everything says the fault from now on, and destroying the context is all right. */
static void check_sticky(CUresult fault)
{
    CUdeviceptr p;
    CUevent e;
    CUstream s;
    char text[8];
    assert_int_equal(cuCtxSynchronize(), fault);
    assert_int_equal(cuMemAlloc_v2(&p, 64), fault);
    assert_int_equal(cuMemcpyDtoH_v2(text, 4096, 4), fault);
    assert_int_equal(cuStreamCreate(&s, 0), fault);
    assert_int_equal(cuEventCreate(&e, 0), fault);
    assert_int_equal(cuStreamQuery(NULL), fault);
    assert_int_equal(cuStreamSynchronize(NULL), fault);
    CUcontext mine = rig_current(), other;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuMemAlloc_v2(&p, 64));
    assert_int_equal(store_at(p), CUDA_SUCCESS);
    OK(cuCtxDestroy_v2(other));
    assert_ptr_equal(rig_current(), mine);
}

static void null_address(void **state)
{
    (void)state;
    ERR(ILLEGAL_ADDRESS, store_at(0));
    check_sticky(CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void past_the_end(void **state)
{
    (void)state;
    CUdeviceptr p = rig_alloc(4096);
    const CUdeviceptr page = 2 << 20; /* what is mapped as a whole, on a device too */
    OK(store_at(p + 4092));
    OK(store_at(p + 4096));
    OK(store_at((p | (page - 1)) - 3));
    ERR(ILLEGAL_ADDRESS, store_at((p | (page - 1)) + 1));
    check_sticky(CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void host_address(void **state)
{
    uint32_t local = 0;
    (void)state;
    ERR(ILLEGAL_ADDRESS, store_at((uintptr_t)&local));
    assert_int_equal(local, 0);
}

static void freed_address(void **state)
{
    (void)state;
    CUfunction f = rig_kernel("store"); /* module and launch before, lest they take the memory */
    OK(store_with(f, rig_alloc(64)));
    CUdeviceptr p = rig_alloc(1 << 20);
    OK(cuMemFree_v2(p));
    ERR(ILLEGAL_ADDRESS, store_with(f, p));
}

static void misaligned(void **state)
{
    (void)state;
    ERR(MISALIGNED_ADDRESS, store_at(rig_alloc(64) + 2));
    check_sticky(CUDA_ERROR_MISALIGNED_ADDRESS);
}

static void trap(void **state)
{
    (void)state;
    OK(rig_launch(rig_kernel("trapping"), 1, 32, NULL, NULL));
    ERR(LAUNCH_FAILED, cuCtxSynchronize());
    check_sticky(CUDA_ERROR_LAUNCH_FAILED);
}

/* HALFWARP_TIMEOUT ends what never ends. */
static void forever(void **state)
{
    (void)state;
    CUdeviceptr p = rig_alloc(64);
    OK(rig_launch(rig_kernel("forever"), 1, 32, NULL, &p, NULL));
    ERR(LAUNCH_TIMEOUT, cuCtxSynchronize());
    check_sticky(CUDA_ERROR_LAUNCH_TIMEOUT);
}

/* Events of a faulted context are reached; what is behind the fault is not done. */
static void events(void **state)
{
    CUevent a, b;
    CUstream s;
    uint32_t v = 1;
    (void)state;
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = rig_alloc(64), bad = 0;
    CUfunction f = rig_kernel("store");
    OK(cuEventRecord(a, s));
    OK(rig_launch(f, 1, 1, s, &bad, &v, NULL));
    CUresult later = rig_launch(f, 1, 1, s, &p, &v, NULL);
    assert_true(later == CUDA_SUCCESS || later == CUDA_ERROR_ILLEGAL_ADDRESS);
    if (later == CUDA_SUCCESS)
        cuEventRecord(b, s);
    ERR(ILLEGAL_ADDRESS, cuStreamSynchronize(s));
    ERR(ILLEGAL_ADDRESS, cuEventSynchronize(a));
    assert_int_equal(*(uint32_t *)(uintptr_t)p, 0);
}

static const char shared_unit[] =
    ".version 8.0\n.target sm_52\n.address_size 64\n.extern .shared .align 16 .b8 s[];\n"
    ".visible .entry k(.param .u64 p, .param .u32 at) {\n"
    ".reg .b64 %d; .reg .u32 %a, %t, %r<4>;\n"
    "ld.param.u64 %d, [p]; ld.param.u32 %a, [at]; mov.u32 %t, s; add.u32 %t, %t, %a;\n"
    "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%t]; add.u32 %r0, %r0, %r3;\n"
    "mov.u32 %a, %total_smem_size; st.global.u32 [%d], %a; st.global.u32 [%d+4], %r0; ret; }\n";

/* Shared memory is given out in units: what lies in the last one may be read, behind it not. */
static void shared_memory_ends_with_its_unit(void **state)
{
    CUmodule m;
    CUfunction f;
    uint32_t at = 16, behind = 4096;
    (void)state;
    OK(cuModuleLoadData(&m, shared_unit));
    OK(cuModuleGetFunction(&f, m, "k"));
    CUdeviceptr p = rig_alloc(64);
    void *params[] = { &p, &at };
    OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 28, NULL, params, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(rig_word(p, 0), 128); /* the unit of compute capability 9.0 */
    params[1] = &behind;
    OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 28, NULL, params, NULL));
    ERR(ILLEGAL_ADDRESS, cuCtxSynchronize());
}

static const char not_carried_out[] =
    ".version 8.6\n.target sm_100a\n.address_size 64\n"
    ".visible .entry k() { .reg .pred p; .reg .b64 d; istypep.texref p, d; ret; }\n";

/* A kernel that cannot be started is told once, where one waits; the context lives on. */
static void not_started(void **state)
{
    CUmodule m;
    CUfunction f;
    uint32_t word = 7;
    (void)state;
    OK(cuModuleLoadData(&m, not_carried_out));
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(rig_launch(f, 1, 32, NULL, NULL));
    ERR(NOT_SUPPORTED, cuCtxSynchronize());
    OK(cuCtxSynchronize());
    CUdeviceptr p = rig_alloc(64);
    OK(rig_launch(f, 1, 32, NULL, NULL));
    ERR(NOT_SUPPORTED, cuMemcpyDtoH_v2(&word, p, sizeof word));
    OK(cuMemcpyDtoH_v2(&word, p, sizeof word));
    OK(store_at(p));
    assert_int_equal(rig_word(p, 0), 1);
}

static CUresult seen;

static void on_callback(CUstream s, CUresult status, void *user)
{
    (void)s;
    (void)user;
    seen = status;
}

/* A callback behind a fault is called and told of it. */
static void callback(void **state)
{
    CUdeviceptr bad = 0;
    uint32_t v = 1;
    CUstream s;
    (void)state;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUfunction f = rig_kernel("store");
    OK(rig_launch(f, 1, 1, s, &bad, &v, NULL));
    if (cuStreamAddCallback(s, on_callback, NULL, 0) != CUDA_SUCCESS)
        return; /* the fault was quicker */
    ERR(ILLEGAL_ADDRESS, cuStreamSynchronize(s));
    assert_int_equal(seen, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void primary_reset(void **state)
{
    CUcontext ctx;
    CUdeviceptr p;
    (void)state;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cuCtxSetCurrent(ctx));
    ERR(ILLEGAL_ADDRESS, store_at(0));
    ERR(ILLEGAL_ADDRESS, cuMemAlloc_v2(&p, 64));
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuMemAlloc_v2(&p, 64));
    OK(store_at(p));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuCtxSetCurrent(NULL));
}

/* One line for a fault, however many calls ask. */
static void told_once(void **state)
{
    char line[4096] = "";
    int ends[2], saved = dup(2);
    (void)state;
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    CUresult r = store_at(64);
    cuCtxSynchronize();
    cuCtxSynchronize();
    dup2(saved, 2);
    close(ends[1]);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    close(ends[0]);
    assert_int_equal(r, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    assert_non_null(strstr(line, "store"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_context, rig_end)
    const struct CMUnitTest tests[] = {
        T(null_address),
        T(past_the_end),
        T(host_address),
        T(freed_address),
        T(misaligned),
        T(trap),
        T(forever),
        T(events),
        T(callback),
        T(told_once),
        T(not_started),
        T(shared_memory_ends_with_its_unit),
        cmocka_unit_test(primary_reset),
    };
    setenv("HALFWARP_TIMEOUT", "0.5", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

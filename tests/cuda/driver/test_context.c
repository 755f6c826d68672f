/* SPDX-License-Identifier: Apache-2.0
 * Test: devices, contexts, the stack of current ones, primary contexts, limits. */
#include "rig.h"

#include <pthread.h>

static void devices(void **state)
{
    int n, v;
    size_t bytes;
    char name[64], tiny[4];
    CUdevice d;
    CUuuid a, b;
    (void)state;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    assert_int_equal(n, 2); /* HALFWARP_DEVICE=h100,v100 */
    OK(cuDeviceGet(&d, 1));
    ERR(INVALID_DEVICE, cuDeviceGet(&d, 2));
    ERR(INVALID_DEVICE, cuDeviceGet(&d, -1));
    ERR(INVALID_VALUE, cuDeviceGet(NULL, 0));
    OK(cuDeviceGetName(name, sizeof name, 0));
    assert_non_null(strstr(name, "H100"));
    OK(cuDeviceGetName(tiny, sizeof tiny, 0));
    assert_int_equal(strlen(tiny), 3);
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    assert_true(bytes > (60ull << 30));
    OK(cuDeviceGetUuid(&a, 0));
    OK(cuDeviceGetUuid_v2(&b, 1));
    assert_memory_not_equal(&a, &b, sizeof a);
    OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    assert_int_equal(v, 9);
    OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1));
    assert_int_equal(v, 7);
    OK(cuDeviceGetAttribute(&v, (CUdevice_attribute)20, 0)); /* compute mode */
    assert_int_equal(v, 0);
}

/* Every number is a value or an error, never a crash. */
static void all_attributes(void **state)
{
    int v;
    (void)state;
    for (int i = -2; i < 400; i++) {
        CUresult r = cuDeviceGetAttribute(&v, (CUdevice_attribute)i, 0);
        assert_true(r == CUDA_SUCCESS || r == CUDA_ERROR_INVALID_VALUE);
        assert_true(i < 1 || i > 143 || i == 0 || r == CUDA_SUCCESS || i == 92 || i == 93 ||
                    i == 94);
    }
}

static void bus_ids(void **state)
{
    char id[32];
    CUdevice d;
    (void)state;
    OK(cuDeviceGetPCIBusId(id, sizeof id, 1));
    OK(cuDeviceGetByPCIBusId(&d, id));
    assert_int_equal(d, 1);
    OK(cuDeviceGetByPCIBusId(&d, "01:00.0"));
    assert_int_equal(d, 0);
    ERR(INVALID_DEVICE, cuDeviceGetByPCIBusId(&d, "0000:7f:00.0"));
    ERR(INVALID_VALUE, cuDeviceGetByPCIBusId(&d, "nonsense"));
    ERR(INVALID_VALUE, cuDeviceGetPCIBusId(id, 4, 0));
}

static void peers(void **state)
{
    int v;
    CUcontext a, b;
    (void)state;
    OK(cuDeviceCanAccessPeer(&v, 0, 1));
    assert_int_equal(v, 1);
    OK(cuDeviceCanAccessPeer(&v, 0, 0));
    assert_int_equal(v, 0);
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuCtxCreate_v2(&b, 0, 1));
    OK(cuCtxEnablePeerAccess(a, 0));
    ERR(PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(a, 0));
    ERR(INVALID_DEVICE, cuCtxEnablePeerAccess(b, 0));
    OK(cuCtxDisablePeerAccess(a));
    ERR(PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(a));
    OK(cuCtxDestroy_v2(b));
    OK(cuCtxDestroy_v2(a));
}

static void stack(void **state)
{
    CUcontext a, b, c = (CUcontext)1;
    CUdevice d;
    (void)state;
    OK(cuCtxGetCurrent(&c));
    assert_null(c);
    ERR(INVALID_CONTEXT, cuCtxPopCurrent_v2(&c));
    ERR(INVALID_CONTEXT, cuCtxGetDevice(&d));
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuCtxCreate_v2(&b, 0, 1));
    OK(cuCtxGetDevice(&d));
    assert_int_equal(d, 1);
    OK(cuCtxPopCurrent_v2(&c));
    assert_ptr_equal(c, b);
    OK(cuCtxGetCurrent(&c));
    assert_ptr_equal(c, a);
    OK(cuCtxPushCurrent_v2(b));
    OK(cuCtxSetCurrent(a)); /* replaces b */
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuCtxGetCurrent(&c));
    assert_ptr_equal(c, a);
    OK(cuCtxDestroy_v2(b));
    ERR(INVALID_CONTEXT, cuCtxPushCurrent_v2(b));
    ERR(INVALID_CONTEXT, cuCtxDestroy_v2(b));
    ERR(INVALID_CONTEXT, cuCtxPushCurrent_v2((CUcontext)(uintptr_t)0x123450));
    OK(cuCtxDestroy_v2(a)); /* current: popped */
    OK(cuCtxGetCurrent(&c));
    assert_null(c);
}

static void *other_thread(void *ctx)
{
    CUcontext c = (CUcontext)1;
    OK(cuCtxGetCurrent(&c));
    assert_null(c); /* each thread has a stack of its own */
    OK(cuCtxSetCurrent(ctx));
    OK(cuCtxSynchronize());
    return NULL;
}

static void threads(void **state)
{
    pthread_t t;
    (void)state;
    pthread_create(&t, NULL, other_thread, rig_current());
    pthread_join(t, NULL);
}

/* A context that another call destroyed while it is current. */
static void destroyed_while_current(void **state)
{
    CUcontext a;
    CUdeviceptr p;
    (void)state;
    OK(cuCtxCreate_v2(&a, 0, 0));
    OK(cuCtxPushCurrent_v2(a));
    OK(cuCtxDestroy_v2(a)); /* pops one of the two */
    ERR(CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&p, 4));
    OK(cuCtxPopCurrent_v2(NULL));
}

static void primary(void **state)
{
    CUcontext a, b;
    unsigned flags;
    int active;
    CUdeviceptr p;
    (void)state;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    ERR(INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxSetFlags_v2(0, 4));
    ERR(INVALID_VALUE, cuDevicePrimaryCtxSetFlags_v2(0, 0x1000));
    OK(cuDevicePrimaryCtxRetain(&a, 0));
    OK(cuDevicePrimaryCtxRetain(&b, 0));
    assert_ptr_equal(a, b);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    assert_int_equal(flags, 4);
    ERR(INVALID_CONTEXT, cuCtxDestroy_v2(a));
    OK(cuCtxSetCurrent(a));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuDevicePrimaryCtxReset_v2(0));
    ERR(INVALID_VALUE, cuMemFree_v2(p)); /* gone with the reset */
    OK(cuMemAlloc_v2(&p, 4));            /* and the context works again */
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    ERR(INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    OK(cuCtxSetCurrent(NULL));
}

static void limits(void **state)
{
    size_t v;
    CUfunc_cache cache;
    int least, greatest;
    (void)state;
    OK(cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE));
    assert_int_equal(v, 1024);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    OK(cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE));
    assert_int_equal(v, 4096);
    OK(cuCtxGetLimit(&v, CU_LIMIT_PRINTF_FIFO_SIZE));
    assert_int_equal(v, 1 << 20);
    OK(cuCtxGetLimit(&v, CU_LIMIT_MALLOC_HEAP_SIZE));
    assert_int_equal(v, 8 << 20);
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
    ERR(INVALID_VALUE, cuCtxGetLimit(&v, (CUlimit)99));
    ERR(INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (size_t)1 << 40));
    OK(cuCtxSetCacheConfig((CUfunc_cache)2));
    OK(cuCtxGetCacheConfig(&cache));
    assert_int_equal(cache, 2);
    ERR(INVALID_VALUE, cuCtxSetCacheConfig((CUfunc_cache)9));
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    assert_int_equal(least, 0);
    assert_true(greatest < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices),
        cmocka_unit_test(all_attributes),
        cmocka_unit_test(bus_ids),
        cmocka_unit_test(peers),
        cmocka_unit_test(stack),
        cmocka_unit_test_setup_teardown(threads, rig_context, rig_end),
        cmocka_unit_test(destroyed_while_current),
        cmocka_unit_test(primary),
        cmocka_unit_test_setup_teardown(limits, rig_context, rig_end),
    };
    setenv("HALFWARP_DEVICE", "h100, v100", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Test: allocations, host and managed memory, copies and fills in every form, pools, virtual
 * memory. */
#include "rig.h"

static void alloc_and_free(void **state)
{
    CUdeviceptr p, q, base;
    size_t size, f0, f1, total;
    (void)state;
    OK(cuMemGetInfo_v2(&f0, &total));
    OK(cuMemAlloc_v2(&p, 1000));
    assert_int_equal(p % 256, 0);
    OK(cuMemAlloc_v2(&q, 64 << 20));
    OK(cuMemGetInfo_v2(&f1, &total));
    assert_true(f0 - f1 >= 64 << 20);
    OK(cuMemGetAddressRange_v2(&base, &size, p + 999));
    assert_int_equal(base, p);
    assert_int_equal(size, 1000);
    ERR(NOT_FOUND, cuMemGetAddressRange_v2(&base, &size, 4096));
    ERR(INVALID_VALUE, cuMemAlloc_v2(&q, 0));
    ERR(OUT_OF_MEMORY, cuMemAlloc_v2(&base, (size_t)1 << 50));
    ERR(INVALID_VALUE, cuMemFree_v2(p + 4)); /* inside */
    OK(cuMemFree_v2(p));
    ERR(INVALID_VALUE, cuMemFree_v2(p)); /* twice */
    ERR(INVALID_VALUE, cuMemFree_v2(0x1234));
    OK(cuMemFree_v2(0));
    OK(cuMemFree_v2(q));
    ERR(INVALID_VALUE, cuMemFreeHost((void *)(uintptr_t)q));
}

static void pitched(void **state)
{
    CUdeviceptr p;
    size_t pitch;
    (void)state;
    OK(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 4));
    assert_true(pitch >= 100 && pitch % 256 == 0);
    ERR(INVALID_VALUE, cuMemAllocPitch_v2(&p, &pitch, 100, 10, 3));
    ERR(INVALID_VALUE, cuMemAllocPitch_v2(&p, &pitch, 0, 10, 4));
}

static void host_memory(void **state)
{
    void *p;
    unsigned flags;
    CUdeviceptr d;
    static char own[10000];
    (void)state;
    OK(cuMemHostAlloc(&p, 4096, 2));
    memset(p, 7, 4096);
    OK(cuMemHostGetDevicePointer_v2(&d, p, 0));
    OK(cuMemHostGetFlags(&flags, p));
    assert_int_equal(flags, 2);
    ERR(INVALID_VALUE, cuMemHostAlloc(&p, 4096, 64));
    ERR(INVALID_VALUE, cuMemHostGetFlags(&flags, own));
    ERR(INVALID_VALUE, cuMemFree_v2((uintptr_t)p));
    OK(cuMemFreeHost(p));
    ERR(INVALID_VALUE, cuMemFreeHost(p));
    OK(cuMemHostRegister_v2(own, sizeof own, 0));
    ERR(HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(own + 5000, 100, 0));
    OK(cuMemHostGetDevicePointer_v2(&d, own + 100, 0));
    assert_int_equal(d, (uintptr_t)own + 100);
    OK(cuMemHostUnregister(own));
    ERR(HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
}

static void managed(void **state)
{
    CUdeviceptr p;
    uint32_t v[4] = { 1, 2, 3, 4 };
    int got;
    const CUmemLocation where = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
    (void)state;
    OK(cuMemAllocManaged(&p, 4096, 1));
    memcpy((void *)(uintptr_t)p, v, sizeof v); /* the host may touch it */
    assert_int_equal(rig_word(p, 2), 3);
    ERR(INVALID_VALUE, cuMemAllocManaged(&p, 4096, 0));
    OK(cuMemPrefetchAsync_v2(p, 4096, where, 0, NULL));
    OK(cuMemRangeGetAttribute(&got, sizeof got, (CUmem_range_attribute)4, p, 4096));
    assert_int_equal(got, 0);
    OK(cuMemRangeGetAttribute(&got, sizeof got, (CUmem_range_attribute)2, p, 4096));
    assert_int_equal(got, -2);
    OK(cuMemAdvise_v2(p, 4096, (CUmem_advise)1, where));
    OK(cuMemRangeGetAttribute(&got, sizeof got, (CUmem_range_attribute)1, p, 4096));
    assert_int_equal(got, 1);
    ERR(INVALID_VALUE, cuMemPrefetchAsync_v2(p, 8192, where, 0, NULL));
    OK(cuMemFree_v2(p));
}

static void pointer_attributes(void **state)
{
    CUdeviceptr d, m, start;
    void *h;
    int local, ordinal = 7;
    unsigned type, is_managed;
    CUcontext ctx;
    (void)state;
    CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
    void *data[] = { &ctx, &type, &is_managed, &ordinal };
    OK(cuMemAlloc_v2(&d, 100));
    OK(cuMemAllocManaged(&m, 100, 1));
    OK(cuMemAllocHost_v2(&h, 100));
    OK(cuPointerGetAttributes(4, which, data, d + 50));
    assert_ptr_equal(ctx, rig_current());
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(is_managed, 0);
    assert_int_equal(ordinal, 0);
    OK(cuPointerGetAttributes(4, which, data, m));
    assert_int_equal(is_managed, 1);
    OK(cuPointerGetAttributes(4, which, data, (uintptr_t)h));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    OK(cuPointerGetAttributes(4, which, data, (uintptr_t)&local)); /* nobody's */
    assert_null(ctx);
    assert_int_equal(type, 0);
    assert_int_equal(ordinal, -2);
    ERR(INVALID_VALUE,
        cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&local));
    OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, d + 50));
    assert_int_equal(start, d);
    ERR(INVALID_VALUE, cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_HOST_POINTER, d));
    ERR(INVALID_VALUE, cuPointerGetAttribute(&start, (CUpointer_attribute)99, d));
}

static void flat_copies(void **state)
{
    uint32_t in[256], out[256];
    (void)state;
    for (uint32_t i = 0; i < 256; i++) {
        in[i] = i * 2654435761u;
    }
    CUdeviceptr a = rig_alloc(sizeof in), b = rig_alloc(sizeof in);
    OK(cuMemcpyHtoD_v2(a, in, sizeof in));
    OK(cuMemcpyDtoD_v2(b, a, sizeof in));
    OK(cuMemcpyDtoH_v2(out, b, sizeof in));
    assert_memory_equal(in, out, sizeof in);
    memset(out, 0, sizeof out);
    OK(cuMemcpy((uintptr_t)out, a, sizeof in));
    assert_memory_equal(in, out, sizeof in);
    OK(cuMemcpy(b, (uintptr_t)in, sizeof in));
    OK(cuMemcpyHtoD_v2_ptds(a, in, 4));
    OK(cuMemcpyHtoD_v2(a, NULL, 0));
    ERR(INVALID_VALUE, cuMemcpyHtoD_v2(0, in, 4));
    ERR(INVALID_VALUE, cuMemcpyHtoD_v2(a, NULL, 4));
    ERR(INVALID_VALUE, cuMemcpyHtoD_v2(a, (void *)(uintptr_t)0x10, 4)); /* a wild host pointer */
    ERR(INVALID_VALUE, cuMemcpyHtoD_v2(a, in, sizeof in + 1));          /* past the end */
    ERR(INVALID_VALUE, cuMemcpyHtoD_v2((uintptr_t)in, out, 4));         /* not device memory */
    ERR(INVALID_VALUE, cuMemcpyDtoH_v2(out, b + 1020, 8));
    ERR(INVALID_VALUE,
        cuMemcpyDtoH_v2((void *)(uintptr_t)"constant", b, 4)); /* cannot be written */
    ERR(INVALID_VALUE, cuMemcpyDtoD_v2(a, b, (size_t)-1));
    CUcontext c = rig_current();
    OK(cuMemcpyPeer(a, c, b, c, 16));
    ERR(INVALID_CONTEXT, cuMemcpyPeer(a, NULL, b, c, 16));
}

static void async_copies(void **state)
{
    uint32_t in[4] = { 1, 2, 3, 4 }, *pinned;
    CUstream s;
    void *p;
    (void)state;
    OK(cuStreamCreate(&s, 1));
    OK(cuMemAllocHost_v2(&p, 16));
    pinned = p;
    CUdeviceptr d = rig_alloc(16);
    OK(cuMemcpyHtoDAsync_v2(d, in, 16, s));
    memset(in, 0xFF, sizeof in); /* pageable: read before the call returned */
    OK(cuMemcpyDtoHAsync_v2(pinned, d, 16, s));
    OK(cuStreamSynchronize(s));
    assert_int_equal(pinned[3], 4);
    OK(cuMemsetD32Async(d, 9, 4, s));
    OK(cuMemcpyDtoHAsync_v2(in, d, 16, s)); /* pageable: done when the call returns */
    assert_int_equal(in[3], 9);
    ERR(INVALID_HANDLE, cuMemcpyDtoHAsync_v2(in, d, 16, (CUstream)(uintptr_t)0x5550));
    OK(cuStreamDestroy_v2(s));
    ERR(INVALID_HANDLE, cuMemcpyDtoHAsync_v2(in, d, 16, s));
}

static void copies_2d_and_3d(void **state)
{
    uint8_t in[8][8], out[4][4];
    (void)state;
    for (int i = 0; i < 64; i++) {
        in[i / 8][i % 8] = (uint8_t)i;
    }
    CUdeviceptr d = rig_alloc(64 * 16);
    CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = in,
                        .srcPitch = 8,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = d,
                        .dstPitch = 64,
                        .WidthInBytes = 8,
                        .Height = 8 };
    OK(cuMemcpy2D_v2(&c));
    CUDA_MEMCPY2D back = { .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = d,
                           .srcPitch = 64,
                           .srcXInBytes = 2,
                           .srcY = 3,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = out,
                           .dstPitch = 4,
                           .WidthInBytes = 4,
                           .Height = 4 };
    OK(cuMemcpy2DUnaligned_v2(&back));
    for (int y = 0; y < 4; y++) {
        for (int x = 0; x < 4; x++) {
            assert_int_equal(out[y][x], (y + 3) * 8 + x + 2);
        }
    }
    c.dstPitch = 4; /* less than a row */
    ERR(INVALID_VALUE, cuMemcpy2D_v2(&c));
    c.dstPitch = 64;
    c.Height = 17; /* past the end of both */
    ERR(INVALID_VALUE, cuMemcpy2D_v2(&c));
    ERR(INVALID_VALUE, cuMemcpy2D_v2(NULL));
    CUDA_MEMCPY3D t = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = in,
                        .srcPitch = 4,
                        .srcHeight = 4,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = d,
                        .dstPitch = 16,
                        .dstHeight = 8,
                        .WidthInBytes = 4,
                        .Height = 4,
                        .Depth = 4 };
    OK(cuMemcpy3D_v2(&t));
    uint8_t last;
    OK(cuMemcpyDtoH_v2(&last, d + (3 * 8 + 3) * 16 + 3, 1));
    assert_int_equal(last, 63);
    t.dstHeight = 2;
    ERR(INVALID_VALUE, cuMemcpy3D_v2(&t));
    t.Depth = 0;
    OK(cuMemcpy3D_v2(&t));
}

static void fills(void **state)
{
    (void)state;
    CUdeviceptr d = rig_alloc(1024);
    OK(cuMemsetD32_v2(d, 0x01020304, 256));
    assert_int_equal(rig_word(d, 255), 0x01020304);
    OK(cuMemsetD16_v2(d, 0xABCD, 2));
    assert_int_equal(rig_word(d, 0), 0xABCDABCDu);
    OK(cuMemsetD8_v2(d + 1, 0x55, 2));
    assert_int_equal(rig_word(d, 0), 0xAB5555CDu);
    OK(cuMemsetD2D8_v2(d, 32, 0x11, 4, 3));
    assert_int_equal(rig_word(d, 16), 0x11111111);
    assert_int_equal(rig_word(d, 1), 0x01020304);
    OK(cuMemsetD2D32_v2(d, 64, 5, 2, 2));
    assert_int_equal(rig_word(d, 17), 5);
    ERR(INVALID_VALUE, cuMemsetD32_v2(d + 2, 5, 1)); /* misaligned */
    ERR(INVALID_VALUE, cuMemsetD8_v2(d, 5, 1025));
    ERR(INVALID_VALUE, cuMemsetD32_v2(d, 5, (size_t)-1));
    ERR(INVALID_VALUE, cuMemsetD2D8_v2(d, 2, 5, 4, 2));
    ERR(INVALID_VALUE, cuMemsetD8_v2(0, 5, 1));
}

static void pools(void **state)
{
    CUmemoryPool pool, own;
    CUdeviceptr p, q;
    CUstream s;
    uint64_t v;
    (void)state;
    OK(cuStreamCreate(&s, 1));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocAsync(&p, 1000, s));
    OK(cuMemsetD32Async(p, 3, 250, s));
    OK(cuStreamSynchronize(s));
    assert_int_equal(rig_word(p, 249), 3);
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v));
    assert_int_equal(v, 1024);
    OK(cuMemFreeAsync(p, s));
    ERR(INVALID_VALUE, cuMemFreeAsync(p, s)); /* twice */
    OK(cuStreamSynchronize(s));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v));
    assert_int_equal(v, 0);
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &v));
    assert_int_equal(v, 1024);
    v = 1 << 20;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v));
    OK(cuMemAllocAsync(&p, 5000, s));
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemAllocAsync(&q, 5000, s)); /* kept and given out again */
    assert_int_equal(p, q);
    OK(cuMemFree_v2(q));
    OK(cuMemPoolTrimTo(pool, 0));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &v));
    assert_int_equal(v, 0);
    ERR(INVALID_VALUE, cuMemPoolDestroy(pool)); /* the default one */
    const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    OK(cuMemPoolCreate(&own, &props));
    OK(cuMemAllocFromPoolAsync(&p, 64, own, s));
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemPoolDestroy(own));
    ERR(INVALID_VALUE, cuMemAllocFromPoolAsync(&p, 64, own, s));
    OK(cuMemFreeAsync(rig_alloc(64), s)); /* memory of cuMemAlloc may be freed so, too */
    OK(cuStreamSynchronize(s));
}

static void virtual_memory(void **state)
{
    const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    const CUmemAccessDesc rw = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUmemGenericAllocationHandle h, again;
    CUdeviceptr p;
    size_t g, before, after, total;
    (void)state;
    OK(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemGetInfo_v2(&before, &total));
    OK(cuMemAddressReserve(&p, 4 * g, 0, 0, 0));
    ERR(INVALID_VALUE, cuMemsetD8_v2(p, 1, 1)); /* nothing there yet */
    ERR(INVALID_VALUE, cuMemCreate(&h, g + 1, &prop, 0));
    OK(cuMemCreate(&h, g, &prop, 0));
    OK(cuMemGetInfo_v2(&after, &total));
    assert_int_equal(before - after, g);
    OK(cuMemMap(p, g, 0, h, 0));
    ERR(INVALID_VALUE, cuMemMap(p, g, 0, h, 0)); /* mapped already */
    OK(cuMemMap(p + g, g, 0, h, 0));             /* the same memory a second time */
    ERR(INVALID_VALUE, cuMemsetD8_v2(p, 1, 1));  /* no access yet */
    OK(cuMemSetAccess(p, 2 * g, &rw, 1));
    OK(cuMemsetD32_v2(p, 77, g / 4));
    assert_int_equal(rig_word(p + g, 100), 77);
    ERR(INVALID_VALUE, cuMemsetD8_v2(p + g, 1, g + 1)); /* into the hole */
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + 5)));
    assert_int_equal(again, h);
    OK(cuMemRelease(again));
    OK(cuMemRelease(h)); /* mappings keep it */
    ERR(INVALID_VALUE, cuMemRelease(h));
    assert_int_equal(rig_word(p, 1), 77);
    ERR(INVALID_VALUE, cuMemAddressFree(p, 4 * g)); /* still mapped */
    ERR(INVALID_VALUE, cuMemFree_v2(p));
    OK(cuMemUnmap(p, 2 * g));
    OK(cuMemAddressFree(p, 4 * g));
    OK(cuMemGetInfo_v2(&after, &total));
    assert_int_equal(before, after);
}

/* A pool on the host hands out pinned memory that kernels and the host see. */
static void host_pools(void **state)
{
    CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST },
                  gpu = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = host };
    CUmemoryPool pool, own, current;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemorytype kind;
    CUdeviceptr p;
    uint64_t used = 1;
    (void)state;
    OK(cuMemGetDefaultMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    OK(cuMemGetMemPool(&current, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(pool, current);
    ERR(INVALID_DEVICE, cuDeviceSetMemPool(0, pool));
    OK(cuMemPoolGetAccess(&access, pool, &gpu));
    assert_int_equal(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL));
    OK(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    assert_int_equal(kind, CU_MEMORYTYPE_HOST);
    *(uint32_t *)(uintptr_t)p = 5;
    assert_int_equal(rig_word(p, 0), 5);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuCtxSynchronize());
    ERR(INVALID_VALUE, cuMemFreeAsync(p, NULL));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 0);
    ERR(INVALID_VALUE, cuMemPoolDestroy(pool));
    OK(cuMemPoolCreate(&own, &props));
    OK(cuMemSetMemPool(&host, CU_MEM_ALLOCATION_TYPE_PINNED, own));
    OK(cuMemGetMemPool(&current, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(own, current);
    OK(cuMemPoolDestroy(own));
    OK(cuMemGetMemPool(&current, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    assert_ptr_equal(pool, current);
    OK(cuDeviceGetDefaultMemPool(&current, 0));
    ERR(INVALID_VALUE, cuMemSetMemPool(&host, CU_MEM_ALLOCATION_TYPE_PINNED, current));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_context, rig_end)
    const struct CMUnitTest tests[] = {
        T(alloc_and_free),
        T(pitched),
        T(host_memory),
        T(managed),
        T(pointer_attributes),
        T(flat_copies),
        T(async_copies),
        T(copies_2d_and_3d),
        T(fills),
        T(pools),
        T(host_pools),
        T(virtual_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

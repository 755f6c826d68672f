/* SPDX-License-Identifier: Apache-2.0
 * Memory obtained and released: device, pitched, managed, host, registered, stream-ordered, pools.
 */
#include "state.h"

HW_CUDA(int, cudaMalloc, void **p, size_t n)
{
    uint64_t address = 0;
    HW_CUDA_TRY(hw_cudart_enter());
    if (!p)
        return hw_note(hw_cudaErrorInvalidValue);
    if (n)
        HW_CUDA_TRY(hw_cu.mem_alloc(&address, n));
    *p = (void *)(uintptr_t)address;
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaMallocPitch, void **p, size_t *pitch, size_t width, size_t height)
{
    uint64_t address = 0;
    enum { ELEMENT = 4 };
    HW_CUDA_TRY(hw_cudart_enter());
    if (!p || !pitch)
        return hw_note(hw_cudaErrorInvalidValue);
    *pitch = 0;
    if (width && height)
        HW_CUDA_TRY(hw_cu.mem_alloc_pitch(&address, pitch, width, height, ELEMENT));
    *p = (void *)(uintptr_t)address;
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaMalloc3D, hw_cudaPitchedPtr *p, hw_cudaExtent extent)
{
    if (!p || (extent.depth && extent.height > SIZE_MAX / extent.depth))
        return hw_note(hw_cudaErrorInvalidValue);
    *p = (hw_cudaPitchedPtr){ .xsize = extent.width, .ysize = extent.height };
    return cudaMallocPitch(&p->ptr, &p->pitch, extent.width, extent.height * extent.depth);
}

HW_CUDA(int, cudaMallocManaged, void **p, size_t n, unsigned flags)
{
    uint64_t address = 0;
    HW_CUDA_TRY(hw_cudart_enter());
    if (!p || !n || (flags != hw_cudaMemAttachGlobal && flags != hw_cudaMemAttachHost))
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cu.mem_alloc_managed(&address, n, flags));
    *p = (void *)(uintptr_t)address;
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaFree, void *p)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return p ? hw_note(hw_cu.mem_free((uintptr_t)p)) : hw_cudaSuccess;
}

HW_CUDA(int, cudaMemGetInfo, size_t *free_bytes, size_t *total)
{
    size_t unused;
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.mem_info(free_bytes ? free_bytes : &unused, total ? total : &unused));
}

/* ---- host memory ---- */

HW_CUDA(int, cudaHostAlloc, void **p, size_t n, unsigned flags)
{
    HW_CUDA_TRY(hw_cudart_enter());
    if (!p)
        return hw_note(hw_cudaErrorInvalidValue);
    *p = NULL;
    return n ? hw_note(hw_cu.host_alloc(p, n, flags)) : hw_cudaSuccess;
}

HW_CUDA(int, cudaMallocHost, void **p, size_t n)
{
    return cudaHostAlloc(p, n, 0);
}

HW_CUDA(int, cudaFreeHost, void *p)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return p ? hw_note(hw_cu.host_free(p)) : hw_cudaSuccess;
}

HW_CUDA(int, cudaHostRegister, void *p, size_t n, unsigned flags)
{
    HW_CUDA_TRY(hw_cudart_enter());
    if (!p || !n)
        return hw_note(hw_cudaErrorInvalidValue);
    return hw_note(hw_cu.host_register(p, n, flags));
}

HW_CUDA(int, cudaHostUnregister, void *p)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.host_unregister(p));
}

HW_CUDA(int, cudaHostGetDevicePointer, void **device, void *p, unsigned flags)
{
    uint64_t address = 0;
    HW_CUDA_TRY(hw_cudart_enter());
    if (!device || flags)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cu.host_device_pointer(&address, p, 0));
    *device = (void *)(uintptr_t)address;
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaHostGetFlags, unsigned *flags, void *p)
{
    HW_CUDA_TRY(hw_cudart_enter());
    if (!flags)
        return hw_note(hw_cudaErrorInvalidValue);
    return hw_note(hw_cu.host_flags(flags, p));
}

/* ---- what an address is ---- */

HW_CUDA(int, cudaPointerGetAttributes, hw_cudaPointerAttributes *out, const void *p)
{
    enum { CONTEXT = 1, TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, MANAGED = 8, ORDINAL = 9 };
    enum { UNREGISTERED = 0, HOST = 1, MANAGED_TYPE = 3, NO_DEVICE = -2 };
    HW_CUDA_TRY(hw_cudart_enter());
    if (!out)
        return hw_note(hw_cudaErrorInvalidValue);
    void *ctx = NULL, *host = NULL;
    uint64_t device = 0;
    unsigned type = 0, managed = 0;
    int ordinal = NO_DEVICE;
    int wanted[] = { CONTEXT, TYPE, DEVICE_POINTER, HOST_POINTER, MANAGED, ORDINAL };
    void *places[] = { &ctx, &type, &device, &host, &managed, &ordinal };
    HW_CUDA_TRY(
        hw_cu.pointer_attributes(HW_COUNTOF(wanted), wanted, places, (uint64_t)(uintptr_t)p));
    out->type = managed ? MANAGED_TYPE : (int)type;
    out->device = type == UNREGISTERED ? NO_DEVICE : ordinal;
    out->devicePointer = (void *)(uintptr_t)device;
    out->hostPointer = type == UNREGISTERED ? (void *)p : host;
    return hw_cudaSuccess;
}

/* ---- stream-ordered memory ---- */

HW_CUDA(int, cudaMallocAsync, void **p, size_t n, hw_cudaStream_t stream)
{
    uint64_t address = 0;
    HW_CUDA_TRY(hw_cudart_enter());
    if (!p)
        return hw_note(hw_cudaErrorInvalidValue);
    if (n)
        HW_CUDA_TRY(hw_cu.pool_alloc(&address, n, stream));
    *p = (void *)(uintptr_t)address;
    return hw_cudaSuccess;
}

HW_PER_THREAD(int, cudaMallocAsync_ptsz, (void **p, size_t n, hw_cudaStream_t stream),
              cudaMallocAsync(p, n, hw_per_thread(stream)))

HW_CUDA(int, cudaFreeAsync, void *p, hw_cudaStream_t stream)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return p ? hw_note(hw_cu.pool_free((uintptr_t)p, stream)) : hw_cudaSuccess;
}

HW_PER_THREAD(int, cudaFreeAsync_ptsz, (void *p, hw_cudaStream_t stream),
              cudaFreeAsync(p, hw_per_thread(stream)))

HW_CUDA(int, cudaMallocFromPoolAsync, void **p, size_t n, hw_cudaMemPool_t pool,
        hw_cudaStream_t stream)
{
    uint64_t address = 0;
    HW_CUDA_TRY(hw_cudart_enter());
    if (!p)
        return hw_note(hw_cudaErrorInvalidValue);
    if (n)
        HW_CUDA_TRY(hw_cu.pool_alloc_from(&address, n, pool, stream));
    *p = (void *)(uintptr_t)address;
    return hw_cudaSuccess;
}

HW_PER_THREAD(int, cudaMallocFromPoolAsync_ptsz,
              (void **p, size_t n, hw_cudaMemPool_t pool, hw_cudaStream_t stream),
              cudaMallocFromPoolAsync(p, n, pool, hw_per_thread(stream)))

HW_DRIVER_CALL(cudaMemPoolCreate, (hw_cudaMemPool_t * pool, const void *properties),
               pool_create(pool, properties))
HW_DRIVER_CALL(cudaMemPoolDestroy, (hw_cudaMemPool_t pool), pool_destroy(pool))
HW_DRIVER_CALL(cudaMemPoolTrimTo, (hw_cudaMemPool_t pool, size_t keep), pool_trim(pool, keep))
HW_DRIVER_CALL(cudaMemPoolSetAttribute, (hw_cudaMemPool_t pool, int attribute, void *value),
               pool_set(pool, attribute, value))
HW_DRIVER_CALL(cudaMemPoolGetAttribute, (hw_cudaMemPool_t pool, int attribute, void *value),
               pool_get(pool, attribute, value))
HW_DRIVER_CALL(cudaMemPoolSetAccess, (hw_cudaMemPool_t pool, const void *list, size_t n),
               pool_set_access(pool, list, n))
HW_DRIVER_CALL(cudaMemPoolGetAccess, (int *flags, hw_cudaMemPool_t pool, void *location),
               pool_get_access(flags, pool, location))
HW_DRIVER_CALL(cudaDeviceGetDefaultMemPool, (hw_cudaMemPool_t * pool, int device),
               default_pool(pool, device))
HW_DRIVER_CALL(cudaDeviceGetMemPool, (hw_cudaMemPool_t * pool, int device), get_pool(pool, device))
HW_DRIVER_CALL(cudaDeviceSetMemPool, (int device, hw_cudaMemPool_t pool), set_pool(device, pool))
HW_DRIVER_CALL(cudaMemRangeGetAttribute,
               (void *data, size_t size, int attribute, const void *p, size_t n),
               range_attribute(data, size, attribute, (uintptr_t)p, n))
HW_DRIVER_CALL(cudaMemRangeGetAttributes,
               (void **data, size_t *sizes, int *attributes, size_t count, const void *p, size_t n),
               range_attributes(data, sizes, attributes, count, (uintptr_t)p, n))
HW_DRIVER_CALL(cudaMemGetDefaultMemPool, (hw_cudaMemPool_t * pool, void *where, int type),
               default_pool_of(pool, where, type))
HW_DRIVER_CALL(cudaMemGetMemPool, (hw_cudaMemPool_t * pool, void *where, int type),
               get_pool_of(pool, where, type))
HW_DRIVER_CALL(cudaMemSetMemPool, (void *where, int type, hw_cudaMemPool_t pool),
               set_pool_of(where, type, pool))

/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream-ordered allocation: cuMemAllocAsync, cuMemFreeAsync, memory pools. (CUDA Driver API,
 * "Stream Ordered Memory Allocator".)
 *
 * An allocation is there at once, which is earlier than its place in the stream and so allowed; a
 * free happens at its place in the stream. Freed blocks are kept up to the pool's release threshold
 * and given out again for the same size; what exceeds it goes back to the device. When memory runs
 * out, the frees still queued are waited for first.
 * A pool on the host hands out pinned memory. It is of no device, so any context may use it.
 */
#include "capture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUND_BYTES = 512 };

struct hw_cu_pool {
    CUmemoryPool handle;
    hw_cu_gpu *gpu; /* the first one if the pool is on the host */
    hw_mem_kind kind;
    bool is_default;
    bool shares;   /* made for other processes too */
    bool imported; /* another process's */
    int file;      /* of either: what the processes know it by; -1: none */
    uint64_t inode;
    size_t max_size;
    pthread_mutex_t lock;
    hw_cu_link kept; /* free blocks, by link of hw_cu_block */
    uint64_t reserved, reserved_high, used, used_high, threshold;
    int reuse[3];
    CUmemAccess_flags access[HW_CU_GPUS];
};

/* The host's default pool and its current one; under hw_cu.lock. */
static hw_cu_pool *host_default, *host_current;

static hw_cu_pool *pool_new(hw_cu_gpu *g, hw_mem_kind kind, bool is_default, size_t max_size)
{
    hw_cu_pool *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->gpu = g;
    p->kind = kind;
    p->is_default = is_default;
    p->max_size = max_size;
    p->file = -1;
    pthread_mutex_init(&p->lock, NULL);
    hw_cu_list_init(&p->kept);
    p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
    for (int i = 0; i < HW_CU_GPUS; i++)
        if (kind == HW_MEM_HOST || i == g->ordinal)
            p->access[i] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    p->handle = hw_cu_handle_new(HW_CU_POOL, p);
    return p;
}

CUmemoryPool hw_cu_pool_handle(const hw_cu_pool *p)
{
    return p ? p->handle : NULL;
}

bool hw_cu_pool_shares(const hw_cu_pool *p)
{
    return p && p->shares;
}

static hw_cu_pool *default_pool(hw_cu_gpu *g)
{
    pthread_mutex_lock(&hw_cu.lock);
    if (!g->default_pool)
        g->default_pool = g->pool = pool_new(g, HW_MEM_DEVICE, true, 0);
    pthread_mutex_unlock(&hw_cu.lock);
    return g->default_pool;
}

static CUresult host_pool(bool current, CUmemoryPool *out)
{
    pthread_mutex_lock(&hw_cu.lock);
    if (!host_default)
        host_default = host_current = pool_new(&hw_cu.gpus[0], HW_MEM_HOST, true, 0);
    *out = hw_cu_pool_handle(current ? host_current : host_default);
    pthread_mutex_unlock(&hw_cu.lock);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult find_pool(CUmemoryPool handle, hw_cu_pool **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_POOL);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- blocks ---- */

static uint64_t rounded(uint64_t size)
{
    return (size + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
}

static uint64_t high(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Give kept blocks back until at most keep bytes are reserved. p->lock is held. */
static void trim(hw_cu_pool *p, uint64_t keep)
{
    while (p->reserved > keep && p->kept.next != &p->kept) {
        hw_cu_block *b = HW_CU_ITEM(p->kept.next, hw_cu_block, link);
        p->reserved -= rounded(b->size);
        hw_cu_list_remove(&b->link);
        hw_mem_free(p->gpu->mem, b->address);
        free(b);
    }
}

static hw_cu_block *take_kept(hw_cu_pool *p, uint64_t size)
{
    for (hw_cu_link *l = p->kept.next; l != &p->kept; l = l->next) {
        hw_cu_block *b = HW_CU_ITEM(l, hw_cu_block, link);
        if (rounded(b->size) == rounded(size)) {
            hw_cu_list_remove(l);
            return b;
        }
    }
    return NULL;
}

/* A pool that was destroyed goes with its last block. Unlocks. */
static void unlock(hw_cu_pool *p)
{
    bool ends = !p->handle && !p->used;
    pthread_mutex_unlock(&p->lock);
    if (ends) {
        pthread_mutex_destroy(&p->lock);
        free(p);
    }
}

CUresult hw_cu_pool_free(hw_cu_block *b)
{
    hw_cu_pool *p = b->pool;
    hw_cu_context *ctx = b->ctx;
    CUresult r = CUDA_SUCCESS;
    if (b->import) {
        uint64_t size = rounded(b->size);
        r = hw_cu_free_block(b);
        pthread_mutex_lock(&p->lock);
        p->used -= size;
        unlock(p);
        return r;
    }
    pthread_mutex_lock(&ctx->lock);
    hw_cu_list_remove(&b->link);
    pthread_mutex_unlock(&ctx->lock);
    pthread_mutex_lock(&p->lock);
    p->used -= rounded(b->size);
    b->freed = true;
    hw_cu_list_add(&p->kept, &b->link);
    trim(p, p->threshold);
    unlock(p);
    return r;
}

/* A block goes with its context. */
void hw_cu_pool_forget(hw_cu_block *b)
{
    hw_cu_pool *p = b->pool;
    pthread_mutex_lock(&p->lock);
    p->used -= rounded(b->size);
    p->reserved -= b->import ? 0 : rounded(b->size);
    unlock(p);
}

static CUresult new_block(hw_cu_pool *p, hw_cu_context *ctx, uint64_t size, hw_cu_block **out)
{
    CUdeviceptr address;
    hw_mem_info info;
    CU_TRY(hw_cu_alloc(ctx, rounded(size), 0, p->kind, 0, &address));
    *out = hw_cu_find_block(address, &info);
    (*out)->pool = p;
    pthread_mutex_lock(&p->lock);
    p->reserved += rounded(size);
    p->reserved_high = high(p->reserved_high, p->reserved);
    pthread_mutex_unlock(&p->lock);
    return CUDA_SUCCESS;
}

static CUresult pool_alloc(hw_cu_pool *p, hw_cu_context *ctx, uint64_t size, CUdeviceptr *out)
{
    CU_NEED(size && size <= INT64_MAX && !p->imported, INVALID_VALUE);
    CU_NEED(!p->max_size || p->used + rounded(size) <= p->max_size, OUT_OF_MEMORY);
    pthread_mutex_lock(&p->lock);
    hw_cu_block *b = take_kept(p, size);
    pthread_mutex_unlock(&p->lock);
    if (!b) {
        CUresult r = new_block(p, ctx, size, &b);
        if (r == CUDA_ERROR_OUT_OF_MEMORY) { /* queued frees and kept blocks may make room */
            hw_exec_wait(ctx->exec);
            pthread_mutex_lock(&p->lock);
            trim(p, 0);
            pthread_mutex_unlock(&p->lock);
            r = new_block(p, ctx, size, &b);
        }
        CU_TRY(r);
    } else {
        b->ctx = ctx;
        b->freed = false;
        pthread_mutex_lock(&ctx->lock);
        hw_cu_list_add(&ctx->blocks, &b->link);
        pthread_mutex_unlock(&ctx->lock);
    }
    pthread_mutex_lock(&p->lock);
    p->used += rounded(size);
    p->used_high = high(p->used_high, p->used);
    pthread_mutex_unlock(&p->lock);
    *out = b->address;
    return CUDA_SUCCESS;
}

static CUresult captured_alloc(hw_cu_stream *s, size_t size, CUdeviceptr *out)
{
    const CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                  .alloc = { .bytesize = size } };
    hw_cu_node *n;
    CU_TRY(hw_cu_capture_add(s, &p, &n));
    *out = n->params.alloc.dptr;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
{
    hw_cu_pool *p;
    hw_cu_stream *s;
    CU_NEED(out, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream(stream, &s));
    if (s->capture)
        return captured_alloc(s, size, out);
    CU_TRY(find_pool(pool, &p));
    CU_NEED(p->gpu == s->ctx->gpu || p->access[s->ctx->gpu->ordinal], INVALID_VALUE);
    return pool_alloc(p, s->ctx, size, out);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream)
{
    hw_cu_stream *s;
    CU_TRY(hw_cu_find_stream(stream, &s));
    CU_NEED(default_pool(s->ctx->gpu), OUT_OF_MEMORY);
    return cuMemAllocFromPoolAsync(out, size, s->ctx->gpu->pool->handle, stream);
}

static hw_status free_run(void *p, hw_fault *fault)
{
    (void)fault;
    hw_cu_block *b = p;
    CUresult r = b->pool ? hw_cu_pool_free(b) : hw_cu_free_block(b);
    return r == CUDA_SUCCESS ? HW_OK : HW_E_INVALID;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    hw_cu_stream *s;
    hw_mem_info info;
    CU_TRY(hw_cu_find_stream(stream, &s));
    if (s->capture) {
        const CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = { address } };
        hw_cu_node *n;
        return hw_cu_capture_add(s, &p, &n);
    }
    if (!address)
        return CUDA_SUCCESS;
    hw_cu_block *b = hw_cu_find_block(address, &info);
    CU_NEED(b && info.base == address && (b->pool || info.kind == HW_MEM_DEVICE), INVALID_VALUE);
    if (b->of_graph)
        return CUDA_SUCCESS; /* stays until its graphs go */
    CU_NEED(!b->fixed && !b->reservation && !atomic_exchange(&b->freed, true), INVALID_VALUE);
    return hw_cu_submit(s, free_run, NULL, b);
}

/* ---- pools ---- */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(out, INVALID_VALUE);
    CU_NEED(g->model->capability.memory_pools, NOT_SUPPORTED);
    *out = hw_cu_pool_handle(default_pool(g));
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice dev)
{
    CU_TRY(cuDeviceGetDefaultMemPool(out, dev));
    *out = hw_cu.gpus[dev].pool->handle;
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    hw_cu_pool *p;
    CUmemoryPool ignored;
    CU_TRY(cuDeviceGetDefaultMemPool(&ignored, dev));
    CU_TRY(find_pool(pool, &p));
    CU_NEED(!p->imported, INVALID_VALUE);
    CU_NEED(p->kind == HW_MEM_DEVICE && p->gpu->ordinal == dev, INVALID_DEVICE);
    p->gpu->pool = p;
    return CUDA_SUCCESS;
}

static bool is_on_host(const CUmemLocation *l)
{
    return l->type == CU_MEM_LOCATION_TYPE_HOST || l->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           l->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUresult check_place(const CUmemLocation *l, CUmemAllocationType type)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(l && type == CU_MEM_ALLOCATION_TYPE_PINNED, INVALID_VALUE);
    CU_NEED(l->type == CU_MEM_LOCATION_TYPE_DEVICE || is_on_host(l), NOT_SUPPORTED);
    return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *l, CUmemAllocationType type)
{
    CU_TRY(check_place(l, type));
    CU_NEED(out, INVALID_VALUE);
    return is_on_host(l) ? host_pool(false, out) : cuDeviceGetDefaultMemPool(out, l->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *l, CUmemAllocationType type)
{
    CU_TRY(check_place(l, type));
    CU_NEED(out, INVALID_VALUE);
    return is_on_host(l) ? host_pool(true, out) : cuDeviceGetMemPool(out, l->id);
}

CUresult cuMemSetMemPool(CUmemLocation *l, CUmemAllocationType type, CUmemoryPool pool)
{
    hw_cu_pool *p;
    CUmemoryPool ignored;
    CU_TRY(check_place(l, type));
    if (!is_on_host(l))
        return cuDeviceSetMemPool(l->id, pool);
    CU_TRY(host_pool(true, &ignored));
    CU_TRY(find_pool(pool, &p));
    CU_NEED(p->kind == HW_MEM_HOST, INVALID_VALUE);
    pthread_mutex_lock(&hw_cu.lock);
    host_current = p;
    pthread_mutex_unlock(&hw_cu.lock);
    return CUDA_SUCCESS;
}

/* What a pool is for another process: a file without contents. Its memory is named piece by piece. */
#define FILE_NAME "halfwarp-pool"

static void take_file(hw_cu_pool *p, int fd)
{
    struct stat st;
    p->file = fd;
    p->inode = fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    hw_cu_gpu *g = &hw_cu.gpus[0];
    CU_NEED(out && props, INVALID_VALUE);
    CU_TRY(check_place(&props->location, props->allocType));
    CU_NEED(props->handleTypes <= CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, NOT_SUPPORTED);
    bool host = is_on_host(&props->location);
    CU_NEED(!host || !props->handleTypes, NOT_SUPPORTED);
    if (!host)
        CU_TRY(hw_cu_find_gpu(props->location.id, &g));
    hw_cu_pool *p = pool_new(g, host ? HW_MEM_HOST : HW_MEM_DEVICE, false, props->maxSize);
    CU_NEED(p, OUT_OF_MEMORY);
    p->shares = props->handleTypes != 0;
    if (p->shares)
        take_file(p, memfd_create(FILE_NAME, MFD_CLOEXEC));
    *out = p->handle;
    return CUDA_SUCCESS;
}

/* ---- other processes ---- */

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool handle,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    hw_cu_pool *p;
    CU_TRY(find_pool(handle, &p));
    CU_NEED(out && flags == 0 && p->shares && !p->imported, INVALID_VALUE);
    CU_NEED(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, INVALID_VALUE);
    int fd = p->file < 0 ? -1 : fcntl(p->file, F_DUPFD_CLOEXEC, 0);
    CU_NEED(fd >= 0, OUT_OF_MEMORY);
    memcpy(out, &fd, sizeof fd);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *os_handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    hw_cu_context *ctx;
    uint64_t bytes;
    CU_TRY(hw_cu_current_any(&ctx));
    CU_NEED(out && flags == 0 && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, INVALID_VALUE);
    CU_NEED(hw_cu_is_file((int)(uintptr_t)os_handle, FILE_NAME, &bytes), INVALID_VALUE);
    hw_cu_pool *p = pool_new(ctx->gpu, HW_MEM_DEVICE, false, 0);
    CU_NEED(p, OUT_OF_MEMORY);
    p->imported = true;
    take_file(p, fcntl((int)(uintptr_t)os_handle, F_DUPFD_CLOEXEC, 0));
    *out = p->handle;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr address)
{
    hw_mem_info info;
    CU_TRY(hw_cu_ready());
    hw_cu_block *b = hw_cu_find_block(address, &info);
    CU_NEED(out && b && b->pool && b->pool->shares && info.base == address, INVALID_VALUE);
    return hw_cu_export(b, b->pool->inode, out);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool handle, CUmemPoolPtrExportData *data)
{
    hw_cu_pool *p;
    hw_cu_block *b;
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(find_pool(handle, &p));
    CU_NEED(out && data && p->imported, INVALID_VALUE);
    CUresult r = hw_cu_import(ctx, data, p->inode, &b);
    if (r == CUDA_ERROR_INVALID_HANDLE || r == CUDA_ERROR_MAP_FAILED)
        r = CUDA_ERROR_INVALID_VALUE;
    CU_TRY(r);
    b->pool = p;
    pthread_mutex_lock(&p->lock);
    p->used += rounded(b->size);
    pthread_mutex_unlock(&p->lock);
    *out = b->address;
    return CUDA_SUCCESS;
}

/* Blocks still in use keep the pool's memory until they are freed; the handle goes now. */
CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    hw_cu_pool *p;
    CU_TRY(find_pool(handle, &p));
    CU_NEED(!p->is_default, INVALID_VALUE);
    hw_cu_handle_drop(handle);
    pthread_mutex_lock(&p->lock);
    p->threshold = 0;
    trim(p, 0);
    p->handle = NULL;
    if (p->gpu->pool == p)
        p->gpu->pool = p->gpu->default_pool;
    if (host_current == p)
        host_current = host_default;
    if (p->file >= 0)
        close(p->file);
    p->file = -1;
    unlock(p);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
    hw_cu_pool *p;
    CU_TRY(find_pool(handle, &p));
    pthread_mutex_lock(&p->lock);
    trim(p, keep);
    pthread_mutex_unlock(&p->lock);
    return CUDA_SUCCESS;
}

static uint64_t *counter_of(hw_cu_pool *p, CUmemPool_attribute which)
{
    switch ((int)which) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &p->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &p->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &p->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &p->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &p->used_high;
    default:
        return NULL;
    }
}

static int *reuse_of(hw_cu_pool *p, CUmemPool_attribute which)
{
    return which >= 1 && which <= 3 ? &p->reuse[which - 1] : NULL;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void *value)
{
    hw_cu_pool *p;
    CU_TRY(find_pool(handle, &p));
    const uint64_t *counter = counter_of(p, which);
    const int *reuse = reuse_of(p, which);
    CU_NEED(value && (counter || reuse), INVALID_VALUE);
    pthread_mutex_lock(&p->lock);
    memcpy(value, counter ? (const void *)counter : reuse,
           counter ? sizeof *counter : sizeof *reuse);
    pthread_mutex_unlock(&p->lock);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void *value)
{
    hw_cu_pool *p;
    uint64_t v = 0;
    CU_TRY(find_pool(handle, &p));
    int *reuse = reuse_of(p, which);
    bool mark =
        which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || which == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    CU_NEED(value && (reuse || mark || which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), INVALID_VALUE);
    if (reuse) {
        memcpy(reuse, value, sizeof *reuse);
        return CUDA_SUCCESS;
    }
    memcpy(&v, value, sizeof v);
    CU_NEED(!mark || v == 0, INVALID_VALUE); /* high-water marks can only be reset */
    pthread_mutex_lock(&p->lock);
    if (mark)
        v = which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ? p->reserved : p->used;
    *counter_of(p, which) = v;
    pthread_mutex_unlock(&p->lock);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *map, size_t n)
{
    hw_cu_pool *p;
    hw_cu_gpu *g;
    CU_TRY(find_pool(handle, &p));
    CU_NEED(map || !n, INVALID_VALUE);
    for (size_t i = 0; i < n; i++) {
        if (p->kind == HW_MEM_HOST && is_on_host(&map[i].location))
            continue; /* its own place */
        CU_NEED(map[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE, INVALID_VALUE);
        CU_TRY(hw_cu_find_gpu(map[i].location.id, &g));
        CU_NEED(g != p->gpu || p->kind == HW_MEM_HOST ||
                    map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                INVALID_VALUE);
        p->access[g->ordinal] = map[i].flags;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *l)
{
    hw_cu_pool *p;
    hw_cu_gpu *g;
    CU_TRY(find_pool(handle, &p));
    CU_NEED(flags && l, INVALID_VALUE);
    if (p->kind == HW_MEM_HOST && is_on_host(l)) {
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
    }
    CU_NEED(l->type == CU_MEM_LOCATION_TYPE_DEVICE, INVALID_VALUE);
    CU_TRY(hw_cu_find_gpu(l->id, &g));
    *flags = p->access[g->ordinal];
    return CUDA_SUCCESS;
}

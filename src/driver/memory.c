/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: device, host and managed allocations, registered host memory, what a pointer is.
 * (CUDA Driver API, "Memory Management", "Unified Addressing".)
 *
 * Every allocation of ours carries a block as its tag in room mem; memory without one (exec's own)
 * is not a program's.
 */
#include "driver.h"

#include <stdlib.h>

#define PITCH_BYTES 512

/* ---- blocks ---- */

CUresult hw_cu_alloc(hw_cu_context *ctx, uint64_t size, uint64_t align, hw_mem_kind kind,
                     unsigned flags, CUdeviceptr *out)
{
    uint64_t address;
    hw_mem *mem;
    CU_NEED(size, INVALID_VALUE);
    CU_TRY(hw_cu_gpu_mem(ctx->gpu, &mem));
    bool counts = kind == HW_MEM_DEVICE || kind == HW_MEM_MANAGED;
    uint64_t free_bytes, total;
    hw_mem_usage(mem, &free_bytes, &total);
    CU_NEED(!counts || (size <= free_bytes && size <= free_bytes - ctx->gpu->physical_bytes),
            OUT_OF_MEMORY);
    hw_cu_block *b = calloc(1, sizeof *b);
    CU_NEED(b, OUT_OF_MEMORY);
    CUresult r = hw_cu_result(hw_mem_alloc(mem, size, align, kind, flags, &address));
    if (r != CUDA_SUCCESS) {
        free(b);
        return r;
    }
    *b = (hw_cu_block){ .ctx = ctx, .address = address, .size = size };
    b->preferred.id = b->accessed_by.id = b->prefetched.id = -2; /* CU_DEVICE_INVALID */
    hw_mem_set_tag(mem, address, b);
    pthread_mutex_lock(&ctx->lock);
    hw_cu_list_add(&ctx->blocks, &b->link);
    pthread_mutex_unlock(&ctx->lock);
    *out = address;
    return CUDA_SUCCESS;
}

/* The block's owner has made sure that nothing uses it. */
CUresult hw_cu_free_block(hw_cu_block *b)
{
    hw_cu_context *ctx = b->ctx;
    pthread_mutex_lock(&ctx->lock);
    hw_cu_list_remove(&b->link);
    pthread_mutex_unlock(&ctx->lock);
    hw_cu_import_end(b);
    hw_status s = hw_mem_free(ctx->gpu->mem, b->address);
    free(b);
    return hw_cu_result(s);
}

hw_cu_block *hw_cu_find_block(uint64_t address, hw_mem_info *info)
{
    if (!hw_mem_find(address, info))
        return NULL;
    return info->kind == HW_MEM_REGISTERED ? NULL : info->tag;
}

bool hw_cu_accessible(uint64_t address, uint64_t size)
{
    hw_mem_info info;
    hw_cu_block *b = hw_cu_find_block(address, &info);
    if (!b)
        return hw_mem_is_registered(address, size);
    if (size > info.size || address - info.base > info.size - size)
        return false;
    return b->reservation ? hw_cu_mapped(b, address, size) : true;
}

void hw_cu_blocks_end(hw_cu_context *ctx)
{
    while (ctx->blocks.next != &ctx->blocks) {
        hw_cu_block *b = HW_CU_ITEM(ctx->blocks.next, hw_cu_block, link);
        if (b->pool)
            hw_cu_pool_forget(b);
        hw_cu_free_block(b);
    }
}

/* ---- device memory ---- */

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(hw_cu_capture_unsafe());
    CU_NEED(out, INVALID_VALUE);
    return hw_cu_alloc(ctx, size, 0, HW_MEM_DEVICE, 0, out);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(hw_cu_capture_unsafe());
    CU_NEED(out && pitch && width && height, INVALID_VALUE);
    CU_NEED(element == 4 || element == 8 || element == 16, INVALID_VALUE);
    CU_NEED(width <= INT32_MAX, INVALID_VALUE);
    size_t row = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES, size;
    CU_NEED(!__builtin_mul_overflow(row, height, &size), OUT_OF_MEMORY);
    CU_TRY(hw_cu_alloc(ctx, size, 0, HW_MEM_DEVICE, 0, out));
    *pitch = row;
    return CUDA_SUCCESS;
}

/* A program's own allocation that starts at an address, of one of two kinds. */
static CUresult own_block(uint64_t address, hw_mem_kind a, hw_mem_kind b, hw_cu_block **out)
{
    hw_mem_info info;
    *out = hw_cu_find_block(address, &info);
    CU_NEED(*out && info.base == address && (info.kind == a || info.kind == b), INVALID_VALUE);
    CU_NEED(!(*out)->fixed && !(*out)->reservation, INVALID_VALUE);
    CU_NEED(!(*out)->import || (*out)->pool, INVALID_VALUE); /* for cuIpcCloseMemHandle */
    return CUDA_SUCCESS;
}

/* Waits for the work of the block's context, as cuMemFree does. */
CUresult cuMemFree_v2(CUdeviceptr address)
{
    hw_cu_context *ctx;
    hw_cu_block *b;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(hw_cu_capture_unsafe());
    if (!address)
        return CUDA_SUCCESS;
    CU_TRY(own_block(address, HW_MEM_DEVICE, HW_MEM_MANAGED, &b));
    CU_TRY(hw_cu_synchronize(b->ctx));
    if (b->of_graph)
        return CUDA_SUCCESS;
    if (b->pool)
        return hw_cu_pool_free(b);
    return hw_cu_free_block(b);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    hw_cu_context *ctx;
    uint64_t f, t;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(free_bytes && total, INVALID_VALUE);
    hw_mem_usage(ctx->gpu->mem, &f, &t);
    *free_bytes = f > ctx->gpu->physical_bytes ? f - ctx->gpu->physical_bytes : 0;
    *total = t;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    hw_cu_context *ctx;
    hw_mem_info info;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(hw_cu_find_block(address, &info), NOT_FOUND);
    if (base)
        *base = info.base;
    if (size)
        *size = info.size;
    return CUDA_SUCCESS;
}

/* ---- host memory ---- */

enum { HOST_PORTABLE = 1, HOST_DEVICEMAP = 2, HOST_ALLOC_FLAGS = 7, HOST_REGISTER_FLAGS = 15 };

CUresult cuMemHostAlloc(void **out, size_t size, unsigned int flags)
{
    hw_cu_context *ctx;
    CUdeviceptr address;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(hw_cu_capture_unsafe());
    CU_NEED(out && (flags & ~(unsigned)HOST_ALLOC_FLAGS) == 0, INVALID_VALUE);
    CU_TRY(hw_cu_alloc(ctx, size, 0, HW_MEM_HOST, flags, &address));
    *out = (void *)(uintptr_t)address;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **out, size_t size)
{
    return cuMemHostAlloc(out, size, HOST_DEVICEMAP);
}

CUresult cuMemFreeHost(void *p)
{
    hw_cu_context *ctx;
    hw_cu_block *b;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(hw_cu_capture_unsafe());
    if (!p)
        return CUDA_SUCCESS;
    CU_TRY(own_block((uintptr_t)p, HW_MEM_HOST, HW_MEM_HOST, &b));
    CU_TRY(hw_cu_synchronize(b->ctx));
    return hw_cu_free_block(b);
}

CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned int flags)
{
    hw_cu_context *ctx;
    hw_mem_info info;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(p && size && (flags & ~(unsigned)HOST_REGISTER_FLAGS) == 0, INVALID_VALUE);
    uintptr_t first = (uintptr_t)p;
    CU_NEED(size <= UINTPTR_MAX - first, INVALID_VALUE);
    CU_NEED(!hw_mem_find(first, &info) && !hw_mem_find(first + size - 1, &info),
            HOST_MEMORY_ALREADY_REGISTERED);
    hw_status s = hw_mem_register(ctx->gpu->mem, p, size, flags);
    return s == HW_E_INVALID ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : hw_cu_result(s);
}

CUresult cuMemHostUnregister(void *p)
{
    hw_cu_context *ctx;
    hw_mem_info info;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(p, INVALID_VALUE);
    CU_NEED(hw_mem_find((uintptr_t)p, &info) && info.kind == HW_MEM_REGISTERED &&
                info.base == (uintptr_t)p,
            HOST_MEMORY_NOT_REGISTERED);
    CU_TRY(hw_cu_synchronize(ctx));
    return hw_cu_result(hw_mem_unregister(info.owner, p));
}

static bool is_host(const void *p, hw_mem_info *info)
{
    return hw_mem_find((uintptr_t)p, info) &&
           (info->kind == HW_MEM_HOST || info->kind == HW_MEM_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p, unsigned int flags)
{
    hw_cu_context *ctx;
    hw_mem_info info;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(out && flags == 0 && is_host(p, &info), INVALID_VALUE);
    *out = (uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *p)
{
    hw_cu_context *ctx;
    hw_mem_info info;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(flags && is_host(p, &info), INVALID_VALUE);
    *flags = info.flags;
    return CUDA_SUCCESS;
}

/* ---- managed memory ---- */

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(hw_cu_capture_unsafe());
    CU_NEED(out && (flags == 1 || flags == 2), INVALID_VALUE); /* CU_MEM_ATTACH_GLOBAL or _HOST */
    CU_NEED(ctx->gpu->model->capability.managed_memory, NOT_SUPPORTED);
    return hw_cu_alloc(ctx, size, 0, HW_MEM_MANAGED, flags, out);
}

/* ---- what a pointer is ---- */

typedef struct pointer {
    uint64_t address;
    bool known;
    hw_mem_info info;
    hw_cu_block *block; /* NULL: registered host memory */
    hw_cu_gpu *gpu;
} pointer;

static pointer look_at(uint64_t address)
{
    pointer p = { .address = address };
    p.block = hw_cu_find_block(address, &p.info);
    p.known = p.block || hw_mem_is_registered(address, 1);
    for (int i = 0; i < hw_cu.ngpus; i++) {
        if (p.known && hw_cu.gpus[i].mem == p.info.owner)
            p.gpu = &hw_cu.gpus[i];
    }
    return p;
}

static bool on_host(const pointer *p)
{
    return p->info.kind == HW_MEM_HOST || p->info.kind == HW_MEM_REGISTERED;
}

static uint64_t context_value(const pointer *p)
{
    CUcontext c = p->block && p->block->reservation ? NULL
                  : p->block                        ? p->block->ctx->handle
                  : p->gpu && p->gpu->primary       ? p->gpu->primary->handle
                                                    : NULL;
    return (uintptr_t)c;
}

static uint64_t type_value(const pointer *p)
{
    return on_host(p) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static uint64_t device_pointer_value(const pointer *p)
{
    return p->address;
}

static uint64_t host_pointer_value(const pointer *p)
{
    return on_host(p) || p->info.kind == HW_MEM_MANAGED ? p->address : 0;
}

static uint64_t zero_value(const pointer *p)
{
    (void)p;
    return 0;
}

static uint64_t sync_value(const pointer *p)
{
    return p->block && p->block->sync_memops;
}

static uint64_t id_value(const pointer *p)
{
    return p->info.id;
}

static uint64_t legacy_ipc_value(const pointer *p)
{
    return p->block && p->info.kind == HW_MEM_DEVICE && !p->block->pool && !p->block->import &&
           !p->block->of_graph && !p->block->fixed;
}

static uint64_t managed_value(const pointer *p)
{
    return p->info.kind == HW_MEM_MANAGED;
}

static uint64_t ordinal_value(const pointer *p)
{
    return p->gpu ? (uint64_t)p->gpu->ordinal : 0;
}

/* Handle types that cuMemCreate or the pool was asked for. */
static uint64_t handle_types_value(const pointer *p)
{
    if (p->block && p->block->reservation)
        return hw_cu_mapped_types(p->block, p->address);
    return p->block && hw_cu_pool_shares(p->block->pool) ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                                         : CU_MEM_HANDLE_TYPE_NONE;
}

static uint64_t start_value(const pointer *p)
{
    return p->info.base;
}

static uint64_t size_value(const pointer *p)
{
    return p->info.size;
}

static uint64_t mapped_value(const pointer *p)
{
    return !p->block || !p->block->reservation || hw_cu_mapped(p->block, p->address, 1);
}

static uint64_t access_value(const pointer *p)
{
    (void)p;
    return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

static uint64_t pool_value(const pointer *p)
{
    return p->block ? (uintptr_t)hw_cu_pool_handle(p->block->pool) : 0;
}

static const struct {
    uint64_t (*value)(const pointer *p);
    uint32_t bytes;
} pointer_attributes[] = {
    [CU_POINTER_ATTRIBUTE_CONTEXT] = { context_value, 8 },
    [CU_POINTER_ATTRIBUTE_MEMORY_TYPE] = { type_value, 4 },
    [CU_POINTER_ATTRIBUTE_DEVICE_POINTER] = { device_pointer_value, 8 },
    [CU_POINTER_ATTRIBUTE_HOST_POINTER] = { host_pointer_value, 8 },
    [CU_POINTER_ATTRIBUTE_SYNC_MEMOPS] = { sync_value, 4 },
    [CU_POINTER_ATTRIBUTE_BUFFER_ID] = { id_value, 8 },
    [CU_POINTER_ATTRIBUTE_IS_MANAGED] = { managed_value, 4 },
    [CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL] = { ordinal_value, 4 },
    [CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE] = { legacy_ipc_value, 4 },
    [CU_POINTER_ATTRIBUTE_RANGE_START_ADDR] = { start_value, 8 },
    [CU_POINTER_ATTRIBUTE_RANGE_SIZE] = { size_value, 8 },
    [CU_POINTER_ATTRIBUTE_MAPPED] = { mapped_value, 4 },
    [CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES] = { handle_types_value, 8 },
    [CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE] = { zero_value, 4 },
    [CU_POINTER_ATTRIBUTE_ACCESS_FLAGS] = { access_value, 4 },
    [CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE] = { pool_value, 8 },
    [CU_POINTER_ATTRIBUTE_MAPPING_SIZE] = { size_value, 8 },
    [CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR] = { start_value, 8 },
    [CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID] = { id_value, 8 },
    [CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE] = { zero_value, 4 },
};

static CUresult pointer_attribute(const pointer *p, CUpointer_attribute which, void *data)
{
    CU_NEED(data && (unsigned)which < HW_COUNTOF(pointer_attributes) &&
                pointer_attributes[which].value,
            INVALID_VALUE);
    uint64_t v = p->known                                       ? pointer_attributes[which].value(p)
                 : which == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (uint64_t)-2
                                                                : 0;
    memcpy(data, &v, pointer_attributes[which].bytes); /* little-endian: the low bytes */
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr address)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current_any(&ctx));
    pointer p = look_at(address);
    CU_NEED(p.known, INVALID_VALUE);
    CU_NEED(which != CU_POINTER_ATTRIBUTE_HOST_POINTER || host_pointer_value(&p), INVALID_VALUE);
    return pointer_attribute(&p, which, data);
}

/* Succeeds for memory nobody allocated, too: zeros, device -2. */
CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *which, void **data,
                                CUdeviceptr address)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current_any(&ctx));
    CU_NEED(which && data, INVALID_VALUE);
    pointer p = look_at(address);
    for (unsigned i = 0; i < n; i++) {
        CU_TRY(pointer_attribute(&p, which[i], data[i]));
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute which, CUdeviceptr address)
{
    hw_cu_context *ctx;
    hw_mem_info info;
    CU_TRY(hw_cu_current(&ctx));
    hw_cu_block *b = hw_cu_find_block(address, &info);
    CU_NEED(value && which == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && b, INVALID_VALUE);
    uint32_t on;
    memcpy(&on, value, sizeof on);
    b->sync_memops = on != 0;
    return CUDA_SUCCESS;
}

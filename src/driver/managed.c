/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory's hints: prefetch, advice, attributes of ranges. (CUDA Driver API, "Unified
 * Addressing".)
 *
 * Host and device share the memory here, so nothing moves; what was said is checked, kept by
 * allocation and told again.
 */
#include "driver.h"

enum { DEVICE_CPU = -1, DEVICE_INVALID = -2 };

static CUresult check_location(CUmemLocation l)
{
    hw_cu_gpu *g;
    if (l.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return hw_cu_find_gpu(l.id, &g);
    CU_NEED(l.type >= CU_MEM_LOCATION_TYPE_HOST && l.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
            INVALID_VALUE);
    return CUDA_SUCCESS;
}

static CUresult find_range(CUdeviceptr address, size_t size, hw_cu_block **out)
{
    hw_mem_info info;
    CU_NEED(size, INVALID_VALUE);
    *out = hw_cu_find_block(address, &info);
    CU_NEED(*out && info.kind == HW_MEM_MANAGED, INVALID_VALUE);
    CU_NEED(hw_cu_accessible(address, size), INVALID_VALUE);
    return CUDA_SUCCESS;
}

static CUmemLocation location_of(CUdevice dev)
{
    return dev == DEVICE_CPU ? (CUmemLocation){ CU_MEM_LOCATION_TYPE_HOST, 0 }
                             : (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, dev };
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation l,
                               unsigned int flags, CUstream stream)
{
    hw_cu_stream *s;
    hw_cu_block *b;
    CU_NEED(flags == 0, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream(stream, &s));
    CU_TRY(find_range(address, size, &b));
    CU_TRY(check_location(l));
    b->prefetched = l;
    return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice dev, CUstream stream)
{
    return cuMemPrefetchAsync_v2(address, size, location_of(dev), 0, stream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t n,
                                 CUmemLocation *locations, size_t *first, size_t nlocations,
                                 unsigned long long flags, CUstream stream)
{
    CU_NEED(addresses && sizes && n && locations && first && nlocations && flags == 0,
            INVALID_VALUE);
    for (size_t i = 0, at = 0; i < n; i++) {
        while (at + 1 < nlocations && first[at + 1] <= i)
            at++;
        CU_TRY(cuMemPrefetchAsync_v2(addresses[i], sizes[i], locations[at], 0, stream));
    }
    return CUDA_SUCCESS;
}

enum {
    ADVISE_READ_MOSTLY = 1,
    ADVISE_NOT_READ_MOSTLY,
    ADVISE_PREFER,
    ADVISE_NOT_PREFER,
    ADVISE_ACCESSED,
    ADVISE_NOT_ACCESSED
};

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation l)
{
    hw_cu_context *ctx;
    hw_cu_block *b;
    const CUmemLocation none = { CU_MEM_LOCATION_TYPE_INVALID, DEVICE_INVALID };
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(find_range(address, size, &b));
    switch ((int)advice) {
    case ADVISE_READ_MOSTLY:
    case ADVISE_NOT_READ_MOSTLY:
        b->read_mostly = (int)advice == ADVISE_READ_MOSTLY;
        return CUDA_SUCCESS;
    case ADVISE_PREFER:
        CU_TRY(check_location(l));
        b->preferred = l;
        return CUDA_SUCCESS;
    case ADVISE_NOT_PREFER:
        b->preferred = none;
        return CUDA_SUCCESS;
    case ADVISE_ACCESSED:
        CU_TRY(check_location(l));
        b->accessed_by = l;
        return CUDA_SUCCESS;
    case ADVISE_NOT_ACCESSED:
        b->accessed_by = none;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice dev)
{
    return cuMemAdvise_v2(address, size, advice, location_of(dev));
}

/* ---- attributes of ranges ---- */

static int32_t ordinal_of(CUmemLocation l)
{
    return l.type == CU_MEM_LOCATION_TYPE_DEVICE ? l.id : l.type ? DEVICE_CPU : DEVICE_INVALID;
}

static CUresult range_attribute(void *data, size_t size, CUmem_range_attribute which,
                                const hw_cu_block *b)
{
    const int32_t values[] = { 0,
                               b->read_mostly,
                               ordinal_of(b->preferred),
                               ordinal_of(b->accessed_by),
                               ordinal_of(b->prefetched),
                               (int32_t)b->preferred.type,
                               b->preferred.type ? b->preferred.id : 0,
                               (int32_t)b->prefetched.type,
                               b->prefetched.type ? b->prefetched.id : 0 };
    CU_NEED(which >= CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY && (unsigned)which < HW_COUNTOF(values),
            INVALID_VALUE);
    CU_NEED(data && size >= sizeof(int32_t) && size % sizeof(int32_t) == 0, INVALID_VALUE);
    CU_NEED(which == 3 || size == sizeof(int32_t), INVALID_VALUE);
    int32_t *out = data;
    for (size_t i = 0; i < size / sizeof *out;
         i++) { /* a list for ACCESSED_BY: filled up with "none" */
        out[i] = i == 0 ? values[which] : DEVICE_INVALID;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute which,
                                CUdeviceptr address, size_t bytes)
{
    hw_cu_context *ctx;
    hw_cu_block *b;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(find_range(address, bytes, &b));
    return range_attribute(data, size, which, b);
}

CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *which, size_t n,
                                 CUdeviceptr address, size_t bytes)
{
    CU_NEED(data && sizes && which && n, INVALID_VALUE);
    for (size_t i = 0; i < n; i++) {
        CU_TRY(cuMemRangeGetAttribute(data[i], sizes[i], which[i], address, bytes));
    }
    return CUDA_SUCCESS;
}

/* Which stream may use managed memory is a promise of the program's that nothing here needs. */
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t length,
                                unsigned int flags)
{
    hw_cu_stream *s;
    hw_mem_info info;
    CU_TRY(hw_cu_find_stream(stream, &s));
    CU_NEED(flags == 1 || flags == 2 || flags == 4, INVALID_VALUE);
    CU_NEED(hw_cu_find_block(address, &info) && info.kind == HW_MEM_MANAGED, INVALID_VALUE);
    CU_NEED(!length || length == info.size, INVALID_VALUE);
    return CUDA_SUCCESS;
}

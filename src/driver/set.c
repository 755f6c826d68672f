/* SPDX-License-Identifier: Apache-2.0
 * Fills: cuMemset* of one and two dimensions, 8, 16 and 32 bits. (CUDA Driver API, "Memory
 * Management".)
 */
#include "copy.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE_BYTES = 1 << 20, PAGE_BYTES = 4096 };

/* Memory of the device's own, whose pages nothing else shows? */
static bool is_private(uint64_t address, uint64_t size)
{
    hw_mem_info info;
    return hw_mem_find(address, &info) && size <= info.size &&
           address - info.base <= info.size - size && info.kind != HW_MEM_INTERNAL &&
           info.kind != HW_MEM_RESERVED && info.kind != HW_MEM_REGISTERED && !info.shared;
}

/* Zeros, without touching the pages of a large range. */
void hw_cu_zero(uint64_t address, uint64_t size)
{
    uint64_t first = (address + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    uint64_t last = (address + size) / PAGE_BYTES * PAGE_BYTES;
    if (size >= LARGE_BYTES && is_private(address, size) &&
        madvise((void *)(uintptr_t)first, last - first, MADV_DONTNEED) == 0) {
        memset((void *)(uintptr_t)address, 0, first - address);
        memset((void *)(uintptr_t)last, 0, address + size - last);
        return;
    }
    memset((void *)(uintptr_t)address, 0, size);
}

static void fill_row(uint64_t address, const hw_cu_fill *f)
{
    void *p = (void *)(uintptr_t)address;
    if (f->element == 1 && f->value == 0)
        hw_cu_zero(address, f->width);
    else if (f->element == 1)
        memset(p, (int)f->value, f->width);
    if (f->element == 2) {
        for (size_t i = 0; i < f->width; i++) {
            ((uint16_t *)p)[i] = (uint16_t)f->value;
        }
    }
    if (f->element == 4) {
        for (size_t i = 0; i < f->width; i++) {
            ((uint32_t *)p)[i] = f->value;
        }
    }
}

void hw_cu_fill_now(const hw_cu_fill *f)
{
    for (size_t y = 0; y < f->height; y++) {
        fill_row(f->address + y * f->pitch, f);
    }
}

static hw_status fill_run(void *p, hw_fault *fault)
{
    (void)fault;
    hw_cu_fill_now(p);
    return HW_OK;
}

static bool all_bytes_equal(uint32_t value, uint32_t element)
{
    uint32_t byte = value & 255;
    return element == 2 ? (value & 0xFFFF) == byte * 0x101u : value == byte * 0x1010101u;
}

/* Checked, and made bytes where that is the same. */
CUresult hw_cu_fill_of(hw_cu_fill f, hw_cu_fill *out)
{
    size_t row, span;
    CU_NEED(f.element == 1 || f.element == 2 || f.element == 4, INVALID_VALUE);
    CU_NEED(f.address % f.element == 0 && f.pitch % f.element == 0, INVALID_VALUE);
    if (f.element == 1)
        f.value &= 255;
    *out = f;
    if (!f.width || !f.height)
        return CUDA_SUCCESS;
    CU_NEED(!__builtin_mul_overflow(f.width, (size_t)f.element, &row), INVALID_VALUE);
    CU_NEED(f.height == 1 || f.pitch >= row, INVALID_VALUE);
    CU_NEED(!__builtin_mul_overflow(f.pitch, f.height - 1, &span), INVALID_VALUE);
    CU_NEED(!__builtin_add_overflow(span, row, &span), INVALID_VALUE);
    CU_NEED(f.address && hw_cu_accessible(f.address, span), INVALID_VALUE);
    if (f.element > 1 && all_bytes_equal(f.value, f.element)) {
        out->value = f.value & 255;
        out->element = 1;
        out->width = row;
    }
    return CUDA_SUCCESS;
}

static CUresult fill(hw_cu_fill wanted, CUstream handle, bool async)
{
    hw_cu_stream *s;
    hw_cu_fill f;
    bool captured;
    CU_TRY(hw_cu_find_stream(handle, &s));
    CU_TRY(hw_cu_fill_of(wanted, &f));
    CU_TRY(hw_cu_capture_fill(s, &f, &captured));
    if (captured || !f.width || !f.height)
        return CUDA_SUCCESS;
    if (!async)
        return hw_cu_run(s, fill_run, NULL, &f);
    hw_cu_fill *t = malloc(sizeof *t);
    CU_NEED(t, OUT_OF_MEMORY);
    *t = f;
    return hw_cu_submit(s, fill_run, free, t);
}

/* One element size's four entry points. */
#define FILLS(bits, type)                                                                        \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type v, size_t n)                             \
    {                                                                                            \
        return fill((hw_cu_fill){ dst, 0, n, 1, v, bits / 8 }, NULL, false);                     \
    }                                                                                            \
    CUresult cuMemsetD##bits##Async(CUdeviceptr dst, type v, size_t n, CUstream s)               \
    {                                                                                            \
        return fill((hw_cu_fill){ dst, 0, n, 1, v, bits / 8 }, s, true);                         \
    }                                                                                            \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr dst, size_t pitch, type v, size_t w, size_t h)   \
    {                                                                                            \
        return fill((hw_cu_fill){ dst, pitch, w, h, v, bits / 8 }, NULL, false);                 \
    }                                                                                            \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type v, size_t w, size_t h, \
                                      CUstream s)                                                \
    {                                                                                            \
        return fill((hw_cu_fill){ dst, pitch, w, h, v, bits / 8 }, s, true);                     \
    }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)

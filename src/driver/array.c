/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays and mipmapped arrays: made, described, copied. (CUDA Driver API, "Memory Management".)
 *
 * An array is laid out in rows and slices like pitched memory; layers and cube faces are slices. A mipmapped array's
 * levels are arrays of their own, each half the size of the one before.
 */
#include "array.h"

#include <stdlib.h>

enum { ROW_ALIGN = 512 };

struct hw_cu_mipmap {
    CUmipmappedArray handle;
    hw_cu_context *ctx;
    unsigned nlevels;
    hw_cu_array **levels;
    hw_cu_link link;
};

size_t hw_cu_texel_bytes(CUarray_format format, unsigned channels)
{
    static const struct {
        CUarray_format format;
        size_t bytes;
    } formats[] = {
        { CU_AD_FORMAT_UNSIGNED_INT8, 1 },  { CU_AD_FORMAT_SIGNED_INT8, 1 },
        { CU_AD_FORMAT_UNSIGNED_INT16, 2 }, { CU_AD_FORMAT_SIGNED_INT16, 2 },
        { CU_AD_FORMAT_HALF, 2 },           { CU_AD_FORMAT_UNSIGNED_INT32, 4 },
        { CU_AD_FORMAT_SIGNED_INT32, 4 },   { CU_AD_FORMAT_FLOAT, 4 },
    };
    if (channels != 1 && channels != 2 && channels != 4)
        return 0;
    for (size_t i = 0; i < HW_COUNTOF(formats); i++) {
        if (formats[i].format == format)
            return formats[i].bytes * channels;
    }
    return 0;
}

/* ---- making and ending ---- */

/* Which dimensions go together. */
static bool shape_makes_sense(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    bool layered = d->Flags & ARRAY_LAYERED, cube = d->Flags & ARRAY_CUBEMAP;
    if (!d->Width || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
        return false;
    if (layered ? !d->Depth : d->Depth && !d->Height)
        return false;
    return !cube || (d->Width == d->Height && d->Depth % 6 == 0 && (layered || d->Depth == 6));
}

static CUresult check_shape(const hw_cu_gpu *g, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    const unsigned known = ARRAY_LAYERED | ARRAY_SURFACE | ARRAY_CUBEMAP | ARRAY_GATHER;
    bool stacked = d->Flags & (ARRAY_LAYERED | ARRAY_CUBEMAP);
    CU_NEED((d->Flags & ~known) == 0, NOT_SUPPORTED);
    CU_NEED(shape_makes_sense(d), INVALID_VALUE);
    const hw_list *most = stacked    ? &g->model->textures.tex2d_layered
                          : d->Depth ? &g->model->textures.tex3d
                                     : &g->model->textures.tex2d;
    size_t width = d->Height ? most->v[0] : g->model->textures.tex1d;
    CU_NEED(d->Width <= width && d->Height <= most->v[1], INVALID_VALUE);
    CU_NEED(!d->Depth || most->len < 3 || d->Depth <= most->v[2], INVALID_VALUE);
    return CUDA_SUCCESS;
}

static CUresult array_new(hw_cu_context *ctx, const CUDA_ARRAY3D_DESCRIPTOR *d, hw_cu_array **out)
{
    hw_mem_info info;
    size_t element = hw_cu_texel_bytes(d->Format, d->NumChannels);
    if (!element) {
        hw_cu_notice("arrays of format 0x%x are not supported yet (docs/coverage-driver.md)",
                     (unsigned)d->Format);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    hw_cu_array *a = calloc(1, sizeof *a);
    CU_NEED(a, OUT_OF_MEMORY);
    *a = (hw_cu_array){ .ctx = ctx, .desc = *d, .element = element };
    a->rows = d->Height ? d->Height : 1;
    a->slices = d->Depth ? d->Depth : 1;
    a->pitch = (d->Width * element + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
    a->slice = a->pitch * a->rows;
    CUresult r = hw_cu_alloc(ctx, a->slice * a->slices, 0, HW_MEM_DEVICE, 0, &a->address);
    if (r != CUDA_SUCCESS) {
        free(a);
        return r;
    }
    hw_cu_find_block(a->address, &info)->fixed = true;
    a->handle = hw_cu_handle_new(HW_CU_ARRAY, a);
    *out = a;
    return CUDA_SUCCESS;
}

static void array_end(hw_cu_array *a)
{
    hw_mem_info info;
    hw_cu_block *b = hw_cu_find_block(a->address, &info);
    hw_cu_handle_drop(a->handle);
    hw_cu_list_remove(&a->link);
    if (b)
        hw_cu_free_block(b);
    free(a);
}

CUresult hw_cu_find_array(CUarray handle, hw_cu_array **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_ARRAY);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static void keep(hw_cu_context *ctx, hw_cu_link *list, hw_cu_link *item)
{
    pthread_mutex_lock(&ctx->lock);
    hw_cu_list_add(list, item);
    pthread_mutex_unlock(&ctx->lock);
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    hw_cu_context *ctx;
    hw_cu_array *a;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(out && d, INVALID_VALUE);
    CU_TRY(check_shape(ctx->gpu, d));
    CU_TRY(array_new(ctx, d, &a));
    keep(ctx, &ctx->arrays, &a->link);
    *out = a->handle;
    return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
    CU_NEED(d, INVALID_VALUE);
    const CUDA_ARRAY3D_DESCRIPTOR d3 = { d->Width, d->Height, 0, d->Format, d->NumChannels, 0 };
    return cuArray3DCreate_v2(out, &d3);
}

CUresult cuArrayDestroy(CUarray handle)
{
    hw_cu_array *a;
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(hw_cu_find_array(handle, &a));
    CU_NEED(!a->mipmap, INVALID_HANDLE);
    CU_TRY(hw_cu_synchronize(a->ctx));
    array_end(a);
    return CUDA_SUCCESS;
}

/* ---- describing ---- */

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray handle)
{
    hw_cu_array *a;
    CU_TRY(hw_cu_find_array(handle, &a));
    CU_NEED(d, INVALID_VALUE);
    *d = a->desc;
    return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *d, CUarray handle)
{
    hw_cu_array *a;
    CU_TRY(hw_cu_find_array(handle, &a));
    CU_NEED(d, INVALID_VALUE);
    *d = (CUDA_ARRAY_DESCRIPTOR){ a->desc.Width, a->desc.Height, a->desc.Format,
                                  a->desc.NumChannels };
    return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray handle,
                                      CUdevice dev)
{
    hw_cu_array *a;
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_array(handle, &a));
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(out, INVALID_VALUE);
    *out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){ .size = a->slice * a->slices, .alignment = ROW_ALIGN };
    return CUDA_SUCCESS;
}

/* ---- copying ---- */

CUresult hw_cu_array_side(CUarray handle, const size_t offset[3], const size_t extent[3],
                          hw_cu_side *out)
{
    hw_cu_array *a;
    CU_TRY(hw_cu_find_array(handle, &a));
    const size_t size[3] = { a->desc.Width * a->element, a->rows, a->slices };
    for (int i = 0; i < 3; i++) {
        CU_NEED(offset[i] <= size[i] && extent[i] <= size[i] - offset[i], INVALID_VALUE);
    }
    out->pitch = a->pitch;
    out->slice = a->slice;
    out->address = a->address + offset[2] * a->slice + offset[1] * a->pitch + offset[0];
    return CUDA_SUCCESS;
}

/* One-dimensional copies take arrays of one row. */
static CUresult copy_row(CUmemorytype dk, CUarray da, size_t doff, uint64_t d, CUmemorytype sk,
                         CUarray sa, size_t soff, uint64_t s, size_t bytes, CUstream stream,
                         bool async)
{
    const CUDA_MEMCPY3D c = {
        .srcMemoryType = sk,
        .srcArray = sa,
        .srcXInBytes = soff,
        .srcHost = (const void *)(uintptr_t)s,
        .srcDevice = s,
        .dstMemoryType = dk,
        .dstArray = da,
        .dstXInBytes = doff,
        .dstHost = (void *)(uintptr_t)d,
        .dstDevice = d,
        .WidthInBytes = bytes,
        .Height = 1,
        .Depth = 1,
    };
    return async ? cuMemcpy3DAsync_v2(&c, stream) : cuMemcpy3D_v2(&c);
}

#define ARRAY  CU_MEMORYTYPE_ARRAY
#define HOST   CU_MEMORYTYPE_HOST
#define DEVICE CU_MEMORYTYPE_DEVICE

CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void *src, size_t bytes)
{
    return copy_row(ARRAY, dst, offset, 0, HOST, NULL, 0, (uintptr_t)src, bytes, NULL, false);
}

CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t bytes)
{
    return copy_row(HOST, NULL, 0, (uintptr_t)dst, ARRAY, src, offset, 0, bytes, NULL, false);
}

CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes)
{
    return copy_row(ARRAY, dst, offset, 0, DEVICE, NULL, 0, src, bytes, NULL, false);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes)
{
    return copy_row(DEVICE, NULL, 0, dst, ARRAY, src, offset, 0, bytes, NULL, false);
}

CUresult cuMemcpyAtoA_v2(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset,
                         size_t bytes)
{
    return copy_row(ARRAY, dst, dst_offset, 0, ARRAY, src, src_offset, 0, bytes, NULL, false);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void *src, size_t bytes,
                              CUstream stream)
{
    return copy_row(ARRAY, dst, offset, 0, HOST, NULL, 0, (uintptr_t)src, bytes, stream, true);
}

CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t offset, size_t bytes, CUstream stream)
{
    return copy_row(HOST, NULL, 0, (uintptr_t)dst, ARRAY, src, offset, 0, bytes, stream, true);
}

/* ---- mipmapped arrays ---- */

static size_t halved(size_t size, unsigned level)
{
    size_t v = size >> level;
    return size && !v ? 1 : v;
}

static void mipmap_end(hw_cu_mipmap *m)
{
    for (unsigned i = 0; i < m->nlevels && m->levels[i]; i++) {
        array_end(m->levels[i]);
    }
    if (m->handle)
        hw_cu_handle_drop(m->handle);
    hw_cu_list_remove(&m->link);
    free(m->levels);
    free(m);
}

static CUresult add_levels(hw_cu_mipmap *m, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    for (unsigned i = 0; i < m->nlevels; i++) {
        CUDA_ARRAY3D_DESCRIPTOR level = *d;
        level.Width = halved(d->Width, i);
        level.Height = halved(d->Height, i);
        if (!(d->Flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)))
            level.Depth = halved(d->Depth, i);
        CU_TRY(array_new(m->ctx, &level, &m->levels[i]));
        m->levels[i]->mipmap = m;
    }
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d,
                                unsigned int levels)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(out && d, INVALID_VALUE);
    CU_TRY(check_shape(ctx->gpu, d));
    size_t longest = d->Width > d->Height ? d->Width : d->Height;
    if (!(d->Flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)) && d->Depth > longest)
        longest = d->Depth;
    unsigned most = 64u - (unsigned)__builtin_clzll(longest);
    hw_cu_mipmap *m = calloc(1, sizeof *m);
    CU_NEED(m, OUT_OF_MEMORY);
    m->ctx = ctx;
    m->nlevels = !levels ? 1 : levels < most ? levels : most;
    m->levels = calloc(m->nlevels, sizeof(hw_cu_array *));
    CUresult r = m->levels ? add_levels(m, d) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        mipmap_end(m);
        return r;
    }
    keep(ctx, &ctx->mipmaps, &m->link);
    *out = m->handle = hw_cu_handle_new(HW_CU_MIPMAP, m);
    return CUDA_SUCCESS;
}

static CUresult find_mipmap(CUmipmappedArray handle, hw_cu_mipmap **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_MIPMAP);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray handle, unsigned int level)
{
    hw_cu_mipmap *m;
    CU_TRY(find_mipmap(handle, &m));
    CU_NEED(out && level < m->nlevels, INVALID_VALUE);
    *out = m->levels[level]->handle;
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
    hw_cu_mipmap *m;
    CU_TRY(find_mipmap(handle, &m));
    CU_TRY(hw_cu_synchronize(m->ctx));
    mipmap_end(m);
    return CUDA_SUCCESS;
}

void hw_cu_arrays_end(hw_cu_context *ctx)
{
    while (ctx->mipmaps.next != &ctx->mipmaps)
        mipmap_end(HW_CU_ITEM(ctx->mipmaps.next, hw_cu_mipmap, link));
    while (ctx->arrays.next != &ctx->arrays)
        array_end(HW_CU_ITEM(ctx->arrays.next, hw_cu_array, link));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Texture and surface objects: descriptions made what room mem reads textures by. (CUDA Driver API, "Texture Object
 * Management", "Surface Object Management".)
 */
#include "array.h"

#include <stdlib.h>

enum { RES_ARRAY, RES_MIPMAP, RES_LINEAR, RES_PITCH2D };
enum { READ_AS_INTEGER = 1, NORMALIZED = 2, SRGB = 0x10 };

typedef struct object {
    uint64_t handle;
    bool surface;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view;
} object;

enum { OBJECTS = 1 << 16 };
static object *objects[OBJECTS + 1]; /* by the lower half of the handle */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- what is read ---- */

static bool texel_format(CUarray_format f, hw_texel *out)
{
    static const struct {
        CUarray_format format;
        hw_texel texel;
    } formats[] = {
        { CU_AD_FORMAT_UNSIGNED_INT8, HW_TEXEL_U8 },
        { CU_AD_FORMAT_UNSIGNED_INT16, HW_TEXEL_U16 },
        { CU_AD_FORMAT_UNSIGNED_INT32, HW_TEXEL_U32 },
        { CU_AD_FORMAT_SIGNED_INT8, HW_TEXEL_S8 },
        { CU_AD_FORMAT_SIGNED_INT16, HW_TEXEL_S16 },
        { CU_AD_FORMAT_SIGNED_INT32, HW_TEXEL_S32 },
        { CU_AD_FORMAT_HALF, HW_TEXEL_F16 },
        { CU_AD_FORMAT_FLOAT, HW_TEXEL_F32 },
    };
    for (size_t i = 0; i < HW_COUNTOF(formats); i++) {
        if (formats[i].format == f) {
            *out = formats[i].texel;
            return true;
        }
    }
    return false;
}

static CUresult set_format(hw_texture *t, CUarray_format format, unsigned channels)
{
    CU_NEED(texel_format(format, &t->format) && hw_cu_texel_bytes(format, channels), INVALID_VALUE);
    t->channels = (uint8_t)channels;
    return CUDA_SUCCESS;
}

static hw_texels texels_of(const hw_cu_array *a)
{
    return (hw_texels){
        a->address,          a->pitch, a->slice, (uint32_t)a->desc.Width, (uint32_t)a->rows,
        (uint32_t)a->slices, true
    };
}

static CUresult from_array(CUarray handle, hw_texture *t)
{
    hw_cu_array *a;
    CU_TRY(hw_cu_find_array(handle, &a));
    t->level[0] = texels_of(a);
    t->levels = 1;
    t->layered = a->desc.Flags & ARRAY_LAYERED;
    t->cube = a->desc.Flags & ARRAY_CUBEMAP;
    return set_format(t, a->desc.Format, a->desc.NumChannels);
}

static CUresult from_mipmap(CUmipmappedArray handle, hw_texture *t)
{
    CUarray level;
    hw_cu_array *a;
    CU_TRY(cuMipmappedArrayGetLevel(&level, handle, 0));
    CU_TRY(from_array(level, t));
    while (t->levels < HW_MIP_LEVELS &&
           cuMipmappedArrayGetLevel(&level, handle, t->levels) == CUDA_SUCCESS) {
        CU_TRY(hw_cu_find_array(level, &a));
        t->level[t->levels++] = texels_of(a);
    }
    return CUDA_SUCCESS;
}

static CUresult from_linear(const CUDA_RESOURCE_DESC *r, const hw_cu_gpu *g, hw_texture *t)
{
    CU_TRY(set_format(t, r->res.linear.format, r->res.linear.numChannels));
    size_t bytes = hw_cu_texel_bytes(r->res.linear.format, r->res.linear.numChannels);
    size_t n = r->res.linear.sizeInBytes / bytes;
    CU_NEED(n && n <= g->model->textures.tex1d_linear, INVALID_VALUE);
    CU_NEED(hw_cu_accessible(r->res.linear.devPtr, n * bytes), INVALID_VALUE);
    t->level[0] = (hw_texels){ r->res.linear.devPtr, n * bytes, n * bytes, (uint32_t)n, 1, 1 };
    t->levels = 1;
    return CUDA_SUCCESS;
}

static CUresult from_pitched(const CUDA_RESOURCE_DESC *r, hw_texture *t)
{
    CU_TRY(set_format(t, r->res.pitch2D.format, r->res.pitch2D.numChannels));
    size_t row =
        r->res.pitch2D.width * hw_cu_texel_bytes(r->res.pitch2D.format, r->res.pitch2D.numChannels);
    size_t w = r->res.pitch2D.width, h = r->res.pitch2D.height, pitch = r->res.pitch2D.pitchInBytes;
    CU_NEED(w && h && w <= UINT32_MAX && h <= UINT32_MAX && pitch >= row, INVALID_VALUE);
    CU_NEED(hw_cu_accessible(r->res.pitch2D.devPtr, pitch * (h - 1) + row), INVALID_VALUE);
    t->level[0] =
        (hw_texels){ r->res.pitch2D.devPtr, pitch, pitch * h, (uint32_t)w, (uint32_t)h, 1 };
    t->levels = 1;
    return CUDA_SUCCESS;
}

static CUresult set_resource(const CUDA_RESOURCE_DESC *r, const hw_cu_gpu *g, hw_texture *t)
{
    CU_NEED(r && r->flags == 0, INVALID_VALUE);
    switch (r->resType) {
    case RES_ARRAY:
        return from_array(r->res.array.hArray, t);
    case RES_MIPMAP:
        return from_mipmap(r->res.mipmap.hMipmappedArray, t);
    case RES_LINEAR:
        return from_linear(r, g, t);
    case RES_PITCH2D:
        return from_pitched(r, t);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- how it is read ---- */

static CUresult set_rules(const CUDA_TEXTURE_DESC *d, hw_texture *t)
{
    CU_NEED(d && (unsigned)d->filterMode <= 1 && (unsigned)d->mipmapFilterMode <= 1, INVALID_VALUE);
    for (int i = 0; i < 3; i++) {
        CU_NEED((unsigned)d->addressMode[i] <= HW_BORDER, INVALID_VALUE);
        t->addressing[i] = (hw_addressing)d->addressMode[i];
    }
    t->linear = d->filterMode == 1;
    t->mip_linear = d->mipmapFilterMode == 1;
    t->as_integer = d->flags & READ_AS_INTEGER;
    t->normalized = d->flags & NORMALIZED;
    t->srgb = d->flags & SRGB;
    t->lod_bias = d->mipmapLevelBias;
    t->lod_min = d->minMipmapLevelClamp;
    t->lod_max = d->maxMipmapLevelClamp;
    memcpy(t->border, d->borderColor, sizeof t->border);
    bool integers = t->format == HW_TEXEL_U32 || t->format == HW_TEXEL_S32 ||
                    (t->as_integer && t->format <= HW_TEXEL_S16 && t->format != HW_TEXEL_U32);
    CU_NEED(!(t->linear && integers), INVALID_VALUE);
    return CUDA_SUCCESS;
}

/* A view may choose levels and layers; another format of the same texels is not supported. */
static CUresult set_view(const CUDA_RESOURCE_VIEW_DESC *v, hw_texture *t)
{
    if (!v)
        return CUDA_SUCCESS;
    CU_NEED(v->firstMipmapLevel <= v->lastMipmapLevel && v->lastMipmapLevel < t->levels,
            INVALID_VALUE);
    CU_NEED(v->firstLayer <= v->lastLayer && v->lastLayer < t->level[0].depth, INVALID_VALUE);
    t->levels = v->lastMipmapLevel - v->firstMipmapLevel + 1;
    memmove(t->level, t->level + v->firstMipmapLevel, t->levels * sizeof t->level[0]);
    if (v->lastLayer == 0)
        return CUDA_SUCCESS;
    for (uint32_t i = 0; i < t->levels; i++) {
        t->level[i].address += v->firstLayer * t->level[i].slice;
        t->level[i].depth = v->lastLayer - v->firstLayer + 1;
    }
    return CUDA_SUCCESS;
}

/* ---- objects ---- */

static CUresult object_new(const hw_texture *t, const object *o, uint64_t *out)
{
    object *copy = malloc(sizeof *copy);
    CU_NEED(copy, OUT_OF_MEMORY);
    *copy = *o;
    copy->handle = hw_texture_add(t);
    if (!copy->handle) {
        free(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    objects[copy->handle & UINT32_MAX] = copy;
    pthread_mutex_unlock(&lock);
    *out = copy->handle;
    return CUDA_SUCCESS;
}

static CUresult find_object(uint64_t handle, bool surface, object **out)
{
    CU_TRY(hw_cu_ready());
    *out = (handle & UINT32_MAX) <= OBJECTS ? objects[handle & UINT32_MAX] : NULL;
    CU_NEED(*out && (*out)->handle == handle && (*out)->surface == surface, INVALID_VALUE);
    return CUDA_SUCCESS;
}

static CUresult object_end(uint64_t handle, bool surface)
{
    object *o;
    CU_TRY(find_object(handle, surface, &o));
    pthread_mutex_lock(&lock);
    objects[handle & UINT32_MAX] = NULL;
    pthread_mutex_unlock(&lock);
    hw_texture_remove(handle);
    free(o);
    return CUDA_SUCCESS;
}

CUresult cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *r,
                           const CUDA_TEXTURE_DESC *d, const CUDA_RESOURCE_VIEW_DESC *v)
{
    hw_cu_context *ctx;
    hw_texture t = { .levels = 1 };
    uint64_t handle;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(out && r && d, INVALID_VALUE);
    CU_TRY(set_resource(r, ctx->gpu, &t));
    CU_TRY(set_rules(d, &t));
    CU_TRY(set_view(v, &t));
    object o = { .resource = *r, .texture = *d, .has_view = v != NULL };
    if (v)
        o.view = *v;
    CU_TRY(object_new(&t, &o, &handle));
    *out = handle;
    return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject handle)
{
    return object_end(handle, false);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject handle)
{
    object *o;
    CU_TRY(find_object(handle, false, &o));
    CU_NEED(out, INVALID_VALUE);
    *out = o->resource;
    return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject handle)
{
    object *o;
    CU_TRY(find_object(handle, false, &o));
    CU_NEED(out, INVALID_VALUE);
    *out = o->texture;
    return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *out, CUtexObject handle)
{
    object *o;
    CU_TRY(find_object(handle, false, &o));
    CU_NEED(out && o->has_view, INVALID_VALUE);
    *out = o->view;
    return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *r)
{
    hw_cu_context *ctx;
    hw_texture t = { .levels = 1 };
    uint64_t handle;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(out && r && r->resType == RES_ARRAY, INVALID_VALUE);
    CU_TRY(set_resource(r, ctx->gpu, &t));
    const object o = { .surface = true, .resource = *r };
    CU_TRY(object_new(&t, &o, &handle));
    *out = handle;
    return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject handle)
{
    return object_end(handle, true);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject handle)
{
    object *o;
    CU_TRY(find_object(handle, true, &o));
    CU_NEED(out, INVALID_VALUE);
    *out = o->resource;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *out, CUarray_format format,
                                            unsigned int channels, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(out && hw_cu_texel_bytes(format, channels), INVALID_VALUE);
    *out = g->model->textures.tex1d_linear;
    return CUDA_SUCCESS;
}

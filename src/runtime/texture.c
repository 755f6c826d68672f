/* SPDX-License-Identifier: Apache-2.0
 * Texture and surface objects: their descriptions in the driver's words, and back.
 */
#include "state.h"

static int resource_to_driver(const hw_cudaResourceDesc *r, hw_resource_desc *out)
{
    const hw_cudaChannelFormatDesc *format = NULL;
    *out = (hw_resource_desc){ .type = r->resType };
    switch (r->resType) {
    case hw_cudaResourceTypeArray:
    case hw_cudaResourceTypeMipmappedArray:
        out->array = r->res.array.array;
        return hw_cudaSuccess;
    case hw_cudaResourceTypeLinear:
        format = &r->res.linear.desc;
        out->memory.address = (uintptr_t)r->res.linear.devPtr;
        out->memory.size_bytes = r->res.linear.sizeInBytes;
        break;
    case hw_cudaResourceTypePitch2D:
        format = &r->res.pitch2D.desc;
        out->memory.address = (uintptr_t)r->res.pitch2D.devPtr;
        out->memory.size_bytes = r->res.pitch2D.width;
        out->memory.height = r->res.pitch2D.height;
        out->memory.pitch_bytes = r->res.pitch2D.pitchInBytes;
        break;
    default:
        return hw_cudaErrorInvalidValue;
    }
    return hw_format_to_driver(format, &out->memory.format, &out->memory.channels);
}

static int resource_from_driver(const hw_resource_desc *r, hw_cudaResourceDesc *out)
{
    hw_cudaChannelFormatDesc format;
    /* Its last field is younger than runtime 13: leave it alone. */
    memset(out, 0, offsetof(hw_cudaResourceDesc, flags));
    out->resType = r->type;
    if (r->type == hw_cudaResourceTypeArray || r->type == hw_cudaResourceTypeMipmappedArray) {
        out->res.array.array = r->array;
        return hw_cudaSuccess;
    }
    int error = hw_format_from_driver(r->memory.format, r->memory.channels, &format);
    if (error)
        return error;
    if (r->type == hw_cudaResourceTypeLinear) {
        out->res.linear.devPtr = (void *)(uintptr_t)r->memory.address;
        out->res.linear.desc = format;
        out->res.linear.sizeInBytes = r->memory.size_bytes;
    } else {
        out->res.pitch2D.devPtr = (void *)(uintptr_t)r->memory.address;
        out->res.pitch2D.desc = format;
        out->res.pitch2D.width = r->memory.size_bytes;
        out->res.pitch2D.height = r->memory.height;
        out->res.pitch2D.pitchInBytes = r->memory.pitch_bytes;
    }
    return hw_cudaSuccess;
}

static const struct flag {
    size_t field;
    unsigned bit;
} flags[] = {
    { offsetof(hw_cudaTextureDesc, normalizedCoords), HW_TEXTURE_NORMALIZED },
    { offsetof(hw_cudaTextureDesc, sRGB), HW_TEXTURE_SRGB },
    { offsetof(hw_cudaTextureDesc, disableTrilinearOptimization), HW_TEXTURE_NO_TRILINEAR },
    { offsetof(hw_cudaTextureDesc, seamlessCubemap), HW_TEXTURE_SEAMLESS },
};

static hw_texture_desc texture_to_driver(const hw_cudaTextureDesc *t)
{
    hw_texture_desc out = {
        .filter_mode = t->filterMode,
        .max_anisotropy = t->maxAnisotropy,
        .mipmap_filter_mode = t->mipmapFilterMode,
        .mipmap_bias = t->mipmapLevelBias,
        .min_mipmap_clamp = t->minMipmapLevelClamp,
        .max_mipmap_clamp = t->maxMipmapLevelClamp,
        .flags = t->readMode == hw_cudaReadModeElementType ? HW_TEXTURE_AS_INTEGER : 0,
    };
    memcpy(out.address_mode, t->addressMode, sizeof out.address_mode);
    memcpy(out.border, t->borderColor, sizeof out.border);
    for (size_t i = 0; i < HW_COUNTOF(flags); i++)
        if (*(const int *)((const char *)t + flags[i].field))
            out.flags |= flags[i].bit;
    return out;
}

static hw_cudaTextureDesc texture_from_driver(const hw_texture_desc *t)
{
    hw_cudaTextureDesc out = {
        .filterMode = t->filter_mode,
        .readMode = t->flags & HW_TEXTURE_AS_INTEGER ? hw_cudaReadModeElementType
                                                     : hw_cudaReadModeNormalizedFloat,
        .maxAnisotropy = t->max_anisotropy,
        .mipmapFilterMode = t->mipmap_filter_mode,
        .mipmapLevelBias = t->mipmap_bias,
        .minMipmapLevelClamp = t->min_mipmap_clamp,
        .maxMipmapLevelClamp = t->max_mipmap_clamp,
    };
    memcpy(out.addressMode, t->address_mode, sizeof out.addressMode);
    memcpy(out.borderColor, t->border, sizeof out.borderColor);
    for (size_t i = 0; i < HW_COUNTOF(flags); i++)
        *(int *)((char *)&out + flags[i].field) = (t->flags & flags[i].bit) != 0;
    return out;
}

/* ---- textures ---- */

HW_CUDA(int, cudaCreateTextureObject, uint64_t *texture, const hw_cudaResourceDesc *resource,
        const hw_cudaTextureDesc *desc, const void *view)
{
    hw_resource_desc r;
    if (!texture || !resource || !desc)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(resource_to_driver(resource, &r));
    hw_texture_desc t = texture_to_driver(desc);
    return hw_note(hw_cu.texture_create(texture, &r, &t, view));
}

HW_CUDA(int, cudaGetTextureObjectResourceDesc, hw_cudaResourceDesc *resource, uint64_t texture)
{
    hw_resource_desc r;
    if (!resource)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_cu.texture_resource(&r, texture));
    return hw_note(resource_from_driver(&r, resource));
}

HW_CUDA(int, cudaGetTextureObjectTextureDesc, hw_cudaTextureDesc *desc, uint64_t texture)
{
    hw_texture_desc t;
    if (!desc)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_cu.texture_desc(&t, texture));
    *desc = texture_from_driver(&t);
    return hw_cudaSuccess;
}

HW_DRIVER_CALL(cudaDestroyTextureObject, (uint64_t texture), texture_destroy(texture))
HW_DRIVER_CALL(cudaGetTextureObjectResourceViewDesc, (void *view, uint64_t texture),
               texture_view(view, texture))

HW_CUDA(int, cudaDeviceGetTexture1DLinearMaxWidth, size_t *n, const hw_cudaChannelFormatDesc *desc,
        int device)
{
    int format;
    unsigned channels;
    if (!n || !desc)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_init());
    HW_CUDA_TRY(hw_format_to_driver(desc, &format, &channels));
    return hw_note(hw_cu.texture_linear_width(n, format, channels, device));
}

/* ---- surfaces ---- */

HW_CUDA(int, cudaCreateSurfaceObject, uint64_t *surface, const hw_cudaResourceDesc *resource)
{
    hw_resource_desc r;
    if (!surface || !resource)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(resource_to_driver(resource, &r));
    return hw_note(hw_cu.surface_create(surface, &r));
}

HW_CUDA(int, cudaGetSurfaceObjectResourceDesc, hw_cudaResourceDesc *resource, uint64_t surface)
{
    hw_resource_desc r;
    if (!resource)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_cu.surface_resource(&r, surface));
    return hw_note(resource_from_driver(&r, resource));
}

HW_DRIVER_CALL(cudaDestroySurfaceObject, (uint64_t surface), surface_destroy(surface))

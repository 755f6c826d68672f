/* SPDX-License-Identifier: Apache-2.0
 * Three-dimensional copies and CUDA arrays.
 *
 * Where a copy touches an array, widths and x offsets of the array are counted in elements; the
 * driver counts in bytes everywhere.
 */
#include "state.h"

typedef hw_cudaChannelFormatDesc channel_desc;
typedef hw_array_desc array_desc;

enum { KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT };
enum { INVALID_CHANNEL_DESCRIPTOR = 20 };

static const struct format {
    int driver, kind, bits;
} formats[] = {
    { 0x01, KIND_UNSIGNED, 8 }, { 0x02, KIND_UNSIGNED, 16 }, { 0x03, KIND_UNSIGNED, 32 },
    { 0x08, KIND_SIGNED, 8 },   { 0x09, KIND_SIGNED, 16 },   { 0x0a, KIND_SIGNED, 32 },
    { 0x10, KIND_FLOAT, 16 },   { 0x20, KIND_FLOAT, 32 },
};

HW_CUDA(channel_desc, cudaCreateChannelDesc, int x, int y, int z, int w, int kind)
{
    return (channel_desc){ x, y, z, w, kind };
}

int hw_format_to_driver(const channel_desc *c, int *format, unsigned *channels)
{
    const int bits[] = { c->x, c->y, c->z, c->w };
    *channels = 0;
    while (*channels < 4 && bits[*channels])
        ++*channels;
    for (unsigned i = 0; i < 4; i++)
        if (bits[i] != (i < *channels ? bits[0] : 0))
            return hw_cudaErrorInvalidValue;
    for (size_t i = 0; i < HW_COUNTOF(formats); i++)
        if (formats[i].kind == c->f && formats[i].bits == c->x && *channels != 3) {
            *format = formats[i].driver;
            return hw_cudaSuccess;
        }
    return INVALID_CHANNEL_DESCRIPTOR;
}

static const struct format *format_of(int driver)
{
    for (size_t i = 0; i < HW_COUNTOF(formats); i++)
        if (formats[i].driver == driver)
            return &formats[i];
    return NULL;
}

int hw_format_from_driver(int format, unsigned channels, channel_desc *out)
{
    const struct format *f = format_of(format);
    int bits[4] = { 0 };
    if (!f || channels > 4)
        return hw_cudaErrorNotSupported;
    for (unsigned i = 0; i < channels; i++)
        bits[i] = f->bits;
    *out = (channel_desc){ bits[0], bits[1], bits[2], bits[3], f->kind };
    return hw_cudaSuccess;
}

static int array_info(hw_cudaArray_t array, array_desc *out, size_t *element)
{
    int error = hw_cu.array_descriptor(out, array);
    const struct format *f = format_of(out->format);
    if (!error && !f)
        error = hw_cudaErrorNotSupported;
    if (!error)
        *element = (size_t)f->bits / 8 * out->channels;
    return error;
}

/* levels 0: a plain array. */
static int create(hw_cudaArray_t *array, const channel_desc *desc, hw_cudaExtent e, unsigned flags,
                  unsigned levels)
{
    array_desc d = { e.width, e.height, e.depth, 0, 0, flags };
    if (!array || !desc)
        return hw_cudaErrorInvalidValue;
    int error = hw_format_to_driver(desc, &d.format, &d.channels);
    if (!error)
        error = hw_cudart_enter();
    if (error)
        return error;
    return levels ? hw_cu.mipmap_create(array, &d, levels) : hw_cu.array_create(array, &d);
}

HW_CUDA(int, cudaMallocArray, hw_cudaArray_t *array, const channel_desc *desc, size_t width,
        size_t height, unsigned flags)
{
    return hw_note(create(array, desc, (hw_cudaExtent){ width, height, 0 }, flags, 0));
}

HW_CUDA(int, cudaMalloc3DArray, hw_cudaArray_t *array, const channel_desc *desc, hw_cudaExtent e,
        unsigned flags)
{
    return hw_note(create(array, desc, e, flags, 0));
}

HW_CUDA(int, cudaFreeArray, hw_cudaArray_t array)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return array ? hw_note(hw_cu.array_destroy(array)) : hw_cudaSuccess;
}

HW_CUDA(int, cudaMallocMipmappedArray, hw_cudaArray_t *array, const channel_desc *desc,
        hw_cudaExtent e, unsigned levels, unsigned flags)
{
    if (!levels)
        return hw_note(hw_cudaErrorInvalidValue);
    return hw_note(create(array, desc, e, flags, levels));
}

HW_CUDA(int, cudaFreeMipmappedArray, hw_cudaArray_t array)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return array ? hw_note(hw_cu.mipmap_destroy(array)) : hw_cudaSuccess;
}

HW_DRIVER_CALL(cudaGetMipmappedArrayLevel,
               (hw_cudaArray_t * level, hw_cudaArray_t array, unsigned n),
               mipmap_level(level, array, n))
HW_DRIVER_CALL(cudaArrayGetMemoryRequirements, (void *out, hw_cudaArray_t array, int device),
               array_requirements(out, array, device))

HW_CUDA(int, cudaArrayGetInfo, channel_desc *desc, hw_cudaExtent *e, unsigned *flags,
        hw_cudaArray_t array)
{
    array_desc d = { 0 };
    size_t element;
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(array_info(array, &d, &element));
    if (desc)
        HW_CUDA_TRY(hw_format_from_driver(d.format, d.channels, desc));
    if (e)
        *e = (hw_cudaExtent){ d.width, d.height, d.depth };
    if (flags)
        *flags = d.flags;
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaGetChannelDesc, channel_desc *desc, hw_cudaArray_t array)
{
    return cudaArrayGetInfo(desc, NULL, NULL, array);
}

/* ---- three-dimensional copies ---- */

typedef struct side {
    hw_cudaArray_t array;
    hw_cudaPos pos;
    hw_cudaPitchedPtr ptr;
    size_t element; /* of the array; 1: no array */
    int type;
} side;

static int check_side(side *s, int memory_type)
{
    array_desc d = { 0 };
    if (!s->array == !s->ptr.ptr)
        return hw_cudaErrorInvalidValue;
    s->element = 1;
    s->type = s->array ? HW_MEMORY_ARRAY : memory_type;
    return s->array ? array_info(s->array, &d, &s->element) : hw_cudaSuccess;
}

static void put_source(hw_copy3d *c, const side *s)
{
    c->src_x = s->pos.x * s->element;
    c->src_y = s->pos.y;
    c->src_z = s->pos.z;
    c->src_type = s->type;
    c->src_host = s->ptr.ptr;
    c->src_device = (uintptr_t)s->ptr.ptr;
    c->src_array = s->array;
    c->src_pitch = s->ptr.pitch;
    c->src_height = s->ptr.ysize;
}

static void put_target(hw_copy3d *c, const side *s)
{
    c->dst_x = s->pos.x * s->element;
    c->dst_y = s->pos.y;
    c->dst_z = s->pos.z;
    c->dst_type = s->type;
    c->dst_host = s->ptr.ptr;
    c->dst_device = (uintptr_t)s->ptr.ptr;
    c->dst_array = s->array;
    c->dst_pitch = s->ptr.pitch;
    c->dst_height = s->ptr.ysize;
}

static bool is_empty(hw_cudaExtent e)
{
    return !e.width || !e.height || !e.depth;
}

/* The width is in elements when an array takes part. */
static int box_params(side src, side dst, hw_cudaExtent e, int kind, hw_copy3d *out)
{
    if (!hw_kind_known(kind))
        return hw_cudaErrorInvalidMemcpyDirection;
    int error = hw_cudart_enter();
    if (!error)
        error = check_side(&src, hw_source_type(kind));
    if (!error)
        error = check_side(&dst, hw_target_type(kind));
    if (error)
        return error;
    size_t element = src.array ? src.element : dst.element;
    if (src.array && dst.array && src.element != dst.element)
        return hw_cudaErrorInvalidValue;
    *out = (hw_copy3d){ .width = e.width * element, .height = e.height, .depth = e.depth };
    put_source(out, &src);
    put_target(out, &dst);
    return hw_cudaSuccess;
}

static int copy_box(side src, side dst, hw_cudaExtent e, int kind, hw_cudaStream_t stream,
                    bool async)
{
    hw_copy3d c;
    if (is_empty(e))
        return hw_kind_known(kind) ? hw_cudart_enter() : hw_cudaErrorInvalidMemcpyDirection;
    int error = box_params(src, dst, e, kind, &c);
    if (error)
        return error;
    if (!async && !stream)
        return hw_cu.copy_3d(&c);
    error = hw_cu.copy_3d_async(&c, stream);
    return error || async ? error : hw_cu.stream_synchronize(stream);
}

int hw_copy_params(const hw_cudaMemcpy3DParms *p, hw_copy3d *out)
{
    if (!p)
        return hw_cudaErrorInvalidValue;
    side src = { .array = p->srcArray, .pos = p->srcPos, .ptr = p->srcPtr };
    side dst = { .array = p->dstArray, .pos = p->dstPos, .ptr = p->dstPtr };
    return box_params(src, dst, p->extent, p->kind, out);
}

static size_t element_of(hw_cudaArray_t array)
{
    array_desc d = { 0 };
    size_t element;
    return array && array_info(array, &d, &element) == hw_cudaSuccess ? element : 1;
}

static int kind_of(int from, int to)
{
    bool known = from != HW_MEMORY_UNIFIED && to != HW_MEMORY_UNIFIED;
    if (!known)
        return hw_cudaMemcpyDefault;
    return (from == HW_MEMORY_HOST ? 0 : 2) + (to == HW_MEMORY_HOST ? 0 : 1);
}

void hw_copy_params_back(const hw_copy3d *c, hw_cudaMemcpy3DParms *out)
{
    size_t from = c->src_type == HW_MEMORY_ARRAY ? element_of(c->src_array) : 1;
    size_t to = c->dst_type == HW_MEMORY_ARRAY ? element_of(c->dst_array) : 1;
    size_t width = c->width / (from > 1 ? from : to);
    *out = (hw_cudaMemcpy3DParms){
        .srcPos = { c->src_x / from, c->src_y, c->src_z },
        .dstPos = { c->dst_x / to, c->dst_y, c->dst_z },
        .extent = { width, c->height, c->depth },
    };
    if (c->src_type == HW_MEMORY_ARRAY)
        out->srcArray = c->src_array;
    else
        out->srcPtr =
            (hw_cudaPitchedPtr){ c->src_type == HW_MEMORY_HOST ? (void *)c->src_host
                                                               : (void *)(uintptr_t)c->src_device,
                                 c->src_pitch, width, c->src_height };
    if (c->dst_type == HW_MEMORY_ARRAY)
        out->dstArray = c->dst_array;
    else
        out->dstPtr =
            (hw_cudaPitchedPtr){ c->dst_type == HW_MEMORY_HOST ? c->dst_host
                                                               : (void *)(uintptr_t)c->dst_device,
                                 c->dst_pitch, width, c->dst_height };
    out->kind = kind_of(c->src_type, c->dst_type);
}

static int copy_3d(const hw_cudaMemcpy3DParms *p, hw_cudaStream_t stream, bool async)
{
    if (!p)
        return hw_cudaErrorInvalidValue;
    side src = { .array = p->srcArray, .pos = p->srcPos, .ptr = p->srcPtr };
    side dst = { .array = p->dstArray, .pos = p->dstPos, .ptr = p->dstPtr };
    return copy_box(src, dst, p->extent, p->kind, stream, async);
}

HW_CUDA(int, cudaMemcpy3D, const hw_cudaMemcpy3DParms *p)
{
    return hw_note(copy_3d(p, NULL, false));
}

HW_CUDA(int, cudaMemcpy3D_ptds, const hw_cudaMemcpy3DParms *p)
{
    return hw_note(copy_3d(p, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemcpy3DAsync, const hw_cudaMemcpy3DParms *p, hw_cudaStream_t stream)
{
    return hw_note(copy_3d(p, stream, true));
}

HW_PER_THREAD(int, cudaMemcpy3DAsync_ptsz, (const hw_cudaMemcpy3DParms *p, hw_cudaStream_t stream),
              cudaMemcpy3DAsync(p, hw_per_thread(stream)))

/* ---- between arrays and pitched memory; these count in bytes ---- */

/* The whole array's elements as bytes: copy_box wants elements. */
static int copy_array(side src, side dst, size_t width, size_t height, int kind,
                      hw_cudaStream_t stream, bool async)
{
    array_desc d = { 0 };
    size_t element;
    int error = hw_cudart_enter();
    if (!error)
        error = array_info(src.array ? src.array : dst.array, &d, &element);
    if (error)
        return error;
    if (width % element || (src.array && src.pos.x % element) || (dst.array && dst.pos.x % element))
        return hw_cudaErrorInvalidValue;
    if (src.array)
        src.pos.x /= element;
    if (dst.array)
        dst.pos.x /= element;
    return copy_box(src, dst, (hw_cudaExtent){ width / element, height, 1 }, kind, stream, async);
}

static side in_array(hw_cudaArray_t array, size_t x, size_t y)
{
    return (side){ .array = array, .pos = { x, y, 0 } };
}

static side in_memory(const void *p, size_t pitch, size_t width, size_t height)
{
    return (side){ .ptr = { (void *)p, pitch, width, height } };
}

HW_CUDA(int, cudaMemcpy2DToArray, hw_cudaArray_t dst, size_t x, size_t y, const void *src,
        size_t pitch, size_t width, size_t height, int kind)
{
    return hw_note(copy_array(in_memory(src, pitch, width, height), in_array(dst, x, y), width,
                              height, kind, NULL, false));
}

HW_CUDA(int, cudaMemcpy2DToArray_ptds, hw_cudaArray_t dst, size_t x, size_t y, const void *src,
        size_t pitch, size_t width, size_t height, int kind)
{
    return hw_note(copy_array(in_memory(src, pitch, width, height), in_array(dst, x, y), width,
                              height, kind, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemcpy2DToArrayAsync, hw_cudaArray_t dst, size_t x, size_t y, const void *src,
        size_t pitch, size_t width, size_t height, int kind, hw_cudaStream_t stream)
{
    return hw_note(copy_array(in_memory(src, pitch, width, height), in_array(dst, x, y), width,
                              height, kind, stream, true));
}

HW_PER_THREAD(int, cudaMemcpy2DToArrayAsync_ptsz,
              (hw_cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width,
               size_t height, int kind, hw_cudaStream_t stream),
              cudaMemcpy2DToArrayAsync(dst, x, y, src, pitch, width, height, kind,
                                       hw_per_thread(stream)))

HW_CUDA(int, cudaMemcpy2DFromArray, void *dst, size_t pitch, hw_cudaArray_t src, size_t x, size_t y,
        size_t width, size_t height, int kind)
{
    return hw_note(copy_array(in_array(src, x, y), in_memory(dst, pitch, width, height), width,
                              height, kind, NULL, false));
}

HW_CUDA(int, cudaMemcpy2DFromArray_ptds, void *dst, size_t pitch, hw_cudaArray_t src, size_t x,
        size_t y, size_t width, size_t height, int kind)
{
    return hw_note(copy_array(in_array(src, x, y), in_memory(dst, pitch, width, height), width,
                              height, kind, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemcpy2DFromArrayAsync, void *dst, size_t pitch, hw_cudaArray_t src, size_t x,
        size_t y, size_t width, size_t height, int kind, hw_cudaStream_t stream)
{
    return hw_note(copy_array(in_array(src, x, y), in_memory(dst, pitch, width, height), width,
                              height, kind, stream, true));
}

HW_PER_THREAD(int, cudaMemcpy2DFromArrayAsync_ptsz,
              (void *dst, size_t pitch, hw_cudaArray_t src, size_t x, size_t y, size_t width,
               size_t height, int kind, hw_cudaStream_t stream),
              cudaMemcpy2DFromArrayAsync(dst, pitch, src, x, y, width, height, kind,
                                         hw_per_thread(stream)))

HW_CUDA(int, cudaMemcpy2DArrayToArray, hw_cudaArray_t dst, size_t dst_x, size_t dst_y,
        hw_cudaArray_t src, size_t src_x, size_t src_y, size_t width, size_t height, int kind)
{
    return hw_note(copy_array(in_array(src, src_x, src_y), in_array(dst, dst_x, dst_y), width,
                              height, kind, NULL, false));
}

HW_CUDA(int, cudaMemcpy2DArrayToArray_ptds, hw_cudaArray_t dst, size_t dst_x, size_t dst_y,
        hw_cudaArray_t src, size_t src_x, size_t src_y, size_t width, size_t height, int kind)
{
    return hw_note(copy_array(in_array(src, src_x, src_y), in_array(dst, dst_x, dst_y), width,
                              height, kind, HW_STREAM_PER_THREAD, false));
}

/* The one-dimensional forms run over the array's rows: an offset, then a count of bytes. */
static int copy_rows(bool to_array, hw_cudaArray_t array, size_t x, size_t y, const void *memory,
                     size_t n, int kind, hw_cudaStream_t stream, bool async)
{
    array_desc d = { 0 };
    size_t element;
    int error = hw_cudart_enter();
    if (!error)
        error = array_info(array, &d, &element);
    for (const char *at = memory; !error && n;) {
        size_t row = d.width * element, part = x < row ? row - x : 0;
        part = part < n ? part : n;
        if (!part || (y && y >= d.height))
            return hw_cudaErrorInvalidValue;
        side a = in_array(array, x, y), m = in_memory(at, part, part, 1);
        error = copy_array(to_array ? m : a, to_array ? a : m, part, 1, kind, stream, async);
        at += part;
        n -= part;
        x = 0;
        y++;
    }
    return error;
}

HW_CUDA(int, cudaMemcpyToArray, hw_cudaArray_t dst, size_t x, size_t y, const void *src, size_t n,
        int kind)
{
    return hw_note(copy_rows(true, dst, x, y, src, n, kind, NULL, false));
}

HW_CUDA(int, cudaMemcpyToArray_ptds, hw_cudaArray_t dst, size_t x, size_t y, const void *src,
        size_t n, int kind)
{
    return hw_note(copy_rows(true, dst, x, y, src, n, kind, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemcpyToArrayAsync, hw_cudaArray_t dst, size_t x, size_t y, const void *src,
        size_t n, int kind, hw_cudaStream_t stream)
{
    return hw_note(copy_rows(true, dst, x, y, src, n, kind, stream, true));
}

HW_PER_THREAD(int, cudaMemcpyToArrayAsync_ptsz,
              (hw_cudaArray_t dst, size_t x, size_t y, const void *src, size_t n, int kind,
               hw_cudaStream_t stream),
              cudaMemcpyToArrayAsync(dst, x, y, src, n, kind, hw_per_thread(stream)))

HW_CUDA(int, cudaMemcpyFromArray, void *dst, hw_cudaArray_t src, size_t x, size_t y, size_t n,
        int kind)
{
    return hw_note(copy_rows(false, src, x, y, dst, n, kind, NULL, false));
}

HW_CUDA(int, cudaMemcpyFromArray_ptds, void *dst, hw_cudaArray_t src, size_t x, size_t y, size_t n,
        int kind)
{
    return hw_note(copy_rows(false, src, x, y, dst, n, kind, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemcpyFromArrayAsync, void *dst, hw_cudaArray_t src, size_t x, size_t y, size_t n,
        int kind, hw_cudaStream_t stream)
{
    return hw_note(copy_rows(false, src, x, y, dst, n, kind, stream, true));
}

HW_PER_THREAD(int, cudaMemcpyFromArrayAsync_ptsz,
              (void *dst, hw_cudaArray_t src, size_t x, size_t y, size_t n, int kind,
               hw_cudaStream_t stream),
              cudaMemcpyFromArrayAsync(dst, src, x, y, n, kind, hw_per_thread(stream)))

/* SPDX-License-Identifier: Apache-2.0
 * Copies and sets of linear and pitched memory, and of variables.
 *
 * The synchronous forms take a stream too: 0 for the legacy one, the thread's own for the _ptds
 * variants, which are the asynchronous form and a wait.
 */
#include "state.h"

static uint64_t address_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

bool hw_kind_known(int kind)
{
    return kind >= hw_cudaMemcpyHostToHost && kind <= hw_cudaMemcpyDefault;
}

int hw_source_type(int kind)
{
    static const int types[] = { HW_MEMORY_HOST, HW_MEMORY_HOST, HW_MEMORY_DEVICE, HW_MEMORY_DEVICE,
                                 HW_MEMORY_UNIFIED };
    return types[kind];
}

int hw_target_type(int kind)
{
    static const int types[] = { HW_MEMORY_HOST, HW_MEMORY_DEVICE, HW_MEMORY_HOST, HW_MEMORY_DEVICE,
                                 HW_MEMORY_UNIFIED };
    return types[kind];
}

static int copy_sync(void *dst, const void *src, size_t n, int kind)
{
    switch (kind) {
    case hw_cudaMemcpyHostToDevice:
        return hw_cu.copy_htod(address_of(dst), src, n);
    case hw_cudaMemcpyDeviceToHost:
        return hw_cu.copy_dtoh(dst, address_of(src), n);
    case hw_cudaMemcpyDeviceToDevice:
        return hw_cu.copy_dtod(address_of(dst), address_of(src), n);
    default:
        return hw_cu.copy(address_of(dst), address_of(src), n);
    }
}

static int copy_async(void *dst, const void *src, size_t n, int kind, hw_cudaStream_t stream)
{
    switch (kind) {
    case hw_cudaMemcpyHostToDevice:
        return hw_cu.copy_htod_async(address_of(dst), src, n, stream);
    case hw_cudaMemcpyDeviceToHost:
        return hw_cu.copy_dtoh_async(dst, address_of(src), n, stream);
    case hw_cudaMemcpyDeviceToDevice:
        return hw_cu.copy_dtod_async(address_of(dst), address_of(src), n, stream);
    default:
        return hw_cu.copy_async(address_of(dst), address_of(src), n, stream);
    }
}

static int waited(int error, bool async, hw_cudaStream_t stream)
{
    if (error || async)
        return error;
    return hw_cu.stream_synchronize(stream);
}

int hw_copy_linear(void *dst, const void *src, size_t n, int kind, hw_cudaStream_t stream,
                   bool async)
{
    if (!hw_kind_known(kind))
        return hw_cudaErrorInvalidMemcpyDirection;
    int error = hw_cudart_enter();
    if (error || n == 0)
        return error;
    if (!dst || !src)
        return hw_cudaErrorInvalidValue;
    if (!async && !stream)
        return copy_sync(dst, src, n, kind);
    return waited(copy_async(dst, src, n, kind, stream), async, stream);
}

HW_CUDA(int, cudaMemcpy, void *dst, const void *src, size_t n, int kind)
{
    return hw_note(hw_copy_linear(dst, src, n, kind, NULL, false));
}

HW_CUDA(int, cudaMemcpy_ptds, void *dst, const void *src, size_t n, int kind)
{
    return hw_note(hw_copy_linear(dst, src, n, kind, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemcpyAsync, void *dst, const void *src, size_t n, int kind,
        hw_cudaStream_t stream)
{
    return hw_note(hw_copy_linear(dst, src, n, kind, stream, true));
}

HW_PER_THREAD(int, cudaMemcpyAsync_ptsz,
              (void *dst, const void *src, size_t n, int kind, hw_cudaStream_t stream),
              cudaMemcpyAsync(dst, src, n, kind, hw_per_thread(stream)))

/* ---- two dimensions ---- */

typedef struct plane {
    void *dst;
    size_t dst_pitch;
    const void *src;
    size_t src_pitch, width, height;
} plane;

static int copy_plane(plane p, int kind, hw_cudaStream_t stream, bool async)
{
    if (!hw_kind_known(kind))
        return hw_cudaErrorInvalidMemcpyDirection;
    int error = hw_cudart_enter();
    if (error || !p.width || !p.height)
        return error;
    if (p.width > p.dst_pitch || p.width > p.src_pitch)
        return hw_cudaErrorInvalidPitchValue;
    if (!p.dst || !p.src)
        return hw_cudaErrorInvalidValue;
    hw_copy2d c = {
        .src_type = hw_source_type(kind),
        .src_host = p.src,
        .src_device = address_of(p.src),
        .src_pitch = p.src_pitch,
        .dst_type = hw_target_type(kind),
        .dst_host = p.dst,
        .dst_device = address_of(p.dst),
        .dst_pitch = p.dst_pitch,
        .width = p.width,
        .height = p.height,
    };
    if (!async && !stream)
        return hw_cu.copy_2d(&c);
    return waited(hw_cu.copy_2d_async(&c, stream), async, stream);
}

HW_CUDA(int, cudaMemcpy2D, void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
        size_t height, int kind)
{
    plane p = { dst, dpitch, src, spitch, width, height };
    return hw_note(copy_plane(p, kind, NULL, false));
}

HW_CUDA(int, cudaMemcpy2D_ptds, void *dst, size_t dpitch, const void *src, size_t spitch,
        size_t width, size_t height, int kind)
{
    plane p = { dst, dpitch, src, spitch, width, height };
    return hw_note(copy_plane(p, kind, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemcpy2DAsync, void *dst, size_t dpitch, const void *src, size_t spitch,
        size_t width, size_t height, int kind, hw_cudaStream_t stream)
{
    plane p = { dst, dpitch, src, spitch, width, height };
    return hw_note(copy_plane(p, kind, stream, true));
}

HW_PER_THREAD(int, cudaMemcpy2DAsync_ptsz,
              (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
               size_t height, int kind, hw_cudaStream_t stream),
              cudaMemcpy2DAsync(dst, dpitch, src, spitch, width, height, kind,
                                hw_per_thread(stream)))

/* ---- between devices ---- */

static int copy_peer(void *dst, int to, const void *src, int from, size_t n, hw_cudaStream_t stream,
                     bool async)
{
    void *to_ctx, *from_ctx;
    int error = hw_cudart_enter();
    if (!error)
        error = hw_primary_context(to, &to_ctx);
    if (!error)
        error = hw_primary_context(from, &from_ctx);
    if (error || !n)
        return error;
    return async ? hw_cu.copy_peer_async(address_of(dst), to_ctx, address_of(src), from_ctx, n,
                                         stream)
                 : hw_cu.copy_peer(address_of(dst), to_ctx, address_of(src), from_ctx, n);
}

HW_CUDA(int, cudaMemcpyPeer, void *dst, int to, const void *src, int from, size_t n)
{
    return hw_note(copy_peer(dst, to, src, from, n, NULL, false));
}

HW_CUDA(int, cudaMemcpyPeerAsync, void *dst, int to, const void *src, int from, size_t n,
        hw_cudaStream_t stream)
{
    return hw_note(copy_peer(dst, to, src, from, n, stream, true));
}

/* The driver's form has the contexts where the plain copy has nothing. */
static int copy_peer_box(const hw_cudaMemcpy3DPeerParms *p, hw_cudaStream_t stream, bool async)
{
    hw_copy3d c;
    if (!p)
        return hw_cudaErrorInvalidValue;
    hw_cudaMemcpy3DParms plain = { p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
                                   p->dstPos,   p->dstPtr, p->extent, hw_cudaMemcpyDefault };
    int error = hw_copy_params(&plain, &c);
    if (!error)
        error = hw_primary_context(p->srcDevice, &c.src_reserved);
    if (!error)
        error = hw_primary_context(p->dstDevice, &c.dst_reserved);
    if (error)
        return error;
    return async ? hw_cu.copy_3d_peer_async(&c, stream) : hw_cu.copy_3d_peer(&c);
}

HW_CUDA(int, cudaMemcpy3DPeer, const hw_cudaMemcpy3DPeerParms *p)
{
    return hw_note(copy_peer_box(p, NULL, false));
}

HW_CUDA(int, cudaMemcpy3DPeer_ptds, const hw_cudaMemcpy3DPeerParms *p)
{
    HW_CUDA_TRY(copy_peer_box(p, HW_STREAM_PER_THREAD, true));
    return hw_note(hw_cu.stream_synchronize(HW_STREAM_PER_THREAD));
}

HW_CUDA(int, cudaMemcpy3DPeerAsync, const hw_cudaMemcpy3DPeerParms *p, hw_cudaStream_t stream)
{
    return hw_note(copy_peer_box(p, stream, true));
}

HW_PER_THREAD(int, cudaMemcpy3DPeerAsync_ptsz,
              (const hw_cudaMemcpy3DPeerParms *p, hw_cudaStream_t stream),
              cudaMemcpy3DPeerAsync(p, hw_per_thread(stream)))

/* ---- batches; the structures are the same in both interfaces ---- */

HW_STREAM_CALL(cudaMemcpyBatchAsync,
               (void *const *dst, const void *const *src, const size_t *sizes, size_t n,
                void *attributes, size_t *indices, size_t n_attributes, hw_cudaStream_t stream),
               copy_batch(dst, src, sizes, n, attributes, indices, n_attributes, stream))
HW_STREAM_CALL(cudaMemcpy3DBatchAsync,
               (size_t n, void *list, unsigned long long flags, hw_cudaStream_t stream),
               copy_3d_batch(n, list, flags, stream))
HW_STREAM_CALL(cudaMemPrefetchBatchAsync,
               (void **p, size_t *sizes, size_t n, void *to, size_t *indices, size_t n_to,
                unsigned long long flags, hw_cudaStream_t stream),
               prefetch_batch(p, sizes, n, to, indices, n_to, flags, stream))

/* ---- variables ---- */

HW_CUDA(int, cudaGetSymbolAddress, void **p, const void *symbol)
{
    uint64_t address;
    size_t size;
    if (!p)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_find_variable(symbol, &address, &size));
    *p = (void *)(uintptr_t)address;
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaGetSymbolSize, size_t *size, const void *symbol)
{
    uint64_t address;
    if (!size)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_find_variable(symbol, &address, size));
}

int hw_find_variable_part(const void *symbol, size_t n, size_t offset, void **place)
{
    uint64_t address;
    size_t size;
    int error = hw_cudart_enter();
    if (!error)
        error = hw_find_variable(symbol, &address, &size);
    if (!error && (offset > size || n > size - offset))
        error = hw_cudaErrorInvalidValue;
    if (!error)
        *place = (void *)(uintptr_t)(address + offset);
    return error;
}

static int copy_to_symbol(const void *symbol, const void *src, size_t n, size_t offset, int kind,
                          hw_cudaStream_t stream, bool async)
{
    void *dst;
    if (kind != hw_cudaMemcpyHostToDevice && kind != hw_cudaMemcpyDeviceToDevice &&
        kind != hw_cudaMemcpyDefault)
        return hw_cudaErrorInvalidMemcpyDirection;
    int error = hw_find_variable_part(symbol, n, offset, &dst);
    return error ? error : hw_copy_linear(dst, src, n, kind, stream, async);
}

static int copy_from_symbol(void *dst, const void *symbol, size_t n, size_t offset, int kind,
                            hw_cudaStream_t stream, bool async)
{
    void *src;
    if (kind != hw_cudaMemcpyDeviceToHost && kind != hw_cudaMemcpyDeviceToDevice &&
        kind != hw_cudaMemcpyDefault)
        return hw_cudaErrorInvalidMemcpyDirection;
    int error = hw_find_variable_part(symbol, n, offset, &src);
    return error ? error : hw_copy_linear(dst, src, n, kind, stream, async);
}

HW_CUDA(int, cudaMemcpyToSymbol, const void *symbol, const void *src, size_t n, size_t offset,
        int kind)
{
    return hw_note(copy_to_symbol(symbol, src, n, offset, kind, NULL, false));
}

HW_CUDA(int, cudaMemcpyToSymbol_ptds, const void *symbol, const void *src, size_t n, size_t offset,
        int kind)
{
    return hw_note(copy_to_symbol(symbol, src, n, offset, kind, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemcpyToSymbolAsync, const void *symbol, const void *src, size_t n, size_t offset,
        int kind, hw_cudaStream_t stream)
{
    return hw_note(copy_to_symbol(symbol, src, n, offset, kind, stream, true));
}

HW_PER_THREAD(int, cudaMemcpyToSymbolAsync_ptsz,
              (const void *symbol, const void *src, size_t n, size_t offset, int kind,
               hw_cudaStream_t stream),
              cudaMemcpyToSymbolAsync(symbol, src, n, offset, kind, hw_per_thread(stream)))

HW_CUDA(int, cudaMemcpyFromSymbol, void *dst, const void *symbol, size_t n, size_t offset, int kind)
{
    return hw_note(copy_from_symbol(dst, symbol, n, offset, kind, NULL, false));
}

HW_CUDA(int, cudaMemcpyFromSymbol_ptds, void *dst, const void *symbol, size_t n, size_t offset,
        int kind)
{
    return hw_note(copy_from_symbol(dst, symbol, n, offset, kind, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemcpyFromSymbolAsync, void *dst, const void *symbol, size_t n, size_t offset,
        int kind, hw_cudaStream_t stream)
{
    return hw_note(copy_from_symbol(dst, symbol, n, offset, kind, stream, true));
}

HW_PER_THREAD(int, cudaMemcpyFromSymbolAsync_ptsz,
              (void *dst, const void *symbol, size_t n, size_t offset, int kind,
               hw_cudaStream_t stream),
              cudaMemcpyFromSymbolAsync(dst, symbol, n, offset, kind, hw_per_thread(stream)))

/* SPDX-License-Identifier: Apache-2.0
 * Sets, and what concerns a range of memory as a whole.
 */
#include "state.h"

static int set_linear(void *p, int value, size_t n, hw_cudaStream_t stream, bool async)
{
    int error = hw_cudart_enter();
    if (error || !n)
        return error;
    if (!async && !stream)
        return hw_cu.set8((uintptr_t)p, (unsigned char)value, n);
    error = hw_cu.set8_async((uintptr_t)p, (unsigned char)value, n, stream);
    return error || async ? error : hw_cu.stream_synchronize(stream);
}

static int set_plane(uint64_t p, size_t pitch, int value, size_t width, size_t height,
                     hw_cudaStream_t stream, bool async)
{
    int error = hw_cudart_enter();
    if (error || !width || !height)
        return error;
    if (height == 1)
        pitch = width;
    if (width > pitch)
        return hw_cudaErrorInvalidValue;
    if (!async && !stream)
        return hw_cu.set8_2d(p, pitch, (unsigned char)value, width, height);
    error = hw_cu.set8_2d_async(p, pitch, (unsigned char)value, width, height, stream);
    return error || async ? error : hw_cu.stream_synchronize(stream);
}

static int set_box(hw_cudaPitchedPtr p, int value, hw_cudaExtent e, hw_cudaStream_t stream,
                   bool async)
{
    uint64_t at = (uintptr_t)p.ptr;
    int error = hw_cudaSuccess;
    size_t rows = p.ysize ? p.ysize : e.height;
    if (rows == e.height && e.depth > 1) /* slices follow each other without a gap */
        return set_plane(at, p.pitch, value, e.width, e.height * e.depth, stream, async);
    for (size_t z = 0; z < e.depth && !error; z++)
        error =
            set_plane(at + z * p.pitch * rows, p.pitch, value, e.width, e.height, stream, async);
    return error;
}

HW_CUDA(int, cudaMemset, void *p, int value, size_t n)
{
    return hw_note(set_linear(p, value, n, NULL, false));
}

HW_CUDA(int, cudaMemset_ptds, void *p, int value, size_t n)
{
    return hw_note(set_linear(p, value, n, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemsetAsync, void *p, int value, size_t n, hw_cudaStream_t stream)
{
    return hw_note(set_linear(p, value, n, stream, true));
}

HW_PER_THREAD(int, cudaMemsetAsync_ptsz, (void *p, int value, size_t n, hw_cudaStream_t stream),
              cudaMemsetAsync(p, value, n, hw_per_thread(stream)))

HW_CUDA(int, cudaMemset2D, void *p, size_t pitch, int value, size_t width, size_t height)
{
    return hw_note(set_plane((uintptr_t)p, pitch, value, width, height, NULL, false));
}

HW_CUDA(int, cudaMemset2D_ptds, void *p, size_t pitch, int value, size_t width, size_t height)
{
    return hw_note(
        set_plane((uintptr_t)p, pitch, value, width, height, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemset2DAsync, void *p, size_t pitch, int value, size_t width, size_t height,
        hw_cudaStream_t stream)
{
    return hw_note(set_plane((uintptr_t)p, pitch, value, width, height, stream, true));
}

HW_PER_THREAD(int, cudaMemset2DAsync_ptsz,
              (void *p, size_t pitch, int value, size_t width, size_t height,
               hw_cudaStream_t stream),
              cudaMemset2DAsync(p, pitch, value, width, height, hw_per_thread(stream)))

HW_CUDA(int, cudaMemset3D, hw_cudaPitchedPtr p, int value, hw_cudaExtent e)
{
    return hw_note(set_box(p, value, e, NULL, false));
}

HW_CUDA(int, cudaMemset3D_ptds, hw_cudaPitchedPtr p, int value, hw_cudaExtent e)
{
    return hw_note(set_box(p, value, e, HW_STREAM_PER_THREAD, false));
}

HW_CUDA(int, cudaMemset3DAsync, hw_cudaPitchedPtr p, int value, hw_cudaExtent e,
        hw_cudaStream_t stream)
{
    return hw_note(set_box(p, value, e, stream, true));
}

HW_PER_THREAD(int, cudaMemset3DAsync_ptsz,
              (hw_cudaPitchedPtr p, int value, hw_cudaExtent e, hw_cudaStream_t stream),
              cudaMemset3DAsync(p, value, e, hw_per_thread(stream)))

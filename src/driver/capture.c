/* SPDX-License-Identifier: Apache-2.0
 * Stream capture. */
#include "copy.h"
#include "launch.h"

CUresult hw_cu_capture_copy(hw_cu_stream *s, const hw_cu_copy *c, bool *done)
{
    (void)s;
    (void)c;
    *done = false;
    return CUDA_SUCCESS;
}
CUresult hw_cu_capture_fill(hw_cu_stream *s, const hw_cu_fill *f, bool *done)
{
    (void)s;
    (void)f;
    *done = false;
    return CUDA_SUCCESS;
}
CUresult hw_cu_capture_launch(hw_cu_stream *s, hw_cu_launch *l, bool *done)
{
    (void)s;
    (void)l;
    *done = false;
    return CUDA_SUCCESS;
}
CUresult hw_cu_array_side(CUarray array, const size_t offset[3], const size_t extent[3],
                          hw_cu_side *out)
{
    (void)array;
    (void)offset;
    (void)extent;
    (void)out;
    return CUDA_ERROR_NOT_SUPPORTED;
}

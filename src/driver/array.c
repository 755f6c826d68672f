/* SPDX-License-Identifier: Apache-2.0
 * Arrays. */
#include "copy.h"

CUresult hw_cu_array_side(CUarray array, const size_t offset[3], const size_t extent[3],
                          hw_cu_side *out)
{
    (void)array;
    (void)offset;
    (void)extent;
    (void)out;
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays (private): texels in rows of slices, in device memory that only copies, textures and surfaces reach.
 */
#ifndef HW_DRIVER_ARRAY_H
#define HW_DRIVER_ARRAY_H

#include "copy.h"

enum { ARRAY_LAYERED = 1, ARRAY_SURFACE = 2, ARRAY_CUBEMAP = 4, ARRAY_GATHER = 8 };

typedef struct hw_cu_mipmap hw_cu_mipmap;

typedef struct hw_cu_array {
    CUarray handle;
    hw_cu_context *ctx;
    hw_cu_mipmap *mipmap; /* whose level it is; NULL: none */
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUdeviceptr address;
    size_t element; /* bytes of a texel */
    size_t rows, slices;
    size_t pitch, slice;
    hw_cu_link link; /* ctx->arrays; not of levels */
} hw_cu_array;

CUresult hw_cu_find_array(CUarray handle, hw_cu_array **out);
/* Bytes of a texel, 0 if there is no such format. */
size_t hw_cu_texel_bytes(CUarray_format format, unsigned channels);

#endif

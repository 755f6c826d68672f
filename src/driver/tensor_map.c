/* SPDX-License-Identifier: Apache-2.0
 * Tensor maps made and checked. (CUDA Driver API, "Tensor Map Object Managment".)
 */
#include "driver.h"

enum { INTERLEAVE_NONE = 0, INTERLEAVES = 3, PROMOTIONS = 4, FILLS = 2, MAP_ALIGN = 64 };

static CUresult ready(const void *map)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED(ctx->gpu->model->capability.tensor_map, NOT_SUPPORTED);
    CU_NEED(map && (uintptr_t)map % MAP_ALIGN == 0, INVALID_VALUE);
    return CUDA_SUCCESS;
}

static CUresult unsupported(const char *what)
{
    hw_cu_notice("tensor maps with %s are not supported (docs/coverage-driver.md)", what);
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult check_words(unsigned type, unsigned rank, unsigned interleave, unsigned swizzle,
                            unsigned promotion, unsigned fill)
{
    CU_NEED(type < HW_TENSOR_TYPES && rank >= 1 && rank <= HW_TENSOR_DIMS &&
                interleave < INTERLEAVES && swizzle < HW_SWIZZLES && promotion < PROMOTIONS &&
                fill < FILLS,
            INVALID_VALUE);
    CU_NEED(interleave == INTERLEAVE_NONE || rank >= 3, INVALID_VALUE);
    if (interleave != INTERLEAVE_NONE)
        return unsupported("an interleaved layout");
    if (swizzle == HW_SWIZZLE_128_ATOM_32_FLIP)
        return unsupported("swizzled halves of 16 bytes");
    return CUDA_SUCCESS;
}

/* What all kinds say: where the tensor is and how large. */
static CUresult describe(hw_tensor_map *m, CUtensorMapDataType type, cuuint32_t rank, void *address,
                         const cuuint64_t *sizes, const cuuint64_t *strides,
                         const cuuint32_t *steps)
{
    const uint64_t size_most = UINT64_C(1) << 32;
    m->magic = HW_TENSOR_MAGIC;
    m->rank = (uint8_t)rank;
    m->type = (uint8_t)type;
    m->address = (uint64_t)(uintptr_t)address;
    for (unsigned d = 0; d < rank; d++) {
        CU_NEED(sizes[d] >= 1 && sizes[d] <= size_most && steps[d] <= 8, INVALID_VALUE);
        m->last[d] = (uint32_t)(sizes[d] - 1);
        m->step[d] = d ? (uint8_t)steps[d] : 1;
        if (d)
            m->stride[d - 1] = strides[d - 1];
    }
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                 void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                                 const int *lower, const int *upper, cuuint32_t channels,
                                 cuuint32_t pixels, const cuuint32_t *steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    hw_tensor_map m = { .im2col = true, .swizzle = (uint8_t)swizzle, .nan = fill != 0 };
    CU_TRY(hw_cu_ready());
    CU_TRY(ready(map));
    CU_NEED(address && sizes && strides && lower && upper && steps && rank >= 3, INVALID_VALUE);
    CU_TRY(check_words((unsigned)type, rank, (unsigned)interleave, (unsigned)swizzle,
                       (unsigned)promotion, (unsigned)fill));
    CU_NEED(channels <= 256 && pixels <= 1024, INVALID_VALUE);
    CU_TRY(describe(&m, type, rank, address, sizes, strides, steps));
    m.pixels = (uint16_t)pixels;
    for (unsigned d = 0; d < rank; d++)
        m.box[d] = d ? 1 : (uint16_t)channels;
    for (unsigned d = 0; d < rank - 2; d++) {
        CU_NEED(lower[d] == (int16_t)lower[d] && upper[d] == (int16_t)upper[d], INVALID_VALUE);
        m.lower[d] = (int16_t)lower[d];
        m.upper[d] = (int16_t)upper[d];
    }
    CU_NEED(hw_tensor_map_valid(&m), INVALID_VALUE);
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                void *address, const cuuint64_t *sizes, const cuuint64_t *strides,
                                const cuuint32_t *box, const cuuint32_t *steps,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    hw_tensor_map m = { .swizzle = (uint8_t)swizzle, .nan = fill != 0 };
    CU_TRY(hw_cu_ready());
    CU_TRY(ready(map));
    CU_NEED(address && sizes && box && steps && (strides || rank == 1), INVALID_VALUE);
    CU_TRY(check_words((unsigned)type, rank, (unsigned)interleave, (unsigned)swizzle,
                       (unsigned)promotion, (unsigned)fill));
    CU_TRY(describe(&m, type, rank, address, sizes, strides, steps));
    for (unsigned d = 0; d < rank; d++) {
        CU_NEED(box[d] <= 256, INVALID_VALUE);
        m.box[d] = (uint16_t)box[d];
    }
    CU_NEED(hw_tensor_map_valid(&m), INVALID_VALUE);
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}

/* What a map says of a tensor can be moved to another address. */
CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
    hw_tensor_map m;
    CU_TRY(hw_cu_ready());
    CU_TRY(ready(map));
    memcpy(&m, map, sizeof m);
    m.address = (uint64_t)(uintptr_t)address;
    CU_NEED(hw_tensor_map_valid(&m), INVALID_VALUE);
    memcpy(map, &m, sizeof m);
    return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * driver: libcuda.so.1, the CUDA driver API. Its door is the API itself: the types of cuda_abi.h
 * and one declaration for each implemented row of cuda.def, under the symbol's name (cuMemAlloc is
 * cuMemAlloc_v2, as in any program). Room runtime and C programs that have no toolkit may include
 * it; everything else in the library is hidden.
 */
#ifndef HW_DRIVER_H
#define HW_DRIVER_H

#include "cuda_abi.h"

#define HW_CUDA_API __attribute__((visibility("default")))

#define CU(name, version, symbol, chapter, params) HW_CUDA_API CUresult symbol params;
#define CU_PT(name, version, symbol, pt_version, pt_symbol, chapter, params, args) \
    HW_CUDA_API CUresult symbol params;                                            \
    HW_CUDA_API CUresult pt_symbol params;
#define CU_AS(name, version, symbol, newer, chapter, params, args) \
    HW_CUDA_API CUresult symbol params;
#define CU_AS_PT(name, version, symbol, newer, pt_version, pt_symbol, chapter, params, args) \
    HW_CUDA_API CUresult symbol params;                                                      \
    HW_CUDA_API CUresult pt_symbol params;
#define NO(name, version, symbol, chapter)
#define NO_PT(name, version, symbol, chapter)
#include "cuda.def"
#undef CU
#undef CU_PT
#undef CU_AS
#undef CU_AS_PT
#undef NO
#undef NO_PT

#endif

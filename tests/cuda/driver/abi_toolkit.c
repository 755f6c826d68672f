/* SPDX-License-Identifier: Apache-2.0
 * The facts of abi.def as the toolkit's header declares them. Compiling this file also checks each
 * declaration of cuda.def: one that disagrees with the toolkit's is an error. Not built where there
 * is no toolkit. */
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <cudaProfiler.h>
#undef __CUDA_API_VERSION_INTERNAL

#include "abi.h"

#define CU(name, version, symbol, chapter, params) CUresult symbol params;
#define CU_PT(name, version, symbol, pt_version, pt_symbol, chapter, params, args) \
    CUresult symbol params;                                                        \
    CUresult pt_symbol params;
#define CU_AS(name, version, symbol, newer, chapter, params, args) CUresult symbol params;
#define CU_AS_PT(name, version, symbol, newer, pt_version, pt_symbol, chapter, params, args) \
    CUresult symbol params;                                                                  \
    CUresult pt_symbol params;
#define NO(name, version, symbol, chapter)
#define NO_PT(name, version, symbol, chapter)
#include "cuda.def"

const abi_fact abi_toolkit[] = {
#include "abi_rows.h"
};
const size_t abi_toolkit_count = sizeof abi_toolkit / sizeof abi_toolkit[0];

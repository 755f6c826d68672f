/* SPDX-License-Identifier: Apache-2.0
 * Kernels asked about: attributes, preferences, occupancy, names; libraries loaded by the program.
 */
#include "state.h"

static int find(const void *function, void **kernel, int *device)
{
    int error = hw_cudart_enter();
    if (!error)
        error = hw_find_kernel(function, kernel);
    return error ? error : hw_current_device(device);
}

/* An address that is no kernel is a bad handle to the driver and a bad function to the runtime. */
static int judged(int error)
{
    return hw_note(error == hw_cudaErrorInvalidResourceHandle ? hw_cudaErrorInvalidDeviceFunction
                                                              : error);
}

HW_CUDA(int, cudaFuncGetAttributes, hw_cudaFuncAttributes *out, const void *function)
{
    enum { N_ATTRIBUTES = 16 };
    void *kernel;
    int device, v[N_ATTRIBUTES] = { 0 };
    if (!out)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(find(function, &kernel, &device));
    for (int i = 0; i < N_ATTRIBUTES; i++) {
        int error = hw_cu.kernel_get_attribute(&v[i], i, kernel, device);
        if (error)
            return judged(error);
    }
    *out = (hw_cudaFuncAttributes){
        .maxThreadsPerBlock = v[0],
        .sharedSizeBytes = (size_t)v[1],
        .constSizeBytes = (size_t)v[2],
        .localSizeBytes = (size_t)v[3],
        .numRegs = v[4],
        .ptxVersion = v[5],
        .binaryVersion = v[6],
        .cacheModeCA = v[7],
        .maxDynamicSharedSizeBytes = v[8],
        .preferredShmemCarveout = v[9],
        .clusterDimMustBeSet = v[10],
        .requiredClusterWidth = v[11],
        .requiredClusterHeight = v[12],
        .requiredClusterDepth = v[13],
        .nonPortableClusterSizeAllowed = v[14],
        .clusterSchedulingPolicyPreference = v[15],
    };
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaFuncSetAttribute, const void *function, int attribute, int value)
{
    void *kernel;
    int device;
    HW_CUDA_TRY(find(function, &kernel, &device));
    return judged(hw_cu.kernel_set_attribute(attribute, value, kernel, device));
}

HW_CUDA(int, cudaKernelSetAttributeForDevice, hw_cudaKernel_t kernel, int attribute, int value,
        int device)
{
    void *handle;
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_find_kernel(kernel, &handle));
    return judged(hw_cu.kernel_set_attribute(attribute, value, handle, device));
}

HW_CUDA(int, cudaFuncSetCacheConfig, const void *function, int config)
{
    void *kernel;
    int device;
    HW_CUDA_TRY(find(function, &kernel, &device));
    return judged(hw_cu.kernel_set_cache(kernel, config, device));
}

/* Bank sizes are no longer configurable: the call is accepted, as by NVIDIA's runtime. */
HW_CUDA(int, cudaFuncSetSharedMemConfig, const void *function, int config)
{
    void *kernel;
    int device;
    if (config < 0 || config > 2)
        return hw_note(hw_cudaErrorInvalidValue);
    return hw_note(find(function, &kernel, &device));
}

HW_CUDA(int, cudaFuncGetName, const char **name, const void *function)
{
    if (!name)
        return hw_note(hw_cudaErrorInvalidValue);
    *name = hw_kernel_name(function);
    if (*name)
        return hw_cudaSuccess;
    HW_CUDA_TRY(hw_cudart_enter());
    return judged(hw_cu.kernel_name(name, (void *)function));
}

HW_CUDA(int, cudaFuncGetParamInfo, const void *function, size_t index, size_t *offset, size_t *size)
{
    void *kernel;
    int device;
    HW_CUDA_TRY(find(function, &kernel, &device));
    return judged(hw_cu.kernel_param(kernel, index, offset, size));
}

HW_CUDA(int, cudaGetKernel, hw_cudaKernel_t *kernel, const void *function)
{
    int device;
    if (!kernel)
        return hw_note(hw_cudaErrorInvalidValue);
    return hw_note(find(function, kernel, &device));
}

HW_CUDA(int, cudaGetFuncBySymbol, void **out, const void *function)
{
    void *kernel;
    int device;
    if (!out)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(find(function, &kernel, &device));
    return judged(hw_cu.kernel_function(out, kernel));
}

/* ---- occupancy ---- */

HW_CUDA(int, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *n, const void *function,
        int block, size_t shared, unsigned flags)
{
    void *kernel;
    int device;
    if (!n)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(find(function, &kernel, &device));
    return judged(hw_cu.occupancy_blocks(n, kernel, block, shared, flags));
}

HW_CUDA(int, cudaOccupancyMaxActiveBlocksPerMultiprocessor, int *n, const void *function, int block,
        size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, function, block, shared, 0);
}

HW_CUDA(int, cudaOccupancyAvailableDynamicSMemPerBlock, size_t *bytes, const void *function,
        int blocks, int block)
{
    void *kernel;
    int device;
    if (!bytes)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(find(function, &kernel, &device));
    return judged(hw_cu.occupancy_shared(bytes, kernel, blocks, block));
}

/* ---- libraries ---- */

HW_CUDA(int, cudaLibraryLoadData, hw_cudaLibrary_t *library, const void *code, int *jit,
        void **jit_values, unsigned n_jit, int *options, void **values, unsigned n)
{
    if (!library || !code)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.library_load(library, code, jit, jit_values, n_jit, options, values, n));
}

HW_CUDA(int, cudaLibraryLoadFromFile, hw_cudaLibrary_t *library, const char *file, int *jit,
        void **jit_values, unsigned n_jit, int *options, void **values, unsigned n)
{
    if (!library || !file)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(
        hw_cu.library_load_file(library, file, jit, jit_values, n_jit, options, values, n));
}

HW_CUDA(int, cudaLibraryUnload, hw_cudaLibrary_t library)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.library_unload(library));
}

HW_CUDA(int, cudaLibraryGetKernel, hw_cudaKernel_t *kernel, hw_cudaLibrary_t library,
        const char *name)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.library_kernel(kernel, library, name));
}

HW_CUDA(int, cudaLibraryGetGlobal, void **p, size_t *n, hw_cudaLibrary_t library, const char *name)
{
    uint64_t address = 0;
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_cu.library_global(&address, n, library, name));
    if (p)
        *p = (void *)(uintptr_t)address;
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaLibraryGetManaged, void **p, size_t *n, hw_cudaLibrary_t library, const char *name)
{
    uint64_t address = 0;
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_cu.library_managed(&address, n, library, name));
    if (p)
        *p = (void *)(uintptr_t)address;
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaLibraryGetUnifiedFunction, void **fn, hw_cudaLibrary_t library, const char *name)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.library_unified(fn, library, name));
}

HW_CUDA(int, cudaLibraryGetKernelCount, unsigned *n, hw_cudaLibrary_t library)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.library_kernel_count(n, library));
}

HW_CUDA(int, cudaLibraryEnumerateKernels, hw_cudaKernel_t *kernels, unsigned n,
        hw_cudaLibrary_t library)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.library_kernels(kernels, n, library));
}

/* SPDX-License-Identifier: Apache-2.0
 * Launches: the configuration stack of <<<>>>, and every form of cudaLaunch.
 */
#include "state.h"

#include <stdlib.h>

enum { ATTRIBUTE_THREADS = 1, ATTRIBUTE_BLOCK_X = 2, ATTRIBUTE_GRID_X = 5 };
enum { STACK_MAX = 64 };

typedef struct configuration {
    hw_dim3 grid, block;
    size_t shared;
    hw_cudaStream_t stream;
} configuration;

static _Thread_local configuration stack[STACK_MAX];
static _Thread_local unsigned stack_depth;

HW_CUDA(unsigned, __cudaPushCallConfiguration, hw_dim3 grid, hw_dim3 block, size_t shared,
        hw_cudaStream_t stream)
{
    if (stack_depth == STACK_MAX)
        return (unsigned)hw_note(hw_cudaErrorMissingConfiguration);
    stack[stack_depth++] = (configuration){ grid, block, shared, stream };
    return 0;
}

HW_CUDA(int, __cudaPopCallConfiguration, hw_dim3 *grid, hw_dim3 *block, size_t *shared,
        void *stream)
{
    if (stack_depth == 0)
        return hw_note(hw_cudaErrorMissingConfiguration);
    const configuration *c = &stack[--stack_depth];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    *(hw_cudaStream_t *)stream = c->stream;
    return hw_cudaSuccess;
}

static bool within(const unsigned size[3], int device, int first_attribute)
{
    for (int i = 0; i < 3; i++)
        if (size[i] == 0 || size[i] > (unsigned)hw_device_fact(device, first_attribute + i))
            return false;
    return true;
}

/* The runtime tells a bad configuration apart (9); the driver calls it an invalid value (1). */
int hw_check_config(hw_dim3 grid, hw_dim3 block)
{
    int device;
    int error = hw_current_device(&device);
    if (error)
        return error;
    const unsigned g[3] = { grid.x, grid.y, grid.z }, b[3] = { block.x, block.y, block.z };
    if (!within(g, device, ATTRIBUTE_GRID_X) || !within(b, device, ATTRIBUTE_BLOCK_X) ||
        (uint64_t)block.x * block.y * block.z > (uint64_t)hw_device_fact(device, ATTRIBUTE_THREADS))
        return hw_cudaErrorInvalidConfiguration;
    return hw_cudaSuccess;
}

static int prepare(const void *function, hw_dim3 grid, hw_dim3 block, size_t shared, void **handle)
{
    int error = hw_cudart_enter();
    if (!error)
        error = hw_find_kernel(function, handle);
    if (!error)
        error = hw_check_config(grid, block);
    if (!error && shared > UINT32_MAX)
        error = hw_cudaErrorInvalidValue;
    return error;
}

/* The driver's word for an address that is no kernel is an invalid handle; so it is for a stream that is none. */
static int launched(int error, hw_cudaStream_t stream)
{
    unsigned flags;
    if (error == hw_cudaErrorInvalidResourceHandle && !hw_cu.stream_flags(stream, &flags))
        error = hw_cudaErrorInvalidDeviceFunction;
    return hw_note(error);
}

HW_CUDA(int, cudaLaunchKernel, const void *function, hw_dim3 grid, hw_dim3 block, void **args,
        size_t shared, hw_cudaStream_t stream)
{
    void *k;
    HW_CUDA_TRY(prepare(function, grid, block, shared, &k));
    return launched(hw_cu.launch(k, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 (unsigned)shared, stream, args, NULL),
                    stream);
}

HW_PER_THREAD(int, cudaLaunchKernel_ptsz,
              (const void *function, hw_dim3 grid, hw_dim3 block, void **args, size_t shared,
               hw_cudaStream_t stream),
              cudaLaunchKernel(function, grid, block, args, shared, hw_per_thread(stream)))

HW_CUDA(int, __cudaLaunchKernel, hw_cudaKernel_t kernel, hw_dim3 grid, hw_dim3 block, void **args,
        size_t shared, hw_cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

HW_PER_THREAD(int, __cudaLaunchKernel_ptsz,
              (hw_cudaKernel_t kernel, hw_dim3 grid, hw_dim3 block, void **args, size_t shared,
               hw_cudaStream_t stream),
              cudaLaunchKernel(kernel, grid, block, args, shared, hw_per_thread(stream)))

HW_CUDA(int, cudaLaunchCooperativeKernel, const void *function, hw_dim3 grid, hw_dim3 block,
        void **args, size_t shared, hw_cudaStream_t stream)
{
    void *k;
    HW_CUDA_TRY(prepare(function, grid, block, shared, &k));
    return launched(hw_cu.launch_cooperative(k, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                             (unsigned)shared, stream, args),
                    stream);
}

HW_PER_THREAD(int, cudaLaunchCooperativeKernel_ptsz,
              (const void *function, hw_dim3 grid, hw_dim3 block, void **args, size_t shared,
               hw_cudaStream_t stream),
              cudaLaunchCooperativeKernel(function, grid, block, args, shared,
                                          hw_per_thread(stream)))

static hw_launch_config driver_config(const hw_cudaLaunchConfig_t *c, hw_cudaStream_t stream)
{
    return (hw_launch_config){
        .grid_x = c->gridDim.x,
        .grid_y = c->gridDim.y,
        .grid_z = c->gridDim.z,
        .block_x = c->blockDim.x,
        .block_y = c->blockDim.y,
        .block_z = c->blockDim.z,
        .shared_bytes = (unsigned)c->dynamicSmemBytes,
        .stream = stream,
        .attributes = c->attrs,
        .n_attributes = c->numAttrs,
    };
}

static int launch_ex(const hw_cudaLaunchConfig_t *c, hw_cudaStream_t stream, const void *function,
                     void **args)
{
    void *k;
    HW_CUDA_TRY(prepare(function, c->gridDim, c->blockDim, c->dynamicSmemBytes, &k));
    hw_launch_config config = driver_config(c, stream);
    return launched(hw_cu.launch_ex(&config, k, args, NULL), stream);
}

HW_CUDA(int, cudaLaunchKernelExC, const hw_cudaLaunchConfig_t *config, const void *function,
        void **args)
{
    if (!config)
        return hw_note(hw_cudaErrorInvalidValue);
    return launch_ex(config, config->stream, function, args);
}

HW_CUDA(int, cudaLaunchKernelExC_ptsz, const hw_cudaLaunchConfig_t *config, const void *function,
        void **args)
{
    if (!config)
        return hw_note(hw_cudaErrorInvalidValue);
    return launch_ex(config, hw_per_thread(config->stream), function, args);
}

HW_CUDA(int, cudaLaunchHostFunc, hw_cudaStream_t stream, void (*fn)(void *), void *data)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.launch_host(stream, fn, data));
}

HW_PER_THREAD(int, cudaLaunchHostFunc_ptsz,
              (hw_cudaStream_t stream, void (*fn)(void *), void *data),
              cudaLaunchHostFunc(hw_per_thread(stream), fn, data))

HW_CUDA(int, cudaOccupancyMaxActiveClusters, int *n, const void *function,
        const hw_cudaLaunchConfig_t *c)
{
    void *k;
    if (!n || !c)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(prepare(function, c->gridDim, c->blockDim, c->dynamicSmemBytes, &k));
    hw_launch_config config = driver_config(c, c->stream);
    return launched(hw_cu.occupancy_clusters(n, k, &config), NULL);
}

HW_CUDA(int, cudaOccupancyMaxPotentialClusterSize, int *n, const void *function,
        const hw_cudaLaunchConfig_t *c)
{
    void *k;
    if (!n || !c)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(prepare(function, c->gridDim, c->blockDim, c->dynamicSmemBytes, &k));
    hw_launch_config config = driver_config(c, c->stream);
    return launched(hw_cu.occupancy_cluster_size(n, k, &config), NULL);
}

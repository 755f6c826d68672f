// SPDX-License-Identifier: Apache-2.0
// Kernels asked about and launched in every form.
#include "expect.h"
#include <cooperative_groups.h>
#include <cstring>
#include <cuda.h>

namespace cg = cooperative_groups;

template <typename T> __global__ void scale(T *p, T v) { p[blockIdx.x * blockDim.x + threadIdx.x] *= v; }
__global__ void __launch_bounds__(128) bounded(int *p) { __shared__ int s[256]; s[threadIdx.x] = *p; __syncthreads(); *p = s[127 - threadIdx.x]; }
static __global__ void hidden(int *p, char c, double d, short s) { *p = (int)(c + d + s); }
namespace { __global__ void anonymous(int *p) { *p = 77; } }
__global__ void everyone(int *p)
{
    cg::grid_group grid = cg::this_grid();
    atomicAdd(p, 1);
    grid.sync();
    if (threadIdx.x == 0)
        p[1 + blockIdx.x] = *(volatile int *)p;
}

int main()
{
    int *p, back[64], device = -1;
    OK(cudaMalloc(&p, sizeof back));
    cudaFuncAttributes a;
    OK(cudaFuncGetAttributes(&a, bounded));
    EXPECT(a.sharedSizeBytes, 1024);
    EXPECT(a.maxThreadsPerBlock <= 128 && a.maxThreadsPerBlock > 0, 1);
    EXPECT(a.numRegs > 0, 1);
    EXPECT(cudaFuncGetAttributes(&a, (const void *)&device), cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
    hidden<<<1, 1>>>(p, 'A', 2.5, -3);
    OK(cudaMemcpy(back, p, 4, cudaMemcpyDeviceToHost));
    EXPECT(back[0], 64);
    anonymous<<<1, 1>>>(p);
    OK(cudaMemcpy(back, p, 4, cudaMemcpyDeviceToHost));
    EXPECT(back[0], 77);
    for (int i = 0; i < 64; i++)
        back[i] = i;
    OK(cudaMemcpy(p, back, sizeof back, cudaMemcpyHostToDevice));
    int three = 3;
    void *args[] = { &p, &three };
    OK(cudaLaunchKernel((const void *)scale<int>, dim3(2), dim3(32), args, 0, nullptr));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2);
    config.blockDim = dim3(32);
    OK(cudaLaunchKernelEx(&config, scale<int>, p, 2));
    OK(cudaMemcpy(back, p, sizeof back, cudaMemcpyDeviceToHost));
    EXPECT(back[63], 63 * 6);

    int blocks = 0, minimum = 0, size = 0, cooperative = 0, sms = 0;
    size_t dynamic = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, everyone, 128, 0));
    EXPECT(blocks > 0, 1);
    OK(cudaOccupancyMaxPotentialBlockSize(&minimum, &size, scale<float>, 0, 0));
    EXPECT(size >= 128 && size % 32 == 0 && minimum > 0, 1);
    OK(cudaOccupancyAvailableDynamicSMemPerBlock(&dynamic, scale<float>, 1, 64));
    EXPECT(dynamic > 16384, 1);
    OK(cudaGetDevice(&device));
    OK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
    OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    EXPECT(cooperative, 1);
    OK(cudaMemset(p, 0, sizeof back));
    void *one[] = { &p };
    OK(cudaLaunchCooperativeKernel((const void *)everyone, dim3(16), dim3(64), one, 0, nullptr));
    OK(cudaMemcpy(back, p, sizeof back, cudaMemcpyDeviceToHost));
    EXPECT(back[0], 1024);
    EXPECT(back[1], 1024);
    EXPECT(back[16], 1024);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, everyone, 1024, 0));
    EXPECT(cudaLaunchCooperativeKernel((const void *)everyone, dim3(blocks * sms + 1), dim3(1024),
                                       one, 0, nullptr),
           cudaErrorCooperativeLaunchTooLarge);
    cudaGetLastError();

    const char *name = nullptr;
    OK(cudaFuncGetName(&name, (const void *)bounded));
    EXPECT(strcmp(name ? name : "", "_Z7boundedPi"), 0);
    cudaKernel_t kernel;
    OK(cudaGetKernel(&kernel, (const void *)bounded));
    int v = 5;
    OK(cudaMemcpy(p, &v, 4, cudaMemcpyHostToDevice));
    OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(128), one, 0, nullptr));
    cudaFunction_t function;
    OK(cudaGetFuncBySymbol(&function, (const void *)bounded));
    OK(cudaDeviceSynchronize());
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult status;
    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &status));
    EXPECT(entry != nullptr && status == cudaDriverEntryPointSuccess, 1);
    CUdeviceptr d = 0;
    EXPECT(((CUresult(*)(CUdeviceptr *, size_t))entry)(&d, 64), CUDA_SUCCESS);
    OK(cudaFree((void *)d));
    OK(cudaGetDriverEntryPointByVersion("cuNoSuchCall", &entry, 12000, cudaEnableDefault, &status));
    EXPECT(status, cudaDriverEntryPointSymbolNotFound);
    int version = 0;
    OK(cudaDriverGetVersion(&version));
    EXPECT(version >= 13000, 1);
    return expect_status();
}

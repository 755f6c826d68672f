// SPDX-License-Identifier: Apache-2.0
// Memory of every kind, copies and sets of every form, variables, pointer attributes.
#include "expect.h"
#include <cstdlib>
#include <cstring>
#include <vector>

__device__ int device_array[64];
__constant__ int constant_array[64];
__managed__ int managed_value = 5;
__managed__ int managed_array[32];

__global__ void read_constant(int *out) { out[threadIdx.x] = constant_array[threadIdx.x] + device_array[threadIdx.x]; }
__global__ void bump(int *p, int n) { if (threadIdx.x < n) p[threadIdx.x] += 1; }
__global__ void bump_managed() { managed_value += 10; managed_array[threadIdx.x] = threadIdx.x * managed_value; }

static void variables()
{
    int h[64], back[64];
    for (int i = 0; i < 64; i++)
        h[i] = i * i;
    EXPECT(managed_value, 5);
    OK(cudaMemcpyToSymbol(constant_array, h, sizeof h));
    OK(cudaMemcpyToSymbol(device_array, h, 32 * 4, 32 * 4));
    int *out;
    OK(cudaMalloc(&out, 64 * 4));
    read_constant<<<1, 64>>>(out);
    OK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++)
        EXPECT(back[i], i * i + (i < 32 ? 0 : (i - 32) * (i - 32)));
    OK(cudaMemcpyFromSymbol(back, constant_array, 16, 8));
    EXPECT(back[3], 25);
    int *address;
    size_t size;
    OK(cudaGetSymbolAddress((void **)&address, device_array));
    OK(cudaGetSymbolSize(&size, device_array));
    EXPECT(size, 256);
    bump<<<1, 64>>>(address, 64);
    OK(cudaMemcpyFromSymbol(back, device_array, sizeof back));
    EXPECT(back[40], 65);
    EXPECT(cudaMemcpyToSymbol(device_array, h, 8, 252), cudaErrorInvalidValue);
    managed_value = 7;
    bump_managed<<<1, 32>>>();
    OK(cudaDeviceSynchronize());
    EXPECT(managed_value >= 17, 1);
    EXPECT(managed_array[3] % 3, 0);
    OK(cudaFree(out));
    cudaGetLastError();
}

static void linear()
{
    std::vector<int> h(1000), back(1000);
    for (int i = 0; i < 1000; i++)
        h[i] = i;
    int *a, *b;
    OK(cudaMalloc(&a, 4000));
    OK(cudaMalloc(&b, 4000));
    OK(cudaMemcpy(a, h.data(), 4000, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(b, a, 4000, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy(back.data(), b, 4000, cudaMemcpyDefault));
    EXPECT(memcmp(h.data(), back.data(), 4000), 0);
    OK(cudaMemcpy(back.data(), h.data() + 1, 400, cudaMemcpyHostToHost));
    EXPECT(back[99], 100);
    OK(cudaMemset(a, 0x11, 4000));
    OK(cudaMemsetAsync(a + 10, 0, 40, 0));
    OK(cudaMemcpy(back.data(), a, 4000, cudaMemcpyDeviceToHost));
    EXPECT(back[9], 0x11111111);
    EXPECT(back[10], 0);
    EXPECT(back[20], 0x11111111);
    size_t free_bytes, total;
    OK(cudaMemGetInfo(&free_bytes, &total));
    EXPECT(free_bytes < total && total > 0, 1);
    OK(cudaFree(a));
    OK(cudaFree(b));
}

static void pitched()
{
    char *p, h[20][30], back[20][30];
    size_t pitch;
    for (int i = 0; i < 600; i++)
        h[0][i] = (char)i;
    OK(cudaMallocPitch(&p, &pitch, 30, 20));
    EXPECT(pitch >= 30 && pitch % 32 == 0, 1);
    OK(cudaMemset2D(p, pitch, 7, 30, 20));
    OK(cudaMemcpy2D(p + 2, pitch, h[1], 30, 25, 10, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(back, 30, p, pitch, 30, 20, cudaMemcpyDeviceToHost));
    EXPECT(back[0][1], 7);
    EXPECT(back[0][2], h[1][0]);
    EXPECT(back[9][26], h[10][24]);
    EXPECT(back[10][5], 7);
    EXPECT(cudaMemcpy2D(p, 10, h, 30, 25, 10, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
    OK(cudaFree(p));
    cudaPitchedPtr box;
    cudaExtent extent = make_cudaExtent(12, 5, 4);
    OK(cudaMalloc3D(&box, extent));
    OK(cudaMemset3D(box, 3, extent));
    std::vector<char> cube(12 * 5 * 4), cube_back(12 * 5 * 4);
    for (size_t i = 0; i < cube.size(); i++)
        cube[i] = (char)(i * 3);
    cudaMemcpy3DParms c = {};
    c.srcPtr = make_cudaPitchedPtr(cube.data(), 12, 12, 5);
    c.dstPtr = box;
    c.extent = make_cudaExtent(12, 5, 3);
    c.dstPos = make_cudaPos(0, 0, 1);
    c.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&c));
    cudaMemcpy3DParms d = {};
    d.srcPtr = box;
    d.dstPtr = make_cudaPitchedPtr(cube_back.data(), 12, 12, 5);
    d.extent = extent;
    d.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&d));
    EXPECT(cube_back[59], 3);
    EXPECT(cube_back[60], cube[0]);
    EXPECT(cube_back[239], cube[179]);
    OK(cudaFree(box.ptr));
    cudaGetLastError();
}

static void host()
{
    int *h, *d, *m;
    unsigned flags;
    OK(cudaHostAlloc(&h, 4096, cudaHostAllocMapped));
    OK(cudaHostGetDevicePointer(&d, h, 0));
    OK(cudaHostGetFlags(&flags, h));
    h[0] = 41;
    bump<<<1, 32>>>(d, 1);
    OK(cudaDeviceSynchronize());
    EXPECT(h[0], 42);
    OK(cudaFreeHost(h));
    OK(cudaMallocHost(&h, 4096));
    OK(cudaFreeHost(h));
    h = (int *)aligned_alloc(4096, 4096);
    h[1] = 1;
    OK(cudaHostRegister(h, 4096, cudaHostRegisterMapped));
    OK(cudaHostGetDevicePointer(&d, h, 0));
    bump<<<1, 32>>>(d, 2);
    OK(cudaDeviceSynchronize());
    EXPECT(h[1], 2);
    OK(cudaHostUnregister(h));
    free(h);
    OK(cudaMallocManaged(&m, 4096));
    m[5] = 9;
    bump<<<1, 32>>>(m, 32);
    OK(cudaDeviceSynchronize());
    EXPECT(m[5], 10);
    cudaMemLocation here = { cudaMemLocationTypeDevice, 0 };
    OK(cudaMemPrefetchAsync(m, 4096, here, 0, 0));
    OK(cudaMemAdvise(m, 4096, cudaMemAdviseSetReadMostly, here));
    cudaPointerAttributes a;
    OK(cudaPointerGetAttributes(&a, m));
    EXPECT(a.type, cudaMemoryTypeManaged);
    OK(cudaFree(m));
    OK(cudaMalloc(&d, 64));
    OK(cudaPointerGetAttributes(&a, d + 1));
    EXPECT(a.type, cudaMemoryTypeDevice);
    EXPECT(a.device, 0);
    EXPECT(a.devicePointer == d + 1, 1);
    OK(cudaPointerGetAttributes(&a, &a));
    EXPECT(a.type, cudaMemoryTypeUnregistered);
    OK(cudaFree(d));
    OK(cudaMallocHost(&h, 64));
    OK(cudaPointerGetAttributes(&a, h));
    EXPECT(a.type, cudaMemoryTypeHost);
    EXPECT(a.hostPointer == h, 1);
    OK(cudaFreeHost(h));
}

static void stream_ordered()
{
    cudaStream_t s;
    int *p, back[32];
    OK(cudaStreamCreate(&s));
    OK(cudaMallocAsync(&p, 128, s));
    OK(cudaMemsetAsync(p, 0, 128, s));
    bump<<<1, 32, 0, s>>>(p, 32);
    OK(cudaMemcpyAsync(back, p, 128, cudaMemcpyDeviceToHost, s));
    OK(cudaFreeAsync(p, s));
    OK(cudaStreamSynchronize(s));
    EXPECT(back[31], 1);
    OK(cudaStreamDestroy(s));
}

int main()
{
    variables();
    linear();
    pitched();
    host();
    stream_ordered();
    return expect_status();
}

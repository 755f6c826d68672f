// SPDX-License-Identifier: Apache-2.0
// Several devices in one program; with one device it says so and has nothing to do.
#include "expect.h"
#include <cstring>
#include <thread>
#include <vector>

__device__ int where;
__global__ void fill(int *p, int v) { p[threadIdx.x] = v + where; }

int main()
{
    int n = 0, h = 0;
    OK(cudaGetDeviceCount(&n));
    int *p[2], back[32];
    EXPECT(n >= 2, 1);
    for (int d = 0; d < 2 && n >= 2; d++) {
        cudaDeviceProp prop;
        OK(cudaGetDeviceProperties(&prop, d));
        EXPECT(prop.warpSize, 32);
        OK(cudaSetDevice(d));
        h = 100 * d;
        OK(cudaMemcpyToSymbol(where, &h, sizeof h)); // each device has its own
        OK(cudaMalloc(&p[d], 128));
        fill<<<1, 32>>>(p[d], d + 1);
        OK(cudaGetLastError());
    }
    for (int d = 0; d < 2; d++) {
        OK(cudaSetDevice(d));
        OK(cudaDeviceSynchronize());
        OK(cudaMemcpy(back, p[d], 128, cudaMemcpyDeviceToHost));
        EXPECT(back[31], d ? 102 : 1);
        cudaPointerAttributes a;
        OK(cudaPointerGetAttributes(&a, p[d]));
        EXPECT(a.device, d);
    }
    int can = -1;
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    OK(cudaDeviceCanAccessPeer(&can, 0, 0));
    EXPECT(can, 0);
    OK(cudaMemcpyPeer(p[0], 0, p[1], 1, 128));
    OK(cudaMemcpy(back, p[0], 128, cudaMemcpyDefault));
    EXPECT(back[0], 102);
    std::thread([&] {
        int d = -1; // a new thread begins on device 0
        OK(cudaGetDevice(&d));
        EXPECT(d, 0);
        OK(cudaSetDevice(1));
    }).join();
    int d = -1;
    OK(cudaGetDevice(&d));
    EXPECT(d, 1);
    cudaStream_t s;
    cudaEvent_t e;
    OK(cudaStreamCreate(&s));
    OK(cudaEventCreate(&e));
    OK(cudaEventRecord(e, s));
    OK(cudaSetDevice(0));
    OK(cudaStreamWaitEvent(0, e, 0));
    OK(cudaDeviceReset()); // ends device 0's context only
    OK(cudaMemcpy(back, p[1], 128, cudaMemcpyDeviceToHost));
    EXPECT(back[3], 102);
    EXPECT(cudaSetDevice(n), cudaErrorInvalidDevice);
    return expect_status();
}

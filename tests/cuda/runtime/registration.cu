// SPDX-License-Identifier: Apache-2.0
// Run over the fake driver: what the runtime asks of it, in which order, and its own checks.
#include <cstdio>
#include <cstring>
#include <thread>

__global__ void first(int *p) { *p = 1; }
static __global__ void second(int *p) { *p = 2; }
template <typename T> __global__ void third(T *p) { *p = 3; }
__device__ int d[10];
__constant__ float c[4];
#ifdef MANAGED
__managed__ int m = 5;
#endif

static void say(const char *what, cudaError_t e)
{
    printf("%s: %d\n", what, (int)e);
}

int main()
{
    say("nothing wrong yet", cudaPeekAtLastError());
    int *p = nullptr, n = 0;
    say("count", cudaGetDeviceCount(&n));
    printf("%d devices\n", n);
    say("malloc", cudaMalloc(&p, 64));
    first<<<1, 32>>>(p);
    second<<<dim3(2, 3, 4), dim3(5, 6, 7), 100>>>(p);
    third<double><<<1, 1>>>((double *)p);
    third<float><<<1, 1, 0, cudaStreamPerThread>>>((float *)p);
    void *args[] = { &p };
    cudaLaunchKernel((const void *)first, dim3(3), dim3(32), args, 8, nullptr);
    say("launches", cudaGetLastError());
    first<<<1, 1025>>>(p);
    say("large block, peek", cudaPeekAtLastError());
    say("large block, get", cudaGetLastError());
    say("large block, again", cudaGetLastError());
    first<<<0, 1>>>(p);
    say("empty grid", cudaGetLastError());
    first<<<dim3(1, 70000), 1>>>(p);
    say("high grid", cudaGetLastError());

    int h[10] = { 1, 2, 3 }, back[10] = { 0 };
    size_t size = 0;
    say("to symbol", cudaMemcpyToSymbol(d, h, sizeof h));
    say("from symbol", cudaMemcpyFromSymbol(back, d, 8, 4));
    printf("%d %d\n", back[0], back[1]);
    say("size", cudaGetSymbolSize(&size, c));
    printf("%zu\n", size);
    say("past the end", cudaMemcpyToSymbol(d, h, 8, 36));
    say("wrong kind", cudaMemcpyToSymbol(d, h, 8, 0, cudaMemcpyDeviceToHost));
    say("no such kind", cudaMemcpy(p, h, 8, (cudaMemcpyKind)7));
    say("no symbol", cudaGetSymbolSize(&size, h));
    say("pitch", cudaMemcpy2D(p, 8, h, 40, 16, 2, cudaMemcpyHostToDevice));
    say("null", cudaMemcpy(nullptr, h, 4, cudaMemcpyHostToDevice));
    say("last", cudaGetLastError());
    std::thread([&] {
        say("other thread's error", cudaPeekAtLastError());
        int device = -1;
        say("set", cudaSetDevice(1));
        say("get", cudaGetDevice(&device));
        printf("%d\n", device);
        say("bad device", cudaSetDevice(2));
    }).join();
    int device = -1;
    cudaGetDevice(&device);
    printf("%d\n", device);
    cudaDeviceProp prop = {};
    say("properties", cudaGetDeviceProperties(&prop, 1));
    printf("%s %zu %d %d\n", prop.name, prop.totalGlobalMem, prop.major, prop.warpSize);
#ifdef MANAGED
    m = 7;
    printf("%d\n", m);
#endif
    say("unsupported", cudaGraphicsUnregisterResource(nullptr));
    say("unsupported", cudaGraphicsUnregisterResource(nullptr));
    say("its error", cudaGetLastError());
    say("reset", cudaDeviceReset());
    first<<<1, 32>>>(p);
    say("after reset", cudaGetLastError());
    say("free", cudaFree(p));
    return 0;
}

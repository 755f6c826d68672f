// SPDX-License-Identifier: Apache-2.0
// The error model: codes, peek and get, sticky errors, reset; each fault in a process of its own.
#include "expect.h"
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

__global__ void store(int *p, int v) { p[threadIdx.x] = v; }
__global__ void __launch_bounds__(64) bounded(int *p) { p[threadIdx.x & 1] = 1; }
__global__ void trap() { asm("trap;"); }
__global__ void fail(int n) { assert(n == 0); }
__global__ void misaligned(char *p) { *(int *)(p + 1) = 1; }
__device__ __noinline__ int deeper(int n, volatile int *p)
{
    int kept[64];
    for (int i = 0; i < 64; i++)
        kept[i] = p[i & 3] + n;
    if (n <= 0)
        return kept[p[0] & 63];
    int r = deeper(n - 1, p);
    return r + kept[(r + p[1]) & 63];
}
__global__ void deep(int n, int *p) { p[4] = deeper(n, p); }
extern __shared__ int dynamic[];
__global__ void shared_user(int *p) { dynamic[threadIdx.x] = 1; *p = dynamic[0]; }

// A fault reaches the next call that waits, stays, and a reset clears it.
static void expect_sticky(int code)
{
    EXPECT(cudaGetLastError(), cudaSuccess);
    EXPECT(cudaDeviceSynchronize(), code);
    int *p;
    EXPECT(cudaMalloc(&p, 4), code);
    EXPECT(cudaDeviceSynchronize(), code);
    EXPECT(cudaPeekAtLastError(), code);
    EXPECT(cudaGetLastError(), code);
    OK(cudaDeviceReset());
    cudaGetLastError();
    OK(cudaMalloc(&p, 64 * 4));
    store<<<1, 64>>>(p, 7);
    int back[64];
    OK(cudaMemcpy(back, p, sizeof back, cudaMemcpyDeviceToHost));
    EXPECT(back[63], 7);
}

static void outside() { store<<<1, 32>>>((int *)16, 1); expect_sticky(cudaErrorIllegalAddress); }
static void trapped() { trap<<<1, 1>>>(); expect_sticky(cudaErrorLaunchFailure); }
static void asserted() { fail<<<1, 1>>>(1); expect_sticky(cudaErrorAssert); }
static void overflown()
{
    int *p;
    OK(cudaMalloc(&p, 64));
    OK(cudaMemset(p, 0, 64));
    deep<<<1, 32>>>(2, p);
    OK(cudaDeviceSynchronize());
    deep<<<1, 32>>>(1000000, p);
    expect_sticky(cudaErrorHardwareStackError);
}
static void unaligned()
{
    char *p;
    OK(cudaMalloc(&p, 64));
    misaligned<<<1, 1>>>(p);
    expect_sticky(cudaErrorMisalignedAddress);
}

static void configuration()
{
    int *p;
    OK(cudaMalloc(&p, 4096 * 4));
    bounded<<<1, 128>>>(p);
    EXPECT(cudaGetLastError(), cudaErrorLaunchOutOfResources);
    store<<<1, 1025>>>(p, 1);
    EXPECT(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError(), cudaSuccess);
    store<<<1, dim3(1, 1, 65)>>>(p, 1);
    EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    store<<<dim3(1, 65536), 1>>>(p, 1);
    EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    store<<<1, 0>>>(p, 1);
    EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    shared_user<<<1, 1, 49153>>>(p);
    EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaFuncSetAttribute(shared_user, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    shared_user<<<1, 1, 65536>>>(p);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
    EXPECT(cudaFuncSetAttribute(shared_user, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20),
           cudaErrorInvalidValue);
    cudaGetLastError();
    store<<<1, 1>>>(p, 5);
    OK(cudaDeviceSynchronize());
    EXPECT(cudaLaunchKernel((const void *)&expect_failed, dim3(1), dim3(1), nullptr, 0, nullptr),
           cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
}

static void arguments()
{
    int *p, *q, h = 0;
    EXPECT(cudaMalloc(&p, (size_t)1 << 60), cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&p, 256));
    OK(cudaMalloc(&q, 0));
    EXPECT(q == nullptr, 1);
    OK(cudaFree(nullptr));
    OK(cudaFree(p));
    EXPECT(cudaFree(p), cudaErrorInvalidValue);
    EXPECT(cudaFree((void *)0x1234), cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(&h, &h, 4, (cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
    EXPECT(cudaSetDevice(99), cudaErrorInvalidDevice);
    EXPECT(cudaDeviceGetAttribute(&h, (cudaDeviceAttr)9999, 0), cudaErrorInvalidValue);
    cudaEvent_t e;
    cudaStream_t s;
    OK(cudaEventCreate(&e));
    OK(cudaEventDestroy(e));
    EXPECT(cudaEventRecord(e, 0), cudaErrorInvalidResourceHandle);
    OK(cudaStreamCreate(&s));
    OK(cudaStreamDestroy(s));
    EXPECT(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
    EXPECT(cudaStreamDestroy(s), cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventDestroy(e), cudaErrorInvalidResourceHandle);
    cudaGetLastError();
    store<<<1, 1, 0, s>>>(p, 1);
    EXPECT(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    cudaGetLastError();
    for (int a = 1; a < 148; a++) {
        int v = -1, error = cudaDeviceGetAttribute(&v, (cudaDeviceAttr)a, 0);
        EXPECT(error == cudaSuccess || error == cudaErrorInvalidValue, 1);
    }
    EXPECT(strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"), 0);
    EXPECT(strcmp(cudaGetErrorString(cudaErrorIllegalAddress),
                  "an illegal memory access was encountered"), 0);
}

static const struct { const char *name; void (*run)(); } parts[] = {
    { "outside", outside }, { "trapped", trapped }, { "asserted", asserted },
    { "unaligned", unaligned }, { "overflown", overflown }, { "configuration", configuration }, { "arguments", arguments },
};

int main(int argc, char **argv)
{
    for (auto &p : parts) {
        if (argc > 1 && strcmp(argv[1], p.name) == 0) {
            p.run();
            return expect_status();
        }
        if (argc > 1)
            continue;
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", argv[0], p.name, (char *)nullptr);
            _exit(99);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status)
            printf("part %s ends with %d\n", p.name, status);
        EXPECT(status, 0);
    }
    return expect_status();
}

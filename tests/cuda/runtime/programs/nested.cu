// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels: order, streams, tails, depth, errors, memory (CUDA Programming Guide, "CUDA Dynamic Parallelism").
#include "expect.h"

#include <algorithm>
#include <vector>

// ---- recursion: a sort whose halves are children ----
__global__ void quicksort(int *v, int n)
{
    if (n < 2)
        return;
    int pivot = v[n / 2], i = 0, j = n - 1;
    while (i <= j) {
        while (v[i] < pivot)
            i++;
        while (v[j] > pivot)
            j--;
        if (i <= j) {
            int t = v[i];
            v[i++] = v[j];
            v[j--] = t;
        }
    }
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    if (j > 0)
        quicksort<<<1, 1>>>(v, j + 1);
    if (n - i > 1)
        quicksort<<<1, 1, 0, s>>>(v + i, n - i);
    cudaStreamDestroy(s);
}

static void sorts()
{
    std::vector<int> v(1000);
    unsigned seed = 7;
    for (int &x : v)
        x = (seed = seed * 1664525 + 1013904223) >> 8;
    int *d;
    OK(cudaMalloc(&d, v.size() * 4));
    OK(cudaMemcpy(d, v.data(), v.size() * 4, cudaMemcpyHostToDevice));
    quicksort<<<1, 1>>>(d, (int)v.size());
    std::vector<int> got(v.size());
    OK(cudaMemcpy(got.data(), d, got.size() * 4, cudaMemcpyDeviceToHost));
    std::sort(v.begin(), v.end());
    EXPECT(got == v, true);
}

// ---- order: a log that children append to ----
__device__ int log_[64], logged;

__global__ void note(int what)
{
    if (threadIdx.x == 0)
        log_[atomicAdd(&logged, 1)] = what;
}

__global__ void noting(int what)
{
    note<<<1, 32>>>(what + 1);
    note<<<1, 32, 0, cudaStreamTailLaunch>>>(what + 2);
    note<<<1, 32, 0, cudaStreamFireAndForget>>>(what + 3);
    log_[atomicAdd(&logged, 1)] = what;
}

__global__ void orders()
{
    noting<<<1, 1, 0, cudaStreamTailLaunch>>>(200);
    noting<<<1, 1>>>(100);
    note<<<1, 32>>>(150);
}

static void ordered()
{
    orders<<<1, 1>>>();
    OK(cudaDeviceSynchronize());
    int n, got[64];
    OK(cudaMemcpyFromSymbol(&n, logged, 4));
    OK(cudaMemcpyFromSymbol(got, log_, sizeof got));
    EXPECT(n, 9);
    // a grid is complete when its children are; what follows it in its stream waits for that
    auto at = [&](int what) { return std::find(got, got + n, what) - got; };
    for (int what : { 100, 101, 102, 103, 150, 200, 201, 202, 203 })
        EXPECT(at(what) < n, true);
    EXPECT(at(101) < at(102) && at(103) < at(102) && at(102) < at(150), true);
    EXPECT(at(150) < at(200) && at(200) < at(202) && at(201) < at(202), true);
}

// ---- depth and errors ----
__device__ int deepest, too_deep;

__global__ void deeper(int depth)
{
    atomicMax(&deepest, depth);
    deeper<<<1, 1>>>(depth + 1);
    if (cudaGetLastError() == cudaErrorLaunchMaxDepthExceeded)
        too_deep = depth;
}

__global__ void small(int) { }

__global__ void wrong(int *out)
{
    small<<<1, 2048>>>(1);
    out[0] = cudaPeekAtLastError();
    out[1] = cudaGetLastError();
    out[2] = cudaGetLastError();
    small<<<0, 1>>>(1);
    out[3] = cudaGetLastError();
    const char *text = cudaGetErrorName(cudaErrorMemoryAllocation);
    out[4] = text[4];
    out[5] = cudaMemsetAsync((void *)16, 0, 4, 0);
    cudaGetLastError();
    cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    out[6] = cudaStreamDestroy(s);
    out[7] = cudaStreamDestroy(s);
    small<<<1, 1, 0, s>>>(1);
    out[8] = cudaGetLastError();
    out[9] = cudaEventRecord((cudaEvent_t)s, 0);
}

__global__ void each(int *out)
{
    if (threadIdx.x % 2)
        small<<<1, 4096>>>(0);
    out[threadIdx.x] = cudaGetLastError();
}

static void errors()
{
    deeper<<<1, 1>>>(0);
    OK(cudaDeviceSynchronize());
    int n;
    OK(cudaMemcpyFromSymbol(&n, deepest, 4));
    EXPECT(n, 24);
    OK(cudaMemcpyFromSymbol(&n, too_deep, 4));
    EXPECT(n, 24);
    int *d, got[64];
    OK(cudaMalloc(&d, sizeof got));
    wrong<<<1, 1>>>(d);
    OK(cudaMemcpy(got, d, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT(got[0], cudaErrorInvalidConfiguration);
    EXPECT(got[1], cudaErrorInvalidConfiguration);
    EXPECT(got[2], cudaSuccess);
    EXPECT(got[3], cudaErrorInvalidConfiguration);
    EXPECT(got[4], 'E');
    EXPECT(got[5], cudaErrorInvalidValue);
    EXPECT(got[6], cudaSuccess);
    EXPECT(got[7], cudaErrorInvalidResourceHandle);
    EXPECT(got[8], cudaErrorInvalidResourceHandle);
    EXPECT(got[9], cudaErrorInvalidResourceHandle);
    each<<<1, 64>>>(d);
    OK(cudaMemcpy(got, d, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++)
        EXPECT(got[i], i % 2 ? cudaErrorInvalidConfiguration : cudaSuccess);
}

// ---- memory, and what can be asked ----
__global__ void add(const int *a, const int *b, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] + b[i];
}

struct large {
    int v[64];
};

__global__ void sum(large x, int *out)
{
    int s = 0;
    for (int v : x.v)
        s += v;
    *out = s;
}

__global__ void moves(int *a, int *b, int *out, int n, int *facts)
{
    cudaEvent_t e;
    cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
    cudaMemsetAsync(a, 1, n * 4, 0);
    cudaMemcpyAsync(b, a, n * 4, cudaMemcpyDeviceToDevice, 0);
    cudaMemset2DAsync(b, 16, 0, 4, n / 4, 0);
    cudaEventRecord(e, 0);
    cudaStreamWaitEvent(0, e, 0);
    cudaEventDestroy(e);
    add<<<(n + 127) / 128, 128>>>(a, b, out, n);
    large x;
    for (int i = 0; i < 64; i++)
        x.v[i] = i;
    sum<<<1, 1>>>(x, facts);
    cudaGetDeviceCount(&facts[1]);
    cudaDeviceGetAttribute(&facts[2], cudaDevAttrWarpSize, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&facts[3], add, 1024, 0);
    void *p = nullptr;
    facts[4] = cudaMalloc(&p, 64);
    facts[5] = p != nullptr;
    facts[6] = cudaFree(p);
    size_t heap = 0;
    cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize);
    facts[7] = (int)(heap >> 20);
}

static void memory()
{
    const int n = 1000;
    int *d, *facts, got[n], f[8];
    OK(cudaMalloc(&d, 3 * n * 4));
    OK(cudaMalloc(&facts, sizeof f));
    moves<<<1, 1>>>(d, d + n, d + 2 * n, n, facts);
    OK(cudaMemcpy(got, d + 2 * n, sizeof got, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(f, facts, sizeof f, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        EXPECT(got[i], i % 4 ? 0x02020202 : 0x01010101);
    int count, blocks;
    size_t heap;
    OK(cudaGetDeviceCount(&count));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 1024, 0));
    OK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    const int want[8] = { 63 * 32, count, 32, blocks, 0, 1, 0, (int)(heap >> 20) };
    for (int i = 0; i < 8; i++)
        EXPECT(f[i], want[i]);
}

// ---- copies and sets that reach where they must not: an error of the thread, and no more ----
__global__ void reaches(char *p, int *out)
{
    __shared__ char shared[64];
    char local[64], *heap = (char *)malloc(64);
    const size_t half = (size_t)1 << 63;
    shared[threadIdx.x] = local[threadIdx.x] = 0;
    out[0] = cudaMemset2DAsync(p, half, 1, 16, 3, 0); // a span of 16 bytes, to 64 bits
    out[1] = cudaMemcpy2DAsync(p, half, p, half, 16, 3, cudaMemcpyDeviceToDevice, 0);
    out[2] = cudaMemset2DAsync(p, half / 2 + 1, 1, 16, 5, 0);
    out[3] = cudaMemset2DAsync(p, 8, 1, 16, 2, 0);
    out[4] = cudaMemsetAsync(shared, 1, sizeof shared, 0);
    out[5] = cudaMemsetAsync(shared, 1, 1 << 20, 0);
    out[6] = cudaMemsetAsync(local, 1, sizeof local, 0);
    out[7] = cudaMemcpyAsync(p, shared, 64, cudaMemcpyDeviceToDevice, 0);
    out[8] = cudaMemcpyAsync(p, nullptr, 64, cudaMemcpyDeviceToDevice, 0);
    out[9] = cudaMemcpyAsync(p, p, ~(size_t)0, cudaMemcpyDeviceToDevice, 0);
    out[10] = cudaGetParameterBuffer(8, ~(size_t)0) != nullptr;
    out[11] = cudaMemsetAsync(heap, 7, 64, 0);
    out[12] = cudaMemcpyAsync(p, heap, 64, cudaMemcpyDeviceToDevice, 0);
    out[13] = cudaMemset2DAsync(p + 64, 32, 9, 16, 2, 0);
    cudaGetLastError();
}

static void out_of_reach()
{
    char *d, got[128];
    int *out, e[14];
    OK(cudaMalloc(&d, sizeof got));
    OK(cudaMalloc(&out, sizeof e));
    OK(cudaMemset(d, 1, sizeof got));
    reaches<<<1, 1>>>(d, out);
    OK(cudaMemcpy(e, out, sizeof e, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(got, d, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 14; i++)
        EXPECT(e[i], i < 10 ? cudaErrorInvalidValue : cudaSuccess);
    for (int i = 0; i < 128; i++)
        EXPECT((int)got[i], i < 64 ? 7 : i / 16 % 2 ? 1 : 9);
}

// ---- many blocks and threads launch; children write where only they write ----
__global__ void leaf(int *out, int at)
{
    out[at] += at;
}

__global__ void many(int *out)
{
    leaf<<<1, 1>>>(out, blockIdx.x * blockDim.x + threadIdx.x);
}

static void crowd()
{
    const int n = 64 * 50;
    int *d;
    std::vector<int> got(n);
    OK(cudaMalloc(&d, n * 4));
    OK(cudaMemset(d, 0, n * 4));
    for (int i = 0; i < 2; i++)
        many<<<50, 64>>>(d);
    OK(cudaMemcpy(got.data(), d, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        EXPECT(got[i], 2 * i);
}

// ---- what may be asked, and which flags there are ----
__global__ void __launch_bounds__(96) asked(int *p)
{
    __shared__ int s[32];
    s[threadIdx.x & 31] = p[0];
    p[1] = s[0];
}

__device__ int answers[12];

__global__ void asks()
{
    cudaStream_t s;
    cudaEvent_t e;
    cudaFuncAttributes a;
    answers[0] = cudaStreamCreateWithFlags(&s, cudaStreamDefault);
    answers[1] = cudaStreamCreateWithFlags(&s, 2);
    answers[2] = cudaEventCreateWithFlags(&e, cudaEventDefault);
    answers[3] = cudaEventCreateWithFlags(&e, cudaEventDisableTiming | cudaEventInterprocess);
    answers[4] = cudaFuncGetAttributes(&a, (const void *)asked);
    answers[5] = a.maxThreadsPerBlock;
    answers[6] = (int)a.sharedSizeBytes;
    answers[7] = cudaFuncGetAttributes(&a, nullptr);
    answers[8] = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    answers[9] = cudaStreamDestroy(s);
}

static void flags()
{
    int got[12];
    asks<<<1, 1>>>();
    OK(cudaMemcpyFromSymbol(got, answers, sizeof got));
    for (int i = 0; i < 4; i++)
        EXPECT(got[i], cudaErrorInvalidValue);
    OK(got[4]);
    EXPECT(got[5], 96);
    EXPECT(got[6], 128);
    EXPECT(got[7], cudaErrorInvalidDeviceFunction);
    OK(got[8]);
    OK(got[9]);
}

// ---- a child's fault is the context's ----
__global__ void bad(int *p)
{
    *p = 1;
}

__global__ void starts_bad()
{
    bad<<<1, 1>>>((int *)64);
}

int main()
{
    sorts();
    ordered();
    errors();
    memory();
    crowd();
    flags();
    out_of_reach();
    starts_bad<<<1, 1>>>();
    EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    return expect_status();
}

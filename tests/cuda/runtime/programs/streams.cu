// SPDX-License-Identifier: Apache-2.0
// Streams, events, host functions, and host threads of their own.
#include "expect.h"
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

__global__ void add(int *p, int n, int v) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += v; }

static std::atomic<int> order, at_function, at_callback, released;

static void CUDART_CB wait_until_released(void *) { while (!released) std::this_thread::yield(); }
static void CUDART_CB note_function(void *data) { at_function = ++order; *(int *)data = 1; }
static void CUDART_CB note_callback(cudaStream_t, cudaError_t e, void *) { at_callback = e ? -1 : ++order; }

static void events()
{
    cudaStream_t s, other;
    cudaEvent_t start, stop, plain;
    int n = 1000, *p, called = 0;
    float ms = -1;
    OK(cudaStreamCreate(&s));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&stop));
    OK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    OK(cudaMalloc(&p, n * 4));
    OK(cudaMemset(p, 0, n * 4));
    OK(cudaEventRecord(start, s));
    OK(cudaLaunchHostFunc(s, wait_until_released, nullptr));
    add<<<4, 256, 0, s>>>(p, n, 1);
    OK(cudaEventRecord(plain, s));
    OK(cudaEventRecord(stop, s));
    EXPECT(cudaStreamQuery(s), cudaErrorNotReady);
    EXPECT(cudaEventQuery(stop), cudaErrorNotReady);
    EXPECT(cudaEventElapsedTime(&ms, start, stop), cudaErrorNotReady);
    OK(cudaStreamWaitEvent(other, plain, 0));
    add<<<4, 256, 0, other>>>(p, n, 2);
    OK(cudaLaunchHostFunc(other, note_function, &called));
    OK(cudaStreamAddCallback(other, note_callback, nullptr, 0));
    EXPECT(cudaStreamQuery(other), cudaErrorNotReady);
    cudaGetLastError();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    released = 1;
    OK(cudaStreamSynchronize(other));
    EXPECT(called, 1);
    EXPECT(at_function, 1);
    EXPECT(at_callback, 2);
    OK(cudaEventSynchronize(stop));
    OK(cudaEventQuery(stop));
    OK(cudaStreamQuery(s));
    OK(cudaEventElapsedTime(&ms, start, stop));
    EXPECT(ms >= 10 && ms < 10000, 1);
    EXPECT(cudaEventElapsedTime(&ms, plain, stop), cudaErrorInvalidResourceHandle);
    std::vector<int> back(n);
    OK(cudaMemcpy(back.data(), p, n * 4, cudaMemcpyDeviceToHost));
    EXPECT(back[999], 3);
    int least, greatest, priority;
    unsigned flags;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    OK(cudaStreamGetFlags(other, &flags));
    EXPECT(flags, cudaStreamNonBlocking);
    OK(cudaStreamGetPriority(s, &priority));
    OK(cudaStreamDestroy(s));
    OK(cudaStreamDestroy(other));
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(stop));
    OK(cudaEventDestroy(plain));
    OK(cudaFree(p));
    cudaGetLastError();
}

static void threads()
{
    enum { THREADS = 8, N = 4096 };
    std::vector<std::thread> all;
    std::atomic<int> bad { 0 };
    for (int t = 0; t < THREADS; t++)
        all.emplace_back([t, &bad] {
            int *p;
            std::vector<int> back(N);
            cudaStream_t s;
            bad += cudaMalloc(&p, N * 4) != cudaSuccess;
            bad += cudaStreamCreate(&s) != cudaSuccess;
            bad += cudaMemsetAsync(p, 0, N * 4, s) != cudaSuccess;
            for (int i = 0; i < 20; i++)
                add<<<N / 256, 256, 0, s>>>(p, N, t);
            bad += cudaGetLastError() != cudaSuccess;
            bad += cudaMemcpyAsync(back.data(), p, N * 4, cudaMemcpyDeviceToHost, s) != cudaSuccess;
            bad += cudaStreamSynchronize(s) != cudaSuccess;
            for (int v : back)
                bad += v != 20 * t;
            add<<<N / 256, 256, 0, cudaStreamPerThread>>>(p, N, 1);
            bad += cudaStreamSynchronize(cudaStreamPerThread) != cudaSuccess;
            bad += cudaMemcpy(back.data(), p, N * 4, cudaMemcpyDeviceToHost) != cudaSuccess;
            bad += back[N - 1] != 20 * t + 1;
            bad += cudaStreamDestroy(s) != cudaSuccess;
            bad += cudaFree(p) != cudaSuccess;
        });
    for (auto &t : all)
        t.join();
    EXPECT(bad.load(), 0);
}

int main()
{
    events();
    threads();
    return expect_status();
}

// SPDX-License-Identifier: Apache-2.0
// Talking from the device: printf in a kernel, and an assertion that fails.
#include "example.h"
#include <cassert>

__global__ void greet()
{
    printf("block %d thread %d: %s %.2f %lld\n", blockIdx.x, threadIdx.x, "hello", 0.5 * threadIdx.x,
           1000000000000LL + threadIdx.x);
}

__global__ void expect_small(int limit)
{
    assert((int)threadIdx.x < limit && "one thread too many");
}

int main()
{
    greet<<<2, 3>>>();
    CHECK_LAUNCH();
    expect_small<<<1, 32>>>(32); // holds
    CHECK_LAUNCH();
    expect_small<<<1, 32>>>(31); // thread 31 fails
    cudaError_t error = cudaDeviceSynchronize();
    std::printf("after the assertion: %s\n", cudaGetErrorString(error));
    // The error is sticky: nothing works until the process ends or the device is reset.
    bool good = error == cudaErrorAssert && cudaDeviceSynchronize() == cudaErrorAssert;
    return verdict("printf_assert", good);
}

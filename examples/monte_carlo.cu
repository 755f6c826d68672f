// SPDX-License-Identifier: Apache-2.0
// Estimating pi with random numbers made on the device by cuRAND's device header.
#include "example.h"
#include <cmath>
#include <curand_kernel.h>

__global__ void throw_darts(unsigned long long seed, int darts, unsigned long long *inside)
{
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, id, 0, &state); // a sequence of its own for each thread
    unsigned hits = 0;
    for (int i = 0; i < darts; i++) {
        float x = curand_uniform(&state), y = curand_uniform(&state);
        hits += x * x + y * y <= 1.0f;
    }
    for (int distance = 16; distance > 0; distance /= 2)
        hits += __shfl_down_sync(0xffffffff, hits, distance);
    if (threadIdx.x % 32 == 0)
        atomicAdd(inside, (unsigned long long)hits);
}

int main()
{
    const int threads = 8192, darts = 100;
    unsigned long long *inside;
    CHECK(cudaMallocManaged(&inside, sizeof *inside));
    *inside = 0;
    throw_darts<<<threads / 128, 128>>>(2026, darts, inside);
    CHECK_LAUNCH();
    double pi = 4.0 * (double)*inside / ((double)threads * darts);
    // 819,200 darts: the standard deviation is about 0.0018.
    std::printf("pi is about %.4f\n", pi);
    CHECK(cudaFree(inside));
    return verdict("monte_carlo", std::fabs(pi - 3.14159265) < 0.01);
}

// SPDX-License-Identifier: Apache-2.0
// Counting bytes with atomics on global memory, and with a private histogram a block in shared memory.
#include "example.h"
#include <vector>

constexpr int BINS = 256;

__global__ void by_global(const unsigned char *data, int n, unsigned *bins)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i]], 1u);
}

__global__ void by_shared(const unsigned char *data, int n, unsigned *bins)
{
    __shared__ unsigned mine[BINS];
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        mine[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[data[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        atomicAdd(&bins[b], mine[b]);
}

int main()
{
    const int n = 1 << 19;
    std::vector<unsigned char> data(n);
    std::vector<unsigned> want(BINS), got(BINS);
    unsigned seed = 11;
    for (unsigned char &v : data)
        want[v = (unsigned char)((next_random(seed) % 256) & (next_random(seed) % 256))]++;

    unsigned char *ddata;
    unsigned *bins;
    CHECK(cudaMalloc(&ddata, n));
    CHECK(cudaMalloc(&bins, BINS * sizeof(unsigned)));
    CHECK(cudaMemcpy(ddata, data.data(), n, cudaMemcpyHostToDevice));

    bool good = true;
    for (int way = 0; way < 2; way++) {
        CHECK(cudaMemset(bins, 0, BINS * sizeof(unsigned)));
        if (way == 0)
            by_global<<<16, 256>>>(ddata, n, bins);
        else
            by_shared<<<16, 256>>>(ddata, n, bins);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(got.data(), bins, BINS * sizeof(unsigned), cudaMemcpyDeviceToHost));
        good &= got == want;
    }
    CHECK(cudaFree(ddata));
    CHECK(cudaFree(bins));
    return verdict("histogram", good);
}

// SPDX-License-Identifier: Apache-2.0
// Summing an array three ways: a tree in shared memory, shuffles inside warps, and cooperative groups
// with one grid-wide synchronisation instead of a second launch.
#include "example.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <vector>

namespace cg = cooperative_groups;
constexpr int BLOCK = 256;

__global__ void by_shared(const int *in, int n, int *partial)
{
    __shared__ int sums[BLOCK];
    int sum = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
        sum += in[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sums[0];
}

__global__ void by_shuffle(const int *in, int n, int *partial)
{
    __shared__ int sums[BLOCK / 32];
    int sum = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
        sum += in[i];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < BLOCK / 32 ? sums[threadIdx.x] : 0;
        for (int distance = 16; distance > 0; distance /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, distance);
        if (threadIdx.x == 0)
            partial[blockIdx.x] = sum;
    }
}

__global__ void by_groups(const int *in, int n, int *partial, int *total)
{
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    __shared__ int block_sum;
    if (block.thread_rank() == 0)
        block_sum = 0;
    block.sync();
    int sum = 0;
    for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size())
        sum += in[i];
    sum = cg::reduce(warp, sum, cg::plus<int>());
    if (warp.thread_rank() == 0)
        atomicAdd(&block_sum, sum);
    block.sync();
    if (block.thread_rank() == 0)
        partial[blockIdx.x] = block_sum;
    grid.sync(); // every partial sum is written
    if (grid.thread_rank() == 0) {
        *total = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            *total += partial[i];
    }
}

int main()
{
    const int n = 1 << 20, blocks = 16;
    std::vector<int> in(n);
    int want = 0;
    unsigned seed = 7;
    for (int &v : in)
        want += v = (int)(next_random(seed) % 100);

    int *din, *partial, *total;
    CHECK(cudaMalloc(&din, n * sizeof(int)));
    CHECK(cudaMalloc(&partial, blocks * sizeof(int)));
    CHECK(cudaMalloc(&total, sizeof(int)));
    CHECK(cudaMemcpy(din, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    bool good = true;
    auto sum_of_partials = [&] {
        std::vector<int> host(blocks);
        CHECK(cudaMemcpy(host.data(), partial, blocks * sizeof(int), cudaMemcpyDeviceToHost));
        int sum = 0;
        for (int v : host)
            sum += v;
        return sum;
    };
    by_shared<<<blocks, BLOCK>>>(din, n, partial);
    CHECK_LAUNCH();
    good &= sum_of_partials() == want;
    by_shuffle<<<blocks, BLOCK>>>(din, n, partial);
    CHECK_LAUNCH();
    good &= sum_of_partials() == want;

    int count = n;
    void *arguments[] = { &din, &count, &partial, &total };
    CHECK(cudaLaunchCooperativeKernel((void *)by_groups, dim3(blocks), dim3(BLOCK), arguments, 0, 0));
    CHECK_LAUNCH();
    int got;
    CHECK(cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost));
    good &= got == want;

    CHECK(cudaFree(din));
    CHECK(cudaFree(partial));
    CHECK(cudaFree(total));
    return verdict("reduction", good);
}

// SPDX-License-Identifier: Apache-2.0
// An inclusive prefix sum in three launches: scan blocks, scan the block sums, add them back.
#include "example.h"
#include <vector>

constexpr int BLOCK = 512;

__device__ int warp_scan(int value)
{
    int lane = threadIdx.x % 32;
    for (int distance = 1; distance < 32; distance *= 2) {
        int left = __shfl_up_sync(0xffffffff, value, distance);
        if (lane >= distance)
            value += left;
    }
    return value;
}

__global__ void scan_blocks(const int *in, int *out, int *sums, int n)
{
    __shared__ int warp_sums[32];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int value = warp_scan(i < n ? in[i] : 0);
    if (lane == 31)
        warp_sums[warp] = value;
    __syncthreads();
    if (warp == 0)
        warp_sums[lane] = warp_scan(lane < BLOCK / 32 ? warp_sums[lane] : 0);
    __syncthreads();
    if (warp > 0)
        value += warp_sums[warp - 1];
    if (i < n)
        out[i] = value;
    if (sums && threadIdx.x == BLOCK - 1)
        sums[blockIdx.x] = value;
}

__global__ void add_sums(int *out, const int *sums, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (blockIdx.x > 0 && i < n)
        out[i] += sums[blockIdx.x - 1];
}

int main()
{
    const int n = 100003, blocks = (n + BLOCK - 1) / BLOCK;
    static_assert(blocks <= BLOCK, "one block scans the sums");
    std::vector<int> in(n), out(n);
    unsigned seed = 3;
    for (int &v : in)
        v = (int)(next_random(seed) % 10) - 4;

    int *din, *dout, *sums;
    CHECK(cudaMalloc(&din, n * sizeof(int)));
    CHECK(cudaMalloc(&dout, n * sizeof(int)));
    CHECK(cudaMalloc(&sums, blocks * sizeof(int)));
    CHECK(cudaMemcpy(din, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    scan_blocks<<<blocks, BLOCK>>>(din, dout, sums, n);
    scan_blocks<<<1, BLOCK>>>(sums, sums, nullptr, blocks);
    add_sums<<<blocks, BLOCK>>>(dout, sums, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), dout, n * sizeof(int), cudaMemcpyDeviceToHost));

    bool good = true;
    for (int i = 0, sum = 0; i < n; i++)
        good &= out[i] == (sum += in[i]);
    CHECK(cudaFree(din));
    CHECK(cudaFree(dout));
    CHECK(cudaFree(sums));
    return verdict("scan", good);
}

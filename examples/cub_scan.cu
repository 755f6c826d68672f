// SPDX-License-Identifier: Apache-2.0
// CUB's device-wide scan: one pass, in which each block looks back at its predecessors' results.
#include "example.h"
#include <cub/cub.cuh>
#include <vector>

int main()
{
    const int n = 300000;
    std::vector<int> in(n), out(n);
    unsigned seed = 31;
    for (int &v : in)
        v = (int)(next_random(seed) % 7);

    int *din, *dout;
    CHECK(cudaMalloc(&din, n * sizeof(int)));
    CHECK(cudaMalloc(&dout, n * sizeof(int)));
    CHECK(cudaMemcpy(din, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    void *scratch = nullptr;
    size_t bytes = 0;
    CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, din, dout, n)); // asks for the size
    CHECK(cudaMalloc(&scratch, bytes));
    CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, din, dout, n));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(out.data(), dout, n * sizeof(int), cudaMemcpyDeviceToHost));

    bool good = true;
    for (int i = 0, sum = 0; i < n; sum += in[i++])
        good &= out[i] == sum;
    CHECK(cudaFree(din));
    CHECK(cudaFree(dout));
    CHECK(cudaFree(scratch));
    return verdict("cub_scan", good);
}

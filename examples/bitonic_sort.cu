// SPDX-License-Identifier: Apache-2.0
// A sorting network: the same comparisons for any input, so no thread ever waits for data.
#include "example.h"
#include <algorithm>
#include <vector>

__global__ void merge_step(unsigned *key, unsigned distance, unsigned size)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned partner = i ^ distance;
    if (partner <= i)
        return;
    bool ascending = (i & size) == 0;
    unsigned a = key[i], b = key[partner];
    if ((a > b) == ascending) {
        key[i] = b;
        key[partner] = a;
    }
}

int main()
{
    const unsigned n = 1 << 14;
    std::vector<unsigned> key(n);
    unsigned seed = 23;
    for (unsigned &k : key)
        k = next_random(seed);
    std::vector<unsigned> want(key);
    std::sort(want.begin(), want.end());

    unsigned *dkey;
    CHECK(cudaMalloc(&dkey, n * sizeof(unsigned)));
    CHECK(cudaMemcpy(dkey, key.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
    for (unsigned size = 2; size <= n; size *= 2)
        for (unsigned distance = size / 2; distance > 0; distance /= 2)
            merge_step<<<n / 256, 256>>>(dkey, distance, size);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(key.data(), dkey, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(dkey));
    return verdict("bitonic_sort", key == want);
}

// SPDX-License-Identifier: Apache-2.0
// Thrust: sort, transform and reduce without writing a kernel.
#include "example.h"
#include <algorithm>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>

struct square {
    __host__ __device__ long long operator()(int x) const { return (long long)x * x; }
};

int main()
{
    const int n = 20000;
    thrust::host_vector<int> host(n);
    unsigned seed = 99;
    for (int &v : host)
        v = (int)next_random(seed) - (1 << 23);

    thrust::device_vector<int> device = host;
    thrust::sort(device.begin(), device.end());
    long long sum = thrust::transform_reduce(device.begin(), device.end(), square(), 0LL,
                                             thrust::plus<long long>());
    thrust::host_vector<int> sorted = device;

    long long want = 0;
    for (int v : host)
        want += (long long)v * v;
    std::sort(host.begin(), host.end());
    return verdict("thrust_sort", sum == want && std::equal(host.begin(), host.end(), sorted.begin()));
}

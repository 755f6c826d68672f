// SPDX-License-Identifier: Apache-2.0
// Thrust and CUB: sort, scan, reduce, select; names of a thousand characters.
#include <cub/cub.cuh>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

struct Even {
    __device__ bool operator()(int x) const { return x % 2 == 0; }
};

int main()
{
    thrust::device_vector<int> a(100), c(100);
    thrust::device_vector<double> b(100);
    thrust::sort(a.begin(), a.end());
    thrust::sort_by_key(a.begin(), a.end(), b.begin());
    thrust::inclusive_scan(a.begin(), a.end(), a.begin());
    thrust::copy_if(a.begin(), a.end(), c.begin(), Even());
    size_t bytes = 0;
    cub::DeviceHistogram::HistogramEven(nullptr, bytes, (float *)nullptr, (int *)nullptr, 10, 0.f, 1.f, 10);
    return (int)thrust::reduce(b.begin(), b.end());
}

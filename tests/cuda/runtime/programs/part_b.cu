// SPDX-License-Identifier: Apache-2.0
// The other unit of part_a.cu.
#include <cuda_runtime.h>

#ifdef RDC
__device__ int shared_counter;
__device__ int twice(int x) { return 2 * x; }
#endif

static __global__ void same_name(int *p) { *p = 1000; }

int run_b(int *p)
{
    same_name<<<1, 1>>>(p);
    return cudaGetLastError();
}

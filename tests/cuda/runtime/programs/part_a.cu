// SPDX-License-Identifier: Apache-2.0
// Several translation units; with -rdc=true (RDC defined) device code calls across them.
#include "expect.h"

int run_b(int *p);
#ifdef RDC
extern __device__ int twice(int);
extern __device__ int shared_counter;
#else
static __device__ int twice(int x) { return 2 * x; }
static __device__ int shared_counter;
#endif

static __global__ void same_name(int *p) { *p = twice(21) + shared_counter++; }

int main()
{
    int *p, back = 0;
    OK(cudaMalloc(&p, 4));
    same_name<<<1, 1>>>(p);
    OK(cudaMemcpy(&back, p, 4, cudaMemcpyDeviceToHost));
    EXPECT(back, 42);
    OK(run_b(p));
    OK(cudaMemcpy(&back, p, 4, cudaMemcpyDeviceToHost));
    EXPECT(back, 1000);
    same_name<<<1, 1>>>(p);
    OK(cudaMemcpy(&back, p, 4, cudaMemcpyDeviceToHost));
    EXPECT(back, 43);
    OK(cudaFree(p));
    return expect_status();
}

// SPDX-License-Identifier: Apache-2.0
// One of two units that are linked: linked_b.cu defines what is extern here.
extern __device__ int twice(int x);
extern __constant__ int table[8];
extern __device__ float sums[16];
typedef int (*Function)(int);
extern __device__ Function chosen;
static __device__ int own = 1;
template <typename T> __device__ __noinline__ T both(T x) { return x + T(1); }

__global__ void first(int *out)
{
    out[threadIdx.x] = twice(table[threadIdx.x & 7]) + chosen(own) + both(3) + (int)sums[2];
}

// SPDX-License-Identifier: Apache-2.0
// The other unit of linked_a.cu, with a static variable of the same name and the same template.
static __device__ int own = 2;
template <typename T> __device__ __noinline__ T both(T x) { return x + T(1); }
__device__ __noinline__ int twice(int x)
{
    __shared__ int pad[32];
    pad[threadIdx.x & 31] = x;
    __syncthreads();
    return pad[(x + 1) & 31] * 2 + own;
}
__constant__ int table[8] = {1, 2, 3};
__device__ float sums[16];
typedef int (*Function)(int);
__device__ Function chosen = twice;

__global__ void second(int *out) { out[0] = both(out[1]) + twice(4); }

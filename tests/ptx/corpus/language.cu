// SPDX-License-Identifier: Apache-2.0
// What the language has that shapes PTX: virtual functions, recursion, tables of functions, managed
// and constant variables, static and dynamic shared memory, cooperative groups, printf, assert, switch.
#include <cassert>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>

namespace cg = cooperative_groups;

struct Shape {
    virtual __device__ int area(int x) const { return x + 1; }
    virtual __device__ ~Shape() {}
};
struct Square : Shape {
    __device__ int area(int x) const override { return x * x; }
};

__managed__ int factor = 5;
__constant__ float offsets[4] = {1, 2, 3, 4};
struct Mixed {
    char tag;
    double value;
    const float *from;
    short list[3];
};
__device__ Mixed mixed = {'m', 2.5, nullptr, {1, 2, 3}};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int shifted(int x) { return x + (int)offsets[x & 3]; }
__device__ int scaled(int x) { return x * factor; }
typedef int (*Function)(int);
__device__ Function table[2] = {shifted, scaled};

__device__ int choose(int n, int v)
{
    switch (n) {
    case 0: return v + 5;
    case 1: return v * 6;
    case 2: return v ^ 9;
    case 3: return v - 2;
    case 4: return v | 8;
    case 6: return v & 7;
    default: return v;
    }
}

__global__ void __launch_bounds__(128, 2) everything(int *out, int n, Mixed m)
{
    __shared__ int tile[33];
    __shared__ char odd[5];
    extern __shared__ double dynamic[];
    auto grid = cg::this_grid();
    auto block = cg::this_thread_block();
    auto part = cg::tiled_partition<16>(block);
    Shape *s = n & 1 ? new Shape : new Square;
    int v = s->area(n) + m.list[n & 1];
    tile[threadIdx.x & 31] = v;
    odd[n & 3] = m.tag;
    dynamic[threadIdx.x] = m.value * mixed.value;
    block.sync();
    v = cg::reduce(part, v + tile[n & 31] + odd[1], cg::plus<int>());
    printf("%d %f\n", v, dynamic[0]);
    assert(v);
    grid.sync();
    out[threadIdx.x] = choose(n, v) + fibonacci(n) + table[n & 1](v) + tile[3];
    delete s;
}

template <typename T, int N> __global__ void buffers(T *out)
{
    __shared__ T here[N];
    T local[N];
    for (int i = 0; i < N; i++)
        local[i] = out[i];
    here[threadIdx.x] = local[out[0] == T(3) ? threadIdx.x % N : 0];
    __syncthreads();
    out[threadIdx.x] = here[N - 1 - threadIdx.x];
}
template __global__ void buffers<double, 20>(double *);
template __global__ void buffers<short, 7>(short *);
template __global__ void buffers<float4 *, 3>(float4 **);

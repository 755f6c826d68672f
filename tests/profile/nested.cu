// SPDX-License-Identifier: Apache-2.0
// Launches from kernels, three generations: 2 blocks start 3 grids each, these one of theirs each, and a tail.
__global__ void leaf(int *p)
{
    atomicAdd(p, 1);
}

__global__ void branch(int *p)
{
    if (threadIdx.x == 0)
        leaf<<<2, 32>>>(p);
}

__global__ void root(int *p)
{
    if (threadIdx.x < 3)
        branch<<<1, 64>>>(p);
    if (threadIdx.x == 0)
        leaf<<<2, 32, 0, cudaStreamTailLaunch>>>(p);
}

int main()
{
    int *p, n = 0;
    cudaStream_t s;
    if (cudaMalloc(&p, sizeof n) || cudaMemset(p, 0, sizeof n) || cudaStreamCreate(&s))
        return 1;
    root<<<2, 32, 0, s>>>(p);
    return cudaStreamSynchronize(s) || cudaMemcpy(&n, p, sizeof n, cudaMemcpyDefault) || n != 8 * 64;
}

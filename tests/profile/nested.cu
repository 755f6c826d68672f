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

// Parameter buffers are global memory, and begin right behind the shared memory of the clusters here.
__global__ void __cluster_dims__(4, 1, 1) clustered(int *p)
{
    long long *b = (long long *)cudaGetParameterBuffer(8, 8);
    *b = 1;
    if (__isShared(b) || !__isGlobal(b))
        atomicAdd(p, 1);
}

// Four trees at once, and other launches of the host beside them.
static int at_once(int *p)
{
    cudaStream_t s[5];
    int n = 0;
    for (int i = 0; i < 5; i++)
        if (cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking))
            return 1;
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 4; i++)
            root<<<2, 32, 0, s[i]>>>(p);
        leaf<<<1, 32, 0, s[4]>>>(p);
    }
    return cudaDeviceSynchronize() || cudaMemcpy(&n, p, sizeof n, cudaMemcpyDefault) || n != 3 * (4 * 8 * 64 + 32);
}

int main(int argc, char **)
{
    int *p, n = 0;
    cudaStream_t s;
    if (cudaMalloc(&p, sizeof n) || cudaMemset(p, 0, sizeof n) || cudaStreamCreate(&s))
        return 1;
    if (argc > 1)
        return at_once(p);
    root<<<2, 32, 0, s>>>(p);
    if (cudaStreamSynchronize(s))
        return 1;
    clustered<<<8, 1>>>(p);
    return cudaDeviceSynchronize() || cudaMemcpy(&n, p, sizeof n, cudaMemcpyDefault) || n != 8 * 64;
}

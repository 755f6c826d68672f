// SPDX-License-Identifier: Apache-2.0
// Summing an array in five steps, each better than the one before: the ladder that is taught with shared
// memory. All give the same sum; `halfwarp profile` shows what each step removes (docs/profile.md).
#include "example.h"
#include <vector>

constexpr int BLOCK = 256;

// Threads at multiples of 2, 4, 8 ... add: lanes of every warp part.
__global__ void interleaved(const int *in, int *out)
{
    __shared__ int sums[BLOCK];
    unsigned t = threadIdx.x;
    sums[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned s = 1; s < blockDim.x; s *= 2) {
        if (t % (2 * s) == 0)
            sums[t] += sums[t + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = sums[0];
}

// The first threads add, at strides of 2, 4, 8 ... words: whole warps decide alike, but meet in banks.
__global__ void strided(const int *in, int *out)
{
    __shared__ int sums[BLOCK];
    unsigned t = threadIdx.x;
    sums[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned s = 1; s < blockDim.x; s *= 2) {
        unsigned i = 2 * s * t;
        if (i < blockDim.x)
            sums[i] += sums[i + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = sums[0];
}

// Neighbouring threads add neighbouring words: no conflicts.
__global__ void sequential(const int *in, int *out)
{
    __shared__ int sums[BLOCK];
    unsigned t = threadIdx.x;
    sums[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s)
            sums[t] += sums[t + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = sums[0];
}

// Two words a thread at the load: half the blocks, none of whose threads idle in the first step.
__global__ void first_add(const int *in, int *out)
{
    __shared__ int sums[BLOCK];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
    sums[t] = in[i] + in[i + blockDim.x];
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s)
            sums[t] += sums[t + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = sums[0];
}

// The last warp needs no shared memory and no barriers: shuffles.
__global__ void last_warp(const int *in, int *out)
{
    __shared__ int sums[BLOCK];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + t;
    int sum = in[i] + in[i + blockDim.x];
    sums[t] = sum;
    __syncthreads();
    for (unsigned s = blockDim.x / 2; s >= 32; s /= 2) {
        if (t < s)
            sums[t] = sum = sum + sums[t + s];
        __syncthreads();
    }
    if (t < 32)
        for (int distance = 16; distance > 0; distance /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (t == 0)
        out[blockIdx.x] = sum;
}

int main()
{
    const int n = 1 << 16;
    std::vector<int> in(n), partial(n / BLOCK);
    long want = 0;
    for (int i = 0; i < n; i++)
        want += in[i] = i % 1000 - 300;

    int *din, *dout;
    CHECK(cudaMalloc(&din, n * sizeof(int)));
    CHECK(cudaMalloc(&dout, partial.size() * sizeof(int)));
    CHECK(cudaMemcpy(din, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    typedef void step(const int *, int *);
    static const struct {
        const char *name;
        step *kernel;
        int words; // a thread
    } ladder[] = { { "interleaved", interleaved, 1 }, { "strided", strided, 1 }, { "sequential", sequential, 1 },
                   { "first add", first_add, 2 },     { "last warp", last_warp, 2 } };
    bool good = true;
    for (const auto &l : ladder) {
        const int blocks = n / BLOCK / l.words;
        l.kernel<<<blocks, BLOCK>>>(din, dout);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(partial.data(), dout, blocks * sizeof(int), cudaMemcpyDeviceToHost));
        long sum = 0;
        for (int i = 0; i < blocks; i++)
            sum += partial[i];
        std::printf("%-12s %ld\n", l.name, sum);
        good &= sum == want;
    }
    CHECK(cudaFree(din));
    CHECK(cudaFree(dout));
    return verdict("reduction_ladder", good);
}

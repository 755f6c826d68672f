// SPDX-License-Identifier: Apache-2.0
// Transposing a matrix three ways. The naive kernel writes columns, so its stores touch 32 sectors a
// warp; the tiled one goes through shared memory but its column reads all hit one bank; one float of
// padding a row puts them in 32 different banks. All three give the same matrix: only a device model
// (or a real device) shows the difference.
#include "example.h"
#include <vector>

constexpr int TILE = 32, ROWS = 8;

__global__ void naive(const float *in, float *out, int width, int height)
{
    int x = blockIdx.x * TILE + threadIdx.x;
    for (int y = blockIdx.y * TILE + threadIdx.y; y < (blockIdx.y + 1) * TILE; y += ROWS)
        if (x < width && y < height)
            out[x * height + y] = in[y * width + x];
}

template <int PAD> __global__ void tiled(const float *in, float *out, int width, int height)
{
    __shared__ float tile[TILE][TILE + PAD];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < width && y + j < height)
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x; // the block's place in the transposed matrix
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < height && y + j < width)
            out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main()
{
    const int width = 500, height = 300;
    std::vector<float> in(width * height), out(width * height);
    for (int i = 0; i < width * height; i++)
        in[i] = (float)i;

    float *din, *dout;
    const size_t bytes = in.size() * sizeof(float);
    CHECK(cudaMalloc(&din, bytes));
    CHECK(cudaMalloc(&dout, bytes));
    CHECK(cudaMemcpy(din, in.data(), bytes, cudaMemcpyHostToDevice));

    dim3 block(TILE, ROWS), grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
    const char *const names[] = { "naive", "tiled", "tiled, padded" };
    bool good = true;
    for (int way = 0; way < 3; way++) {
        CHECK(cudaMemset(dout, 0, bytes));
        if (way == 0)
            naive<<<grid, block>>>(din, dout, width, height);
        else if (way == 1)
            tiled<0><<<grid, block>>>(din, dout, width, height);
        else
            tiled<1><<<grid, block>>>(din, dout, width, height);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(out.data(), dout, bytes, cudaMemcpyDeviceToHost));
        int wrong = 0;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                wrong += out[x * height + y] != in[y * width + x];
        std::printf("%-14s %d of %d elements in place\n", names[way], width * height - wrong,
                    width * height);
        good &= wrong == 0;
    }
    CHECK(cudaFree(din));
    CHECK(cudaFree(dout));
    return verdict("transpose", good);
}

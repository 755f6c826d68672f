// SPDX-License-Identifier: Apache-2.0
// Matrix product twice: every thread reads rows and columns from memory, then blocks share tiles.
#include "example.h"
#include <cmath>
#include <vector>

constexpr int TILE = 16;

__global__ void naive(const float *a, const float *b, float *c, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || col >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

// Each tile of a and b is read from memory once a block instead of once a thread.
__global__ void tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y;
    int col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < n; start += TILE) {
        int ka = start + threadIdx.x, kb = start + threadIdx.y;
        ta[threadIdx.y][threadIdx.x] = row < n && ka < n ? a[row * n + ka] : 0;
        tb[threadIdx.y][threadIdx.x] = kb < n && col < n ? b[kb * n + col] : 0;
        __syncthreads(); // the tiles are complete
        for (int k = 0; k < TILE; k++)
            sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
        __syncthreads(); // nobody reads them any more
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}

static bool close_to(const std::vector<float> &got, const std::vector<double> &want)
{
    for (size_t i = 0; i < got.size(); i++)
        if (std::fabs(got[i] - want[i]) > 1e-4 * (1 + std::fabs(want[i])))
            return false;
    return true;
}

int main()
{
    const int n = 150; // not a multiple of the tile
    std::vector<float> a(n * n), b(n * n), c(n * n);
    std::vector<double> want(n * n);
    unsigned seed = 1;
    for (float &v : a)
        v = next_random(seed) / 16777216.0f - 0.5f;
    for (float &v : b)
        v = next_random(seed) / 16777216.0f - 0.5f;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                want[i * n + j] += (double)a[i * n + k] * b[k * n + j];

    float *da, *db, *dc;
    const size_t bytes = n * n * sizeof(float);
    CHECK(cudaMalloc(&da, bytes));
    CHECK(cudaMalloc(&db, bytes));
    CHECK(cudaMalloc(&dc, bytes));
    CHECK(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));

    dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    naive<<<grid, block>>>(da, db, dc, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
    bool good = close_to(c, want);

    CHECK(cudaMemset(dc, 0, bytes));
    tiled<<<grid, block>>>(da, db, dc, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
    good &= close_to(c, want);

    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dc));
    return verdict("matmul", good);
}

// SPDX-License-Identifier: Apache-2.0
// Heat spreading on a plate: a five-point stencil with a halo in shared memory, coefficients in
// constant memory, two buffers swapped every step.
#include "example.h"
#include <cmath>
#include <utility>
#include <vector>

constexpr int W = 32, H = 8;
__constant__ float coefficient[2]; // of the centre, of each neighbour

__global__ void step(const float *in, float *out, int n)
{
    __shared__ float tile[H + 2][W + 2];
    int x = blockIdx.x * W + threadIdx.x, y = blockIdx.y * H + threadIdx.y;
    auto at = [&](int px, int py) { // outside the plate it is cold
        return px >= 0 && px < n && py >= 0 && py < n ? in[py * n + px] : 0.0f;
    };
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    tile[ty][tx] = at(x, y);
    if (tx == 1)
        tile[ty][0] = at(x - 1, y);
    if (tx == W)
        tile[ty][W + 1] = at(x + 1, y);
    if (ty == 1)
        tile[0][tx] = at(x, y - 1);
    if (ty == H)
        tile[H + 1][tx] = at(x, y + 1);
    __syncthreads();
    if (x < n && y < n)
        out[y * n + x] = coefficient[0] * tile[ty][tx] +
                         coefficient[1] * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] +
                                           tile[ty + 1][tx]);
}

int main()
{
    const int n = 100, steps = 20;
    const float c[2] = { 0.5f, 0.125f };
    std::vector<float> plate(n * n, 0.0f);
    std::vector<double> now(n * n, 0.0), next(n * n);
    for (int i = 40; i < 60; i++)
        plate[50 * n + i] = (float)(now[50 * n + i] = 100.0);

    float *a, *b;
    CHECK(cudaMalloc(&a, plate.size() * sizeof(float)));
    CHECK(cudaMalloc(&b, plate.size() * sizeof(float)));
    CHECK(cudaMemcpyToSymbol(coefficient, c, sizeof c));
    CHECK(cudaMemcpy(a, plate.data(), plate.size() * sizeof(float), cudaMemcpyHostToDevice));
    dim3 block(W, H), grid((n + W - 1) / W, (n + H - 1) / H);
    for (int s = 0; s < steps; s++) {
        step<<<grid, block>>>(a, b, n);
        std::swap(a, b);
    }
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(plate.data(), a, plate.size() * sizeof(float), cudaMemcpyDeviceToHost));

    for (int s = 0; s < steps; s++) {
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++)
                next[y * n + x] = c[0] * now[y * n + x] +
                                  c[1] * ((x ? now[y * n + x - 1] : 0) + (x < n - 1 ? now[y * n + x + 1] : 0) +
                                          (y ? now[(y - 1) * n + x] : 0) + (y < n - 1 ? now[(y + 1) * n + x] : 0));
        std::swap(now, next);
    }
    bool good = true;
    for (int i = 0; i < n * n; i++)
        good &= std::fabs(plate[i] - now[i]) < 1e-4;
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return verdict("stencil", good);
}

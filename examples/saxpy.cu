// SPDX-License-Identifier: Apache-2.0
// y = a*x + y with a grid-stride loop: any grid does any length.
#include "example.h"
#include <cmath>
#include <vector>

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

int main()
{
    const int n = 1 << 18;
    std::vector<float> x(n), y(n), result(n);
    for (int i = 0; i < n; i++) {
        x[i] = 0.001f * i;
        y[i] = 1.0f / (1 + i);
    }

    float *dx, *dy;
    CHECK(cudaMalloc(&dx, n * sizeof(float)));
    CHECK(cudaMalloc(&dy, n * sizeof(float)));
    CHECK(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    saxpy<<<32, 256>>>(n, 2.5f, dx, dy);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(result.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost));

    // The compiler fuses the multiplication and the addition, so the right value is that of fmaf.
    bool good = true;
    for (int i = 0; i < n; i++)
        good &= result[i] == std::fmaf(2.5f, x[i], y[i]);
    CHECK(cudaFree(dx));
    CHECK(cudaFree(dy));
    return verdict("saxpy", good);
}

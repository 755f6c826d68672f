// SPDX-License-Identifier: Apache-2.0
// All pairs of bodies attract each other; a block reads the others in tiles through shared memory.
#include "example.h"
#include <cmath>
#include <vector>

constexpr int BLOCK = 128;
constexpr float SOFTENING = 0.01f;

__global__ void accelerate(const float4 *body, float3 *acceleration, int n)
{
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 me = i < n ? body[i] : make_float4(0, 0, 0, 0);
    float3 a = make_float3(0, 0, 0);
    for (int start = 0; start < n; start += BLOCK) {
        int j = start + threadIdx.x;
        tile[threadIdx.x] = j < n ? body[j] : make_float4(0, 0, 0, 0); // no mass, no force
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < BLOCK; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
            float pull = tile[k].w * inverse * inverse * inverse;
            a.x += dx * pull;
            a.y += dy * pull;
            a.z += dz * pull;
        }
        __syncthreads();
    }
    if (i < n)
        acceleration[i] = a;
}

int main()
{
    const int n = 700;
    std::vector<float4> body(n);
    std::vector<float3> got(n);
    unsigned seed = 5;
    auto coordinate = [&] { return next_random(seed) / 8388608.0f - 1.0f; };
    for (float4 &b : body)
        b = make_float4(coordinate(), coordinate(), coordinate(), 0.5f + 0.5f * coordinate());

    float4 *dbody;
    float3 *dacc;
    CHECK(cudaMalloc(&dbody, n * sizeof(float4)));
    CHECK(cudaMalloc(&dacc, n * sizeof(float3)));
    CHECK(cudaMemcpy(dbody, body.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
    accelerate<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(dbody, dacc, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got.data(), dacc, n * sizeof(float3), cudaMemcpyDeviceToHost));

    bool good = true;
    for (int i = 0; i < n; i++) {
        double x = 0, y = 0, z = 0, size = 0;
        for (int j = 0; j < n; j++) {
            double dx = (double)body[j].x - body[i].x, dy = (double)body[j].y - body[i].y,
                   dz = (double)body[j].z - body[i].z;
            double r2 = dx * dx + dy * dy + dz * dz + SOFTENING;
            double pull = body[j].w / (r2 * std::sqrt(r2));
            x += dx * pull;
            y += dy * pull;
            z += dz * pull;
            size += pull * std::sqrt(r2);
        }
        good &= std::fabs(got[i].x - x) + std::fabs(got[i].y - y) + std::fabs(got[i].z - z) <
                1e-5 * size;
    }
    CHECK(cudaFree(dbody));
    CHECK(cudaFree(dacc));
    return verdict("nbody", good);
}

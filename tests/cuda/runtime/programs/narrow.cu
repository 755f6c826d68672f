// SPDX-License-Identifier: Apache-2.0
// Floats of 8, 6 and 4 bits and scales: on the device by PTX's conversions, on the host by the toolkit's own arithmetic.
#include "expect.h"

#include <cstdint>
#include <cstring>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <vector>

enum { KINDS = 20 };

struct sample {
    float a, b;
    uint32_t bits;
};

__host__ __device__ static uint32_t of(__half2_raw h)
{
    return h.x | (uint32_t)h.y << 16;
}

__host__ __device__ static uint32_t of(__nv_bfloat162_raw h)
{
    return h.x | (uint32_t)h.y << 16;
}

__host__ __device__ static void convert(const sample &s, uint32_t *out)
{
    float2 v = make_float2(s.a, s.b);
    __half2_raw h;
    h.x = (unsigned short)s.bits, h.y = (unsigned short)(s.bits >> 16);
    __nv_bfloat162_raw bf;
    bf.x = h.x, bf.y = h.y;
    __nv_fp8x2_storage_t pair = (__nv_fp8x2_storage_t)s.bits;
    uint32_t k = 0;
    out[k++] = __nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, __NV_E4M3);
    out[k++] = __nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, __NV_E5M2);
    out[k++] = __nv_cvt_halfraw2_to_fp8x2(h, __NV_SATFINITE, __NV_E4M3);
    out[k++] = __nv_cvt_halfraw2_to_fp8x2(h, __NV_SATFINITE, __NV_E5M2);
    out[k++] = of(__nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3));
    out[k++] = of(__nv_cvt_fp8x2_to_halfraw2(pair, __NV_E5M2));
    out[k++] = __nv_cvt_float2_to_fp6x2(v, __NV_E2M3, cudaRoundNearest);
    out[k++] = __nv_cvt_float2_to_fp6x2(v, __NV_E3M2, cudaRoundNearest);
    out[k++] = of(__nv_cvt_fp6x2_to_halfraw2(pair & 0x3f3f, __NV_E2M3));
    out[k++] = of(__nv_cvt_fp6x2_to_halfraw2(pair & 0x3f3f, __NV_E3M2));
    out[k++] = __nv_cvt_float2_to_fp4x2(v, __NV_E2M1, cudaRoundNearest);
    out[k++] = of(__nv_cvt_fp4x2_to_halfraw2((__nv_fp4x2_storage_t)pair, __NV_E2M1));
    out[k++] = __nv_cvt_float2_to_e8m0x2(v, __NV_NOSAT, cudaRoundZero);
    out[k++] = __nv_cvt_float2_to_e8m0x2(v, __NV_SATFINITE, cudaRoundZero);
    out[k++] = __nv_cvt_float2_to_e8m0x2(v, __NV_NOSAT, cudaRoundPosInf);
    out[k++] = __nv_cvt_float2_to_e8m0x2(v, __NV_SATFINITE, cudaRoundPosInf);
    out[k++] = __nv_cvt_bfloat162raw_to_e8m0x2(bf, __NV_SATFINITE, cudaRoundZero);
    out[k++] = __nv_cvt_bfloat162raw_to_e8m0x2(bf, __NV_NOSAT, cudaRoundPosInf);
    out[k++] = of(__nv_cvt_e8m0x2_to_bf162raw(pair));
    out[k++] = 0;
}

__global__ void kernel(const sample *in, uint32_t *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        convert(in[i], out + (size_t)i * KINDS);
}

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

int main()
{
    const int n = 1 << 17;
    std::vector<sample> in(n);
    uint64_t seed = 1;
    for (int i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t r = (uint32_t)(seed >> 32);
        // half of them near the formats' range, ties among them; all 16-bit patterns
        float small = (float)((int)(r & 0xfff) - 2048) * from_bits((uint32_t)(127 - 14 + (r >> 12) % 18) << 23);
        in[i] = { i & 1 ? from_bits(r) : small, i & 2 ? from_bits(r * 2654435761u) : small * 1.5f,
                  (uint32_t)(i & 0xffff) | r << 16 };
    }
    sample *din;
    uint32_t *dout;
    OK(cudaMalloc(&din, n * sizeof *din));
    OK(cudaMalloc(&dout, (size_t)n * KINDS * 4));
    OK(cudaMemcpy(din, in.data(), n * sizeof *din, cudaMemcpyHostToDevice));
    kernel<<<n / 256, 256>>>(din, dout, n);
    std::vector<uint32_t> got((size_t)n * KINDS);
    OK(cudaMemcpy(got.data(), dout, got.size() * 4, cudaMemcpyDeviceToHost));
    int wrong[KINDS] = { 0 }, all = 0;
    for (int i = 0; i < n; i++) {
        uint32_t want[KINDS];
        convert(in[i], want);
        for (int k = 0; k < KINDS; k++)
            if (got[(size_t)i * KINDS + k] != want[k] && wrong[k]++ < 3)
                all++, printf("conversion %d of %a %a %08x: got %x, want %x\n", k, in[i].a, in[i].b, in[i].bits,
                       got[(size_t)i * KINDS + k], want[k]);
    }
    EXPECT(all, 0);
    return expect_status();
}

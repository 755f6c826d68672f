// SPDX-License-Identifier: Apache-2.0
// Elements and matrices of the tests of products, on the host. Types: h half, b bfloat16, t tf32, f float, 4 e4m3, 5 e5m2, x e2m3, y e3m2, z e2m1, p e2m1 without
// gaps, s s8, u u8, 1 bit, i s32.
#pragma once
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <vector>

static __device__ uint32_t at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

static unsigned bits_of(char type)
{
    switch (type) {
    case 'h':
    case 'b':
        return 16;
    case 't':
    case 'f':
    case 'i':
        return 32;
    case '1':
        return 1;
    case 'x':
    case 'y':
        return 6;
    case 'z':
    case 'p':
        return 4;
    default:
        return 8;
    }
}

static uint32_t encoded(char type, double v)
{
    float f = (float)v;
    uint32_t word;
    memcpy(&word, &f, 4);
    switch (type) {
    case 'h':
        return __half_as_ushort(__float2half(f));
    case 'b':
        return __bfloat16_as_ushort(__float2bfloat16(f));
    case 't':
    case 'f':
        return word;
    case '4':
        return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3);
    case '5':
        return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E5M2);
    case 'x':
        return __nv_cvt_float_to_fp6(f, __NV_E2M3, cudaRoundNearest);
    case 'y':
        return __nv_cvt_float_to_fp6(f, __NV_E3M2, cudaRoundNearest);
    case 'z':
    case 'p':
        return __nv_cvt_float_to_fp4(f, __NV_E2M1, cudaRoundNearest);
    default:
        return (uint32_t)(int32_t)v;
    }
}

static double decoded(char type, uint32_t x)
{
    float f;
    memcpy(&f, &x, 4);
    return type == 'i'   ? (double)(int32_t)x
           : type == 'h' ? __half2float(__ushort_as_half((unsigned short)x))
                         : f;
}

static unsigned random_below(unsigned n)
{
    static uint32_t seed = 7;
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % n;
}

static double number(char type)
{
    switch (type) {
    case 's':
        return (double)random_below(256) - 128;
    case 'u':
        return random_below(256);
    case '1':
        return random_below(2);
    case 'x':
    case 'y':
    case 'z':
    case 'p':
        return (random_below(9) - 4.0) / 2;
    default:
        return random_below(9) - 4.0;
    }
}

static void put(uint8_t *to, char type, unsigned element, double v)
{
    uint32_t x = encoded(type, v);
    unsigned bits = bits_of(type);
    if (bits % 8)
        for (unsigned b = 0; b < bits; b++)
            to[(element * bits + b) / 8] |= (uint8_t)((x >> b & 1) << (element * bits + b) % 8);
    else
        memcpy(to + element * bits / 8, &x, bits / 8);
}

struct Matrix {
    unsigned rows, k;
    std::vector<double> v;
    Matrix(unsigned rows, unsigned k, char type) : rows(rows), k(k), v(rows * k)
    {
        for (double &x : v)
            x = number(type);
    }
    double operator()(unsigned row, unsigned i) const
    {
        return v[row * k + i];
    }
};

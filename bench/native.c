/* SPDX-License-Identifier: Apache-2.0
 * The benchmark's peers in plain C: the same algorithms, written as a C programmer would for a
 * processor, compiled with -O3 -march=native -fopenmp. Sums may be reordered (-ffast-math), as in
 * the device's tree. The naive product runs in i-k-j order, which vectorises; i-j-k would be about
 * twenty times slower. */
#include "native.h"

#include <math.h>
#include <string.h>

#define ARG(type, i) (*(type *)args[i])

void native_saxpy(void **args)
{
    float a = ARG(float, 0);
    const float *restrict x = ARG(const float *, 1);
    float *restrict y = ARG(float *, 2);
    int n = ARG(int, 3);
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}

enum { TILE = 32 };

static void multiply_tile(const float *restrict a, const float *restrict b, float *restrict c,
                          int n, int row, int col)
{
    float sum[TILE][TILE] = { { 0 } };
    for (int k0 = 0; k0 < n; k0 += TILE)
        for (int i = 0; i < TILE; i++)
            for (int k = k0; k < k0 + TILE; k++) {
                float f = a[(row + i) * n + k];
                for (int j = 0; j < TILE; j++)
                    sum[i][j] += f * b[k * n + col + j];
            }
    for (int i = 0; i < TILE; i++)
        memcpy(&c[(row + i) * n + col], sum[i], sizeof sum[i]);
}

void native_sgemm_tiled(void **args)
{
    const float *a = ARG(const float *, 0), *b = ARG(const float *, 1);
    float *c = ARG(float *, 2);
    int n = ARG(int, 3);
#pragma omp parallel for collapse(2)
    for (int row = 0; row < n; row += TILE)
        for (int col = 0; col < n; col += TILE)
            multiply_tile(a, b, c, n, row, col);
}

void native_sgemm_naive(void **args)
{
    const float *restrict a = ARG(const float *, 0), *restrict b = ARG(const float *, 1);
    float *restrict c = ARG(float *, 2);
    int n = ARG(int, 3);
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        memset(&c[i * n], 0, (size_t)n * sizeof *c);
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
}

void native_mandelbrot(void **args)
{
    int *out = ARG(int *, 0), n = ARG(int, 1), limit = ARG(int, 2);
#pragma omp parallel for schedule(dynamic, 8)
    for (int py = 0; py < n; py++)
        for (int px = 0; px < n; px++) {
            float cx = -2.0f + 3.0f * (float)px / (float)n,
                  cy = -1.5f + 3.0f * (float)py / (float)n;
            float x = 0, y = 0;
            int i = 0;
            while (i < limit && x * x + y * y < 4.0f) {
                float t = x * x - y * y + cx;
                y = 2 * x * y + cy;
                x = t;
                i++;
            }
            out[py * n + px] = i;
        }
}

/* The device leaves one sum a block; here everything goes to the first, the rest is zero. */
void native_reduction(void **args)
{
    const float *in = ARG(const float *, 0);
    float *out = ARG(float *, 1);
    int n = ARG(int, 2);
    float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += in[i];
    out[0] = sum;
}

void native_histogram(void **args)
{
    const int *key = ARG(const int *, 0);
    unsigned *bins = ARG(unsigned *, 1);
    int n = ARG(int, 2);
#pragma omp parallel
    {
        unsigned mine[256] = { 0 };
#pragma omp for
        for (int i = 0; i < n; i++)
            mine[key[i] & 255]++;
#pragma omp critical
        for (int b = 0; b < 256; b++)
            bins[b] += mine[b];
    }
}

void native_transpose(void **args)
{
    const float *restrict in = ARG(const float *, 0);
    float *restrict out = ARG(float *, 1);
    int n = ARG(int, 2);
#pragma omp parallel for collapse(2)
    for (int y0 = 0; y0 < n; y0 += TILE)
        for (int x0 = 0; x0 < n; x0 += TILE)
            for (int x = x0; x < x0 + TILE; x++)
                for (int y = y0; y < y0 + TILE; y++)
                    out[x * n + y] = in[y * n + x];
}

void native_nbody(void **args)
{
    const float *body = ARG(const float *, 0);
    float *acc = ARG(float *, 1);
    int n = ARG(int, 2);
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        float ax = 0, ay = 0, az = 0;
        const float *me = body + 4 * i;
#pragma omp simd reduction(+ : ax, ay, az)
        for (int k = 0; k < n; k++) {
            const float *b = body + 4 * k;
            float dx = b[0] - me[0], dy = b[1] - me[1], dz = b[2] - me[2];
            float inv = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = b[3] * inv * inv * inv;
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        memcpy(acc + 4 * i, (float[]){ ax, ay, az, 0 }, 4 * sizeof(float));
    }
}

void native_spmv(void **args)
{
    const int *start = ARG(const int *, 0), *column = ARG(const int *, 1);
    const float *value = ARG(const float *, 2), *x = ARG(const float *, 3);
    float *y = ARG(float *, 4);
    int rows = ARG(int, 5);
#pragma omp parallel for
    for (int row = 0; row < rows; row++) {
        float sum = 0;
        for (int i = start[row]; i < start[row + 1]; i++)
            sum += value[i] * x[column[i]];
        y[row] = sum;
    }
}

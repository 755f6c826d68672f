// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder share: managed memory, comparisons, a last line.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

static int failures;

template <typename T> T *allocate(size_t n)
{
    T *p;
    if (cudaMallocManaged(&p, n * sizeof(T)) != cudaSuccess)
        exit(3);
    for (size_t i = 0; i < n; i++)
        p[i] = T();
    return p;
}

static inline void finish(const char *what)
{
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess)
        error = cudaGetLastError();
    if (error == cudaSuccess)
        return;
    printf("%s: %s\n", what, cudaGetErrorString(error));
    exit(2);
}

template <typename T, typename U> void expect(T got, U want, const char *what)
{
    if (got == (T)want)
        return;
    if (failures++ < 10)
        printf("%s: %g, should be %g\n", what, (double)got, (double)want);
}

static inline int report(const char *name)
{
    printf("%s: %s\n", name, failures ? "FAILED" : "PASSED");
    return failures != 0;
}

// SPDX-License-Identifier: Apache-2.0
// cuRAND's device functions: large constant tables, much double precision.
#include <curand_kernel.h>

__global__ void xorwow(curandState *s, float *out)
{
    curand_init(1, threadIdx.x, 0, s + threadIdx.x);
    out[threadIdx.x] = curand_normal(s + threadIdx.x) + (float)curand_uniform_double(s + threadIdx.x) +
                       (float)curand_poisson(s, 3.0);
}

__global__ void others(curandStateMRG32k3a *s, curandStateSobol32 *q, curandStatePhilox4_32_10_t *p, float *out)
{
    curand_init(1, 2, 3, s);
    out[0] = curand_log_normal(s, 1.f, 2.f) + curand_uniform(q) + curand_uniform4(p).x;
}

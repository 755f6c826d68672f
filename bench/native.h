/* SPDX-License-Identifier: Apache-2.0
 * The benchmark's kernels as ordinary C with OpenMP: one function a kernel, called with the
 * kernel's arguments. */
#ifndef BENCH_NATIVE_H
#define BENCH_NATIVE_H

/* args[i] points at argument i: a buffer's pointer, an int or a float, as cuLaunchKernel takes
 * them. */
typedef void native_fn(void **args);

native_fn native_saxpy, native_sgemm_tiled, native_sgemm_naive, native_mandelbrot, native_reduction,
    native_histogram, native_transpose, native_nbody, native_spmv;

#endif

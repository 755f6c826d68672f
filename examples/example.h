// SPDX-License-Identifier: Apache-2.0
// What every example shares: stop at the first CUDA error, say PASSED or FAILED.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                            \
    do {                                                                       \
        cudaError_t error_ = (call);                                           \
        if (error_ != cudaSuccess) {                                           \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                         cudaGetErrorString(error_));                          \
            std::exit(1);                                                      \
        }                                                                      \
    } while (0)

// A launch reports bad configurations at once and faults at the next synchronisation.
#define CHECK_LAUNCH()                  \
    do {                                \
        CHECK(cudaGetLastError());      \
        CHECK(cudaDeviceSynchronize()); \
    } while (0)

inline int verdict(const char *name, bool good)
{
    std::printf("%s: %s\n", name, good ? "PASSED" : "FAILED");
    return good ? 0 : 1;
}

// A small repeatable random sequence, the same on every machine.
inline unsigned next_random(unsigned &state)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

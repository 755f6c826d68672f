// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder check with: check(name, ok) says and counts, RUN(launch) waits and ends on an error.
#ifndef WAITS_CHECK_H
#define WAITS_CHECK_H
#include <cstdio>
#include <cstdlib>

static int failures;
static void check(const char *name, bool ok)
{
    printf("%s: %s\n", name, ok ? "ok" : "WRONG");
    failures += !ok;
}
#define RUN(...)                                                     \
    do {                                                             \
        __VA_ARGS__;                                                 \
        cudaError_t e = cudaDeviceSynchronize();                     \
        if (e != cudaSuccess) {                                      \
            printf("%s: %s\n", #__VA_ARGS__, cudaGetErrorString(e)); \
            exit(2);                                                 \
        }                                                            \
    } while (0)
#endif

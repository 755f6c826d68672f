// SPDX-License-Identifier: Apache-2.0
// A shared object with device code and, by default, a static runtime of its own.
#include <cstdio>

__global__ void plugin_kernel(int *p) { *p = VALUE; }

extern "C" int plugin_run()
{
    int *p = nullptr;
    int error = cudaMalloc(&p, 4);
    plugin_kernel<<<1, VALUE>>>(p);
    error |= cudaGetLastError();
    printf("plugin %d: %d\n", VALUE, error);
    return error | cudaFree(p);
}

// SPDX-License-Identifier: Apache-2.0
// A program with a static runtime that also opens plugins with theirs.
#include <cstdio>
#include <dlfcn.h>

__global__ void app_kernel() {}

int main(int argc, char **argv)
{
    app_kernel<<<1, 1>>>();
    int error = cudaGetLastError();
    printf("app: %d\n", error);
    fflush(stdout);
    for (int i = 1; i < argc; i++) {
        void *h = dlopen(argv[i], RTLD_NOW);
        if (!h)
            return printf("%s\n", dlerror()), 1;
        error |= ((int (*)())dlsym(h, "plugin_run"))();
    }
    app_kernel<<<2, 1>>>();
    return error | cudaGetLastError();
}

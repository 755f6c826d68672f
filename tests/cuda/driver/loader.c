/* SPDX-License-Identifier: Apache-2.0
 * Loads the module in a file and runs its kernel `k` on 64 words; says each result's number. For test_images.py. */
#include "hw_driver.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    CUcontext ctx;
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    int n = 64, words[64] = { 0 };
    if (argc != 2 || cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&ctx, 0, 0) != CUDA_SUCCESS)
        return 2;
    CUresult r = cuModuleLoad(&m, argv[1]);
    printf("load %d\n", (int)r);
    if (r != CUDA_SUCCESS)
        return 0;
    void *params[] = { &p, &n };
    r = cuModuleGetFunction(&f, m, "k");
    if (r == CUDA_SUCCESS)
        r = cuMemAlloc_v2(&p, sizeof words);
    if (r == CUDA_SUCCESS)
        r = cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
    if (r == CUDA_SUCCESS)
        r = cuMemcpyDtoH_v2(words, p, sizeof words);
    printf("run %d, words %d %d %d\n", (int)r, words[0], words[1], words[63]);
    return 0;
}

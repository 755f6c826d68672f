/* SPDX-License-Identifier: Apache-2.0
 * Shared parts of the driver API's tests. */
#include "rig.h"

#include <stdarg.h>

int rig_context(void **state)
{
    CUcontext ctx;
    (void)state;
    if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate_v2(&ctx, 0, 0) != CUDA_SUCCESS)
        return 1;
    return 0;
}

int rig_end(void **state)
{
    (void)state;
    return cuCtxDestroy_v2(rig_current()) != CUDA_SUCCESS;
}

CUcontext rig_current(void)
{
    CUcontext ctx = NULL;
    OK(cuCtxGetCurrent(&ctx));
    return ctx;
}

char *rig_text(const char *file)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", getenv("TEST_DIR"), file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 16);
    size_t n = fread(text, 1, (1 << 16) - 1, f);
    assert_true(n > 0);
    fclose(f);
    return text;
}

CUmodule rig_module(void)
{
    CUmodule m;
    char *text = rig_text("kernels.ptx");
    OK(cuModuleLoadData(&m, text));
    free(text); /* the library keeps what it needs */
    return m;
}

CUfunction rig_kernel(const char *name)
{
    CUfunction f;
    OK(cuModuleGetFunction(&f, rig_module(), name));
    return f;
}

CUresult rig_launch(CUfunction f, unsigned grid, unsigned block, CUstream stream, ...)
{
    void *params[9] = { NULL };
    va_list ap;
    va_start(ap, stream);
    for (int i = 0; i < 8 && (params[i] = va_arg(ap, void *)); i++)
        continue;
    va_end(ap);
    return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, stream, params, NULL);
}

CUdeviceptr rig_alloc(size_t bytes)
{
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, bytes));
    OK(cuMemsetD8_v2(p, 0, bytes));
    return p;
}

uint32_t rig_word(CUdeviceptr p, size_t index)
{
    uint32_t v = 0;
    OK(cuMemcpyDtoH_v2(&v, p + 4 * index, 4));
    return v;
}

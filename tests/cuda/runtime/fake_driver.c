/* SPDX-License-Identifier: Apache-2.0
 * A libcuda.so.1 that runs nothing: device memory is host memory, a launch prints its kernel's name
 * and configuration. For tests of what stands above the driver. FAKE_CUDA_FAIL="cuMemAlloc_v2=2"
 * makes a function return an error; FAKE_CUDA_TRACE=1 prints each call.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CU(name, ...)                                             \
    __attribute__((visibility("default"))) int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

static int called(const char *name)
{
    const char *fail = getenv("FAKE_CUDA_FAIL");
    size_t n = strlen(name);
    if (getenv("FAKE_CUDA_TRACE"))
        printf("%s\n", name), fflush(stdout);
    if (fail && strncmp(fail, name, n) == 0 && fail[n] == '=')
        return (int)strtol(fail + n + 1, NULL, 10);
    return 0;
}

#define CALLED                    \
    int error = called(__func__); \
    if (error)                    \
    return error

static _Thread_local void *current;
static char contexts[2];

CU(cuInit, unsigned flags)
{
    CALLED;
    return flags ? 1 : 0;
}

CU(cuDriverGetVersion, int *v)
{
    CALLED;
    *v = 13000;
    return 0;
}

CU(cuModuleGetLoadingMode, int *mode)
{
    CALLED;
    *mode = getenv("FAKE_CUDA_EAGER") ? 1 : 2;
    return 0;
}

CU(cuDeviceGetCount, int *n)
{
    CALLED;
    *n = 2;
    return 0;
}

CU(cuDeviceGetName, char *name, int len, int device)
{
    CALLED;
    snprintf(name, (size_t)len, "Fake %d", device);
    return 0;
}

CU(cuDeviceGetUuid_v2, void *uuid, int device)
{
    CALLED;
    memset(uuid, device + 1, 16);
    return 0;
}

CU(cuDeviceTotalMem_v2, size_t *n, int device)
{
    CALLED;
    *n = (size_t)(device + 1) << 33;
    return 0;
}

/* Attribute n of device d is n * 100 + d, but for those that limit launches. */
CU(cuDeviceGetAttribute, int *v, int attribute, int device)
{
    static const int limits[] = { 0, 1024, 1024, 1024, 64, 2147483647, 65535, 65535 };
    CALLED;
    *v = attribute < 8 ? limits[attribute] : attribute * 100 + device;
    return 0;
}

CU(cuDevicePrimaryCtxRetain, void **ctx, int device)
{
    CALLED;
    *ctx = &contexts[device];
    return 0;
}

CU(cuDevicePrimaryCtxReset_v2, int device)
{
    CALLED;
    (void)device;
    return 0;
}

CU(cuCtxGetCurrent, void **ctx)
{
    *ctx = current;
    return 0;
}

CU(cuCtxSetCurrent, void *ctx)
{
    CALLED;
    current = ctx;
    return 0;
}

CU(cuCtxGetDevice, int *device)
{
    if (!current)
        return 201;
    *device = (int)((char *)current - contexts);
    return 0;
}

CU(cuCtxSynchronize, void)
{
    CALLED;
    return 0;
}

CU(cuMemAlloc_v2, uint64_t *p, size_t n)
{
    CALLED;
    *p = (uintptr_t)calloc(1, n);
    return *p ? 0 : 2;
}

CU(cuMemFree_v2, uint64_t p)
{
    CALLED;
    free((void *)(uintptr_t)p);
    return 0;
}

CU(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t n)
{
    CALLED;
    memcpy((void *)(uintptr_t)to, from, n);
    return 0;
}

CU(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t n)
{
    CALLED;
    memcpy(to, (void *)(uintptr_t)from, n);
    return 0;
}

CU(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t n, void *stream)
{
    CALLED;
    printf("stream %p\n", stream);
    memcpy((void *)(uintptr_t)to, from, n);
    return 0;
}

CU(cuStreamSynchronize, void *stream)
{
    CALLED;
    printf("synchronize %p\n", stream);
    return 0;
}

CU(cuMemsetD8_v2, uint64_t p, unsigned char value, size_t n)
{
    CALLED;
    memset((void *)(uintptr_t)p, value, n);
    return 0;
}

typedef struct named {
    struct named *next;
    char name[200];
    char bytes[4096];
} named;

typedef struct library {
    named *first;
} library;

static named *find(library *l, const char *name)
{
    for (named *n = l->first; n; n = n->next)
        if (strcmp(n->name, name) == 0)
            return n;
    named *n = calloc(1, sizeof *n);
    if (!n)
        abort();
    snprintf(n->name, sizeof n->name, "%s", name);
    n->next = l->first;
    return l->first = n;
}

CU(cuLibraryLoadData, void **out, const void *code, int *jit, void **jit_values, unsigned n_jit,
   int *options, void **values, unsigned n)
{
    CALLED;
    (void)jit, (void)jit_values, (void)n_jit, (void)values;
    if (*(const uint32_t *)code != 0x466243B1 || n != 1 || options[0] != 1)
        return 1;
    *out = calloc(1, sizeof(library));
    return *out ? 0 : 2;
}

CU(cuLibraryUnload, void *l)
{
    CALLED;
    (void)l;
    return 0;
}

CU(cuLibraryGetKernel, void **kernel, void *l, const char *name)
{
    CALLED;
    *kernel = find(l, name);
    return 0;
}

CU(cuLibraryGetGlobal, uint64_t *p, size_t *n, void *l, const char *name)
{
    CALLED;
    (void)n;
    *p = (uintptr_t)find(l, name)->bytes;
    return 0;
}

CU(cuLibraryGetManaged, uint64_t *p, size_t *n, void *l, const char *name)
{
    CALLED;
    (void)n;
    *p = (uintptr_t)find(l, name)->bytes;
    return 0;
}

CU(cuLaunchKernel, void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
   unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
    CALLED;
    (void)args, (void)extra;
    printf("launch %s <<<(%u,%u,%u), (%u,%u,%u), %u, %p>>>\n", ((named *)f)->name, gx, gy, gz, bx,
           by, bz, shared, stream);
    return 0;
}

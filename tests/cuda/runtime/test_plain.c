/* SPDX-License-Identifier: Apache-2.0
 * Both libraries from C over the fake driver: versions, layouts of older names, a forked child.
 * Arguments: libcudart.so.12, libcudart.so.13.
 */
#include "cudart_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int bad;

static void expect(long got, long want, const char *what)
{
    if (got == want)
        return;
    bad++;
    printf("%s is %ld, not %ld\n", what, got, want);
}

static void *function(void *library, const char *name)
{
    void *fn = dlsym(library, name);
    if (fn)
        return fn;
    printf("no %s\n", name);
    exit(1);
}

static void twelve(void *lib)
{
    int (*version)(int *) = (int (*)(int *))function(lib, "cudaRuntimeGetVersion");
    int (*full)(void *, int) = (int (*)(void *, int))function(lib, "cudaGetDeviceProperties_v2");
    int (*shorter)(void *, int) = (int (*)(void *, int))function(lib, "cudaGetDeviceProperties");
    int (*wait)(void) = (int (*)(void))function(lib, "cudaThreadSynchronize");
    hw_cudaDeviceProp12 p;
    int v = 0;
    expect(version(&v), 0, "version call");
    expect(v / 1000, 12, "version");
    expect(full(&p, 1), 0, "properties");
    expect(p.clockRate, 1301, "clockRate");
    expect(p.computeMode, 2001, "computeMode");
    expect(p.memoryClockRate, 3601, "memoryClockRate");
    expect(p.clusterLaunch, 12001, "clusterLaunch");
    expect((long)p.totalGlobalMem, (long)2 << 33, "totalGlobalMem");
    expect(strcmp(p.name, "Fake 1"), 0, "name");
    memset(&p, 0x5a, sizeof p);
    expect(shorter(&p, 0), 0, "properties, older name");
    expect((long)p.reservedSharedMemPerBlock, 11100, "its last field");
    expect(p.hostRegisterSupported, 0x5a5a5a5a, "the field after it");
    expect(wait(), 0, "wait");
}

static void thirteen(void *lib)
{
    int (*version)(int *) = (int (*)(int *))function(lib, "cudaRuntimeGetVersion");
    int (*allocate)(void **, size_t) = (int (*)(void **, size_t))function(lib, "cudaMalloc");
    int (*last)(void) = (int (*)(void))function(lib, "cudaGetLastError");
    int v = 0, status = 0;
    void *p;
    expect(version(&v), 0, "version call");
    expect(v, 13000, "version");
    pid_t child = fork(); /* before the first call: the child may use the device */
    if (child == 0)
        _exit(allocate(&p, 4));
    waitpid(child, &status, 0);
    expect(status, 0, "fork before the first call");
    expect(allocate(&p, 4), 0, "allocate");
    child = fork();
    if (child == 0)
        _exit(allocate(&p, 4) == 3 && last() == 3 ? 7 : 8);
    waitpid(child, &status, 0);
    expect(WEXITSTATUS(status), 7, "fork after the first call");
    expect(allocate(&p, 4), 0, "allocate afterwards");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    void *lib12 = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void *lib13 = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    if (!lib12 || !lib13)
        return printf("%s\n", dlerror()), 1;
    twelve(lib12);
    thirteen(lib13);
    return bad != 0;
}

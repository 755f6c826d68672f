/* SPDX-License-Identifier: Apache-2.0
 * The Halfwarp engine: kernels.ptx through the driver API of the libcuda.so.1 that the loader
 * finds. */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long device_ptr;
typedef int call;

static struct {
    call (*init)(unsigned);
    call (*retain)(void **, int);
    call (*set_current)(void *);
    call (*load)(void **, const void *);
    call (*function)(void **, void *, const char *);
    call (*alloc)(device_ptr *, size_t);
    call (*release)(device_ptr);
    call (*upload)(device_ptr, const void *, size_t);
    call (*download)(void *, device_ptr, size_t);
    call (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **);
    call (*wait)(void);
} cu;

static const struct {
    const char *name;
    void **slot;
} entry_points[] = {
    { "cuInit", (void **)&cu.init },
    { "cuDevicePrimaryCtxRetain", (void **)&cu.retain },
    { "cuCtxSetCurrent", (void **)&cu.set_current },
    { "cuModuleLoadData", (void **)&cu.load },
    { "cuModuleGetFunction", (void **)&cu.function },
    { "cuMemAlloc_v2", (void **)&cu.alloc },
    { "cuMemFree_v2", (void **)&cu.release },
    { "cuMemcpyHtoD_v2", (void **)&cu.upload },
    { "cuMemcpyDtoH_v2", (void **)&cu.download },
    { "cuLaunchKernel", (void **)&cu.launch },
    { "cuCtxSynchronize", (void **)&cu.wait },
};

static void *module, *kernel;
static const work *current;
static device_ptr buffers[MAX_ARGS];

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *text = n < 0 ? NULL : calloc((size_t)n + 1, 1);
    if (text && fread(text, 1, (size_t)n, f) != (size_t)n) {
        free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

static bool open_halfwarp(const char *dir, char *why, size_t why_size)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) {
        snprintf(why, why_size, "%s (start this program with halfwarp run)", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++)
        if (!(*entry_points[i].slot = dlsym(lib, entry_points[i].name))) {
            snprintf(why, why_size, "%s is missing", entry_points[i].name);
            return false;
        }
    char path[4096];
    snprintf(path, sizeof path, "%s/kernels.ptx", dir);
    char *text = read_text(path);
    void *context;
    if (!text || cu.init(0) || cu.retain(&context, 0) || cu.set_current(context) ||
        cu.load(&module, text)) {
        snprintf(why, why_size, "cannot load %s", path);
        return false;
    }
    return true;
}

static bool prepare(const work *w)
{
    current = w;
    if (cu.function(&kernel, module, w->name))
        return false;
    for (unsigned i = 0; i < w->nargs; i++) {
        const arg *a = &w->args[i];
        if (a->kind == ARG_BUFFER &&
            (cu.alloc(&buffers[i], a->bytes) || cu.upload(buffers[i], a->host, a->bytes)))
            return false;
    }
    return true;
}

static bool run(void)
{
    void *pointers[MAX_ARGS];
    for (unsigned i = 0; i < current->nargs; i++) {
        const arg *a = &current->args[i];
        pointers[i] = a->kind == ARG_BUFFER ? (void *)&buffers[i]
                      : a->kind == ARG_INT  ? (void *)(uintptr_t)&a->i
                                            : (void *)(uintptr_t)&a->f;
    }
    return !cu.launch(kernel, current->grid[0], current->grid[1], 1, current->block[0],
                      current->block[1], 1, 0, NULL, pointers, NULL) &&
           !cu.wait();
}

static bool fetch(unsigned index, void *to)
{
    return !cu.download(to, buffers[index], current->args[index].bytes);
}

static void finish(void)
{
    for (unsigned i = 0; i < MAX_ARGS; i++) {
        if (buffers[i])
            cu.release(buffers[i]);
        buffers[i] = 0;
    }
}

const engine engine_halfwarp = { "Halfwarp", open_halfwarp, prepare, run, fetch, finish };

/* SPDX-License-Identifier: Apache-2.0
 * LTO-IR made PTX by NVIDIA's nvJitLink, which is reached through what takeover wrote over.
 */
#include "jitlink.h"

#include <dlfcn.h>

/* Exported by the takeover library: a function of NVIDIA's by its name in nvJitLink.h, or NULL. */
typedef void *find_fn(const char *name);
typedef nvJitLinkResult create_fn(nvJitLinkHandle *, uint32_t, const char **);
typedef nvJitLinkResult destroy_fn(nvJitLinkHandle *);
typedef nvJitLinkResult add_fn(nvJitLinkHandle, nvJitLinkInputType, const void *, size_t,
                               const char *);
typedef nvJitLinkResult one_fn(nvJitLinkHandle);
typedef nvJitLinkResult size_fn(nvJitLinkHandle, size_t *);
typedef nvJitLinkResult text_fn(nvJitLinkHandle, char *);

static void *find(const char *name)
{
    union {
        void *object;
        find_fn *call;
    } taken = { dlsym(RTLD_DEFAULT, "halfwarp_original") };
    return taken.object ? taken.call(name) : NULL;
}

/* A function pointer from the object pointer that a look-up gives. */
#define REAL(type, name) \
    ((union {            \
         void *object;   \
         type *call;     \
     }){ find(name) }    \
         .call)

/* NVIDIA's words about its own failure go to our log. */
static nvJitLinkResult fail_as_real(nvJitLinkHandle l, nvJitLinkResult r)
{
    size_t size = 0;
    size_fn *log_size = REAL(size_fn, "nvJitLinkGetErrorLogSize");
    text_fn *log = REAL(text_fn, "nvJitLinkGetErrorLog");
    if (log_size && log && log_size(l->real, &size) == NVJITLINK_SUCCESS && size) {
        char *text = hw_arena_alloc(l->arena, size + 1);
        if (log(l->real, text) == NVJITLINK_SUCCESS)
            hw_fail(l->errors, HW_E_INVALID, "%s", text);
    }
    return r;
}

static nvJitLinkResult start(nvJitLinkHandle l)
{
    create_fn *create = REAL(create_fn, "nvJitLinkCreate");
    if (!create) {
        hw_fail(l->errors, HW_E_UNSUPPORTED,
                "LTO-IR cannot be read without NVIDIA's libnvJitLink; link PTX");
        return NVJITLINK_ERROR_INVALID_INPUT;
    }
    uint32_t n = l->n_options;
    if (!l->wants_ptx)
        l->options[n++] = "-ptx";
    nvJitLinkResult r = create(&l->real, n, l->options);
    if (r != NVJITLINK_SUCCESS)
        l->real = NULL;
    return r;
}

nvJitLinkResult jitlink_real_add(nvJitLinkHandle l, const void *data, size_t size, const char *name)
{
    if (!l->real) {
        nvJitLinkResult r = start(l);
        if (r != NVJITLINK_SUCCESS)
            return r;
    }
    add_fn *add = REAL(add_fn, "nvJitLinkAddData");
    if (!add)
        return NVJITLINK_ERROR_INTERNAL;
    nvJitLinkResult r = add(l->real, NVJITLINK_INPUT_LTOIR, data, size, name);
    return r == NVJITLINK_SUCCESS ? r : fail_as_real(l, r);
}

nvJitLinkResult jitlink_real_ptx(nvJitLinkHandle l, hw_str *text)
{
    size_t size = 0;
    one_fn *complete = REAL(one_fn, "nvJitLinkComplete");
    size_fn *ptx_size = REAL(size_fn, "nvJitLinkGetLinkedPtxSize");
    text_fn *ptx = REAL(text_fn, "nvJitLinkGetLinkedPtx");
    if (!complete || !ptx_size || !ptx)
        return NVJITLINK_ERROR_INTERNAL;
    nvJitLinkResult r = complete(l->real);
    if (r == NVJITLINK_SUCCESS)
        r = ptx_size(l->real, &size);
    if (r != NVJITLINK_SUCCESS)
        return fail_as_real(l, r);
    char *bytes = hw_arena_alloc(l->arena, size + 1);
    r = ptx(l->real, bytes);
    *text = hw_str_of(bytes);
    return r == NVJITLINK_SUCCESS ? r : fail_as_real(l, r);
}

void jitlink_real_end(nvJitLinkHandle l)
{
    destroy_fn *destroy = l->real ? REAL(destroy_fn, "nvJitLinkDestroy") : NULL;
    if (destroy)
        destroy(&l->real);
}

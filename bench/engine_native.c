/* SPDX-License-Identifier: Apache-2.0
 * The native engine: functions of native.c on copies of the buffers. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

static const work *current;
static void *buffers[MAX_ARGS];
static void *pointers[MAX_ARGS];

static bool open_native(const char *dir, char *why, size_t why_size)
{
    (void)dir, (void)why, (void)why_size;
    return true;
}

static bool prepare(const work *w)
{
    current = w;
    for (unsigned i = 0; i < w->nargs; i++) {
        const arg *a = &w->args[i];
        if (a->kind == ARG_BUFFER) {
            buffers[i] = aligned_alloc(64, (a->bytes + 63) / 64 * 64);
            if (!buffers[i])
                return false;
            memcpy(buffers[i], a->host, a->bytes);
        }
        pointers[i] = a->kind == ARG_BUFFER ? (void *)&buffers[i]
                      : a->kind == ARG_INT  ? (void *)(uintptr_t)&a->i
                                            : (void *)(uintptr_t)&a->f;
    }
    return true;
}

static bool run(void)
{
    current->native(pointers);
    return true;
}

static bool fetch(unsigned index, void *to)
{
    memcpy(to, buffers[index], current->args[index].bytes);
    return true;
}

static void finish(void)
{
    for (unsigned i = 0; i < MAX_ARGS; i++) {
        free(buffers[i]);
        buffers[i] = NULL;
    }
}

const engine engine_native = { "native", open_native, prepare, run, fetch, finish };

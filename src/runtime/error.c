/* SPDX-License-Identifier: Apache-2.0
 * The runtime's error model: one error variable a host thread, names and texts of all codes.
 */
#include "state.h"

#include <pthread.h>
#include <stdio.h>

static _Thread_local int last_error;

static const struct error_text {
    int code;
    const char *name, *text;
} error_texts[] = {
#define ERROR(code, name, text) { code, "cuda" #name, text },
#include "cudart_errors.def"
#undef ERROR
};

int hw_note(int error)
{
    if (error != hw_cudaSuccess)
        last_error = error;
    return error;
}

int hw_not_supported(const char *function)
{
    enum { SEEN_MAX = 512 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *seen[SEEN_MAX];
    static size_t n_seen;
    pthread_mutex_lock(&lock);
    bool known = n_seen == SEEN_MAX;
    for (size_t i = 0; i < n_seen && !known; i++)
        known = seen[i] == function;
    if (!known)
        seen[n_seen++] = function;
    pthread_mutex_unlock(&lock);
    if (!known)
        fprintf(stderr, "halfwarp: %s is not supported yet (docs/coverage-runtime.md)\n", function);
    return hw_note(hw_cudaErrorNotSupported);
}

static const struct error_text *find_error(int code)
{
    for (size_t i = 0; i < HW_COUNTOF(error_texts); i++)
        if (error_texts[i].code == code)
            return &error_texts[i];
    return NULL;
}

HW_CUDA(const char *, cudaGetErrorName, int error)
{
    const struct error_text *e = find_error(error);
    return e ? e->name : "unrecognized error code";
}

HW_CUDA(const char *, cudaGetErrorString, int error)
{
    const struct error_text *e = find_error(error);
    return e ? e->text : "unrecognized error code";
}

HW_CUDA(int, cudaGetLastError, void)
{
    int error = last_error;
    last_error = hw_cudaSuccess;
    return error;
}

HW_CUDA(int, cudaPeekAtLastError, void)
{
    return last_error;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Results: names and texts of every CUresult, what a room's status becomes, and the lines that go
 * to stderr.
 */
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const struct {
    CUresult code;
    const char *name, *text;
} results[] = {
#define CU_RESULT(code, name, text) { CUDA_##name, "CUDA_" #name, text },
#include "result.def"
#undef CU_RESULT
};

CUresult cuGetErrorName(CUresult error, const char **name)
{
    CU_NEED(name, INVALID_VALUE);
    *name = NULL;
    for (size_t i = 0; i < HW_COUNTOF(results); i++) {
        if (results[i].code == error) {
            *name = results[i].name;
        }
    }
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    CU_NEED(text, INVALID_VALUE);
    *text = NULL;
    for (size_t i = 0; i < HW_COUNTOF(results); i++) {
        if (results[i].code == error) {
            *text = results[i].text;
        }
    }
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult hw_cu_result(hw_status s)
{
    static const CUresult of[HW_STATUS_COUNT] = {
        [HW_E_NOMEM] = CUDA_ERROR_OUT_OF_MEMORY,
        [HW_E_INVALID] = CUDA_ERROR_INVALID_VALUE,
        [HW_E_RANGE] = CUDA_ERROR_INVALID_VALUE,
        [HW_E_NOT_FOUND] = CUDA_ERROR_NOT_FOUND,
        [HW_E_IO] = CUDA_ERROR_OPERATING_SYSTEM,
        [HW_E_CORRUPT] = CUDA_ERROR_INVALID_IMAGE,
        [HW_E_SYNTAX] = CUDA_ERROR_INVALID_PTX,
        [HW_E_UNSUPPORTED] = CUDA_ERROR_NOT_SUPPORTED,
        [HW_E_NO_PTX] = CUDA_ERROR_NO_BINARY_FOR_GPU,
        [HW_E_VERSION] = CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        [HW_E_LINK] = CUDA_ERROR_INVALID_PTX,
        [HW_E_INTERNAL] = CUDA_ERROR_UNKNOWN,
        [HW_F_ILLEGAL_ADDRESS] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [HW_F_MISALIGNED_ADDRESS] = CUDA_ERROR_MISALIGNED_ADDRESS,
        [HW_F_ILLEGAL_INSTRUCTION] = CUDA_ERROR_ILLEGAL_INSTRUCTION,
        [HW_F_INVALID_PC] = CUDA_ERROR_INVALID_PC,
        [HW_F_TRAP] = CUDA_ERROR_LAUNCH_FAILED,
        [HW_F_ASSERT] = CUDA_ERROR_ASSERT,
        [HW_F_STACK_OVERFLOW] = CUDA_ERROR_HARDWARE_STACK_ERROR,
        [HW_F_LIVELOCK] = CUDA_ERROR_LAUNCH_FAILED,
        [HW_F_TENSOR_LEAK] = CUDA_ERROR_TENSOR_MEMORY_LEAK,
        [HW_F_DEADLOCK] = CUDA_ERROR_LAUNCH_FAILED,
        [HW_F_TIMEOUT] = CUDA_ERROR_LAUNCH_TIMEOUT,
    };
    if (s == HW_OK)
        return CUDA_SUCCESS;
    return (unsigned)s < HW_STATUS_COUNT && of[s] ? of[s] : CUDA_ERROR_UNKNOWN;
}

/* ---- notices ---- */

static bool said_before(const char *line)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t said[256]; /* hashes; when full, later lines are said each time */
    static size_t n;
    uint64_t h = hw_hash64(line, strlen(line), 0);
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n; i++) {
        found |= said[i] == h;
    }
    if (!found && n < HW_COUNTOF(said))
        said[n++] = h;
    pthread_mutex_unlock(&lock);
    return found;
}

static void say(const char *fmt, va_list ap, bool once)
{
    char line[2048] = "halfwarp: ";
    const size_t prefix = 10;
    int n = vsnprintf(line + prefix, sizeof line - prefix - 1, fmt, ap);
    size_t len = n < 0 ? prefix : prefix + (size_t)n;
    if (len > sizeof line - 3)
        len = sizeof line - 3;
    line[len] = '\0';
    if (once && said_before(line))
        return;
    line[len++] = '\n';
    if (once) {
        line[len] = '\0';
        hw_cu_log(line + prefix);
    }
    ssize_t written = write(STDERR_FILENO, line, len); /* one write: lines of threads do not mix */
    (void)written;
}

void hw_cu_notice(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap, true);
    va_end(ap);
}

void hw_cu_verbose(const char *fmt, ...)
{
    if (!hw_cu.env.verbose || !hw_cu_env_true(hw_cu.env.verbose))
        return;
    va_list ap;
    va_start(ap, fmt);
    say(fmt, ap, false);
    va_end(ap);
}

void hw_cu_notice_diag(const char *what, const hw_diag *d)
{
    const hw_message *m = d->first;
    while (m && m->severity != HW_SEV_ERROR)
        m = m->next;
    if (!m)
        return;
    const char *sep = what[0] ? ": " : "";
    if (m->place.file && m->place.line)
        hw_cu_notice("%s%s%s:%u:%u: %s", what, sep, m->place.file, m->place.line, m->place.column,
                     m->text);
    else
        hw_cu_notice("%s%s%s", what, sep, m->text);
}

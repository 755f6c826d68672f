/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of the driver: what is said in notices, kept for programs that ask for it, and told to
 * their callbacks. (CUDA Driver API, "Error Log Management Functions".)
 *
 * An iterator is the number of the next entry to be read; the oldest entries go when there are too
 * many or too much text.
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 256, MOST_BYTES = 25600, CALLBACKS = 32 };

static const char lost_text[] = "... older entries are lost\n";

typedef struct callback {
    CUlogsCallback call;
    void *data;
    bool used;
} callback;

static struct {
    pthread_mutex_t lock;
    char *lines[ENTRIES]; /* with their newlines; entry i is in i % ENTRIES */
    unsigned first, next; /* entries kept: first ... next - 1 */
    size_t bytes;
    callback callbacks[CALLBACKS];
} logs = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void drop_oldest(void)
{
    char **line = &logs.lines[logs.first++ % ENTRIES];
    logs.bytes -= strlen(*line);
    free(*line);
    *line = NULL;
}

void hw_cu_log(const char *line)
{
    callback told[CALLBACKS];
    char *kept = strdup(line);
    if (!kept)
        return;
    pthread_mutex_lock(&logs.lock);
    size_t len = strlen(kept);
    while (logs.first != logs.next &&
           (logs.next - logs.first == ENTRIES || logs.bytes + len > MOST_BYTES))
        drop_oldest();
    logs.lines[logs.next++ % ENTRIES] = kept;
    logs.bytes += len;
    memcpy(told, logs.callbacks, sizeof told);
    pthread_mutex_unlock(&logs.lock);
    for (size_t i = 0; i < CALLBACKS; i++) { /* unlocked: a callback may ask for the log */
        char *copy = told[i].used ? strdup(line) : NULL;
        if (copy)
            told[i].call(told[i].data, CU_LOG_LEVEL_ERROR, copy, len);
        free(copy);
    }
}

CUresult cuLogsRegisterCallback(CUlogsCallback call, void *data, CUlogsCallbackHandle *out)
{
    CU_NEED(call, INVALID_VALUE);
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&logs.lock);
    for (size_t i = 0; i < CALLBACKS && r != CUDA_SUCCESS; i++) {
        callback *c = &logs.callbacks[i];
        if (c->used)
            continue;
        *c = (callback){ call, data, true };
        if (out)
            *out = (CUlogsCallbackHandle)c;
        r = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&logs.lock);
    return r;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&logs.lock);
    for (size_t i = 0; i < CALLBACKS; i++) {
        callback *c = &logs.callbacks[i];
        if ((CUlogsCallbackHandle)c == handle && c->used) {
            c->used = false;
            r = CUDA_SUCCESS;
        }
    }
    pthread_mutex_unlock(&logs.lock);
    return r;
}

CUresult cuLogsCurrent(CUlogIterator *out, unsigned int flags)
{
    CU_NEED(out && !flags, INVALID_VALUE);
    pthread_mutex_lock(&logs.lock);
    *out = logs.next;
    pthread_mutex_unlock(&logs.lock);
    return CUDA_SUCCESS;
}

/* The entries from *iterator on that fit into room bytes, the newest always last, as one text to be
 * freed; what had to be left out is told first. With the lock. */
static char *gather(CUlogIterator *iterator, size_t room)
{
    unsigned from =
        iterator && *iterator - logs.first <= logs.next - logs.first ? *iterator : logs.first;
    bool lost = iterator && from != *iterator;
    size_t bytes = lost ? sizeof lost_text - 1 : 0;
    for (unsigned i = from; i != logs.next; i++)
        bytes += strlen(logs.lines[i % ENTRIES]);
    if (bytes > room && !lost) {
        lost = true;
        bytes += sizeof lost_text - 1;
    }
    while (bytes > room && from != logs.next)
        bytes -= strlen(logs.lines[from++ % ENTRIES]);
    char *text = malloc(bytes + 1), *at = text;
    if (!text)
        return NULL;
    *text = 0;
    if (lost && from != logs.next)
        at = stpcpy(at, lost_text);
    for (unsigned i = from; i != logs.next; i++)
        at = stpcpy(at, logs.lines[i % ENTRIES]);
    return text;
}

static CUresult dump(CUlogIterator *iterator, size_t room, char **text, bool *any)
{
    pthread_mutex_lock(&logs.lock);
    *any = iterator ? *iterator != logs.next : logs.first != logs.next;
    *text = gather(iterator, room);
    if (iterator && *text)
        *iterator = logs.next;
    pthread_mutex_unlock(&logs.lock);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *path, unsigned int flags)
{
    char *text;
    bool any;
    CU_NEED(path && !flags, INVALID_VALUE);
    CU_TRY(dump(iterator, SIZE_MAX, &text, &any));
    FILE *f = fopen(path, "w");
    bool ok = f && fputs(text, f) >= 0;
    ok = f && fclose(f) == 0 && ok;
    free(text);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
    char *text;
    bool any;
    CU_NEED(buffer && size && *size && !flags, INVALID_VALUE);
    CU_TRY(dump(iterator, *size - 1, &text, &any));
    strcpy(buffer, text); /* gather keeps to the room */
    *size = strlen(text);
    free(text);
    return any && !*size ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: their making, what a stream handle means (0, the legacy and the per-thread default
 * stream included), host functions. (CUDA Driver API, "Stream Management"; "API synchronization
 * behavior", "Stream synchronization behavior".)
 */
#include "capture.h"

#include <stdlib.h>

/* ---- the default stream of a thread ---- */

static _Thread_local unsigned per_thread_depth;

void hw_cu_per_thread(bool enter)
{
    per_thread_depth += enter ? 1u : -1u;
}

/* A thread's own streams, one a context. The context may end first: its epoch then differs. */
typedef struct own_stream {
    struct own_stream *next;
    CUcontext ctx;
    uint64_t epoch;
    hw_cu_stream *s;
} own_stream;

static _Thread_local own_stream *own_streams;
static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void stream_end(hw_cu_stream *s)
{
    hw_cu_capture_forget(s);
    hw_stream_destroy(s->s);
    hw_cu_list_remove(&s->link);
    if (s->handle)
        hw_cu_handle_drop(s->handle);
    free(s);
}

/* A thread ends: its streams go, unless their contexts went before. */
static void own_end(void *list)
{
    for (own_stream *o = list, *next; o; o = next) {
        next = o->next;
        hw_cu_context *ctx =
            hw_cu_ready() == CUDA_SUCCESS ? hw_cu_handle_get(o->ctx, HW_CU_CONTEXT) : NULL;
        if (ctx) {
            pthread_mutex_lock(&ctx->lock);
            if (atomic_load(&ctx->exec) && ctx->epoch == o->epoch)
                stream_end(o->s);
            pthread_mutex_unlock(&ctx->lock);
        }
        free(o);
    }
}

static void own_key_make(void)
{
    pthread_key_create(&own_key, own_end);
}

enum { FIRST_NUMBER = 13 };
static _Atomic uint32_t streams_made;

static hw_cu_stream *stream_new(hw_cu_context *ctx, unsigned flags, int priority)
{
    hw_cu_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->s = hw_stream_new(ctx->exec, flags & CU_STREAM_NON_BLOCKING ? HW_STREAM_NONBLOCKING : 0,
                         priority);
    s->ctx = ctx;
    s->flags = flags;
    s->priority = priority;
    s->id = atomic_fetch_add(&hw_cu.next_id, 1) + 1;
    s->number = FIRST_NUMBER + atomic_fetch_add(&streams_made, 1);
    s->attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = priority;
    s->attributes[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP].memSyncDomainMap[1] = 1;
    pthread_mutex_lock(&ctx->lock);
    hw_cu_list_add(&ctx->streams, &s->link);
    pthread_mutex_unlock(&ctx->lock);
    return s;
}

static hw_cu_stream *own_stream_of(hw_cu_context *ctx)
{
    own_stream *o = own_streams;
    while (o && o->ctx != ctx->handle)
        o = o->next;
    if (o && o->epoch == ctx->epoch)
        return o->s;
    if (!o) {
        pthread_once(&own_once, own_key_make);
        o = calloc(1, sizeof *o);
        if (!o)
            return NULL;
        *o = (own_stream){ own_streams, ctx->handle, 0, NULL };
        own_streams = o;
        pthread_setspecific(own_key, o);
    }
    o->s = stream_new(ctx, 0, 0);
    o->epoch = o->s ? ctx->epoch : 0;
    return o->s;
}

CUresult hw_cu_find_stream_any(CUstream handle, hw_cu_stream **out)
{
    if ((uintptr_t)handle > (uintptr_t)CU_STREAM_PER_THREAD) {
        CU_TRY(hw_cu_ready());
        CU_NEED(!hw_cu_in_callback(), NOT_PERMITTED);
        *out = hw_cu_handle_get(handle, HW_CU_STREAM);
        return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current_any(&ctx));
    CU_TRY(hw_cu_activate(ctx));
    bool own = handle == CU_STREAM_PER_THREAD || (!handle && per_thread_depth);
    *out = own ? own_stream_of(ctx) : &ctx->legacy;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hw_cu_find_stream(CUstream handle, hw_cu_stream **out)
{
    CU_TRY(hw_cu_find_stream_any(handle, out));
    bool legacy = *out == &(*out)->ctx->legacy;
    CU_NEED(!legacy || !atomic_load(&(*out)->ctx->captures), STREAM_CAPTURE_IMPLICIT);
    return hw_cu_sticky((*out)->ctx);
}

/* ---- work ---- */

CUresult hw_cu_submit(hw_cu_stream *s, hw_task_fn *run, void (*drop)(void *), void *task)
{
    return hw_cu_result(hw_stream_submit(s->s, run, drop, task));
}

static bool rests(const hw_cu_stream *s)
{
    return hw_stream_idle(s->s) &&
           ((s->flags & CU_STREAM_NON_BLOCKING) || hw_stream_idle(s->ctx->legacy.s));
}

CUresult hw_cu_run(hw_cu_stream *s, hw_task_fn *run, void (*drop)(void *), void *task)
{
    if (rests(s)) {
        hw_fault fault = { 0 };
        CUresult r = hw_cu_result(run(task, &fault));
        if (drop)
            drop(task);
        return r != CUDA_SUCCESS ? r : hw_cu_waited(s->ctx);
    }
    CU_TRY(hw_cu_submit(s, run, drop, task));
    CU_TRY(hw_cu_result(hw_stream_wait(s->s)));
    return hw_cu_waited(s->ctx);
}

/* ---- making and ending ---- */

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
    hw_cu_context *ctx;
    CU_NEED(out && (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) == 0, INVALID_VALUE);
    CU_TRY(hw_cu_current(&ctx));
    if (priority > 0)
        priority = 0;
    if (priority < HW_CU_HIGHEST_PRIORITY)
        priority = HW_CU_HIGHEST_PRIORITY;
    hw_cu_stream *s = stream_new(ctx, flags, priority);
    CU_NEED(s, OUT_OF_MEMORY);
    *out = s->handle = hw_cu_handle_new(HW_CU_STREAM, s);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
    return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(!hw_cu_in_callback(), NOT_PERMITTED);
    hw_cu_stream *s = hw_cu_handle_get(handle, HW_CU_STREAM);
    CU_NEED(s, INVALID_HANDLE);
    hw_cu_context *ctx = s->ctx;
    pthread_mutex_lock(&ctx->lock);
    stream_end(s);
    pthread_mutex_unlock(&ctx->lock);
    return CUDA_SUCCESS;
}

void hw_cu_streams_end(hw_cu_context *ctx)
{
    pthread_mutex_lock(&ctx->lock);
    while (ctx->streams.next != &ctx->streams)
        stream_end(HW_CU_ITEM(ctx->streams.next, hw_cu_stream, link));
    pthread_mutex_unlock(&ctx->lock);
}

/* ---- waiting ---- */

/* Waiting for a stream that is capturing spoils the capture. */
static CUresult not_capturing(hw_cu_stream *s)
{
    if (!s->capture)
        return CUDA_SUCCESS;
    hw_cu_capture_invalidate(s);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult cuStreamQuery(CUstream handle)
{
    hw_cu_stream *s;
    CU_TRY(hw_cu_find_stream(handle, &s));
    CU_TRY(not_capturing(s));
    if (!hw_stream_idle(s->s))
        return CUDA_ERROR_NOT_READY;
    return hw_cu_sticky(s->ctx);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    hw_cu_stream *s;
    CU_TRY(hw_cu_find_stream(handle, &s));
    CU_TRY(not_capturing(s));
    hw_stream_wait(s->s);
    return hw_cu_waited(s->ctx);
}

/* ---- host functions ---- */

typedef struct host_call {
    CUhostFn fn;
    CUstreamCallback callback;
    CUstream stream;
    hw_cu_context *ctx;
    void *user;
} host_call;

static void host_call_run(void *p)
{
    host_call *c = p;
    hw_cu_callback_enter();
    if (c->callback)
        c->callback(c->stream, hw_cu_sticky(c->ctx), c->user);
    else
        c->fn(c->user);
    hw_cu_callback_leave();
    free(c);
}

static hw_status nothing(void *p, hw_fault *fault)
{
    (void)p;
    (void)fault;
    return HW_OK;
}

/* Host functions are skipped after a fault; callbacks are called with the error, so theirs is the task's last rite,
 * which is never skipped. */
static CUresult submit_call(hw_cu_stream *s, host_call call)
{
    host_call *c = malloc(sizeof *c);
    CU_NEED(c, OUT_OF_MEMORY);
    *c = call;
    if (c->callback)
        return hw_cu_submit(s, nothing, host_call_run, c);
    return hw_cu_result(hw_stream_submit_host(s->s, host_call_run, c));
}

CUresult hw_cu_submit_host(hw_cu_stream *s, CUhostFn fn, void *user)
{
    return submit_call(s, (host_call){ .fn = fn, .user = user, .ctx = s->ctx });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *user)
{
    hw_cu_stream *s;
    hw_cu_node *n;
    CU_NEED(fn, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream(handle, &s));
    const CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = { fn, user } };
    return s->capture ? hw_cu_capture_add(s, &p, &n) : hw_cu_submit_host(s, fn, user);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *user,
                             unsigned int flags)
{
    hw_cu_stream *s;
    CU_NEED(callback && flags == 0, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream(handle, &s));
    CU_NEED(!s->capture, STREAM_CAPTURE_UNSUPPORTED);
    return submit_call(
        s, (host_call){ .callback = callback, .stream = handle, .user = user, .ctx = s->ctx });
}

/* ---- what a stream says of itself ---- */

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    hw_cu_stream *s;
    CU_NEED(priority, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream_any(handle, &s));
    *priority = s->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
    hw_cu_stream *s;
    CU_NEED(flags, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream_any(handle, &s));
    *flags = s->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    hw_cu_stream *s;
    CU_NEED(id, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream_any(handle, &s));
    *id = s->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
    hw_cu_stream *s;
    CU_NEED(ctx, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream_any(handle, &s));
    *ctx = s->ctx->handle;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *dev)
{
    hw_cu_stream *s;
    CU_NEED(dev, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream_any(handle, &s));
    *dev = s->ctx->gpu->ordinal;
    return CUDA_SUCCESS;
}

static bool stream_attribute(CUstreamAttrID which)
{
    const unsigned known =
        1u << CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW |
        1u << CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY | 1u << CU_LAUNCH_ATTRIBUTE_PRIORITY |
        1u << CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP | 1u << CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    return (unsigned)which < 16 && (known >> which & 1);
}

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID which, CUstreamAttrValue *value)
{
    hw_cu_stream *s;
    CU_NEED(value && stream_attribute(which), INVALID_VALUE);
    CU_TRY(hw_cu_find_stream_any(handle, &s));
    pthread_mutex_lock(&s->ctx->lock);
    *value = s->attributes[which];
    pthread_mutex_unlock(&s->ctx->lock);
    return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID which, const CUstreamAttrValue *value)
{
    hw_cu_stream *s;
    CU_NEED(value && stream_attribute(which), INVALID_VALUE);
    CU_TRY(hw_cu_find_stream_any(handle, &s));
    pthread_mutex_lock(&s->ctx->lock);
    s->attributes[which] = *value;
    pthread_mutex_unlock(&s->ctx->lock);
    return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
    hw_cu_stream *d, *s;
    CU_TRY(hw_cu_find_stream_any(to, &d));
    CU_TRY(hw_cu_find_stream_any(from, &s));
    CU_NEED(d->ctx == s->ctx, INVALID_VALUE);
    pthread_mutex_lock(&s->ctx->lock);
    for (int i = 0; i < 16; i++) {
        if (stream_attribute((CUstreamAttrID)i) && i != CU_LAUNCH_ATTRIBUTE_PRIORITY)
            d->attributes[i] = s->attributes[i];
    }
    pthread_mutex_unlock(&s->ctx->lock);
    return CUDA_SUCCESS;
}

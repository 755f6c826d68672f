/* SPDX-License-Identifier: Apache-2.0
 * Events: cuEvent*, cuStreamWaitEvent. (CUDA Driver API, "Event Management".)
 */
#include "capture.h"

#include <stdlib.h>

enum { EVENT_BLOCKING_SYNC = 1, EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4, EVENT_FLAGS = 7 };

static CUresult find_event(CUevent handle, hw_cu_event **out)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(!hw_cu_in_callback(), NOT_PERMITTED);
    *out = hw_cu_handle_get(handle, HW_CU_EVENT);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUevent event_new(hw_cu_context *ctx, unsigned flags, hw_cu_ipc_event *ipc)
{
    hw_cu_event *e = calloc(1, sizeof *e);
    if (!e) {
        hw_cu_ipc_event_release(ipc);
        return NULL;
    }
    e->ctx = ctx;
    e->flags = flags;
    e->ipc = ipc;
    e->t = hw_timeline_new(!(flags & EVENT_DISABLE_TIMING), (flags & EVENT_BLOCKING_SYNC) != 0);
    e->handle = hw_cu_handle_new(HW_CU_EVENT, e);
    pthread_mutex_lock(&ctx->lock);
    hw_cu_list_add(&ctx->events, &e->link);
    pthread_mutex_unlock(&ctx->lock);
    return e->handle;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
    hw_cu_context *ctx;
    CU_NEED(out && (flags & ~(unsigned)EVENT_FLAGS) == 0, INVALID_VALUE);
    CU_NEED(!(flags & EVENT_INTERPROCESS) || (flags & EVENT_DISABLE_TIMING), INVALID_VALUE);
    CU_TRY(hw_cu_current(&ctx));
    hw_cu_ipc_event *ipc = flags & EVENT_INTERPROCESS ? hw_cu_ipc_event_new() : NULL;
    CU_NEED(ipc || !(flags & EVENT_INTERPROCESS), OUT_OF_MEMORY);
    *out = event_new(ctx, flags, ipc);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUevent hw_cu_event_of(hw_cu_context *ctx, hw_cu_ipc_event *ipc)
{
    return event_new(ctx, EVENT_DISABLE_TIMING | EVENT_INTERPROCESS, ipc);
}

void hw_cu_event_record(hw_cu_event *e, hw_cu_stream *s)
{
    if (e->ipc)
        hw_cu_ipc_event_record(e->ipc, s);
    else
        hw_timeline_record(e->t, s->s);
}

void hw_cu_event_block(hw_cu_stream *s, hw_cu_event *e)
{
    if (e->ipc)
        hw_cu_ipc_event_block(s, e->ipc);
    else
        hw_timeline_block(s->s, e->t);
}

static bool reached(hw_cu_event *e)
{
    return e->ipc ? hw_cu_ipc_event_reached(e->ipc) : hw_timeline_reached(e->t);
}

static void event_end(hw_cu_event *e)
{
    hw_cu_handle_drop(e->handle);
    hw_cu_tips_drop(&e->tips);
    hw_timeline_destroy(e->t);
    hw_cu_ipc_event_release(e->ipc);
    hw_cu_list_remove(&e->link);
    free(e);
}

CUresult cuEventDestroy_v2(CUevent handle)
{
    hw_cu_event *e;
    CU_TRY(find_event(handle, &e));
    hw_cu_context *ctx = e->ctx;
    pthread_mutex_lock(&ctx->lock);
    event_end(e);
    pthread_mutex_unlock(&ctx->lock);
    return CUDA_SUCCESS;
}

void hw_cu_events_end(hw_cu_context *ctx)
{
    pthread_mutex_lock(&ctx->lock);
    while (ctx->events.next != &ctx->events)
        event_end(HW_CU_ITEM(ctx->events.next, hw_cu_event, link));
    pthread_mutex_unlock(&ctx->lock);
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned int flags)
{
    hw_cu_event *e;
    hw_cu_stream *s;
    CU_NEED(flags <= 1,
            INVALID_VALUE); /* CU_EVENT_RECORD_EXTERNAL means something in a capture only */
    CU_TRY(find_event(handle, &e));
    CU_TRY(hw_cu_find_stream(stream, &s));
    CU_NEED(e->ctx == s->ctx, INVALID_HANDLE);
    bool captured;
    CU_TRY(hw_cu_capture_record(s, e, flags == 1, &captured));
    if (!captured)
        hw_cu_event_record(e, s);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream stream)
{
    return cuEventRecordWithFlags(handle, stream, 0);
}

CUresult cuEventQuery(CUevent handle)
{
    hw_cu_event *e;
    CU_TRY(find_event(handle, &e));
    CU_NEED(!hw_cu_captured(e), CAPTURED_EVENT);
    CU_TRY(hw_cu_capture_unsafe());
    if (!reached(e))
        return CUDA_ERROR_NOT_READY;
    return hw_cu_sticky(e->ctx);
}

CUresult cuEventSynchronize(CUevent handle)
{
    hw_cu_event *e;
    CU_TRY(find_event(handle, &e));
    CU_NEED(!hw_cu_captured(e), CAPTURED_EVENT);
    if (e->ipc)
        hw_cu_ipc_event_wait(e->ipc, e->ctx);
    else
        hw_timeline_wait(e->t);
    return hw_cu_waited(e->ctx);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
    hw_cu_event *a, *b;
    CU_NEED(ms, INVALID_VALUE);
    CU_TRY(find_event(start, &a));
    CU_TRY(find_event(end, &b));
    CU_NEED(!((a->flags | b->flags) & EVENT_DISABLE_TIMING), INVALID_HANDLE);
    CU_NEED(hw_timeline_recorded(a->t) && hw_timeline_recorded(b->t), INVALID_HANDLE);
    if (!hw_timeline_reached(a->t) || !hw_timeline_reached(b->t))
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(int64_t)(hw_timeline_ns(b->t) - hw_timeline_ns(a->t)) * 1e-6);
    return hw_cu_sticky(a->ctx);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned int flags)
{
    hw_cu_event *e;
    hw_cu_stream *s;
    CU_NEED(flags <= 1, INVALID_VALUE);
    bool captured;
    CU_TRY(find_event(handle, &e));
    CU_TRY(hw_cu_find_stream(stream, &s));
    CU_TRY(hw_cu_capture_wait(s, e, flags == 1, &captured));
    if (!captured)
        hw_cu_event_block(s, e);
    return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0
 * Streams, events and capture: the driver's calls once there is a context.
 */
#include "state.h"

/* name(params) calls the driver's function; name_ptsz does the same on the thread's own stream. */
#define PLAIN(name, params, call)       \
    HW_EXPORT int name params;          \
    int name params                     \
    {                                   \
        HW_CUDA_TRY(hw_cudart_enter()); \
        return hw_note(hw_cu.call);     \
    }
#define ON_STREAM(name, params, call)   \
    PLAIN(name, params, call)           \
    HW_EXPORT int name##_ptsz params;   \
    int name##_ptsz params              \
    {                                   \
        stream = hw_per_thread(stream); \
        HW_CUDA_TRY(hw_cudart_enter()); \
        return hw_note(hw_cu.call);     \
    }

/* clang-format off */
PLAIN(cudaStreamCreate, (hw_cudaStream_t *stream), stream_create(stream, 0))
PLAIN(cudaStreamCreateWithFlags, (hw_cudaStream_t *stream, unsigned flags), stream_create(stream, flags))
PLAIN(cudaStreamCreateWithPriority, (hw_cudaStream_t *stream, unsigned flags, int priority), stream_create_priority(stream, flags, priority))
PLAIN(cudaStreamDestroy, (hw_cudaStream_t stream), stream_destroy(stream))
ON_STREAM(cudaStreamGetPriority, (hw_cudaStream_t stream, int *priority), stream_priority(stream, priority))
ON_STREAM(cudaStreamGetFlags, (hw_cudaStream_t stream, unsigned *flags), stream_flags(stream, flags))
ON_STREAM(cudaStreamGetId, (hw_cudaStream_t stream, unsigned long long *id), stream_id(stream, id))
ON_STREAM(cudaStreamGetDevice, (hw_cudaStream_t stream, int *device), stream_device(stream, device))
ON_STREAM(cudaStreamSynchronize, (hw_cudaStream_t stream), stream_synchronize(stream))
ON_STREAM(cudaStreamQuery, (hw_cudaStream_t stream), stream_query(stream))
ON_STREAM(cudaStreamWaitEvent, (hw_cudaStream_t stream, hw_cudaEvent_t event, unsigned flags), stream_wait(stream, event, flags))
ON_STREAM(cudaStreamAddCallback, (hw_cudaStream_t stream, void (*fn)(void *, int, void *), void *data, unsigned flags), stream_callback(stream, fn, data, flags))
ON_STREAM(cudaStreamAttachMemAsync, (hw_cudaStream_t stream, void *p, size_t n, unsigned flags), stream_attach(stream, (uintptr_t)p, n, flags))
ON_STREAM(cudaStreamGetAttribute, (hw_cudaStream_t stream, int attribute, void *value), stream_get_attribute(stream, attribute, value))
ON_STREAM(cudaStreamSetAttribute, (hw_cudaStream_t stream, int attribute, const void *value), stream_set_attribute(stream, attribute, value))
ON_STREAM(cudaStreamCopyAttributes, (hw_cudaStream_t stream, hw_cudaStream_t from), stream_copy_attributes(stream, from))
ON_STREAM(cudaStreamBeginCapture, (hw_cudaStream_t stream, int mode), capture_begin(stream, mode))
ON_STREAM(cudaStreamEndCapture, (hw_cudaStream_t stream, hw_cudaGraph_t *graph), capture_end(stream, graph))
ON_STREAM(cudaStreamIsCapturing, (hw_cudaStream_t stream, int *status), capture_status(stream, status))
PLAIN(cudaThreadExchangeStreamCaptureMode, (int *mode), capture_exchange_mode(mode))

PLAIN(cudaEventCreate, (hw_cudaEvent_t *event), event_create(event, 0))
PLAIN(cudaEventCreateWithFlags, (hw_cudaEvent_t *event, unsigned flags), event_create(event, flags))
PLAIN(cudaEventDestroy, (hw_cudaEvent_t event), event_destroy(event))
PLAIN(cudaEventQuery, (hw_cudaEvent_t event), event_query(event))
PLAIN(cudaEventSynchronize, (hw_cudaEvent_t event), event_synchronize(event))
PLAIN(cudaEventElapsedTime, (float *ms, hw_cudaEvent_t start, hw_cudaEvent_t end), event_elapsed(ms, start, end))
ON_STREAM(cudaEventRecord, (hw_cudaEvent_t event, hw_cudaStream_t stream), event_record(event, stream))
ON_STREAM(cudaEventRecordWithFlags, (hw_cudaEvent_t event, hw_cudaStream_t stream, unsigned flags), event_record_flags(event, stream, flags))
/* clang-format on */

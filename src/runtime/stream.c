/* SPDX-License-Identifier: Apache-2.0
 * Streams, events and capture: the driver's calls once there is a context.
 */
#include "state.h"

/* clang-format off */
HW_DRIVER_CALL(cudaStreamCreate, (hw_cudaStream_t *stream), stream_create(stream, 0))
HW_DRIVER_CALL(cudaStreamCreateWithFlags, (hw_cudaStream_t *stream, unsigned flags), stream_create(stream, flags))
HW_DRIVER_CALL(cudaStreamCreateWithPriority, (hw_cudaStream_t *stream, unsigned flags, int priority), stream_create_priority(stream, flags, priority))
HW_DRIVER_CALL(cudaStreamDestroy, (hw_cudaStream_t stream), stream_destroy(stream))
HW_STREAM_CALL(cudaStreamGetPriority, (hw_cudaStream_t stream, int *priority), stream_priority(stream, priority))
HW_STREAM_CALL(cudaStreamGetFlags, (hw_cudaStream_t stream, unsigned *flags), stream_flags(stream, flags))
HW_STREAM_CALL(cudaStreamGetId, (hw_cudaStream_t stream, unsigned long long *id), stream_id(stream, id))
HW_STREAM_CALL(cudaStreamGetDevice, (hw_cudaStream_t stream, int *device), stream_device(stream, device))
HW_STREAM_CALL(cudaStreamSynchronize, (hw_cudaStream_t stream), stream_synchronize(stream))
HW_STREAM_CALL(cudaStreamQuery, (hw_cudaStream_t stream), stream_query(stream))
HW_STREAM_CALL(cudaStreamWaitEvent, (hw_cudaStream_t stream, hw_cudaEvent_t event, unsigned flags), stream_wait(stream, event, flags))
HW_STREAM_CALL(cudaStreamAddCallback, (hw_cudaStream_t stream, void (*fn)(void *, int, void *), void *data, unsigned flags), stream_callback(stream, fn, data, flags))
HW_STREAM_CALL(cudaStreamAttachMemAsync, (hw_cudaStream_t stream, void *p, size_t n, unsigned flags), stream_attach(stream, (uintptr_t)p, n, flags))
HW_STREAM_CALL(cudaStreamGetAttribute, (hw_cudaStream_t stream, int attribute, void *value), stream_get_attribute(stream, attribute, value))
HW_STREAM_CALL(cudaStreamSetAttribute, (hw_cudaStream_t stream, int attribute, const void *value), stream_set_attribute(stream, attribute, value))
HW_STREAM_CALL(cudaStreamCopyAttributes, (hw_cudaStream_t stream, hw_cudaStream_t from), stream_copy_attributes(stream, from))
HW_STREAM_CALL(cudaStreamBeginCapture, (hw_cudaStream_t stream, int mode), capture_begin(stream, mode))
HW_STREAM_CALL(cudaStreamEndCapture, (hw_cudaStream_t stream, hw_cudaGraph_t *graph), capture_end(stream, graph))
HW_STREAM_CALL(cudaStreamIsCapturing, (hw_cudaStream_t stream, int *status), capture_status(stream, status))
HW_STREAM_CALL(cudaStreamBeginCaptureToGraph, (hw_cudaStream_t stream, hw_cudaGraph_t graph, const hw_cudaGraphNode_t *after, const void *edges, size_t n, int mode), capture_to_graph(stream, graph, after, edges, n, mode))
HW_STREAM_CALL(cudaStreamUpdateCaptureDependencies, (hw_cudaStream_t stream, hw_cudaGraphNode_t *after, const void *edges, size_t n, unsigned flags), capture_update(stream, after, edges, n, flags))
HW_STREAM_CALL(cudaStreamGetCaptureInfo, (hw_cudaStream_t stream, int *status, unsigned long long *id, hw_cudaGraph_t *graph, const hw_cudaGraphNode_t **after, const void **edges, size_t *n), capture_info(stream, status, id, graph, (void *const **)after, edges, n))
HW_DRIVER_CALL(cudaThreadExchangeStreamCaptureMode, (int *mode), capture_exchange_mode(mode))

HW_DRIVER_CALL(cudaEventCreate, (hw_cudaEvent_t *event), event_create(event, 0))
HW_DRIVER_CALL(cudaEventCreateWithFlags, (hw_cudaEvent_t *event, unsigned flags), event_create(event, flags))
HW_DRIVER_CALL(cudaEventDestroy, (hw_cudaEvent_t event), event_destroy(event))
HW_DRIVER_CALL(cudaEventQuery, (hw_cudaEvent_t event), event_query(event))
HW_DRIVER_CALL(cudaEventSynchronize, (hw_cudaEvent_t event), event_synchronize(event))
HW_DRIVER_CALL(cudaEventElapsedTime, (float *ms, hw_cudaEvent_t start, hw_cudaEvent_t end), event_elapsed(ms, start, end))
HW_STREAM_CALL(cudaEventRecord, (hw_cudaEvent_t event, hw_cudaStream_t stream), event_record(event, stream))
HW_STREAM_CALL(cudaEventRecordWithFlags, (hw_cudaEvent_t event, hw_cudaStream_t stream, unsigned flags), event_record_flags(event, stream, flags))
/* clang-format on */

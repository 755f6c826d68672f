/* SPDX-License-Identifier: Apache-2.0
 * A launch as a value (private): checked, its parameters packed. launch.c makes them, graph nodes
 * keep them. */
#ifndef HW_DRIVER_LAUNCH_H
#define HW_DRIVER_LAUNCH_H

#include "driver.h"

typedef struct hw_cu_launch {
    hw_cu_function *f; /* kind FUNCTION, of the stream's context */
    uint32_t grid[3], block[3], dynamic, param_bytes;
    uint32_t cluster[3],
        said_cluster[3]; /* what it is, what the launch says itself; 0, 0, 0: none */
    bool cooperative;
    uint32_t stream;               /* number of the one it was submitted to */
    bool profiled, matched;        /* matched: it would be but for its number */
    uint32_t root;                 /* its number among all launches of the host */
    uint64_t profile_id;           /* if it is profiled: its id */
    _Alignas(16) uint8_t params[]; /* param_bytes */
} hw_cu_launch;

/* What an entry point was given. */
typedef struct hw_cu_shape {
    uint32_t grid[3], block[3], dynamic;
    bool cooperative;
    uint32_t cluster[3]; /* 0, 0, 0: as the kernel says */
} hw_cu_shape;

/* Check everything against device and kernel, and pack; free() the result. */
CUresult hw_cu_launch_new(hw_cu_function *f, hw_cu_context *ctx, const hw_cu_shape *shape,
                          void **params, void **extra, hw_cu_launch **out);
hw_cu_launch *hw_cu_launch_copy(const hw_cu_launch *l);
/* Carry out now, on this thread: what a stream's task does. With what its kernels launch (nested.c). */
hw_status hw_cu_launch_now(const hw_cu_launch *l, hw_fault *fault);
/* The launch alone; runtime: answers its kernel's calls of the device runtime. */
hw_status hw_cu_launch_one(const hw_cu_launch *l, const hw_device_runtime *runtime,
                           hw_fault *fault);

/* From a packed parameter space, as a kernel gives it; fewer bytes than param_bytes are an error of the caller. */
CUresult hw_cu_launch_packed(hw_cu_function *f, hw_cu_context *ctx, const hw_cu_shape *shape,
                             const void *packed, hw_cu_launch **out);
CUresult hw_cu_check_shape(const hw_cu_function *f, const hw_cu_gpu *g, const hw_cu_shape *s);

/* cluster.c: the cluster of a launch, from its attribute or the kernel, if it is one the kernel and the device allow. */
CUresult hw_cu_cluster(const hw_cu_function *f, const hw_cu_gpu *g, const hw_cu_shape *s,
                       uint32_t cluster[3]);
/* A launch that is kept says another cluster, or none (0, 0, 0). */
CUresult hw_cu_say_cluster(hw_cu_launch *l, const hw_cu_gpu *g, const uint32_t cluster[3]);
CUresult hw_cu_apply_attribute(const CUlaunchAttribute *a, hw_cu_shape *s);

/* Append to a stream; takes l. */
CUresult hw_cu_submit_launch(hw_cu_stream *s, hw_cu_launch *l);

/* capture.c: if s is capturing, the launch becomes a node, is taken, and *done is set. */
CUresult hw_cu_capture_launch(hw_cu_stream *s, hw_cu_launch *l, bool *done);

#endif

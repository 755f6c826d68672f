/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runtime's files share. Private to runtime.
 *
 * Nouns
 *   module    a fat binary that registered itself; loaded into the driver at first use.
 *   kernel    a registered __global__ function, known by the address of its host stub.
 *   variable  a registered __device__, __constant__ or __managed__ variable, known by the address
 *             of its host shadow.
 * Rules
 *   Every exported function notes a failure in the calling thread's error variable and returns it.
 *   Kernels are what __cudaGetKernel hands out, so they outlive contexts and cudaDeviceReset.
 *   One lock (registry.c) guards modules, kernels and variables; it is held while a module loads.
 */
#ifndef HW_RUNTIME_STATE_H
#define HW_RUNTIME_STATE_H

#include "driver_api.h"
#include "hw_base.h"

/* In the archive the functions belong to the program that links it, as NVIDIA's do. */
#ifdef HW_CUDART_STATIC
#define HW_EXPORT __attribute__((visibility("hidden")))
#else
#define HW_EXPORT HW_PUBLIC
#endif

/* Define an exported function together with its prototype. */
#define HW_CUDA(type, name, ...)      \
    HW_EXPORT type name(__VA_ARGS__); \
    type name(__VA_ARGS__)

/* name_ptsz or name_ptds: the same with stream 0 meaning the calling thread's own stream. */
#define HW_PER_THREAD(type, name, params, args) \
    HW_EXPORT type name params;                 \
    type name params                            \
    {                                           \
        return args;                            \
    }

static inline hw_cudaStream_t hw_per_thread(hw_cudaStream_t s)
{
    return s ? s : HW_STREAM_PER_THREAD;
}

/* name(params) is a call of the driver's once there is a context. HW_STREAM_CALL adds name_ptsz,
 * which does the same with the parameter `stream` taken for the thread's own. */
#define HW_DRIVER_CALL(name, params, call) \
    HW_EXPORT int name params;             \
    int name params                        \
    {                                      \
        HW_CUDA_TRY(hw_cudart_enter());    \
        return hw_note(hw_cu.call);        \
    }
#define HW_STREAM_CALL(name, params, call) \
    HW_DRIVER_CALL(name, params, call)     \
    HW_EXPORT int name##_ptsz params;      \
    int name##_ptsz params                 \
    {                                      \
        stream = hw_per_thread(stream);    \
        HW_CUDA_TRY(hw_cudart_enter());    \
        return hw_note(hw_cu.call);        \
    }

/* Return early from a function that gives an error code, noting it. */
#define HW_CUDA_TRY(expr)                \
    do {                                 \
        int hw_error_ = (expr);          \
        if (hw_error_ != hw_cudaSuccess) \
            return hw_note(hw_error_);   \
    } while (0)

/* ---- error.c ---- */
int hw_note(int error); /* keep error for cudaGetLastError unless it is success; returns it */
int hw_not_supported(const char *function); /* says so once a function; notes and returns 801 */

/* ---- context.c ---- */
int hw_cudart_init(void);    /* the driver is there and initialised */
bool hw_cudart_usable(void); /* it has been initialised, and not been left by a fork */
int hw_cudart_enter(void);   /* and this thread has a current context */
int hw_device_count(void);   /* after init */
int hw_current_device(int *device);
int hw_primary_context(int device, void **ctx);
/* A device attribute read once and kept. */
int hw_device_fact(int device, int attribute);

/* ---- registry.c ---- */
typedef struct hw_kernel hw_kernel;
typedef struct hw_variable hw_variable;

/* The driver's handle for whatever a program may call a kernel: the address of a host stub, what
 * __cudaGetKernel gave, or a driver handle, which is returned as it is. Loads the module. */
int hw_find_kernel(const void *function, void **handle);
const char *hw_kernel_name(const void *function); /* NULL: not registered */
/* The device address and size of a variable from the address of its shadow. Loads the module. */
int hw_find_variable(const void *symbol, uint64_t *address, size_t *size);
int hw_find_variable_part(const void *symbol, size_t n, size_t offset, void **place);
/* Modules that have to be loaded early (all of them, or those with managed variables). */
int hw_load_early_modules(bool all);
bool hw_early_modules_pending(void);

/* ---- launch.c ---- */
int hw_check_config(hw_dim3 grid, hw_dim3 block);

/* ---- version.c ---- */
int hw_runtime_version(void);

/* ---- array.c: element formats in the driver's words, and back ---- */
int hw_format_to_driver(const hw_cudaChannelFormatDesc *c, int *format, unsigned *channels);
int hw_format_from_driver(int format, unsigned channels, hw_cudaChannelFormatDesc *out);

/* ---- copy.c ---- */
bool hw_kind_known(int kind);
/* The driver's memory type of a copy's two sides. */
int hw_source_type(int kind);
int hw_target_type(int kind);
/* What cudaMemcpy3D asks for in the driver's words, and back. */
int hw_copy_params(const hw_cudaMemcpy3DParms *p, hw_copy3d *out);
void hw_copy_params_back(const hw_copy3d *c, hw_cudaMemcpy3DParms *out);
int hw_copy_linear(void *dst, const void *src, size_t n, int kind, hw_cudaStream_t stream,
                   bool async);

#endif

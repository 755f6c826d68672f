/* SPDX-License-Identifier: Apache-2.0
 * What differs between libcudart.so.12 and libcudart.so.13; compiled once for each with
 * HW_CUDART_MAJOR set.
 */
#include "state.h"

#include <stddef.h>

enum { VERSION = HW_CUDART_MAJOR == 12 ? 12080 : HW_CUDART_MAJOR * 1000 };

int hw_runtime_version(void)
{
    return VERSION;
}

HW_CUDA(int, cudaRuntimeGetVersion, int *version)
{
    if (!version)
        return hw_note(hw_cudaErrorInvalidValue);
    *version = VERSION;
    return hw_cudaSuccess;
}

/* ---- device properties: one field after the other from its attributes ---- */

#if HW_CUDART_MAJOR == 12
typedef hw_cudaDeviceProp12 device_prop;
#define OLD(type, name, attribute) BOTH(type, name, attribute)
#define OLD_N(type, name, n, ...)  BOTH_N(type, name, n, __VA_ARGS__)
#define NEW(type, name, attribute)
#define NEW_N(type, name, n, ...)
#else
typedef hw_cudaDeviceProp device_prop;
#define NEW(type, name, attribute) BOTH(type, name, attribute)
#define NEW_N(type, name, n, ...)  BOTH_N(type, name, n, __VA_ARGS__)
#define OLD(type, name, attribute)
#define OLD_N(type, name, n, ...)
#endif

static const struct property {
    uint16_t offset, size, attributes[3];
} properties[] = {
#define BOTH(type, name, attribute) { offsetof(device_prop, name), sizeof(type), { attribute } },
#define BOTH_N(type, name, n, ...)  { offsetof(device_prop, name), sizeof(type), { __VA_ARGS__ } },
#include "device_prop.def"
};

static void fill_property(device_prop *p, const struct property *f, int device)
{
    for (size_t i = 0; i < HW_COUNTOF(f->attributes) && f->attributes[i]; i++) {
        char *at = (char *)p + f->offset + i * f->size;
        int value = hw_device_fact(device, f->attributes[i]);
        size_t wide = value < 0 ? 0 : (size_t)value;
        if (f->size == sizeof wide)
            memcpy(at, &wide, sizeof wide);
        else
            memcpy(at, &value, sizeof value);
    }
}

static int fill_properties(device_prop *p, int device)
{
    int error = hw_cudart_init();
    if (error)
        return error;
    if (device < 0 || device >= hw_device_count())
        return hw_cudaErrorInvalidDevice;
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < HW_COUNTOF(properties); i++)
        fill_property(p, &properties[i], device);
    error = hw_cu.device_name(p->name, sizeof p->name, device);
    if (!error)
        error = hw_cu.device_uuid(p->uuid, device);
    if (!error)
        error = hw_cu.device_total_mem(&p->totalGlobalMem, device);
    return error;
}

#if HW_CUDART_MAJOR == 12
HW_CUDA(int, cudaGetDeviceProperties_v2, device_prop *p, int device)
{
    return hw_note(p ? fill_properties(p, device) : hw_cudaErrorInvalidValue);
}

/* The name without a suffix keeps the shorter layout of runtimes before 12. */
HW_CUDA(int, cudaGetDeviceProperties, void *p, int device)
{
    device_prop full;
    if (!p)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(fill_properties(&full, device));
    memcpy(p, &full, offsetof(device_prop, hostRegisterSupported));
    return hw_cudaSuccess;
}
#else
HW_CUDA(int, cudaGetDeviceProperties, device_prop *p, int device)
{
    return hw_note(p ? fill_properties(p, device) : hw_cudaErrorInvalidValue);
}
#endif

/* The first device that has what is asked for (0: not asked), else the first. */
HW_CUDA(int, cudaChooseDevice, int *device, const device_prop *want)
{
    if (!device || !want)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_init());
    *device = 0;
    for (int i = 0; i < hw_device_count(); i++) {
        device_prop have;
        HW_CUDA_TRY(fill_properties(&have, i));
        if (have.major * 10 + have.minor >= want->major * 10 + want->minor &&
            have.totalGlobalMem >= want->totalGlobalMem &&
            have.multiProcessorCount >= want->multiProcessorCount) {
            *device = i;
            break;
        }
    }
    return hw_cudaSuccess;
}

/* ---- prefetch and advice ---- */

static int prefetch(const void *p, size_t n, hw_cudaMemLocation to, unsigned flags,
                    hw_cudaStream_t stream)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.prefetch((uintptr_t)p, n, to, flags, stream));
}

static int advise(const void *p, size_t n, int advice, hw_cudaMemLocation where)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.advise((uintptr_t)p, n, advice, where));
}

#if HW_CUDART_MAJOR == 12
static hw_cudaMemLocation location(int device)
{
    if (device == hw_cudaCpuDeviceId)
        return (hw_cudaMemLocation){ hw_cudaMemLocationTypeHost, 0 };
    return (hw_cudaMemLocation){ hw_cudaMemLocationTypeDevice, device };
}

HW_CUDA(int, cudaMemPrefetchAsync, const void *p, size_t n, int device, hw_cudaStream_t stream)
{
    return prefetch(p, n, location(device), 0, stream);
}

HW_PER_THREAD(int, cudaMemPrefetchAsync_ptsz,
              (const void *p, size_t n, int device, hw_cudaStream_t stream),
              prefetch(p, n, location(device), 0, hw_per_thread(stream)))

HW_CUDA(int, cudaMemPrefetchAsync_v2, const void *p, size_t n, hw_cudaMemLocation to,
        unsigned flags, hw_cudaStream_t stream)
{
    return prefetch(p, n, to, flags, stream);
}

HW_PER_THREAD(int, cudaMemPrefetchAsync_v2_ptsz,
              (const void *p, size_t n, hw_cudaMemLocation to, unsigned flags,
               hw_cudaStream_t stream),
              prefetch(p, n, to, flags, hw_per_thread(stream)))

HW_CUDA(int, cudaMemAdvise, const void *p, size_t n, int advice, int device)
{
    return advise(p, n, advice, location(device));
}

HW_CUDA(int, cudaMemAdvise_v2, const void *p, size_t n, int advice, hw_cudaMemLocation where)
{
    return advise(p, n, advice, where);
}
#else
HW_CUDA(int, cudaMemPrefetchAsync, const void *p, size_t n, hw_cudaMemLocation to, unsigned flags,
        hw_cudaStream_t stream)
{
    return prefetch(p, n, to, flags, stream);
}

HW_PER_THREAD(int, cudaMemPrefetchAsync_ptsz,
              (const void *p, size_t n, hw_cudaMemLocation to, unsigned flags,
               hw_cudaStream_t stream),
              prefetch(p, n, to, flags, hw_per_thread(stream)))

HW_CUDA(int, cudaMemAdvise, const void *p, size_t n, int advice, hw_cudaMemLocation where)
{
    return advise(p, n, advice, where);
}
#endif

#if HW_CUDART_MAJOR == 12
/* Names that runtime 13 no longer has. */
HW_EXPORT int cudaDeviceSynchronize(void);
HW_EXPORT int cudaDeviceReset(void);
HW_EXPORT int cudaDeviceGetLimit(size_t *value, int limit);
HW_EXPORT int cudaDeviceSetLimit(int limit, size_t value);
HW_EXPORT int cudaDeviceGetCacheConfig(int *config);
HW_EXPORT int cudaDeviceSetCacheConfig(int config);

HW_CUDA(int, cudaThreadSynchronize, void)
{
    return cudaDeviceSynchronize();
}

HW_CUDA(int, cudaThreadExit, void)
{
    return cudaDeviceReset();
}

HW_CUDA(int, cudaThreadGetLimit, size_t *value, int limit)
{
    return cudaDeviceGetLimit(value, limit);
}

HW_CUDA(int, cudaThreadSetLimit, int limit, size_t value)
{
    return cudaDeviceSetLimit(limit, value);
}

HW_CUDA(int, cudaThreadGetCacheConfig, int *config)
{
    return cudaDeviceGetCacheConfig(config);
}

HW_CUDA(int, cudaThreadSetCacheConfig, int config)
{
    return cudaDeviceSetCacheConfig(config);
}
#endif

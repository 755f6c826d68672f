/* SPDX-License-Identifier: Apache-2.0
 * The first CUDA call, devices and the current context of each host thread.
 */
#include "state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEVICE_MAX = 64, ATTRIBUTE_MAX = 160, LOADING_EAGER = 1, OLDEST_DRIVER = 12000 };

static struct {
    pthread_mutex_t lock;
    atomic_int state; /* 0: not tried, 1: done; error is then final */
    int error, n_devices;
    bool eager;
    _Atomic(void *) primary[DEVICE_MAX]; /* NULL: not retained */
    _Atomic(void *) ended[DEVICE_MAX];   /* the primary context that cudaDeviceReset ended */
    atomic_int facts[DEVICE_MAX][ATTRIBUTE_MAX]; /* value + 1; 0: not read yet */
} world = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local int thread_device;

/* The driver's threads do not survive a fork: in the child every call fails from then on. */
static void after_fork(void)
{
    world.error = hw_cudaErrorInitializationError;
}

static int init_driver(void)
{
    int version = 0, mode = 0;
    int error = hw_driver_api_load();
    if (!error)
        error = hw_cu.driver_version(&version);
    if (!error && version < OLDEST_DRIVER)
        error = hw_cudaErrorInsufficientDriver;
    if (!error)
        error = hw_cu.init(0);
    if (!error)
        error = hw_cu.device_count(&world.n_devices);
    if (error)
        return error;
    if (world.n_devices > DEVICE_MAX)
        world.n_devices = DEVICE_MAX;
    pthread_atfork(NULL, NULL, after_fork);
    const char *lazy = getenv("CUDA_ENABLE_MODULE_LAZY_LOADING");
    world.eager =
        hw_cu.module_loading_mode(&mode) == 0 && mode == LOADING_EAGER && !(lazy && lazy[0] == '1');
    return hw_cudaSuccess;
}

int hw_cudart_init(void)
{
    if (!atomic_load_explicit(&world.state, memory_order_acquire)) {
        pthread_mutex_lock(&world.lock);
        if (!atomic_load_explicit(&world.state, memory_order_relaxed)) {
            world.error = init_driver();
            atomic_store_explicit(&world.state, 1, memory_order_release);
        }
        pthread_mutex_unlock(&world.lock);
    }
    if (world.error)
        return world.error;
    return hw_early_modules_pending() ? hw_load_early_modules(world.eager) : hw_cudaSuccess;
}

bool hw_cudart_usable(void)
{
    return atomic_load_explicit(&world.state, memory_order_acquire) && !world.error;
}

int hw_device_count(void)
{
    return world.n_devices;
}

int hw_primary_context(int device, void **ctx)
{
    int error = hw_cudaSuccess;
    if (device < 0 || device >= world.n_devices)
        return hw_cudaErrorInvalidDevice;
    *ctx = atomic_load(&world.primary[device]);
    if (*ctx)
        return error;
    pthread_mutex_lock(&world.lock);
    *ctx = atomic_load(&world.primary[device]);
    if (!*ctx)
        error = hw_cu.primary_retain(ctx, device);
    if (!error)
        atomic_store(&world.primary[device], *ctx);
    pthread_mutex_unlock(&world.lock);
    return error;
}

static int make_current(int device)
{
    void *ctx;
    int error = hw_primary_context(device, &ctx);
    return error ? error : hw_cu.ctx_set_current(ctx);
}

int hw_cudart_enter(void)
{
    void *ctx = NULL;
    int error = hw_cudart_init();
    if (!error && world.n_devices == 0)
        error = hw_cudaErrorDevicesUnavailable;
    if (!error)
        error = hw_cu.ctx_get_current(&ctx);
    if (error)
        return error;
    /* A thread may still hold the primary context that another one's reset has ended. */
    if (ctx && (ctx != atomic_load(&world.ended[thread_device]) ||
                ctx == atomic_load(&world.primary[thread_device])))
        return hw_cudaSuccess;
    return make_current(thread_device);
}

int hw_current_device(int *device)
{
    void *ctx = NULL;
    *device = thread_device;
    int error = hw_cudart_init();
    if (!error)
        error = hw_cu.ctx_get_current(&ctx);
    if (error || !ctx)
        return error;
    return hw_cu.ctx_get_device(device);
}

int hw_device_fact(int device, int attribute)
{
    if (device < 0 || device >= world.n_devices || attribute >= ATTRIBUTE_MAX)
        return 0;
    int kept = atomic_load_explicit(&world.facts[device][attribute], memory_order_relaxed);
    if (kept)
        return kept - 1;
    int value = 0;
    if (hw_cu.device_attribute(&value, attribute, device) != 0)
        return 0;
    if (value >= 0 && value < INT32_MAX)
        atomic_store_explicit(&world.facts[device][attribute], value + 1, memory_order_relaxed);
    return value;
}

HW_CUDA(int, cudaGetDeviceCount, int *count)
{
    if (!count)
        return hw_note(hw_cudaErrorInvalidValue);
    *count = 0;
    HW_CUDA_TRY(hw_cudart_init());
    *count = world.n_devices;
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaGetDevice, int *device)
{
    if (!device)
        return hw_note(hw_cudaErrorInvalidValue);
    return hw_note(hw_current_device(device));
}

HW_CUDA(int, cudaSetDevice, int device)
{
    HW_CUDA_TRY(hw_cudart_init());
    if (device < 0 || device >= world.n_devices)
        return hw_note(hw_cudaErrorInvalidDevice);
    thread_device = device;
    return hw_note(make_current(device));
}

HW_CUDA(int, cudaInitDevice, int device, unsigned device_flags, unsigned flags)
{
    HW_CUDA_TRY(hw_cudart_init());
    if (device < 0 || device >= world.n_devices)
        return hw_note(hw_cudaErrorInvalidDevice);
    if (flags & ~(unsigned)hw_cudaInitDeviceFlagsAreValid)
        return hw_note(hw_cudaErrorInvalidValue);
    if (flags)
        HW_CUDA_TRY(hw_cu.primary_set_flags(device, device_flags & 0x1f));
    void *ctx;
    return hw_note(hw_primary_context(device, &ctx));
}

HW_CUDA(int, cudaSetValidDevices, int *devices, int n)
{
    HW_CUDA_TRY(hw_cudart_init());
    if (n < 0 || (n && !devices))
        return hw_note(hw_cudaErrorInvalidValue);
    for (int i = 0; i < n; i++)
        if (devices[i] < 0 || devices[i] >= world.n_devices)
            return hw_note(hw_cudaErrorInvalidDevice);
    if (n)
        thread_device = devices[0];
    return hw_cudaSuccess;
}

HW_CUDA(int, cudaSetDeviceFlags, unsigned flags)
{
    int device;
    if (flags & ~(unsigned)hw_cudaDeviceMask || (flags & 7) == 7 || (flags & 7) == 3)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_current_device(&device));
    return hw_note(hw_cu.primary_set_flags(device, flags));
}

HW_CUDA(int, cudaGetDeviceFlags, unsigned *flags)
{
    int device, active;
    if (!flags)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_current_device(&device));
    return hw_note(hw_cu.primary_state(device, flags, &active));
}

HW_CUDA(int, cudaDeviceSynchronize, void)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.ctx_synchronize());
}

HW_CUDA(int, cudaDeviceReset, void)
{
    int device;
    HW_CUDA_TRY(hw_current_device(&device));
    void *ctx = atomic_exchange(&world.primary[device], NULL);
    if (!ctx)
        return hw_cudaSuccess;
    atomic_store(&world.ended[device], ctx);
    HW_CUDA_TRY(hw_cu.primary_reset(device));
    return hw_note(hw_cu.ctx_set_current(NULL));
}

HW_CUDA(int, cudaDriverGetVersion, int *version)
{
    if (!version)
        return hw_note(hw_cudaErrorInvalidValue);
    *version = 0;
    int error = hw_cudart_init();
    if (error == hw_cudaErrorInsufficientDriver)
        return hw_cudaSuccess; /* no driver: version 0 */
    return hw_note(hw_cu.driver_version(version));
}

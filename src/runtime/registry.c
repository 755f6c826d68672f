/* SPDX-License-Identifier: Apache-2.0
 * Registration: what nvcc's host code says at program start, and modules loaded when first used.
 *
 * A translation unit's constructor calls __cudaRegisterFatBinary, then once a kernel and variable
 * on its handle, then __cudaRegisterFatBinaryEnd. No driver call happens there.
 */
#include "state.h"

#include "pointer_map.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct module {
    struct module *next;
    void *wrapper;
    void *library; /* the driver's; NULL: not loaded */
    int error;     /* of loading: final */
    bool early;    /* has managed variables */
    hw_kernel *kernels;
    hw_variable *variables;
} module;

struct hw_kernel {
    hw_kernel *next; /* in its module */
    module *module;
    const void *stub;
    const char *name;       /* borrowed: lies in the program */
    _Atomic(void *) handle; /* the driver's */
};

struct hw_variable {
    hw_variable *next;
    module *module;
    const void *shadow;
    const char *name; /* borrowed */
    size_t size;
    void **managed_pointer; /* where host code finds a managed variable; NULL: another kind */
};

enum { OPTION_BINARY_IS_PRESERVED = 1 };

static struct {
    pthread_mutex_t lock;
    module *modules;
    pointer_map kernels;   /* by host stub, and by the hw_kernel itself */
    pointer_map variables; /* by host shadow */
    atomic_bool pending;   /* a module has ended its registration and may want early loading */
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *new_object(size_t size)
{
    void *p = calloc(1, size);
    if (!p)
        hw_oom(size);
    return p;
}

#ifdef HW_CUDART_STATIC
/* Tells the takeover library that a stripped program's static runtime is this one. */
__attribute__((section(".halfwarp_cudart"), used)) static const char mark[] = HW_VERSION;
#endif

/* ---- loading; the lock is held ---- */

static int known_symbol(int error)
{
    return error == hw_cudaErrorSymbolNotFound ? hw_cudaErrorInvalidSymbol : error;
}

/* A managed variable has one address for all devices, which host code reads through a pointer. */
static int place_managed(hw_variable *v)
{
    size_t size = 0;
    uint64_t address = 0;
    int error = hw_cu.library_managed(&address, &size, v->module->library, v->name);
    if (error)
        return known_symbol(error);
    *v->managed_pointer = (void *)(uintptr_t)address;
    pointer_map_set(&registry.variables, *v->managed_pointer, v);
    return hw_cudaSuccess;
}

/* Any other has an address in each context: asked for each time. */
static int locate(const hw_variable *v, uint64_t *address)
{
    size_t size = 0;
    if (v->managed_pointer) {
        *address = (uintptr_t)*v->managed_pointer;
        return hw_cudaSuccess;
    }
    return known_symbol(hw_cu.library_global(address, &size, v->module->library, v->name));
}

static int load(module *m)
{
    int options[] = { OPTION_BINARY_IS_PRESERVED };
    void *values[] = { (void *)(uintptr_t)1 };
    if (m->library || m->error)
        return m->error;
    m->error = hw_cu.library_load(&m->library, m->wrapper, NULL, NULL, 0, options, values, 1);
    for (hw_variable *v = m->variables; v && !m->error; v = v->next)
        if (v->managed_pointer)
            m->error = place_managed(v);
    return m->error;
}

static int kernel_handle(hw_kernel *k, void **handle)
{
    int error = load(k->module);
    if (!error)
        error = hw_cu.library_kernel(handle, k->module->library, k->name);
    if (!error)
        atomic_store_explicit(&k->handle, *handle, memory_order_release);
    return error == hw_cudaErrorSymbolNotFound ? hw_cudaErrorInvalidDeviceFunction : error;
}

/* ---- what the other files ask ---- */

bool hw_early_modules_pending(void)
{
    return atomic_load_explicit(&registry.pending, memory_order_acquire);
}

int hw_load_early_modules(bool all)
{
    int error = hw_cudaSuccess;
    pthread_mutex_lock(&registry.lock);
    atomic_store_explicit(&registry.pending, false, memory_order_relaxed);
    for (module *m = registry.modules; m; m = m->next) {
        if (!m->early && !all)
            continue;
        int this_error = load(m);
        if (all && this_error) /* lazily, an error belongs to the first use */
            error = this_error;
    }
    pthread_mutex_unlock(&registry.lock);
    return error;
}

int hw_find_kernel(const void *function, void **handle)
{
    int error = hw_cudaSuccess;
    if (!function)
        return hw_cudaErrorInvalidDeviceFunction;
    pthread_mutex_lock(&registry.lock);
    hw_kernel *k = pointer_map_get(&registry.kernels, function);
    *handle = k ? atomic_load_explicit(&k->handle, memory_order_acquire) : (void *)function;
    if (!*handle)
        error = kernel_handle(k, handle);
    pthread_mutex_unlock(&registry.lock);
    return error;
}

const char *hw_kernel_name(const void *function)
{
    pthread_mutex_lock(&registry.lock);
    hw_kernel *k = pointer_map_get(&registry.kernels, function);
    pthread_mutex_unlock(&registry.lock);
    return k ? k->name : NULL;
}

int hw_find_variable(const void *symbol, uint64_t *address, size_t *size)
{
    int error = hw_cudaErrorInvalidSymbol;
    pthread_mutex_lock(&registry.lock);
    hw_variable *v = pointer_map_get(&registry.variables, symbol);
    if (v) {
        error = load(v->module);
        if (!error)
            error = locate(v, address);
        *size = v->size;
    }
    pthread_mutex_unlock(&registry.lock);
    return error;
}

/* ---- what host code calls ---- */

HW_CUDA(void **, __cudaRegisterFatBinary, void *wrapper)
{
    module *m = new_object(sizeof *m);
    m->wrapper = wrapper;
    pthread_mutex_lock(&registry.lock);
    module **last = &registry.modules;
    while (*last)
        last = &(*last)->next;
    *last = m;
    pthread_mutex_unlock(&registry.lock);
    return (void **)m;
}

HW_CUDA(void, __cudaRegisterFatBinaryEnd, void **handle)
{
    (void)handle;
    atomic_store_explicit(&registry.pending, true, memory_order_release);
}

HW_CUDA(void, __cudaRegisterFunction, void **handle, const char *stub, char *device_fun,
        const char *name, int thread_limit, void *tid, void *bid, void *block, void *grid,
        int *warp_size)
{
    (void)device_fun, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid;
    (void)warp_size;
    hw_kernel *k = new_object(sizeof *k);
    k->module = (module *)handle;
    k->stub = stub;
    k->name = name;
    pthread_mutex_lock(&registry.lock);
    k->next = k->module->kernels;
    k->module->kernels = k;
    pointer_map_set(&registry.kernels, stub, k);
    pointer_map_set(&registry.kernels, k, k);
    pthread_mutex_unlock(&registry.lock);
}

static void register_variable(module *m, const void *shadow, const char *name, size_t size,
                              void **managed)
{
    hw_variable *v = new_object(sizeof *v);
    *v = (hw_variable){ .module = m, .shadow = shadow, .name = name, .size = size };
    v->managed_pointer = managed;
    pthread_mutex_lock(&registry.lock);
    v->next = m->variables;
    m->variables = v;
    m->early |= managed != NULL;
    pointer_map_set(&registry.variables, shadow, v);
    pthread_mutex_unlock(&registry.lock);
}

HW_CUDA(void, __cudaRegisterVar, void **handle, char *shadow, char *device_address,
        const char *name, int ext, size_t size, int constant, int global)
{
    (void)device_address, (void)ext, (void)constant, (void)global;
    register_variable((module *)handle, shadow, name, size, NULL);
}

HW_CUDA(void, __cudaRegisterHostVar, void **handle, const char *name, char *shadow, size_t size)
{
    register_variable((module *)handle, shadow, name, size, NULL);
}

HW_CUDA(void, __cudaRegisterManagedVar, void **handle, void **pointer, char *device_address,
        const char *name, int ext, size_t size, int constant, int global)
{
    (void)device_address, (void)ext, (void)constant, (void)global;
    register_variable((module *)handle, pointer, name, size, pointer);
}

/* The first host access to a managed variable of the unit: afterwards its pointer is set. */
HW_CUDA(char, __cudaInitModule, void **handle)
{
    int error = hw_cudart_enter();
    if (!error) {
        pthread_mutex_lock(&registry.lock);
        error = load((module *)handle);
        pthread_mutex_unlock(&registry.lock);
    }
    hw_note(error);
    return error == hw_cudaSuccess;
}

static void forget(module *m)
{
    for (hw_kernel *k = m->kernels, *next; k; k = next) {
        next = k->next;
        if (pointer_map_get(&registry.kernels, k->stub) == k)
            pointer_map_remove(&registry.kernels, k->stub);
        pointer_map_remove(&registry.kernels, k);
        free(k);
    }
    for (hw_variable *v = m->variables, *next; v; v = next) {
        next = v->next;
        if (pointer_map_get(&registry.variables, v->shadow) == v)
            pointer_map_remove(&registry.variables, v->shadow);
        if (v->managed_pointer)
            pointer_map_remove(&registry.variables, *v->managed_pointer);
        free(v);
    }
}

/* Work that still runs must not be waited for here: the program may be ending with a kernel that
 * never does, and then ends with it, as on a device. Its module stays. */
static bool is_busy(void)
{
    enum { NOT_READY = 600 };
    void *const legacy = (void *)(uintptr_t)1; /* CU_STREAM_LEGACY */
    return (int)hw_cu.stream_query(legacy) == NOT_READY;
}

HW_CUDA(void, __cudaUnregisterFatBinary, void **handle)
{
    pthread_mutex_lock(&registry.lock);
    module **at = &registry.modules;
    while (*at && *at != (module *)handle)
        at = &(*at)->next;
    module *m = *at;
    if (m) {
        *at = m->next;
        if (m->library && hw_cudart_usable() && !is_busy())
            hw_cu.library_unload(m->library);
        forget(m);
        free(m);
    }
    pthread_mutex_unlock(&registry.lock);
}

HW_CUDA(int, __cudaGetKernel, hw_cudaKernel_t *kernel, const void *stub)
{
    if (!kernel)
        return hw_note(hw_cudaErrorInvalidValue);
    pthread_mutex_lock(&registry.lock);
    *kernel = pointer_map_get(&registry.kernels, stub);
    pthread_mutex_unlock(&registry.lock);
    return *kernel ? hw_cudaSuccess : hw_note(hw_cudaErrorInvalidDeviceFunction);
}

/* SPDX-License-Identifier: Apache-2.0
 * Devices: attributes, limits, cache preferences, peers, identification.
 */
#include "state.h"

static int check_device(int device)
{
    int error = hw_cudart_init();
    if (!error && (device < 0 || device >= hw_device_count()))
        error = hw_cudaErrorInvalidDevice;
    return error;
}

HW_CUDA(int, cudaDeviceGetAttribute, int *value, int attribute, int device)
{
    if (!value)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(check_device(device));
    return hw_note(hw_cu.device_attribute(value, attribute, device));
}

HW_CUDA(int, cudaDeviceGetLimit, size_t *value, int limit)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.ctx_get_limit(value, limit));
}

HW_CUDA(int, cudaDeviceSetLimit, int limit, size_t value)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.ctx_set_limit(limit, value));
}

HW_CUDA(int, cudaDeviceGetCacheConfig, int *config)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.ctx_get_cache(config));
}

HW_CUDA(int, cudaDeviceSetCacheConfig, int config)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.ctx_set_cache(config));
}

HW_CUDA(int, cudaDeviceGetSharedMemConfig, int *config)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.ctx_get_shared(config));
}

HW_CUDA(int, cudaDeviceSetSharedMemConfig, int config)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.ctx_set_shared(config));
}

HW_CUDA(int, cudaDeviceGetStreamPriorityRange, int *least, int *greatest)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.ctx_priority_range(least, greatest));
}

HW_CUDA(int, cudaCtxResetPersistingL2Cache, void)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.ctx_reset_l2());
}

HW_CUDA(int, cudaDeviceFlushGPUDirectRDMAWrites, int target, int scope)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.flush_rdma(target, scope));
}

HW_CUDA(int, cudaDeviceGetByPCIBusId, int *device, const char *id)
{
    if (!device || !id)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(hw_cudart_init());
    return hw_note(hw_cu.device_by_pci(device, id));
}

HW_CUDA(int, cudaDeviceGetPCIBusId, char *id, int len, int device)
{
    if (!id || len <= 0)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(check_device(device));
    return hw_note(hw_cu.device_pci(id, len, device));
}

/* ---- peers ---- */

HW_CUDA(int, cudaDeviceCanAccessPeer, int *can, int device, int peer)
{
    if (!can)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(check_device(device));
    HW_CUDA_TRY(check_device(peer));
    return hw_note(hw_cu.can_access_peer(can, device, peer));
}

HW_CUDA(int, cudaDeviceEnablePeerAccess, int peer, unsigned flags)
{
    void *ctx;
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_primary_context(peer, &ctx));
    return hw_note(hw_cu.ctx_enable_peer(ctx, flags));
}

HW_CUDA(int, cudaDeviceDisablePeerAccess, int peer)
{
    void *ctx;
    HW_CUDA_TRY(hw_cudart_enter());
    HW_CUDA_TRY(hw_primary_context(peer, &ctx));
    return hw_note(hw_cu.ctx_disable_peer(ctx));
}

HW_CUDA(int, cudaDeviceGetP2PAttribute, int *value, int attribute, int from, int to)
{
    if (!value)
        return hw_note(hw_cudaErrorInvalidValue);
    HW_CUDA_TRY(check_device(from));
    HW_CUDA_TRY(check_device(to));
    return hw_note(hw_cu.p2p_attribute(value, attribute, from, to));
}

/* ---- profiler ---- */

HW_CUDA(int, cudaProfilerStart, void)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.profiler_start());
}

HW_CUDA(int, cudaProfilerStop, void)
{
    HW_CUDA_TRY(hw_cudart_enter());
    return hw_note(hw_cu.profiler_stop());
}

/* ---- the driver's functions by name ---- */

static int entry_point(const char *name, void **fn, unsigned version, uint64_t flags, int *status)
{
    int found = 0;
    if (!name || !fn)
        return hw_note(hw_cudaErrorInvalidValue);
    *fn = NULL;
    HW_CUDA_TRY(hw_cudart_init());
    int error = hw_cu.get_proc_address(name, fn, (int)version, flags, &found);
    if (status)
        *status = found;
    /* With a place for the status, a missing function is no error of the call. */
    if (status && (error == hw_cudaErrorSymbolNotFound || found))
        return hw_cudaSuccess;
    return hw_note(error);
}

enum { ENABLE_PER_THREAD = 2, ENABLE_LEGACY = 1 };

static uint64_t per_thread_flags(uint64_t flags)
{
    return flags & ENABLE_LEGACY ? flags : flags | ENABLE_PER_THREAD;
}

HW_CUDA(int, cudaGetDriverEntryPointByVersion, const char *name, void **fn, unsigned version,
        unsigned long long flags, int *status)
{
    return entry_point(name, fn, version, flags, status);
}

HW_CUDA(int, cudaGetDriverEntryPointByVersion_ptsz, const char *name, void **fn, unsigned version,
        unsigned long long flags, int *status)
{
    return entry_point(name, fn, version, per_thread_flags(flags), status);
}

HW_CUDA(int, cudaGetDriverEntryPoint, const char *name, void **fn, unsigned long long flags,
        int *status)
{
    return entry_point(name, fn, (unsigned)hw_runtime_version(), flags, status);
}

HW_CUDA(int, cudaGetDriverEntryPoint_ptsz, const char *name, void **fn, unsigned long long flags,
        int *status)
{
    return entry_point(name, fn, (unsigned)hw_runtime_version(), per_thread_flags(flags), status);
}

/* NVIDIA's private tables are not served: not found, whatever the identifier. */
HW_CUDA(int, cudaGetExportTable, const void **table, const void *id)
{
    (void)id;
    if (table)
        *table = NULL;
    return hw_note(hw_cudaErrorSymbolNotFound);
}

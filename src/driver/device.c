/* SPDX-License-Identifier: Apache-2.0
 * Devices: cuDevice*, peer access between them. (CUDA Driver API, "Device Management".)
 */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>

CUresult hw_cu_find_gpu(CUdevice dev, hw_cu_gpu **out)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(dev >= 0 && dev < hw_cu.ngpus, INVALID_DEVICE);
    *out = &hw_cu.gpus[dev];
    return CUDA_SUCCESS;
}

CUresult hw_cu_gpu_mem(hw_cu_gpu *g, hw_mem **out)
{
    static const char *const bounds[] = { "device", "exact", NULL };
    hw_status s = HW_OK;
    pthread_mutex_lock(&hw_cu.lock);
    if (!g->mem) {
        hw_diag *d = hw_diag_new(hw_cu.arena);
        bool exact = hw_cu_env_choice("HALFWARP_BOUNDS", hw_cu.env.bounds, bounds) == 1;
        hw_mem_set_page(exact ? 0 : HW_CU_PAGE);
        hw_mem *mem = NULL;
        s = hw_mem_new(g->model->memory.global_bytes, &mem, d);
        g->mem = mem;
        if (s != HW_OK)
            hw_cu_notice_diag("device memory", d);
    }
    pthread_mutex_unlock(&hw_cu.lock);
    *out = g->mem;
    return hw_cu_result(s);
}

/* Attributes that are of this process's device, not of its model. */
static bool own_attribute(const hw_cu_gpu *g, int which, int *value)
{
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = g->ordinal + 1;
        return true;
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
        *value = g->ordinal;
        return true;
    default:
        return false;
    }
}

int hw_cu_attribute(const hw_cu_gpu *g, CUdevice_attribute which)
{
    int v = 0;
    if (!own_attribute(g, (int)which, &v) && hw_device_attribute(g->model, (int)which, &v) != HW_OK)
        v = 0;
    return v;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_ready());
    CU_NEED(device, INVALID_VALUE);
    CU_TRY(hw_cu_find_gpu(ordinal, &g));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(count, INVALID_VALUE);
    *count = hw_cu.ngpus;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(name && len > 0, INVALID_VALUE);
    snprintf(name, (size_t)len, "%s", g->model->title);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(uuid, INVALID_VALUE);
    *uuid = g->uuid;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetLuid(char *luid, unsigned int *node_mask, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(luid && node_mask, INVALID_VALUE);
    return CUDA_ERROR_NOT_SUPPORTED; /* LUIDs are Windows's */
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(bytes, INVALID_VALUE);
    *bytes = g->model->memory.global_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(value, INVALID_VALUE);
    if (own_attribute(g, (int)which, value))
        return CUDA_SUCCESS;
    return hw_cu_result(hw_device_attribute(g->model, (int)which, value));
}

CUresult cuDeviceGetProperties(CUdevprop *p, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(p, INVALID_VALUE);
    for (int i = 0; i < 3; i++) {
        p->maxThreadsDim[i] = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
        p->maxGridSize[i] = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
    }
    p->maxThreadsPerBlock = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    p->sharedMemPerBlock = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    p->totalConstantMemory = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    p->SIMDWidth = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    p->memPitch = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    p->regsPerBlock = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    p->clockRate = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    p->textureAlign = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(major && minor, INVALID_VALUE);
    *major = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(supported && type == CU_EXEC_AFFINITY_TYPE_SM_COUNT, INVALID_VALUE);
    *supported = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *text, int len, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(text && len > 0, INVALID_VALUE);
    int n = snprintf(text, (size_t)len, "%04x:%02x:%02x.0",
                     hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
                     hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
                     hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
    return n < len ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Any of domain:bus:device.function, domain:bus:device, bus:device.function, all hexadecimal. */
CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *text)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(dev && text, INVALID_VALUE);
    unsigned domain = 0, bus = 0, device = 0;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &device) != 3) {
        domain = 0;
        CU_NEED(sscanf(text, "%x:%x", &bus, &device) == 2, INVALID_VALUE);
    }
    for (int i = 0; i < hw_cu.ngpus; i++) {
        const hw_cu_gpu *g = &hw_cu.gpus[i];
        if ((int)domain == hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) &&
            (int)bus == hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) &&
            (int)device == hw_cu_attribute(g, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

/* ---- peers: all devices of the process share one address range ---- */

CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
    hw_cu_gpu *a, *b;
    CU_TRY(hw_cu_find_gpu(dev, &a));
    CU_TRY(hw_cu_find_gpu(peer, &b));
    CU_NEED(can, INVALID_VALUE);
    *can = a != b;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute which, CUdevice src,
                                 CUdevice dst)
{
    hw_cu_gpu *a, *b;
    CU_TRY(hw_cu_find_gpu(src, &a));
    CU_TRY(hw_cu_find_gpu(dst, &b));
    CU_NEED(a != b, INVALID_DEVICE);
    CU_NEED(value && which >= CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
                which <= CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED,
            INVALID_VALUE);
    *value = which == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
             which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return CUDA_SUCCESS;
}

/* One bit a context: which devices' memory it was given access to. */
static CUresult peer_bit(CUcontext peer, hw_cu_context **mine, uint64_t *bit)
{
    hw_cu_context *other;
    CU_TRY(hw_cu_current(mine));
    CU_TRY(hw_cu_find_context(peer, &other));
    CU_NEED(other->gpu != (*mine)->gpu, INVALID_DEVICE);
    *bit = 1ull << other->gpu->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    hw_cu_context *ctx;
    uint64_t bit;
    CU_NEED(flags == 0, INVALID_VALUE);
    CU_TRY(peer_bit(peer, &ctx, &bit));
    CU_NEED((atomic_fetch_or(&ctx->peers, bit) & bit) == 0, PEER_ACCESS_ALREADY_ENABLED);
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    hw_cu_context *ctx;
    uint64_t bit;
    CU_TRY(peer_bit(peer, &ctx, &bit));
    CU_NEED((atomic_fetch_and(&ctx->peers, ~bit) & bit) != 0, PEER_ACCESS_NOT_ENABLED);
    return CUDA_SUCCESS;
}

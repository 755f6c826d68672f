/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions: kernels of modules (CUfunction) and of libraries (CUkernel), their attributes and
 * parameters, occupancy. (CUDA Driver API, "Execution Control", "Library Management", "Occupancy".)
 */
#include "driver.h"

#include <stdlib.h>

/* ---- handles ---- */

static hw_status build_ir(void *ctx, hw_arena *a, hw_wir_module **out, hw_diag *d)
{
    hw_cu_function *f = ctx;
    return hw_ptx_lower(a, f->program->ptx, f->index, out, d);
}

/* For the background: a function that holds on to its program. */
static void *keep(void *ctx)
{
    const hw_cu_function *f = ctx;
    hw_cu_function *kept = calloc(1, sizeof *kept);
    if (kept) {
        __atomic_add_fetch(&f->program->refs, 1, __ATOMIC_RELAXED);
        kept->program = f->program;
        kept->index = f->index;
    }
    return kept;
}

static void drop(void *ctx)
{
    hw_cu_function *kept = ctx;
    hw_cu_program_release(kept->program);
    free(kept);
}

/* The module's key is a strong hash of its texts; folding the kernel's name in keeps kernels of one module apart. */
void hw_cu_source_key(const hw_cu_program *p, uint32_t kernel, uint8_t key[32])
{
    const char *text = p->ptx->kernels[kernel].name;
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t part, name = hw_hash64(text, strlen(text), i + 1);
        memcpy(&part, p->ptx->key + 8 * i, sizeof part);
        part ^= name;
        memcpy(key + 8 * i, &part, sizeof part);
    }
}

void hw_cu_function_init(hw_cu_function *f, hw_cu_program *p, uint32_t index)
{
    const hw_ptx_kernel *k = &p->ptx->kernels[index];
    *f = (hw_cu_function){ .program = p, .index = index };
    f->own = (hw_cu_settings){ .max_dynamic_shared = -1, .carveout = -1 };
    f->settings = &f->own;
    f->source =
        (hw_jit_source){ .name = k->name, .build = build_ir, .ctx = f, .keep = keep, .drop = drop };
    hw_cu_source_key(p, index, f->source.key);
}

CUfunction hw_cu_function_handle(hw_cu_function *f)
{
    pthread_mutex_lock(&f->program->lock);
    if (!f->handle)
        f->handle = hw_cu_handle_new(f->kind, f);
    pthread_mutex_unlock(&f->program->lock);
    return f->handle;
}

CUresult hw_cu_find_function(CUfunction handle, hw_cu_function **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_FUNCTION);
    if (!*out)
        *out = hw_cu_handle_get(handle, HW_CU_KERNEL);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult hw_cu_bind(hw_cu_function *f, hw_cu_context *ctx, hw_cu_function **out)
{
    hw_cu_module *m;
    *out = f;
    if (f->kind == HW_CU_FUNCTION) {
        CU_NEED(f->module->ctx == ctx, INVALID_HANDLE);
        return CUDA_SUCCESS;
    }
    CU_TRY(hw_cu_library_module(f->library, ctx, &m));
    *out = &m->functions[f->index];
    return CUDA_SUCCESS;
}

/* A function as the calling thread's context sees it: its device and its settings there. */
typedef struct view {
    hw_cu_function *f;
    const hw_cu_gpu *gpu;
    hw_cu_settings *settings;
    const hw_ptx_kernel *kernel;
} view;

static view view_on(hw_cu_function *f, const hw_cu_gpu *g)
{
    hw_cu_settings *s = f->settings;
    if (f->kind == HW_CU_KERNEL)
        s = &f->library->settings[f->index * (uint32_t)hw_cu.ngpus + (uint32_t)g->ordinal];
    return (view){ f, g, s, &f->program->ptx->kernels[f->index] };
}

static CUresult view_of(CUfunction handle, view *out)
{
    hw_cu_function *f;
    hw_cu_context *ctx;
    CU_TRY(hw_cu_find_function(handle, &f));
    if (f->kind == HW_CU_FUNCTION) {
        *out = view_on(f, f->module->ctx->gpu);
        return CUDA_SUCCESS;
    }
    CU_TRY(hw_cu_current_any(&ctx));
    *out = view_on(f, ctx->gpu);
    return CUDA_SUCCESS;
}

static CUresult view_of_kernel(CUkernel handle, CUdevice dev, view *out)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    hw_cu_function *f = hw_cu_handle_get(handle, HW_CU_KERNEL);
    CU_NEED(f, INVALID_HANDLE);
    *out = view_on(f, g);
    return CUDA_SUCCESS;
}

/* ---- attributes ---- */

static uint32_t optin_bytes(const hw_cu_gpu *g)
{
    uint32_t optin = g->model->occupancy.shared_per_block_optin;
    return optin ? optin : g->model->occupancy.shared_per_block;
}

uint32_t hw_cu_dynamic_limit(const hw_cu_function *f, const hw_cu_gpu *g)
{
    view v = view_on((hw_cu_function *)(uintptr_t)f, g);
    uint32_t fixed = v.kernel->static_shared_bytes, usual = g->model->occupancy.shared_per_block;
    if (v.settings->max_dynamic_shared >= 0)
        return (uint32_t)v.settings->max_dynamic_shared;
    return usual > fixed ? usual - fixed : 0;
}

/* What a compiler gives the smallest kernel. */
enum { LEAST_REGISTERS = 8 };

static int registers_of(const view *v)
{
    uint32_t r = hw_cu_kernel_known(v->f->program, v->f->index)->registers;
    uint32_t most = v->gpu->model->occupancy.max_registers_per_thread;
    uint32_t bound = hw_cu_most_registers(v->f->program, v->f->index);
    if (bound && bound < most)
        most = bound;
    r = r < most ? r : most;
    return (int)(r < LEAST_REGISTERS ? LEAST_REGISTERS : r);
}

static int max_threads_of(const view *v)
{
    uint32_t device = v->gpu->model->compute.max_threads_per_block;
    uint32_t by_registers =
        v->gpu->model->occupancy.registers_per_block / (uint32_t)registers_of(v) / 32 * 32;
    uint32_t n = device < by_registers ? device : by_registers;
    return (int)(v->kernel->max_threads && v->kernel->max_threads < n ? v->kernel->max_threads : n);
}

static int shared_of(const view *v)
{
    return (int)v->kernel->static_shared_bytes;
}

static int constant_of(const view *v)
{
    const hw_ptx_module *ptx = v->f->program->ptx;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ptx->nvariables; i++) {
        sum += ptx->variables[i].space == HW_PTX_CONST ? ptx->variables[i].size : 0;
    }
    return (int)sum;
}

static int local_of(const view *v)
{
    return (int)hw_cu_kernel_known(v->f->program, v->f->index)->local_bytes;
}

static int ptx_version_of(const view *v)
{
    return (int)v->kernel->target;
}

static int binary_version_of(const view *v)
{
    return (int)(v->gpu->model->capability.major * 10 + v->gpu->model->capability.minor);
}

static int zero_of(const view *v)
{
    (void)v;
    return 0;
}

static int dynamic_of(const view *v)
{
    return (int)hw_cu_dynamic_limit(v->f, v->gpu);
}

static int carveout_of(const view *v)
{
    return v->settings->carveout;
}

static int cluster_of(const view *v, int i)
{
    return v->settings->cluster[i] ? v->settings->cluster[i] : (int)v->kernel->cluster[i];
}

static int cluster_x_of(const view *v)
{
    return cluster_of(v, 0);
}

static int cluster_y_of(const view *v)
{
    return cluster_of(v, 1);
}

static int cluster_z_of(const view *v)
{
    return cluster_of(v, 2);
}

static int non_portable_of(const view *v)
{
    return v->settings->non_portable_cluster;
}

static int policy_of(const view *v)
{
    return v->settings->cluster_policy;
}

static int (*const attributes[])(const view *v) = {
    [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = max_threads_of,
    [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = shared_of,
    [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = constant_of,
    [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = local_of,
    [CU_FUNC_ATTRIBUTE_NUM_REGS] = registers_of,
    [CU_FUNC_ATTRIBUTE_PTX_VERSION] = ptx_version_of,
    [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = binary_version_of,
    [CU_FUNC_ATTRIBUTE_CACHE_MODE_CA] = zero_of,
    [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = dynamic_of,
    [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = carveout_of,
    [CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] = zero_of,
    [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = cluster_x_of,
    [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = cluster_y_of,
    [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = cluster_z_of,
    [CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] = non_portable_of,
    [CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE] = policy_of,
};

static CUresult get_attribute(const view *v, CUfunction_attribute which, int *value)
{
    CU_NEED(value && (unsigned)which < HW_COUNTOF(attributes), INVALID_VALUE);
    *value = attributes[which](v);
    return CUDA_SUCCESS;
}

static CUresult set_attribute(const view *v, CUfunction_attribute which, int value)
{
    hw_cu_settings *s = v->settings;
    switch ((int)which) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        CU_NEED(value >= 0 &&
                    (uint32_t)value + v->kernel->static_shared_bytes <= optin_bytes(v->gpu),
                INVALID_VALUE);
        s->max_dynamic_shared = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        CU_NEED(value >= -1 && value <= 100, INVALID_VALUE);
        s->carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        CU_NEED(!v->kernel->cluster[0], NOT_PERMITTED);
        CU_NEED(value >= 0, INVALID_VALUE);
        s->cluster[which - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        s->non_portable_cluster = value != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        CU_NEED(value >= 0 && value <= 2, INVALID_VALUE);
        s->cluster_policy = value;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction handle)
{
    view v;
    CU_TRY(view_of(handle, &v));
    return get_attribute(&v, which, value);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute which, int value)
{
    view v;
    CU_TRY(view_of(handle, &v));
    return set_attribute(&v, which, value);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute which, CUkernel handle, CUdevice dev)
{
    view v;
    CU_TRY(view_of_kernel(handle, dev, &v));
    return get_attribute(&v, which, value);
}

CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel handle, CUdevice dev)
{
    view v;
    CU_TRY(view_of_kernel(handle, dev, &v));
    return set_attribute(&v, which, value);
}

static CUresult set_cache(const view *v, CUfunc_cache config)
{
    CU_NEED((unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL, INVALID_VALUE);
    v->settings->cache_config = (int)config;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
    view v;
    CU_TRY(view_of(handle, &v));
    return set_cache(&v, config);
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice dev)
{
    view v;
    CU_TRY(view_of_kernel(handle, dev, &v));
    return set_cache(&v, config);
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config)
{
    view v;
    CU_TRY(view_of(handle, &v));
    CU_NEED((unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE, INVALID_VALUE);
    return CUDA_SUCCESS; /* a preference without effect on devices with one bank width, as CUDA says
                          */
}

/* ---- what a function is ---- */

CUresult cuFuncGetName(const char **name, CUfunction handle)
{
    hw_cu_function *f;
    CU_TRY(hw_cu_find_function(handle, &f));
    CU_NEED(name, INVALID_VALUE);
    *name = f->source.name;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel handle)
{
    return cuFuncGetName(name, (CUfunction)handle);
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t i, size_t *offset, size_t *size)
{
    hw_cu_function *f;
    CU_TRY(hw_cu_find_function(handle, &f));
    const hw_ptx_kernel *k = &f->program->ptx->kernels[f->index];
    CU_NEED(offset && i < k->nparams, INVALID_VALUE);
    *offset = k->params[i].offset;
    if (size)
        *size = k->params[i].size;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t i, size_t *offset, size_t *size)
{
    return cuFuncGetParamInfo((CUfunction)handle, i, offset, size);
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction handle)
{
    hw_cu_function *f;
    hw_cu_context *ctx;
    CU_TRY(hw_cu_find_function(handle, &f));
    CU_NEED(out, INVALID_VALUE);
    if (f->kind == HW_CU_KERNEL) {
        CU_TRY(hw_cu_current(&ctx));
        CU_TRY(hw_cu_bind(f, ctx, &f));
    }
    *out = f->module->handle;
    return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle)
{
    hw_cu_function *f;
    CU_TRY(hw_cu_find_function(handle, &f));
    CU_NEED(state, INVALID_VALUE);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle)
{
    hw_cu_function *f;
    return hw_cu_find_function(handle, &f);
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel handle)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current(&ctx));
    hw_cu_function *f = hw_cu_handle_get(handle, HW_CU_KERNEL);
    CU_NEED(f, INVALID_HANDLE);
    CU_NEED(out, INVALID_VALUE);
    CU_TRY(hw_cu_bind(f, ctx, &f));
    *out = hw_cu_function_handle(f);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel handle)
{
    CU_TRY(hw_cu_ready());
    hw_cu_function *f = hw_cu_handle_get(handle, HW_CU_KERNEL);
    CU_NEED(f, INVALID_HANDLE);
    CU_NEED(out, INVALID_VALUE);
    *out = f->library->handle;
    return CUDA_SUCCESS;
}

/* ---- occupancy: room device's arithmetic ---- */

hw_occupancy_query hw_cu_query(const hw_cu_function *f, const hw_cu_gpu *g, uint32_t threads,
                               uint64_t dynamic)
{
    view v = view_on((hw_cu_function *)(uintptr_t)f, g);
    hw_occupancy_query q = HW_OCCUPANCY_QUERY_INIT;
    q.threads = threads;
    q.registers = (uint32_t)registers_of(&v);
    q.shared_static = v.kernel->static_shared_bytes;
    q.shared_dynamic = dynamic;
    q.shared_optin = v.settings->max_dynamic_shared >= 0;
    q.shared_dynamic_max = q.shared_optin ? (uint64_t)v.settings->max_dynamic_shared : 0;
    q.carveout = v.settings->carveout;
    q.cache = (hw_cache_preference)v.settings->cache_config;
    return q;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle,
                                                              int threads, size_t dynamic,
                                                              unsigned int flags)
{
    view v;
    CU_TRY(view_of(handle, &v));
    CU_NEED(blocks && threads > 0 && flags <= 1, INVALID_VALUE);
    hw_occupancy_query q = hw_cu_query(v.f, v.gpu, (uint32_t)threads, dynamic);
    hw_occupancy_result r;
    hw_occupancy(v.gpu->model, &q, &r);
    *blocks = (int)r.blocks;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads,
                                                     size_t dynamic)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, threads, dynamic,
                                                                0);
}

static uint64_t block_shared(void *fn, uint32_t threads)
{
    CUoccupancyB2DSize shared;
    memcpy(&shared, fn, sizeof shared);
    return shared((int)threads);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
                                                   CUoccupancyB2DSize shared, size_t dynamic,
                                                   int limit, unsigned int flags)
{
    view v;
    CU_TRY(view_of(handle, &v));
    CU_NEED(grid && block && limit >= 0 && flags <= 1, INVALID_VALUE);
    hw_occupancy_query q = hw_cu_query(v.f, v.gpu, 0, dynamic);
    uint32_t blocks = 0, most = (uint32_t)max_threads_of(&v);
    if (limit && (uint32_t)limit < most)
        most = (uint32_t)limit;
    *block = (int)hw_occupancy_block_size(v.gpu->model, &q, most, shared ? block_shared : NULL,
                                          &shared, &blocks);
    *grid = (int)blocks;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle,
                                          CUoccupancyB2DSize shared, size_t dynamic, int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, shared, dynamic, limit,
                                                     0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int blocks,
                                                 int threads)
{
    view v;
    uint64_t available = 0;
    CU_TRY(view_of(handle, &v));
    CU_NEED(bytes && blocks > 0 && threads > 0, INVALID_VALUE);
    hw_occupancy_query q = hw_cu_query(v.f, v.gpu, (uint32_t)threads, 0);
    CU_NEED(hw_occupancy_shared_available(v.gpu->model, &q, (uint32_t)blocks, &available),
            INVALID_VALUE);
    *bytes = available;
    return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: their making and end, the stack of current contexts each host thread has, primary
 * contexts, limits. (CUDA Driver API, "Context Management", "Primary Context Management".)
 *
 * A context's exec is made when the context is first used. A primary context is kept for the life
 * of the process and only its exec goes, so its handle stays the same after a reset, and a faulted
 * one works again after it.
 */
#include "driver.h"

#include <stdlib.h>

#define STACK_DEPTH 64

static _Thread_local struct {
    CUcontext of[STACK_DEPTH];
    unsigned n;
} stack;

static _Thread_local unsigned callback_depth;

void hw_cu_callback_enter(void)
{
    callback_depth++;
}

void hw_cu_callback_leave(void)
{
    callback_depth--;
}

/* Host functions and stream callbacks must not call the API (cuLaunchHostFunc). */
bool hw_cu_in_callback(void)
{
    return callback_depth != 0;
}

/* ---- making and ending ---- */

/* The processor that HALFWARP_CPU names; NULL: the host. */
static const char *wished_cpu(void)
{
    static const char *const levels[] = { "host", "x86-64-v3", "x86-64-v4", NULL };
    unsigned level = hw_cu_env_choice("HALFWARP_CPU", hw_cu.env.cpu, levels);
    if (level == 2 && !__builtin_cpu_supports("x86-64-v4")) {
        hw_cu_notice("HALFWARP_CPU: this processor is no x86-64-v4");
        return NULL;
    }
    return level ? levels[level] : NULL;
}

static hw_jit *process_jit(void)
{
    pthread_mutex_lock(&hw_cu.lock);
    if (!hw_cu.jit) {
        hw_cu.jit = hw_jit_new(hw_cu_cache_dir(hw_cu.arena, &hw_cu.env));
        hw_jit_set_cpu(hw_cu.jit, wished_cpu());
    }
    pthread_mutex_unlock(&hw_cu.lock);
    return hw_cu.jit;
}

CUresult hw_cu_activate(hw_cu_context *ctx)
{
    if (atomic_load_explicit(&ctx->exec, memory_order_acquire))
        return CUDA_SUCCESS;
    static const char *const tiers[] = { [HW_EXEC_BOTH_TIERS] = "both",
                                         [HW_EXEC_FIRST_TIER] = "first",
                                         [HW_EXEC_SECOND_TIER] = "second",
                                         [HW_EXEC_SECOND_TIER + 1] = NULL };
    hw_mem *mem;
    CU_TRY(hw_cu_gpu_mem(ctx->gpu, &mem));
    hw_jit *jit = process_jit();
    enum { WORKERS_MOST = 4096 };
    uint64_t workers = hw_cu_env_number("HALFWARP_WORKERS", hw_cu.env.workers, 1);
    pthread_mutex_lock(&ctx->lock);
    hw_exec *x = atomic_load(&ctx->exec);
    if (!x) {
        hw_exec_options o = {
            .workers = (unsigned)(workers < WORKERS_MOST ? workers : WORKERS_MOST),
            .timeout_ms = hw_cu_env_number("HALFWARP_TIMEOUT", hw_cu.env.timeout, 1000),
            .tiers = (hw_exec_tiers)hw_cu_env_choice("HALFWARP_TIER", hw_cu.env.tier, tiers),
        };
        x = hw_exec_new(ctx->gpu->model, mem, jit, &o);
        if (x) {
            ctx->epoch = atomic_fetch_add(&hw_cu.next_id, 1) + 1;
            ctx->legacy.s = hw_stream_legacy(x);
            ctx->fault_told = false;
            ctx->launch_error = HW_OK;
            atomic_store_explicit(&ctx->exec, x, memory_order_release);
        }
    }
    pthread_mutex_unlock(&ctx->lock);
    return x ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

enum { DEFAULT_STREAM_NUMBER = 7 };
static _Atomic uint32_t contexts_made;

static hw_cu_context *context_new(hw_cu_gpu *g, unsigned flags, bool primary)
{
    hw_cu_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return NULL;
    ctx->gpu = g;
    ctx->is_primary = primary;
    ctx->flags = flags;
    ctx->api_version = 3020;
    ctx->id = atomic_fetch_add(&hw_cu.next_id, 1) + 1;
    ctx->number = atomic_fetch_add(&contexts_made, 1) + 1;
    pthread_mutex_init(&ctx->lock, NULL);
    hw_cu_list_init(&ctx->streams);
    hw_cu_list_init(&ctx->events);
    hw_cu_list_init(&ctx->modules);
    hw_cu_list_init(&ctx->blocks);
    hw_cu_list_init(&ctx->arrays);
    hw_cu_list_init(&ctx->mipmaps);
    ctx->legacy = (hw_cu_stream){
        .ctx = ctx, .id = ctx->id, .number = DEFAULT_STREAM_NUMBER, .handle = CU_STREAM_LEGACY
    };
    ctx->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    ctx->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    ctx->handle = hw_cu_handle_new(HW_CU_CONTEXT, ctx);
    return ctx;
}

/* Everything in the context goes: work is waited for, then streams, events, modules, memory, exec.
 */
static void context_empty(hw_cu_context *ctx)
{
    hw_exec *x = atomic_load(&ctx->exec);
    if (!x)
        return;
    hw_exec_wait(x);
    hw_cu_streams_end(ctx);
    hw_cu_events_end(ctx);
    hw_cu_modules_end(ctx);
    hw_cu_arrays_end(ctx);
    atomic_store(&ctx->exec, NULL);
    hw_exec_free(x);
    hw_cu_blocks_end(ctx);
    ctx->peers = 0;
    ctx->cache_config = ctx->shared_config = 0;
}

/* A context whose streams all rest can give its threads back; another is left as it is. */
static void context_rest(hw_cu_context *ctx)
{
    hw_exec *x = atomic_load(&ctx->exec);
    if (!x || !hw_stream_idle(hw_stream_legacy(x)))
        return;
    for (hw_cu_link *l = ctx->streams.next; l != &ctx->streams; l = l->next) {
        if (!hw_stream_idle(HW_CU_ITEM(l, hw_cu_stream, link)->s))
            return;
    }
    context_empty(ctx);
}

static hw_cu_link all = { &all, &all }; /* contexts of cuCtxCreate; hw_cu.lock */

void hw_cu_contexts_end(void)
{
    for (int i = 0; i < hw_cu.ngpus; i++) {
        if (hw_cu.gpus[i].primary)
            context_rest(hw_cu.gpus[i].primary);
    }
    for (hw_cu_link *l = all.next, *next; l != &all; l = next) {
        next = l->next;
        context_rest(HW_CU_ITEM(l, hw_cu_context, link));
    }
}

static void context_wait(hw_cu_context *ctx)
{
    hw_exec *x = ctx ? atomic_load(&ctx->exec) : NULL;
    if (x)
        hw_exec_wait(x);
}

void hw_cu_contexts_wait(void)
{
    for (int i = 0; i < hw_cu.ngpus; i++) {
        context_wait(hw_cu.gpus[i].primary);
    }
    for (hw_cu_link *l = all.next, *next; l != &all; l = next) {
        next = l->next;
        context_wait(HW_CU_ITEM(l, hw_cu_context, link));
    }
}

/* ---- the current context ---- */

CUresult hw_cu_find_context(CUcontext handle, hw_cu_context **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_CONTEXT);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUcontext top(void)
{
    return stack.n ? stack.of[stack.n - 1] : NULL;
}

CUresult hw_cu_current_any(hw_cu_context **out)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(!callback_depth, NOT_PERMITTED);
    CU_NEED(top(), INVALID_CONTEXT);
    *out = hw_cu_handle_get(top(), HW_CU_CONTEXT);
    CU_NEED(*out, CONTEXT_IS_DESTROYED);
    return CUDA_SUCCESS;
}

CUresult hw_cu_current(hw_cu_context **out)
{
    CU_TRY(hw_cu_current_any(out));
    CU_TRY(hw_cu_activate(*out));
    return hw_cu_sticky(*out);
}

CUresult hw_cu_sticky(hw_cu_context *ctx)
{
    hw_exec *x = atomic_load_explicit(&ctx->exec, memory_order_acquire);
    return x ? hw_cu_result(hw_exec_sticky(x, NULL)) : CUDA_SUCCESS;
}

CUresult hw_cu_waited(hw_cu_context *ctx)
{
    CU_TRY(hw_cu_sticky(ctx));
    return hw_cu_result(atomic_exchange(&ctx->launch_error, HW_OK));
}

CUresult hw_cu_synchronize(hw_cu_context *ctx)
{
    CU_TRY(hw_cu_activate(ctx));
    hw_exec_wait(ctx->exec);
    return hw_cu_waited(ctx);
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(ctx, INVALID_VALUE);
    *ctx = top();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_ready());
    if (handle)
        CU_TRY(hw_cu_find_context(handle, &ctx));
    if (stack.n)
        stack.n--;
    if (handle)
        stack.of[stack.n++] = handle;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_find_context(handle, &ctx));
    CU_NEED(stack.n < STACK_DEPTH, OUT_OF_MEMORY);
    stack.of[stack.n++] = handle;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *handle)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(stack.n, INVALID_CONTEXT);
    if (handle)
        *handle = top();
    stack.n--;
    return CUDA_SUCCESS;
}

/* ---- contexts a program makes ---- */

static bool flags_fit(unsigned flags)
{
    unsigned sched = flags & CU_CTX_SCHED_MASK;
    return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 &&
           (sched <= 2 || sched == CU_CTX_SCHED_BLOCKING_SYNC);
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(out && flags_fit(flags), INVALID_VALUE);
    CU_NEED(stack.n < STACK_DEPTH, OUT_OF_MEMORY);
    hw_cu_context *ctx = context_new(g, flags, false);
    CU_NEED(ctx && ctx->handle, OUT_OF_MEMORY);
    pthread_mutex_lock(&hw_cu.lock);
    hw_cu_list_add(&all, &ctx->link);
    pthread_mutex_unlock(&hw_cu.lock);
    stack.of[stack.n++] = *out = ctx->handle;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *params, int n, unsigned int flags,
                        CUdevice dev)
{
    CU_NEED(!params && !n, UNSUPPORTED_EXEC_AFFINITY);
    return cuCtxCreate_v2(out, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
    CU_NEED(!params || !params->cigParams, NOT_SUPPORTED);
    if (params && params->numExecAffinityParams)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return cuCtxCreate_v2(out, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext handle)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_find_context(handle, &ctx));
    CU_NEED(!ctx->is_primary, INVALID_CONTEXT);
    CU_NEED(!callback_depth, NOT_PERMITTED);
    hw_cu_handle_drop(handle);
    if (top() == handle)
        stack.n--;
    pthread_mutex_lock(&hw_cu.lock);
    hw_cu_list_remove(&ctx->link);
    pthread_mutex_unlock(&hw_cu.lock);
    context_empty(ctx);
    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
    return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext *out, unsigned int flags)
{
    hw_cu_context *ctx;
    CU_NEED(out && flags == 0, INVALID_VALUE);
    CU_TRY(hw_cu_current_any(&ctx));
    ctx->attached++;
    *out = ctx->handle;
    return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext handle)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_find_context(handle, &ctx));
    if (ctx->attached) {
        ctx->attached--;
        return CUDA_SUCCESS;
    }
    return cuCtxDestroy_v2(handle);
}

/* ---- the primary context ---- */

hw_cu_context *hw_cu_primary(hw_cu_gpu *g)
{
    pthread_mutex_lock(&hw_cu.lock);
    if (!g->primary)
        g->primary = context_new(g, g->primary_flags, true);
    pthread_mutex_unlock(&hw_cu.lock);
    return g->primary;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(out, INVALID_VALUE);
    hw_cu_context *ctx = hw_cu_primary(g);
    CU_NEED(ctx, OUT_OF_MEMORY);
    pthread_mutex_lock(&hw_cu.lock);
    g->primary_refs++;
    pthread_mutex_unlock(&hw_cu.lock);
    *out = ctx->handle;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(!callback_depth, NOT_PERMITTED);
    pthread_mutex_lock(&hw_cu.lock);
    unsigned before = g->primary_refs;
    if (before)
        g->primary_refs--;
    pthread_mutex_unlock(&hw_cu.lock);
    CU_NEED(before, INVALID_CONTEXT);
    if (before == 1)
        context_empty(g->primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(!callback_depth, NOT_PERMITTED);
    if (g->primary)
        context_empty(g->primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(flags_fit(flags), INVALID_VALUE);
    g->primary_flags = flags;
    if (g->primary)
        g->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(flags && active, INVALID_VALUE);
    *flags = g->primary_flags;
    *active = g->primary_refs != 0 || (g->primary && atomic_load(&g->primary->exec));
    return CUDA_SUCCESS;
}

/* ---- what a context says of itself ---- */

static CUresult named_or_current(CUcontext handle, hw_cu_context **out)
{
    return handle ? hw_cu_find_context(handle, out) : hw_cu_current_any(out);
}

CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext handle)
{
    hw_cu_context *ctx;
    CU_TRY(named_or_current(handle, &ctx));
    CU_NEED(dev, INVALID_VALUE);
    *dev = ctx->gpu->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
    return cuCtxGetDevice_v2(dev, NULL);
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
    hw_cu_context *ctx;
    CU_TRY(named_or_current(handle, &ctx));
    CU_NEED(!callback_depth, NOT_PERMITTED);
    return hw_cu_synchronize(ctx);
}

CUresult cuCtxSynchronize(void)
{
    return cuCtxSynchronize_v2(NULL);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    hw_cu_context *ctx;
    CU_NEED(flags, INVALID_VALUE);
    CU_TRY(hw_cu_current_any(&ctx));
    *flags = ctx->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
    hw_cu_context *ctx;
    CU_NEED(flags_fit(flags), INVALID_VALUE);
    CU_TRY(hw_cu_current_any(&ctx));
    ctx->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    hw_cu_context *ctx;
    CU_NEED(id, INVALID_VALUE);
    CU_TRY(named_or_current(handle, &ctx));
    *id = ctx->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
    hw_cu_context *ctx;
    CU_NEED(version, INVALID_VALUE);
    CU_TRY(named_or_current(handle, &ctx));
    *version = ctx->api_version;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current_any(&ctx));
    if (least)
        *least = 0;
    if (greatest)
        *greatest = ctx->gpu->model->capability.stream_priorities ? HW_CU_HIGHEST_PRIORITY : 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam *out, CUexecAffinityType type)
{
    hw_cu_context *ctx;
    CU_NEED(out && type == CU_EXEC_AFFINITY_TYPE_SM_COUNT, INVALID_VALUE);
    CU_TRY(hw_cu_current_any(&ctx));
    out->type = type;
    out->param.smCount.val = ctx->gpu->model->compute.sm_count;
    return CUDA_SUCCESS;
}

/* Nothing persists in a cache here, so after this call nothing does. */
CUresult cuCtxResetPersistingL2Cache(void)
{
    hw_cu_context *ctx;
    return hw_cu_current(&ctx);
}

/* ---- preferences and limits ---- */

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    hw_cu_context *ctx;
    CU_NEED(config, INVALID_VALUE);
    CU_TRY(hw_cu_current_any(&ctx));
    *config = (CUfunc_cache)ctx->cache_config;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    hw_cu_context *ctx;
    CU_NEED((unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL, INVALID_VALUE);
    CU_TRY(hw_cu_current_any(&ctx));
    ctx->cache_config = (int)config;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    hw_cu_context *ctx;
    CU_NEED(config, INVALID_VALUE);
    CU_TRY(hw_cu_current_any(&ctx));
    *config =
        (CUsharedconfig)(ctx->shared_config ? ctx->shared_config : 1); /* banks of four bytes */
    return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    hw_cu_context *ctx;
    CU_NEED((unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE, INVALID_VALUE);
    CU_TRY(hw_cu_current_any(&ctx));
    ctx->shared_config = ctx->gpu->model->banks.rule == HW_BANKS32_DUAL_MODE ? (int)config : 0;
    return CUDA_SUCCESS;
}

static bool exec_limit(CUlimit limit, hw_exec_limit *out)
{
    static const hw_exec_limit of[] = {
        [CU_LIMIT_STACK_SIZE] = HW_EXEC_STACK,
        [CU_LIMIT_PRINTF_FIFO_SIZE] = HW_EXEC_PRINTF,
        [CU_LIMIT_MALLOC_HEAP_SIZE] = HW_EXEC_HEAP,
    };
    if ((unsigned)limit >= HW_COUNTOF(of))
        return false;
    *out = of[limit];
    return true;
}

size_t hw_cu_limit(hw_cu_context *ctx, CUlimit limit)
{
    hw_exec_limit which;
    return exec_limit(limit, &which) ? hw_exec_get_limit(ctx->exec, which) : ctx->limits[limit];
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    hw_cu_context *ctx;
    CU_NEED(value, INVALID_VALUE);
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED((unsigned)limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE, INVALID_VALUE);
    CU_NEED(limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, UNSUPPORTED_LIMIT);
    *value = hw_cu_limit(ctx, limit);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    hw_cu_context *ctx;
    hw_exec_limit which;
    CU_TRY(hw_cu_current(&ctx));
    CU_NEED((unsigned)limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE, INVALID_VALUE);
    CU_NEED(limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, UNSUPPORTED_LIMIT);
    if (limit == CU_LIMIT_STACK_SIZE)
        CU_NEED(value <= ctx->gpu->model->launch.local_bytes_per_thread, INVALID_VALUE);
    if (exec_limit(limit, &which))
        return hw_cu_result(hw_exec_set_limit(ctx->exec, which, value));
    if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE) {
        int most = 0;
        hw_device_attribute(ctx->gpu->model, 108, &most); /* MAX_PERSISTING_L2_CACHE_SIZE */
        CU_NEED(most, UNSUPPORTED_LIMIT);
        value = value < (size_t)most ? value : (size_t)most;
    }
    ctx->limits[limit] = value;
    return CUDA_SUCCESS;
}

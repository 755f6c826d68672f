/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches: shapes checked against the device and the kernel, parameters packed, work given to a
 * stream. (CUDA Driver API, "Execution Control"; C++ Programming Guide, "Compute Capabilities".)
 */
#include "launch.h"
#include "profile.h"

#include <stdlib.h>

/* ---- checking ---- */

static CUresult check_threads(const hw_cu_gpu *g, const hw_ptx_kernel *k, const hw_cu_shape *s)
{
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        CU_NEED(s->grid[i] && s->grid[i] <= g->model->launch.max_grid.v[i], INVALID_VALUE);
        CU_NEED(s->block[i] && s->block[i] <= g->model->launch.max_block.v[i], INVALID_VALUE);
        threads *= s->block[i];
    }
    CU_NEED(threads <= g->model->compute.max_threads_per_block, INVALID_VALUE);
    CU_NEED(!k->max_threads || threads <= k->max_threads, LAUNCH_OUT_OF_RESOURCES);
    for (int i = 0; i < 3; i++) {
        CU_NEED(!k->reqntid[0] || s->block[i] == (k->reqntid[i] ? k->reqntid[i] : 1),
                INVALID_VALUE);
    }
    return CUDA_SUCCESS;
}

/* Registers are looked at only if machine code in the image said how many there are. */
static CUresult check_registers(const hw_cu_function *f, const hw_cu_gpu *g, const hw_cu_shape *s)
{
    const hw_cu_kernel_info *info = &f->program->info[f->index];
    if (!info->known)
        return CUDA_SUCCESS;
    hw_occupancy_query q = hw_cu_query(f, g, s->block[0] * s->block[1] * s->block[2], 0);
    hw_occupancy_result r;
    hw_occupancy(g->model, &q, &r);
    bool refused = r.refusal == HW_REFUSED_REGISTERS_BLOCK || r.refusal == HW_REFUSED_REGISTERS_SM;
    return refused ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_SUCCESS;
}

static CUresult check_cooperative(const hw_cu_function *f, const hw_cu_gpu *g, const hw_cu_shape *s)
{
    CU_NEED(g->model->capability.cooperative_launch, NOT_SUPPORTED);
    hw_occupancy_query q = hw_cu_query(f, g, s->block[0] * s->block[1] * s->block[2], s->dynamic);
    hw_occupancy_result r;
    hw_occupancy(g->model, &q, &r);
    uint64_t blocks = (uint64_t)s->grid[0] * s->grid[1] * s->grid[2];
    CU_NEED(blocks <= (uint64_t)r.blocks * g->model->compute.sm_count,
            COOPERATIVE_LAUNCH_TOO_LARGE);
    return CUDA_SUCCESS;
}

CUresult hw_cu_check_shape(const hw_cu_function *f, const hw_cu_gpu *g, const hw_cu_shape *s)
{
    const hw_ptx_kernel *k = &f->program->ptx->kernels[f->index];
    CU_TRY(check_threads(g, k, s));
    CU_NEED(s->dynamic <= hw_cu_dynamic_limit(f, g), INVALID_VALUE);
    CU_TRY(check_registers(f, g, s));
    return s->cooperative ? check_cooperative(f, g, s) : CUDA_SUCCESS;
}

/* ---- parameters ---- */

enum { PARAM_END = 0, PARAM_BUFFER = 1, PARAM_SIZE = 2 };

/* The `extra` form: a list of tags and values with a packed buffer and its size. */
static CUresult pack_extra(void **extra, const hw_ptx_kernel *k, uint8_t *out)
{
    const void *buffer = NULL;
    size_t size = 0;
    for (; (uintptr_t)extra[0] != PARAM_END; extra += 2) {
        switch ((uintptr_t)extra[0]) {
        case PARAM_BUFFER:
            buffer = extra[1];
            break;
        case PARAM_SIZE:
            CU_NEED(extra[1], INVALID_VALUE);
            memcpy(&size, extra[1], sizeof size);
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    CU_NEED(buffer || !size, INVALID_VALUE);
    const hw_ptx_param *last = k->nparams ? &k->params[k->nparams - 1] : NULL;
    CU_NEED(!last || size >= last->offset + (size_t)last->size, INVALID_VALUE);
    if (size)
        memcpy(out, buffer, size < k->param_bytes ? size : k->param_bytes);
    return CUDA_SUCCESS;
}

static CUresult pack(void **params, void **extra, const hw_ptx_kernel *k, uint8_t *out)
{
    CU_NEED(!params || !extra, INVALID_VALUE);
    if (extra)
        return pack_extra(extra, k, out);
    CU_NEED(params || !k->nparams, INVALID_VALUE);
    for (uint32_t i = 0; i < k->nparams; i++) {
        CU_NEED(params[i] || !k->params[i].size, INVALID_VALUE);
        memcpy(out + k->params[i].offset, params[i], k->params[i].size);
    }
    return CUDA_SUCCESS;
}

static CUresult make(hw_cu_function *f, hw_cu_context *ctx, const hw_cu_shape *shape,
                     hw_cu_launch **out)
{
    uint32_t cluster[3];
    CU_TRY(hw_cu_check_shape(f, ctx->gpu, shape));
    CU_TRY(hw_cu_cluster(f, ctx->gpu, shape, cluster));
    const hw_ptx_kernel *k = &f->program->ptx->kernels[f->index];
    hw_cu_launch *l = calloc(1, sizeof *l + k->param_bytes);
    CU_NEED(l, OUT_OF_MEMORY);
    l->f = f;
    l->dynamic = shape->dynamic;
    l->cooperative = shape->cooperative;
    l->param_bytes = k->param_bytes;
    memcpy(l->grid, shape->grid, sizeof l->grid);
    memcpy(l->block, shape->block, sizeof l->block);
    memcpy(l->cluster, cluster, sizeof l->cluster);
    memcpy(l->said_cluster, shape->cluster, sizeof l->said_cluster);
    *out = l;
    return CUDA_SUCCESS;
}

CUresult hw_cu_launch_new(hw_cu_function *f, hw_cu_context *ctx, const hw_cu_shape *shape,
                          void **params, void **extra, hw_cu_launch **out)
{
    hw_cu_launch *l;
    CU_TRY(hw_cu_bind(f, ctx, &f));
    CU_TRY(make(f, ctx, shape, &l));
    CUresult r = pack(params, extra, &f->program->ptx->kernels[f->index], l->params);
    if (r != CUDA_SUCCESS) {
        free(l);
        return r;
    }
    *out = l;
    return CUDA_SUCCESS;
}

CUresult hw_cu_launch_packed(hw_cu_function *f, hw_cu_context *ctx, const hw_cu_shape *shape,
                             const void *packed, hw_cu_launch **out)
{
    CU_TRY(make(f, ctx, shape, out));
    memcpy((*out)->params, packed, (*out)->param_bytes);
    return CUDA_SUCCESS;
}

hw_cu_launch *hw_cu_launch_copy(const hw_cu_launch *l)
{
    hw_cu_launch *c = malloc(sizeof *c + l->param_bytes);
    if (c)
        memcpy(c, l, sizeof *c + l->param_bytes);
    return c;
}

/* ---- carrying out ---- */

/* Something a kernel did, not something that kept it from being started. */
static bool is_fault(hw_status s)
{
    return s >= HW_F_ILLEGAL_ADDRESS;
}

/* The first fault of a context is told once; an assertion has told itself. */
static void tell(hw_cu_context *ctx, const hw_cu_launch *l, hw_status s, const hw_fault *fault,
                 const hw_diag *d)
{
    if (!is_fault(s) && d->errors)
        hw_cu_notice_diag(l->f->source.name, d);
    else if (!atomic_exchange(&ctx->fault_told, true) && s != HW_F_ASSERT)
        hw_cu_notice("%s", fault->text[0] ? fault->text : hw_status_text(s));
}

hw_status hw_cu_launch_one(const hw_cu_launch *l, const hw_device_runtime *runtime, hw_fault *fault)
{
    hw_cu_context *ctx = l->f->module->ctx;
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    const hw_listener *listener = hw_cu_profile_listener(l);
    const hw_launch launch = {
        .source = &l->f->source,
        .grid = { l->grid[0], l->grid[1], l->grid[2] },
        .block = { l->block[0], l->block[1], l->block[2] },
        .cluster = { l->cluster[0], l->cluster[1], l->cluster[2] },
        .dynamic_shared_bytes = l->dynamic,
        .params = l->params,
        .param_bytes = l->param_bytes,
        .symbol_address = hw_cu_symbol_address,
        .symbol_ctx = l->f->module,
        .cooperative = l->cooperative,
        .runtime = runtime,
        .listener = listener,
    };
    hw_cu_verbose("launch %s grid %u,%u,%u block %u,%u,%u shared %u", l->f->source.name, l->grid[0],
                  l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->dynamic);
    hw_cu_program_runs(l->f->program, l->f->index);
    hw_status s = hw_exec_launch(ctx->exec, &launch, fault, d);
    hw_cu_profile_done(l, listener, s);
    const char *notice = hw_jit_notice(hw_cu.jit);
    if (notice)
        hw_cu_notice("%s", notice);
    if (s != HW_OK)
        tell(ctx, l, s, fault, d);
    hw_arena_free(a);
    if (is_fault(s))
        return s;
    hw_status none = HW_OK; /* the context lives on: nothing has run */
    if (s != HW_OK)
        atomic_compare_exchange_strong(&ctx->launch_error, &none, s);
    return HW_OK;
}

static hw_status launch_run(void *p, hw_fault *fault)
{
    return hw_cu_launch_now(p, fault);
}

CUresult hw_cu_submit_launch(hw_cu_stream *s, hw_cu_launch *l)
{
    l->stream = s->number;
    hw_cu_profile_submit(l);
    return hw_cu_submit(s, launch_run, free, l);
}

static CUresult launch(CUfunction handle, const hw_cu_shape *shape, CUstream stream, void **params,
                       void **extra)
{
    hw_cu_function *f;
    hw_cu_stream *s;
    hw_cu_launch *l;
    bool captured;
    CU_TRY(hw_cu_find_function(handle, &f));
    CU_TRY(hw_cu_find_stream(stream, &s));
    CU_TRY(hw_cu_launch_new(f, s->ctx, shape, params, extra, &l));
    CU_TRY(hw_cu_capture_launch(s, l, &captured));
    if (captured)
        return CUDA_SUCCESS;
    CU_TRY(hw_cu_submit_launch(s, l));
    if (!hw_cu_env_true(hw_cu.env.blocking))
        return CUDA_SUCCESS;
    hw_stream_wait(s->s);
    return hw_cu_waited(s->ctx);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int dynamic,
                        CUstream stream, void **params, void **extra)
{
    const hw_cu_shape s = { { gx, gy, gz }, { bx, by, bz }, dynamic, false, { 0 } };
    return launch(f, &s, stream, params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                                   unsigned int bx, unsigned int by, unsigned int bz,
                                   unsigned int dynamic, CUstream stream, void **params)
{
    const hw_cu_shape s = { { gx, gy, gz }, { bx, by, bz }, dynamic, true, { 0 } };
    return launch(f, &s, stream, params, NULL);
}

/* ---- launches with attributes ---- */

static CUresult cluster_attribute(const CUlaunchAttributeValue *v, hw_cu_shape *s)
{
    const unsigned c[3] = { v->clusterDim.x, v->clusterDim.y, v->clusterDim.z };
    for (int i = 0; i < 3; i++) {
        CU_NEED(c[i], INVALID_CLUSTER_SIZE);
        s->cluster[i] = c[i];
    }
    return CUDA_SUCCESS;
}

/* Attributes that order or place work and may be ignored without changing a result are accepted. */
CUresult hw_cu_apply_attribute(const CUlaunchAttribute *a, hw_cu_shape *s)
{
    switch ((int)a->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        s->cooperative = a->value.cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return cluster_attribute(&a->value, s);
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        hw_cu_notice("launch attribute %d is not supported yet (docs/coverage-driver.md)",
                     (int)a->id);
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return a->id >= 0 && (int)a->id <= 16 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(c && (!c->numAttrs || c->attrs), INVALID_VALUE);
    hw_cu_shape s = { { c->gridDimX, c->gridDimY, c->gridDimZ },
                      { c->blockDimX, c->blockDimY, c->blockDimZ },
                      c->sharedMemBytes,
                      false,
                      { 0 } };
    for (unsigned i = 0; i < c->numAttrs; i++) {
        CU_TRY(hw_cu_apply_attribute(&c->attrs[i], &s));
    }
    return launch(f, &s, c->hStream, params, extra);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int n,
                                              unsigned int flags)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(list && n && flags <= 3, INVALID_VALUE);
    CU_NEED(n == 1, NOT_SUPPORTED); /* one device: a cooperative launch; grids over several were
                                       removed from CUDA */
    return cuLaunchCooperativeKernel(list->function, list->gridDimX, list->gridDimY, list->gridDimZ,
                                     list->blockDimX, list->blockDimY, list->blockDimZ,
                                     list->sharedMemBytes, list->hStream, list->kernelParams);
}

/* ---- launches of CUDA 2: shape and parameters are set on the function first ---- */

CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z)
{
    hw_cu_function *f;
    CU_TRY(hw_cu_find_function(handle, &f));
    CU_NEED(x > 0 && y > 0 && z > 0, INVALID_VALUE);
    f->block[0] = (uint32_t)x;
    f->block[1] = (uint32_t)y;
    f->block[2] = (uint32_t)z;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(CUfunction handle, unsigned int bytes)
{
    hw_cu_function *f;
    CU_TRY(hw_cu_find_function(handle, &f));
    f->shared_bytes = bytes;
    return CUDA_SUCCESS;
}

enum { PARAM_SPACE = 32768 };

CUresult cuParamSetSize(CUfunction handle, unsigned int bytes)
{
    hw_cu_function *f;
    CU_TRY(hw_cu_find_function(handle, &f));
    CU_NEED(bytes <= PARAM_SPACE, INVALID_VALUE);
    f->param_bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult cuParamSetv(CUfunction handle, int offset, void *p, unsigned int bytes)
{
    hw_cu_function *f;
    CU_TRY(hw_cu_find_function(handle, &f));
    CU_NEED(p && offset >= 0 && offset <= PARAM_SPACE && bytes <= PARAM_SPACE - (unsigned)offset,
            INVALID_VALUE);
    if (!f->params)
        f->params = calloc(1, PARAM_SPACE);
    CU_NEED(f->params, OUT_OF_MEMORY);
    memcpy(f->params + offset, p, bytes);
    return CUDA_SUCCESS;
}

CUresult cuParamSeti(CUfunction handle, int offset, unsigned int value)
{
    return cuParamSetv(handle, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction handle, int offset, float value)
{
    return cuParamSetv(handle, offset, &value, sizeof value);
}

CUresult cuLaunchGridAsync(CUfunction handle, int width, int height, CUstream stream)
{
    hw_cu_function *f;
    uint8_t none = 0;
    CU_TRY(hw_cu_find_function(handle, &f));
    CU_NEED(width > 0 && height > 0, INVALID_VALUE);
    size_t size = f->param_bytes;
    void *extra[] = { (void *)PARAM_BUFFER, f->params ? f->params : &none, (void *)PARAM_SIZE,
                      &size, (void *)PARAM_END };
    CU_NEED(f->params || !size, INVALID_VALUE);
    const hw_cu_shape s = { { (uint32_t)width, (uint32_t)height, 1 },
                            { f->block[0], f->block[1], f->block[2] },
                            f->shared_bytes,
                            false,
                            { 0 } };
    return launch(handle, &s, stream, NULL, extra);
}

CUresult cuLaunchGrid(CUfunction handle, int width, int height)
{
    return cuLaunchGridAsync(handle, width, height, NULL);
}

CUresult cuLaunch(CUfunction handle)
{
    return cuLaunchGrid(handle, 1, 1);
}

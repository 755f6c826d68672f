/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters of blocks: which a launch gets, and how many the device holds. (CUDA Driver API, "Execution Control", "Occupancy"; CUDA
 * C++ Programming Guide, "Thread Block Clusters".)
 */
#include "launch.h"

/* Blocks of the largest cluster that f may be launched with; 0: the device has none. */
static uint32_t largest(const hw_cu_function *f, const hw_cu_gpu *g)
{
    uint32_t portable = g->model->capability.max_cluster_size;
    uint32_t most = g->model->capability.max_nonportable_cluster_size;
    return f->settings->non_portable_cluster && most > portable ? most : portable;
}

/* What the kernel or its attributes require; false: nothing. */
static bool required(const hw_cu_function *f, uint32_t c[3])
{
    const hw_ptx_kernel *k = &f->program->ptx->kernels[f->index];
    bool any = false;
    for (int i = 0; i < 3; i++) {
        c[i] = k->cluster[i] ? k->cluster[i] : (uint32_t)f->settings->cluster[i];
        any |= c[i] != 0;
    }
    for (int i = 0; i < 3; i++)
        c[i] = any && !c[i] ? 1 : c[i];
    return any;
}

static bool same(const uint32_t a[3], const uint32_t b[3])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

CUresult hw_cu_cluster(const hw_cu_function *f, const hw_cu_gpu *g, const hw_cu_shape *s,
                       uint32_t c[3])
{
    bool needs = required(f, c), says = s->cluster[0] != 0;
    CU_NEED(!needs || !says || same(c, s->cluster), INVALID_CLUSTER_SIZE);
    if (says)
        memcpy(c, s->cluster, sizeof s->cluster);
    if (!needs && !says)
        return CUDA_SUCCESS;
    uint64_t blocks = 1, most = largest(f, g);
    for (int i = 0; i < 3; i++) {
        CU_NEED(s->grid[i] % c[i] == 0, INVALID_CLUSTER_SIZE);
        blocks *= c[i] <= UINT16_MAX ? c[i] : UINT16_MAX;
    }
    CU_NEED(blocks == 1 || most, NOT_SUPPORTED);
    CU_NEED(blocks == 1 || blocks <= most, INVALID_CLUSTER_SIZE);
    return CUDA_SUCCESS;
}

CUresult hw_cu_say_cluster(hw_cu_launch *l, const hw_cu_gpu *g, const uint32_t cluster[3])
{
    hw_cu_shape s = { .dynamic = l->dynamic };
    uint32_t is[3];
    memcpy(s.grid, l->grid, sizeof s.grid);
    memcpy(s.cluster, cluster, sizeof s.cluster);
    CU_TRY(hw_cu_cluster(l->f, g, &s, is));
    memcpy(l->cluster, is, sizeof is);
    memcpy(l->said_cluster, cluster, sizeof l->said_cluster);
    return CUDA_SUCCESS;
}

/* ---- occupancy ---- */

typedef struct asked {
    hw_cu_function *f;
    const hw_cu_gpu *g;
    hw_cu_shape shape;
    uint64_t per_sm; /* blocks */
} asked;

static CUresult take_config(CUfunction handle, const CUlaunchConfig *c, asked *a)
{
    hw_cu_context *ctx;
    CU_TRY(hw_cu_current(&ctx));
    CU_TRY(hw_cu_find_function(handle, &a->f));
    CU_TRY(hw_cu_bind(a->f, ctx, &a->f));
    CU_NEED(c && (!c->numAttrs || c->attrs), INVALID_VALUE);
    a->g = ctx->gpu;
    a->shape = (hw_cu_shape){ { c->gridDimX, c->gridDimY, c->gridDimZ },
                              { c->blockDimX, c->blockDimY, c->blockDimZ },
                              c->sharedMemBytes,
                              false,
                              { 0 } };
    for (unsigned i = 0; i < c->numAttrs; i++) {
        CU_TRY(hw_cu_apply_attribute(&c->attrs[i], &a->shape));
    }
    const uint32_t *b = a->shape.block;
    CU_NEED(b[0] && b[1] && b[2], INVALID_VALUE);
    hw_occupancy_query q = hw_cu_query(a->f, a->g, b[0] * b[1] * b[2], c->sharedMemBytes);
    hw_occupancy_result r;
    hw_occupancy(a->g->model, &q, &r);
    a->per_sm = r.blocks;
    return CUDA_SUCCESS;
}

/* The largest there may be: its blocks spread over as many multiprocessors of a processing cluster, if each holds one at all. */
CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction f, const CUlaunchConfig *config)
{
    asked a;
    CU_TRY(hw_cu_ready());
    CU_NEED(size, INVALID_VALUE);
    CU_TRY(take_config(f, config, &a));
    CU_NEED(largest(a.f, a.g), NOT_SUPPORTED);
    CU_NEED(a.per_sm, INVALID_CLUSTER_SIZE);
    *size = (int)largest(a.f, a.g);
    return CUDA_SUCCESS;
}

/* As many as the multiprocessors' blocks make up: how these are grouped is not known of a device. */
CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f, const CUlaunchConfig *config)
{
    asked a;
    uint32_t c[3];
    CU_TRY(hw_cu_ready());
    CU_NEED(n, INVALID_VALUE);
    CU_TRY(take_config(f, config, &a));
    CU_NEED(largest(a.f, a.g), NOT_SUPPORTED);
    CU_TRY(hw_cu_cluster(a.f, a.g, &a.shape, c));
    uint64_t blocks = c[0] ? (uint64_t)c[0] * c[1] * c[2] : 1;
    *n = (int)(a.per_sm * a.g->model->compute.sm_count / blocks);
    return CUDA_SUCCESS;
}

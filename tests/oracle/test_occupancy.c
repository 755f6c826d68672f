/* SPDX-License-Identifier: Apache-2.0
 *
 * Occupancy against NVIDIA's own cuda_occupancy.h: random launches on every device of compute
 * capability 3.0 and up. Usage: test_occupancy [LAUNCHES [SEED]]. */
#include "hw_device.h"

#include <cuda_occupancy.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

/* xorshift: below n. */
static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % n;
}

/* ---- one launch, in both languages ---- */

typedef struct launch {
    hw_occupancy_query query;
    cudaOccDeviceProp prop;
    cudaOccFuncAttributes attr;
    cudaOccDeviceState dev_state;
} launch;

static cudaOccDeviceProp properties(const hw_device *d)
{
    cudaOccDeviceProp p = { 0 };
    p.computeMajor = (int)d->capability.major;
    p.computeMinor = (int)d->capability.minor;
    p.maxThreadsPerBlock = (int)d->compute.max_threads_per_block;
    p.maxThreadsPerMultiprocessor = (int)d->compute.max_threads_per_sm;
    p.regsPerBlock = (int)d->occupancy.registers_per_block;
    p.regsPerMultiprocessor = (int)d->occupancy.registers_per_sm;
    p.warpSize = (int)d->compute.warp_size;
    p.sharedMemPerBlock = d->occupancy.shared_per_block;
    p.sharedMemPerMultiprocessor = d->occupancy.shared_per_sm;
    p.numSms = (int)d->compute.sm_count;
    p.sharedMemPerBlockOptin = d->occupancy.shared_per_block_optin;
    p.reservedSharedMemPerBlock = d->occupancy.shared_reserved_per_block;
    return p;
}

static uint32_t random_size(const hw_device *d)
{
    switch (below(4)) {
    case 0:
        return 0;
    case 1:
        return below(16384);
    case 2:
        return below(64) * 1024;
    default:
        return below(d->occupancy.shared_per_sm + 4096);
    }
}

static void random_launch(const hw_device *d, launch *l)
{
    hw_occupancy_query *q = &l->query;
    *q = (hw_occupancy_query)HW_OCCUPANCY_QUERY_INIT;
    q->threads = below(3) ? 32 * (1 + below(33)) : 1 + below(1056);
    q->registers = below(260);
    q->shared_static = below(2) ? 0 : random_size(d);
    q->shared_dynamic = random_size(d);
    q->shared_optin = below(2);
    q->shared_dynamic_max = below(2) ? q->shared_dynamic : random_size(d);
    q->barriers = below(17);
    q->virtual_resources = below(3) ? 0 : below(40);
    q->carveout = below(2) ? HW_CARVEOUT_DEFAULT : (int)below(101);
    q->cache = (hw_cache_preference)below(4);
    q->partitioned = (hw_partitioned)below(3);
    l->prop = properties(d);
    memset(&l->attr, 0, sizeof l->attr);
    l->attr.maxThreadsPerBlock = (int)d->compute.max_threads_per_block;
    l->attr.numRegs = (int)q->registers;
    l->attr.sharedSizeBytes = q->shared_static;
    l->attr.partitionedGCConfig = (cudaOccPartitionedGCConfig)q->partitioned;
    l->attr.shmemLimitConfig = q->shared_optin ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
    l->attr.maxDynamicSharedSizeBytes = q->shared_dynamic_max;
    l->attr.numBlockBarriers = (int)q->barriers;
    l->attr.virtualResourceCount = (int)q->virtual_resources;
    l->dev_state.cacheConfig = (cudaOccCacheConfig)q->cache;
    l->dev_state.carveoutConfig = q->carveout;
}

/* ---- comparison ---- */

static uint32_t unlimited(int limit)
{
    return limit == INT_MAX ? HW_UNLIMITED : (uint32_t)limit;
}

/* The header's bits for the limits below barriers are those of the minimum before barriers were
 * looked at. */
static uint32_t expected_bits(const cudaOccResult *r)
{
    static const struct {
        unsigned theirs;
        hw_limit ours;
    } bits[] = { { OCC_LIMIT_WARPS, HW_LIMIT_WARPS },
                 { OCC_LIMIT_REGISTERS, HW_LIMIT_REGISTERS },
                 { OCC_LIMIT_SHARED_MEMORY, HW_LIMIT_SHARED },
                 { OCC_LIMIT_BLOCKS, HW_LIMIT_BLOCKS },
                 { OCC_LIMIT_BARRIERS, HW_LIMIT_BARRIERS },
                 { OCC_LIMIT_VIRTUAL_RESOURCES, HW_LIMIT_VIRTUAL } };
    uint32_t all = 0;
    int others = INT_MAX;
    const int limits[] = { r->blockLimitWarps, r->blockLimitRegs, r->blockLimitSharedMem,
                           r->blockLimitBlocks, r->blockLimitVirtual };
    for (size_t i = 0; i < HW_COUNTOF(limits); i++)
        others = limits[i] < others ? limits[i] : others;
    for (size_t i = 0; i < HW_COUNTOF(bits); i++)
        if (r->limitingFactors & bits[i].theirs &&
            (bits[i].theirs == OCC_LIMIT_BARRIERS || r->blockLimitBarriers >= others))
            all |= 1u << bits[i].ours;
    return all;
}

static bool same(const launch *l, const hw_occupancy_result *ours, const cudaOccResult *r)
{
    const uint32_t *limit = ours->limits;
    uint32_t bits = ours->limiters & ~(1u << HW_LIMIT_THREADS);
    return ours->blocks == (uint32_t)r->activeBlocksPerMultiprocessor &&
           limit[HW_LIMIT_REGISTERS] == unlimited(r->blockLimitRegs) &&
           limit[HW_LIMIT_SHARED] == unlimited(r->blockLimitSharedMem) &&
           limit[HW_LIMIT_WARPS] == unlimited(r->blockLimitWarps) &&
           limit[HW_LIMIT_BLOCKS] == unlimited(r->blockLimitBlocks) &&
           limit[HW_LIMIT_BARRIERS] == unlimited(r->blockLimitBarriers) &&
           limit[HW_LIMIT_VIRTUAL] == unlimited(r->blockLimitVirtual) &&
           ours->registers_allocated == (uint32_t)r->allocatedRegistersPerBlock &&
           ours->shared_allocated == r->allocatedSharedMemPerBlock &&
           (int)ours->partitioned == (int)r->partitionedGCConfig && bits == expected_bits(r) &&
           ours->warps == ours->blocks * ((l->query.threads + 31) / 32);
}

static int report(const hw_device *d, const launch *l, const char *what)
{
    const hw_occupancy_query *q = &l->query;
    fprintf(stderr,
            "%s: %s differs: threads %" PRIu32 " registers %" PRIu32 " static %" PRIu64
            " dynamic %" PRIu64 " optin %d most %" PRIu64 " barriers %" PRIu32 " virtual %" PRIu32
            " carveout %d cache %d partitioned %d\n",
            d->name, what, q->threads, q->registers, q->shared_static, q->shared_dynamic,
            q->shared_optin, q->shared_dynamic_max, q->barriers, q->virtual_resources, q->carveout,
            (int)q->cache, (int)q->partitioned);
    return 1;
}

static int compare_blocks(const hw_device *d, const launch *l)
{
    hw_occupancy_result ours;
    cudaOccResult theirs;
    hw_occupancy(d, &l->query, &ours);
    cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(
        &theirs, &l->prop, &l->attr, &l->dev_state, (int)l->query.threads, l->query.shared_dynamic);
    bool good = e == CUDA_OCC_SUCCESS ? same(l, &ours, &theirs)
                                      : ours.blocks == 0 && ours.refusal != HW_FITS;
    return good ? 0 : report(d, l, "occupancy");
}

static int compare_block_size(const hw_device *d, const launch *l)
{
    int grid, size;
    uint32_t our_grid;
    if (cudaOccMaxPotentialOccupancyBlockSize(&grid, &size, &l->prop, &l->attr, &l->dev_state, NULL,
                                              l->query.shared_dynamic) != CUDA_OCC_SUCCESS)
        return 0;
    uint32_t our_size = hw_occupancy_block_size(d, &l->query, 0, NULL, NULL, &our_grid);
    return our_size == (uint32_t)size && our_grid == (uint32_t)grid ? 0
                                                                    : report(d, l, "block size");
}

/* Where static memory is larger than each block's share the header's unsigned subtraction wraps;
 * ours says 0. */
static int compare_available(const hw_device *d, const launch *l)
{
    size_t theirs = 0;
    uint64_t ours = 0;
    uint32_t blocks = 1 + below(8);
    bool ok = hw_occupancy_shared_available(d, &l->query, blocks, &ours);
    bool their_ok =
        cudaOccAvailableDynamicSMemPerBlock(&theirs, &l->prop, &l->attr, &l->dev_state, (int)blocks,
                                            (int)l->query.threads) == CUDA_OCC_SUCCESS;
    bool wrapped = ours == 0, unbounded = l->query.shared_dynamic_max == 0;
    if (ok != their_ok || (ok && !wrapped && !unbounded && ours != theirs))
        return report(d, l, "available shared memory");
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long launches = argc > 1 ? strtoul(argv[1], NULL, 0) : 250000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : UINT64_C(20070508);
    state = seed ? seed : 1;
    hw_arena *a = hw_arena_new();
    const char *const *names;
    size_t n = hw_device_list(a, &names), used = 0;
    const hw_device **devices = HW_NEW_N(a, const hw_device *, n);
    for (size_t i = 0; i < n; i++) {
        const hw_device *d;
        if (hw_device_load(a, names[i], &d, NULL) == HW_OK && d->vendor == HW_VENDOR_NVIDIA &&
            d->capability.major >= 3)
            devices[used++] = d;
    }
    unsigned long bad = 0;
    for (unsigned long i = 0; i < launches && bad < 10; i++) {
        const hw_device *d = devices[i % used];
        launch l;
        random_launch(d, &l);
        bad += (unsigned long)compare_blocks(d, &l);
        if (i % 16 == 0)
            bad += (unsigned long)(compare_block_size(d, &l) + compare_available(d, &l));
    }
    printf("%lu launches on %zu devices, seed %" PRIu64 ": %lu differences\n", launches, used, seed,
           bad);
    hw_arena_free(a);
    return bad || used < 25;
}

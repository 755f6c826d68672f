/* SPDX-License-Identifier: Apache-2.0
 *
 * Occupancy: how many blocks one multiprocessor holds. For compute capability 3.0 and later the
 * numbers equal those of NVIDIA's cuda_occupancy.h (tests/oracle), for 1.x and 2.x those of its
 * CUDA 7.0 edition. */
#include "hw_device.h"
#include "occupancy.h"

/* Saturating arithmetic: queries come from users, and no number in them may wrap. */
static uint64_t round_up(uint64_t n, uint64_t unit)
{
    uint64_t rest = unit > 1 ? n % unit : 0;
    return rest == 0 ? n : n > UINT64_MAX - (unit - rest) ? UINT64_MAX : n + (unit - rest);
}

static uint64_t add(uint64_t x, uint64_t y)
{
    return x > UINT64_MAX - y ? UINT64_MAX : x + y;
}

static uint32_t quotient(uint64_t whole, uint64_t part)
{
    uint64_t q = part ? whole / part : UINT64_MAX;
    return q > HW_UNLIMITED ? HW_UNLIMITED : (uint32_t)q;
}

static void refuse(hw_occupancy_result *r, hw_refusal why)
{
    if (r->refusal == HW_FITS)
        r->refusal = why;
}

/* ---- registers (NVIDIA) ---- */

static uint64_t register_unit(const hw_device *d, uint32_t registers)
{
    const hw_list *odd = &d->occupancy.register_unit_exceptions;
    for (uint32_t i = 0; i < odd->len; i++)
        if (odd->v[i] == registers)
            return d->occupancy.register_exception_unit;
    return d->occupancy.register_alloc_unit;
}

static bool too_many_registers(const hw_device *d, const hw_occupancy_query *q,
                               hw_occupancy_result *r)
{
    if (q->registers <= d->occupancy.max_registers_check)
        return false;
    r->limits[HW_LIMIT_REGISTERS] = 0;
    refuse(r, HW_REFUSED_REGISTERS_THREAD);
    return true;
}

static void registers_by_block(const hw_device *d, const hw_occupancy_query *q,
                               hw_occupancy_result *r)
{
    uint64_t warps = round_up(r->warps_per_block, d->occupancy.warp_alloc_granularity);
    uint64_t need = round_up((uint64_t)q->registers * d->compute.warp_size * warps,
                             register_unit(d, q->registers));
    r->registers_allocated = need > UINT32_MAX ? UINT32_MAX : (uint32_t)need;
    r->limits[HW_LIMIT_REGISTERS] = quotient(d->occupancy.registers_per_sm, need);
    if (too_many_registers(d, q, r))
        return;
    if (need > d->occupancy.registers_per_sm)
        refuse(r, HW_REFUSED_REGISTERS_BLOCK);
}

/* A warp's registers lie in one of subpartitions parts, so the warps of a part are counted, not its
 * registers. */
static uint32_t warps_of_part(const hw_device *d, uint64_t per_warp, uint32_t subpartitions)
{
    return quotient(d->occupancy.registers_per_sm / subpartitions, per_warp);
}

static bool registers_launch(const hw_device *d, const hw_occupancy_result *r, uint64_t per_warp,
                             uint32_t subpartitions)
{
    return per_warp * round_up(r->warps_per_block, subpartitions) <=
           d->occupancy.registers_per_block;
}

/* A device that has fewer sub-partitions than its relatives refuses what those could not launch. */
static bool registers_recheck(const hw_device *d, const hw_occupancy_result *r, uint64_t per_warp)
{
    uint32_t parts = d->occupancy.subpartitions_recheck;
    return parts == 0 || (registers_launch(d, r, per_warp, parts) &&
                          warps_of_part(d, per_warp, parts) * parts >= r->warps_per_block);
}

static void registers_by_warp(const hw_device *d, const hw_occupancy_query *q,
                              hw_occupancy_result *r)
{
    uint32_t parts = d->occupancy.register_subpartitions;
    uint64_t per_warp =
        round_up((uint64_t)q->registers * d->compute.warp_size, register_unit(d, q->registers));
    uint64_t allocated = per_warp * r->warps_per_block;
    r->registers_allocated = allocated > UINT32_MAX ? UINT32_MAX : (uint32_t)allocated;
    if (too_many_registers(d, q, r))
        return;
    if (!registers_launch(d, r, per_warp, parts)) {
        r->limits[HW_LIMIT_REGISTERS] = 0;
        refuse(r, HW_REFUSED_REGISTERS_BLOCK);
        return;
    }
    if (per_warp == 0)
        return;
    uint32_t warps = warps_of_part(d, per_warp, parts), blocks = 0;
    if (r->partitioned != HW_PARTITIONED_OFF)
        blocks = warps * (parts / 2) / r->warps_per_block * 2;
    if (blocks == 0 && r->partitioned != HW_PARTITIONED_STRICT) {
        r->partitioned = HW_PARTITIONED_OFF;
        blocks = warps * parts / r->warps_per_block;
    }
    if (blocks && !registers_recheck(d, r, per_warp))
        blocks = 0;
    if (blocks == 0)
        refuse(r, HW_REFUSED_REGISTERS_SM);
    r->limits[HW_LIMIT_REGISTERS] = blocks;
}

static void limit_registers(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    if (d->occupancy.register_alloc_scope == HW_ALLOC_BLOCK)
        registers_by_block(d, q, r);
    else
        registers_by_warp(d, q, r);
}

/* ---- shared memory (NVIDIA) ---- */

/* The smallest configuration of at least size bytes; 0 with *ok false if there is none. */
static uint64_t config_for(const hw_device *d, uint64_t size, bool *ok)
{
    const hw_list *c = &d->occupancy.shared_configs;
    for (uint32_t i = 0; i < c->len; i++)
        if (c->v[i] >= size)
            return c->v[i];
    *ok = false;
    return 0;
}

static uint64_t config_by_cache(const hw_device *d, hw_cache_preference cache)
{
    const hw_list *c = &d->occupancy.shared_configs;
    if (cache == HW_CACHE_L1)
        return c->v[0];
    return cache == HW_CACHE_EQUAL ? c->v[c->len / 2] : c->v[c->len - 1];
}

static int carveout_of(const hw_occupancy_query *q)
{
    static const int by_cache[] = { HW_CARVEOUT_DEFAULT, 100, 0, 50 };
    return q->carveout == HW_CARVEOUT_DEFAULT ? by_cache[q->cache & 3] : q->carveout;
}

/* What shared memory is configured to before the block's own need is looked at. */
static uint64_t config_preferred(const hw_device *d, const hw_occupancy_query *q, bool *ok)
{
    if (d->occupancy.shared_config_kind != HW_CONFIG_CARVEOUT)
        return config_by_cache(d, q->cache);
    int percent = carveout_of(q);
    *ok = percent >= HW_CARVEOUT_DEFAULT && percent <= 100;
    if (!*ok)
        return 0;
    uint64_t wanted = d->occupancy.shared_per_sm;
    if (percent != HW_CARVEOUT_DEFAULT)
        wanted = wanted * (uint64_t)percent / 100;
    return config_for(d, wanted, ok);
}

/* Most that one block may have, reserve included. */
static uint64_t shared_of_block(const hw_device *d, const hw_occupancy_query *q)
{
    uint64_t most = d->occupancy.shared_per_block;
    uint64_t asked =
        add(add(q->shared_static, d->occupancy.shared_reserved_per_block), q->shared_dynamic_max);
    if (q->shared_optin && d->occupancy.shared_per_block_optin && asked > most)
        most = d->occupancy.shared_per_block_optin;
    return most + d->occupancy.shared_reserved_per_block;
}

static void limit_shared(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    bool ok = true;
    uint64_t config = config_preferred(d, q, &ok);
    uint64_t raw =
        add(add(q->shared_static, d->occupancy.shared_reserved_per_block), q->shared_dynamic);
    uint64_t need = round_up(raw, d->occupancy.shared_alloc_unit);
    r->shared_allocated = need;
    r->limits[HW_LIMIT_SHARED] = 0;
    if (!ok) {
        refuse(r, HW_REFUSED_SHARED_CONFIG);
    } else if (q->shared_optin && q->shared_dynamic > q->shared_dynamic_max) {
        refuse(r, HW_REFUSED_SHARED_DYNAMIC);
    } else if (need > shared_of_block(d, q)) {
        uint64_t best =
            (uint64_t)d->occupancy.shared_per_block_optin + d->occupancy.shared_reserved_per_block;
        refuse(r, !q->shared_optin && need <= best ? HW_REFUSED_SHARED_OPTIN
                                                   : HW_REFUSED_SHARED_BLOCK);
    } else {
        if (config < need)
            config = d->occupancy.shared_config_kind == HW_CONFIG_CARVEOUT
                         ? config_for(d, need, &ok)
                         : d->occupancy.shared_per_sm;
        r->shared_config = config;
        r->limits[HW_LIMIT_SHARED] = quotient(config, need);
        if (!ok || config < need)
            refuse(r, HW_REFUSED_SHARED_CONFIG);
    }
}

/* As cudaOccAvailableDynamicSMemPerBlock counts, which does not subtract the reserve of each block.
 */
bool hw_occupancy_shared_available(const hw_device *d, const hw_occupancy_query *query,
                                   uint32_t blocks, uint64_t *bytes)
{
    hw_occupancy_query q = *query;
    hw_occupancy_result r;
    bool ok = true;
    q.shared_dynamic = 0;
    if (d->vendor != HW_VENDOR_NVIDIA || blocks == 0 || !hw_occupancy(d, &q, &r) ||
        r.blocks < blocks)
        return false;
    bool large = q.shared_optin && d->occupancy.shared_per_block_optin;
    uint64_t most = (large ? d->occupancy.shared_per_block_optin : d->occupancy.shared_per_block) +
                    d->occupancy.shared_reserved_per_block;
    uint64_t config = config_preferred(d, &q, &ok);
    uint64_t total = blocks == 1 ? most : config ? config : config_for(d, 1, &ok);
    uint64_t each =
        total / blocks / d->occupancy.shared_alloc_unit * d->occupancy.shared_alloc_unit;
    each = each < most ? each : most;
    each = each > q.shared_static ? each - q.shared_static : 0;
    *bytes = q.shared_dynamic_max && each > q.shared_dynamic_max ? q.shared_dynamic_max : each;
    return true;
}

/* ---- the rest (NVIDIA) ---- */

static void limit_warps(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    uint32_t warps = r->warps_per_block;
    if (q->policy != HW_OCCUPANCY_SPREADSHEET)
        warps = (uint32_t)round_up(warps, d->occupancy.warp_alloc_granularity);
    if (q->threads > d->compute.max_threads_per_block) {
        r->limits[HW_LIMIT_WARPS] = 0;
        refuse(r, HW_REFUSED_THREADS);
    } else if (r->partitioned != HW_PARTITIONED_OFF) {
        r->limits[HW_LIMIT_WARPS] = d->occupancy.max_warps_per_sm / 2 / warps * 2;
    } else {
        r->limits[HW_LIMIT_WARPS] = d->occupancy.max_warps_per_sm / warps;
    }
    r->limits[HW_LIMIT_THREADS] = d->compute.max_threads_per_sm / q->threads;
}

static void limit_counted(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    r->limits[HW_LIMIT_BLOCKS] = d->occupancy.max_blocks_per_sm;
    if (q->barriers && d->occupancy.barriers_limit)
        r->limits[HW_LIMIT_BARRIERS] = d->occupancy.barriers_per_sm / q->barriers;
    if (q->virtual_resources && d->occupancy.virtual_resources_per_sm)
        r->limits[HW_LIMIT_VIRTUAL] = d->occupancy.virtual_resources_per_sm / q->virtual_resources;
    if (r->limits[HW_LIMIT_BARRIERS] == 0)
        refuse(r, HW_REFUSED_BARRIERS);
    if (r->limits[HW_LIMIT_VIRTUAL] == 0)
        refuse(r, HW_REFUSED_VIRTUAL);
}

/* The fewest blocks of all limits, and which limits those are. */
void hw_occupancy_settle(const hw_occupancy_query *q, hw_occupancy_result *r)
{
    static const hw_limit order[] = { HW_LIMIT_WARPS,  HW_LIMIT_BLOCKS,   HW_LIMIT_REGISTERS,
                                      HW_LIMIT_SHARED, HW_LIMIT_BARRIERS, HW_LIMIT_VIRTUAL,
                                      HW_LIMIT_VGPR,   HW_LIMIT_SGPR,     HW_LIMIT_LDS,
                                      HW_LIMIT_THREADS };
    uint32_t least = HW_UNLIMITED;
    for (unsigned i = 0; i < HW_LIMIT_COUNT; i++)
        least = r->limits[i] < least ? r->limits[i] : least;
    for (unsigned i = HW_LIMIT_COUNT; i-- > 0;) {
        if (r->limits[order[i]] != least)
            continue;
        r->limiters |= 1u << order[i];
        r->limiter = order[i];
    }
    r->blocks = least;
    r->warps = least * r->warps_per_block;
    r->threads = least * q->threads;
    r->occupancy = r->max_warps ? (double)r->warps / r->max_warps : 0;
}

static void nvidia(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    r->max_warps = d->occupancy.max_warps_per_sm;
    r->partitioned = d->occupancy.partitioned_caching ? q->partitioned : HW_PARTITIONED_OFF;
    limit_registers(d, q, r);
    limit_warps(d, q, r);
    limit_shared(d, q, r);
    limit_counted(d, q, r);
    hw_occupancy_settle(q, r);
    if (q->threads > d->compute.max_threads_per_block)
        r->refusal = HW_REFUSED_THREADS;
}

bool hw_occupancy(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    *r = (hw_occupancy_result){ .max_warps = 0 };
    for (unsigned i = 0; i < HW_LIMIT_COUNT; i++)
        r->limits[i] = HW_UNLIMITED;
    if (q->threads == 0) {
        r->refusal = HW_REFUSED_NO_THREADS;
        return false;
    }
    r->warps_per_block =
        (uint32_t)(((uint64_t)q->threads + d->compute.warp_size - 1) / d->compute.warp_size);
    if (d->vendor == HW_VENDOR_AMD)
        hw_occupancy_gcn(d, q, r);
    else
        nvidia(d, q, r);
    return r->blocks > 0;
}

/* ---- names ---- */

const char *hw_limit_name(hw_limit limit)
{
    static const char *const names[] = {
        [HW_LIMIT_THREADS] = "threads",
        [HW_LIMIT_WARPS] = "warps",
        [HW_LIMIT_BLOCKS] = "blocks",
        [HW_LIMIT_REGISTERS] = "registers",
        [HW_LIMIT_SHARED] = "shared_memory",
        [HW_LIMIT_BARRIERS] = "barriers",
        [HW_LIMIT_VIRTUAL] = "virtual_resources",
        [HW_LIMIT_VGPR] = "vgpr",
        [HW_LIMIT_SGPR] = "sgpr",
        [HW_LIMIT_LDS] = "lds",
    };
    return (unsigned)limit < HW_LIMIT_COUNT ? names[limit] : "unknown";
}

const char *hw_refusal_text(hw_refusal refusal)
{
    static const char *const texts[] = {
        [HW_FITS] = "fits",
        [HW_REFUSED_NO_THREADS] = "a block needs at least one thread",
        [HW_REFUSED_THREADS] = "more threads than a block may have",
        [HW_REFUSED_REGISTERS_THREAD] = "more registers than a thread may have",
        [HW_REFUSED_REGISTERS_BLOCK] = "more registers than a block may have",
        [HW_REFUSED_REGISTERS_SM] = "more registers than the register file can give one block",
        [HW_REFUSED_SHARED_BLOCK] = "more shared memory than a block may have",
        [HW_REFUSED_SHARED_OPTIN] = "more shared memory than a block may have without opting in",
        [HW_REFUSED_SHARED_DYNAMIC] = "more dynamic shared memory than the kernel opted in to",
        [HW_REFUSED_SHARED_CONFIG] = "no shared memory configuration fits",
        [HW_REFUSED_BARRIERS] = "more barriers than a multiprocessor has",
        [HW_REFUSED_VIRTUAL] = "more virtual resources than a multiprocessor has",
        [HW_REFUSED_VGPRS] = "more VGPRs than a wave may have",
        [HW_REFUSED_SGPRS] = "more SGPRs than a wave may have",
    };
    return (unsigned)refusal < HW_REFUSED_COUNT ? texts[refusal] : "unknown";
}

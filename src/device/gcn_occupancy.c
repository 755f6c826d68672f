/* SPDX-License-Identifier: Apache-2.0
 *
 * Occupancy of AMD's compute units, exactly (whole groups) or as the LLVM compiler estimates it,
 * and the LDS tipping points of the Xbox One quick reference. */
#include "hw_device.h"
#include "occupancy.h"

static uint32_t least(uint32_t x, uint32_t y)
{
    return x < y ? x : y;
}

static uint32_t up_to(uint32_t n, uint32_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Waves of one SIMD that registers of one kind allow; have 0: any number. */
static uint32_t waves_by_registers(uint32_t have, uint32_t used, uint32_t unit)
{
    uint32_t given = up_to(used, unit);
    return have == 0 || given == 0 ? HW_UNLIMITED : have / given;
}

static uint32_t sgprs_used(const hw_device *d, const hw_occupancy_query *q)
{
    return q->sgprs + (q->trap_handler && q->sgprs ? d->gcn.trap_handler_sgprs : 0);
}

/* Groups that so many waves on each SIMD make room for. */
static uint32_t groups_of_waves(const hw_device *d, uint32_t per_simd, uint32_t waves_per_group)
{
    return per_simd == HW_UNLIMITED ? HW_UNLIMITED
                                    : per_simd * d->gcn.simds_per_unit / waves_per_group;
}

/* Barriers hold groups of several waves together; single waves need none. */
static uint32_t group_slots(const hw_device *d, uint32_t waves_per_group)
{
    return waves_per_group > 1 ? d->gcn.max_groups_per_unit : HW_UNLIMITED;
}

static uint64_t lds_given(const hw_device *d, uint64_t lds)
{
    uint64_t unit = d->gcn.lds_granularity;
    return lds > UINT64_MAX - unit ? UINT64_MAX : (lds + unit - 1) / unit * unit;
}

static bool refused(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    if (q->threads > d->compute.max_threads_per_block)
        r->refusal = HW_REFUSED_THREADS;
    else if (q->vgprs > d->gcn.max_vgprs)
        r->refusal = HW_REFUSED_VGPRS;
    else if (q->sgprs > d->gcn.max_sgprs + d->gcn.extra_sgprs)
        r->refusal = HW_REFUSED_SGPRS;
    else if (q->lds > d->gcn.lds_max_per_group &&
             q->policy != HW_OCCUPANCY_LLVM) /* the remark ignores it */
        r->refusal = HW_REFUSED_SHARED_BLOCK;
    return r->refusal != HW_FITS;
}

static void count_waves(const hw_device *d, hw_occupancy_result *r)
{
    uint32_t simds = d->gcn.simds_per_unit;
    r->waves_per_simd = r->warps / simds;
    r->waves_per_simd_ceil = (r->warps + simds - 1) / simds;
    r->simds_used = least(r->warps, simds);
}

/* ---- the compiler's estimate ---- */

static uint32_t llvm_sgpr_waves(const hw_device *d, uint32_t sgprs)
{
    const hw_list *steps = &d->gcn.llvm_sgpr_steps;
    uint32_t i = 0;
    while (i + 1 < steps->len && sgprs > steps->v[i])
        i++;
    return d->gcn.max_waves_per_simd - i;
}

static uint32_t llvm_lds_waves(const hw_device *d, const hw_occupancy_query *q, uint32_t n)
{
    uint32_t simds = d->gcn.simds_per_unit, most = d->gcn.max_waves_per_simd;
    uint32_t groups = least(group_slots(d, n), most * simds / n);
    uint64_t by_lds = q->lds ? d->gcn.llvm_lds_bytes / q->lds : UINT64_MAX;
    groups = by_lds < groups ? (uint32_t)by_lds : groups;
    return least(most, (groups * n + simds - 1) / simds);
}

/* Fills waves only: the remark knows no whole groups. Never below one wave. */
static void llvm(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    uint32_t n = r->warps_per_block;
    uint32_t v = waves_by_registers(d->gcn.vgprs_per_simd, q->vgprs, d->gcn.vgpr_granularity);
    uint32_t s = llvm_sgpr_waves(d, q->sgprs), l = llvm_lds_waves(d, q, n);
    uint32_t waves = least(least(least(v, s), l), d->gcn.max_waves_per_simd);
    waves = waves ? waves : 1;
    r->waves_per_simd = r->waves_per_simd_ceil = waves;
    r->warps = waves * d->gcn.simds_per_unit;
    r->blocks = r->warps / n ? r->warps / n : 1;
    r->occupancy = (double)waves / d->gcn.max_waves_per_simd;
    r->simds_used = d->gcn.simds_per_unit;
    r->limits[HW_LIMIT_WARPS] = groups_of_waves(d, d->gcn.max_waves_per_simd, n);
    r->limits[HW_LIMIT_VGPR] = groups_of_waves(d, v, n);
    r->limits[HW_LIMIT_SGPR] = groups_of_waves(d, s, n);
    r->limits[HW_LIMIT_LDS] = groups_of_waves(d, l, n);
    r->limiter = waves == d->gcn.max_waves_per_simd ? HW_LIMIT_WARPS
                 : waves == v                       ? HW_LIMIT_VGPR
                 : waves == s                       ? HW_LIMIT_SGPR
                                                    : HW_LIMIT_LDS;
    r->limiters = 1u << r->limiter;
    r->threads = r->warps * d->compute.warp_size;
}

/* ---- the hardware's rule ---- */

static void exact(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    uint32_t n = r->warps_per_block;
    uint32_t v = waves_by_registers(d->gcn.vgprs_per_simd, q->vgprs, d->gcn.vgpr_granularity);
    uint32_t s =
        waves_by_registers(d->gcn.sgprs_per_simd, sgprs_used(d, q), d->gcn.sgpr_granularity);
    r->limits[HW_LIMIT_WARPS] = groups_of_waves(d, d->gcn.max_waves_per_simd, n);
    r->limits[HW_LIMIT_VGPR] = groups_of_waves(d, v, n);
    r->limits[HW_LIMIT_SGPR] = groups_of_waves(d, s, n);
    r->limits[HW_LIMIT_BLOCKS] = group_slots(d, n);
    if (q->lds)
        r->limits[HW_LIMIT_LDS] = (uint32_t)(d->gcn.lds_bytes / lds_given(d, q->lds));
    hw_occupancy_settle(q, r);
    count_waves(d, r);
}

void hw_occupancy_gcn(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r)
{
    r->max_warps = d->gcn.max_waves_per_simd * d->gcn.simds_per_unit;
    if (refused(d, q, r)) {
        r->limits[HW_LIMIT_WARPS] =
            q->threads > d->compute.max_threads_per_block ? 0 : HW_UNLIMITED;
        return;
    }
    r->registers_allocated = up_to(q->vgprs, d->gcn.vgpr_granularity);
    r->sgprs_allocated = up_to(sgprs_used(d, q), d->gcn.sgpr_granularity);
    r->shared_allocated = lds_given(d, q->lds);
    if (q->policy == HW_OCCUPANCY_LLVM)
        llvm(d, q, r);
    else
        exact(d, q, r);
    if (r->blocks == 0) /* the group's registers do not fit all its waves */
        r->refusal = r->limits[HW_LIMIT_VGPR] == 0 ? HW_REFUSED_VGPRS : HW_REFUSED_SGPRS;
}

/* ---- LDS tipping points ---- */

static uint32_t waves_at(const hw_device *d, uint32_t threads, uint32_t lds)
{
    hw_occupancy_query q = HW_OCCUPANCY_QUERY_INIT;
    hw_occupancy_result r;
    q.threads = threads;
    q.lds = lds;
    hw_occupancy(d, &q, &r);
    return r.warps;
}

void hw_lds_tipping_point(const hw_device *d, uint32_t threads, uint32_t waves, uint32_t *tipping,
                          uint32_t *whole)
{
    uint32_t unit = d->gcn.lds_granularity, wave = d->compute.warp_size;
    *tipping = *whole = 0;
    if (d->vendor != HW_VENDOR_AMD || waves == 0 || threads == 0 ||
        threads > d->compute.max_threads_per_block)
        return;
    uint32_t wanted = waves * d->gcn.simds_per_unit;
    uint64_t bytes =
        (uint64_t)d->gcn.lds_bytes * ((threads + wave - 1) / wave) / wanted / unit * unit;
    *tipping = bytes > d->gcn.lds_max_per_group ? d->gcn.lds_max_per_group : (uint32_t)bytes;
    for (uint32_t lds = d->gcn.lds_max_per_group / unit * unit; lds > 0 && *whole == 0; lds -= unit)
        if (waves_at(d, threads, lds) >= wanted)
            *whole = lds;
}

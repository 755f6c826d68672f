/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions that ask occupancy many times: the best block size, shared memory left for so many
 * blocks. */
#include "hw_device.h"

static uint32_t round_up_to(uint32_t n, uint32_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* From the largest size down by whole warps; a size that fills every thread slot ends the search.
 */
uint32_t hw_occupancy_block_size(const hw_device *d, const hw_occupancy_query *query,
                                 uint32_t limit, hw_block_shared *shared, void *context,
                                 uint32_t *grid)
{
    hw_occupancy_query q = *query;
    hw_occupancy_result r;
    uint32_t warp = d->compute.warp_size, most = d->compute.max_threads_per_block;
    uint32_t best = 0, best_threads = 0, best_blocks = 0;
    most = limit && limit < most ? limit : most;
    for (uint32_t size = round_up_to(most, warp); size > 0; size -= warp) {
        q.threads = size < most ? size : most;
        if (shared)
            q.shared_dynamic = shared(context, q.threads);
        hw_occupancy(d, &q, &r);
        if (r.threads > best_threads) {
            best = q.threads;
            best_threads = r.threads;
            best_blocks = r.blocks;
        }
        if (best_threads == d->compute.max_threads_per_sm)
            break;
    }
    if (grid)
        *grid = best_blocks * d->compute.sm_count;
    return best;
}

/* ---- the next step up ---- */

/* One resource of a query, as a number that can be changed. */
typedef struct resource {
    hw_limit limit;
    hw_vendor vendor;
    uint64_t (*get)(const hw_occupancy_query *q);
    void (*set)(hw_occupancy_query *q, uint64_t amount);
} resource;

#define RESOURCE(name, read, write)                                \
    static uint64_t get_##name(const hw_occupancy_query *q)        \
    {                                                              \
        return read;                                               \
    }                                                              \
    static void set_##name(hw_occupancy_query *q, uint64_t amount) \
    {                                                              \
        write;                                                     \
    }
RESOURCE(registers, q->registers, q->registers = (uint32_t)amount)
RESOURCE(barriers, q->barriers, q->barriers = (uint32_t)amount)
RESOURCE(vgprs, q->vgprs, q->vgprs = (uint32_t)amount)
RESOURCE(sgprs, q->sgprs, q->sgprs = (uint32_t)amount)
RESOURCE(lds, q->lds, q->lds = amount)

/* Static and dynamic shared memory together; what changes is the dynamic part while there is any.
 */
static uint64_t get_shared(const hw_occupancy_query *q)
{
    return q->shared_static + q->shared_dynamic;
}

static void set_shared(hw_occupancy_query *q, uint64_t amount)
{
    uint64_t fixed = q->shared_static < amount ? q->shared_static : amount;
    bool dynamic = q->shared_dynamic > 0;
    q->shared_static = dynamic ? fixed : amount;
    q->shared_dynamic = dynamic ? amount - fixed : 0;
    q->shared_dynamic_max = dynamic && q->shared_optin ? q->shared_dynamic : q->shared_dynamic_max;
}

static const resource resources[] = {
    { HW_LIMIT_REGISTERS, HW_VENDOR_NVIDIA, get_registers, set_registers },
    { HW_LIMIT_SHARED, HW_VENDOR_NVIDIA, get_shared, set_shared },
    { HW_LIMIT_BARRIERS, HW_VENDOR_NVIDIA, get_barriers, set_barriers },
    { HW_LIMIT_VGPR, HW_VENDOR_AMD, get_vgprs, set_vgprs },
    { HW_LIMIT_SGPR, HW_VENDOR_AMD, get_sgprs, set_sgprs },
    { HW_LIMIT_LDS, HW_VENDOR_AMD, get_lds, set_lds },
};

/* Warps with amount of the resource in place of the query's. */
static hw_occupancy_result with(const hw_device *d, const hw_occupancy_query *query,
                                const resource *r, uint64_t amount)
{
    hw_occupancy_query q = *query;
    hw_occupancy_result result;
    r->set(&q, amount);
    hw_occupancy(d, &q, &result);
    return result;
}

/* Amounts that can matter: multiples of unit below most. */
static uint64_t unit_of(const hw_device *d, const resource *r)
{
    if (r->limit == HW_LIMIT_SHARED)
        return d->occupancy.shared_alloc_unit;
    return r->limit == HW_LIMIT_LDS ? d->gcn.lds_granularity : 1;
}

#define SCAN_MAX 65536 /* sizes looked at; more are impossible on any device */

/* The largest amount below the query's that gives more warps. */
static bool less_gives_more(const hw_device *d, const hw_occupancy_query *q, const resource *r,
                            uint32_t warps, hw_occupancy_step *step)
{
    uint64_t now = r->get(q), unit = unit_of(d, r);
    uint64_t amount = now ? (now - 1) / unit * unit : 0;
    if (amount / unit > SCAN_MAX)
        amount = SCAN_MAX * unit;
    while (now) {
        hw_occupancy_result got = with(d, q, r, amount);
        if (got.warps > warps) {
            *step = (hw_occupancy_step){ r->limit, now, amount, got.blocks, got.warps };
            return true;
        }
        if (amount < unit)
            return false;
        amount -= unit;
    }
    return false;
}

/* How much more of the resource leaves the blocks as they are. */
static uint64_t room(const hw_device *d, const hw_occupancy_query *q, const resource *r,
                     uint32_t blocks)
{
    uint64_t now = r->get(q), unit = unit_of(d, r), most = now;
    if (blocks == 0)
        return 0;
    for (uint64_t n = now / unit + 1; n <= now / unit + SCAN_MAX; n++) {
        if (with(d, q, r, n * unit).blocks < blocks)
            break;
        most = n * unit;
    }
    /* the last unit is not always whole: a reserve may end inside it */
    while (most < now + SCAN_MAX * unit && with(d, q, r, most + 1).blocks >= blocks)
        most++;
    return most - now;
}

static void best_sizes(const hw_device *d, const hw_occupancy_query *query,
                       hw_occupancy_report *rep)
{
    hw_occupancy_query q = *query;
    hw_occupancy_result r;
    uint32_t warp = d->compute.warp_size;
    for (q.threads = warp; q.threads <= d->compute.max_threads_per_block; q.threads += warp) {
        hw_occupancy(d, &q, &r);
        if (r.warps > rep->best_warps) {
            rep->best_warps = r.warps;
            rep->best_count = 0;
        }
        if (r.warps == rep->best_warps && r.warps &&
            rep->best_count < sizeof rep->best_sizes / sizeof rep->best_sizes[0])
            rep->best_sizes[rep->best_count++] = q.threads;
    }
}

static uint32_t apart(uint32_t x, uint32_t y)
{
    return x > y ? x - y : y - x;
}

/* The block size nearest to the query's that has more warps resident. */
static bool other_size(const hw_device *d, const hw_occupancy_query *query, uint32_t warps,
                       hw_occupancy_step *step)
{
    hw_occupancy_query q = *query;
    hw_occupancy_result r;
    uint32_t warp = d->compute.warp_size;
    bool found = false;
    for (q.threads = warp; q.threads <= d->compute.max_threads_per_block; q.threads += warp) {
        hw_occupancy(d, &q, &r);
        if (r.warps <= warps || (found && apart(q.threads, query->threads) >=
                                              apart((uint32_t)step->then, query->threads)))
            continue;
        *step =
            (hw_occupancy_step){ HW_LIMIT_THREADS, query->threads, q.threads, r.blocks, r.warps };
        found = true;
    }
    return found;
}

static uint64_t config_enough(const hw_device *d, const hw_occupancy_result *r)
{
    const hw_list *c = &d->occupancy.shared_configs;
    for (uint32_t i = 0; i < c->len; i++)
        if (r->blocks && c->v[i] / r->blocks >= r->shared_allocated)
            return c->v[i];
    return r->shared_config;
}

bool hw_occupancy_explain(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_report *rep)
{
    *rep = (hw_occupancy_report){ .step_count = 0 };
    bool fits = hw_occupancy(d, q, &rep->result);
    for (size_t i = 0; i < HW_COUNTOF(resources); i++) {
        const resource *r = &resources[i];
        if (r->vendor != d->vendor)
            continue;
        if (less_gives_more(d, q, r, rep->result.warps, &rep->steps[rep->step_count]))
            rep->step_count++;
        if (r->limit == HW_LIMIT_REGISTERS || r->limit == HW_LIMIT_VGPR)
            rep->registers_free = (uint32_t)room(d, q, r, rep->result.blocks);
        if (r->limit == HW_LIMIT_SHARED || r->limit == HW_LIMIT_LDS)
            rep->shared_free = room(d, q, r, rep->result.blocks);
    }
    if (other_size(d, q, rep->result.warps, &rep->steps[rep->step_count]))
        rep->step_count++;
    best_sizes(d, q, rep);
    if (d->vendor == HW_VENDOR_NVIDIA)
        rep->config_enough = config_enough(d, &rep->result);
    return fits;
}

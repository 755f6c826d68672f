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

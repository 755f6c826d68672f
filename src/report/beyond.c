/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel does that a device cannot: it ran here all the same. */
#include "report.h"

typedef struct feature {
    const char *name;
    bool used, there;
} feature;

static uint64_t accesses(const hw_report_kernel *k, uint32_t device, int traffic)
{
    return k->sums.traffic[device][traffic][HW_FIELD_accesses];
}

const char *hw_report_beyond(hw_arena *a, const hw_report_run *run, const hw_report_kernel *k,
                             uint32_t device)
{
    const hw_device *d = run->devices[device];
    const uint64_t *t = k->sums.total;
    const feature features[] = {
        { "double precision", t[HW_TOTAL_inst_fp64] > 0, d->features.double_precision },
        { "half precision", t[HW_TOTAL_inst_fp16] > 0, d->throughput.fp16x2_fma != 0 },
        { "operations between lanes (shuffle, vote)", t[HW_TOTAL_inst_exchange] > 0,
          d->features.shuffle },
        { "atomics on global memory", accesses(k, device, HW_TRAFFIC_global_at) > 0,
          d->features.global_int32 },
        { "atomics on shared memory", accesses(k, device, HW_TRAFFIC_shared_at) > 0,
          d->features.shared_int32 },
        { "three-dimensional grids", k->grid[2] > 1, d->features.grid_3d },
    };
    const char *list = NULL;
    if (d->vendor != HW_VENDOR_NVIDIA)
        return NULL;
    for (size_t i = 0; i < HW_COUNTOF(features); i++)
        if (features[i].used && !features[i].there)
            list = list ? hw_arena_printf(a, "%s, %s", list, features[i].name) : features[i].name;
    return list;
}

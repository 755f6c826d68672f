/* SPDX-License-Identifier: Apache-2.0
 *
 * Small texts: shapes, numbers, shares of sums. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- numbers ---- */

const char *hw_grouped(hw_arena *a, uint64_t v)
{
    char digits[24], out[32];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, v), k = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            out[k++] = ',';
        out[k++] = digits[i];
    }
    return hw_arena_cstr(a, (hw_str){ out, (size_t)k });
}

const char *hw_metric_text(hw_arena *a, double value, bool grouped)
{
    if (isnan(value))
        return "n/a";
    if (value != floor(value) || fabs(value) >= 9e15)
        return hw_arena_printf(a, "%.*f", value < 1 && value > -1 ? 4 : 2, value);
    if (value < 0)
        return hw_arena_printf(a, "-%s", hw_metric_text(a, -value, grouped));
    return grouped ? hw_grouped(a, (uint64_t)value)
                   : hw_arena_printf(a, "%" PRIu64, (uint64_t)value);
}

const char *hw_report_shape(hw_arena *a, const hw_report_kernel *k)
{
    return hw_arena_printf(a, "(%u, %u, %u)x(%u, %u, %u)", k->grid[0], k->grid[1], k->grid[2],
                           k->block[0], k->block[1], k->block[2]);
}

const char *hw_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void hw_report_sums_divide(hw_arena *a, const hw_report_run *run, hw_report_sums *into,
                           const hw_report_sums *of, uint64_t n)
{
    n = n ? n : 1;
    into->traffic = hw_arena_alloc_array(a, run->n_devices, sizeof *into->traffic);
    if (of->cache)
        into->cache = hw_arena_alloc_array(a, run->n_devices, sizeof *into->cache);
    for (int i = 0; i < HW_TOTALS; i++)
        into->total[i] = of->total[i] / n;
    for (uint32_t d = 0; d < run->n_devices; d++) {
        for (int t = 0; t < HW_TRAFFICS; t++)
            for (int f = 0; f < HW_FIELDS; f++)
                into->traffic[d][t][f] = of->traffic[d][t][f] / n;
        for (int i = 0; of->cache && i < HW_CACHES; i++)
            into->cache[d][i] = of->cache[d][i] / n;
    }
}

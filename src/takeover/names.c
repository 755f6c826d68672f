/* SPDX-License-Identifier: Apache-2.0
 * The names that are redirected: runtime's table, those of older runtimes, and nvJitLink's.
 */
#include "takeover.h"

#include <string.h>

/* Sorted by strcmp; generated from cudart.def and jitlink.def when built. */
const char *const hw_taken_names[] = {
#include "taken_names.inc"
};
const unsigned hw_taken_count = sizeof hw_taken_names / sizeof *hw_taken_names;

/* NVRTC keeps the PTX that it made machine code of. */
const hw_reroute hw_reroutes[HW_REROUTES] = {
    { "nvrtcGetCUBIN", "nvrtcGetPTX" },
    { "nvrtcGetCUBINSize", "nvrtcGetPTXSize" },
};

int hw_taken_index(const char *name)
{
    unsigned low = 0, high = hw_taken_count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        int order = strcmp(name, hw_taken_names[middle]);
        if (order == 0)
            return (int)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

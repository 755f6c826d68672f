// SPDX-License-Identifier: Apache-2.0
//
// The installed header is C++ too: compiled, not run.
#include <halfwarp/device.h>

unsigned blocks_of(const hw_device *dev)
{
    hw_occupancy_query query = hw_occupancy_query_new();
    hw_occupancy_result result;
    query.threads = 256;
    return hw_occupancy(dev, &query, &result) ? result.blocks : 0;
}

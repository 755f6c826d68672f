/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two vendors' occupancy rules share. */
#ifndef HW_DEVICE_OCCUPANCY_H
#define HW_DEVICE_OCCUPANCY_H

#include "hw_device.h"

/* Blocks, warps, occupancy and limiters from the limits. */
void hw_occupancy_settle(const hw_occupancy_query *q, hw_occupancy_result *r);
/* AMD: fills a result whose warps_per_block is set and whose limits are unlimited. */
void hw_occupancy_gcn(const hw_device *d, const hw_occupancy_query *q, hw_occupancy_result *r);

#endif

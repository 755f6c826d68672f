/* SPDX-License-Identifier: Apache-2.0
 *
 * A device as JSON, in the shape of its file; the order of devices in lists. */
#ifndef HW_CLI_FIELDS_H
#define HW_CLI_FIELDS_H

#include "hw_device.h"

#include <jansson.h>

json_t *cli_field_json(const hw_device *dev, const hw_field *f);
json_t *cli_device_json(const hw_device *dev);
/* The order of lists: by vendor, then capability, then name. */
bool cli_device_before(const hw_device *x, const hw_device *y);

#endif

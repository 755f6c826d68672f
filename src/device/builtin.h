/* SPDX-License-Identifier: Apache-2.0
 *
 * The device files that are part of the library. */
#ifndef HW_DEVICE_BUILTIN_H
#define HW_DEVICE_BUILTIN_H

#include "hw_base.h"

typedef struct hw_builtin_device {
    const char *name;
    const char *const *aliases; /* NULL-terminated */
    hw_str text;
} hw_builtin_device;

/* Sorted by name. */
extern const hw_builtin_device hw_builtin_devices[];
extern const size_t hw_builtin_device_count;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a key stands in a JSON text. */
#ifndef HW_DEVICE_PLACE_H
#define HW_DEVICE_PLACE_H

#include "hw_base.h"

/* The place of key inside the object that is the value of group, itself a key of the outermost
 * object (NULL: of the outermost object). The group's place if the key is absent, line 1 if both
 * are. text must be valid JSON. */
hw_place hw_json_place(hw_str text, const char *path, const char *group, const char *key);

#endif

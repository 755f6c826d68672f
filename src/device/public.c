/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the installed header that opens devices: each open device has an arena of its own. */
#include "hw_device.h"

#include <stdio.h>

typedef struct opened {
    hw_device device; /* a copy, first, so that its address names the whole */
    hw_arena *arena;
} opened;

const hw_device *hw_device_open(const char *name, char *message, size_t size)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    const hw_device *dev;
    if (message && size)
        *message = 0;
    if (hw_device_load(a, name, &dev, d) == HW_OK) {
        opened *o = HW_NEW(a, opened);
        o->device = *dev;
        o->arena = a;
        return &o->device;
    }
    if (message && size)
        snprintf(message, size, "%s", hw_diag_text(d, a).ptr);
    hw_arena_free(a);
    return NULL;
}

void hw_device_close(const hw_device *dev)
{
    if (dev)
        hw_arena_free(((const opened *)dev)->arena);
}

const char *hw_device_name(const hw_device *dev)
{
    return dev->name;
}

const char *hw_device_title(const hw_device *dev)
{
    return dev->title;
}

bool hw_device_is_amd(const hw_device *dev)
{
    return dev->vendor == HW_VENDOR_AMD;
}

uint32_t hw_device_warp_size(const hw_device *dev)
{
    return dev->compute.warp_size;
}

uint32_t hw_device_sm_count(const hw_device *dev)
{
    return dev->compute.sm_count;
}

static bool number_of(const hw_device *dev, const hw_field *f, double *value)
{
    const void *at = (const char *)dev + f->offset;
    switch (f->kind) {
    case HW_FIELD_U32:
        *value = *(const uint32_t *)at;
        return true;
    case HW_FIELD_U64:
        *value = (double)*(const uint64_t *)at;
        return true;
    case HW_FIELD_REAL:
    case HW_FIELD_RATE:
        *value = *(const double *)at;
        return true;
    case HW_FIELD_BOOL:
        *value = *(const bool *)at;
        return true;
    case HW_FIELD_TEXT:
    case HW_FIELD_ENUM:
    case HW_FIELD_LIST:
        break;
    }
    return false;
}

bool hw_device_number(const hw_device *dev, const char *group_key, double *value)
{
    size_t n;
    const hw_field *f = hw_device_fields(&n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(f[i].group);
        if (strncmp(group_key, f[i].group, len) == 0 && group_key[len] == '.' &&
            strcmp(group_key + len + 1, f[i].key) == 0)
            return number_of(dev, &f[i], value);
    }
    return false;
}

size_t hw_device_name_at(size_t i, char *name, size_t size)
{
    hw_arena *a = hw_arena_new();
    const char *const *names;
    size_t n = hw_device_list(a, &names), len = 0;
    if (i < n) {
        len = strlen(names[i]);
        if (name && size)
            snprintf(name, size, "%s", names[i]);
    }
    hw_arena_free(a);
    return len;
}

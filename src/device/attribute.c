/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA's device attributes from a device's fields. */
#include "hw_device.h"

#define AT(list, i) ((i) < (list).len ? (list).v[i] : 0)

#define ATTR(number, name, value)                  \
    static int value_of_##name(const hw_device *d) \
    {                                              \
        (void)d;                                   \
        return (int)(value);                       \
    }
#include "attributes.def"

typedef struct attribute {
    const char *name;
    int (*value)(const hw_device *d);
} attribute;

#define ATTR(number, name, value) [number] = { #name, value_of_##name },
static const attribute attributes[HW_DEVICE_ATTRIBUTE_MAX] = {
#include "attributes.def"
};

static const attribute *find(int number)
{
    bool known = number > 0 && number < HW_DEVICE_ATTRIBUTE_MAX && attributes[number].name;
    return known ? &attributes[number] : NULL;
}

hw_status hw_device_attribute(const hw_device *dev, int number, int *value)
{
    const attribute *a = find(number);
    if (!a || dev->vendor != HW_VENDOR_NVIDIA)
        return HW_E_INVALID;
    *value = a->value(dev);
    return HW_OK;
}

const char *hw_device_attribute_name(int number)
{
    const attribute *a = find(number);
    return a ? a->name : NULL;
}

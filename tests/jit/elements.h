/* SPDX-License-Identifier: Apache-2.0
 * Elements of matrices in tests of products: small integers, exact in every type. */
#ifndef ELEMENTS_H
#define ELEMENTS_H

#include "hw_wir.h"

#include <string.h>

static inline uint64_t encode(unsigned type, double v)
{
    _Float16 h = (_Float16)v;
    float f = (float)v;
    uint16_t half;
    uint32_t word;
    uint64_t wide;
    memcpy(&half, &h, sizeof half);
    memcpy(&word, &f, sizeof word);
    memcpy(&wide, &v, sizeof wide);
    switch (type) {
    case HW_MMA_F16:
        return half;
    case HW_MMA_BF16:
        return word >> 16;
    case HW_MMA_TF32:
    case HW_MMA_F32:
        return word;
    case HW_MMA_F64:
        return wide;
    case HW_MMA_E5M2:
        return half >> 8;
    case HW_MMA_E4M3: /* of small integers */
        return v == 0 ? 0 : (v < 0 ? 0x80u : 0u) | ((half >> 10 & 31) - 8u) << 3 | (half >> 7 & 7u);
    default:
        return (uint32_t)(int32_t)v;
    }
}

#endif

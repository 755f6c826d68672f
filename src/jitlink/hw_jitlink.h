/* SPDX-License-Identifier: Apache-2.0
 *
 * jitlink: nvJitLink's public functions (nvJitLink.h) over image and ptx. They link PTX; what they
 * hand out as a linked cubin is a linked image (hw_image.h) that our driver loads.
 *
 * takeover leads a program's calls of nvJitLink here, whichever version of it they were made for.
 * LTO-IR can be read by NVIDIA's library alone: it is asked for PTX through the functions that
 * hw_jitlink_real finds, where takeover knows such a library.
 * A handle is used by one thread at a time, as with NVIDIA's.
 */
#ifndef HW_JITLINK_H
#define HW_JITLINK_H

#include <stddef.h>
#include <stdint.h>

/* Numbers as in nvJitLink.h. */
typedef enum nvJitLinkResult {
    NVJITLINK_SUCCESS = 0,
    NVJITLINK_ERROR_UNRECOGNIZED_OPTION = 1,
    NVJITLINK_ERROR_MISSING_ARCH = 2,
    NVJITLINK_ERROR_INVALID_INPUT = 3,
    NVJITLINK_ERROR_PTX_COMPILE = 4,
    NVJITLINK_ERROR_NVVM_COMPILE = 5,
    NVJITLINK_ERROR_INTERNAL = 6,
    NVJITLINK_ERROR_UNRECOGNIZED_INPUT = 8,
    NVJITLINK_ERROR_FINALIZE = 9,
    NVJITLINK_ERROR_NULL_INPUT = 10,
    NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS = 11,
    NVJITLINK_ERROR_INCORRECT_INPUT_TYPE = 12,
    NVJITLINK_ERROR_UNRECOGNIZED_ARCH = 16,
    NVJITLINK_ERROR_LTO_NOT_ENABLED = 18
} nvJitLinkResult;

typedef enum nvJitLinkInputType {
    NVJITLINK_INPUT_NONE = 0,
    NVJITLINK_INPUT_CUBIN = 1,
    NVJITLINK_INPUT_PTX = 2,
    NVJITLINK_INPUT_LTOIR = 3,
    NVJITLINK_INPUT_FATBIN = 4,
    NVJITLINK_INPUT_OBJECT = 5,
    NVJITLINK_INPUT_LIBRARY = 6,
    NVJITLINK_INPUT_INDEX = 7,
    NVJITLINK_INPUT_ANY = 10
} nvJitLinkInputType;

typedef struct nvJitLink *nvJitLinkHandle;

#define HW_JITLINK_API __attribute__((visibility("default")))
#define FN(name, ...)  HW_JITLINK_API nvJitLinkResult name(__VA_ARGS__);
#include "jitlink.def"
#undef FN

#endif

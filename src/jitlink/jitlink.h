/* SPDX-License-Identifier: Apache-2.0
 * What jitlink's files share (private).
 */
#ifndef HW_JITLINK_PRIVATE_H
#define HW_JITLINK_PRIVATE_H

#include "hw_image.h"
#include "hw_jitlink.h"
#include "hw_ptx.h"

struct nvJitLink {
    hw_arena *arena;
    hw_diag *errors;
    hw_str log;             /* of errors, as told */
    uint32_t arch;          /* 90 of -arch=sm_90 */
    uint32_t max_registers; /* of -maxrregcount; 0: not said */
    bool lto, wants_ptx, completed;
    HW_VEC(hw_str) texts;
    HW_VEC(hw_ptx_unit *) units; /* one a text */
    void *image;                 /* when completed */
    size_t image_bytes;
    nvJitLinkHandle real; /* NVIDIA's, for LTO-IR; NULL until some is added */
    const char **options; /* as given, for it */
    uint32_t n_options;
};

/* ---- options.c ---- */
nvJitLinkResult jitlink_options(nvJitLinkHandle l, uint32_t n, const char **options);

/* ---- real.c: NVIDIA's library, as far as it is needed ---- */
nvJitLinkResult jitlink_real_add(nvJitLinkHandle l, const void *data, size_t size,
                                 const char *name);
/* The PTX of all LTO-IR that was added. */
nvJitLinkResult jitlink_real_ptx(nvJitLinkHandle l, hw_str *text);
void jitlink_real_end(nvJitLinkHandle l);

#endif

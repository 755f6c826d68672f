/* SPDX-License-Identifier: Apache-2.0
 * C helpers of room jit, shared among their files (private). */
#ifndef HW_JIT_HELPERS_H
#define HW_JIT_HELPERS_H

#include "hw_jit.h"

double hw_jit_from_half(uint16_t h);
hw_helper_fn hw_jit_mma;      /* matrix.c */
hw_helper_fn hw_jit_mma_more; /* matrix_more.c */
hw_helper_fn hw_jit_wgmma;    /* wgmma.c */
hw_helper_fn hw_jit_narrow;   /* narrow.c */

#endif

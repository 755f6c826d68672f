/* SPDX-License-Identifier: Apache-2.0
 * Profiling (private): the model that listens to launches, when HALFWARP_PROFILE names a file. */
#ifndef HW_DRIVER_PROFILE_H
#define HW_DRIVER_PROFILE_H

#include "launch.h"

/* hw_cu.lock is held; devices are known. Complains once and profiles nothing if a variable is wrong. */
void hw_cu_profile_start(void);
/* Decides whether the launch is profiled, and numbers it. */
void hw_cu_profile_submit(hw_cu_launch *l);
/* The same of one that a kernel of the tree of `root` asked for, in the order in which they begin. Those
 * of a launch that matches are profiled if it is; of others, by their own number in the tree. */
typedef struct hw_cu_profile_root {
    uint32_t matched, profiled;
} hw_cu_profile_root;
void hw_cu_profile_nested(const hw_cu_launch *root, hw_cu_profile_root *r, hw_cu_launch *l);
/* What exec is to be given for this launch; NULL: nobody listens to it. */
const hw_listener *hw_cu_profile_listener(const hw_cu_launch *l);
/* The launch ended, on this thread; listener: what the call above returned. */
void hw_cu_profile_done(const hw_cu_launch *l, const hw_listener *listener, hw_status status);
void hw_cu_profile_end(void); /* the process ends by itself */

#endif

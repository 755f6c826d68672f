/* SPDX-License-Identifier: Apache-2.0
 * mbarriers (private): what copies tell them, and who waits at them. */
#ifndef HW_EXEC_MBARRIER_H
#define HW_EXEC_MBARRIER_H

#include "exec.h"

/* The generic address of an mbarrier: bytes of a copy have arrived. */
void hw_mbarrier_complete_tx(hw_frame *f, uint64_t addr, uint32_t bytes);
/* One arrival. */
void hw_mbarrier_arrive(hw_frame *f, uint64_t addr);
/* Would the warp that waits (frame.awaited) still wait? */
bool hw_mbarrier_pending(const hw_frame *f);
/* Do all lanes of the warp that are not at a barrier wait at one mbarrier of the cluster's shared memory? */
bool hw_mbarrier_starves(const hw_frame *f);
/* Which it is, and what it lacks. */
int hw_mbarrier_say(const hw_frame *f, char *text, size_t size);

#endif

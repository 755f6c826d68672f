/* SPDX-License-Identifier: Apache-2.0
 *
 * A bench for one block of warps: WIR text compiled and run with a frame made by hand.
 */
#ifndef HW_TEST_JIT_RIG_H
#define HW_TEST_JIT_RIG_H

#include "hw_jit.h"

#include <setjmp.h>
/* cmocka needs the headers above it */
#include <cmocka.h>

enum { RIG_SHARED = 65536, RIG_MEMORY = 1 << 20, RIG_LOCAL = 4096, RIG_WARPS = 32 };

typedef struct rig {
    hw_arena *arena;
    hw_diag *diag;
    hw_jit *jit;
    const char *text;   /* of the module */
    hw_variant variant; /* block 32x1x1, tier 1 unless changed */
    uint8_t *memory;    /* the device range: RIG_MEMORY bytes */
    uint8_t *shared, *local;
    uint64_t params[64];
    uint32_t grid[3], ctaid[3];
    const hw_code *code;
    hw_frame frames[RIG_WARPS];
    /* what happened */
    uint32_t fault, fault_loc, bad_bytes, yields, barriers, deopts;
    uint64_t bad_addr;
    uint32_t returned;
    bool faulted;
} rig;

rig *rig_new(const char *text);
void rig_free(rig *r);
hw_status rig_compile(rig *r);
/* All warps of the block to their ends, barriers included. False: a fault. */
bool rig_run(rig *r);
extern uint32_t rig_stop; /* what frames' stop points to */

#endif

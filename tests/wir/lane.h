/* SPDX-License-Identifier: Apache-2.0
 * One lane of warp IR, an instruction at a time, over the arithmetic of tests/isa/interp_pure.c: nothing is shared with
 * constant folding or code generation. */
#ifndef HW_TEST_WIR_LANE_H
#define HW_TEST_WIR_LANE_H

#include "hw_wir.h"

typedef struct lane_env {
    void *ctx;
    /* Values of SREG, CLOCK, PARAM_ADDR, SYMBOL, FUNC_ADDR, LOCAL_ADDR, SHARED_BASE. */
    uint64_t (*special)(void *ctx, uint32_t lane, const hw_wir_insn *i);
    /* LOAD: fill v[0..count). STORE, ATOM, RED: v holds the operands after the address; ATOM's old
     * value goes to v[0]. The address has the offset added. */
    void (*memory)(void *ctx, uint32_t lane, const hw_wir_insn *i, uint64_t address, uint64_t *v);
} lane_env;

/* Execute one instruction that is neither a terminator nor crosses lanes, guard included, on a
 * lane's registers. False: not an operation of the interpreter (calls, helpers, 128 bits). */
bool lane_execute(const hw_wir_function *f, const hw_wir_insn *i, const lane_env *env,
                  uint32_t lane, uint64_t *regs);
/* Where a lane goes after a block: the target's index in the block, or UINT32_MAX if it ends. */
uint32_t lane_branch(const hw_wir_block *b, const uint64_t *regs);

#endif

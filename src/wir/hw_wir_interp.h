/* SPDX-License-Identifier: Apache-2.0
 * The reference interpreter of the warp IR, the oracle of tests: one lane, plain C, nothing shared
 * with code generation. */
#ifndef HW_WIR_INTERP_H
#define HW_WIR_INTERP_H

#include "hw_wir.h"

typedef struct hw_wir_env {
    void *ctx;
    /* Values of SREG, CLOCK, PARAM_ADDR, SYMBOL, FUNC_ADDR, LOCAL_ADDR, SHARED_BASE. */
    uint64_t (*special)(void *ctx, uint32_t lane, const hw_wir_insn *i);
    /* LOAD: fill v[0..count). STORE, ATOM, RED: v holds the operands after the address; ATOM's old
     * value goes to v[0]. The address has the offset added. */
    hw_status (*memory)(void *ctx, uint32_t lane, const hw_wir_insn *i, uint64_t address,
                        uint64_t *v);
} hw_wir_env;

/* Execute one instruction that is neither a terminator nor crosses lanes, guard included, on a
 * lane's registers. HW_E_UNSUPPORTED: not an operation of the interpreter (calls, helpers, 128 bits,
 * halves, approximations). */
hw_status hw_wir_interpret_insn(const hw_wir_function *f, const hw_wir_insn *i,
                                const hw_wir_env *env, uint32_t lane, uint64_t *regs);
/* Where a lane goes after a block: the target's index in the block, or UINT32_MAX if it ends. */
uint32_t hw_wir_interpret_branch(const hw_wir_block *b, const uint64_t *regs);

#endif

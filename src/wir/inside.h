/* SPDX-License-Identifier: Apache-2.0
 * What the files of room wir share among themselves (private). */
#ifndef HW_WIR_INSIDE_H
#define HW_WIR_INSIDE_H

#include "hw_wir.h"

/* ---- op.c: tables ---- */

/* Operand types of an operation, "results=sources", a letter each:
 *   t type   u type2   1 I1   3 I32   6 I64   a an address (I32 or I64)
 *   r I32 when imm is 0, else I1 (barrier reductions)   * any number of the letter before it
 *   ? no rule (calls and helpers) */
extern const char *const hw_wir_signature[HW_W_COUNT];

/* Words after the operation's name in the text form: .i32 .global .ftz ... */
typedef enum hw_wir_field {
    HW_FIELD_TYPE,
    HW_FIELD_COND,
    HW_FIELD_ROUND,
    HW_FIELD_SPACE,
    HW_FIELD_SCOPE,
    HW_FIELD_ATOM,
    HW_FIELD_COUNT,
    HW_FIELD_FLAG
} hw_wir_field;
typedef struct hw_wir_word {
    const char *name;
    hw_wir_field field;
    uint32_t value;
} hw_wir_word;
extern const hw_wir_word hw_wir_words[];
extern const size_t hw_wir_nwords;
extern const char *const hw_wir_sreg_names[HW_SR_COUNT];
extern const char *const hw_wir_helper_names[HW_H_COUNT];

static inline bool hw_wir_is(const hw_wir_insn *i, unsigned flags)
{
    return (hw_wir_ops[i->op].flags & flags) != 0;
}

/* Do lanes wait there for others of their block or warp? */
static inline bool hw_wir_waits(unsigned op)
{
    return op == HW_W_BARRIER || op == HW_W_BARRIER_RED || op == HW_W_WARPSYNC;
}

/* Low `bits` bits set. */
static inline uint64_t hw_wir_mask(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

/* Does the operation take a byte offset in imm ([address + imm])? */
static inline bool hw_wir_has_offset(unsigned op)
{
    return op == HW_W_LOAD || op == HW_W_STORE || op == HW_W_ATOM || op == HW_W_RED ||
           op == HW_W_PREFETCH;
}

#endif

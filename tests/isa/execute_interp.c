/* SPDX-License-Identifier: Apache-2.0
 * Executes the cases in the plain interpreter. */
#include "execute.h"
#include "interp.h"

#include <stdio.h>
#include <stdlib.h>

const char *const execute_name = "interpreter";

void *execute_memory(size_t bytes)
{
    return calloc(1, bytes);
}

bool execute(hw_wir_module *w, const void *params, unsigned blocks)
{
    interp x = { .m = w, .params = params, .ntid = { 32, 1, 1 }, .nctaid = { blocks, 1, 1 } };
    for (unsigned k = 0; k < blocks; k++) {
        x.lanes = UINT32_MAX;
        x.ctaid[0] = k;
        if (!interp_run(&x)) {
            printf("interpreter: %s\n", x.failed);
            return false;
        }
    }
    return true;
}

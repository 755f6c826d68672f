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

enum { SHARED = 1 << 16, LOCAL = 1 << 14 };

static bool run_block(const execute_job *j, unsigned block)
{
    static _Alignas(64) uint8_t shared[SHARED], local[32 * LOCAL];
    interp x = { .m = j->w,
                 .params = j->params,
                 .shared = shared,
                 .local = local,
                 .local_stride = LOCAL,
                 .lanes = j->lanes >= 32 ? UINT32_MAX : (UINT32_C(1) << j->lanes) - 1,
                 .ctaid = { block, 0, 0 },
                 .ntid = { j->lanes, 1, 1 },
                 .nctaid = { j->blocks, 1, 1 } };
    for (size_t k = 0; j->symbols && k < j->w->symbols.len && k < HW_COUNTOF(x.symbols); k++)
        x.symbols[k] = j->symbols[k];
    if (interp_run(&x))
        return true;
    printf("interpreter: %s\n", x.failed);
    return false;
}

bool execute(const execute_job *j)
{
    for (unsigned k = 0; k < j->blocks; k++)
        if (!run_block(j, k))
            return false;
    return true;
}

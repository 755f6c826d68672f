/* SPDX-License-Identifier: Apache-2.0
 * Makes warp IR of a linked kernel. */
#include "ast.h"

hw_status hw_ptx_lower(hw_arena *a, const hw_ptx_module *m, uint32_t kernel, hw_wir_module **out,
                       hw_diag *d)
{
    (void)a, (void)m, (void)kernel;
    *out = NULL;
    return hw_fail(d, HW_E_UNSUPPORTED, "PTX is not lowered yet");
}

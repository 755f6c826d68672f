/* SPDX-License-Identifier: Apache-2.0
 * The door to room jit. */
#include "exec.h"

hw_status hw_code_from_jit(void *jit, const hw_jit_source *s, const hw_variant *v,
                           const hw_code **out, hw_diag *d)
{
    return hw_jit_get(jit, s, v, out, d);
}

hw_helper_fn *hw_jit_helper(unsigned i)
{
    return hw_jit_helpers[i];
}

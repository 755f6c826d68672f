/* SPDX-License-Identifier: Apache-2.0
 * Every function of cudart.def that is not there yet: it names itself once and returns 801.
 */
#include "state.h"

#define CUDART(name, kind, status, chapter) CUDART_##status(name)
#define CUDART_done(name)
#define CUDART_unsupported(name)        \
    HW_EXPORT int name(void);           \
    int name(void)                      \
    {                                   \
        return hw_not_supported(#name); \
    }
#include "cudart.def"

/* SPDX-License-Identifier: Apache-2.0
 * A sentence for people put together in a buffer of fixed size; what does not fit is cut off. */
#ifndef HW_EXEC_SENTENCE_H
#define HW_EXEC_SENTENCE_H

#include "hw_base.h"

typedef struct hw_text {
    char *at, *end; /* where the next word goes; behind the buffer */
} hw_text;

void hw_text_add(hw_text *t, const char *fmt, ...) HW_PRINTF(2, 3); /* fault.c */

#endif

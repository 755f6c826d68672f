/* SPDX-License-Identifier: Apache-2.0
 * Two lists of the same facts of the binary interface, from two sources, in the order of abi.def.
 */
#ifndef ABI_H
#define ABI_H

#include <stddef.h>

typedef struct abi_fact {
    const char *name;
    long long value;
} abi_fact;

extern const abi_fact abi_ours[], abi_toolkit[];
extern const size_t abi_ours_count, abi_toolkit_count;

#endif

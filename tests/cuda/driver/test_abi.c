/* SPDX-License-Identifier: Apache-2.0
 * Test: numbers, sizes and offsets of the driver API agree with the toolkit's own header. */
#include "abi.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    size_t bad = abi_ours_count != abi_toolkit_count;
    for (size_t i = 0; i < abi_ours_count; i++) {
        const abi_fact *a = &abi_ours[i], *b = &abi_toolkit[i];
        if (a->value == b->value && strcmp(a->name, b->name) == 0)
            continue;
        printf("%s is %lld, the toolkit says %lld\n", a->name, a->value, b->value);
        bad++;
    }
    printf("%zu facts, %zu differ\n", abi_ours_count, bad);
    return bad != 0;
}

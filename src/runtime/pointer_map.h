/* SPDX-License-Identifier: Apache-2.0
 *
 * A map from addresses to objects that grows and forgets. Private to runtime; the caller locks.
 */
#ifndef HW_RUNTIME_POINTER_MAP_H
#define HW_RUNTIME_POINTER_MAP_H

#include <stddef.h>

typedef struct pointer_map {
    struct pointer_slot {
        const void *key; /* NULL: never used */
        void *value;     /* NULL: removed */
    } *slots;
    size_t n_slots, n_used; /* n_slots is a power of two; used includes removed */
} pointer_map;

void *pointer_map_get(const pointer_map *m, const void *key);
void pointer_map_set(pointer_map *m, const void *key, void *value);
void pointer_map_remove(pointer_map *m, const void *key);

#endif

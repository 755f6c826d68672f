/* SPDX-License-Identifier: Apache-2.0
 * Open addressing with linear probing.
 */
#include "pointer_map.h"

#include "hw_base.h"

#include <stdlib.h>

static struct pointer_slot *slot_of(const pointer_map *m, const void *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(h >> 32) & (m->n_slots - 1);
    while (m->slots[i].key && m->slots[i].key != key)
        i = (i + 1) & (m->n_slots - 1);
    return &m->slots[i];
}

void *pointer_map_get(const pointer_map *m, const void *key)
{
    return m->n_slots && key ? slot_of(m, key)->value : NULL;
}

static void grow(pointer_map *m)
{
    pointer_map bigger = { .n_slots = m->n_slots ? m->n_slots * 2 : 64 };
    bigger.slots = calloc(bigger.n_slots, sizeof *bigger.slots);
    if (!bigger.slots)
        hw_oom(bigger.n_slots * sizeof *bigger.slots);
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].value) {
            *slot_of(&bigger, m->slots[i].key) = m->slots[i];
            bigger.n_used++;
        }
    free(m->slots);
    *m = bigger;
}

void pointer_map_set(pointer_map *m, const void *key, void *value)
{
    if (!key)
        return;
    if (m->n_used * 2 >= m->n_slots)
        grow(m);
    struct pointer_slot *s = slot_of(m, key);
    m->n_used += s->key == NULL;
    *s = (struct pointer_slot){ key, value };
}

void pointer_map_remove(pointer_map *m, const void *key)
{
    if (m->n_slots && key)
        slot_of(m, key)->value = NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 * The sorted table of allocations. */
#include "table.h"

#include <stdlib.h>

size_t hw_table_above(const hw_table *t, uint64_t addr)
{
    size_t a = 0, b = t->len;
    while (a < b) {
        size_t mid = (a + b) / 2;
        if (t->ptr[mid]->info.base <= addr)
            a = mid + 1;
        else
            b = mid;
    }
    return a;
}

hw_record *hw_table_find(const hw_table *t, uint64_t addr)
{
    size_t i = hw_table_above(t, addr);
    if (i == 0)
        return NULL;
    hw_record *r = t->ptr[i - 1];
    return addr - r->info.base < r->info.size ? r : NULL;
}

hw_record *hw_table_at(const hw_table *t, uint64_t base)
{
    hw_record *r = hw_table_find(t, base);
    return r && r->info.base == base ? r : NULL;
}

bool hw_table_overlaps(const hw_table *t, uint64_t base, uint64_t size)
{
    if (hw_table_find(t, base))
        return true;
    size_t i = hw_table_above(t, base);
    return i < t->len && t->ptr[i]->info.base - base < size;
}

void hw_table_insert(hw_table *t, hw_record *r)
{
    if (t->len == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        hw_record **ptr = realloc(t->ptr, cap * sizeof(hw_record *));
        if (!ptr)
            hw_oom(cap * sizeof(hw_record *));
        t->ptr = ptr;
        t->cap = cap;
    }
    size_t at = hw_table_above(t, r->info.base);
    memmove(t->ptr + at + 1, t->ptr + at, (t->len - at) * sizeof *t->ptr);
    t->ptr[at] = r;
    t->len++;
}

void hw_table_remove(hw_table *t, const hw_record *r)
{
    size_t at = hw_table_above(t, r->info.base) - 1;
    t->len--;
    memmove(t->ptr + at, t->ptr + at + 1, (t->len - at) * sizeof *t->ptr);
}

/* SPDX-License-Identifier: Apache-2.0
 * Free address extents: first fit, so that addresses are the same from run to run. */
#include "extents.h"

#include <stdlib.h>

static void insert(hw_extents *e, size_t at, hw_extent x)
{
    if (e->len == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 16;
        hw_extent *ptr = realloc(e->ptr, cap * sizeof *ptr);
        if (!ptr)
            hw_oom(cap * sizeof *ptr);
        e->ptr = ptr;
        e->cap = cap;
    }
    memmove(e->ptr + at + 1, e->ptr + at, (e->len - at) * sizeof *e->ptr);
    e->ptr[at] = x;
    e->len++;
}

static void erase(hw_extents *e, size_t at)
{
    e->len--;
    memmove(e->ptr + at, e->ptr + at + 1, (e->len - at) * sizeof *e->ptr);
}

bool hw_extents_take(hw_extents *e, uint64_t size, uint64_t align, uint64_t *lo)
{
    for (size_t i = 0; i < e->len; i++) {
        hw_extent x = e->ptr[i];
        uint64_t start = (x.lo + align - 1) & ~(align - 1);
        uint64_t before = start - x.lo;
        if (before > x.size || x.size - before < size)
            continue;
        uint64_t after = x.size - before - size;
        if (before) {
            e->ptr[i].size = before;
            if (after)
                insert(e, i + 1, (hw_extent){ start + size, after });
        } else if (after) {
            e->ptr[i] = (hw_extent){ start + size, after };
        } else {
            erase(e, i);
        }
        *lo = start;
        return true;
    }
    return false;
}

void hw_extents_give(hw_extents *e, uint64_t lo, uint64_t size)
{
    size_t a = 0, b = e->len;
    while (a < b) {
        size_t mid = (a + b) / 2;
        if (e->ptr[mid].lo < lo)
            a = mid + 1;
        else
            b = mid;
    }
    bool left = a > 0 && e->ptr[a - 1].lo + e->ptr[a - 1].size == lo;
    bool right = a < e->len && lo + size == e->ptr[a].lo;
    if (left && right) {
        e->ptr[a - 1].size += size + e->ptr[a].size;
        erase(e, a);
    } else if (left) {
        e->ptr[a - 1].size += size;
    } else if (right) {
        e->ptr[a].lo = lo;
        e->ptr[a].size += size;
    } else {
        insert(e, a, (hw_extent){ lo, size });
    }
}

void hw_extents_free(hw_extents *e)
{
    free(e->ptr);
    *e = (hw_extents){ 0 };
}

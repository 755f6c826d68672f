/* SPDX-License-Identifier: Apache-2.0
 * Strings, interned names and hashing. */
#include "hw_base.h"

bool hw_str_starts(hw_str s, hw_str prefix)
{
    return s.len >= prefix.len && memcmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

bool hw_str_ends(hw_str s, hw_str suffix)
{
    return s.len >= suffix.len && memcmp(s.ptr + (s.len - suffix.len), suffix.ptr, suffix.len) == 0;
}

enum { NEAREST_MAX = 63 };

/* Levenshtein distance, one row at a time. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned row[NEAREST_MAX + 1];
    for (size_t j = 0; j <= nb; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            unsigned other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = change < other ? change : other;
        }
    }
    return row[nb];
}

const char *hw_nearest(const char *want, const char *const *list, size_t n)
{
    size_t len = strlen(want);
    if (len > NEAREST_MAX)
        return NULL;
    const char *best = NULL;
    unsigned best_distance = (unsigned)(len / 3 + 2);
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(list[i]);
        if (other > NEAREST_MAX)
            continue;
        unsigned dist = distance(want, len, list[i], other);
        if (dist < best_distance) {
            best_distance = dist;
            best = list[i];
        }
    }
    return best;
}

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

uint64_t hw_hash64(const void *bytes, size_t n, uint64_t seed)
{
    const uint8_t *p = bytes;
    uint64_t h = mix(seed ^ (0x9e3779b97f4a7c15u + n));
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = mix(h ^ w) + 0x9e3779b97f4a7c15u;
    }
    uint64_t w = 0;
    if (n)
        memcpy(&w, p, n);
    return mix(h ^ w);
}

struct hw_intern {
    hw_arena *arena;
    HW_VEC(hw_str) names; /* names.ptr[id - 1] */
    uint32_t *slots;      /* open addressing; 0: free */
    size_t mask;
};

hw_intern *hw_intern_new(hw_arena *a)
{
    hw_intern *t = HW_NEW(a, hw_intern);
    t->arena = a;
    t->mask = 63;
    t->slots = HW_NEW_N(a, uint32_t, t->mask + 1);
    return t;
}

static size_t slot_of(const hw_intern *t, hw_str name)
{
    size_t i = (size_t)hw_hash64(name.ptr, name.len, 0) & t->mask;
    while (t->slots[i] && !hw_str_eq(t->names.ptr[t->slots[i] - 1], name))
        i = (i + 1) & t->mask;
    return i;
}

uint32_t hw_intern_find(const hw_intern *t, hw_str name)
{
    return t->slots[slot_of(t, name)];
}

static void rehash(hw_intern *t)
{
    t->mask = t->mask * 2 + 1;
    t->slots = HW_NEW_N(t->arena, uint32_t, t->mask + 1);
    for (size_t i = 0; i < t->names.len; i++)
        t->slots[slot_of(t, t->names.ptr[i])] = (uint32_t)i + 1;
}

uint32_t hw_intern_id(hw_intern *t, hw_str name)
{
    size_t i = slot_of(t, name);
    if (t->slots[i])
        return t->slots[i];
    hw_vec_push(t->arena, &t->names, hw_arena_dup(t->arena, name));
    t->slots[i] = (uint32_t)t->names.len;
    uint32_t id = t->slots[i];
    if (t->names.len * 2 > t->mask)
        rehash(t);
    return id;
}

hw_str hw_intern_name(const hw_intern *t, uint32_t id)
{
    HW_CHECK(id >= 1 && id <= t->names.len);
    return t->names.ptr[id - 1];
}

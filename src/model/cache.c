/* SPDX-License-Identifier: Apache-2.0
 *
 * One cache by its sizes, least recently used out first. */
#include "cache.h"

#include <stdlib.h>

enum { WAYS_DEFAULT = 16, DIRTY = 16 /* bits up */, HINTS_MOST = 1 << 20 };

static uint32_t power_of_two(uint32_t x)
{
    return x ? UINT32_C(1) << (31 - __builtin_clz(x)) : 0;
}

static void *zeros(size_t n, size_t each)
{
    void *p = calloc(n, each);
    if (!p)
        hw_oom(n * each);
    return p;
}

void hw_cache_init(cache *c, uint64_t bytes, uint32_t ways, uint32_t line, uint32_t sector)
{
    *c = (cache){ .line = line ? line : CHUNK };
    c->sector = sector && sector < c->line ? power_of_two(sector) : c->line;
    uint32_t in_chunk = c->sector < CHUNK ? c->sector : CHUNK;
    c->piece = in_chunk / SECTOR ? in_chunk / SECTOR : 1;
    uint64_t lines = bytes / c->line;
    c->ways = ways ? ways : WAYS_DEFAULT;
    c->ways = c->ways < lines ? c->ways : (uint32_t)lines;
    c->sets = c->ways ? (uint32_t)(lines / c->ways) : 0;
    for (uint32_t mask = 0; mask < 16; mask++)
        for (uint32_t p = 0; p < 4 / c->piece; p++) {
            uint32_t own = (1u << c->piece) - 1;
            c->bits[mask] |= (uint8_t)(((mask >> p * c->piece & own) != 0) << p);
            c->spread[mask] |= (uint8_t)(mask >> p & 1 ? own << p * c->piece : 0);
        }
    if (!c->sets)
        return;
    size_t n = (size_t)c->sets * c->ways;
    c->inverse = UINT64_MAX / c->sets + 1; /* 0 for one set */
    c->hints = HINTS_MOST - 1;
    while (c->hints / 2 >= n)
        c->hints /= 2;
    c->set = zeros(c->sets, sizeof *c->set);
    c->lines = zeros(n, sizeof *c->lines);
    c->hint = zeros(c->hints + 1, sizeof *c->hint);
}

void hw_cache_free(cache *c)
{
    free(c->set);
    free(c->lines);
    free(c->hint);
}

void hw_cache_empty(cache *c)
{
    c->since = c->clock;
}

/* line % sets, by a multiplication that is exact below 2^40 (Granlund and Montgomery, 1994). */
static inline size_t set_of(const cache *c, uint64_t line)
{
    if (line >> 40)
        return line % c->sets;
    uint64_t q = c->inverse ? (uint64_t)((unsigned __int128)line * c->inverse >> 64) : line;
    return line - q * c->sets;
}

/* The line is not where the hint says: its way, or a free one, or that used least recently. */
static uint32_t find_way(cache *c, cache_set *set, cache_line *lines, uint64_t line, bool *found)
{
    uint32_t oldest = 0, n = set->epoch == c->since ? (uint32_t)set->filled : 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t w = 0; w < n; w++) {
        uint64_t used = lines[w].used;
        if (lines[w].tag == line) {
            *found = true;
            return w;
        }
        oldest = used < least ? w : oldest;
        least = used < least ? used : least;
    }
    *found = false;
    if (n == c->ways)
        return oldest;
    set->epoch = c->since;
    set->filled = n + 1;
    lines[n].state = 0;
    return n;
}

/* Of a line's sectors those that were not there. */
static inline uint32_t touch_line(cache *c, uint64_t line, uint32_t bits, bool write,
                                  uint64_t *lost)
{
    size_t set = set_of(c, line);
    cache_line *lines = &c->lines[set * c->ways], *l;
    uint16_t *hint = &c->hint[line & c->hints];
    uint32_t dirty = write ? bits << DIRTY : 0;
    bool found = true;
    l = &lines[*hint < c->ways ? *hint : 0];
    if (l->tag != line || l->used <= c->since) {
        uint32_t way = find_way(c, &c->set[set], lines, line, &found);
        l = &lines[way];
        *hint = (uint16_t)way;
    }
    uint32_t before = found ? l->state : 0;
    if (!found && l->state >> DIRTY)
        *lost += (uint64_t)__builtin_popcount(l->state >> DIRTY) * (c->sector / SECTOR);
    *l = (cache_line){ line, ++c->clock, before | bits | dirty };
    return bits & ~before;
}

static inline uint64_t line_of(const cache *c, uint64_t chunk)
{
    return c->line == CHUNK ? chunk : (chunk << CHUNK_SHIFT) / c->line;
}

void hw_cache_announce(const cache *c, uint64_t chunk)
{
    __builtin_prefetch(&c->hint[line_of(c, chunk) & c->hints]);
}

void hw_cache_expect(const cache *c, uint64_t chunk)
{
    uint64_t line = line_of(c, chunk);
    size_t set = set_of(c, line);
    uint32_t way = c->hint[line & c->hints];
    __builtin_prefetch(&c->lines[set * c->ways + (way < c->ways ? way : 0)], 1);
    __builtin_prefetch(&c->set[set]);
}

uint32_t hw_cache_touch(cache *c, uint64_t chunk, uint32_t mask, bool write, uint64_t *lost)
{
    if (c->line == CHUNK)
        return c->spread[touch_line(c, chunk, c->bits[mask], write, lost)];
    uint32_t missing = 0;
    for (uint32_t bits = c->bits[mask]; bits; bits &= bits - 1) {
        uint32_t p = (uint32_t)__builtin_ctz(bits);
        uint64_t address = (chunk << CHUNK_SHIFT) + p * c->piece * SECTOR;
        uint32_t bit = UINT32_C(1) << (address % c->line / c->sector);
        if (touch_line(c, address / c->line, bit, write, lost))
            missing |= 1u << p;
    }
    return c->spread[missing];
}

uint64_t hw_cache_dirty(const cache *c)
{
    uint64_t n = 0;
    for (size_t s = 0; c->lines && s < c->sets; s++)
        for (size_t w = 0; c->set[s].epoch == c->since && w < c->set[s].filled; w++)
            n += (uint64_t)__builtin_popcount(c->lines[s * c->ways + w].state >> DIRTY);
    return n * (c->sector / SECTOR);
}

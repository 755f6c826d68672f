/* SPDX-License-Identifier: Apache-2.0
 *
 * One simulated cache, and the second level that blocks' traffic goes through in order.
 *
 *   chunk   128 aligned bytes of memory; a mask of 4 bits says which of its 32-byte sectors.
 *   piece   a cache's own sector, or as much of it as lies in a chunk.
 *   tape    one block's traffic to the second level of one device: chunk << 5 | mask << 1 | write.
 */
#ifndef HW_MODEL_CACHE_H
#define HW_MODEL_CACHE_H

#include "model.h"

enum { SECTOR = 32, CHUNK = 128, CHUNK_SHIFT = 7 };

/* Sectors in a mask; processors without an instruction for it would be asked too often. */
static inline uint32_t hw_sectors_in(uint32_t mask)
{
    return UINT64_C(0x4332322132212110) >> mask * 4 & 0xf;
}

typedef struct cache_line {
    uint64_t tag, used;
    uint32_t state; /* sectors that are there, and << 16 those to be written back */
} cache_line;

typedef struct cache_set {
    uint64_t epoch;  /* `since` when it got its first line; of another it is empty */
    uint64_t filled; /* its first lines, that many */
} cache_set;

typedef struct cache {
    uint32_t sets, ways, line, sector;
    uint32_t piece;        /* 32-byte sectors in one */
    uint8_t bits[16];      /* of a line of one chunk: the cache's sectors, for a mask */
    uint8_t spread[16];    /* and back */
    uint64_t clock, since; /* uses so far; at the last emptying */
    uint64_t inverse;      /* of sets, times 2^64 */
    cache_set *set;
    cache_line *lines; /* sets * ways; NULL: there is no such cache */
    uint16_t *hint;    /* by the low bits of a line: the way it may be in */
    uint64_t hints;    /* their mask */
} cache;

void hw_cache_init(cache *c, uint64_t bytes, uint32_t ways, uint32_t line, uint32_t sector);
void hw_cache_free(cache *c);
void hw_cache_empty(cache *c);
/* What of these sectors was not there and is now, in whole pieces. *lost: 32-byte sectors written back. */
uint32_t hw_cache_touch(cache *c, uint64_t chunk, uint32_t mask, bool write, uint64_t *lost);
/* It will be asked for soon: first where it may be is fetched, then (coming) what is there. */
void hw_cache_announce(const cache *c, uint64_t chunk);
void hw_cache_expect(const cache *c, uint64_t chunk);
static inline uint32_t hw_cache_widen(const cache *c, uint32_t mask) /* to whole pieces */
{
    return c->spread[c->bits[mask]];
}
uint64_t hw_cache_dirty(const cache *c); /* 32-byte sectors */

/* ---- replay.c ---- */

typedef struct tape {
    uint64_t *entry;
    size_t n, room;
    struct piece_of_file *spilled; /* what came before, newest first */
} tape;

typedef struct replay replay;

replay *hw_replay_new(const hw_model *m);
static inline uint64_t hw_tape_pack(uint64_t chunk, uint32_t mask, bool write)
{
    return chunk << 5 | mask << 1 | write;
}
void hw_tape_grow(tape *t);
/* A block's tape, of each device, is long: it is taken in as far as its turn allows. */
void hw_replay_long(replay *r, uint64_t block, tape *tapes);
/* The block ended; its tapes are empty after. */
void hw_replay_block(replay *r, uint64_t block, tape *tapes);
/* All that is left, blocks that did not end included, in order; adds each device's counts; frees r. */
void hw_replay_end(replay *r, uint64_t (*count)[HW_CACHES]);
void hw_replay_forget(const hw_model *m); /* the model ends: what was kept for its launches */

enum { TAPE_LONG = 1 << 19 /* entries */ };

static inline void hw_tape_add(tape *t, uint64_t chunk, uint32_t mask, bool write)
{
    if (t->n == t->room)
        hw_tape_grow(t);
    t->entry[t->n++] = hw_tape_pack(chunk, mask, write);
}

#endif

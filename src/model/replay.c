/* SPDX-License-Identifier: Apache-2.0
 *
 * The second level and device memory: each block's traffic is gone through when all blocks before
 * it have ended, so that the counts do not depend on workers. What waits for its turn stays in
 * memory up to a bound, then in a temporary file. */
#include "cache.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct piece_of_file {
    struct piece_of_file *before;
    off_t at;
    size_t n;
} piece_of_file;

typedef struct waiting {
    struct waiting *before, *after; /* blocks ascend */
    uint64_t block;
    tape *tapes; /* by device */
} waiting;

struct replay {
    const hw_model *model;
    uint32_t devices;
    pthread_mutex_t lock;
    uint64_t next;         /* block whose turn it is */
    bool busy;             /* somebody goes through traffic */
    waiting *first, *last; /* ended before their turn */
    size_t held;           /* entries of theirs in memory */
    FILE *file;
    off_t end;
    cache level2[HW_MODEL_DEVICES_MAX];
    uint64_t count[HW_MODEL_DEVICES_MAX][HW_CACHES];
};

static void free_replay(replay *r);

enum { HELD_MOST = 1 << 24 /* entries */, READ_AT_ONCE = 1 << 14 };

/* The last launch's, for the next one: taking megabytes anew costs more than a small launch. */
static _Atomic(replay *) spare;

static replay *take_spare(const hw_model *m)
{
    replay *r = atomic_exchange(&spare, NULL);
    if (!r || r->model == m)
        return r;
    free_replay(r);
    return NULL;
}

static void begin_again(replay *r)
{
    r->next = 0;
    r->first = r->last = NULL;
    r->held = 0;
    r->end = 0;
    memset(r->count, 0, sizeof r->count);
    for (uint32_t d = 0; d < r->model->n; d++)
        hw_cache_empty(&r->level2[d]);
}

replay *hw_replay_new(const hw_model *m)
{
    replay *again = take_spare(m);
    if (again) {
        begin_again(again);
        return again;
    }
    replay *r = calloc(1, sizeof *r);
    if (!r)
        hw_oom(sizeof *r);
    r->model = m;
    r->devices = m->n;
    pthread_mutex_init(&r->lock, NULL);
    for (uint32_t d = 0; d < m->n; d++) {
        const struct hw_device_caches *k = &m->devices[d]->caches;
        hw_cache_init(&r->level2[d], k->l2_bytes, k->l2_ways, k->l2_line,
                      k->l2_sector ? k->l2_sector : SECTOR);
    }
    return r;
}

void hw_tape_grow(tape *t)
{
    t->room = t->room ? 2 * t->room : 1024;
    t->entry = realloc(t->entry, t->room * sizeof *t->entry);
    if (!t->entry)
        hw_oom(t->room * sizeof *t->entry);
}

/* ---- going through ---- */

static void enter(replay *r, uint32_t d, uint64_t packed)
{
    uint64_t *count = r->count[d], lost = 0;
    cache *c = &r->level2[d];
    bool write = packed & 1;
    uint32_t mask = packed >> 1 & 0xf;
    if (!c->lines) { /* no second level: device memory at once */
        count[write ? HW_CACHE_dram_writes : HW_CACHE_dram_reads] += hw_sectors_in(mask);
        return;
    }
    uint32_t missing = hw_cache_touch(c, packed >> 5, mask, write, &lost);
    uint64_t misses = hw_sectors_in(missing) / c->piece; /* the first 32 bytes of each piece */
    count[write ? HW_CACHE_l2_writes : HW_CACHE_l2_reads] += hw_sectors_in(mask);
    count[write ? HW_CACHE_l2_write_hits : HW_CACHE_l2_read_hits] += hw_sectors_in(mask) - misses;
    count[HW_CACHE_dram_reads] += write ? 0 : misses * (c->sector / SECTOR);
    count[HW_CACHE_dram_writes] += lost;
}

/* A second level is larger than the processor's caches: what comes is fetched ahead. */
enum { ANNOUNCED = 24, EXPECTED = 12 };

static void enter_all(replay *r, uint32_t d, const uint64_t *packed, size_t n)
{
    const cache *c = &r->level2[d];
    for (size_t i = 0; i < n; i++) {
        if (c->lines && i + ANNOUNCED < n)
            hw_cache_announce(c, packed[i + ANNOUNCED] >> 5);
        if (c->lines && i + EXPECTED < n)
            hw_cache_expect(c, packed[i + EXPECTED] >> 5);
        enter(r, d, packed[i]);
    }
}

static void read_back(replay *r, uint32_t d, const piece_of_file *p)
{
    uint64_t some[READ_AT_ONCE];
    for (size_t done = 0; done < p->n;) {
        size_t n = p->n - done < READ_AT_ONCE ? p->n - done : READ_AT_ONCE;
        off_t at = p->at + (off_t)(done * sizeof *some);
        if (pread(fileno(r->file), some, n * sizeof *some, at) != (ssize_t)(n * sizeof *some))
            return; /* it was written: the disk is failing */
        enter_all(r, d, some, n);
        done += n;
    }
}

/* Empties the tape. */
static void go_through(replay *r, uint32_t d, tape *t)
{
    piece_of_file *oldest = NULL;
    while (t->spilled) { /* turned round: the oldest first */
        piece_of_file *p = t->spilled;
        t->spilled = p->before;
        p->before = oldest;
        oldest = p;
    }
    while (oldest) {
        piece_of_file *p = oldest;
        oldest = p->before;
        read_back(r, d, p);
        free(p);
    }
    enter_all(r, d, t->entry, t->n);
    t->n = 0;
}

static void go_through_all(replay *r, tape *tapes)
{
    for (uint32_t d = 0; d < r->model->n; d++)
        go_through(r, d, &tapes[d]);
}

/* ---- waiting ---- */

/* Moves what a tape holds to the file; where that fails it stays in memory. The lock is held. */
static void spill(replay *r, tape *t)
{
    if (!r->file)
        r->file = tmpfile();
    piece_of_file *p = r->file && t->n ? malloc(sizeof *p) : NULL;
    size_t bytes = t->n * sizeof *t->entry;
    if (!p || pwrite(fileno(r->file), t->entry, bytes, r->end) != (ssize_t)bytes) {
        free(p);
        return;
    }
    *p = (piece_of_file){ t->spilled, r->end, t->n };
    t->spilled = p;
    r->end += (off_t)bytes;
    t->n = 0;
}

static void free_tapes(const replay *r, tape *tapes)
{
    for (uint32_t d = 0; d < r->model->n; d++)
        free(tapes[d].entry);
    free(tapes);
}

/* Takes over the contents of tapes. The lock is held. */
static void wait_for_turn(replay *r, uint64_t block, tape *tapes)
{
    waiting *w = calloc(1, sizeof *w);
    tape *own = calloc(r->model->n, sizeof *own);
    if (!w || !own)
        hw_oom(sizeof *w);
    for (uint32_t d = 0; d < r->model->n; d++) {
        if (r->held + tapes[d].n > HELD_MOST)
            spill(r, &tapes[d]);
        r->held += tapes[d].n;
        own[d] = tapes[d];
        tapes[d] = (tape){ 0 };
    }
    *w = (waiting){ .block = block, .tapes = own, .before = r->last };
    while (w->before && w->before->block > block)
        w->before = w->before->before;
    w->after = w->before ? w->before->after : r->first;
    *(w->before ? &w->before->after : &r->first) = w;
    *(w->after ? &w->after->before : &r->last) = w;
}

static waiting *take_first(replay *r)
{
    waiting *w = r->first;
    r->first = w->after;
    *(w->after ? &w->after->before : &r->last) = NULL;
    for (uint32_t d = 0; d < r->model->n; d++)
        r->held -= w->tapes[d].n;
    return w;
}

static void finish(replay *r, waiting *w)
{
    go_through_all(r, w->tapes);
    free_tapes(r, w->tapes);
    free(w);
}

/* ---- turns ---- */

static bool my_turn(replay *r, uint64_t block)
{
    bool mine = r->next == block && !r->busy;
    r->busy |= mine;
    return mine;
}

void hw_replay_long(replay *r, uint64_t block, tape *tapes)
{
    pthread_mutex_lock(&r->lock);
    bool mine = my_turn(r, block);
    for (uint32_t d = 0; !mine && d < r->model->n; d++)
        spill(r, &tapes[d]);
    pthread_mutex_unlock(&r->lock);
    if (!mine)
        return;
    go_through_all(r, tapes);
    pthread_mutex_lock(&r->lock);
    r->busy = false;
    pthread_mutex_unlock(&r->lock);
}

void hw_replay_block(replay *r, uint64_t block, tape *tapes)
{
    pthread_mutex_lock(&r->lock);
    if (!my_turn(r, block)) {
        wait_for_turn(r, block, tapes);
        pthread_mutex_unlock(&r->lock);
        return;
    }
    pthread_mutex_unlock(&r->lock);
    go_through_all(r, tapes);
    pthread_mutex_lock(&r->lock);
    while (++r->next, r->first && r->first->block == r->next) {
        waiting *w = take_first(r);
        pthread_mutex_unlock(&r->lock);
        finish(r, w);
        pthread_mutex_lock(&r->lock);
    }
    r->busy = false;
    pthread_mutex_unlock(&r->lock);
}

static void free_replay(replay *r)
{
    if (!r)
        return;
    for (uint32_t d = 0; d < r->devices; d++)
        hw_cache_free(&r->level2[d]);
    if (r->file)
        fclose(r->file);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void hw_replay_end(replay *r, uint64_t (*count)[HW_CACHES])
{
    while (r->first)
        finish(r, take_first(r));
    for (uint32_t d = 0; d < r->model->n; d++) {
        r->count[d][HW_CACHE_dram_writes] += hw_cache_dirty(&r->level2[d]);
        for (int i = 0; i < HW_CACHES; i++)
            count[d][i] += r->count[d][i];
    }
    free_replay(atomic_exchange(&spare, r));
}

void hw_replay_forget(const hw_model *m)
{
    replay *r = atomic_exchange(&spare, NULL);
    if (r && r->model == m)
        free_replay(r);
    else
        free_replay(atomic_exchange(&spare, r));
}

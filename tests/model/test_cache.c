/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated cache against lists in order of use, sector by sector; and blocks' traffic that
 * comes in any order, in pieces, against the same in the order of blocks. */
#include "../../src/model/cache.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t state = 7;

static uint64_t any(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (state >> 20) % below;
}

/* ---- the plain cache: each set a list, the line used last in front ---- */

enum { LINES_MOST = 4096, SECTORS_MOST = 8 };

typedef struct plain_line {
    uint64_t tag;
    bool there[SECTORS_MOST], dirty[SECTORS_MOST];
} plain_line;

typedef struct plain {
    uint32_t sets, ways, line, sector;
    uint32_t n[LINES_MOST]; /* of a set */
    plain_line l[LINES_MOST];
} plain;

/* Whether the sector was there. */
static bool plain_touch(plain *c, uint64_t address, bool write, uint64_t *lost)
{
    uint64_t tag = address / c->line, set = tag % c->sets;
    plain_line *l = &c->l[set * c->ways], now = { .tag = tag };
    uint32_t at = 0, s = (uint32_t)(address % c->line / c->sector);
    while (at < c->n[set] && l[at].tag != tag)
        at++;
    if (at < c->n[set])
        now = l[at];
    else if (c->n[set] < c->ways)
        c->n[set]++;
    else
        for (uint32_t i = 0, last = --at; i < SECTORS_MOST; i++)
            *lost += l[last].dirty[i] ? c->sector / SECTOR : 0;
    memmove(l + 1, l, at * sizeof *l);
    bool hit = now.there[s];
    now.there[s] = true;
    now.dirty[s] |= write;
    l[0] = now;
    return hit;
}

static void check_geometry(uint64_t bytes, uint32_t ways, uint32_t line, uint32_t sector)
{
    static plain p;
    cache c;
    uint64_t lost = 0, lost_plain = 0;
    hw_cache_init(&c, bytes, ways, line, sector);
    memset(&p, 0, sizeof p);
    p.ways = ways < bytes / line ? ways : (uint32_t)(bytes / line);
    p.sets = (uint32_t)(bytes / line / p.ways);
    p.line = line;
    p.sector = sector;
    for (unsigned n = 0; n < 60000; n++) {
        uint64_t chunk = (UINT64_C(1) << 37) + any(any(2) ? 40 : 3 * bytes / CHUNK);
        uint32_t mask = 1 + (uint32_t)any(15), missing = 0;
        bool write = any(3) == 0;
        if (any(20000) == 0) {
            hw_cache_empty(&c);
            memset(p.n, 0, sizeof p.n);
        }
        uint32_t step = c.piece;
        for (uint32_t i = 0; i < 4; i += step) {
            uint32_t own = ((1u << step) - 1) << i;
            if ((mask & own) && !plain_touch(&p, chunk * CHUNK + i * SECTOR, write, &lost_plain))
                missing |= own;
        }
        assert_int_equal(hw_cache_touch(&c, chunk, mask, write, &lost), missing);
        assert_int_equal(lost, lost_plain);
    }
    hw_cache_free(&c);
}

static void lookups_are_those_of_the_plain_cache(void **unused)
{
    (void)unused;
    check_geometry(16384, 4, 128, 32);
    check_geometry(16384, 4, 128, 128);
    check_geometry(16384, 4, 64, 64);
    check_geometry(16384, 4, 64, 32);
    check_geometry(24576, 3, 256, 64); /* 32 sets */
    check_geometry(49152 - 128 * 9, 5, 128, 64);
    check_geometry(4096, 1000, 128, 32); /* one set */
    check_geometry(128, 1, 128, 32);
}

/* ---- blocks in any order ---- */

enum { BLOCKS = 60, DEVICES = 2 };

static void add_traffic(const hw_model *m, uint64_t block, tape *tapes, unsigned part)
{
    uint64_t kept = state;
    state = block * 1000 + part;
    for (uint32_t d = 0; d < m->n; d++)
        for (unsigned i = 0; i < 400; i++)
            hw_tape_add(&tapes[d], any(30000), 1 + (uint32_t)any(15), any(4) == 0);
    state = kept;
}

/* How many open blocks the pieces of BLOCKS blocks come from in turn. */
static void run_blocks(const hw_model *m, unsigned open, uint64_t (*count)[HW_CACHES])
{
    replay *r = hw_replay_new(m);
    tape tapes[8][DEVICES] = { 0 };
    uint64_t block[8], next = 0;
    unsigned part[8] = { 0 };
    for (unsigned i = 0; i < open; i++)
        block[i] = next++;
    for (unsigned live = open; live;) {
        unsigned i = (unsigned)any(open);
        if (block[i] >= BLOCKS)
            continue;
        add_traffic(m, block[i], tapes[i], part[i]++);
        if (part[i] < 6) {
            hw_replay_long(r, block[i], tapes[i]);
            continue;
        }
        hw_replay_block(r, block[i], tapes[i]);
        part[i] = 0;
        block[i] = next++;
        live -= block[i] >= BLOCKS;
    }
    hw_replay_end(r, count);
    for (unsigned i = 0; i < open; i++)
        for (unsigned d = 0; d < DEVICES; d++)
            free(tapes[i][d].entry);
}

static void traffic_is_in_the_order_of_blocks(void **unused)
{
    (void)unused;
    hw_arena *arena = hw_arena_new();
    const hw_device *devices[DEVICES] = { NULL };
    uint64_t one[DEVICES][HW_CACHES] = { 0 };
    assert_int_equal(hw_device_load(arena, "gtx-480", &devices[0], NULL), HW_OK);
    assert_int_equal(hw_device_load(arena, "xbox-one", &devices[1], NULL), HW_OK);
    hw_model *m = hw_model_new(devices, DEVICES, HW_MODEL_CACHES, "test", NULL);
    run_blocks(m, 1, one);
    assert_true(one[0][HW_CACHE_l2_reads] > 10000 && one[1][HW_CACHE_dram_writes] > 1000);
    for (unsigned open = 2; open <= 8; open++) {
        uint64_t more[DEVICES][HW_CACHES] = { 0 };
        run_blocks(m, open, more);
        assert_memory_equal(one, more, sizeof one);
    }
    hw_model_free(m);
    hw_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(lookups_are_those_of_the_plain_cache),
                                        cmocka_unit_test(traffic_is_in_the_order_of_blocks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

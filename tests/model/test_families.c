/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model counts of random accesses, on every device there is, against the device's own rule
 * on each access. */
#include "../../src/model/model.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t state = 3;

static uint64_t any(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (state >> 20) % below;
}

enum { SITES = 24, ACCESSES = 60 };

static hw_site sites[SITES];
static hw_count_inst insts[SITES];
static const hw_count_place places[1];
static const hw_count_block blocks[1] = { { .count = SITES } };

/* Loads, stores and atomics of 1 to 16 bytes of global memory, and of 4 and 8 of shared. */
static hw_count_table make_table(void)
{
    static const uint8_t kinds[] = { HW_SITE_LOAD, HW_SITE_STORE, HW_SITE_REDUCTION };
    static const uint8_t widths[] = { 1, 2, 4, 8, 16, 4, 8, 4 };
    for (uint32_t i = 0; i < SITES; i++) {
        uint32_t w = i / 3;
        sites[i] = (hw_site){ .inst = i,
                              .kind = kinds[i % 3],
                              .bytes = widths[w],
                              .elements = 1,
                              .space = w < 5 || w == 7 ? HW_SITE_GLOBAL : HW_SITE_SHARED,
                              .bypass_l1 = w == 7,
                              .next = HW_NO_INDEX,
                              .first = HW_NO_INDEX };
        insts[i] = (hw_count_inst){
            .guard = HW_NO_INDEX, .site = i, .branch = HW_NO_INDEX, .cls = HW_INST_MISC, .pairs = 1
        };
    }
    return (hw_count_table){ .n_blocks = 1,
                             .n_insts = SITES,
                             .n_sites = SITES,
                             .n_places = 1,
                             .blocks = blocks,
                             .insts = insts,
                             .sites = sites,
                             .places = places };
}

typedef uint64_t fields[HW_TRAFFICS][HW_FIELDS];

/* Distinct pieces of memory on the partition that has most of them. */
static void expect_partitions(const hw_device *d, const hw_transaction *list, uint32_t n,
                              uint64_t *f)
{
    uint64_t on[64] = { 0 }, most = 0, all = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t piece = list[i].address / d->memory.partition_bytes;
        bool seen = false;
        for (uint32_t k = 0; k < i; k++)
            seen |= list[k].address / d->memory.partition_bytes == piece;
        if (seen)
            continue;
        all++;
        on[piece % d->memory.partitions]++;
    }
    for (uint32_t p = 0; p < d->memory.partitions; p++)
        most = on[p] > most ? on[p] : most;
    f[HW_FIELD_camped] += most;
    f[HW_FIELD_spread] += (all + d->memory.partitions - 1) / d->memory.partitions;
}

static void expect_global(const hw_device *d, const hw_access *a, uint64_t *f)
{
    hw_coalesce_result r;
    hw_transaction list[HW_TRANSACTIONS_MAX];
    hw_coalesce_access(d, a, &r, list);
    if (d->memory.partitions)
        expect_partitions(d, list, r.transactions, f);
    f[HW_FIELD_requests] += r.requests;
    f[HW_FIELD_transactions] += r.transactions;
    f[HW_FIELD_sectors] += r.sectors;
    f[HW_FIELD_lines] += r.lines;
    f[HW_FIELD_moved] += r.bytes_moved;
    f[HW_FIELD_least] += (r.bytes_used + 31) / 32 * 32;
}

static bool share_a_word(const hw_access *a)
{
    for (uint32_t i = 0; i < 32; i++)
        for (uint32_t k = 0; k < i; k++) {
            uint64_t apart = (a->address[i] - a->address[k]) / 4;
            if ((a->mask >> i & 1) && (a->mask >> k & 1) &&
                (apart == 0 || (a->width == 8 && (apart == 1 || apart == UINT64_MAX / 4))))
                return true;
        }
    return false;
}

static void expect_shared(const hw_device *d, const hw_access *a, uint64_t *f)
{
    hw_bank_result r;
    hw_bank_access(d, a, &r);
    f[HW_FIELD_requests] += r.parts;
    f[HW_FIELD_passes] += r.passes;
    f[HW_FIELD_ideal] += r.ideal_passes;
    f[HW_FIELD_conflicted] += r.conflicts != 0;
    f[HW_FIELD_broadcasts] += a->kind == HW_LOAD && !r.conflicts && share_a_word(a);
}

static uint32_t alike(const hw_access *a)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < 32; k++)
            n += (a->mask >> i & 1) && (a->mask >> k & 1) && a->address[i] == a->address[k];
        most = n > most ? n : most;
    }
    return most;
}

static void expect(const hw_device *d, const hw_site *s, const hw_access_told *t, fields f)
{
    static const hw_access_kind kinds[] = { HW_LOAD, HW_STORE, HW_ATOMIC, HW_ATOMIC };
    const hw_access a = { .address = t->address,
                          .mask = t->lanes,
                          .lanes = 32,
                          .width = s->bytes,
                          .kind = kinds[s->kind],
                          .bypass_l1 = s->bypass_l1 };
    int traffic = hw_model_traffic((hw_site_space)s->space, s);
    uint64_t *x = f[traffic], lanes = (uint64_t)__builtin_popcount(t->lanes);
    x[HW_FIELD_accesses]++;
    x[HW_FIELD_lanes] += lanes;
    x[HW_FIELD_bytes] += lanes * s->bytes;
    x[HW_FIELD_serial] += a.kind == HW_ATOMIC ? alike(&a) : 0;
    if (s->space == HW_SITE_SHARED)
        expect_shared(d, &a, x);
    else
        expect_global(d, &a, x);
}

static uint32_t make(uint64_t *address, const hw_site *s)
{
    static const uint64_t spans[] = { 1, 6, 40, 300, 4000 };
    uint64_t span = spans[any(5)], base = s->space == HW_SITE_SHARED ? 0 : 1000000 + any(1000);
    for (int i = 0; i < 32; i++)
        address[i] = (base + any(span)) * s->bytes;
    return any(3) ? UINT32_MAX : (uint32_t)(1 + any(UINT32_MAX));
}

static void check_device(const hw_device *d)
{
    const hw_count_table table = make_table();
    uint64_t address[ACCESSES][32];
    hw_access_told told[ACCESSES];
    hw_block_count count = { 1, 32 };
    const hw_counters c = {
        .table = &table, .blocks = &count, .kernel = "k", .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }
    };
    fields want = { 0 };
    hw_model *m = hw_model_new(&d, 1, HW_MODEL_COUNT, "test", NULL);
    const hw_listener *l = hw_model_listener(m);
    void *run = l->begin(l->ctx, &c, 1), *one = l->worker(run, 0);
    for (unsigned round = 0; round < 8; round++) {
        for (uint32_t i = 0; i < ACCESSES; i++) {
            const hw_site *s = &sites[any(SITES)];
            told[i] = (hw_access_told){ .site = (uint32_t)(s - sites),
                                        .space = s->space,
                                        .times = 1,
                                        .real = true,
                                        .address = address[i] };
            told[i].lanes = make(address[i], s);
            expect(d, s, &told[i], want);
        }
        l->access(one, told, ACCESSES);
    }
    l->end(run, &c);
    const hw_model_launch done = { .kernel = "k", .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
    hw_model_launch_done(m, &done);
    for (int t = 0; t < HW_TRAFFICS; t++)
        for (int f = 0; f < HW_FIELDS; f++)
            if (m->first->sums.traffic[0][t][f] != want[t][f])
                fail_msg("%s: %s %s is %llu, not %llu", d->name, hw_traffic_names[t].name,
                         hw_field_names[f].name,
                         (unsigned long long)m->first->sums.traffic[0][t][f],
                         (unsigned long long)want[t][f]);
    hw_model_free(m);
}

static void every_device_by_its_own_rule(void **unused)
{
    (void)unused;
    hw_arena *arena = hw_arena_new();
    const char *const *names;
    size_t n = hw_device_list(arena, &names);
    for (size_t i = 0; i < n; i++) {
        const hw_device *d = NULL;
        assert_int_equal(hw_device_load(arena, names[i], &d, NULL), HW_OK);
        check_device(d);
    }
    assert_true(n > 50);
    hw_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_device_by_its_own_rule) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

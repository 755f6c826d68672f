/* SPDX-License-Identifier: Apache-2.0
 *
 * Occupancy, banks, coalescing and constants against published examples (data/examples.json: each
 * row has its source) and against the compiler's remarks and the quick reference's table
 * (data/gcn-*.tsv). */
#include "hw_device.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
/* cmocka needs the headers above it */
#include <cmocka.h>

static hw_arena *arena;
static json_t *examples;

static const hw_device *load(const char *name)
{
    const hw_device *dev = NULL;
    hw_diag *d = hw_diag_new(arena);
    if (hw_device_load(arena, name, &dev, d) != HW_OK)
        fail_msg("%s", hw_diag_text(d, arena).ptr);
    return dev;
}

static uint32_t number(const json_t *o, const char *key)
{
    return (uint32_t)json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *t = json_string_value(json_object_get(o, key));
    return t ? t : "";
}

typedef void check(const json_t *row, const hw_device *dev);

/* Runs check on each row of a topic and each of its devices. */
static void each(const char *topic, size_t at_least, check *run)
{
    const json_t *rows = json_object_get(examples, topic), *row, *name;
    size_t i, k, count = 0;
    json_array_foreach(rows, i, row)
    {
        json_array_foreach(json_object_get(row, "devices"), k, name)
        {
            run(row, load(json_string_value(name)));
            count++;
        }
    }
    assert_true(count >= at_least);
}

#define SAME(row, dev, what, got, want)                                                    \
    do {                                                                                   \
        if ((got) != (want))                                                               \
            fail_msg("%s on %s: %s is %lld, not %lld", text(row, "id"), (dev)->name, what, \
                     (long long)(got), (long long)(want));                                 \
    } while (0)

/* ---- occupancy ---- */

static hw_occupancy_query nvidia_query(const json_t *q)
{
    hw_occupancy_query query = HW_OCCUPANCY_QUERY_INIT;
    query.threads = number(q, "threads");
    query.registers = number(q, "registers");
    query.shared_static = number(q, "shared_static");
    query.shared_dynamic = number(q, "shared_dynamic");
    if (json_object_get(q, "barriers"))
        query.barriers = number(q, "barriers");
    query.cache = (hw_cache_preference)number(q, "cache");
    query.partitioned = number(q, "partitioned") ? HW_PARTITIONED_ON : HW_PARTITIONED_OFF;
    query.shared_optin = number(q, "optin");
    query.shared_dynamic_max = query.shared_optin ? query.shared_dynamic : 0;
    if (json_object_get(q, "carveout"))
        query.carveout = (int)number(q, "carveout");
    if (strcmp(text(q, "policy"), "xls") == 0)
        query.policy = HW_OCCUPANCY_SPREADSHEET;
    return query;
}

static double got_value(const hw_occupancy_result *r, const char *key)
{
    const struct {
        const char *key;
        double value;
    } all[] = { { "blocks", r->blocks },
                { "warps", r->warps },
                { "occupancy_pct", r->occupancy * 100 },
                { "lim_warps", r->limits[HW_LIMIT_WARPS] },
                { "lim_regs", r->limits[HW_LIMIT_REGISTERS] },
                { "lim_smem", r->limits[HW_LIMIT_SHARED] },
                { "lim_blocks", r->limits[HW_LIMIT_BLOCKS] },
                { "lim_barriers", r->limits[HW_LIMIT_BARRIERS] },
                { "regs_alloc", r->registers_allocated },
                { "smem_alloc", (double)r->shared_allocated } };
    for (size_t i = 0; i < HW_COUNTOF(all); i++)
        if (strcmp(all[i].key, key) == 0)
            return all[i].value;
    fail_msg("no value '%s'", key);
    return 0;
}

static void compare_values(const json_t *row, const hw_device *dev, const json_t *want,
                           const hw_occupancy_result *r)
{
    const char *key;
    const json_t *v;
    json_object_foreach((json_t *)want, key, v)
    {
        double expected = json_is_string(v) ? HW_UNLIMITED : json_number_value(v);
        double got = got_value(r, key), slack = strcmp(key, "occupancy_pct") == 0 ? 0.5 : 0;
        if (fabs(got - expected) > slack)
            fail_msg("%s on %s: %s is %g, not %g", text(row, "id"), dev->name, key, got, expected);
    }
}

static void check_occupancy(const json_t *row, const hw_device *dev)
{
    hw_occupancy_query q = nvidia_query(json_object_get(row, "query"));
    hw_occupancy_result r;
    bool fits = hw_occupancy(dev, &q, &r);
    assert_int_equal(fits, r.blocks > 0);
    assert_int_equal(fits, r.refusal == HW_FITS);
    compare_values(row, dev, json_object_get(row, "expect"), &r);
    compare_values(row, dev, json_object_get(row, "all"), &r);
}

static void nvidia_occupancy_has_the_published_values(void **state)
{
    (void)state;
    each("occupancy", 80, check_occupancy);
}

static void check_gcn(const json_t *row, const hw_device *dev)
{
    const json_t *q = json_object_get(row, "query"), *want = json_object_get(row, "expect");
    const json_t *tipping = json_object_get(row, "tipping"), *v;
    hw_occupancy_query query = HW_OCCUPANCY_QUERY_INIT;
    hw_occupancy_result r;
    const char *key;
    json_object_foreach((json_t *)tipping, key, v)
    {
        uint32_t tip, whole;
        hw_lds_tipping_point(dev, number(row, "threads"), (uint32_t)atoi(key), &tip, &whole);
        SAME(row, dev, key, tip, json_integer_value(v));
    }
    query.threads =
        q && json_object_get(q, "threads") ? number(q, "threads") : dev->compute.warp_size;
    query.vgprs = number(q, "vgprs");
    query.sgprs = number(q, "sgprs");
    query.lds = number(q, "lds");
    query.trap_handler = json_is_true(json_object_get(q, "trap_handler"));
    bool fits = hw_occupancy(dev, &query, &r);
    SAME(row, dev, "fits", fits, !json_is_true(json_object_get(row, "refused")));
    json_object_foreach((json_t *)want, key, v)
    {
        uint32_t w = (uint32_t)json_integer_value(v);
        if (strcmp(key, "waves_per_cu_below") == 0)
            assert_true(r.warps < w);
        else
            SAME(row, dev, key,
                 strcmp(key, "waves_per_simd") == 0        ? r.waves_per_simd
                 : strcmp(key, "waves_per_simd_ceil") == 0 ? r.waves_per_simd_ceil
                 : strcmp(key, "groups") == 0              ? r.blocks
                                                           : r.warps,
                 w);
    }
    const json_t *peak = json_object_get(row, "peak");
    if (peak) {
        SAME(row, dev, "waves", r.max_warps, number(peak, "waves_per_cu"));
        SAME(row, dev, "threads", r.max_warps * dev->compute.warp_size,
             number(peak, "threads_per_cu"));
        SAME(row, dev, "waves of all", r.max_warps * dev->compute.sm_count,
             number(peak, "waves_gpu"));
    }
}

static void gcn_occupancy_has_the_published_values(void **state)
{
    (void)state;
    each("gcn", 130, check_gcn);
}

/* ---- banks and coalescing ---- */

typedef struct row_access {
    hw_access access;
    uint64_t address[HW_LANES_MAX];
} row_access;

static void read_access(const json_t *row, row_access *ra)
{
    const json_t *list = json_object_get(row, "addresses"), *v;
    size_t i;
    memset(ra, 0, sizeof *ra);
    ra->access.address = ra->address;
    ra->access.lanes = (uint32_t)json_array_size(list);
    ra->access.width = number(row, "width") ? number(row, "width") : 4;
    ra->access.kind = strcmp(text(row, "kind"), "store") == 0 ? HW_STORE : HW_LOAD;
    ra->access.bypass_l1 = json_is_true(json_object_get(row, "bypass_l1"));
    ra->access.bank_width = number(row, "bank_width");
    const char *reads = text(row, "read_conflicts");
    ra->access.read_conflicts = *reads ? (strcmp(reads, "threads") == 0 ? 1 : -1) : 0;
    json_array_foreach(list, i, v)
    {
        if (json_is_null(v))
            continue;
        ra->access.mask |= UINT64_C(1) << i;
        ra->address[i] = (uint64_t)json_integer_value(v);
    }
}

static void check_banks(const json_t *row, const hw_device *dev)
{
    row_access ra;
    hw_bank_result r;
    const json_t *v;
    size_t i;
    read_access(row, &ra);
    hw_bank_access(dev, &ra.access, &r);
    assert_int_equal(r.conflicts, r.passes - r.ideal_passes);
    json_array_foreach(json_object_get(row, "parts"), i, v)
        SAME(row, dev, "passes of a part", r.part_passes[i], json_integer_value(v));
    if (json_object_get(row, "parts"))
        SAME(row, dev, "parts", r.parts, json_array_size(json_object_get(row, "parts")));
    json_array_foreach(json_object_get(row, "banks"), i,
                       v) /* banks 0, 1, 2 ... of the lanes in the order of passes */
        SAME(row, dev, "bank", hw_bank_of(dev, &ra.access, ra.address[i]), json_integer_value(v));
    if (json_object_get(row, "first_part"))
        SAME(row, dev, "first part", r.part_passes[0], number(row, "first_part"));
    if (json_object_get(row, "degree"))
        SAME(row, dev, "degree", r.degree, number(row, "degree"));
    if (json_object_get(row, "passes"))
        SAME(row, dev, "passes", r.passes, number(row, "passes"));
    if (json_object_get(row, "conflicts"))
        SAME(row, dev, "conflicts", r.conflicts, number(row, "conflicts"));
}

static void banks_have_the_published_conflicts(void **state)
{
    (void)state;
    each("banks", 200, check_banks);
}

static void lds_addresses_have_bank_and_row(void **state)
{
    (void)state;
    const hw_device *dev = load("xbox-one");
    hw_access a = { .width = 4 };
    assert_int_equal(hw_bank_of(dev, &a, 4660), 13); /* bits 6..2; the row is bits 15..7 */
    assert_int_equal(4660 / (dev->banks.banks * dev->banks.bank_width), 36);
}

static uint32_t count_of(const hw_transaction *list, uint32_t n, uint64_t address, uint32_t bytes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += list[i].address == address && list[i].bytes == bytes;
    return count;
}

static void check_transactions(const json_t *row, const hw_device *dev, const hw_coalesce_result *r,
                               const hw_transaction *list)
{
    const json_t *want = json_object_get(row, "transactions"), *v;
    const char *key;
    uint32_t all = 0;
    json_object_foreach((json_t *)want, key, v)
    {
        uint32_t bytes = (uint32_t)atoi(key), n = (uint32_t)json_integer_value(v);
        SAME(row, dev, key,
             count_of(list, r->transactions, (uint64_t)atoll(strchr(key, '@') + 1), bytes), n);
        all += n;
    }
    if (want)
        SAME(row, dev, "transactions", r->transactions, all);
}

static void check_coalescing(const json_t *row, const hw_device *dev)
{
    row_access ra;
    hw_coalesce_result r;
    hw_transaction list[HW_TRANSACTIONS_MAX];
    const json_t *v;
    size_t i;
    read_access(row, &ra);
    hw_coalesce_access(dev, &ra.access, &r, list);
    check_transactions(row, dev, &r, list);
    if (json_object_get(row, "sectors"))
        SAME(row, dev, "sectors", r.sectors, number(row, "sectors"));
    if (json_object_get(row, "lines"))
        SAME(row, dev, "lines", r.lines, number(row, "lines"));
    if (json_object_get(row, "bytes_moved"))
        SAME(row, dev, "bytes moved", r.bytes_moved, number(row, "bytes_moved"));
    if (json_object_get(row, "bytes_used"))
        SAME(row, dev, "bytes used", r.bytes_used, number(row, "bytes_used"));
    if (json_object_get(row, "efficiency_pct"))
        assert_true(fabs(r.efficiency * 100 -
                         json_number_value(json_object_get(row, "efficiency_pct"))) < 0.01);
    uint32_t parts[HW_PARTS_MAX] = { 0 };
    for (uint32_t k = 0; k < r.transactions; k++)
        parts[list[k].part]++;
    json_array_foreach(json_object_get(row, "parts"), i, v)
        SAME(row, dev, "transactions of a part", parts[i], json_integer_value(v));
}

static void accesses_coalesce_as_published(void **state)
{
    (void)state;
    each("coalescing", 100, check_coalescing);
}

static void rows_of_512_floats_camp_on_one_partition(void **state)
{
    (void)state;
    const hw_device *dev = load("gtx-280");
    for (uint64_t row = 0; row < 64; row++)
        assert_int_equal(row * 2048 / dev->memory.partition_bytes % dev->memory.partitions, 0);
}

static void check_constant(const json_t *row, const hw_device *dev)
{
    row_access ra;
    uint32_t requests[2];
    const json_t *v;
    size_t i;
    read_access(row, &ra);
    hw_constant_access(dev, &ra.access, requests);
    json_array_foreach(json_object_get(row, "requests"), i, v)
        SAME(row, dev, "requests", requests[i], json_integer_value(v));
}

static void constants_serialise_by_address(void **state)
{
    (void)state;
    each("constant", 50, check_constant);
}

/* ---- tables of other programs ---- */

/* Cuts a tab-separated line; '-' is HW_UNLIMITED. Returns the fields. */
static size_t cut(char *line, char *field[], size_t most)
{
    size_t n = 0;
    for (char *p = strtok(line, "\t\n"); p && n < most; p = strtok(NULL, "\t\n"))
        field[n++] = p;
    return n;
}

static uint32_t value(const char *field)
{
    return strcmp(field, "-") == 0 ? HW_UNLIMITED : (uint32_t)atoi(field);
}

typedef void line_check(char *field[]);

static size_t each_line(const char *path, size_t fields, line_check *run)
{
    char line[512], *field[32];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t rows = 0;
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#' || strstr(line, "threads\t"))
            continue;
        assert_int_equal(cut(line, field, HW_COUNTOF(field)), fields);
        run(field);
        rows++;
    }
    fclose(f);
    return rows;
}

static const hw_device *target(const char *name)
{
    static const hw_device *kept;
    static char kept_name[16];
    if (!kept || strcmp(kept_name, name) != 0) {
        kept = load(name);
        snprintf(kept_name, sizeof kept_name, "%s", name);
    }
    return kept;
}

static void check_remark(char *f[])
{
    const hw_device *dev = target(f[0]);
    hw_occupancy_query q = HW_OCCUPANCY_QUERY_INIT;
    hw_occupancy_result r;
    q.vgprs = value(f[3]);
    q.sgprs = value(f[4]);
    q.lds = value(f[5]);
    q.threads = value(f[6]) == HW_UNLIMITED ? 64 : value(f[6]);
    q.policy = HW_OCCUPANCY_LLVM;
    hw_occupancy(dev, &q, &r);
    if (value(f[6]) != HW_UNLIMITED && r.waves_per_simd != value(f[10]))
        fail_msg("%s %s: %u waves, not %s", f[0], f[2], r.waves_per_simd, f[10]);
    q.policy = HW_OCCUPANCY_HEADER;
    hw_occupancy(dev, &q, &r);
    if (value(f[11]) == HW_UNLIMITED)
        return;
    if (q.lds >
        dev->gcn.lds_max_per_group) { /* the table's exact columns know no limit of a group */
        assert_int_equal(r.refusal, HW_REFUSED_SHARED_BLOCK);
        return;
    }
    if (r.warps != value(f[11]) || r.waves_per_simd != value(f[12]) ||
        r.waves_per_simd_ceil != value(f[13]))
        fail_msg("%s %s: exact %u waves of a CU, %u to %u of a SIMD; not %s, %s to %s", f[0], f[2],
                 r.warps, r.waves_per_simd, r.waves_per_simd_ceil, f[11], f[12], f[13]);
}

static void gcn_occupancy_equals_the_compilers_remark(void **state)
{
    (void)state;
    assert_true(each_line(DATA "/gcn-occupancy.tsv", 14, check_remark) > 2000);
}

static void check_old_header(char *f[])
{
    const hw_device *dev = target(f[0]);
    hw_occupancy_query q = HW_OCCUPANCY_QUERY_INIT;
    hw_occupancy_result r;
    q.threads = value(f[1]);
    q.registers = value(f[2]);
    q.shared_static = value(f[3]);
    q.shared_dynamic = value(f[4]);
    q.cache = (hw_cache_preference)value(f[5]);
    hw_occupancy(dev, &q, &r);
    const uint32_t got[] = { r.blocks,
                             r.limits[HW_LIMIT_REGISTERS],
                             r.limits[HW_LIMIT_SHARED],
                             r.limits[HW_LIMIT_WARPS],
                             r.limits[HW_LIMIT_BLOCKS],
                             r.registers_allocated,
                             (uint32_t)r.shared_allocated };
    for (size_t i = 0; i < HW_COUNTOF(got); i++)
        assert_int_equal(got[i], (uint32_t)strtoul(f[6 + i], NULL, 10));
}

static void occupancy_of_1x_and_2x_equals_the_old_header(void **state)
{
    (void)state;
    assert_int_equal(each_line(DATA "/occupancy-1x-2x.tsv", 13, check_old_header), 420);
}

static void check_lds_row(char *f[])
{
    const hw_device *dev = target("xbox-one");
    uint32_t tipping, whole;
    hw_lds_tipping_point(dev, value(f[0]), value(f[1]), &tipping, &whole);
    assert_int_equal(tipping, value(f[3]));
    assert_int_equal(whole, value(f[10]));
    hw_occupancy_query q = HW_OCCUPANCY_QUERY_INIT;
    hw_occupancy_result r;
    q.threads = value(f[0]);
    q.lds = tipping;
    hw_occupancy(dev, &q, &r);
    assert_int_equal(r.blocks, value(f[5]));
    assert_int_equal(r.warps, value(f[6]));
    assert_int_equal(r.waves_per_simd, value(f[7]));
    assert_int_equal(r.waves_per_simd_ceil, value(f[8]));
}

static void the_lds_table_is_the_quick_references(void **state)
{
    (void)state;
    assert_int_equal(each_line(DATA "/gcn-lds.tsv", 11, check_lds_row), 160);
}

/* ---- hostile queries ---- */

static void no_query_wraps(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 0, 1, 49152, UINT32_MAX, UINT64_MAX / 2, UINT64_MAX };
    static const uint32_t counts[] = { 0, 1, 33, 1024, 65536, UINT32_MAX };
    const char *const *names;
    size_t n = hw_device_list(arena, &names);
    for (size_t i = 0; i < n; i++) {
        const hw_device *dev = load(names[i]);
        for (unsigned k = 0; k < 6 * 6 * 6; k++) {
            hw_occupancy_query q = HW_OCCUPANCY_QUERY_INIT;
            hw_occupancy_result r;
            q.threads = counts[k % 6];
            q.registers = q.vgprs = q.sgprs = counts[k / 6 % 6];
            q.shared_dynamic = q.lds = sizes[k / 36];
            q.shared_static = sizes[5 - k / 36];
            bool fits = hw_occupancy(dev, &q, &r);
            assert_int_equal(fits, r.blocks > 0);
            assert_int_equal(fits, r.refusal == HW_FITS);
            assert_true(r.warps <= r.max_warps || r.blocks == 0);
        }
    }
}

/* ---- rules counted again, lane by lane ---- */

static uint64_t random_state = 88172645463325252;

static uint32_t below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % n;
}

static void random_access(const hw_device *dev, row_access *ra)
{
    static const uint32_t widths[] = { 1, 2, 4, 8, 16 };
    memset(ra, 0, sizeof *ra);
    ra->access.address = ra->address;
    ra->access.lanes = dev->compute.warp_size;
    ra->access.width = widths[below(5)];
    ra->access.mask = below(2) ? UINT64_MAX : (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
    ra->access.kind = (hw_access_kind)below(3);
    uint32_t stride = below(40), span = 1 + below(4096), scatter = below(2);
    for (uint32_t lane = 0; lane < ra->access.lanes; lane++)
        ra->address[lane] = (uint64_t)(scatter ? below(span) : lane * stride) * ra->access.width;
}

/* Passes of lanes [first, first + count): for each bank the distinct words, or lanes, found by comparing all pairs. */
static uint32_t passes_again(const hw_device *dev, const row_access *ra, uint32_t first,
                             uint32_t count)
{
    bool threads = ra->access.kind != HW_LOAD && dev->banks.write_conflicts == HW_CONFLICT_THREADS;
    uint32_t worst = 0;
    for (uint32_t bank = 0; bank < dev->banks.banks; bank++) {
        uint64_t seen[HW_LANES_MAX * 4];
        uint32_t n = 0;
        for (uint32_t lane = first; lane < first + count; lane++)
            for (uint32_t b = 0; ra->access.mask >> lane & 1 && b < ra->access.width; b += 4) {
                uint64_t word = (ra->address[lane] + b) / 4;
                bool found = false;
                for (uint32_t i = 0; i < n && !threads; i++)
                    found = found || seen[i] == word;
                if (word % dev->banks.banks == bank && !found)
                    seen[n++] = word;
            }
        worst = n > worst ? n : worst;
    }
    return worst;
}

static void banks_are_those_of_a_plain_count(void **state)
{
    (void)state;
    static const char *const names[] = { "h100", "gtx-480", "xbox-one" };
    for (int i = 0; i < 6000; i++) {
        const hw_device *dev = target(names[i / 2000]);
        row_access ra;
        hw_bank_result r;
        random_access(dev, &ra);
        hw_bank_access(dev, &ra.access, &r);
        uint32_t count = hw_bank_lanes(dev, ra.access.width), passes = 0, parts = 0;
        for (uint32_t first = 0; first < ra.access.lanes; first += count) {
            uint32_t p = passes_again(dev, &ra, first, count);
            passes += p ? p + (ra.access.width == 16 ? dev->banks.extra_passes_128 : 0) : 0;
            parts += p > 0;
        }
        assert_int_equal(r.passes, passes);
        assert_int_equal(r.parts, parts);
        assert_int_equal(r.conflicts, passes - parts);
    }
}

static uint32_t segments_again(const row_access *ra, uint32_t bytes)
{
    uint32_t n = 0;
    for (uint64_t s = 0; s <= 4096 * 16 / bytes; s++) {
        bool used = false;
        for (uint32_t lane = 0; lane < ra->access.lanes; lane++)
            used = used || (ra->access.mask >> lane & 1 && ra->address[lane] / bytes <= s &&
                            (ra->address[lane] + ra->access.width - 1) / bytes >= s);
        n += used;
    }
    return n;
}

static void sectors_are_those_of_a_plain_count(void **state)
{
    (void)state;
    const char *const *names;
    size_t n = hw_device_list(arena, &names);
    for (size_t i = 0; i < n; i++) {
        const hw_device *dev = load(names[i]);
        for (int k = 0; k < 20; k++) {
            row_access ra;
            hw_coalesce_result r;
            hw_transaction list[HW_TRANSACTIONS_MAX];
            uint64_t served = 0, moved = 0;
            random_access(dev, &ra);
            uint64_t lanes = dev->compute.warp_size == 64 ? UINT64_MAX : UINT32_MAX;
            hw_coalesce_access(dev, &ra.access, &r, list);
            assert_int_equal(r.sectors, segments_again(&ra, 32));
            assert_int_equal(r.lines, segments_again(&ra, dev->global.line));
            for (uint32_t t = 0; t < r.transactions; t++) {
                served |= list[t].lanes;
                moved += list[t].bytes;
            }
            assert_true(served == (ra.access.mask & lanes));
            assert_int_equal(moved, r.bytes_moved);
            hw_coalesce_result counted;
            hw_coalesce_access(dev, &ra.access, &counted, NULL);
            assert_memory_equal(&counted, &r, sizeof r);
            assert_true(r.bytes_used <= r.bytes_requested);
            assert_true(r.bytes_used <= r.bytes_moved);
        }
    }
}

static void extreme_addresses_end(void **state)
{
    (void)state;
    static const char *const names[] = { "g80",  "gtx-280", "gtx-480", "k80",
                                         "p100", "h100",    "xbox-one" };
    for (size_t i = 0; i < HW_COUNTOF(names); i++)
        for (uint32_t width = 0; width <= 300; width += 3) {
            row_access ra = { .access = { .mask = UINT64_MAX, .lanes = 1000, .width = width } };
            hw_bank_result b;
            hw_coalesce_result r;
            hw_transaction list[HW_TRANSACTIONS_MAX];
            uint32_t requests[2];
            ra.access.address = ra.address;
            for (uint32_t lane = 0; lane < HW_LANES_MAX; lane++)
                ra.address[lane] = UINT64_MAX - lane * width % 97;
            hw_bank_access(load(names[i]), &ra.access, &b);
            hw_coalesce_access(load(names[i]), &ra.access, &r, list);
            hw_constant_access(load(names[i]), &ra.access, requests);
            assert_true(r.transactions <= HW_TRANSACTIONS_MAX);
        }
}

static int setup(void **state)
{
    (void)state;
    json_error_t error;
    arena = hw_arena_new();
    examples = json_load_file(DATA "/examples.json", 0, &error);
    return examples ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(examples);
    hw_arena_free(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvidia_occupancy_has_the_published_values),
        cmocka_unit_test(gcn_occupancy_has_the_published_values),
        cmocka_unit_test(banks_have_the_published_conflicts),
        cmocka_unit_test(lds_addresses_have_bank_and_row),
        cmocka_unit_test(accesses_coalesce_as_published),
        cmocka_unit_test(rows_of_512_floats_camp_on_one_partition),
        cmocka_unit_test(constants_serialise_by_address),
        cmocka_unit_test(gcn_occupancy_equals_the_compilers_remark),
        cmocka_unit_test(occupancy_of_1x_and_2x_equals_the_old_header),
        cmocka_unit_test(the_lds_table_is_the_quick_references),
        cmocka_unit_test(no_query_wraps),
        cmocka_unit_test(banks_are_those_of_a_plain_count),
        cmocka_unit_test(sectors_are_those_of_a_plain_count),
        cmocka_unit_test(extreme_addresses_end),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

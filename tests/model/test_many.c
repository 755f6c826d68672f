/* SPDX-License-Identifier: Apache-2.0
 *
 * Accesses gone through side by side, against the rules of src/device on each of them. */
#include "../../src/model/many.h"
#include "hw_device.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t state = 1;

static uint64_t any(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (state >> 20) % below;
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

/* Distinct words of each bank, and the most of one. */
static uint32_t in_banks(const hw_access *a, uint32_t bank[32])
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < 32; i++) {
        bool first = a->mask >> i & 1;
        for (uint32_t k = 0; k < i; k++)
            first &= !(a->mask >> k & 1) || a->address[i] != a->address[k];
        uint32_t *n = &bank[a->address[i] / 4 % 32];
        *n += first;
        most = *n > most ? *n : most;
    }
    return most;
}

/* Distinct 64-byte pieces. */
static uint32_t halves(const hw_access *a)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 32; i++) {
        bool first = a->mask >> i & 1;
        for (uint32_t k = 0; k < i; k++)
            first &= !(a->mask >> k & 1) || a->address[i] / 64 != a->address[k] / 64;
        n += first;
    }
    return n;
}

typedef struct made {
    uint64_t told[32], moved[32]; /* without and with what is added */
    hw_access access;
} made;

static hw_access_told make(made *x, uint64_t width)
{
    static const uint64_t spans[] = { 1, 8, 40, 300, 5000, UINT64_C(1) << 26, UINT64_C(1) << 33 };
    uint64_t span = spans[any(7)], base = any(UINT64_C(1) << 40);
    int64_t add = (int64_t)(any(1000) * width) - 500 * (int64_t)width;
    for (unsigned i = 0; i < 32; i++) {
        x->told[i] = (base + any(span)) * width + (any(5000) == 0);
        x->moved[i] = x->told[i] + (uint64_t)add;
    }
    x->access = (hw_access){ .address = x->moved, .lanes = 32, .width = (uint32_t)width };
    x->access.mask = any(3) ? UINT32_MAX : 1 + any(UINT32_MAX);
    return (hw_access_told){ .lanes = (uint32_t)x->access.mask, .address = x->told, .add = add };
}

typedef struct expected {
    uint64_t accesses, lanes, sectors, lines, alike, crowd, conflicted, shared, filled, bank[32];
} expected;

static void expect(expected *e, const hw_device *d, const hw_access *a, bool banks, const many *r,
                   uint32_t i)
{
    hw_coalesce_result c;
    hw_coalesce_access(d, a, &c, NULL);
    assert_int_equal((uint64_t)r->units[i] * a->width, c.bytes_used);
    assert_int_equal(r->alike[i], alike(a));
    e->accesses++;
    e->lanes += (uint32_t)__builtin_popcountll(a->mask);
    e->alike += alike(a);
    e->filled += (c.bytes_used + 31) / 32;
    if (!banks) {
        assert_int_equal(r->sectors[i], c.sectors);
        assert_int_equal(r->lines[i], c.lines);
        assert_int_equal(r->halves[i], halves(a));
        e->sectors += c.sectors;
        e->lines += c.lines;
        return;
    }
    hw_bank_result b;
    hw_bank_access(d, a, &b);
    assert_int_equal(r->crowd[MANY_WORDS][i], b.passes);
    e->crowd += b.passes;
    e->conflicted += b.passes > 1;
    e->shared += b.passes == 1 && r->units[i] < (uint32_t)__builtin_popcountll(a->mask);
    uint32_t bank[32] = { 0 };
    assert_int_equal(in_banks(a, bank), b.passes);
    for (int k = 0; k < 32; k++)
        e->bank[k] += bank[k];
}

static uint64_t columns(const uint32_t *x)
{
    uint64_t n = 0;
    for (int i = 0; i < MANY; i++)
        n += x[i];
    return n;
}

static void same_sums(const expected *e, const many_sums *s)
{
    assert_int_equal(s->accesses, e->accesses);
    assert_int_equal(s->conflicted[MANY_WORDS], e->conflicted);
    assert_int_equal(s->shared[MANY_WORDS], e->shared);
    assert_int_equal(columns(s->lanes), e->lanes);
    assert_int_equal(columns(s->sectors), e->sectors);
    assert_int_equal(columns(s->lines), e->lines);
    assert_int_equal(columns(s->alike), e->alike);
    assert_int_equal(columns(s->crowd[MANY_WORDS]), e->crowd);
    assert_int_equal(columns(s->filled), e->filled);
    for (int b = 0; b < 32; b++) {
        uint64_t n = 0;
        for (int k = 0; k < 32; k++)
            for (int i = 0; i < MANY; i++)
                n += (uint64_t)(s->plane[k][i] >> b & 1) << k;
        assert_int_equal(n, e->bank[b]);
    }
}

static unsigned round_of(const hw_device *d, bool banks, expected *e, many_sums *s)
{
    made x[MANY];
    many_keys keys;
    many r;
    uint32_t n = 0;
    for (unsigned i = 0; i < MANY; i++) {
        uint64_t width = banks ? 4 : UINT64_C(1) << any(5);
        hw_access_told t = make(&x[n], width);
        n += hw_model_many_set(&keys, n, &t, (uint32_t)width);
    }
    uint32_t some = (uint32_t)any(UINT64_C(1) << n);
    hw_model_many(&keys, MANY_ALIKE | MANY_HALVES | (banks ? MANY_BANKS : 0), &r);
    for (uint32_t i = 0; i < n; i++) {
        expected none = { 0 };
        expect(some >> i & 1 ? e : &none, d, &x[i].access, banks, &r, i);
    }
    hw_model_many_add(s, some, &keys, &r, banks);
    return n;
}

static void random_accesses(bool banks)
{
    hw_arena *arena = hw_arena_new();
    const hw_device *d = NULL;
    unsigned known = 0;
    many_sums *sums = calloc(1, sizeof *sums);
    expected e = { 0 };
    assert_int_equal(hw_device_load(arena, "v100", &d, NULL), HW_OK);
    for (unsigned n = 0; n < 3000; n++)
        known += round_of(d, banks, &e, sums);
    same_sums(&e, sums);
    printf("%u of %u accesses side by side\n", known, 3000 * MANY);
    assert_true(known > 3000 * MANY / 2);
    free(sums);
    hw_arena_free(arena);
}

static void sectors_and_lines(void **unused)
{
    (void)unused;
    random_accesses(false);
}

static void banks(void **unused)
{
    (void)unused;
    random_accesses(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sectors_and_lines),
                                        cmocka_unit_test(banks) };
    if (!hw_model_many_able()) {
        printf("this processor cannot\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The quick count of an access against the device's own rules, on random accesses. */
#include "../../src/model/quick.h"

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

static void random_accesses(void **unused)
{
    (void)unused;
    hw_arena *arena = hw_arena_new();
    const hw_device *d = NULL;
    uint64_t address[32];
    unsigned known = 0;
    assert_int_equal(hw_device_load(arena, "v100", &d, NULL), HW_OK);
    for (unsigned n = 0; n < 50000; n++) {
        static const uint64_t spans[] = { 1, 8, 40, 300, 5000, UINT64_C(1) << 26 };
        uint64_t width = UINT64_C(1) << any(5), span = spans[any(6)], base = any(UINT64_C(1) << 40);
        for (unsigned i = 0; i < 32; i++)
            address[i] = (base + any(span)) * width + (any(20000) == 0);
        hw_access a = { .address = address, .lanes = 32, .width = (uint32_t)width };
        a.kind = any(2) ? HW_ATOMIC : HW_LOAD;
        a.mask = any(3) ? UINT32_MAX : any(UINT64_C(1) << 32);
        quick q, b;
        hw_coalesce_result r;
        if (!hw_model_quick(&a, false, &q))
            continue;
        known++;
        hw_coalesce_access(d, &a, &r, NULL);
        assert_int_equal(q.lanes, __builtin_popcountll(a.mask));
        assert_int_equal(q.sectors, r.sectors);
        assert_int_equal(q.lines, r.lines);
        assert_int_equal(q.units * width, r.bytes_used);
        assert_int_equal(__builtin_popcount(q.first), q.units);
        assert_int_equal(q.alike, alike(&a));
        hw_bank_result passes;
        hw_bank_access(d, &a, &passes);
        assert_true(hw_model_quick(&a, true, &b));
        if (width == 4)
            assert_int_equal(b.crowd, passes.passes);
    }
    printf("%u accesses counted quickly\n", known);
    hw_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_accesses) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

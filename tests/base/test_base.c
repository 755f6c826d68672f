/* SPDX-License-Identifier: Apache-2.0
 * base: arenas, vectors, names, diagnostics, pool. */
#include "hw_base.h"

#include <setjmp.h>
#include <stdatomic.h>
/* cmocka needs the four headers above it */
#include <cmocka.h>

static void arena_memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    for (size_t size = 0; size < 100000; size = size * 3 + 1) {
        uint8_t *p = hw_arena_alloc_aligned(a, size, 64);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
    }
    hw_arena_free(a);
}

static void vec_keeps_its_elements_when_it_grows(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    HW_VEC(uint32_t) v = { 0 };
    for (uint32_t i = 0; i < 1000; i++)
        hw_vec_push(a, &v, i * 7);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(v.ptr[i], i * 7);
    hw_arena_free(a);
}

static void intern_gives_equal_names_equal_ids(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_intern *t = hw_intern_new(a);
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 5000; i++)
            assert_int_equal(hw_intern_id(t, hw_str_of(hw_arena_printf(a, "n%u", i))), i + 1);
    assert_int_equal(hw_intern_find(t, HW_STR("absent")), 0);
    assert_string_equal(hw_intern_name(t, 18).ptr, "n17");
    hw_arena_free(a);
}

static void diag_text_has_place_and_caret(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_place at = { .file = "k.ptx", .line = 3, .column = 2, .text = HW_STR("\tfrob;") };
    assert_int_equal(hw_fail_at(d, HW_E_SYNTAX, at, "unknown '%s'", "frob"), HW_E_SYNTAX);
    assert_string_equal(hw_diag_text(d, a).ptr,
                        "k.ptx:3:2: error: unknown 'frob'\n    \tfrob;\n    \t^");
    hw_arena_free(a);
}

static void nearest_finds_a_typing_error_and_nothing_else(void **state)
{
    (void)state;
    const char *const list[] = { "h100", "v100", "xbox-one" };
    assert_string_equal(hw_nearest("xbox-on", list, 3), "xbox-one");
    assert_null(hw_nearest("completely-else", list, 3));
}

static void count(void *ctx, unsigned worker)
{
    atomic_fetch_add((atomic_uint *)ctx, 1u << (8 * worker));
}

static void pool_runs_each_index_once(void **state)
{
    (void)state;
    hw_pool *p = hw_pool_new(4);
    for (int i = 0; i < 200; i++) {
        atomic_uint sum = 0;
        hw_pool_run(p, 4, count, &sum);
        assert_int_equal(atomic_load(&sum), 0x01010101);
    }
    hw_pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_memory_is_zeroed_and_aligned),
        cmocka_unit_test(vec_keeps_its_elements_when_it_grows),
        cmocka_unit_test(intern_gives_equal_names_equal_ids),
        cmocka_unit_test(diag_text_has_place_and_caret),
        cmocka_unit_test(nearest_finds_a_typing_error_and_nothing_else),
        cmocka_unit_test(pool_runs_each_index_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

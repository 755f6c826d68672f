/* SPDX-License-Identifier: Apache-2.0
 * wir: prepare and simplify on small functions, before and after as text. */
#include "hw_wir.h"

#include <setjmp.h>
/* cmocka needs the headers above it */
#include <cmocka.h>

static hw_wir_module *parse(hw_arena *a, const char *text)
{
    hw_diag *d = hw_diag_new(a);
    hw_wir_module *m;
    hw_status s = hw_wir_parse(a, hw_str_of(text), "t", &m, d);
    if (s == HW_OK)
        s = hw_wir_verify(m, d);
    if (s != HW_OK)
        fail_msg("%s", hw_diag_text(d, a).ptr);
    return m;
}

/* The body of function 0 from its first block on. */
static const char *body(hw_arena *a, const hw_wir_module *m)
{
    hw_diag *d = hw_diag_new(a);
    if (hw_wir_verify(m, d) != HW_OK)
        fail_msg("%s", hw_diag_text(d, a).ptr);
    char *text = hw_arena_cstr(a, hw_wir_print(m, a)), *start = strstr(text, ":\n");
    while (start > text && start[-1] != '\n')
        start--;
    *strchr(start, '}') = 0;
    return start;
}

static void expect_prepared(const char *before, const char *after)
{
    hw_arena *a = hw_arena_new();
    hw_wir_module *m = parse(a, before);
    assert_int_equal(hw_wir_prepare(m, NULL), HW_OK);
    assert_string_equal(body(a, m), after);
    hw_arena_free(a);
}

static void expect_simplified(const char *before, const char *after)
{
    hw_arena *a = hw_arena_new();
    hw_wir_module *m = parse(a, before);
    hw_wir_simplify(m, 0);
    assert_string_equal(body(a, m), after);
    hw_arena_free(a);
}

#define K "kernel @k {\nreg i32 %a %b %c %d\nreg i1 %p\nreg i64 %w\n"

static void lanes_that_branch_to_an_exit_end_there(void **state)
{
    (void)state;
    expect_prepared(K "e:\n cbr %p, out, more\nmore:\n %a = mov.i32 1\n br out\nout:\n ret\n}\n",
                    "e:\n  @%p exit more\nmore:\n  %a = mov.i32 1\n  exit\n");
    expect_prepared(K "e:\n cbr %p, more, out\nmore:\n %a = mov.i32 1\n br out\nout:\n ret\n}\n",
                    "e:\n  @!%p exit more\nmore:\n  %a = mov.i32 1\n  exit\n");
}

static void back_edges_meet_in_one_latch(void **state)
{
    (void)state;
    expect_prepared(K "e:\n br l\nl:\n %a = add.i32 %a, 1\n cbr %p, l, m\n"
                      "m:\n %b = mov.i32 1\n cbr %p, l, out\nout:\n %c = mov.i32 1\n ret\n}\n",
                    "e:\n  br l\nl:\n  %a = add.i32 %a, 1\n  cbr %p, .5, m\n"
                    "m:\n  %b = mov.i32 1\n  cbr %p, .6, out\nout:\n  %c = mov.i32 1\n  ret\n"
                    ".4:\n  br l\n.5:\n  br .4\n.6:\n  br .4\n");
}

static void suspending_instructions_end_their_block(void **state)
{
    (void)state;
    expect_prepared(K "e:\n barrier 0, _\n %a = mov.i32 1\n yield\n ret\n}\n",
                    "e:\n  barrier 0, _\n  br .1\n.1:\n  %a = mov.i32 1\n  yield\n  br .2\n"
                    ".2:\n  ret\n");
}

static void the_entry_has_no_predecessors(void **state)
{
    (void)state;
    expect_prepared(K "e:\n %a = add.i32 %a, 1\n br e\n}\n",
                    ".0:\n  br e\ne:\n  %a = add.i32 %a, 1\n  br e\n");
}

static void unreachable_blocks_go_and_branches_are_threaded(void **state)
{
    (void)state;
    expect_prepared(K "e:\n br f\ndead:\n br e\nf:\n br g\ng:\n %a = mov.i32 1\n ret\n}\n",
                    "e:\n  br g\ng:\n  %a = mov.i32 1\n  ret\n");
}

/* A callee with a barrier, an early return and local memory; the call is guarded. */
static void calls_that_suspend_are_inlined(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_wir_module *m = parse(a, "kernel @k local=32 {\nreg i32 %a %b\nreg i1 %p\n"
                                "e:\n @%p %b = call @f, %a\n store.i32.shared [0], %b\n ret\n}\n"
                                "func @f local=16 {\nreg i32 %x %y\nreg i1 %q\nreg i64 %l\n"
                                "params %x\nresults %y\n"
                                "s:\n %y = mov.i32 %x\n @%q ret t\n"
                                "t:\n %l = local_addr imm=4\n barrier 0, _\n ret\n}\n");
    assert_int_equal(hw_wir_prepare(m, NULL), HW_OK);
    assert_string_equal(body(a, m), "e:\n  cbr.i1 %p, .3, .6\n"
                                    ".1:\n  store.i32.shared [0], %b\n  ret\n"
                                    ".2:\n  %b = mov.i32 %y\n  br .1\n"
                                    ".3:\n  %x = mov.i32 %a\n  br .4\n"
                                    ".4:\n  %y = mov.i32 %x\n  cbr.i1 %q, .7, .5\n"
                                    ".5:\n  %l = local_addr imm=0x24\n  barrier 0, _\n  br .2\n"
                                    ".6:\n  br .1\n.7:\n  br .2\n");
    assert_int_equal(m->functions.ptr[0].local_bytes, 48);
    assert_false(m->functions.ptr[1].defined);
    hw_arena_free(a);
}

static void recursion_that_suspends_becomes_jumps(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_wir_module *m = parse(a, "kernel @k {\ne:\n call @f\n ret\n}\n"
                                "func @f {\nreg i1 %p\ns:\n barrier 0, _\n cbr %p, t, u\n"
                                "t:\n call @f\n br u\nu:\n ret\n}\n");
    assert_int_equal(hw_wir_prepare(m, NULL), HW_OK);
    assert_false(m->functions.ptr[1].defined);
    assert_true(m->deep_stack);
    assert_int_equal(m->stack_bytes, 16 + 16 + 16); /* a header, @p kept, and the next header */
    assert_int_equal(hw_wir_verify(m, NULL), HW_OK);
    for (size_t b = 0; b < m->functions.ptr[0].blocks.len; b++) {
        const hw_wir_block *w = &m->functions.ptr[0].blocks.ptr[b];
        for (size_t k = 0; k < w->insns.len; k++) {
            assert_int_not_equal(w->insns.ptr[k].op, HW_W_CALL);
            if (w->insns.ptr[k].op == HW_W_BRX) /* back to the kernel, or to itself */
                assert_int_equal(w->ntargets, 2);
        }
    }
    hw_arena_free(a);
}

static void constants_copies_and_equal_expressions(void **state)
{
    (void)state;
    expect_simplified(K "e:\n %a = mov.i32 5\n %b = add.i32 %a, 7\n store.i32.shared [%b], %b\n"
                        " ret\n}\n",
                      "e:\n  store.i32.shared [12], 12\n  ret\n");
    expect_simplified(K "e:\n %a = sreg.i32 tid_x\n %b = add.i32 %a, 1\n br f\n"
                        "f:\n %c = add.i32 %a, 1\n %d = mov.i32 %c\n"
                        " store.i32.shared [%d], %b\n ret\n}\n",
                      "e:\n  %a = sreg.i32 tid_x\n  %b = add.i32 %a, 1\n  br f\n"
                      "f:\n  store.i32.shared [%b], %b\n  ret\n");
    expect_simplified(K "e:\n %p = icmp.i32.lt_s 1, 2\n cbr %p, y, n\ny:\n ret\n"
                        "n:\n store.i32.shared [0], 1\n ret\n}\n",
                      "e:\n  br y\ny:\n  ret\n");
}

/* d holds what b was in the turn before. */
static void values_of_the_turn_before_stay(void **state)
{
    (void)state;
    static const char loop[] = "l:\n  store.i32.shared [0], %d\n  %b = load.i32.global [%w]\n"
                               "  %d = mov.i32 %b\n  cbr %p, l, out\nout:\n  ret\n";
    hw_arena *a = hw_arena_new();
    expect_simplified(hw_arena_printf(a, "%se:\n br l\n%s}\n", K, loop),
                      hw_arena_printf(a, "e:\n  br l\n%s", loop));
    hw_arena_free(a);
}

static void registers_written_twice_or_under_guard_stay(void **state)
{
    (void)state;
    static const char code[] = "e:\n  %a = mov.i32 1\n  @%p %a = mov.i32 2\n"
                               "  @%p %b = mov.i32 3\n  store.i32.shared [%a], %b\n  ret\n";
    hw_arena *a = hw_arena_new();
    expect_simplified(hw_arena_printf(a, "%s%s}\n", K, code), code);
    hw_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_that_branch_to_an_exit_end_there),
        cmocka_unit_test(back_edges_meet_in_one_latch),
        cmocka_unit_test(suspending_instructions_end_their_block),
        cmocka_unit_test(the_entry_has_no_predecessors),
        cmocka_unit_test(unreachable_blocks_go_and_branches_are_threaded),
        cmocka_unit_test(calls_that_suspend_are_inlined),
        cmocka_unit_test(recursion_that_suspends_becomes_jumps),
        cmocka_unit_test(constants_copies_and_equal_expressions),
        cmocka_unit_test(values_of_the_turn_before_stay),
        cmocka_unit_test(registers_written_twice_or_under_guard_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

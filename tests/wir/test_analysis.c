/* SPDX-License-Identifier: Apache-2.0
 * wir: each analysis on small functions, with answers worked out by hand. */
#include "hw_wir.h"

#include <setjmp.h>
#include <stdio.h>
/* cmocka needs the headers above it */
#include <cmocka.h>

typedef struct fixture {
    hw_arena *arena;
    hw_wir_module *m;
    const hw_wir_function *f;
    const hw_wir_analysis *n;
} fixture;

static const hw_variant linear = { .block = { 256, 1, 1 }, .small_grid = true };

static fixture analyse(const char *body, hw_variant v)
{
    fixture x = { .arena = hw_arena_new() };
    hw_diag *d = hw_diag_new(x.arena);
    const char *text = hw_arena_printf(x.arena, "kernel @k {\n%s}\n", body);
    hw_status s = hw_wir_parse(x.arena, hw_str_of(text), "t", &x.m, d);
    if (s == HW_OK)
        s = hw_wir_verify(x.m, d);
    if (s != HW_OK)
        fail_msg("%s", hw_diag_text(d, x.arena).ptr);
    x.f = &x.m->functions.ptr[0];
    x.n = hw_wir_analyse(x.arena, x.m, 0, &v);
    return x;
}

static uint32_t reg(const fixture *x, const char *name)
{
    for (uint32_t r = 0; r < x->f->regs.len; r++)
        if (x->f->regs.ptr[r].name && strcmp(x->f->regs.ptr[r].name + 1, name) == 0)
            return r;
    fail_msg("no register %s", name);
    return 0;
}

static uint32_t block(const fixture *x, const char *label)
{
    for (uint32_t b = 0; b < x->f->blocks.len; b++)
        if (x->f->blocks.ptr[b].label && strcmp(x->f->blocks.ptr[b].label, label) == 0)
            return b;
    fail_msg("no block %s", label);
    return 0;
}

static const hw_shape *shape(const fixture *x, const char *name)
{
    return &x->n->shape[reg(x, name)];
}

static void expect_kinds(const fixture *x, const char *names, hw_shape_kind kind)
{
    char name[32];
    for (int used; sscanf(names, " %31s%n", name, &used) == 1; names += used)
        if (shape(x, name)->kind != kind)
            fail_msg("%s has shape %d, not %d", name, shape(x, name)->kind, kind);
}

static bool blends(const fixture *x, const char *label, uint32_t insn)
{
    return x->n->blend[x->n->first_insn[block(x, label)] + insn];
}

static bool in_order(const fixture *x, const char *labels)
{
    char name[32];
    uint32_t at = 0;
    for (int used; sscanf(labels, " %31s%n", name, &used) == 1; labels += used)
        if (x->n->position[block(x, name)] != at++)
            return false;
    return true;
}

/* ---- graph ---- */

#define REGS "reg i32 %a %b %c %d %i %n\nreg i1 %p %q %r\nreg i64 %w %x %y\n"

static void loops_are_contiguous_and_have_headers(void **state)
{
    (void)state;
    fixture x = analyse(REGS "entry:\n br outer\n"
                             "done:\n ret\n"
                             "outer:\n cbr %p, inner, done\n"
                             "latch:\n br outer\n"
                             "inner:\n cbr %q, inner, latch\n",
                        linear);
    assert_true(in_order(&x, "entry outer inner latch done"));
    const uint32_t *h = x.n->loop_header;
    assert_int_equal(h[block(&x, "outer")], block(&x, "outer"));
    assert_int_equal(h[block(&x, "inner")], block(&x, "inner"));
    assert_int_equal(h[block(&x, "latch")], block(&x, "outer"));
    assert_int_equal(h[block(&x, "done")], UINT32_MAX);
    assert_int_equal(x.n->idom[block(&x, "done")], block(&x, "outer"));
    assert_int_equal(x.n->idom[block(&x, "entry")], UINT32_MAX);
    assert_int_equal(x.n->ipdom[block(&x, "inner")], block(&x, "latch"));
    assert_int_equal(x.n->ipdom[block(&x, "outer")], block(&x, "done"));
    assert_int_equal(x.n->ipdom[block(&x, "done")], UINT32_MAX);
    assert_int_equal(x.n->npreds[block(&x, "outer")], 2);
    hw_arena_free(x.arena);
}

/* a and b jump into each other's middle: a loop with two entries. */
static void irreducible_graphs_are_ordered(void **state)
{
    (void)state;
    fixture x = analyse(REGS "entry:\n cbr %p, b, a\n"
                             "a:\n %i = add.i32 %i, 1\n cbr %q, b, out\n"
                             "b:\n %i = add.i32 %i, 2\n cbr %r, a, out\n"
                             "out:\n %n = mov.i32 %i\n ret\n",
                        linear);
    assert_int_equal(x.n->position[block(&x, "entry")], 0);
    assert_int_equal(x.n->position[block(&x, "out")], 3);
    assert_int_equal(x.n->idom[block(&x, "a")], block(&x, "entry"));
    assert_int_equal(x.n->idom[block(&x, "b")], block(&x, "entry"));
    assert_int_equal(x.n->ipdom[block(&x, "a")], block(&x, "out"));
    uint32_t h = x.n->loop_header[block(&x, "a")];
    assert_int_equal(x.n->loop_header[block(&x, "b")], h);
    assert_true(h == block(&x, "a") || h == block(&x, "b"));
    hw_arena_free(x.arena);
}

/* ---- liveness ---- */

static void guarded_definitions_do_not_kill(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %a = mov.i32 1\n %b = mov.i32 1\n br f\n"
                             "f:\n @%p %a = mov.i32 2\n %b = mov.i32 2\n %c = add.i32 %a, %b\n"
                             " br g\n"
                             "g:\n %d = mov.i32 %c\n ret\n",
                        linear);
    uint32_t f = block(&x, "f"), g = block(&x, "g");
    assert_true(hw_wir_live_in(x.n, f, reg(&x, "a")));
    assert_false(hw_wir_live_in(x.n, f, reg(&x, "b")));
    assert_true(hw_wir_live_in(x.n, f, reg(&x, "p")));
    assert_true(hw_wir_live_out(x.n, f, reg(&x, "c")));
    assert_true(hw_wir_live_in(x.n, g, reg(&x, "c")));
    assert_false(hw_wir_live_out(x.n, g, reg(&x, "c")));
    assert_int_equal(x.n->max_live, 2);
    hw_arena_free(x.arena);
}

/* ---- shapes ---- */

static const char indices[] =
    REGS "e:\n %a = sreg.i32 tid_x\n %b = sreg.i32 tid_y\n %c = sreg.i32 tid_z\n"
         " %d = sreg.i32 laneid\n %i = sreg.i32 ctaid_x\n %n = sreg.i32 ntid_x\n ret\n";

static void thread_indices_follow_the_block_shape(void **state)
{
    (void)state;
    /* which of tid.x, tid.y, tid.z are uniform, affine, varying */
    static const struct {
        uint32_t block[3];
        const char *uniform, *affine, *varying;
    } cases[] = {
        { { 256, 1, 1 }, "b c", "a", "" },  { { 100, 1, 1 }, "b c", "a", "" },
        { { 7, 1, 1 }, "b c", "a", "" },    { { 32, 8, 1 }, "b c", "a", "" },
        { { 64, 4, 2 }, "b c", "a", "" },   { { 16, 16, 1 }, "c", "a b", "" },
        { { 8, 8, 8 }, "c", "a b", "" },    { { 4, 4, 4 }, "", "a b c", "" },
        { { 10, 10, 1 }, "c", "", "a b" },  { { 1, 64, 1 }, "a c", "b", "" },
        { { 2, 2, 100 }, "", "a b c", "" }, { { 48, 2, 1 }, "c", "", "a b" },
        { { 1, 1, 1 }, "a b c", "", "" },   { { 10, 3, 1 }, "c", "a b", "" },
    };
    for (size_t k = 0; k < HW_COUNTOF(cases); k++) {
        hw_variant v = { 0 };
        memcpy(v.block, cases[k].block, sizeof v.block);
        fixture x = analyse(indices, v);
        expect_kinds(&x, cases[k].uniform, HW_SHAPE_UNIFORM);
        expect_kinds(&x, cases[k].affine, HW_SHAPE_AFFINE);
        expect_kinds(&x, cases[k].varying, HW_SHAPE_VARYING);
        expect_kinds(&x, "i n", HW_SHAPE_UNIFORM);
        expect_kinds(&x, "d", HW_SHAPE_AFFINE);
        for (int l = 0; l < 32; l++)
            assert_int_equal(shape(&x, "d")->c[l], l);
        hw_arena_free(x.arena);
    }
    hw_variant tile = { .block = { 16, 16, 1 } };
    fixture x = analyse(indices, tile);
    for (int l = 0; l < 32; l++) {
        assert_int_equal(shape(&x, "a")->c[l], l % 16);
        assert_int_equal(shape(&x, "b")->c[l], l / 16);
    }
    hw_arena_free(x.arena);
}

static void bit_operations_split_warp_and_lane(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %a = sreg.i32 tid_x\n %b = and.i32 %a, 31\n"
                             " %c = shr_u.i32 %a, 5\n %d = and.i32 %a, 15\n"
                             " %i = shr_u.i32 %a, 3\n %n = xor.i32 %a, 16\n ret\n",
                        linear);
    expect_kinds(&x, "a b d i n", HW_SHAPE_AFFINE);
    expect_kinds(&x, "c", HW_SHAPE_UNIFORM);
    for (int l = 0; l < 32; l++) {
        assert_int_equal(shape(&x, "b")->c[l], l);
        assert_int_equal(shape(&x, "d")->c[l], l & 15);
        assert_int_equal(shape(&x, "i")->c[l], l >> 3);
        assert_int_equal(shape(&x, "n")->c[l], (l ^ 16) - 16);
    }
    hw_arena_free(x.arena);
}

/* row * width + column, width known at run time only: c = column, d = row. */
static void strided_addresses_have_a_run_time_scale(void **state)
{
    (void)state;
    hw_variant v = { .block = { 16, 16, 1 }, .small_grid = true };
    const char *text = REGS "e:\n %w = param_addr imm=8\n %n = load.i32.param.readonly [%w]\n"
                            " %a = sreg.i32 tid_x\n %b = sreg.i32 tid_y\n"
                            " %c = mul.i32 %b, %n\n %d = add.i32 %c, %a\n"
                            " %x = sext.i32.i64 %d\n %y = shl.i64 %x, 2\n"
                            " %i = mul.i32 %d, %n\n ret\n";
    fixture x = analyse(text, v);
    expect_kinds(&x, "w n", HW_SHAPE_UNIFORM);
    expect_kinds(&x, "c d x y", HW_SHAPE_AFFINE);
    expect_kinds(&x, "i", HW_SHAPE_VARYING);
    for (int l = 0; l < 32; l++) {
        assert_int_equal(shape(&x, "y")->c[l], 4 * (l % 16));
        assert_int_equal(shape(&x, "y")->d[l], 4 * (l / 16));
    }
    assert_true(x.n->wrap_guard[6]);
    v.no_shapes = true;
    hw_arena_free(x.arena);
    x = analyse(text, v);
    expect_kinds(&x, "x y", HW_SHAPE_VARYING);
    assert_false(x.n->wrap_guard[6]);
    hw_arena_free(x.arena);
}

static void small_grids_need_no_wrap_guard(void **state)
{
    (void)state;
    const char *text = REGS "e:\n %a = sreg.i32 ctaid_x\n %b = sreg.i32 ntid_x\n"
                            " %c = sreg.i32 tid_x\n %d = mul.i32 %a, %b\n %i = add.i32 %d, %c\n"
                            " %w = sext.i32.i64 %i\n %x = zext.i32.i64 %i\n ret\n";
    hw_variant v = linear;
    fixture x = analyse(text, v);
    expect_kinds(&x, "i w x", HW_SHAPE_AFFINE);
    assert_false(x.n->wrap_guard[5]);
    assert_false(x.n->wrap_guard[6]);
    hw_arena_free(x.arena);
    v.small_grid = false;
    x = analyse(text, v);
    expect_kinds(&x, "i w x", HW_SHAPE_AFFINE);
    assert_true(x.n->wrap_guard[5]);
    assert_false(x.n->wrap_guard[6]); /* tested at the other */
    assert_int_equal(x.n->guard_at[6], 5);
    hw_arena_free(x.arena);
}

/* Where every lane's value is known, so is what widening makes of it: it may wrap, and there is nothing to guard. */
static void known_lanes_need_no_wrap_guard(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        hw_variant v = { .block = { 32, 1, 1 }, .small_grid = true, .no_shapes = slow };
        fixture x = analyse(
            REGS "e:\n %a = sreg.i32 tid_x\n %b = sub.i32 %a, 1\n %x = zext.i32.i64 %b\n ret\n", v);
        expect_kinds(&x, "a b x", HW_SHAPE_AFFINE);
        for (int l = 0; l < 32; l++)
            assert_int_equal(shape(&x, "x")->c[l], l == 0 ? 0 : l - 1 - INT64_C(0xffffffff));
        assert_false(x.n->wrap_guard[2]);
        hw_arena_free(x.arena);
    }
}

/* Guards of a block are tested at the first whose values theirs can be computed from: not across what they load, write under a guard, or
 * wait for. */
static void guards_are_tested_together(void **state)
{
    (void)state;
    const char *text = REGS "reg i32 %k %l %m\nreg i64 %z %u %v\n"
                            "e:\n %w = param_addr imm=8\n %n = load.i32.param.readonly [%w]\n"
                            " %c = sreg.i32 tid_x\n %i = add.i32 %c, %n\n %x = sext.i32.i64 %i\n"
                            " %m = mul.i32 %n, 3\n %i = add.i32 %i, %m\n %y = zext.i32.i64 %i\n"
                            " %k = load.i32.param.readonly [%w]\n %l = add.i32 %c, %k\n"
                            " %z = sext.i32.i64 %l\n %i = add.i32 %i, 7\n %u = sext.i32.i64 %i\n"
                            " barrier 0, _\n %d = add.i32 %i, 9\n %v = sext.i32.i64 %d\n ret\n";
    static const uint32_t none = UINT32_MAX;
    const uint32_t at[] = { none, none, none, none, 4, none, none, 4,
                            none, none, 10,   none, 4, none, none, 15 };
    fixture x = analyse(text, linear);
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
        assert_int_equal(x.n->guard_at[i], at[i]);
        assert_int_equal(x.n->wrap_guard[i], at[i] == i);
    }
    hw_arena_free(x.arena);
}

/* Two run-time scales do not add up; a counter without bound may wrap. */
static void what_shapes_cannot_say_is_not_said(void **state)
{
    (void)state;
    hw_variant v = { .block = { 16, 16, 1 }, .small_grid = true };
    fixture x = analyse(REGS "e:\n %w = param_addr\n %n = load.i32.param.readonly [%w]\n"
                             " %a = sreg.i32 tid_x\n %b = mul.i32 %a, %n\n"
                             " %c = load.i32.param.readonly [%w + 4]\n %d = mul.i32 %a, %c\n"
                             " %i = add.i32 %b, %d\n br l\n"
                             "l:\n %a = add.i32 %a, 256\n %x = sext.i32.i64 %a\n"
                             " %p = icmp.i32.lt_s %n, %c\n cbr %p, l, out\nout:\n ret\n",
                        v);
    expect_kinds(&x, "b d x", HW_SHAPE_AFFINE);
    expect_kinds(&x, "i", HW_SHAPE_VARYING);
    assert_true(x.n->wrap_guard[x.n->first_insn[block(&x, "l")] + 1]);
    hw_arena_free(x.arena);
}

/* Nothing gives %a and %b a value before the loop; then each lane has its own. */
static void what_lanes_set_in_turn_varies(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %i = sreg.i32 tid_x\n %n = mov.i32 0\n br l\n"
                             "l:\n %p = icmp.i32.eq %i, %n\n %a = select.i32 %p, %n, %a\n"
                             " %b = add.i32 %b, 1\n %n = add.i32 %n, 1\n"
                             " %q = icmp.i32.lt_s %n, 32\n cbr %q, l, out\n"
                             "out:\n %c = mul.i32 %a, 3\n store.i32.global [%w], %c\n"
                             " store.i32.global [%w], %b\n ret\n",
                        linear);
    expect_kinds(&x, "a c", HW_SHAPE_VARYING);
    expect_kinds(&x, "b n", HW_SHAPE_UNIFORM);
    hw_arena_free(x.arena);
}

/* Only one lane has tid == 5: its loop parts nobody. With an index that moves on, another lane may
 * come while the first still waits. */
static void what_one_lane_runs_does_not_diverge(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %i = sreg.i32 tid_x\n %p = icmp.i32.eq %i, 5\n"
                             " cbr %p, one, next\n"
                             "one:\n %a = atom.i32.shared.add [0], 1\n %n = mov.i32 0\n br loop\n"
                             "loop:\n %n = add.i32 %n, 1\n %q = icmp.i32.lt_s %n, %a\n"
                             " cbr %q, loop, past\n"
                             "past:\n store.i32.shared [0], %n\n br next\n"
                             "next:\n ret\n",
                        linear);
    assert_false(blends(&x, "loop", 0));
    expect_kinds(&x, "n", HW_SHAPE_UNIFORM);
    hw_arena_free(x.arena);
    x = analyse(REGS "e:\n %i = sreg.i32 tid_x\n br l\n"
                     "l:\n %i = add.i32 %i, 1\n %p = icmp.i32.eq %i, 5\n cbr %p, one, next\n"
                     "one:\n %a = atom.i32.shared.add [0], 1\n %n = mov.i32 0\n br loop\n"
                     "loop:\n %n = add.i32 %n, 1\n %q = icmp.i32.lt_s %n, %a\n"
                     " cbr %q, loop, past\n"
                     "past:\n store.i32.shared [0], %n\n br next\n"
                     "next:\n %r = icmp.i32.lt_s %d, 9\n cbr %r, l, out\nout:\n ret\n",
                linear);
    assert_true(blends(&x, "loop", 0));
    hw_arena_free(x.arena);
}

static void uniform_addresses_load_uniform_values(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %w = shared_base\n %a = load.i32.generic.volatile [%w]\n"
                             " %b = sreg.i32 laneid\n %c = load.i32.shared [%b]\n"
                             " %d = atom.i32.generic.add [%w], 1\n"
                             " %p = icmp.i32.eq %c, 0\n %i = ballot.i32 %p, 0xffffffff\n"
                             " %n, _ = shfl.i32 %c, 3, 31, 0xffffffff imm=0x3\n ret\n",
                        linear);
    expect_kinds(&x, "w a i n", HW_SHAPE_UNIFORM);
    expect_kinds(&x, "c d p", HW_SHAPE_VARYING);
    hw_arena_free(x.arena);
}

/* ---- divergence and blends ---- */

/* if (p) a = 1; else a = 2; b = a: lanes of the first side wait at the join while the second runs. */
static void sides_of_a_branch_blend_what_the_join_needs(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %i = sreg.i32 laneid\n %p = icmp.i32.lt_s %i, 5\n"
                             " cbr %p, yes, no\n"
                             "no:\n %c = mov.i32 7\n %a = add.i32 %c, 1\n br join\n"
                             "yes:\n %c = mov.i32 9\n %a = add.i32 %c, 2\n br join\n"
                             "join:\n %b = mov.i32 %a\n ret\n",
                        linear);
    assert_true(in_order(&x, "e no yes join"));
    assert_true(x.n->divergent_branch[block(&x, "e")]);
    assert_true(x.n->divergent[block(&x, "no")]);
    assert_true(x.n->divergent[block(&x, "yes")]);
    assert_false(x.n->divergent[block(&x, "join")]);
    assert_false(blends(&x, "no", 1));
    assert_true(blends(&x, "yes", 1));
    assert_false(blends(&x, "yes", 0)); /* a temporary */
    expect_kinds(&x, "a b", HW_SHAPE_VARYING);
    expect_kinds(&x, "c", HW_SHAPE_UNIFORM);
    hw_arena_free(x.arena);
}

static void uniform_branches_do_not_diverge(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %i = sreg.i32 ctaid_x\n %p = icmp.i32.lt_s %i, 5\n"
                             " cbr %p, yes, no\n"
                             "no:\n %a = mov.i32 1\n br join\n"
                             "yes:\n %a = mov.i32 2\n br join\n"
                             "join:\n %b = mov.i32 %a\n ret\n",
                        linear);
    assert_false(x.n->divergent_branch[block(&x, "e")]);
    assert_false(x.n->divergent[block(&x, "yes")]);
    assert_false(blends(&x, "yes", 0));
    expect_kinds(&x, "a b", HW_SHAPE_UNIFORM);
    hw_arena_free(x.arena);
}

/* for (i = 0; i < lane; i++) n += i; the loop's exit is divergent: n is wanted after it and blends,
 * the counter is not and stays scalar. */
static const char divergent_loop[] =
    REGS "e:\n %d = sreg.i32 laneid\n %i = mov.i32 0\n %n = mov.i32 0\n br head\n"
         "head:\n %p = icmp.i32.ge_s %i, %d\n cbr %p, out, body\n"
         "body:\n %n = add.i32 %n, %i\n %i = add.i32 %i, 1\n br head\n"
         "out:\n %a = mov.i32 %n\n ret\n";

static void counters_of_divergent_loops_stay_scalar(void **state)
{
    (void)state;
    fixture x = analyse(divergent_loop, linear);
    assert_true(x.n->divergent[block(&x, "head")]);
    assert_true(x.n->divergent[block(&x, "body")]);
    assert_false(x.n->divergent[block(&x, "out")]);
    assert_true(blends(&x, "body", 0));
    assert_false(blends(&x, "body", 1));
    expect_kinds(&x, "i", HW_SHAPE_UNIFORM);
    expect_kinds(&x, "n p", HW_SHAPE_VARYING);
    assert_false(x.n->spins);
    hw_arena_free(x.arena);
}

/* A divergent loop inside a divergent loop. j restarts for every turn of the outer loop, so it is
 * dead where lanes wait; the outer counter is live where lanes of the inner loop wait. */
static void nested_divergent_loops(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %d = sreg.i32 laneid\n %i = mov.i32 0\n br head\n"
                             "head:\n %a = mov.i32 0\n br inner\n"
                             "inner:\n %a = add.i32 %a, 1\n %p = icmp.i32.lt_s %a, %d\n"
                             " cbr %p, inner, latch\n"
                             "latch:\n %i = add.i32 %i, 1\n %q = icmp.i32.lt_s %i, %d\n"
                             " cbr %q, head, out\n"
                             "out:\n ret\n",
                        linear);
    assert_true(in_order(&x, "e head inner latch out"));
    assert_true(x.n->divergent[block(&x, "latch")]);
    expect_kinds(&x, "a i", HW_SHAPE_UNIFORM);
    hw_arena_free(x.arena);
}

static void guards_blend_only_what_is_wanted(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %i = sreg.i32 laneid\n %p = icmp.i32.lt_s %i, 5\n"
                             " %d = sreg.i32 ctaid_x\n %q = icmp.i32.lt_s %d, 5\n"
                             " %a = mov.i32 1\n %b = mov.i32 1\n"
                             " @%p %a = mov.i32 2\n @%q %b = mov.i32 2\n @%p %c = mov.i32 3\n"
                             " store.i32.shared [%a], %b\n ret\n",
                        linear);
    assert_true(blends(&x, "e", 6));
    assert_false(blends(&x, "e", 7));
    assert_false(blends(&x, "e", 8));
    expect_kinds(&x, "a", HW_SHAPE_VARYING);
    expect_kinds(&x, "b", HW_SHAPE_UNIFORM);
    hw_arena_free(x.arena);
}

static void ended_lanes_do_not_wait(void **state)
{
    (void)state;
    fixture x = analyse(REGS "e:\n %i = sreg.i32 laneid\n %p = icmp.i32.lt_s %i, 5\n"
                             " @%p exit more\n"
                             "more:\n barrier 0, _\n ret\n",
                        linear);
    assert_false(x.n->divergent_branch[block(&x, "e")]);
    assert_false(x.n->divergent[block(&x, "more")]);
    assert_false(x.n->any_order);
    hw_arena_free(x.arena);
}

/* ---- spins ---- */

static const struct {
    const char *what;
    bool spins, divergent;
    const char *body;
} spin_cases[] = {
    { "lock taken by every lane", true, true,
      "e:\n %w = shared_base\n br l\n"
      "l:\n %a = atom.i32.generic.cas [%w], 0, 1\n %p = icmp.i32.ne %a, 0\n cbr %p, l, in\n"
      "in:\n %a = atom.i32.generic.exch [%w], 0\n ret\n" },
    { "lock with a flag, the usual safe form", true, true,
      "e:\n %w = shared_base\n %p = mov.i1 0\n br l\n"
      "l:\n %a = atom.i32.generic.cas [%w], 0, 1\n %q = icmp.i32.ne %a, 0\n cbr %q, next, in\n"
      "in:\n red.i32.generic.exch [%w], 0\n %p = mov.i1 1\n br next\n"
      "next:\n cbr %p, out, l\n"
      "out:\n ret\n" },
    { "lock by exchange", true, true,
      "e:\n %w = shared_base\n br l\n"
      "l:\n %a = atom.i32.generic.exch [%w], 1\n %p = icmp.i32.ne %a, 0\n cbr %p, l, in\n"
      "in:\n ret\n" },
    { "one thread waits at a grid barrier", true, false,
      "e:\n %i = sreg.i32 tid_x\n %q = icmp.i32.ne %i, 0\n %w = shared_base\n cbr %q, out, one\n"
      "one:\n %n = atom.i32.global.add.device [%w], 1\n br l\n"
      "l:\n %a = load.i32.global.volatile.acquire [%w]\n %b = xor.i32 %a, %n\n"
      " %p = icmp.i32.lt_s %b, 0\n cbr %p, out, l\n"
      "out:\n barrier 0, _\n ret\n" },
    { "look-back: any lane's flag", true, false,
      "e:\n %i = sreg.i32 laneid\n br l\n"
      "l:\n %a = load.i32.shared.volatile [%i]\n %p = icmp.i32.eq %a, 0\n"
      " %q = vote_any %p, 0xffffffff\n cbr %q, l, out\n"
      "out:\n ret\n" },
    { "plain load with nanosleep", true, false,
      "e:\n %w = shared_base\n br l\n"
      "l:\n yield\n %a = load.i32.global [%w]\n %p = icmp.i32.eq %a, 0\n cbr %p, l, out\n"
      "out:\n ret\n" },
    { "lock-free update", false, false,
      "e:\n %w = shared_base\n %a = load.i32.generic [%w]\n br l\n"
      "l:\n %b = add.i32 %a, 5\n %c = atom.i32.generic.cas [%w], %a, %b\n"
      " %p = icmp.i32.ne %c, %a\n %a = mov.i32 %c\n cbr %p, l, out\n"
      "out:\n ret\n" },
    { "grid-stride histogram", false, false,
      "e:\n %i = sreg.i32 tid_x\n %w = shared_base\n br l\n"
      "l:\n %a = atom.i32.generic.add [%w], 1\n %i = add.i32 %i, 256\n"
      " %p = icmp.i32.lt_s %i, 10000\n cbr %p, l, out\n"
      "out:\n ret\n" },
    { "work queue", false, false,
      "e:\n %w = shared_base\n br l\n"
      "l:\n %a = atom.i32.generic.add [%w], 1\n %p = icmp.i32.lt_s %a, 10000\n cbr %p, l, out\n"
      "out:\n ret\n" },
    { "hash table with linear probing", false, false,
      "e:\n %i = sreg.i32 tid_x\n br l\n"
      "l:\n %a = atom.i32.shared.cas [%i], 0, 7\n %i = add.i32 %i, 4\n"
      " %p = icmp.i32.ne %a, 0\n cbr %p, l, out\n"
      "out:\n ret\n" },
};

static void spin_loops_are_found_and_others_are_not(void **state)
{
    (void)state;
    for (size_t k = 0; k < HW_COUNTOF(spin_cases); k++) {
        hw_arena *a = hw_arena_new();
        fixture x = analyse(hw_arena_printf(a, "%s%s", REGS, spin_cases[k].body), linear);
        if (x.n->spins != spin_cases[k].spins || x.n->spins_divergent != spin_cases[k].divergent)
            fail_msg("%s: spins %d, divergent %d", spin_cases[k].what, x.n->spins,
                     x.n->spins_divergent);
        if (x.n->spins)
            assert_true(x.n->spin_loop[block(&x, "l")]);
        hw_arena_free(x.arena);
        hw_arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_are_contiguous_and_have_headers),
        cmocka_unit_test(irreducible_graphs_are_ordered),
        cmocka_unit_test(guarded_definitions_do_not_kill),
        cmocka_unit_test(thread_indices_follow_the_block_shape),
        cmocka_unit_test(bit_operations_split_warp_and_lane),
        cmocka_unit_test(strided_addresses_have_a_run_time_scale),
        cmocka_unit_test(small_grids_need_no_wrap_guard),
        cmocka_unit_test(known_lanes_need_no_wrap_guard),
        cmocka_unit_test(guards_are_tested_together),
        cmocka_unit_test(what_shapes_cannot_say_is_not_said),
        cmocka_unit_test(what_lanes_set_in_turn_varies),
        cmocka_unit_test(what_one_lane_runs_does_not_diverge),
        cmocka_unit_test(uniform_addresses_load_uniform_values),
        cmocka_unit_test(sides_of_a_branch_blend_what_the_join_needs),
        cmocka_unit_test(uniform_branches_do_not_diverge),
        cmocka_unit_test(counters_of_divergent_loops_stay_scalar),
        cmocka_unit_test(nested_divergent_loops),
        cmocka_unit_test(guards_blend_only_what_is_wanted),
        cmocka_unit_test(ended_lanes_do_not_wait),
        cmocka_unit_test(spin_loops_are_found_and_others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

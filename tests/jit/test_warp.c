/* SPDX-License-Identifier: Apache-2.0
 * jit: whole kernels in WIR text, run warp by warp. */
#include "rig.h"

#include <stdio.h>

static void compiled(rig *r)
{
    hw_status s = rig_compile(r);
    assert_string_equal(hw_diag_text(r->diag, r->arena).ptr, "");
    assert_int_equal(s, HW_OK);
}

static const char vector_add[] = "module shared=0 params=32 reqntid=0,0,0 indirect=0\n"
                                 "kernel @k local=0 {\n"
                                 "  reg i32 %n %t %b %d %i\n"
                                 "  reg i64 %p %a %x %y %z %o\n"
                                 "  reg i32 %u %v %w\n"
                                 "  reg i1 %q\n"
                                 "entry:\n"
                                 "  %p = param_addr\n"
                                 "  %x = load.i64.param [%p]\n"
                                 "  %y = load.i64.param [%p + 8]\n"
                                 "  %z = load.i64.param [%p + 16]\n"
                                 "  %n = load.i32.param [%p + 24]\n"
                                 "  %t = sreg.i32 tid_x\n"
                                 "  %b = sreg.i32 ctaid_x\n"
                                 "  %d = sreg.i32 ntid_x\n"
                                 "  %i = mul.i32 %b, %d\n"
                                 "  %i = add.i32 %i, %t\n"
                                 "  %q = icmp.i32.ge_s %i, %n\n"
                                 "  cbr %q, end, work\n"
                                 "work:\n"
                                 "  %o = sext.i32.i64 %i\n"
                                 "  %o = shl.i64 %o, 2\n"
                                 "  %x = add.i64 %x, %o\n"
                                 "  %y = add.i64 %y, %o\n"
                                 "  %z = add.i64 %z, %o\n"
                                 "  %u = load.f32.global [%x]\n"
                                 "  %v = load.f32.global [%y]\n"
                                 "  %w = fadd.f32 %u, %v\n"
                                 "  store.f32.global [%z], %w\n"
                                 "  br end\n"
                                 "end:\n"
                                 "  ret\n"
                                 "}\n";

static void vector_add_adds_n_elements_and_no_more(void **state)
{
    (void)state;
    rig *r = rig_new(vector_add);
    float *x = (float *)(void *)r->memory, *y = x + 1024, *z = y + 1024;
    r->variant.block[0] = 256;
    compiled(r);
    for (uint32_t n = 190; n <= 256; n += 33) {
        for (int i = 0; i < 1024; i++) {
            x[i] = (float)i;
            y[i] = (float)(2 * i);
            z[i] = -1;
        }
        r->params[0] = (uint64_t)(uintptr_t)x;
        r->params[1] = (uint64_t)(uintptr_t)y;
        r->params[2] = (uint64_t)(uintptr_t)z;
        r->params[3] = n;
        assert_true(rig_run(r));
        for (int i = 0; i < 1024; i++)
            assert_true(z[i] == (i < (int)n ? (float)(3 * i) : -1.0f));
    }
    rig_free(r);
}

/* ---- faults ---- */

typedef struct access_case {
    const char *address; /* instructions that set %a from %in (i64), %t (lane), %v (loaded lane) */
    const char *access;
    uint32_t fault;    /* 0: none */
    uint32_t bad_lane; /* whose address is told */
} access_case;

#define GLOBAL_BY(index) \
    "  %w = sext.i32.i64 " index "\n  %w = mul.i64 %w, 4\n  %a = add.i64 %in, %w\n"
/* clang-format off */
static const access_case accesses[] = {
    { "  %a = mov.i64 %in\n",                          "  %x = load.i32.global [%a + 64]\n", 0, 0 },
    { "  %a = mov.i64 %in\n",                          "  %x = load.i32.global [%a - 4096]\n", HW_F_ILLEGAL_ADDRESS, 0 },
    { "  %a = mov.i64 16\n",                           "  %x = load.i32.global [%a]\n", HW_F_ILLEGAL_ADDRESS, 0 },
    { "  %a = mov.i64 %in\n",                          "  %x = load.i32.global [%a + 2]\n", HW_F_ILLEGAL_ADDRESS, 0 },
    { GLOBAL_BY("%t"),                                  "  %x = load.i32.global [%a]\n", 0, 0 },
    { GLOBAL_BY("%t"),                                  "  store.i32.global [%a + 1], %t\n", HW_F_ILLEGAL_ADDRESS, 0 },
    { GLOBAL_BY("%v"),                                  "  %x = load.i32.global [%a]\n", 0, 0 },
    { GLOBAL_BY("%v") "  %a = sub.i64 %a, 120\n",      "  store.i32.global [%a], %t\n", HW_F_ILLEGAL_ADDRESS, 0 },
    { GLOBAL_BY("%t") "  %a = sub.i64 %a, 120\n",      "  store.i32.global [%a], %t\n", HW_F_ILLEGAL_ADDRESS, 0 },
    /* lanes from 30 on are inside: the others do not execute */
    { GLOBAL_BY("%t") "  %a = sub.i64 %a, 120\n  %q = icmp.i32.ge_s %t, 30\n", "  @%q store.i32.global [%a], %t\n", 0, 0 },
    { GLOBAL_BY("%v") "  %a = sub.i64 %a, 120\n  %q = icmp.i32.ge_s %v, 30\n", "  @%q store.i32.global [%a], %t\n", 0, 0 },
    { "  %s = shl.i32 %t, 2\n",                        "  store.i32.shared [%s], %t\n", 0, 0 },
    { "  %s = shl.i32 %t, 2\n  %s = sub.i32 %s, 4\n", "  store.i32.shared [%s], %t\n", HW_F_ILLEGAL_ADDRESS, 0 },
    { "  %s = shl.i32 %t, 2\n  %s = sub.i32 %s, 4\n  %q = icmp.i32.ge_s %t, 1\n", "  @%q store.i32.shared [%s], %t\n", 0, 0 },
    { "  %s = shl.i32 %v, 2\n",                        "  store.i32.shared [%s + 128], %t\n", 0, 0 },
    { "  %s = shl.i32 %v, 2\n",                        "  store.i32.shared [%s + 132], %t\n", HW_F_ILLEGAL_ADDRESS, 31 },
    { "  %s = shl.i32 %v, 2\n",                        "  %x = atom.i32.shared.add [%s + 132], %t\n", HW_F_ILLEGAL_ADDRESS, 31 },
};
/* clang-format on */

static void accesses_out_of_bounds_are_told_and_others_are_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < HW_COUNTOF(accesses); i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 "module shared=256 params=8 reqntid=0,0,0 indirect=0\n"
                 "loc 1 \"k.cu\" 7:1 ptx=9 inlined=0\n"
                 "kernel @k local=0 {\n  reg i32 %%t %%v %%x %%s\n  reg i64 %%p %%in %%w %%a %%b\n"
                 "  reg i1 %%q\nentry:\n  %%p = param_addr\n  %%in = load.i64.param [%%p]\n"
                 "  %%t = sreg.i32 tid_x\n  %%w = zext.i32.i64 %%t\n  %%w = shl.i64 %%w, 2\n"
                 "  %%b = add.i64 %%in, %%w\n  %%v = load.i32.global [%%b + 1024]\n%s%s  ret\n}\n",
                 accesses[i].address, accesses[i].access);
        rig *r = rig_new(text);
        compiled(r);
        for (uint32_t l = 0; l < 32; l++)
            memcpy(r->memory + 1024 + 4 * l, &l, 4);
        r->params[0] = (uint64_t)(uintptr_t)r->memory;
        bool ok = rig_run(r);
        if (ok != !accesses[i].fault)
            print_error("case %zu: %s%s", i, accesses[i].address, accesses[i].access);
        assert_int_equal(ok, !accesses[i].fault);
        if (!ok)
            assert_int_equal(r->fault, accesses[i].fault);
        rig_free(r);
    }
}

/* ---- waiting ---- */

static const char reverse[] = "module shared=1024 params=8 reqntid=0,0,0 indirect=0\n"
                              "kernel @k local=0 {\n  reg i32 %t %s %x %r\n  reg i64 %p %o %w\n"
                              "entry:\n  %p = param_addr\n  %o = load.i64.param [%p]\n"
                              "  %t = sreg.i32 tid_x\n  %s = shl.i32 %t, 2\n"
                              "  store.i32.shared [%s], %t\n  barrier 0, _\n"
                              "  %r = sub.i32 255, %t\n  %s = shl.i32 %r, 2\n"
                              "  %x = load.i32.shared [%s]\n  %w = zext.i32.i64 %t\n"
                              "  %w = shl.i64 %w, 2\n  %o = add.i64 %o, %w\n"
                              "  store.i32.global [%o], %x\n  ret\n}\n";

static void warps_meet_at_barriers(void **state)
{
    (void)state;
    rig *r = rig_new(reverse);
    r->variant.block[0] = 256;
    compiled(r);
    r->params[0] = (uint64_t)(uintptr_t)r->memory;
    assert_true(rig_run(r));
    assert_int_equal(r->barriers, 8);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t x;
        memcpy(&x, r->memory + 4 * i, 4);
        assert_int_equal(x, 255 - i);
    }
    rig_free(r);
}

static const char lock[] = "module shared=16 params=8 reqntid=0,0,0 indirect=0\n"
                           "kernel @k local=0 {\n  reg i32 %old %x\n  reg i64 %p %o\n  reg i1 %q\n"
                           "entry:\n  %p = param_addr\n  %o = load.i64.param [%p]\n  br try\n"
                           "try:\n  %old = atom.i32.global.cas [%o], 0, 1\n"
                           "  %q = icmp.i32.ne %old, 0\n  cbr %q, try, in\n"
                           "in:\n  %x = load.i32.global.volatile [%o + 4]\n"
                           "  %x = add.i32 %x, 1\n  store.i32.global.volatile [%o + 4], %x\n"
                           "  %old = atom.i32.global.exch [%o], 0\n  ret\n}\n";

static void a_lock_inside_a_warp_works_where_lanes_are_independent(void **state)
{
    (void)state;
    rig *r = rig_new(lock);
    r->variant.independent = true;
    compiled(r);
    r->params[0] = (uint64_t)(uintptr_t)r->memory;
    assert_true(rig_run(r));
    assert_int_equal(r->memory[4], 32);
    rig_free(r);
}

static void a_lock_inside_a_warp_is_diagnosed_where_they_are_not(void **state)
{
    (void)state;
    rig *r = rig_new(lock);
    compiled(r);
    r->params[0] = (uint64_t)(uintptr_t)r->memory;
    assert_false(rig_run(r));
    assert_int_equal(r->fault, HW_F_LIVELOCK);
    rig_free(r);
}

static const char endless[] = "module shared=0 params=8 reqntid=0,0,0 indirect=0\n"
                              "kernel @k local=0 {\n  reg i32 %x\nentry:\n  br again\n"
                              "again:\n  %x = add.i32 %x, 1\n  br again\n}\n";

static void endless_loops_can_be_stopped(void **state)
{
    (void)state;
    rig *r = rig_new(endless);
    compiled(r);
    rig_stop = 1;
    assert_false(rig_run(r));
    rig_stop = 0;
    assert_int_equal(r->fault, HW_F_TIMEOUT);
    rig_free(r);
}

/* Lanes from 19 on count to 32 - lane, and end one by one inside the loop; the others run elsewhere. */
static const char ending[] = "module shared=0 params=8 reqntid=0,0,0 indirect=0\n"
                             "kernel @k local=0 {\n  reg i32 %t %left %x\n  reg i64 %p %o %w\n"
                             "  reg i1 %q\n"
                             "entry:\n  %p = param_addr\n  %o = load.i64.param [%p]\n"
                             "  %t = sreg.i32 tid_x\n  %w = sext.i32.i64 %t\n"
                             "  %w = mul.i64 %w, 4\n  %o = add.i64 %o, %w\n"
                             "  %left = sub.i32 32, %t\n"
                             "  %q = icmp.i32.lt_s %t, 19\n  cbr %q, other, begin\n"
                             "other:\n  store.i32.global [%o], 99\n  exit\n"
                             "begin:\n  %x = mov.i32 0\n  br again\n"
                             "again:\n  %x = add.i32 %x, 1\n  store.i32.global [%o], %x\n"
                             "  %q = icmp.i32.ge_s %x, %left\n  @%q exit again\n}\n";

static void a_loop_that_lanes_leave_by_ending_ends(void **state)
{
    (void)state;
    rig *r = rig_new(ending);
    compiled(r);
    r->params[0] = (uint64_t)(uintptr_t)r->memory;
    assert_true(rig_run(r));
    for (uint32_t t = 0; t < 32; t++)
        assert_int_equal(r->memory[4 * t], t < 19 ? 99 : 32 - t);
    rig_free(r);
}

/* An address made of two registers that each add the other: no step to follow, and no end to it. */
static const char fibonacci[] =
    "module shared=0 params=8 reqntid=0,0,0 indirect=0\n"
    "kernel @k local=0 {\n  reg i32 %t %n %x %sum\n  reg i64 %p %o %w %a %b %at\n  reg i1 %q\n"
    "entry:\n  %p = param_addr\n  %o = load.i64.param [%p]\n"
    "  %t = sreg.i32 tid_x\n  %w = sext.i32.i64 %t\n  %w = mul.i64 %w, 4\n"
    "  %o = add.i64 %o, %w\n  %a = mov.i64 128\n  %b = mov.i64 0\n"
    "  %n = mov.i32 0\n  %sum = mov.i32 0\n  br again\n"
    "again:\n  %a = add.i64 %a, %b\n  %b = add.i64 %b, %a\n  %at = add.i64 %o, %b\n"
    "  %x = load.i32.global [%at]\n  %sum = add.i32 %sum, %x\n  %n = add.i32 %n, 1\n"
    "  %q = icmp.i32.lt_u %n, 5\n  cbr %q, again, end\n"
    "end:\n  store.i32.global [%o], %sum\n  exit\n}\n";

static void addresses_may_step_by_each_other(void **state)
{
    (void)state;
    rig *r = rig_new(fibonacci);
    compiled(r);
    for (uint32_t i = 0; i < RIG_MEMORY / 4; i++)
        memcpy(r->memory + (size_t)i * 4, &i, 4);
    r->params[0] = (uint64_t)(uintptr_t)r->memory;
    assert_true(rig_run(r));
    for (uint32_t t = 0; t < 32; t++) {
        uint32_t sum, want = 5 * t + 32 * (1 + 3 + 8 + 21 + 55);
        memcpy(&sum, r->memory + (size_t)t * 4, 4);
        assert_int_equal(sum, want);
    }
    rig_free(r);
}

/* Eight lanes add up as if they were 32; the others have something else in the register. */
static const char eight[] =
    "module shared=0 params=8 reqntid=0,0,0 indirect=0\n"
    "kernel @k local=0 {\n  reg i32 %t %x %y\n  reg i64 %p %o %w\n  reg i1 %q\n"
    "entry:\n  %p = param_addr\n  %o = load.i64.param [%p]\n"
    "  %t = sreg.i32 tid_x\n  %w = sext.i32.i64 %t\n  %w = mul.i64 %w, 4\n"
    "  %o = add.i64 %o, %w\n  %x = load.i32.global [%o + 128]\n"
    "  %q = icmp.i32.lt_u %t, 8\n  cbr %q, few, end\n"
    "few:\n  %y, _ = shfl.i32 %x, 16, 31, 255 imm=0x1\n  %x = add.i32 %x, %y\n"
    "  %y, _ = shfl.i32 %x, 8, 31, 255 imm=0x1\n  %x = add.i32 %x, %y\n"
    "  %y, _ = shfl.i32 %x, 4, 31, 255 imm=0x1\n  %x = add.i32 %x, %y\n"
    "  %y, _ = shfl.i32 %x, 2, 31, 255 imm=0x1\n  %x = add.i32 %x, %y\n"
    "  %y, _ = shfl.i32 %x, 1, 31, 255 imm=0x1\n  %x = add.i32 %x, %y\n"
    "  store.i32.global [%o], %x\n  br end\n"
    "end:\n  exit\n}\n";

static void lanes_that_take_no_part_give_nothing_to_a_shuffle(void **state)
{
    (void)state;
    rig *r = rig_new(eight);
    compiled(r);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t x = i + 100;
        memcpy(r->memory + 128 + (size_t)i * 4, &x, 4);
    }
    r->params[0] = (uint64_t)(uintptr_t)r->memory;
    assert_true(rig_run(r));
    uint32_t sum;
    memcpy(&sum, r->memory, 4);
    assert_int_equal(sum, 8 * 100 + 28);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_add_adds_n_elements_and_no_more),
        cmocka_unit_test(accesses_out_of_bounds_are_told_and_others_are_not),
        cmocka_unit_test(warps_meet_at_barriers),
        cmocka_unit_test(a_lock_inside_a_warp_works_where_lanes_are_independent),
        cmocka_unit_test(a_lock_inside_a_warp_is_diagnosed_where_they_are_not),
        cmocka_unit_test(endless_loops_can_be_stopped),
        cmocka_unit_test(a_loop_that_lanes_leave_by_ending_ends),
        cmocka_unit_test(addresses_may_step_by_each_other),
        cmocka_unit_test(lanes_that_take_no_part_give_nothing_to_a_shuffle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

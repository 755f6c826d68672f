/* SPDX-License-Identifier: Apache-2.0
 * wir: text form, builder and verifier. */
#include "hw_wir.h"

#include <setjmp.h>
/* cmocka needs the headers above it */
#include <cmocka.h>

static const char whole_language[] = "module shared=64 params=16 reqntid=0,0,0 indirect=1\n"
                                     "symbol @table 3\n"
                                     "loc 1 \"k.cu\" 12:3 ptx=40 inlined=0\n"
                                     "loc 2 \"\" 1:0 ptx=0 inlined=1 fn=\"f\"\n"
                                     "kernel @k local=32 {\n"
                                     "  reg i32 %a %.1 %b\n"
                                     "  reg i64 %p\n"
                                     "  reg i1 %q\n"
                                     "entry:\n"
                                     "  %a = sreg.i32 tid_x !1\n"
                                     "  %.1 = add.i32 %a, 0xffffffff\n"
                                     "  %p = symbol @table\n"
                                     "  @!%q %a, %b = load.f32.global.x2.volatile [%p + 16]\n"
                                     "  @%q store.i32.shared [%p - 4], %a\n"
                                     "  %q = icmp.i32.lt_s %a, 5\n"
                                     "  %a = atom.i32.generic.cas.device.acquire [%p], 1, 2\n"
                                     "  %a = lop3.i32 %a, %b, 7 imm=0xe2\n"
                                     "  %p = zext.i32.i64 %a !2\n"
                                     "  %b = fadd.f32.rz.ftz %a, 0x3f800000\n"
                                     "  barrier 0, _\n"
                                     "  %a = call @f, %b\n"
                                     "  _, %q = shfl.i32 %a, 1, 31, 0xffffffff imm=0x1\n"
                                     "  %a = helper fns, %a, %b, 3 aux=0x5\n"
                                     "  cbr %q, .1, $done\n"
                                     ".1:\n"
                                     "  @%q exit $done\n"
                                     "$done:\n"
                                     "  brx %a, entry, .1, $done\n"
                                     "}\n"
                                     "func @f local=0 {\n"
                                     "  reg i32 %x %y\n"
                                     "  params %x\n"
                                     "  results %y\n"
                                     "body:\n"
                                     "  %y = mov.i32 %x\n"
                                     "  ret\n"
                                     "}\n";

static void text_is_read_back_as_it_was_written(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_wir_module *m;
    hw_status s = hw_wir_parse(a, hw_str_of(whole_language), "t", &m, d);
    assert_string_equal(hw_diag_text(d, a).ptr, "");
    assert_int_equal(s, HW_OK);
    assert_int_equal(hw_wir_verify(m, d), HW_OK);
    hw_str out = hw_wir_print(m, a);
    assert_string_equal(hw_arena_cstr(a, out), whole_language);
    hw_arena_free(a);
}

static void literals_become_bits_of_the_operands_width(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_wir_module *m;
    const char *text = "kernel @k {\n reg i32 %a\n reg i64 %b\n e:\n %a = add.i32 %a, -1\n"
                       " %a = fadd.f32 %a, 1.0f\n %b = mov.f64 -2.5d\n ret\n}\n";
    assert_int_equal(hw_wir_parse(a, hw_str_of(text), "t", &m, NULL), HW_OK);
    const hw_wir_insn *i = m->functions.ptr[0].blocks.ptr[0].insns.ptr;
    assert_int_equal(i[0].src[1].imm, 0xffffffff);
    assert_int_equal(i[1].src[1].imm, 0x3f800000);
    assert_int_equal(i[2].src[0].imm, 0xc004000000000000);
    hw_arena_free(a);
}

static void syntax_errors_have_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "kernel @k {\ne:\n frob.i32 1\n}\n", "t:3:5: error: unknown operation 'frob'" },
        { "kernel @k {\ne:\n br nowhere\n}\n", "t:3:11: error: unknown block 'nowhere'" },
        { "kernel @k {\ne:\n %x = mov.i32 1\n}\n", "t:3:3: error: unknown register 'x'" },
        { "kernel @k {\ne:\n ret", "t:3:4: error: '}' expected" },
        { "", "t: error: no function" },
        { "kernel", "t:1:7: error: '@' expected" },
    };
    for (size_t k = 0; k < HW_COUNTOF(cases); k++) {
        hw_arena *a = hw_arena_new();
        hw_diag *d = hw_diag_new(a);
        hw_wir_module *m;
        assert_int_equal(hw_wir_parse(a, hw_str_of(cases[k].text), "t", &m, d), HW_E_SYNTAX);
        hw_str text = hw_diag_text(d, a);
        assert_true(hw_str_starts(text, hw_str_of(cases[k].message)));
        hw_arena_free(a);
    }
}

/* Each body breaks one rule; the message names it. */
static void verifier_names_each_broken_rule(void **state)
{
    (void)state;
    static const struct {
        const char *body, *rule;
    } cases[] = {
        { "e:\n %a = add.i32 %a, 1\n", "does not end with a terminator" },
        { "e:\n ret\n ret\n", "a terminator inside the block" },
        { "e:\n", "the block is empty" },
        { "e:\n br\n", "0 targets, not 1" },
        { "e:\n cbr %p, e\n", "1 targets, not 2" },
        { "e:\n ret e\n", "1 targets, not 0" },
        { "e:\n @%p exit\n", "0 targets, not 1" },
        { "e:\n %a = add.i32 %w, 1\n ret\n", "operand 0 is of type i64, not i32" },
        { "e:\n %w = add.i32 %a, 1\n ret\n", "result 0 is of type i64, not i32" },
        { "e:\n %a = add.i32 %a\n ret\n", "1 operands, not 2" },
        { "e:\n %a = add %a, %a\n ret\n", "type missing" },
        { "e:\n @%a %a = add.i32 %a, 1\n ret\n", "the guard is not a predicate" },
        { "e:\n %a = load.i32.global.x2 [%w]\n ret\n", "1 results for 2 elements" },
        { "e:\n %a = load.i32.global [%p]\n ret\n", "operand 0 is of type i1, not an address" },
        { "e:\n %a = zext.i64.i32 %w\n ret\n", "extension to a type that is not wider" },
        { "e:\n %p = icmp.i32.flt %a, 1\n ret\n", "integer comparison with a float condition" },
        { "e:\n %a = atom.i32.global.cas [%w], 1\n ret\n", "2 operands for an atomic" },
        { "e:\n %a, %a = load.i32.global.x2 [%w]\n ret\n", "are the same register" },
        { "e:\n call @k, %a\n ret\n", "the callee has 0 parameters" },
    };
    for (size_t k = 0; k < HW_COUNTOF(cases); k++) {
        hw_arena *a = hw_arena_new();
        hw_diag *d = hw_diag_new(a);
        hw_wir_module *m;
        const char *text = hw_arena_printf(
            a, "kernel @k {\n reg i32 %%a\n reg i64 %%w\n reg i1 %%p\n%s}\n", cases[k].body);
        assert_int_equal(hw_wir_parse(a, hw_str_of(text), "t", &m, d), HW_OK);
        assert_int_equal(hw_wir_verify(m, d), HW_E_INTERNAL);
        if (!strstr(hw_diag_text(d, a).ptr, cases[k].rule))
            fail_msg("'%s' not in: %s", cases[k].rule, hw_diag_text(d, a).ptr);
        hw_arena_free(a);
    }
}

static void builder_makes_a_verified_function(void **state)
{
    (void)state;
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_wir_module *m = hw_wir_module_new(a);
    hw_wir_builder b = { .m = m, .function = hw_wir_function_new(m, "k", true) };
    uint32_t entry = hw_wir_block_new(&b, "entry"), last = hw_wir_block_new(&b, NULL);
    b.block = entry;
    hw_wir_val p = hw_wir_op1(&b, HW_W_MOV, HW_T_I1, hw_wir_imm(1));
    b.guard = p;
    hw_wir_val t = hw_wir_op2(&b, HW_W_ADD, HW_T_I32, hw_wir_imm(1), hw_wir_imm(2));
    hw_wir_val n = hw_wir_op1(&b, HW_W_CLZ, HW_T_I64, hw_wir_imm(1));
    hw_wir_mov(&b, HW_T_I32, t, n);
    hw_wir_val c = hw_wir_cmp(&b, HW_W_ICMP, HW_C_EQ, HW_T_I32, t, n);
    hw_wir_cvt(&b, HW_W_ZEXT, HW_T_I32, HW_T_I64, t);
    hw_wir_cbr(&b, c, last, last);
    b.block = last;
    b.guard = HW_WIR_NONE;
    hw_wir_emit(&b, HW_W_RET, HW_T_NONE, 0, NULL, 0, NULL);
    assert_int_equal(hw_wir_verify(m, d), HW_OK);
    hw_wir_insn *i = m->functions.ptr[0].blocks.ptr[entry].insns.ptr;
    assert_int_equal(i[1].guard.kind, HW_V_NONE);
    assert_int_equal(i[3].guard.reg, p.reg);
    hw_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_read_back_as_it_was_written),
        cmocka_unit_test(literals_become_bits_of_the_operands_width),
        cmocka_unit_test(syntax_errors_have_line_and_column),
        cmocka_unit_test(verifier_names_each_broken_rule),
        cmocka_unit_test(builder_makes_a_verified_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

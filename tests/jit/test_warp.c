/* SPDX-License-Identifier: Apache-2.0
 * jit: whole kernels in WIR text, run warp by warp. */
#include "rig.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_add_adds_n_elements_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

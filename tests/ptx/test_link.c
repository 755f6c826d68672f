/* SPDX-License-Identifier: Apache-2.0
 * What the linker makes of units: definitions chosen, what is missing named, kernels laid out. The
 * shared sizes are those ptxas -v reports for the same texts. */
#include "ast.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#define HEADER ".version 9.0\n.target sm_75\n.address_size 64\n"
enum { MOST_UNITS = 4 };

typedef struct fixture {
    hw_arena *arena;
    hw_diag *diag;
    hw_ptx_module *m;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->arena = hw_arena_new();
    f->diag = hw_diag_new(f->arena);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    hw_arena_free(f->arena);
    free(f);
    return 0;
}

/* Units a, b, c ... of these bodies; a NULL ends them. */
static hw_status link_texts(fixture *f, const char *const *bodies)
{
    hw_ptx_unit *units[MOST_UNITS];
    size_t n = 0;
    for (; n < MOST_UNITS && bodies[n]; n++) {
        const char *text = hw_arena_printf(f->arena, HEADER "%s", bodies[n]);
        const char *name = hw_arena_printf(f->arena, "%c.ptx", (int)('a' + n));
        hw_status s = hw_ptx_parse(f->arena, hw_str_of(text), name, &units[n], f->diag);
        if (s != HW_OK)
            fail_msg("%s", hw_diag_text(f->diag, f->arena).ptr);
    }
    return hw_ptx_link(f->arena, units, n, &f->m, f->diag);
}
#define LINK(f, ...) link_texts((f), (const char *const[]){ __VA_ARGS__, NULL })

static void must_link(fixture *f, hw_status s)
{
    if (s != HW_OK)
        fail_msg("%s", hw_diag_text(f->diag, f->arena).ptr);
}

static const hw_ptx_kernel *kernel(fixture *f, const char *name)
{
    uint32_t i = hw_ptx_find_kernel(f->m, name);
    assert_true(i < f->m->nkernels);
    return &f->m->kernels[i];
}

static const ptx_layout *layout(fixture *f, const char *name)
{
    return &f->m->priv->layouts[hw_ptx_find_kernel(f->m, name)];
}

static void externs_meet_definitions(void **state)
{
    fixture *f = *state;
    must_link(f,
              LINK(f,
                   ".extern .func g(.param .b32 a); .extern .global .u32 v[4];"
                   ".visible .entry k() { .reg .b64 %d; .param .b32 a; st.param.b32 [a], 1;"
                   "call g, (a); mov.u64 %d, v; ret; }",
                   ".visible .global .u32 v[4] = {1,2}; .visible .func g(.param .b32 a) { ret; }"));
    assert_int_equal(f->m->nkernels, 1);
    assert_int_equal(f->m->nvariables, 1);
    assert_int_equal(f->m->variables[0].size, 16);
    assert_int_equal(f->m->variables[0].init[4], 2);
    const ptx_layout *l = layout(f, "k");
    assert_int_equal(l->nfunctions, 2);
    assert_true(l->functions[1]->has_body);
}

static void local_names_stay_apart(void **state)
{
    fixture *f = *state;
    must_link(f, LINK(f, ".global .u32 v = 1; .entry k() { .reg .b64 %d; mov.u64 %d, v; ret; }",
                      ".global .u32 v = 2; .entry l() { .reg .b64 %d; mov.u64 %d, v; ret; }",
                      ".visible .global .u32 v = 3;"));
    assert_int_equal(f->m->nvariables, 3);
    uint32_t i = hw_ptx_find_variable(f->m, "v");
    assert_int_equal(f->m->variables[i].init[0], 3); /* the visible one */
}

static void weak_definitions_merge(void **state)
{
    fixture *f = *state;
    must_link(
        f, LINK(f, ".weak .func g() { ret; } .weak .global .u32 v = 1; .weak .entry k() { ret; }",
                ".weak .func g() { ret; } .weak .global .u32 v = 2; .weak .entry k() { ret; }"
                ".entry l() { call g; ret; }",
                ".visible .global .u32 v = 3;"));
    assert_int_equal(f->m->nkernels, 2);
    assert_int_equal(f->m->nvariables, 1);
    assert_int_equal(f->m->variables[0].init[0], 3);
    assert_int_equal(f->m->priv->functions.len, 1);
    assert_ptr_equal(layout(f, "l")->functions[1], f->m->priv->functions.ptr[0]);
}

static void common_takes_the_largest(void **state)
{
    fixture *f = *state;
    must_link(f, LINK(f, ".common .global .align 4 .b8 c[8];",
                      ".common .global .align 16 .b8 c[4];", ".common .global .u32 c;"));
    assert_int_equal(f->m->nvariables, 1);
    assert_int_equal(f->m->variables[0].size, 8);
    assert_int_equal(f->m->variables[0].align, 16);
}

static void says(fixture *f, hw_status s, const char *words)
{
    assert_int_equal(s, HW_E_LINK);
    const char *all = hw_diag_text(f->diag, f->arena).ptr;
    if (!strstr(all, words))
        fail_msg("%s", all);
    assert_int_equal(f->diag->errors, 1);
}

static void missing_function_is_named(void **state)
{
    fixture *f = *state;
    says(
        f,
        LINK(f,
             ".extern .func gone(); .entry k() { call gone; ret; } .entry l() { call gone; ret; }"),
        "unresolved extern function 'gone', needed by 'k'");
}

static void missing_variable_is_named(void **state)
{
    fixture *f = *state;
    says(f, LINK(f, ".extern .const .u32 c[]; .func g() { .reg .b64 %d; mov.u64 %d, c; ret; }"),
         "unresolved extern variable 'c', needed by 'g'");
}

static void missing_in_initialiser_is_named(void **state)
{
    fixture *f = *state;
    says(f, LINK(f, ".extern .global .u32 v; .global .u64 p = v;"), "needed by 'p'");
}

static void builtins_need_no_definition(void **state)
{
    fixture *f = *state;
    must_link(f, LINK(f, ".extern .func free(.param .b64 p);"
                         ".entry k() { .param .b64 p; call free, (p); ret; }"));
    uint32_t helper, aux;
    assert_true(hw_ptx_find_builtin(HW_STR("vprintf"), &helper, &aux));
    assert_int_equal(helper, HW_H_VPRINTF);
    assert_true(hw_ptx_find_builtin(HW_STR("__cudaCDP2EventRecord_ptsz"), &helper, &aux));
    assert_int_equal(helper, HW_H_DEVICE_CALL);
    assert_int_equal(aux, HW_DC_EVENT_RECORD);
    assert_true(hw_ptx_find_builtin(HW_STR("cudaLaunchDeviceV2"), &helper, &aux));
    assert_int_equal(aux, HW_DC_LAUNCH_V2);
    assert_true(hw_ptx_find_builtin(HW_STR("__cudaCDP2DeviceSynchronize"), &helper, &aux));
    assert_int_equal(helper, HW_H_COUNT);
    assert_false(hw_ptx_find_builtin(HW_STR("printf"), &helper, &aux));
    assert_false(hw_ptx_find_builtin(HW_STR("GetLastError"), &helper, &aux));
}

static void two_definitions_conflict(void **state)
{
    fixture *f = *state;
    says(f, LINK(f, ".visible .func g() { ret; }", ".visible .func g() { ret; }"),
         "'g' is also defined in a.ptx, line 4");
}

static void other_parameters_conflict(void **state)
{
    fixture *f = *state;
    says(f,
         LINK(f, ".extern .func g(.param .b32 a); .entry k() { .param .b32 a; call g, (a); ret; }",
              ".visible .func g(.param .b64 a) { ret; }"),
         "'g' does not agree with its declaration in a.ptx");
}

static void another_space_conflicts(void **state)
{
    fixture *f = *state;
    says(f, LINK(f, ".extern .const .u32 v;", ".visible .global .u32 v;"), "does not agree");
}

static void aliases_lead_to_functions(void **state)
{
    fixture *f = *state;
    must_link(f,
              LINK(f, ".extern .func h(); .entry k() { call h; ret; }",
                   ".visible .func g() { .shared .b32 s; ret; } .visible .func h(); .alias h, g;"));
    assert_int_equal(layout(f, "k")->nfunctions, 2);
    assert_int_equal(kernel(f, "k")->static_shared_bytes, 4);
}

static void relocations_name_their_targets(void **state)
{
    fixture *f = *state;
    must_link(f, LINK(f,
                      ".extern .global .u32 v; .func g() { ret; } .func h() { ret; }"
                      ".global .u64 x[2] = {v+4, h}; .entry k() { call g; ret; }",
                      ".visible .global .u32 v;"));
    const hw_ptx_variable *x = &f->m->variables[hw_ptx_find_variable(f->m, "x")];
    assert_int_equal(x->nrelocs, 2);
    assert_false(x->relocs[0].is_function);
    assert_int_equal(x->relocs[0].target, hw_ptx_find_variable(f->m, "v"));
    assert_int_equal(x->relocs[0].addend, 4);
    assert_true(x->relocs[1].is_function);
    assert_int_equal(x->relocs[1].offset, 8);
    assert_int_equal(x->relocs[1].target, 2); /* the first of those whose address is taken */
}

static void function_values_do_not_depend_on_the_kernel(void **state)
{
    fixture *f = *state;
    must_link(f,
              LINK(f, ".func a() { ret; } .func b() { ret; } .func c() { ret; }"
                      ".global .u64 t[2] = {c, b};"
                      ".entry k() { .reg .b64 %f; P: .callprototype _; call a; call %f, P; ret; }"
                      ".entry l() { .reg .b64 %d; mov.u64 %d, c; ret; }"
                      ".entry m() { call a; ret; }"));
    const struct hw_ptx_link *l = f->m->priv;
    assert_int_equal(l->naddressed, 2);
    for (int i = 0; i < 2; i++) {
        const ptx_layout *y = layout(f, i ? "l" : "k");
        assert_true(y->nfunctions >= 3);
        assert_ptr_equal(y->functions[1], l->functions.ptr[0]);
        assert_ptr_equal(y->functions[2], l->functions.ptr[1]);
    }
    assert_int_equal(layout(f, "k")->nfunctions, 4);
    assert_int_equal(layout(f, "m")->nfunctions, 2);
    assert_true(layout(f, "k")->calls_indirectly);
    assert_false(layout(f, "l")->calls_indirectly);
}

#define USE(name) "mov.u32 %r, " name "; st.shared.u32 [" name "], %r; "

static void shared_memory_of_a_kernel(void **state)
{
    static const struct {
        const char *text;
        uint32_t bytes;
        bool dynamic;
    } rows[] = {
        /* in order of declaration, each at its alignment */
        { ".shared .b8 a[1]; .shared .align 8 .b8 b[8]; .shared .b8 c[1]; .entry k() { .reg .u32 "
          "%r; " USE("a") USE("b") USE("c") "ret; }",
          17, false },
        /* of the function's scope: all; of the module's: the named ones */
        { ".entry k() { .shared .b8 a[100]; .shared .b8 b[50]; .reg .u32 %r; " USE("a") "ret; }",
          150, false },
        { ".shared .b8 a[100]; .shared .b8 b[50]; .entry k() { .reg .u32 %r; " USE("a") "ret; }",
          100, false },
        /* a callee's too */
        { ".shared .b8 a[100]; .shared .b8 b[50]; .func f() { .reg .u32 %r; " USE(
              "b") "ret; } .entry k() { .reg .u32 %r; call f; " USE("a") "ret; }",
          150, false },
        /* padded to where the dynamic part begins */
        { ".extern .shared .align 4 .b8 d[]; .shared .b8 b[5]; .entry k() { .reg .u32 %r; " USE("d")
              USE("b") "ret; }",
          16, true },
        { ".extern .shared .align 32 .b8 d[]; .shared .b8 b[5]; .entry k() { .reg .u32 %r; " USE(
              "d") USE("b") "ret; }",
          32, true },
        { ".extern .shared .align 32 .b8 d[]; .entry k() { ret; }", 0, false },
        { ".extern .shared .align 4 .b8 d[]; .entry k() { .shared .b8 a[5]; ret; }", 16, false },
        { ".extern .shared .b8 d[]; .extern .shared .align 64 .b8 e[];"
          ".entry k() { .shared .b8 a[5]; .reg .u32 %r; " USE("d") "ret; }",
          64, true },
        /* extern with a size stands for itself */
        { ".extern .shared .b32 x[10]; .entry k() { .reg .u32 %r; " USE("x") "ret; }", 40, false },
    };
    for (size_t i = 0; i < HW_COUNTOF(rows); i++) {
        fixture *f = *state;
        must_link(f, LINK(f, rows[i].text));
        const hw_ptx_kernel *k = kernel(f, "k");
        if (k->static_shared_bytes != rows[i].bytes || k->uses_dynamic_shared != rows[i].dynamic)
            fail_msg("row %zu: %u bytes", i, k->static_shared_bytes);
    }
}

static void shared_memory_of_many_kernels(void **state)
{
    fixture *f = *state;
    const char *text = "";
    for (int i = 0; i < 20; i++)
        text = hw_arena_printf(f->arena,
                               "%s.entry k%d() { .shared .b8 a[%d]; .reg .u32 %%r; mov.u32 %%r, a;"
                               "ret; }\n",
                               text, i, i + 1);
    must_link(f, LINK(f, text));
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(kernel(f, hw_arena_printf(f->arena, "k%u", i))->static_shared_bytes,
                         i + 1);
}

static void shared_offsets_belong_to_the_kernel(void **state)
{
    fixture *f = *state;
    must_link(f, LINK(f, ".shared .align 4 .b8 a[20]; .shared .align 4 .b8 b[4];"
                         ".extern .shared .b8 d[];"
                         ".entry k() { .reg .u32 %r; " USE("a") USE("b")
                             USE("d") "ret; }"
                                      ".entry l() { .reg .u32 %r; " USE("b") "ret; }"));
    ptx_symbol *const *s = f->m->priv->units[0]->symbols.ptr;
    assert_int_equal(hw_ptx_shared_offset(layout(f, "k"), s[0]), 0);
    assert_int_equal(hw_ptx_shared_offset(layout(f, "k"), s[1]), 20);
    assert_int_equal(hw_ptx_shared_offset(layout(f, "k"), s[2]), 32);
    assert_int_equal(hw_ptx_shared_offset(layout(f, "l"), s[1]), 0); /* elsewhere in l */
    assert_int_equal(hw_ptx_shared_offset(layout(f, "l"), s[0]), UINT32_MAX);
}

static void local_memory_adds_up_over_calls(void **state)
{
    fixture *f = *state;
    must_link(f, LINK(f, ".func a() { .local .b8 x[10]; ret; }"
                         ".func b() { .local .b8 x[20]; .local .align 8 .b8 y[8]; call a; ret; }"
                         ".entry k() { .local .b8 x[4]; call a; call b; ret; }"
                         ".entry l() { .local .b8 x[40]; ret; }"));
    assert_int_equal(kernel(f, "l")->local_bytes, 40);
    assert_int_equal(kernel(f, "k")->local_bytes, 16 + 32 + 10);
    assert_false(kernel(f, "k")->recursive);
}

static void recursion_is_noticed(void **state)
{
    fixture *f = *state;
    must_link(f, LINK(f, ".func b(); .func a() { .local .b8 x[16]; call b; ret; }"
                         ".func b() { .local .b8 x[16]; call a; ret; }"
                         ".entry k() { call a; ret; } .entry l() { ret; }"));
    assert_true(kernel(f, "k")->recursive);
    assert_false(kernel(f, "l")->recursive);
    assert_int_equal(kernel(f, "k")->local_bytes, 32);
}

static void kernels_say_what_they_need(void **state)
{
    fixture *f = *state;
    must_link(f, LINK(f, ".visible .entry k(.param .u64 a, .param .u8 b) .maxntid 32, 4 "
                         ".minnctapersm 2 { ret; } .entry l() .reqntid 8, 8, 8 { ret; }"));
    const hw_ptx_kernel *k = kernel(f, "k");
    assert_int_equal(k->nparams, 2);
    assert_string_equal(k->params[1].name, "b");
    assert_int_equal(k->params[1].offset, 8);
    assert_int_equal(k->param_bytes, 9);
    assert_int_equal(k->max_threads, 128);
    assert_int_equal(k->min_blocks_per_sm, 2);
    assert_int_equal(k->target, 75);
    assert_int_equal(k->ptx_version, 90);
    assert_int_equal(kernel(f, "l")->max_threads, 512);
    assert_int_equal(hw_ptx_find_kernel(f->m, "nobody"), UINT32_MAX);
}

static void the_key_is_the_texts_hash(void **state)
{
    fixture *f = *state;
    uint8_t first[32];
    must_link(f, LINK(f, ".entry k() { ret; }", ".entry l() { ret; }"));
    memcpy(first, f->m->key, 32);
    must_link(f, LINK(f, ".entry k() { ret; }", ".entry l() { ret; }"));
    assert_memory_equal(first, f->m->key, 32);
    must_link(f, LINK(f, ".entry l() { ret; }", ".entry k() { ret; }"));
    assert_memory_not_equal(first, f->m->key, 32);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(externs_meet_definitions),
        CASE(local_names_stay_apart),
        CASE(weak_definitions_merge),
        CASE(common_takes_the_largest),
        CASE(missing_function_is_named),
        CASE(missing_variable_is_named),
        CASE(missing_in_initialiser_is_named),
        CASE(builtins_need_no_definition),
        CASE(two_definitions_conflict),
        CASE(other_parameters_conflict),
        CASE(another_space_conflicts),
        CASE(aliases_lead_to_functions),
        CASE(relocations_name_their_targets),
        CASE(function_values_do_not_depend_on_the_kernel),
        CASE(shared_memory_of_a_kernel),
        CASE(shared_memory_of_many_kernels),
        CASE(shared_offsets_belong_to_the_kernel),
        CASE(local_memory_adds_up_over_calls),
        CASE(recursion_is_noticed),
        CASE(kernels_say_what_they_need),
        CASE(the_key_is_the_texts_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

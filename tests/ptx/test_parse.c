/* SPDX-License-Identifier: Apache-2.0
 * What the parser makes of a text: the syntax tree, values, places, messages, line tables. */
#include "ast.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#include <stdio.h>

#define HEADER ".version 9.0\n.target sm_75\n.address_size 64\n"

typedef struct fixture {
    hw_arena *arena;
    hw_diag *diag;
} fixture;

static int set_up(void **state)
{
    fixture *f = malloc(sizeof *f);
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

static hw_ptx_unit *parse(fixture *f, const char *text)
{
    hw_ptx_unit *u;
    hw_status s = hw_ptx_parse(f->arena, hw_str_of(text), "test.ptx", &u, f->diag);
    if (s != HW_OK)
        fail_msg("%s", hw_diag_text(f->diag, f->arena).ptr);
    return u;
}

static ptx_function *body(fixture *f, const char *statements)
{
    char *text = hw_arena_printf(f->arena, HEADER ".entry k(.param .u64 p) { %s }", statements);
    return parse(f, text)->functions.ptr[0];
}

static const ptx_operand *operand(const ptx_function *f, uint32_t insn, uint32_t i)
{
    assert_true(insn < f->insns.len && i < f->insns.ptr[insn].nops);
    return &f->insns.ptr[insn].ops[i];
}

static void instruction_is_taken_apart(void **state)
{
    ptx_function *f =
        body(*state, ".reg .b32 %r<3>; .reg .b64 %d; .reg .pred %p;"
                     "@!%p ld.global.L1::no_allocate.v2.b32 {%r1, _}, [%d+-16]; ret;");
    const ptx_insn *i = &f->insns.ptr[0];
    assert_true(hw_str_is(i->opcode, "ld"));
    assert_int_equal(i->nmods, 4);
    assert_true(hw_str_is(i->mods[1], "L1::no_allocate"));
    assert_true(hw_str_is(i->mods[3], "b32"));
    assert_true(i->guard >= 0 && i->guard_negated);
    assert_int_equal(f->regs.ptr[i->guard].type, PTX_PRED);
    assert_int_equal(i->nops, 2);
    assert_int_equal(i->ops[0].kind, PTX_O_VECTOR);
    assert_int_equal(i->ops[0].nitems, 2);
    assert_int_equal(i->ops[0].items[1].kind, PTX_O_SINK);
    assert_int_equal(i->ops[1].kind, PTX_O_ADDRESS);
    assert_int_equal(i->ops[1].items[0].kind, PTX_O_REG);
    assert_int_equal(i->ops[1].items[0].offset, -16);
    assert_int_equal(f->insns.ptr[1].nops, 0);
    assert_int_equal(f->insns.ptr[1].guard, -1);
}

static void spellings_share_their_modifiers(void **state)
{
    ptx_function *f =
        body(*state, ".reg .b32 %r; mov.b32 %r, 1; mov.b32 %r, 2; mov .b32 %r, 3; ret;");
    assert_ptr_equal(f->insns.ptr[0].mods, f->insns.ptr[1].mods);
    assert_ptr_equal(f->insns.ptr[0].mods, f->insns.ptr[2].mods);
}

static void constants_have_their_values(void **state)
{
    static const struct {
        const char *text;
        uint64_t bits;
    } rows[] = {
        { "42", 42 },
        { "-1", UINT64_MAX },
        { "0x7fffffffffffffff", INT64_MAX },
        { "0xffffffffffffffff", UINT64_MAX },
        { "0b1011", 11 },
        { "0777", 511 },
        { "0", 0 },
        { "0U", 0 },
        { "7U", 7 },
        { "(1<<4)|3", 19 },
        { "2+3*4", 14 },
        { "(2+3)*4", 20 },
        { "-7/2", (uint64_t)-3 },
        { "-7 % 3", (uint64_t)-1 },
        { "0xffffffffffffffffU/2", INT64_MAX },
        { "-8>>1", (uint64_t)-4 },
        { "0x8000000000000000U>>63", 1 },
        { "1<<64", 0 },
        { "~0", UINT64_MAX },
        { "!5", 0 },
        { "1 ? 2 : 3", 2 },
        { "0 ? 2 : 1 ? 5 : 6", 5 },
        { "3 > 2", 1 },
        { "-1 < 0", 1 },
        { "-1 < 0U", 0 },
        { "1.5 > 1", 1 },
        { "(.u64)-1 > 0", 1 },
        { "WARP_SZ", 32 },
        { "WARP_SZ - 1", 31 },
        { "0x10 & 0x30 ^ 1", 0x11 },
        { "1 || 0", 1 },
        { "1 && 0", 0 },
    };
    for (size_t i = 0; i < HW_COUNTOF(rows); i++) {
        fixture *x = *state;
        ptx_function *f = body(
            x, hw_arena_printf(x->arena, ".reg .b64 %%r; mov.b64 %%r, %s; ret;", rows[i].text));
        const ptx_operand *o = operand(f, 0, 1);
        if (o->kind != PTX_O_INT || o->bits != rows[i].bits)
            fail_msg("%s is %#llx, kind %d", rows[i].text, (unsigned long long)o->bits, o->kind);
    }
}

static void floats_have_their_patterns(void **state)
{
    ptx_function *f = body(*state, ".reg .f32 %f; .reg .f64 %d; mov.f32 %f, 0f3F800000;"
                                   "mov.f64 %d, 0dC000000000000000; mov.f32 %f, 1.5;"
                                   "mov.f32 %f, -2.5e-1; mov.f64 %d, 1.0+0.25; ret;");
    const ptx_operand *o = operand(f, 0, 1);
    assert_true(o->kind == PTX_O_FLOAT && o->is_single && o->bits == 0x3F800000 && o->value == 1.0);
    o = operand(f, 1, 1);
    assert_true(o->kind == PTX_O_FLOAT && !o->is_single && o->bits == UINT64_C(0xC000000000000000));
    assert_true(o->value == -2.0);
    assert_true(operand(f, 2, 1)->value == 1.5);
    assert_true(operand(f, 3, 1)->value == -0.25);
    assert_true(operand(f, 4, 1)->value == 1.25);
}

static void special_registers_have_parts(void **state)
{
    ptx_function *f = body(*state, ".reg .u32 %r; mov.u32 %r, %tid.y; mov.u32 %r, %laneid; ret;");
    const ptx_operand *o = operand(f, 0, 1);
    assert_int_equal(o->kind, PTX_O_SREG);
    assert_true(hw_str_is(o->name, "tid"));
    assert_int_equal(o->component, 1);
    o = operand(f, 1, 1);
    assert_true(o->kind == PTX_O_SREG && hw_str_is(o->name, "laneid") && o->component == -1);
}

static void vector_registers_become_parts(void **state)
{
    ptx_function *f = body(*state, ".reg .v2 .b32 %v; .reg .b64 %d; ld.global.v2.b32 %v, [%d];"
                                   "mov.b32 %v.y, 1; ret;");
    const ptx_operand *whole = operand(f, 0, 0);
    assert_int_equal(whole->kind, PTX_O_VECTOR);
    assert_int_equal(whole->nitems, 2);
    const ptx_operand *part = operand(f, 1, 0);
    assert_int_equal(part->kind, PTX_O_REG);
    assert_int_equal(part->reg, whole->items[1].reg);
    assert_int_equal(f->regs.ptr[part->reg].vector, 1);
    assert_true(hw_str_is(f->regs.ptr[part->reg].name, "%v.y"));
}

static void only_named_registers_exist(void **state)
{
    ptx_function *f = body(*state, ".reg .b32 %r<1000000>; mov.b32 %r999999, 1; ret;");
    assert_int_equal(f->regs.len, 1);
    assert_true(hw_str_is(f->regs.ptr[0].name, "%r999999"));
}

static void inner_names_shadow(void **state)
{
    ptx_function *f = body(*state, ".reg .b32 %r<3>; mov.b32 %r1, 1; { .reg .b64 %r<2>;"
                                   "mov.b64 %r1, 1; mov.b32 %r2, 1; } mov.b32 %r1, 1; ret;");
    assert_int_equal(operand(f, 0, 0)->reg, operand(f, 3, 0)->reg);
    assert_int_not_equal(operand(f, 0, 0)->reg, operand(f, 1, 0)->reg);
    assert_int_equal(f->regs.ptr[operand(f, 1, 0)->reg].type, PTX_B64);
    assert_int_equal(f->regs.ptr[operand(f, 2, 0)->reg].type, PTX_B32);
}

static void labels_are_found_in_scopes(void **state)
{
    ptx_function *f = body(*state, ".reg .b32 %r; A: bra B; { bra A; A: bra A; bra B; } B: ret;");
    assert_int_equal(f->labels.len, 3);
    const ptx_label *l = f->labels.ptr;
    assert_int_equal(l[operand(f, 0, 0)->label].insn, 4); /* forward, B */
    assert_int_equal(l[operand(f, 1, 0)->label].insn, 2); /* the inner A, not the outer one */
    assert_int_equal(l[operand(f, 2, 0)->label].insn, 2);
    assert_int_equal(l[operand(f, 3, 0)->label].insn, 4); /* outwards */
}

static void branch_targets_are_labels(void **state)
{
    ptx_function *f = body(*state, ".reg .u32 %r; T: .branchtargets B, A, B; brx.idx %r, T;"
                                   "A: ret; B: ret;");
    const ptx_operand *o = operand(f, 0, 1);
    assert_int_equal(o->kind, PTX_O_SYMBOL);
    assert_int_equal(o->symbol->kind, PTX_SYM_TARGETS);
    const ptx_branch_targets *t = o->symbol->targets;
    assert_int_equal(t->n, 3);
    assert_int_equal(f->labels.ptr[t->labels[0]].insn, 2);
    assert_int_equal(f->labels.ptr[t->labels[1]].insn, 1);
    assert_int_equal(t->labels[2], t->labels[0]);
}

static void elements_are_addresses(void **state)
{
    hw_ptx_unit *u = parse(*state, HEADER ".global .u64 a[8]; .global .v2 .u32 v[8]; .entry k() {"
                                          ".reg .b64 %d; .reg .b32 %r; mov.u64 %d, a[5];"
                                          "mov.u64 %d, v[5]; ld.global.u64 %d, a[2];"
                                          "ld.global.u64 %d, [a+2]; mov.u64 %d, a+2; ret; }");
    ptx_function *f = u->functions.ptr[0];
    assert_int_equal(operand(f, 0, 1)->kind, PTX_O_SYMBOL);
    assert_int_equal(operand(f, 0, 1)->offset, 40);
    assert_int_equal(operand(f, 1, 1)->offset, 20); /* in scalars, as ptxas counts */
    assert_int_equal(operand(f, 2, 1)->kind, PTX_O_ADDRESS);
    assert_int_equal(operand(f, 2, 1)->items[0].offset, 16);
    assert_int_equal(operand(f, 3, 1)->items[0].offset, 2);
    assert_int_equal(operand(f, 4, 1)->offset, 2);
    assert_int_equal(f->refs.len, 2); /* each once */
}

static void calls_keep_their_lists(void **state)
{
    hw_ptx_unit *u = parse(*state, HEADER
                           ".func (.param .b32 r) f(.param .b32 a, .param .b64 b) { ret; }"
                           ".entry k() { .reg .b32 %r; .reg .b64 %f; .param .b32 x; .param .b64 y;"
                           ".param .b32 z; call.uni (z), f, (x, y);"
                           "P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _);"
                           "call (z), %f, (x, y), P; ret; }");
    ptx_function *f = u->functions.ptr[1];
    const ptx_insn *i = &f->insns.ptr[0];
    assert_int_equal(i->nops, 3);
    assert_int_equal(i->ops[0].kind, PTX_O_LIST);
    assert_int_equal(i->ops[1].kind, PTX_O_SYMBOL);
    assert_ptr_equal(i->ops[1].symbol->function, u->functions.ptr[0]);
    assert_int_equal(i->ops[2].nitems, 2);
    i = &f->insns.ptr[1];
    assert_int_equal(i->nops, 4);
    assert_int_equal(i->ops[1].kind, PTX_O_REG);
    assert_int_equal(i->ops[3].symbol->kind, PTX_SYM_PROTOTYPE);
    assert_int_equal(i->ops[3].symbol->prototype->nparams, 2);
    assert_true(f->calls_indirectly);
    assert_false(u->functions.ptr[0]->symbol->address_taken);
}

static void textures_keep_their_coordinates(void **state)
{
    ptx_function *f =
        body(*state, ".reg .f32 %f<8>; .reg .b64 %t, %s;"
                     "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%t, %s, {%f5,%f6}]; ret;");
    const ptx_operand *o = operand(f, 0, 1);
    assert_int_equal(o->kind, PTX_O_ADDRESS);
    assert_int_equal(o->nitems, 3);
    assert_int_equal(o->items[2].kind, PTX_O_VECTOR);
    assert_int_equal(o->items[2].nitems, 2);
}

static void parameters_are_laid_out(void **state)
{
    hw_ptx_unit *u = parse(*state, HEADER ".entry k(.param .u8 a, .param .u64 b, .param .u16 c,"
                                          ".param .align 16 .b8 s[20], .param .f32 d) { ret; }");
    static const uint32_t offset[] = { 0, 8, 16, 32, 52 }, size[] = { 1, 8, 2, 20, 4 };
    const ptx_function *f = u->functions.ptr[0];
    assert_int_equal(f->nparams, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(f->params[i].offset, offset[i]);
        assert_int_equal(f->params[i].size, size[i]);
        assert_int_equal(f->params[i].symbol->offset, offset[i]);
    }
    assert_int_equal(f->param_bytes, 56);
}

static void directives_are_kept(void **state)
{
    hw_ptx_unit *u = parse(*state, HEADER ".entry k() .maxntid 16, 8 .minnctapersm 3 .maxnreg 40"
                                          "{ ret; }");
    const ptx_function *f = u->functions.ptr[0];
    assert_int_equal(f->maxntid[0], 16);
    assert_int_equal(f->maxntid[1], 8);
    assert_int_equal(f->maxntid[2], 1);
    assert_int_equal(f->min_blocks, 3);
    assert_int_equal(f->maxnreg, 40);
    assert_int_equal(f->reqntid[0], 0);
}

static void initial_bytes(void **state)
{
    hw_ptx_unit *u = parse(*state, HEADER ".global .u16 a[2][3] = {{1,2},{0x10203}};"
                                          ".global .f32 f = 1.5; .global .f64 d = 0f3f800000;"
                                          ".global .u32 z[1000000] = {0, 0}; .global .s8 n = -2;"
                                          ".global .v2 .u32 v[2] = {{1},{2,3}};");
    static const uint8_t a[] = { 1, 0, 2, 0, 0, 0, 3, 2 };
    ptx_symbol **s = u->symbols.ptr;
    assert_int_equal(s[0]->size, 12);
    assert_int_equal(s[0]->init_bytes, sizeof a);
    assert_memory_equal(s[0]->init, a, sizeof a);
    float f;
    memcpy(&f, s[1]->init, 4);
    assert_true(f == 1.5f);
    double d;
    memcpy(&d, s[2]->init, 8);
    assert_true(d == 1.0);
    assert_null(s[3]->init); /* zero anyway */
    assert_int_equal(s[3]->size, 4000000);
    assert_int_equal(s[4]->init[0], 0xFE);
    uint32_t v[4] = { 0 };
    memcpy(v, s[5]->init, s[5]->init_bytes);
    assert_true(v[0] == 1 && v[1] == 0 && v[2] == 2 && v[3] == 3);
}

static void initial_addresses(void **state)
{
    hw_ptx_unit *u = parse(*state, HEADER ".global .u32 y[4]; .func g() { ret; }"
                                          ".global .u64 x[3] = {7, y+8, generic(y)+4};"
                                          ".global .u8 b[2] = {0xff(y), 0xff00(y+1)};"
                                          ".global .u64 h = g;");
    ptx_symbol **s = u->symbols.ptr;
    const ptx_symbol *x = s[2], *b = s[3], *h = s[4];
    assert_int_equal(x->nrelocs, 2);
    assert_int_equal(x->relocs[0].offset, 8);
    assert_int_equal(x->relocs[0].width, 8);
    assert_int_equal(x->relocs[0].addend, 8);
    assert_ptr_equal(x->relocs[0].symbol, s[0]);
    assert_int_equal(x->relocs[1].offset, 16);
    assert_int_equal(x->relocs[1].addend, 4);
    assert_true(x->relocs[1].generic);
    assert_int_equal(x->init[0], 7);
    assert_int_equal(b->relocs[1].width, 1);
    assert_int_equal(b->relocs[1].shift, 8);
    assert_int_equal(b->relocs[1].addend, 1);
    assert_int_equal(h->nrelocs, 1);
    assert_true(s[1]->address_taken);
}

static void lines_and_inlined_frames(void **state)
{
    fixture *x = *state;
    hw_ptx_unit *u = parse(x, HEADER ".entry k() { .reg .b32 %r;\n"
                                     ".loc 1 10 0\n mov.b32 %r, 1;\n .loc 1 11 5\n mov.b32 %r, 1;\n"
                                     ".loc 2 4 9, function_name $n, inlined_at 1 11 5\n"
                                     "mov.b32 %r, 2; ret; }\n"
                                     ".file 1 \"a.cu\"\n.file 2 \"b.cuh\"\n"
                                     ".section .debug_str {\n$n:\n.b8 102,117,110\n.b8 0\n}\n");
    const ptx_function *f = u->functions.ptr[0];
    const hw_wir_loc *l = &u->locs.ptr[f->insns.ptr[0].loc];
    assert_string_equal(l->file, "a.cu");
    assert_int_equal(l->line, 10);
    assert_int_equal(l->inlined_at, 0);
    l = &u->locs.ptr[f->insns.ptr[2].loc];
    assert_string_equal(l->file, "b.cuh");
    assert_string_equal(l->function, "fun");
    assert_int_equal(l->line, 4);
    assert_int_equal(l->column, 9);
    assert_int_equal(l->inlined_at, f->insns.ptr[1].loc);
    assert_int_equal(f->insns.ptr[2].place.line, 10);
}

static void targets_are_read(void **state)
{
    hw_ptx_unit *u = parse(*state, ".version 8.7\n.target sm_100f, debug\n");
    assert_int_equal(u->version, 87);
    assert_int_equal(u->target, 100);
    assert_true(hw_str_is(u->target_text, "sm_100f"));
    assert_true(u->debug);
    assert_int_equal(u->address_size, 64);
}

/* ---- messages ---- */

static const hw_message *reject(fixture *f, const char *text, hw_status want, uint32_t count)
{
    hw_ptx_unit *u;
    hw_status s = hw_ptx_parse(f->arena, hw_str_of(text), "test.ptx", &u, f->diag);
    if (s != want || f->diag->errors != count)
        fail_msg("%s, %u errors: %s", hw_status_name(s), f->diag->errors,
                 hw_diag_text(f->diag, f->arena).ptr);
    assert_null(u);
    return f->diag->first;
}

static void one_unknown_instruction_is_one_error(void **state)
{
    fixture *f = *state;
    const hw_message *m =
        reject(f,
               HEADER ".visible .entry a(.param .u64 p)\n{\n    ret;\n}\n"
                      ".visible .entry b(.param .u64 p)\n{\n    .reg .b32 %r<4>;\n"
                      "    mov.u32 %r2, %tid.x;\n    frob.u32 %r1, %r2;\n    ret;\n}\n"
                      ".visible .entry c(.param .u64 p)\n{\n    .reg .b32 %r<4>;\n"
                      "    mov.u32 %r1, %ctaid.x;\n    ret;\n}\n",
               HW_E_SYNTAX, 1);
    assert_int_equal(m->place.line, 12);
    assert_int_equal(m->place.column, 5);
    assert_non_null(strstr(m->text, "frob"));
    assert_true(hw_str_is(m->place.text, "    frob.u32 %r1, %r2;"));
}

static void errors_come_in_the_order_of_lines(void **state)
{
    fixture *f = *state;
    const hw_message *m = reject(f,
                                 HEADER ".entry k() {\n .reg .b32 %r;\n frob.b32 %r;\n"
                                        " mov.b32 %q, 1;\n mov.b32 %r, ;\n frob.b32 %r;\n"
                                        " bra NOWHERE;\n mov.b32 %q, 2;\n}\n.global .u32 x[];\n",
                                 HW_E_SYNTAX, 6);
    static const uint32_t lines[] = { 6, 7, 8, 9, 10, 13 };
    for (int i = 0; i < 6; i++, m = m->next)
        assert_int_equal(m->place.line, lines[i]);
}

static void a_lost_declaration_is_one_error(void **state)
{
    fixture *f = *state;
    const hw_message *m = reject(f,
                                 HEADER ".entry k() {\n .reg .b33 %r<9>;\n mov.b32 %r1, 1;\n"
                                        " mov.b32 %r2, %r1;\n ret;\n}\n"
                                        ".entry l() { .reg .b32 %a; mov.b32 %a, 1; ret; }",
                                 HW_E_SYNTAX, 1);
    assert_int_equal(m->place.line, 5);
}

static void a_lost_function_is_one_error(void **state)
{
    reject(*state,
           HEADER ".func f(.param .b32 ) {\n .reg .b32 %r; mov.b32 %r, 1; ret;\n}\n"
                  ".entry k() { call f; ret; }",
           HW_E_SYNTAX, 1);
}

static void errors_end_at_twenty(void **state)
{
    fixture *f = *state;
    char *text = hw_arena_printf(f->arena, "%s.entry k() { .reg .b32 %%r;\n", HEADER);
    for (int i = 0; i < 100; i++)
        text = hw_arena_printf(f->arena, "%s mov.b32 %%r, ;\n", text);
    reject(f, text, HW_E_SYNTAX, 20);
    assert_int_equal(f->diag->last->severity, HW_SEV_NOTE);
}

static void version_too_new(void **state)
{
    reject(*state, ".version 12.0\n.target sm_75\n.entry k() { hocus pocus", HW_E_VERSION, 1);
}

static void not_ptx_at_all(void **state)
{
    reject(*state,
           "\x7f"
           "ELF\x02\x01 something else entirely; } {",
           HW_E_SYNTAX, 1);
}

static void nothing_at_all(void **state)
{
    reject(*state, "", HW_E_SYNTAX, 1);
}

static void no_diag_is_fine(void **state)
{
    fixture *f = *state;
    hw_ptx_unit *u;
    assert_int_equal(hw_ptx_parse(f->arena, HW_STR(HEADER "bad"), "x", &u, NULL), HW_E_SYNTAX);
    assert_int_equal(hw_ptx_parse(f->arena, HW_STR(HEADER "\0\0\0"), "x", &u, NULL), HW_OK);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(instruction_is_taken_apart),
        CASE(spellings_share_their_modifiers),
        CASE(constants_have_their_values),
        CASE(floats_have_their_patterns),
        CASE(special_registers_have_parts),
        CASE(vector_registers_become_parts),
        CASE(only_named_registers_exist),
        CASE(inner_names_shadow),
        CASE(labels_are_found_in_scopes),
        CASE(branch_targets_are_labels),
        CASE(elements_are_addresses),
        CASE(calls_keep_their_lists),
        CASE(textures_keep_their_coordinates),
        CASE(parameters_are_laid_out),
        CASE(directives_are_kept),
        CASE(initial_bytes),
        CASE(initial_addresses),
        CASE(lines_and_inlined_frames),
        CASE(targets_are_read),
        CASE(one_unknown_instruction_is_one_error),
        CASE(errors_come_in_the_order_of_lines),
        CASE(a_lost_declaration_is_one_error),
        CASE(a_lost_function_is_one_error),
        CASE(errors_end_at_twenty),
        CASE(version_too_new),
        CASE(not_ptx_at_all),
        CASE(nothing_at_all),
        CASE(no_diag_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Reads the text form that print.c writes (described there). Line by line: a first pass finds the
 * names of functions and blocks, so that uses may stand before definitions. */
#include "inside.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { MAX_OPERANDS = 255 };

typedef struct parser {
    hw_arena *arena;
    hw_wir_module *m;
    hw_diag *diag;
    const char *origin;
    hw_str text, line; /* line: what is being read, without comment */
    size_t next;       /* offset of the next line */
    uint32_t number;
    const char *at; /* position in line */
    hw_status status;
    hw_intern *regs, *blocks; /* of the function being read; id - 1 = index */
    hw_intern *functions, *symbols;
    hw_wir_builder b;
} parser;

static HW_PRINTF(2, 3) void fail(parser *p, const char *fmt, ...)
{
    if (p->status != HW_OK)
        return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = hw_arena_vprintf(p->arena, fmt, ap);
    va_end(ap);
    hw_place at = { p->origin, p->number, (uint32_t)(p->at - p->line.ptr) + 1, p->line };
    p->status = hw_fail_at(p->diag, HW_E_SYNTAX, at, "%s", text);
}

/* The next line that is not empty; comments and blanks at both ends removed. */
static bool next_line(parser *p)
{
    while (p->next < p->text.len) {
        const char *start = p->text.ptr + p->next;
        size_t rest = p->text.len - p->next;
        const char *newline = memchr(start, '\n', rest);
        size_t len = newline ? (size_t)(newline - start) : rest;
        p->next += len + 1;
        p->number++;
        const char *comment = memmem(start, len, "//", 2);
        if (comment)
            len = (size_t)(comment - start);
        while (len && isspace((unsigned char)start[len - 1]))
            len--;
        for (; len && isspace((unsigned char)*start); len--)
            start++;
        if (len) {
            p->line = (hw_str){ start, len };
            p->at = start;
            return true;
        }
    }
    return false;
}

static const char *line_end(const parser *p)
{
    return p->line.ptr + p->line.len;
}

static char peek(parser *p)
{
    while (p->at < line_end(p) && isspace((unsigned char)*p->at))
        p->at++;
    return p->at < line_end(p) ? *p->at : '\0';
}

static bool accept(parser *p, char c)
{
    if (peek(p) != c)
        return false;
    p->at++;
    return true;
}

static void expect(parser *p, char c)
{
    if (!accept(p, c))
        fail(p, "'%c' expected", c);
}

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '#';
}

/* A name: letters, digits, _ and $; a leading '.' or '#' is part of it. */
static hw_str name(parser *p)
{
    char c = peek(p);
    const char *start = p->at;
    if (c == '.' || c == '#')
        p->at++;
    while (p->at < line_end(p) && name_char(*p->at))
        p->at++;
    return (hw_str){ start, (size_t)(p->at - start) };
}

static bool accept_word(parser *p, const char *word)
{
    peek(p);
    const char *start = p->at;
    if (hw_str_is(name(p), word))
        return true;
    p->at = start;
    return false;
}

static uint64_t number(parser *p)
{
    bool negative = accept(p, '-');
    char digits[40] = "";
    peek(p);
    size_t n = 0;
    while (p->at < line_end(p) && isalnum((unsigned char)*p->at) && n + 1 < sizeof digits)
        digits[n++] = *p->at++;
    char *end;
    uint64_t v = strtoull(digits, &end, 0);
    if (n == 0 || *end)
        fail(p, "number expected");
    return negative ? -v : v;
}

static uint32_t number32(parser *p)
{
    uint64_t v = number(p);
    if (v > UINT32_MAX)
        fail(p, "number too large");
    return (uint32_t)v;
}

/* word=NUMBER, optional */
static uint64_t attribute(parser *p, const char *word)
{
    if (!accept_word(p, word))
        return 0;
    expect(p, '=');
    return number(p);
}

static const char *quoted(parser *p)
{
    expect(p, '"');
    const char *start = p->at;
    while (p->at < line_end(p) && *p->at != '"')
        p->at++;
    hw_str s = { start, (size_t)(p->at - start) };
    expect(p, '"');
    return s.len ? hw_arena_cstr(p->arena, s) : NULL;
}

/* A floating literal 1.5f or 1.5d; false if the text at hand is none. */
static bool float_literal(parser *p, uint64_t *bits)
{
    peek(p);
    const char *e = p->at;
    while (e < line_end(p) && (isdigit((unsigned char)*e) || strchr("+-.e", *e)))
        e++;
    bool dotted = memchr(p->at, '.', (size_t)(e - p->at)) != NULL;
    if (!dotted || e == line_end(p) || (*e != 'f' && *e != 'd'))
        return false;
    double d = strtod(p->at, NULL);
    float f = (float)d;
    uint32_t low;
    memcpy(&low, &f, sizeof low);
    memcpy(bits, &d, sizeof d);
    if (*e == 'f')
        *bits = low;
    p->at = e + 1;
    return true;
}

static uint32_t lookup(parser *p, hw_intern *names, hw_str s, const char *what)
{
    uint32_t id = hw_intern_find(names, s);
    if (!id)
        fail(p, "unknown %s '%.*s'", what, HW_STR_ARG(s));
    return id ? id - 1 : 0;
}

static uint32_t reg(parser *p)
{
    expect(p, '%');
    return lookup(p, p->regs, name(p), "register");
}

static hw_wir_val value(parser *p)
{
    char c = peek(p);
    if (c == '%')
        return hw_wir_reg(reg(p));
    if (c == '_') {
        p->at++;
        return HW_WIR_NONE;
    }
    uint64_t bits;
    return hw_wir_imm(float_literal(p, &bits) ? bits : number(p));
}

/* ---- instructions ---- */

static hw_wir_op op_named(parser *p, hw_str s)
{
    for (unsigned i = 0; i < HW_W_COUNT; i++)
        if (strlen(hw_wir_ops[i].name) == s.len &&
            strncasecmp(hw_wir_ops[i].name, s.ptr, s.len) == 0)
            return (hw_wir_op)i;
    fail(p, "unknown operation '%.*s'", HW_STR_ARG(s));
    return HW_W_MOV;
}

static void set_field(hw_wir_insn *i, const hw_wir_word *w, uint32_t *ntypes)
{
    switch (w->field) {
    case HW_FIELD_TYPE:
        *((*ntypes)++ ? &i->type2 : &i->type) = (uint8_t)w->value;
        break;
    case HW_FIELD_COND:
        i->cond = (uint8_t)w->value;
        break;
    case HW_FIELD_ROUND:
        i->round = (uint8_t)w->value;
        break;
    case HW_FIELD_SPACE:
        i->space = (uint8_t)w->value;
        break;
    case HW_FIELD_SCOPE:
        i->scope = (uint8_t)w->value;
        break;
    case HW_FIELD_ATOM:
        i->atom = (uint8_t)w->value;
        break;
    case HW_FIELD_COUNT:
        i->count = (uint8_t)w->value;
        break;
    case HW_FIELD_FLAG:
        i->flags |= w->value;
        break;
    }
}

static void words(parser *p, hw_wir_insn *i)
{
    uint32_t ntypes = 0;
    while (p->at < line_end(p) && *p->at == '.') {
        p->at++;
        hw_str s = name(p);
        const hw_wir_word *found = NULL;
        for (size_t k = 0; k < hw_wir_nwords && !found; k++)
            if (hw_str_is(s, hw_wir_words[k].name))
                found = &hw_wir_words[k];
        if (!found)
            fail(p, "unknown word '%.*s'", HW_STR_ARG(s));
        else
            set_field(i, found, &ntypes);
    }
}

static uint64_t index_named(parser *p, const char *const *names, uint32_t n, const char *what)
{
    hw_str s = name(p);
    for (uint32_t k = 0; k < n; k++)
        if (strlen(names[k]) == s.len && strncasecmp(names[k], s.ptr, s.len) == 0)
            return k;
    fail(p, "unknown %s '%.*s'", what, HW_STR_ARG(s));
    return 0;
}

/* The named index of the operations that have one; true if one was read. */
static bool named(parser *p, hw_wir_insn *i)
{
    switch (i->op) {
    case HW_W_SREG:
        i->imm = index_named(p, hw_wir_sreg_names, HW_SR_COUNT, "special register");
        return true;
    case HW_W_HELPER:
        i->imm = index_named(p, hw_wir_helper_names, HW_H_COUNT, "helper");
        return true;
    case HW_W_CALL:
    case HW_W_FUNC_ADDR:
        expect(p, '@');
        i->imm = lookup(p, p->functions, name(p), "function");
        return true;
    case HW_W_SYMBOL:
        expect(p, '@');
        i->imm = lookup(p, p->symbols, name(p), "symbol");
        return true;
    default:
        return false;
    }
}

static hw_wir_val address(parser *p, hw_wir_insn *i)
{
    expect(p, '[');
    hw_wir_val v = value(p);
    if (accept(p, '+'))
        i->imm = number(p);
    else if (accept(p, '-'))
        i->imm = -number(p);
    expect(p, ']');
    return v;
}

typedef struct operands {
    hw_wir_val v[MAX_OPERANDS];
    uint32_t n;
    uint32_t targets[MAX_OPERANDS];
    uint32_t ntargets;
} operands;

static void put_operand(operands *o, hw_wir_val v)
{
    o->v[o->n++] = v;
}

static bool starts_label(char c)
{
    return isalpha((unsigned char)c) || c == '$' || c == '.';
}

static bool at_attribute(parser *p)
{
    char c = peek(p);
    if (c == '!' || c == '\0')
        return true;
    size_t rest = (size_t)(line_end(p) - p->at);
    return rest > 4 && (memcmp(p->at, "imm=", 4) == 0 || memcmp(p->at, "aux=", 4) == 0);
}

static void sources(parser *p, hw_wir_insn *i, operands *o)
{
    if (named(p, i) && !accept(p, ','))
        return;
    while (p->status == HW_OK && !at_attribute(p)) {
        if (o->n == MAX_OPERANDS || o->ntargets == MAX_OPERANDS) {
            fail(p, "too many operands");
            return;
        }
        if (hw_wir_is(i, HW_WF_T) && starts_label(peek(p)))
            o->targets[o->ntargets++] = lookup(p, p->blocks, name(p), "block");
        else
            put_operand(o, peek(p) == '[' ? address(p, i) : value(p));
        if (!accept(p, ','))
            return;
    }
}

static void guard(parser *p)
{
    p->b.guard = HW_WIR_NONE;
    if (!accept(p, '@'))
        return;
    p->b.guard_negated = accept(p, '!');
    p->b.guard = hw_wir_reg(reg(p));
}

/* Immediates are kept zero-extended; a negative one was read as 64 bits. */
static void trim_immediates(hw_wir_insn *i)
{
    for (uint32_t k = 0; k < i->nsrc; k++)
        if (i->src[k].kind == HW_V_IMM) {
            hw_wir_type t = hw_wir_src_type(i, k);
            if (t != HW_T_NONE)
                i->src[k].imm &= hw_wir_mask(hw_wir_bits(t));
        }
}

static void results(parser *p, operands *o)
{
    const char *start = p->at;
    if (!memchr(start, '=', (size_t)(line_end(p) - start)) || (peek(p) != '%' && peek(p) != '_'))
        return;
    do {
        if (o->n == MAX_OPERANDS)
            fail(p, "too many results");
        else
            put_operand(o, value(p));
    } while (p->status == HW_OK && accept(p, ','));
    expect(p, '=');
}

static void instruction(parser *p)
{
    operands dst = { .n = 0 }, src = { .n = 0 };
    guard(p);
    results(p, &dst);
    hw_wir_insn draft = { .count = 1 };
    draft.op = (uint16_t)op_named(p, name(p));
    words(p, &draft);
    sources(p, &draft, &src);
    if (accept_word(p, "imm")) {
        expect(p, '=');
        draft.imm = number(p);
    }
    draft.aux = attribute(p, "aux");
    if (accept(p, '!'))
        draft.loc = number32(p);
    if (peek(p))
        fail(p, "end of line expected");
    if (p->status != HW_OK)
        return;
    hw_wir_insn *i =
        hw_wir_emit(&p->b, (hw_wir_op)draft.op, draft.type, dst.n, dst.v, src.n, src.v);
    draft.flags |= i->flags | HW_I_HEAD; /* each is an instruction of the text */
    draft.guard = i->guard;
    draft.ndst = i->ndst;
    draft.nsrc = i->nsrc;
    draft.dst = i->dst;
    draft.src = i->src;
    *i = draft;
    trim_immediates(i);
    if (hw_wir_is(i, HW_WF_T))
        hw_wir_set_targets(&p->b, src.ntargets, src.targets);
}

/* ---- functions ---- */

static hw_wir_function *current(parser *p)
{
    return &p->m->functions.ptr[p->b.function];
}

static void registers(parser *p)
{
    hw_str type = name(p);
    hw_wir_type t = HW_T_NONE;
    for (hw_wir_type k = HW_T_I1; k <= HW_T_I128; k++)
        if (hw_str_is(type, hw_wir_type_name(k)))
            t = k;
    if (t == HW_T_NONE)
        fail(p, "register type expected");
    while (p->status == HW_OK && accept(p, '%')) {
        hw_str s = name(p);
        size_t before = current(p)->regs.len;
        const char *own =
            s.len && s.ptr[0] != '.' ? hw_arena_printf(p->arena, "%%%.*s", HW_STR_ARG(s)) : NULL;
        if (hw_intern_id(p->regs, s) != before + 1)
            fail(p, "register '%.*s' is declared twice", HW_STR_ARG(s));
        hw_wir_reg_new(&p->b, t, own);
    }
    if (peek(p))
        fail(p, "register expected");
}

static void reg_list(parser *p, uint32_t **regs, uint32_t *n)
{
    HW_VEC(uint32_t) v = { 0 };
    while (p->status == HW_OK && peek(p) == '%')
        hw_vec_push(p->arena, &v, reg(p));
    *regs = v.ptr;
    *n = (uint32_t)v.len;
}

static bool is_label(hw_str line)
{
    return line.ptr[line.len - 1] == ':';
}

static hw_str label_of(hw_str line)
{
    return (hw_str){ line.ptr, line.len - 1 };
}

/* Blocks get their indices in order of appearance, before any instruction is read. */
static void find_blocks(parser *p)
{
    parser save = *p;
    while (next_line(p) && p->line.ptr[0] != '}') {
        if (!is_label(p->line))
            continue;
        hw_str s = label_of(p->line);
        size_t before = current(p)->blocks.len;
        if (hw_intern_id(p->blocks, s) != before + 1) {
            fail(p, "block '%.*s' is defined twice", HW_STR_ARG(s));
            return;
        }
        hw_wir_block_new(&p->b, s.ptr[0] == '.' ? NULL : hw_arena_cstr(p->arena, s));
    }
    p->next = save.next;
    p->number = save.number;
}

static void body_line(parser *p, bool *in_block)
{
    if (is_label(p->line)) {
        p->b.block = lookup(p, p->blocks, label_of(p->line), "block");
        *in_block = true;
    } else if (accept_word(p, "reg")) {
        registers(p);
    } else if (accept_word(p, "params")) {
        reg_list(p, &current(p)->params, &current(p)->nparams);
    } else if (accept_word(p, "results")) {
        reg_list(p, &current(p)->results, &current(p)->nresults);
    } else if (*in_block) {
        instruction(p);
    } else {
        fail(p, "an instruction must stand in a block");
    }
}

static void function(parser *p)
{
    expect(p, '@');
    p->b.function = lookup(p, p->functions, name(p), "function");
    current(p)->defined = !accept_word(p, "undefined");
    current(p)->local_bytes = (uint32_t)attribute(p, "local");
    expect(p, '{');
    if (p->status != HW_OK)
        return;
    p->regs = hw_intern_new(p->arena);
    p->blocks = hw_intern_new(p->arena);
    find_blocks(p);
    bool in_block = false;
    while (p->status == HW_OK) {
        if (!next_line(p)) {
            fail(p, "'}' expected");
            return;
        }
        if (p->line.ptr[0] == '}')
            return;
        body_line(p, &in_block);
    }
}

/* ---- module ---- */

static void find_functions(parser *p)
{
    while (p->status == HW_OK && next_line(p)) {
        bool kernel = accept_word(p, "kernel");
        if (!kernel && !accept_word(p, "func"))
            continue;
        expect(p, '@');
        hw_str s = name(p);
        const char *own = s.len && s.ptr[0] != '#' ? hw_arena_cstr(p->arena, s) : NULL;
        uint32_t index = hw_wir_function_new(p->m, own, kernel);
        if (hw_intern_id(p->functions, s) != index + 1)
            fail(p, "function '%.*s' is defined twice", HW_STR_ARG(s));
    }
    p->next = 0;
    p->number = 0;
}

static void module_line(parser *p)
{
    p->m->static_shared_bytes = (uint32_t)attribute(p, "shared");
    p->m->param_bytes = (uint32_t)attribute(p, "params");
    if (accept_word(p, "reqntid")) {
        expect(p, '=');
        for (int k = 0; k < 3; k++) {
            p->m->reqntid[k] = number32(p);
            if (k < 2)
                expect(p, ',');
        }
    }
    p->m->uses_indirect_calls = attribute(p, "indirect") != 0;
}

static void symbol_line(parser *p)
{
    expect(p, '@');
    hw_str s = name(p);
    const char *own = s.len && s.ptr[0] != '#' ? hw_arena_cstr(p->arena, s) : NULL;
    if (hw_intern_id(p->symbols, s) != p->m->symbols.len + 1)
        fail(p, "symbol '%.*s' is defined twice", HW_STR_ARG(s));
    hw_vec_push(p->arena, &p->m->symbols, (hw_wir_symbol){ own, number32(p) });
}

static void loc_line(parser *p)
{
    if (number(p) != p->m->locs.len)
        fail(p, "locs must be numbered in order from 1");
    hw_wir_loc l = { .file = quoted(p) };
    l.line = number32(p);
    expect(p, ':');
    l.column = number32(p);
    l.ptx_line = (uint32_t)attribute(p, "ptx");
    l.inlined_at = (uint32_t)attribute(p, "inlined");
    if (accept_word(p, "fn")) {
        expect(p, '=');
        l.function = quoted(p);
    }
    hw_vec_push(p->arena, &p->m->locs, l);
}

hw_status hw_wir_parse(hw_arena *a, hw_str text, const char *origin, hw_wir_module **out,
                       hw_diag *d)
{
    parser p = { .arena = a, .m = hw_wir_module_new(a), .diag = d, .origin = origin, .text = text };
    p.functions = hw_intern_new(a);
    p.symbols = hw_intern_new(a);
    p.b.m = p.m;
    find_functions(&p);
    while (p.status == HW_OK && next_line(&p)) {
        if (accept_word(&p, "kernel") || accept_word(&p, "func"))
            function(&p);
        else if (accept_word(&p, "module"))
            module_line(&p);
        else if (accept_word(&p, "symbol"))
            symbol_line(&p);
        else if (accept_word(&p, "loc"))
            loc_line(&p);
        else
            fail(&p, "module, symbol, loc, kernel or func expected");
    }
    if (p.status == HW_OK && p.m->functions.len == 0)
        fail(&p, "no function");
    *out = p.m;
    return p.status;
}

/* SPDX-License-Identifier: Apache-2.0
 * Bodies: statements, instructions and their operands. */
#include "parse.h"

/* ---- operands ---- */

/* Parse operands up to close onto the stack, then give them a home in the arena. */
static bool parse_items(ptx_parser *p, int close, ptx_operand *out)
{
    size_t base = p->stack.len;
    bool ok = true;
    if (!ptx_is(p, close)) {
        do {
            ptx_operand item;
            ok = ptx_parse_operand(p, &item);
            if (ok)
                hw_vec_push(p->scratch, &p->stack, item);
        } while (ok && ptx_accept(p, ','));
    }
    if (ok) {
        out->nitems = (uint32_t)(p->stack.len - base);
        out->items = HW_NEW_N(p->arena, ptx_operand, out->nitems);
        if (out->nitems)
            memcpy(out->items, p->stack.ptr + base, out->nitems * sizeof *out->items);
        ok = ptx_expect(p, close, "after the operands");
    }
    p->stack.len = base;
    return ok;
}

static bool parse_constant(ptx_parser *p, ptx_operand *out)
{
    ptx_const c;
    if (!ptx_parse_const(p, &c))
        return false;
    out->kind = c.is_float ? PTX_O_FLOAT : PTX_O_INT;
    out->is_unsigned = c.is_unsigned;
    out->is_single = c.is_single;
    out->bits = c.bits;
    out->value = c.value;
    return true;
}

static bool parse_offset(ptx_parser *p, int64_t *offset)
{
    ptx_place at = ptx_here(p);
    ptx_const c;
    if (!ptx_parse_const(p, &c))
        return false;
    if (c.is_float)
        return ptx_error(p, at, HW_E_SYNTAX, "an offset must be an integer");
    *offset = (int64_t)((uint64_t)*offset + c.bits);
    return true;
}

static int component_of(hw_str word)
{
    static const char names[] = "xyzwrgba";
    const char *at = word.len == 1 ? strchr(names, word.ptr[0]) : NULL;
    return at ? (int)(at - names) & 3 : -1;
}

/* %r.b0, %r.h10: the parts that a video instruction takes of a register. */
static bool parse_selector(ptx_parser *p, ptx_operand *out)
{
    hw_str w = p->t.text;
    size_t digits = w.len ? w.len - 1 : 0;
    bool halves = w.len && w.ptr[0] == 'h';
    if (w.len > 5 || (w.ptr[0] != 'b' && !halves) || (digits != 1 && digits != (halves ? 2 : 4)))
        return ptx_fail(p, "unexpected %s after an operand", ptx_token_text(p));
    for (size_t k = 0; k < w.len; k++)
        out->bits |= (uint64_t)(uint8_t)w.ptr[k] << (8 * k);
    ptx_next(p);
    return true;
}

/* %v.x of a vector register; t is the dot word */
static bool parse_component(ptx_parser *p, ptx_operand *out)
{
    if (out->kind == PTX_O_REG && p->form->is_video)
        return parse_selector(p, out);
    int c = component_of(p->t.text);
    if (out->kind != PTX_O_VECTOR || c < 0 || (uint32_t)c >= out->nitems)
        return ptx_fail(p, "unexpected %s after an operand", ptx_token_text(p));
    *out = out->items[c];
    ptx_next(p);
    return true;
}

static bool parse_special(ptx_parser *p, ptx_operand *out, hw_str name)
{
    out->kind = PTX_O_SREG;
    out->name = name;
    if (!ptx_is_special_vector(name) || p->t.kind != PTX_T_DOT)
        return true;
    int c = component_of(p->t.text);
    if (c < 0)
        return ptx_fail(p, "special register '%%%.*s' has no part %s", HW_STR_ARG(name),
                        ptx_token_text(p));
    out->component = (int8_t)c;
    ptx_next(p);
    return true;
}

/* sym[i] is the address of element i; outside mov it is what [sym+offset] is. */
static bool parse_element(ptx_parser *p, ptx_operand *out)
{
    uint64_t index;
    int64_t width = ptx_type_bits(out->symbol->type) / 8;
    ptx_next(p);
    if (!ptx_parse_int(p, INT32_MAX, "index", &index) || !ptx_expect(p, ']', "after the index"))
        return false;
    out->offset = (int64_t)index * width;
    if (p->form->is_move)
        return true;
    ptx_operand *base = HW_NEW(p->arena, ptx_operand);
    *base = *out;
    out->kind = PTX_O_ADDRESS;
    out->items = base;
    out->nitems = 1;
    return true;
}

/* What may follow a name that stands for something. */
static bool parse_suffix(ptx_parser *p, ptx_operand *out)
{
    if (p->t.kind == PTX_T_DOT)
        return parse_component(p, out);
    if (out->kind != PTX_O_SYMBOL)
        return true;
    if (out->symbol->kind == PTX_SYM_FUNCTION && !p->form->is_call)
        out->symbol->address_taken = true;
    if (ptx_is(p, '['))
        return parse_element(p, out);
    if (ptx_is(p, '+') || ptx_is(p, '-'))
        return parse_offset(p, &out->offset);
    return true;
}

static bool parse_name(ptx_parser *p, ptx_operand *out)
{
    hw_str name = p->t.text;
    if (name.len == 1 && name.ptr[0] == '_') {
        out->kind = PTX_O_SINK;
        ptx_next(p);
        return true;
    }
    const ptx_binding *b = ptx_lookup(p, name);
    if (!b && hw_str_is(name, "WARP_SZ"))
        return parse_constant(p, out);
    if (b && !(p->form->is_branch && b->kind != PTX_B_REG)) {
        ptx_next(p);
        return ptx_resolve_name(p, out, b) && parse_suffix(p, out);
    }
    if (name.ptr[0] == '%') {
        hw_str rest = { name.ptr + 1, name.len - 1 };
        if (!ptx_is_special(rest))
            return ptx_undeclared(p, name, ptx_here(p));
        ptx_next(p);
        return parse_special(p, out, rest);
    }
    out->kind = PTX_O_NAME; /* a label, perhaps further on */
    out->name = name;
    p->saw_name = true;
    ptx_next(p);
    return true;
}

static bool parse_base(ptx_parser *p, ptx_operand *base)
{
    *base = (ptx_operand){ .component = -1, .place = ptx_here(p) };
    if (p->t.kind != PTX_T_NAME) {
        if (!parse_constant(p, base))
            return false;
        return base->kind == PTX_O_INT || ptx_error(p, base->place, HW_E_SYNTAX,
                                                    "an address cannot be a floating-point number");
    }
    if (!parse_name(p, base))
        return false;
    if (base->kind == PTX_O_ADDRESS)
        return ptx_error(p, base->place, HW_E_SYNTAX, "an element stands without further brackets");
    if (base->kind == PTX_O_REG && (ptx_is(p, '+') || ptx_is(p, '-')))
        return parse_offset(p, &base->offset);
    return true;
}

/* [base+offset, further...], t is after the '[' */
static bool parse_address(ptx_parser *p, ptx_operand *out)
{
    size_t mark = p->stack.len;
    ptx_operand item;
    bool ok = parse_base(p, &item);
    if (ok)
        hw_vec_push(p->scratch, &p->stack, item);
    while (ok && ptx_accept(p, ',')) {
        ok = ptx_parse_operand(p, &item);
        if (ok)
            hw_vec_push(p->scratch, &p->stack, item);
    }
    if (ok) {
        out->kind = PTX_O_ADDRESS;
        out->nitems = (uint32_t)(p->stack.len - mark);
        out->items = HW_NEW_N(p->arena, ptx_operand, out->nitems);
        memcpy(out->items, p->stack.ptr + mark, out->nitems * sizeof *out->items);
    }
    p->stack.len = mark;
    return ok && ptx_expect(p, ']', "after the address");
}

static bool parse_negated(ptx_parser *p, ptx_operand *out)
{
    ptx_next(p);
    if (p->t.kind != PTX_T_NAME)
        return ptx_fail(p, "expected a predicate after '!', found %s", ptx_token_text(p));
    if (!parse_name(p, out))
        return false;
    if (out->kind != PTX_O_REG)
        return ptx_error(p, out->place, HW_E_SYNTAX, "'!' takes a predicate register");
    out->negated = true;
    return true;
}

static bool parse_minus(ptx_parser *p, ptx_operand *out)
{
    ptx_next(p);
    if (!parse_name(p, out))
        return false;
    if (out->kind != PTX_O_REG)
        return ptx_error(p, out->place, HW_E_SYNTAX, "'-' takes a register or a number");
    out->minus = true;
    return true;
}

static bool next_is_name(const ptx_parser *p)
{
    const char *s = p->at;
    while (s < p->end && (*s == ' ' || *s == '\t'))
        s++;
    return s < p->end && (*s == '%' || *s == '_' || *s == '$' || (*s >= 'A' && *s <= 'Z') ||
                          (*s >= 'a' && *s <= 'z'));
}

static bool parse_plain(ptx_parser *p, ptx_operand *out)
{
    if (p->t.kind == PTX_T_NAME)
        return parse_name(p, out);
    if (ptx_accept(p, '[')) {
        return parse_address(p, out);
    }
    if (ptx_accept(p, '{')) {
        out->kind = PTX_O_VECTOR;
        return parse_items(p, '}', out);
    }
    if (p->form->is_call && ptx_accept(p, '(')) {
        out->kind = PTX_O_LIST;
        return parse_items(p, ')', out);
    }
    if (ptx_is(p, '!') && next_is_name(p))
        return parse_negated(p, out);
    if (ptx_is(p, '-') && next_is_name(p))
        return parse_minus(p, out);
    if (ptx_starts_const(p))
        return parse_constant(p, out);
    return p->t.kind == PTX_T_BAD ? false
                                  : ptx_fail(p, "expected an operand, found %s", ptx_token_text(p));
}

static bool parse_pair(ptx_parser *p, ptx_operand *first)
{
    ptx_operand *items = HW_NEW_N(p->arena, ptx_operand, 2);
    ptx_next(p);
    items[0] = *first;
    items[1] = (ptx_operand){ .component = -1, .place = ptx_here(p) };
    if (p->t.kind != PTX_T_NAME)
        return ptx_fail(p, "expected a predicate after '|', found %s", ptx_token_text(p));
    if (!parse_name(p, &items[1]))
        return false;
    first->kind = PTX_O_PAIR;
    first->nitems = 2;
    first->items = items;
    return true;
}

bool ptx_parse_operand(ptx_parser *p, ptx_operand *out)
{
    *out = (ptx_operand){ .component = -1, .place = ptx_here(p) };
    if (p->nesting >= PTX_MAX_NESTING)
        return ptx_fail(p, "operands are nested too deeply");
    p->nesting++;
    bool ok = parse_plain(p, out);
    if (ok && ptx_is(p, '|'))
        ok = parse_pair(p, out);
    p->nesting--;
    return ok;
}

/* ---- instructions ---- */

/* A spelling met for the first time: "st.shared::cta.u32" -> st, {shared::cta, u32}. */
static const ptx_form *add_form(ptx_parser *p, hw_str spelled, uint64_t hash)
{
    ptx_form *f = HW_NEW(p->arena, ptx_form);
    HW_VEC(hw_str) parts = { 0 };
    size_t begin = 0;
    for (size_t i = 0; i <= spelled.len; i++) {
        if (i < spelled.len && spelled.ptr[i] != '.')
            continue;
        hw_vec_push(p->arena, &parts, (hw_str){ spelled.ptr + begin, i - begin });
        begin = i + 1;
    }
    f->spelled = spelled;
    f->opcode = parts.ptr[0];
    f->mods = parts.ptr + 1;
    f->nmods = (uint32_t)parts.len - 1;
    f->is_call = hw_str_is(f->opcode, "call");
    f->is_branch = hw_str_is(f->opcode, "bra");
    f->is_video = f->opcode.len > 1 && f->opcode.ptr[0] == 'v' && !hw_str_is(f->opcode, "vote");
    f->is_move = hw_str_is(f->opcode, "mov") || hw_str_is(f->opcode, "cvta");
    ptx_table_add(p->scratch, &p->forms, f, hash);
    return f;
}

static const ptx_form *parse_form(ptx_parser *p)
{
    hw_str spelled = ptx_lex_opcode(p);
    while (p->t.kind == PTX_T_DOT) { /* "mov .u32": the modifiers stand apart */
        hw_str more = ptx_lex_opcode(p);
        const char *all = hw_arena_printf(p->arena, "%.*s%.*s", HW_STR_ARG(spelled),
                                          (int)more.len + 1, more.ptr - 1);
        spelled = hw_str_of(all);
    }
    uint64_t hash = hw_hash64(spelled.ptr, spelled.len, 0);
    const ptx_form *f = ptx_table_find(&p->forms, spelled, hash);
    return f ? f : add_form(p, spelled, hash);
}

static bool parse_guard(ptx_parser *p, ptx_insn *i)
{
    i->guard = -1;
    if (!ptx_accept(p, '@'))
        return true;
    i->guard_negated = ptx_accept(p, '!');
    if (p->t.kind != PTX_T_NAME)
        return ptx_fail(p, "expected a predicate after '@', found %s", ptx_token_text(p));
    ptx_place at = ptx_here(p);
    ptx_operand reg = { .place = at };
    const ptx_binding *b = ptx_lookup(p, p->t.text);
    if (!b)
        return ptx_undeclared(p, p->t.text, at);
    ptx_next(p);
    if (!ptx_resolve_name(p, &reg, b))
        return false;
    if (reg.kind == PTX_O_VECTOR && p->t.kind == PTX_T_DOT && !parse_component(p, &reg))
        return false;
    if (reg.kind != PTX_O_REG || p->f->regs.ptr[reg.reg].type != PTX_PRED)
        return ptx_error(p, at, HW_E_SYNTAX, "the guard is not a predicate register");
    i->guard = (int32_t)reg.reg;
    return true;
}

static void wait_for_names(ptx_parser *p, uint32_t insn, ptx_operand *ops, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        ptx_operand *o = &ops[i];
        if (o->kind == PTX_O_NAME)
            ptx_wait_for(p, (ptx_pending){ .insn = insn, .operand = o });
        else if (o->kind >= PTX_O_ADDRESS && o->kind <= PTX_O_LIST)
            wait_for_names(p, insn, o->items, o->nitems);
    }
}

/* In a call only the callee itself may be a function named without its address being taken. */
static void note_call(ptx_parser *p, const ptx_insn *i)
{
    bool callee_seen = false;
    for (uint32_t k = 0; k < i->nops; k++) {
        const ptx_operand *o = &i->ops[k];
        if (o->kind == PTX_O_REG && !callee_seen)
            p->f->calls_indirectly = true;
        callee_seen |= o->kind != PTX_O_LIST;
        for (uint32_t j = 0; o->kind == PTX_O_LIST && j < o->nitems; j++)
            if (o->items[j].kind == PTX_O_SYMBOL)
                o->items[j].symbol->address_taken = true;
    }
}

static bool parse_operands(ptx_parser *p, ptx_insn *i)
{
    ptx_operand list = { 0 };
    p->saw_name = false;
    p->nesting = 0;
    size_t base = p->stack.len;
    bool ok = true;
    if (!ptx_is(p, ';')) {
        do {
            ptx_operand o;
            ok = ptx_parse_operand(p, &o);
            if (ok)
                hw_vec_push(p->scratch, &p->stack, o);
        } while (ok && ptx_accept(p, ','));
    }
    if (ok) {
        list.nitems = (uint32_t)(p->stack.len - base);
        list.items = HW_NEW_N(p->arena, ptx_operand, list.nitems);
        if (list.nitems)
            memcpy(list.items, p->stack.ptr + base, list.nitems * sizeof *list.items);
    }
    p->stack.len = base;
    i->ops = list.items;
    i->nops = list.nitems;
    return ok;
}

static bool parse_instruction(ptx_parser *p)
{
    ptx_insn i = { .loc = p->loc };
    if (!parse_guard(p, &i))
        return false;
    i.place = ptx_here(p);
    if (p->t.kind != PTX_T_NAME)
        return p->t.kind == PTX_T_BAD
                   ? false
                   : ptx_fail(p, "expected an instruction, found %s", ptx_token_text(p));
    p->form = parse_form(p);
    i.opcode = p->form->opcode;
    i.mods = p->form->mods;
    i.nmods = p->form->nmods;
    if (!parse_operands(p, &i))
        return false;
    uint32_t index = (uint32_t)p->insns.len;
    if (p->saw_name)
        wait_for_names(p, index, i.ops, i.nops);
    if (p->form->is_call)
        note_call(p, &i);
    hw_vec_push(p->scratch, &p->insns, i);
    if (ptx_expect(p, ';', "after the instruction"))
        return true;
    p->insns.ptr[index].opcode.len = 0; /* one error is enough */
    return false;
}

/* ---- labels ---- */

/* name: .branchtargets A, B; */
static bool parse_branchtargets(ptx_parser *p, hw_str name, ptx_place at)
{
    ptx_binding *b = ptx_bind(p, name, at, PTX_B_SYMBOL, p->depth);
    if (!b)
        return false;
    ptx_symbol *s = b->symbol = HW_NEW(p->arena, ptx_symbol);
    *s = (ptx_symbol){ .name = name, .kind = PTX_SYM_TARGETS, .function = p->f, .place = at };
    s->targets = HW_NEW(p->arena, ptx_branch_targets);
    s->targets->name = name;
    size_t base = p->stack.len;
    ptx_next(p);
    do {
        if (p->t.kind != PTX_T_NAME)
            return ptx_fail(p, "expected a label, found %s", ptx_token_text(p));
        ptx_operand o = { .kind = PTX_O_NAME, .name = p->t.text, .place = ptx_here(p) };
        hw_vec_push(p->scratch, &p->stack, o);
        ptx_next(p);
    } while (ptx_accept(p, ','));
    uint32_t n = (uint32_t)(p->stack.len - base);
    p->stack.len = base;
    s->targets->n = n;
    s->targets->labels = HW_NEW_N(p->arena, uint32_t, n);
    ptx_operand *ops = HW_NEW_N(p->scratch, ptx_operand, n);
    memcpy(ops, p->stack.ptr + base, n * sizeof *ops);
    for (uint32_t i = 0; i < n; i++)
        ptx_wait_for(p, (ptx_pending){ UINT32_MAX, &ops[i], &s->targets->labels[i] });
    return ptx_expect(p, ';', "after the branch targets");
}

static bool parse_label(ptx_parser *p)
{
    hw_str name = p->t.text;
    ptx_place at = ptx_here(p);
    ptx_next(p);
    ptx_next(p);
    if (ptx_is_dot(p, "branchtargets"))
        return parse_branchtargets(p, name, at);
    if (ptx_is_dot(p, "callprototype"))
        return ptx_parse_prototype(p, name, at);
    if (ptx_is_dot(p, "calltargets"))
        return ptx_parse_calltargets(p, name, at);
    ptx_binding *b = ptx_bind(p, name, at, PTX_B_LABEL, p->depth);
    if (!b)
        return false;
    b->index = (uint32_t)p->f->labels.len;
    hw_vec_push(p->arena, &p->f->labels, (ptx_label){ name, (uint32_t)p->insns.len });
    return true;
}

/* ---- statements ---- */

static bool parse_body_directive(ptx_parser *p)
{
    if (ptx_is_space(p)) {
        bool registers = ptx_is_dot(p, "reg");
        if (ptx_parse_declaration(p, PTX_LOCAL))
            return true;
        p->lost_regs = true;
        p->lost_names |= !registers;
        return false;
    }
    if (ptx_is_dot(p, "loc"))
        return ptx_parse_loc(p);
    if (ptx_is_dot(p, "pragma"))
        return ptx_parse_pragma(p);
    if (ptx_is_dot(p, "file"))
        return ptx_parse_file(p);
    return ptx_fail(p, "unexpected %s in a function", ptx_token_text(p));
}

static bool parse_statement(ptx_parser *p)
{
    if (p->t.kind == PTX_T_DOT)
        return parse_body_directive(p);
    if (p->t.kind == PTX_T_NAME && ptx_follows_colon(p))
        return parse_label(p);
    return parse_instruction(p);
}

/* After an error: to behind the next ';', or to a place where a statement must begin. */
static void skip_statement(ptx_parser *p, uint32_t begun_at)
{
    bool quiet = p->quiet;
    p->quiet = true;
    while (p->t.kind != PTX_T_END) {
        if (ptx_accept(p, ';'))
            break;
        bool moved = p->t.offset != begun_at;
        if (moved && p->t.first_on_line && (ptx_is(p, '}') || p->t.kind == PTX_T_DOT))
            break;
        if (moved && p->t.first_on_line && p->t.kind == PTX_T_NAME && ptx_follows_colon(p))
            break;
        ptx_next(p);
    }
    p->quiet = quiet;
}

/* A statement that lacks only its ';' at the end of a line needs no skipping. */
static bool begins_statement(const ptx_parser *p)
{
    return p->t.first_on_line && p->t.kind != PTX_T_PUNCT && p->t.kind != PTX_T_BAD;
}

static void check_body(ptx_parser *p)
{
    for (size_t k = 0; k < p->f->insns.len && !p->stop; k++) {
        ptx_insn *i = &p->f->insns.ptr[k];
        if (i->opcode.len == 0) /* reported while its names were resolved */
            continue;
        uint32_t before = p->d->errors;
        hw_status s = hw_ptx_check(p->u, p->f, i, p->d);
        if (s == HW_OK)
            continue;
        if (p->errors == 0)
            p->status = s;
        p->errors += p->d->errors - before;
        if (p->errors > PTX_MAX_ERRORS) {
            hw_note_at(p->d, (hw_place){ .file = p->u->origin },
                       "more than %d errors; the rest of the text is not checked", PTX_MAX_ERRORS);
            p->stop = true;
        }
    }
}

static void keep_instructions(ptx_parser *p)
{
    ptx_function *f = p->f;
    f->insns.len = f->insns.cap = p->insns.len;
    f->insns.ptr = HW_NEW_N(p->arena, ptx_insn, p->insns.len);
    if (p->insns.len)
        memcpy(f->insns.ptr, p->insns.ptr, p->insns.len * sizeof *p->insns.ptr);
}

/* Nested braces are scopes, not recursion. Ends when the body's own brace has closed. */
static void parse_statements(ptx_parser *p)
{
    uint32_t outside = p->depth - 1;
    while (p->t.kind != PTX_T_END) {
        if (ptx_is(p, '}')) {
            p->f->end_line = p->t.line;
            ptx_scope_close(p);
            ptx_next(p);
            if (p->depth == outside)
                return;
            continue;
        }
        if (ptx_is(p, '{')) {
            if (p->depth + 1 == PTX_MAX_SCOPES) {
                ptx_fail(p, "braces are nested too deeply");
                p->stop = true;
                break;
            }
            ptx_scope_open(p);
            ptx_next(p);
            continue;
        }
        uint32_t at = p->t.offset;
        if (!parse_statement(p) && !(p->t.offset != at && begins_statement(p)))
            skip_statement(p, at);
    }
    ptx_fail(p, "the function '%.*s' has no closing brace", HW_STR_ARG(p->f->symbol->name));
    p->stop = true;
    while (p->depth > outside)
        ptx_scope_close(p);
}

void ptx_parse_body(ptx_parser *p)
{
    p->insns.len = 0;
    p->loc = 0;
    p->lost_regs = false;
    ptx_next(p);
    ptx_scope_open(p);
    parse_statements(p);
    keep_instructions(p);
    check_body(p);
}

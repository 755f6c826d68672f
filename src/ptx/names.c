/* SPDX-License-Identifier: Apache-2.0
 * What a name means where it stands: scopes, register ranges, pending labels; and the errors. */
#include "parse.h"

/* ---- errors ---- */

bool ptx_error(ptx_parser *p, ptx_place at, hw_status s, const char *fmt, ...)
{
    if (p->stop || p->quiet)
        return false;
    va_list ap;
    va_start(ap, fmt);
    const char *text = hw_arena_vprintf(p->scratch, fmt, ap);
    va_end(ap);
    hw_place place = hw_ptx_place(p->u, at);
    if (p->errors == 0)
        p->status = s;
    if (p->errors++ == PTX_MAX_ERRORS) {
        hw_note_at(p->d, (hw_place){ .file = p->u->origin },
                   "more than %d errors; the rest of the text is not checked", PTX_MAX_ERRORS);
        p->stop = true;
        return false;
    }
    hw_fail_at(p->d, s, place, "%s", text);
    return false;
}

const char *ptx_token_text(ptx_parser *p)
{
    const ptx_token *t = &p->t;
    int n = t->text.len < 60 ? (int)t->text.len : 60;
    switch ((ptx_token_kind)t->kind) {
    case PTX_T_END:
        return "the end of the text";
    case PTX_T_DOT:
        return hw_arena_printf(p->scratch, "'.%.*s'", n, t->text.ptr);
    case PTX_T_STRING:
        return "a string";
    case PTX_T_PUNCT:
        n = t->punct < 128 ? 1 : 2;
        return hw_arena_printf(p->scratch, "'%.*s'", n, t->text.ptr);
    default:
        if (!n) /* a number's text is where it stands */
            return "a number";
        return hw_arena_printf(p->scratch, "'%.*s'", n, t->text.ptr);
    }
}

hw_place hw_ptx_place(const struct hw_ptx_unit *u, ptx_place p)
{
    hw_place out = { .file = u->origin, .line = p.line };
    size_t at = p.offset < u->text.len ? p.offset : u->text.len;
    size_t begin = at, end = at;
    while (begin > 0 && u->text.ptr[begin - 1] != '\n')
        begin--;
    while (end < u->text.len && u->text.ptr[end] != '\n' && u->text.ptr[end] != '\r' &&
           u->text.ptr[end] != 0)
        end++;
    out.column = (uint32_t)(at - begin) + 1;
    /* A line too long to show (one-line files) is left out; the column still tells. */
    if (end - begin <= 400)
        out.text = (hw_str){ u->text.ptr + begin, end - begin };
    return out;
}

/* ---- tables ---- */

void *ptx_table_find(const ptx_table *t, hw_str key, uint64_t hash)
{
    if (!t->slots)
        return NULL;
    for (size_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        const ptx_slot *s = &t->slots[i];
        if (!s->entry || (s->hash == hash && hw_str_eq(*(hw_str *)s->entry, key)))
            return s->entry;
    }
}

static void put(ptx_table *t, ptx_slot s)
{
    size_t i = s.hash & t->mask;
    while (t->slots[i].entry)
        i = (i + 1) & t->mask;
    t->slots[i] = s;
}

void ptx_table_add(hw_arena *a, ptx_table *t, void *entry, uint64_t hash)
{
    if (t->used * 2 >= t->mask) {
        ptx_table grown = { .mask = t->mask ? t->mask * 2 + 1 : 255, .used = t->used };
        grown.slots = HW_NEW_N(a, ptx_slot, grown.mask + 1);
        for (size_t i = 0; t->slots && i <= t->mask; i++)
            if (t->slots[i].entry)
                put(&grown, t->slots[i]);
        *t = grown;
    }
    put(t, (ptx_slot){ hash, entry });
    t->used++;
}

/* ---- names ---- */

static void split_number(ptx_parser *p, ptx_name *n)
{
    size_t len = n->text.len;
    while (len > 1 && n->text.ptr[len - 1] >= '0' && n->text.ptr[len - 1] <= '9')
        len--;
    if (len == n->text.len || n->text.len - len > 18)
        return;
    for (size_t i = len; i < n->text.len; i++)
        n->number = n->number * 10 + (uint64_t)(n->text.ptr[i] - '0');
    n->prefix = ptx_name_of(p, (hw_str){ n->text.ptr, len });
}

ptx_name *ptx_name_of(ptx_parser *p, hw_str text)
{
    uint64_t hash = hw_hash64(text.ptr, text.len, 0);
    ptx_name *n = ptx_table_find(&p->names, text, hash);
    if (n)
        return n;
    n = HW_NEW(p->scratch, ptx_name);
    n->text = text;
    ptx_table_add(p->scratch, &p->names, n, hash);
    split_number(p, n);
    return n;
}

static ptx_binding *push_binding(ptx_parser *p, ptx_name *n, uint32_t depth)
{
    ptx_binding *b = p->free_bindings;
    if (b)
        p->free_bindings = b->next;
    else
        b = HW_NEW(p->scratch, ptx_binding);
    ptx_scope *s = &p->scopes[depth];
    *b = (ptx_binding){ .depth = depth, .name = n, .outer = n->top, .next = s->bindings };
    n->top = b;
    s->bindings = b;
    s->nbindings++;
    return b;
}

/* The innermost range that covers n. */
static const ptx_range *range_of(const ptx_name *n)
{
    const ptx_range *r = n->prefix ? n->prefix->range : NULL;
    while (r && n->number >= r->count)
        r = r->outer;
    return r;
}

ptx_binding *ptx_lookup(ptx_parser *p, hw_str text)
{
    ptx_name *n = ptx_name_of(p, text);
    ptx_binding *b = n->top;
    const ptx_range *r = range_of(n);
    if (!r || (b && b->depth >= r->depth))
        return b;
    b = push_binding(p, n, r->depth);
    b->kind = PTX_B_REG;
    b->index = ptx_add_reg(p, text, r->type, r->vector);
    return b;
}

uint32_t ptx_add_reg(ptx_parser *p, hw_str name, ptx_type type, uint8_t vector)
{
    static const char *const parts[] = { ".x", ".y", ".z", ".w" };
    ptx_function *f = p->f;
    uint32_t index = (uint32_t)f->regs.len;
    hw_vec_push(p->arena, &f->regs, (ptx_reg){ name, type, vector });
    for (uint8_t i = 0; vector > 1 && i < vector; i++) {
        char *part = hw_arena_printf(p->arena, "%.*s%s", HW_STR_ARG(name), parts[i]);
        hw_vec_push(p->arena, &f->regs, (ptx_reg){ hw_str_of(part), type, 1 });
    }
    return index;
}

static bool duplicate(ptx_parser *p, hw_str text, ptx_place at)
{
    return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' is declared twice", HW_STR_ARG(text));
}

ptx_binding *ptx_bind(ptx_parser *p, hw_str text, ptx_place at, int kind, uint32_t depth)
{
    ptx_name *n = ptx_name_of(p, text);
    const ptx_range *r = range_of(n);
    if ((n->top && n->top->depth == depth && n->top->kind != PTX_B_POISON) ||
        (r && r->depth == depth)) {
        duplicate(p, text, at);
        return NULL;
    }
    ptx_binding *b = push_binding(p, n, depth);
    b->kind = kind;
    return b;
}

bool ptx_bind_range(ptx_parser *p, hw_str prefix, ptx_place at, const ptx_range *like)
{
    ptx_name *n = ptx_name_of(p, prefix);
    if (n->range && n->range->depth == p->depth)
        return duplicate(p, prefix, at);
    ptx_scope *s = &p->scopes[p->depth];
    if (s->nbindings < 1000) /* beyond, the second declaration shadows: no quadratic search */
        for (const ptx_binding *b = s->bindings; b; b = b->next)
            if (b->name->prefix == n && b->name->number < like->count)
                return duplicate(p, b->name->text, at);
    ptx_range *r = p->free_ranges;
    if (r)
        p->free_ranges = r->next;
    else
        r = HW_NEW(p->scratch, ptx_range);
    *r = *like;
    r->depth = p->depth;
    r->name = n;
    r->outer = n->range;
    r->next = s->ranges;
    n->range = s->ranges = r;
    return true;
}

void ptx_ref(ptx_parser *p, ptx_symbol *s)
{
    if (!p->f || s->mark == p->mark)
        return;
    s->mark = p->mark;
    hw_vec_push(p->arena, &p->f->refs, s);
}

/* ---- names in operands ---- */

static ptx_operand *vector_parts(ptx_parser *p, uint32_t reg, ptx_place at)
{
    uint8_t n = p->f->regs.ptr[reg].vector;
    ptx_operand *items = HW_NEW_N(p->arena, ptx_operand, n);
    for (uint8_t i = 0; i < n; i++)
        items[i] =
            (ptx_operand){ .kind = PTX_O_REG, .component = -1, .reg = reg + 1 + i, .place = at };
    return items;
}

static void resolve_symbol(ptx_parser *p, ptx_operand *op, ptx_symbol *s)
{
    op->kind = PTX_O_SYMBOL;
    op->offset = 0;
    op->symbol = s;
    if (s->kind == PTX_SYM_VARIABLE || s->kind == PTX_SYM_FUNCTION)
        ptx_ref(p, s);
}

bool ptx_resolve_name(ptx_parser *p, ptx_operand *op, const ptx_binding *b)
{
    switch (b->kind) {
    case PTX_B_REG:
        op->kind = PTX_O_REG;
        op->reg = b->index;
        op->offset = 0;
        op->symbol = NULL;
        if (p->f->regs.ptr[b->index].vector > 1) {
            op->kind = PTX_O_VECTOR;
            op->items = vector_parts(p, b->index, op->place);
            op->nitems = p->f->regs.ptr[b->index].vector;
        }
        return true;
    case PTX_B_LABEL:
        op->kind = PTX_O_LABEL;
        op->label = b->index;
        return true;
    case PTX_B_SYMBOL:
        resolve_symbol(p, op, b->symbol);
        return true;
    default:
        return false;
    }
}

/* Names near at hand that resemble want, for "did you mean". */
static const char *suggest(ptx_parser *p, hw_str want)
{
    enum { MOST = 4000 };
    HW_VEC(const char *) near = { 0 };
    uint32_t slack = (uint32_t)want.len / 3 + 2, seen = 0;
    for (uint32_t depth = p->depth + 1; depth-- > 0;) {
        for (const ptx_binding *b = p->scopes[depth].bindings; b && seen < MOST; b = b->next) {
            size_t len = b->name->text.len;
            if (b->kind == PTX_B_POISON || len + slack < want.len || want.len + slack < len)
                continue;
            hw_vec_push(p->scratch, &near, hw_arena_cstr(p->scratch, b->name->text));
            seen++;
        }
    }
    return near.len ? hw_nearest(hw_arena_cstr(p->scratch, want), near.ptr, near.len) : NULL;
}

bool ptx_undeclared(ptx_parser *p, hw_str text, ptx_place at)
{
    ptx_name *n = ptx_name_of(p, text);
    if (!n->top)
        push_binding(p, n, p->f ? 1 : 0)->kind = PTX_B_POISON;
    if (text.ptr[0] == '%' ? p->lost_regs : p->lost_regs || p->lost_names)
        return false;
    int len = (int)text.len;
    const ptx_range *r = n->prefix ? n->prefix->range : NULL;
    if (r)
        return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' is not declared: %.*s<%llu> ends before it",
                         len, text.ptr, HW_STR_ARG(r->name->text), (unsigned long long)r->count);
    const char *near = suggest(p, text);
    if (near)
        return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' is not declared; did you mean '%s'?", len,
                         text.ptr, near);
    return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' is not declared", len, text.ptr);
}

/* ---- scopes ---- */

void ptx_scope_open(ptx_parser *p)
{
    HW_CHECK(p->depth + 1 < PTX_MAX_SCOPES);
    ptx_scope *s = &p->scopes[++p->depth];
    s->bindings = NULL;
    s->ranges = NULL;
    s->nbindings = 0;
    s->pending.len = 0;
}

void ptx_wait_for(ptx_parser *p, ptx_pending w)
{
    hw_vec_push(p->scratch, &p->scopes[p->depth].pending, w);
}

/* Only labels may stand behind their use. */
static bool is_behind(const ptx_binding *b, ptx_place use)
{
    if (b->kind == PTX_B_REG)
        return true;
    return b->kind == PTX_B_SYMBOL && b->symbol->place.offset > use.offset;
}

static bool settle_as(ptx_parser *p, const ptx_binding *b, const ptx_pending *w, hw_str text)
{
    ptx_place at = w->operand->place;
    if (is_behind(b, at))
        return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' is used before it is declared",
                         HW_STR_ARG(text));
    if (w->label && b->kind != PTX_B_LABEL)
        return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' is not a label", HW_STR_ARG(text));
    if (w->label)
        *w->label = b->index;
    return ptx_resolve_name(p, w->operand, b);
}

static void settle(ptx_parser *p, ptx_pending w)
{
    hw_str text = w.operand->name;
    const ptx_binding *b = ptx_lookup(p, text);
    if (!b && p->depth > 2) { /* maybe a label further out */
        hw_vec_push(p->scratch, &p->scopes[p->depth - 1].pending, w);
        return;
    }
    bool ok = b ? settle_as(p, b, &w, text) : ptx_undeclared(p, text, w.operand->place);
    if (!ok && w.insn != UINT32_MAX)
        p->insns.ptr[w.insn].opcode.len = 0; /* nothing more to say about it */
}

static void drop_bindings(ptx_parser *p, ptx_scope *s)
{
    for (ptx_binding *b = s->bindings, *next; b; b = next) {
        next = b->next;
        b->name->top = b->outer;
        b->next = p->free_bindings;
        p->free_bindings = b;
    }
    for (ptx_range *r = s->ranges, *next; r; r = next) {
        next = r->next;
        r->name->range = r->outer;
        r->next = p->free_ranges;
        p->free_ranges = r;
    }
    s->bindings = NULL;
    s->ranges = NULL;
}

void ptx_scope_close(ptx_parser *p)
{
    ptx_scope *s = &p->scopes[p->depth];
    for (size_t i = 0; i < s->pending.len; i++)
        settle(p, s->pending.ptr[i]);
    s->pending.len = 0;
    drop_bindings(p, s);
    p->depth--;
}

/* SPDX-License-Identifier: Apache-2.0
 * Declarations: registers, and variables of every state space. */
#include "parse.h"

static const struct {
    const char *word;
    ptx_space space;
} spaces[] = {
    { "reg", PTX_SPACE_REG },       { "param", PTX_SPACE_PARAM },   { "local", PTX_SPACE_LOCAL },
    { "shared", PTX_SPACE_SHARED }, { "global", PTX_SPACE_GLOBAL }, { "const", PTX_SPACE_CONST },
    { "tex", PTX_SPACE_TEX },
};

static ptx_space space_here(const ptx_parser *p)
{
    for (size_t i = 0; i < HW_COUNTOF(spaces); i++)
        if (ptx_is_dot(p, spaces[i].word))
            return spaces[i].space;
    return PTX_SPACE_NONE;
}

bool ptx_is_space(const ptx_parser *p)
{
    return space_here(p) != PTX_SPACE_NONE;
}

/* ---- the head ---- */

static bool parse_align(ptx_parser *p, uint32_t *align)
{
    enum { LARGEST = 1 << 16 };
    uint64_t n;
    ptx_place at = ptx_here(p);
    if (!ptx_parse_int(p, LARGEST, "alignment", &n))
        return false;
    if (n == 0 || (n & (n - 1)))
        return ptx_error(p, at, HW_E_SYNTAX, "alignment must be a power of two");
    *align = (uint32_t)n;
    return true;
}

/* .attribute(.managed, .unified(a, b)) */
bool ptx_parse_attribute(ptx_parser *p, bool *managed)
{
    if (!ptx_expect(p, '(', "after .attribute"))
        return false;
    do {
        if (p->t.kind != PTX_T_DOT)
            return ptx_fail(p, "expected an attribute, found %s", ptx_token_text(p));
        if (ptx_is_dot(p, "managed"))
            *managed = true;
        else if (!ptx_is_dot(p, "unified"))
            return ptx_fail(p, "unknown attribute %s", ptx_token_text(p));
        ptx_next(p);
        if (!ptx_accept(p, '('))
            continue;
        uint64_t ignored;
        do
            if (!ptx_parse_int(p, UINT64_MAX, "attribute", &ignored))
                return false;
        while (ptx_accept(p, ','));
        if (!ptx_expect(p, ')', "in the attribute"))
            return false;
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ')', "in the attribute");
}

/* What .ptr says is about what the pointer points to: .ptr .global .align 8 */
static bool parse_pointer(ptx_parser *p, ptx_decl *d)
{
    uint32_t ignored;
    d->is_pointer = true;
    if (ptx_is_space(p))
        ptx_next(p);
    if (!ptx_is_dot(p, "align"))
        return true;
    ptx_next(p);
    return parse_align(p, &ignored);
}

static bool parse_head_word(ptx_parser *p, ptx_decl *d)
{
    hw_str w = p->t.text;
    ptx_type type;
    if (ptx_type_of(w, &type)) {
        if (d->type != PTX_NONE)
            return ptx_fail(p, "second type '.%.*s' in the declaration", HW_STR_ARG(w));
        d->type = type;
    } else if (w.len == 2 && w.ptr[0] == 'v' && (w.ptr[1] == '2' || w.ptr[1] == '4')) {
        d->vector = (uint8_t)(w.ptr[1] - '0');
    } else if (hw_str_is(w, "align")) {
        ptx_next(p);
        return parse_align(p, &d->align);
    } else if (hw_str_is(w, "attribute")) {
        ptx_next(p);
        return ptx_parse_attribute(p, &d->managed);
    } else if (hw_str_is(w, "ptr") && d->space == PTX_SPACE_PARAM) {
        ptx_next(p);
        return parse_pointer(p, d);
    } else {
        return ptx_fail(p, "unexpected '.%.*s' in the declaration", HW_STR_ARG(w));
    }
    ptx_next(p);
    return true;
}

static bool check_head(ptx_parser *p, ptx_decl *d)
{
    if (d->type == PTX_NONE)
        return ptx_fail(p, "the declaration has no type");
    bool opaque = d->type == PTX_TEXREF || d->type == PTX_SAMPLERREF || d->type == PTX_SURFREF;
    if (d->type == PTX_PRED && d->space != PTX_SPACE_REG)
        return ptx_fail(p, "predicates can only be registers");
    if (opaque && d->space != PTX_SPACE_GLOBAL && d->space != PTX_SPACE_PARAM)
        return ptx_fail(p, "opaque references stand in .global or .param space");
    if (d->vector * ptx_type_bits(d->type) > 128)
        return ptx_fail(p, "vector type is larger than 128 bits");
    if (d->space == PTX_SPACE_TEX)
        d->type = PTX_TEXREF;
    return true;
}

bool ptx_parse_decl_head(ptx_parser *p, ptx_decl *d)
{
    d->place = ptx_here(p);
    d->space = space_here(p);
    d->vector = 1;
    if (d->space == PTX_SPACE_NONE)
        return ptx_fail(p, "expected a state space, found %s", ptx_token_text(p));
    ptx_next(p);
    if (d->space == PTX_SPACE_CONST && ptx_accept(p, '[')) { /* bank of PTX before 2.2 */
        uint64_t bank;
        if (!ptx_parse_int(p, 10, "constant bank", &bank) || !ptx_expect(p, ']', "after the bank"))
            return false;
    }
    while (p->t.kind == PTX_T_DOT)
        if (!parse_head_word(p, d))
            return false;
    return check_head(p, d);
}

/* ---- sizes ---- */

bool ptx_parse_dims(ptx_parser *p, uint64_t dims[PTX_MAX_DIMS], uint32_t *ndims, bool *unsized)
{
    *ndims = 0;
    *unsized = false;
    while (ptx_is(p, '[')) {
        if (*ndims == PTX_MAX_DIMS)
            return ptx_fail(p, "more than %d array dimensions", PTX_MAX_DIMS);
        ptx_next(p);
        uint64_t n = 0;
        if (ptx_is(p, ']') && *ndims == 0)
            *unsized = true;
        else if (!ptx_parse_int(p, PTX_MAX_SIZE, "array size", &n))
            return false;
        if (n == 0 && *ndims)
            return ptx_fail(p, "only the first array dimension may be empty");
        *unsized |= n == 0;
        dims[(*ndims)++] = n;
        if (!ptx_expect(p, ']', "after the array size"))
            return false;
    }
    return true;
}

bool ptx_finish_symbol(ptx_parser *p, ptx_symbol *s, const ptx_decl *d, const uint64_t *dims,
                       uint32_t ndims)
{
    bool in_device_memory = d->space == PTX_SPACE_GLOBAL || d->space == PTX_SPACE_CONST;
    uint64_t limit = in_device_memory ? PTX_MAX_SIZE : UINT64_C(1) << 30;
    uint64_t size = (uint64_t)ptx_type_bits(d->type) / 8 * d->vector;
    s->align = d->align ? d->align : (uint32_t)size;
    for (uint32_t i = 0; i < ndims; i++)
        if (__builtin_mul_overflow(size, dims[i], &size) || size > limit)
            return ptx_error(p, s->place, HW_E_SYNTAX, "'%.*s' is too large", HW_STR_ARG(s->name));
    s->size = size;
    return true;
}

/* ---- registers ---- */

static bool declare_register(ptx_parser *p, const ptx_decl *d)
{
    hw_str name = p->t.text;
    ptx_place at = ptx_here(p);
    ptx_next(p);
    if (ptx_accept(p, '<')) {
        ptx_range r = { .type = d->type, .vector = d->vector };
        return ptx_parse_count(p, UINT32_MAX, "register count", &r.count) &&
               ptx_bind_range(p, name, at, &r);
    }
    if (hw_str_is(name, "_"))
        return ptx_error(p, at, HW_E_SYNTAX, "'_' cannot be declared");
    ptx_binding *b = ptx_bind(p, name, at, PTX_B_REG, p->depth);
    if (!b)
        return false;
    b->index = ptx_add_reg(p, name, d->type, d->vector);
    return true;
}

/* ---- variables ---- */

static bool check_variable(ptx_parser *p, const ptx_decl *d)
{
    if (d->space == PTX_SPACE_REG && !p->f)
        return ptx_error(p, d->place, HW_E_SYNTAX, "registers are declared inside functions");
    if (d->space == PTX_SPACE_PARAM && !p->f)
        return ptx_error(p, d->place, HW_E_SYNTAX, "parameters are declared inside functions");
    if (d->space == PTX_SPACE_LOCAL && !p->f)
        return ptx_error(p, d->place, HW_E_UNSUPPORTED,
                         ".local variables outside functions are not supported");
    if (d->linkage == PTX_COMMON && d->space != PTX_SPACE_GLOBAL)
        return ptx_error(p, d->place, HW_E_SYNTAX, ".common variables stand in .global space");
    return true;
}

/* A second declaration of a name is fine if one of the two only announces it. */
static ptx_symbol *earlier(ptx_parser *p, hw_str name, const ptx_decl *d)
{
    const ptx_binding *b = p->f ? NULL : ptx_lookup(p, name);
    if (!b || b->kind != PTX_B_SYMBOL || b->symbol->kind != PTX_SYM_VARIABLE ||
        b->symbol->space != d->space)
        return NULL;
    return b->symbol->linkage == PTX_EXTERN || d->linkage == PTX_EXTERN ? b->symbol : NULL;
}

static ptx_symbol *new_variable(ptx_parser *p, hw_str name, ptx_place at, const ptx_decl *d)
{
    ptx_symbol *s = earlier(p, name, d);
    if (s)
        return s;
    ptx_binding *b = ptx_bind(p, name, at, PTX_B_SYMBOL, p->depth);
    if (!b)
        return NULL;
    s = HW_NEW(p->arena, ptx_symbol);
    b->symbol = s;
    s->kind = PTX_SYM_VARIABLE;
    s->name = name;
    s->linkage = PTX_EXTERN;
    s->function = p->f;
    if (p->f)
        hw_vec_push(p->arena, &p->f->locals, s);
    if (!p->f || d->space == PTX_SPACE_GLOBAL || d->space == PTX_SPACE_CONST)
        hw_vec_push(p->arena, &p->u->symbols, s);
    return s;
}

static bool parse_initialiser(ptx_parser *p, ptx_symbol *s, const ptx_decl *d, uint64_t *dims,
                              uint32_t ndims)
{
    if (!ptx_accept(p, '='))
        return true;
    if (d->space != PTX_SPACE_GLOBAL && d->space != PTX_SPACE_CONST)
        return ptx_fail(p, "variables of this state space take no initial value");
    if (d->linkage == PTX_EXTERN)
        return ptx_fail(p, "an .extern variable takes no initial value");
    s->init_bytes = 0;
    return ptx_parse_init(p, s, dims, ndims);
}

static bool declare_one(ptx_parser *p, const ptx_decl *d, hw_str name, ptx_place at)
{
    uint64_t dims[PTX_MAX_DIMS];
    uint32_t ndims;
    bool unsized;
    if (!ptx_parse_dims(p, dims, &ndims, &unsized))
        return false;
    ptx_symbol *s = new_variable(p, name, at, d);
    if (!s)
        return false;
    bool announced = s->size || s->linkage != PTX_EXTERN;
    if (d->linkage == PTX_EXTERN && announced) /* .extern after the definition adds nothing */
        return true;
    s->place = at;
    s->linkage = d->linkage;
    s->space = d->space;
    s->type = d->type;
    s->vector = d->vector;
    s->managed = d->managed;
    if (!parse_initialiser(p, s, d, dims, ndims))
        return false;
    s->unsized = unsized && dims[0] == 0;
    if (s->unsized && d->linkage != PTX_EXTERN)
        return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' has no size", HW_STR_ARG(name));
    return ptx_finish_symbol(p, s, d, dims, ndims);
}

/* .global .u32 x<3>: x0, x1, x2 */
static bool declare_range(ptx_parser *p, const ptx_decl *d, hw_str name, ptx_place at)
{
    uint64_t count;
    if (!ptx_parse_count(p, 65536, "variable count", &count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        const char *each =
            hw_arena_printf(p->arena, "%.*s%llu", HW_STR_ARG(name), (unsigned long long)i);
        ptx_symbol *s = new_variable(p, hw_str_of(each), at, d);
        if (!s)
            return false;
        s->place = at;
        s->linkage = d->linkage;
        s->space = d->space;
        s->type = d->type;
        s->vector = d->vector;
        if (!ptx_finish_symbol(p, s, d, NULL, 0))
            return false;
    }
    return true;
}

static bool declare_variable(ptx_parser *p, const ptx_decl *d)
{
    hw_str name = p->t.text;
    ptx_place at = ptx_here(p);
    ptx_next(p);
    return ptx_accept(p, '<') ? declare_range(p, d, name, at) : declare_one(p, d, name, at);
}

bool ptx_parse_declaration(ptx_parser *p, ptx_linkage l)
{
    ptx_decl d = { .linkage = l };
    if (!ptx_parse_decl_head(p, &d) || !check_variable(p, &d))
        return false;
    do {
        if (p->t.kind != PTX_T_NAME)
            return p->t.kind == PTX_T_BAD
                       ? false
                       : ptx_fail(p, "expected a name, found %s", ptx_token_text(p));
        bool ok = d.space == PTX_SPACE_REG ? declare_register(p, &d) : declare_variable(p, &d);
        if (!ok)
            return false;
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ';', "after the declaration");
}

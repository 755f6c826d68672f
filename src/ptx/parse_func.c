/* SPDX-License-Identifier: Apache-2.0
 * Functions: parameters, performance directives, prototypes, lists of call targets. */
#include "parse.h"

/* Parameters as they are read; places are for messages only. */
typedef struct param_list {
    HW_VEC(ptx_param) v;
    HW_VEC(ptx_place) places;
} param_list;

/* ---- parameters ---- */

static bool check_param(ptx_parser *p, const ptx_decl *d, hw_str name, bool is_kernel,
                        bool is_prototype)
{
    if (d->space != PTX_SPACE_PARAM && d->space != PTX_SPACE_REG)
        return ptx_error(p, d->place, HW_E_SYNTAX, "parameters stand in .param or .reg space");
    if (is_kernel && d->space != PTX_SPACE_PARAM)
        return ptx_error(p, d->place, HW_E_SYNTAX, "a kernel's parameters stand in .param space");
    if (d->space == PTX_SPACE_PARAM && d->vector > 1)
        return ptx_error(p, d->place, HW_E_SYNTAX, "a parameter cannot be a vector");
    if (!is_prototype && hw_str_is(name, "_"))
        return ptx_error(p, d->place, HW_E_SYNTAX, "'_' is no name for a parameter");
    return true;
}

static ptx_symbol *param_symbol(ptx_parser *p, const ptx_decl *d, hw_str name, ptx_place at)
{
    ptx_symbol *s = HW_NEW(p->arena, ptx_symbol);
    s->kind = PTX_SYM_PARAM;
    s->name = name;
    s->space = PTX_SPACE_PARAM;
    s->type = d->type;
    s->vector = 1;
    s->function = p->f;
    s->place = at;
    return s;
}

static bool parse_param(ptx_parser *p, param_list *list, bool is_kernel, bool is_prototype)
{
    ptx_decl d = { 0 };
    uint64_t dims[PTX_MAX_DIMS];
    uint32_t ndims;
    bool unsized;
    if (!ptx_parse_decl_head(p, &d))
        return false;
    hw_str name = p->t.text;
    ptx_place at = ptx_here(p);
    if (p->t.kind != PTX_T_NAME)
        return ptx_fail(p, "expected a parameter's name, found %s", ptx_token_text(p));
    ptx_next(p);
    if (!check_param(p, &d, name, is_kernel, is_prototype) ||
        !ptx_parse_dims(p, dims, &ndims, &unsized))
        return false;
    ptx_symbol *s = param_symbol(p, &d, name, at);
    if (!ptx_finish_symbol(p, s, &d, dims, ndims))
        return false;
    s->unsized = unsized;
    ptx_param out = { .name = name, .type = d.type, .align = s->align, .is_array = ndims > 0 };
    out.size = (uint32_t)s->size;
    out.count = s->size / (d.type == PTX_PRED ? 1 : ptx_type_bits(d.type) / 8);
    out.is_reg = d.space == PTX_SPACE_REG;
    out.symbol = out.is_reg ? NULL : s;
    if (out.is_reg && !is_prototype)
        out.reg = ptx_add_reg(p, name, d.type, d.vector);
    hw_vec_push(p->arena, &list->v, out);
    hw_vec_push(p->scratch, &list->places, at);
    return true;
}

/* ( parameters ), t is the '('. */
static bool parse_params(ptx_parser *p, param_list *list, bool is_kernel, bool is_prototype)
{
    ptx_next(p);
    if (ptx_accept(p, ')'))
        return true;
    do
        if (!parse_param(p, list, is_kernel, is_prototype))
            return false;
    while (ptx_accept(p, ','));
    return ptx_expect(p, ')', "after the parameters");
}

static bool bind_params(ptx_parser *p, const param_list *list)
{
    for (size_t i = 0; i < list->v.len; i++) {
        const ptx_param *a = &list->v.ptr[i];
        int kind = a->is_reg ? PTX_B_REG : PTX_B_SYMBOL;
        ptx_binding *b = ptx_bind(p, a->name, list->places.ptr[i], kind, p->depth);
        if (!b)
            return false;
        b->index = a->reg;
        b->symbol = a->symbol;
    }
    return true;
}

/* ---- directives between the parameters and the body ---- */

static const struct {
    const char *word;
    uint16_t offset; /* in ptx_function; 0: the numbers are not kept */
    uint8_t least, most;
    bool kernels_only;
} directives[] = {
    { "maxntid", offsetof(ptx_function, maxntid), 1, 3, true },
    { "reqntid", offsetof(ptx_function, reqntid), 1, 3, true },
    { "minnctapersm", offsetof(ptx_function, min_blocks), 1, 1, true },
    { "maxnctapersm", offsetof(ptx_function, min_blocks), 1, 1, true },
    { "maxnreg", offsetof(ptx_function, maxnreg), 1, 1, true },
    { "reqnctapercluster", offsetof(ptx_function, cluster), 1, 3, true },
    { "maxclusterrank", 0, 1, 1, true },
    { "explicitcluster", 0, 0, 0, true },
    { "blocksareclusters", 0, 0, 0, true },
    { "abi_preserve", 0, 1, 1, false },
    { "abi_preserve_control", 0, 1, 1, false },
};

static bool parse_numbers(ptx_parser *p, ptx_function *f, size_t which)
{
    uint32_t *to = (uint32_t *)((char *)f + directives[which].offset);
    for (uint8_t i = 0; i < directives[which].most; i++) {
        uint64_t n = 1;
        if (i && !ptx_accept(p, ','))
            break;
        if (!ptx_parse_int(p, INT32_MAX, directives[which].word, &n))
            return false;
        if (directives[which].offset)
            to[i] = (uint32_t)n;
    }
    for (uint8_t i = 1; i < directives[which].most && directives[which].offset; i++)
        to[i] += to[i] == 0; /* y and z left out are 1 */
    return true;
}

bool ptx_parse_pragma(ptx_parser *p)
{
    ptx_next(p);
    do {
        if (p->t.kind != PTX_T_STRING)
            return ptx_fail(p, "expected a string after .pragma, found %s", ptx_token_text(p));
        ptx_next(p);
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ';', "after the pragma");
}

static bool parse_directive(ptx_parser *p, ptx_function *f)
{
    if (ptx_is_dot(p, "pragma"))
        return ptx_parse_pragma(p);
    if (ptx_is_dot(p, "noreturn")) {
        if (f->nresults)
            return ptx_fail(p, "a .noreturn function has no result");
        f->noreturn = true;
        ptx_next(p);
        return true;
    }
    for (size_t i = 0; i < HW_COUNTOF(directives); i++) {
        if (!ptx_is_dot(p, directives[i].word))
            continue;
        if (directives[i].kernels_only && !f->is_kernel)
            return ptx_fail(p, "'.%s' is for kernels only", directives[i].word);
        ptx_next(p);
        return parse_numbers(p, f, i);
    }
    return ptx_fail(p, "unknown directive %s", ptx_token_text(p));
}

static bool parse_directives(ptx_parser *p, ptx_function *f)
{
    ptx_place at = ptx_here(p);
    while (p->t.kind == PTX_T_DOT)
        if (!parse_directive(p, f))
            return false;
    if (f->maxntid[0] && f->reqntid[0])
        return ptx_error(p, at, HW_E_SYNTAX, ".maxntid and .reqntid exclude each other");
    return true;
}

/* ---- symbols ---- */

static bool same_params(const ptx_param *a, uint32_t na, const ptx_param *b, uint32_t nb)
{
    if (na != nb)
        return false;
    for (uint32_t i = 0; i < na; i++)
        if (a[i].type != b[i].type || a[i].size != b[i].size || a[i].is_reg != b[i].is_reg)
            return false;
    return true;
}

static ptx_linkage merge(ptx_linkage before, ptx_linkage now)
{
    if (now == PTX_VISIBLE || now == PTX_WEAK)
        return now;
    if (before == PTX_VISIBLE || before == PTX_WEAK)
        return before;
    return before == PTX_EXTERN && now == PTX_LOCAL ? PTX_VISIBLE : now;
}

/* A function's name met again: declarations agree, and only one has a body. */
static bool redeclare(ptx_parser *p, ptx_symbol *s, ptx_function *f, ptx_linkage l, ptx_place at)
{
    ptx_function *old = s->function;
    if (old->is_kernel != f->is_kernel || (old->has_body && f->has_body))
        return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' is declared twice", HW_STR_ARG(s->name));
    if (!same_params(old->params, old->nparams, f->params, f->nparams) ||
        !same_params(old->results, old->nresults, f->results, f->nresults))
        return ptx_error(p, at, HW_E_SYNTAX, "'%.*s' was declared with other parameters on line %u",
                         HW_STR_ARG(s->name), s->place.line);
    s->linkage = merge(s->linkage, l);
    f->symbol = s;
    if (!f->has_body)
        return true;
    p->u->functions.ptr[s->index] = f;
    f->noreturn |= old->noreturn;
    s->function = f;
    s->place = at;
    return true;
}

static bool declare_function(ptx_parser *p, hw_str name, ptx_function *f, ptx_linkage l,
                             ptx_place at)
{
    const ptx_binding *known = ptx_lookup(p, name);
    if (known && known->kind == PTX_B_SYMBOL && known->symbol->kind == PTX_SYM_FUNCTION)
        return redeclare(p, known->symbol, f, l, at);
    ptx_binding *b = ptx_bind(p, name, at, PTX_B_SYMBOL, 0);
    if (!b)
        return false;
    ptx_symbol *s = HW_NEW(p->arena, ptx_symbol);
    *s = (ptx_symbol){ .name = name, .kind = PTX_SYM_FUNCTION, .linkage = l, .place = at };
    s->function = f;
    s->index = (uint32_t)p->u->functions.len;
    b->symbol = f->symbol = s;
    hw_vec_push(p->arena, &p->u->functions, f);
    hw_vec_push(p->arena, &p->u->symbols, s);
    return true;
}

/* ---- functions ---- */

typedef struct header {
    param_list results, params;
    hw_str name;
    ptx_place at;
} header;

static bool parse_header(ptx_parser *p, ptx_function *f, header *h)
{
    bool ignored;
    if (ptx_is_dot(p, "attribute")) {
        ptx_next(p);
        if (!ptx_parse_attribute(p, &ignored))
            return false;
    }
    if (!f->is_kernel && ptx_is(p, '(') && !parse_params(p, &h->results, false, false))
        return false;
    if (p->t.kind != PTX_T_NAME)
        return ptx_fail(p, "expected a function's name, found %s", ptx_token_text(p));
    h->name = p->t.text;
    h->at = ptx_here(p);
    ptx_next(p);
    if (ptx_is(p, '(') && !parse_params(p, &h->params, f->is_kernel, false))
        return false;
    f->params = h->params.v.ptr;
    f->nparams = (uint32_t)h->params.v.len;
    f->results = h->results.v.ptr;
    f->nresults = (uint32_t)h->results.v.len;
    if (f->nresults > 1 && !f->results[0].is_reg)
        return ptx_error(p, h->at, HW_E_SYNTAX, "several results must be registers");
    f->has_reg_params = f->regs.len > 0;
    uint32_t ignored_bytes;
    ptx_layout_params(f->params, f->nparams, &f->param_bytes);
    ptx_layout_params(f->results, f->nresults, &ignored_bytes);
    return parse_directives(p, f);
}

static bool parse_definition(ptx_parser *p, ptx_function *f, const header *h)
{
    p->mark = ++p->nfunctions;
    ptx_scope_open(p);
    bool ok = bind_params(p, &h->results) && bind_params(p, &h->params);
    if (ok)
        ptx_parse_body(p);
    ptx_scope_close(p);
    if (ok && !ptx_layout_locals(f)) /* all of the text was read: nothing to skip */
        ptx_error(p, h->at, HW_E_SYNTAX, "local variables are too large");
    return ok;
}

bool ptx_parse_function(ptx_parser *p, ptx_linkage l, bool is_kernel)
{
    ptx_function *f = HW_NEW(p->arena, ptx_function);
    header h = { 0 };
    f->unit = p->u;
    f->is_kernel = is_kernel;
    p->f = f;
    bool ok = parse_header(p, f, &h);
    if (ok) {
        f->has_body = ptx_is(p, '{');
        if (f->has_body && l == PTX_EXTERN)
            ok = ptx_error(p, h.at, HW_E_SYNTAX, "an .extern function has no body");
        ok = ok && declare_function(p, h.name, f, l, h.at);
    }
    if (ok && f->has_body)
        ok = parse_definition(p, f, &h);
    else if (ok)
        ok = ptx_expect(p, ';', "after the function's declaration");
    p->f = NULL;
    return ok;
}

/* ---- names for indirect calls ---- */

static ptx_symbol *named(ptx_parser *p, hw_str name, ptx_place at, int kind)
{
    ptx_binding *b = ptx_bind(p, name, at, PTX_B_SYMBOL, p->depth);
    if (!b)
        return NULL;
    ptx_symbol *s = HW_NEW(p->arena, ptx_symbol);
    s->name = name;
    s->kind = kind;
    s->function = p->f;
    s->place = at;
    b->symbol = s;
    return s;
}

/* name: .callprototype (results) _ (parameters) .noreturn ; */
bool ptx_parse_prototype(ptx_parser *p, hw_str name, ptx_place at)
{
    ptx_symbol *s = named(p, name, at, PTX_SYM_PROTOTYPE);
    param_list results = { 0 }, params = { 0 };
    ptx_function shape = { 0 }; /* takes what the directives say */
    uint32_t ignored;
    ptx_next(p);
    if (!s || (ptx_is(p, '(') && !parse_params(p, &results, false, true)))
        return false;
    if (p->t.kind != PTX_T_NAME || !hw_str_is(p->t.text, "_"))
        return ptx_fail(p, "expected '_' in the prototype, found %s", ptx_token_text(p));
    ptx_next(p);
    if (ptx_is(p, '(') && !parse_params(p, &params, false, true))
        return false;
    shape.nresults = (uint32_t)results.v.len;
    if (!parse_directives(p, &shape))
        return false;
    ptx_prototype *t = HW_NEW(p->arena, ptx_prototype);
    *t = (ptx_prototype){ .name = name,
                          .results = results.v.ptr,
                          .params = params.v.ptr,
                          .nresults = (uint32_t)results.v.len,
                          .nparams = (uint32_t)params.v.len,
                          .noreturn = shape.noreturn };
    ptx_layout_params(t->results, t->nresults, &ignored);
    ptx_layout_params(t->params, t->nparams, &ignored);
    s->prototype = t;
    return ptx_expect(p, ';', "after the prototype");
}

/* name: .calltargets f, g ; the first gives the prototype. */
bool ptx_parse_calltargets(ptx_parser *p, hw_str name, ptx_place at)
{
    ptx_symbol *s = named(p, name, at, PTX_SYM_PROTOTYPE);
    if (!s)
        return false;
    ptx_next(p);
    do {
        const ptx_binding *b = p->t.kind == PTX_T_NAME ? ptx_lookup(p, p->t.text) : NULL;
        if (p->t.kind == PTX_T_NAME && !b)
            return ptx_undeclared(p, p->t.text, ptx_here(p));
        if (!b || b->kind != PTX_B_SYMBOL || b->symbol->kind != PTX_SYM_FUNCTION)
            return ptx_fail(p, "expected a function, found %s", ptx_token_text(p));
        ptx_function *f = b->symbol->function;
        b->symbol->address_taken = true;
        ptx_ref(p, b->symbol);
        if (!s->prototype) {
            s->prototype = HW_NEW(p->arena, ptx_prototype);
            *s->prototype = (ptx_prototype){ name,        f->results, f->params,
                                             f->nresults, f->nparams, f->noreturn };
        }
        ptx_next(p);
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ';', "after the call targets");
}

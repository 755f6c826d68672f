/* SPDX-License-Identifier: Apache-2.0
 * A PTX text made a unit: the header, and what stands at module scope. */
#include "parse.h"

enum { NEWEST_MAJOR = 9, OLDEST_MAJOR = 1 }; /* 9.x adds to 9.0 what the instruction table knows */

/* ---- the header ---- */

static bool fatal(ptx_parser *p, hw_status s, const char *what)
{
    if (p->t.kind != PTX_T_BAD || !p->u->version)
        ptx_error(p, ptx_here(p), s, "%s", what);
    p->stop = true;
    ptx_next(p);
    return false;
}

/* .version 9.0 */
static bool parse_version(ptx_parser *p)
{
    if (p->t.kind == PTX_T_END)
        return fatal(p, HW_E_SYNTAX, "the text is empty");
    if (!ptx_is_dot(p, "version"))
        return fatal(p, HW_E_SYNTAX, "this is not PTX: it does not begin with .version");
    ptx_next(p);
    hw_str t = p->t.text;
    unsigned major = 0;
    size_t i = 0;
    for (; i < t.len && t.ptr[i] >= '0' && t.ptr[i] <= '9' && i < 4; i++)
        major = major * 10 + (unsigned)(t.ptr[i] - '0');
    if (p->t.kind != PTX_T_FLOAT || i + 2 != t.len || t.ptr[i] != '.')
        return fatal(p, HW_E_SYNTAX, "expected a version like 8.5 after .version");
    unsigned minor = (unsigned)(t.ptr[i + 1] - '0');
    if (major > NEWEST_MAJOR) {
        ptx_error(p, ptx_here(p), HW_E_VERSION,
                  "PTX version %u.%u is newer than this program knows (up to %d.x)", major, minor,
                  NEWEST_MAJOR);
        p->stop = true;
        return false;
    }
    if (major < OLDEST_MAJOR)
        return fatal(p, HW_E_SYNTAX, "there is no such PTX version");
    p->u->version = major * 10 + minor;
    ptx_next(p);
    return true;
}

/* sm_90a: 90; 0 if it is none */
static uint32_t target_number(hw_str t)
{
    hw_str sm = HW_STR("sm_"), compute = HW_STR("compute_");
    size_t i = hw_str_starts(t, sm) ? sm.len : hw_str_starts(t, compute) ? compute.len : t.len;
    uint32_t n = 0;
    size_t first = i;
    for (; i < t.len && t.ptr[i] >= '0' && t.ptr[i] <= '9' && i < first + 4; i++)
        n = n * 10 + (uint32_t)(t.ptr[i] - '0');
    if (i + 1 == t.len && (t.ptr[i] == 'a' || t.ptr[i] == 'f'))
        i++;
    return i == t.len ? n : 0;
}

static bool parse_target_word(ptx_parser *p)
{
    struct hw_ptx_unit *u = p->u;
    hw_str w = p->t.text;
    uint32_t n = target_number(w);
    if (n && !u->target) {
        u->target = n;
        u->target_text = hw_arena_dup(p->arena, w);
    } else if (hw_str_is(w, "debug")) {
        u->debug = true;
    } else if (hw_str_is(w, "map_f64_to_f32")) {
        u->map_f64_to_f32 = true;
    } else if (hw_str_is(w, "texmode_independent")) {
        u->texmode_independent = true;
    } else if (!hw_str_is(w, "texmode_unified")) {
        return ptx_fail(p, "unknown target %s", ptx_token_text(p));
    }
    ptx_next(p);
    return true;
}

/* .target sm_75, debug */
static bool parse_target(ptx_parser *p)
{
    if (!ptx_is_dot(p, "target"))
        return fatal(p, HW_E_SYNTAX, "expected .target after .version");
    ptx_next(p);
    do {
        if (p->t.kind != PTX_T_NAME)
            return fatal(p, HW_E_SYNTAX, "expected a target like sm_75 after .target");
        if (!parse_target_word(p))
            return false;
    } while (ptx_accept(p, ','));
    if (!p->u->target)
        return fatal(p, HW_E_SYNTAX, "the target names no architecture");
    return true;
}

static bool parse_address_size(ptx_parser *p)
{
    p->u->address_size = 64;
    if (!ptx_is_dot(p, "address_size"))
        return true;
    ptx_next(p);
    if (p->t.kind == PTX_T_INT && p->t.bits == 32)
        return fatal(p, HW_E_UNSUPPORTED,
                     "32-bit PTX is not supported: compile for 64-bit addresses");
    if (p->t.kind != PTX_T_INT || p->t.bits != 64)
        return fatal(p, HW_E_SYNTAX, "the address size must be 64");
    ptx_next(p);
    return true;
}

/* ---- module scope ---- */

/* .alias name, function; */
static bool parse_alias(ptx_parser *p)
{
    ptx_symbol *s[2] = { 0 };
    ptx_next(p);
    for (int i = 0; i < 2; i++) {
        const ptx_binding *b = p->t.kind == PTX_T_NAME ? ptx_lookup(p, p->t.text) : NULL;
        if (p->t.kind == PTX_T_NAME && !b)
            return ptx_undeclared(p, p->t.text, ptx_here(p));
        if (!b || b->kind != PTX_B_SYMBOL || b->symbol->kind != PTX_SYM_FUNCTION)
            return ptx_fail(p, "expected a function, found %s", ptx_token_text(p));
        s[i] = b->symbol;
        ptx_next(p);
        if (i == 0 && !ptx_expect(p, ',', "after the alias"))
            return false;
    }
    if (s[0]->function->has_body || s[0]->is_alias || hw_ptx_resolve(s[1]) == s[0])
        return ptx_fail(p, "'%.*s' cannot become an alias", HW_STR_ARG(s[0]->name));
    s[0]->is_alias = true;
    s[0]->definition = s[1]->is_alias ? s[1]->definition : s[1];
    return ptx_expect(p, ';', "after the alias");
}

static ptx_linkage parse_linkage(ptx_parser *p)
{
    static const struct {
        const char *word;
        ptx_linkage linkage;
    } words[] = { { "visible", PTX_VISIBLE },
                  { "extern", PTX_EXTERN },
                  { "weak", PTX_WEAK },
                  { "common", PTX_COMMON } };
    for (size_t i = 0; i < HW_COUNTOF(words); i++) {
        if (ptx_is_dot(p, words[i].word)) {
            ptx_next(p);
            return words[i].linkage;
        }
    }
    return PTX_LOCAL;
}

static bool parse_item(ptx_parser *p, bool *is_function)
{
    ptx_linkage l = parse_linkage(p);
    bool is_kernel = ptx_is_dot(p, "entry");
    *is_function = is_kernel || ptx_is_dot(p, "func");
    if (*is_function) {
        ptx_next(p);
        return ptx_parse_function(p, l, is_kernel);
    }
    if (ptx_is_space(p))
        return ptx_parse_declaration(p, l);
    if (ptx_is_dot(p, "file"))
        return ptx_parse_file(p);
    if (ptx_is_dot(p, "section"))
        return ptx_parse_section(p);
    if (ptx_is_dot(p, "pragma"))
        return ptx_parse_pragma(p);
    if (ptx_is_dot(p, "alias"))
        return parse_alias(p);
    if (p->t.kind == PTX_T_BAD)
        return false;
    return ptx_fail(p, "expected a declaration or a function, found %s", ptx_token_text(p));
}

static bool begins_item(const ptx_parser *p)
{
    static const char *const words[] = { "visible", "extern", "weak",   "common", "entry",  "func",
                                         "global",  "const",  "shared", "file",   "section" };
    for (size_t i = 0; i < HW_COUNTOF(words) && p->t.first_on_line; i++)
        if (ptx_is_dot(p, words[i]))
            return true;
    return false;
}

/* After an error at module scope: past the ';' that ends a variable, or a function's braces. */
static void skip_item(ptx_parser *p, uint32_t begun_at, bool is_function)
{
    p->quiet = true;
    while (p->t.kind != PTX_T_END) {
        if (ptx_accept(p, ';'))
            break;
        if (p->t.offset != begun_at && begins_item(p))
            break;
        if (is_function && ptx_is(p, '{')) {
            ptx_skip_braces(p);
            break;
        }
        ptx_next(p);
    }
    p->quiet = false;
}

static void parse_unit(ptx_parser *p)
{
    if (!parse_version(p) || !parse_target(p) || !parse_address_size(p))
        return;
    while (p->t.kind != PTX_T_END) {
        uint32_t at = p->t.offset;
        bool is_function;
        if (!parse_item(p, &is_function)) {
            p->lost_names = true;
            skip_item(p, at, is_function);
        }
    }
}

/* ---- messages ---- */

static bool before(const hw_message *a, const hw_message *b)
{
    if (!a->place.line || !b->place.line) /* words about the whole text come last */
        return a->place.line && !b->place.line;
    if (a->place.line != b->place.line)
        return a->place.line < b->place.line;
    return a->place.column < b->place.column;
}

/* A function's instructions are checked after it is read: put the messages in the text's order. */
static void sort_messages(hw_diag *d, hw_message *old_last)
{
    hw_message *list = old_last ? old_last->next : d->first, *sorted = NULL;
    for (hw_message *m = list, *next; m; m = next) {
        next = m->next;
        hw_message **at = &sorted;
        while (*at && !before(m, *at))
            at = &(*at)->next;
        m->next = *at;
        *at = m;
    }
    *(old_last ? &old_last->next : &d->first) = sorted;
    for (d->last = old_last; sorted; sorted = sorted->next)
        d->last = sorted;
}

hw_status hw_ptx_parse(hw_arena *a, hw_str text, const char *origin, hw_ptx_unit **out, hw_diag *d)
{
    *out = NULL;
    if (text.len >= UINT32_MAX)
        return hw_fail(d, HW_E_UNSUPPORTED, "PTX texts of 4 GB and more are not supported");
    hw_arena *scratch = hw_arena_new();
    ptx_parser *p = HW_NEW(scratch, ptx_parser);
    p->arena = a;
    p->scratch = scratch;
    p->status = HW_E_SYNTAX;
    p->d = d ? d : hw_diag_new(scratch);
    p->u = HW_NEW(a, struct hw_ptx_unit);
    *p->u = (struct hw_ptx_unit){ .arena = a, .text = text, .origin = origin, .diag = d };
    hw_vec_push(a, &p->u->locs, (hw_wir_loc){ 0 });
    hw_vec_push(scratch, &p->loc_files, 0);
    hw_message *last = p->d->last;
    ptx_lex_start(p, text);
    parse_unit(p);
    ptx_finish_debug(p);
    hw_status s = p->errors || p->stop ? p->status : HW_OK;
    sort_messages(p->d, last);
    if (s == HW_OK)
        *out = p->u;
    hw_arena_free(scratch);
    return s;
}

/* SPDX-License-Identifier: Apache-2.0
 * Debug information: .loc and .file, and the strings of .section .debug_str that name inlined
 * functions. Other sections are skipped. */
#include "parse.h"

#include <stdlib.h>

static bool parse_three(ptx_parser *p, uint64_t n[3])
{
    for (int i = 0; i < 3; i++) {
        if (p->t.kind != PTX_T_INT)
            return ptx_fail(p, "expected a number in .loc, found %s", ptx_token_text(p));
        if (p->t.bits > UINT32_MAX)
            return ptx_fail(p, "number in .loc is too large");
        n[i] = p->t.bits;
        ptx_next(p);
    }
    return true;
}

static uint32_t add_loc(ptx_parser *p, const uint64_t n[3], uint32_t ptx_line)
{
    uint32_t index = (uint32_t)p->u->locs.len;
    hw_wir_loc l = { .line = (uint32_t)n[1], .column = (uint32_t)n[2], .ptx_line = ptx_line };
    hw_vec_push(p->arena, &p->u->locs, l);
    hw_vec_push(p->scratch, &p->loc_files, (uint32_t)n[0]);
    return index;
}

/* The .loc that a callee was inlined into: the last of these numbers, or a new one. Looking back a
 * bounded way keeps this from being quadratic. */
static uint32_t find_loc(ptx_parser *p, const uint64_t n[3], uint32_t ptx_line)
{
    enum { BACK = 256 };
    for (uint32_t i = (uint32_t)p->u->locs.len, k = 0; i-- > 1 && k < BACK; k++) {
        const hw_wir_loc *l = &p->u->locs.ptr[i];
        if (l->line == n[1] && l->column == n[2] && p->loc_files.ptr[i] == n[0])
            return i;
    }
    return add_loc(p, n, ptx_line);
}

/* , function_name LABEL[+offset], inlined_at F L C */
static bool parse_inlined(ptx_parser *p, ptx_inlined *in, uint32_t line, uint32_t *parent)
{
    while (ptx_accept(p, ',')) {
        hw_str word = p->t.text;
        if (p->t.kind != PTX_T_NAME)
            return ptx_fail(p, "expected function_name or inlined_at, found %s", ptx_token_text(p));
        if (hw_str_is(word, "function_name")) {
            ptx_next(p);
            in->label = p->t.text;
            in->place = ptx_here(p);
            if (p->t.kind != PTX_T_NAME && p->t.kind != PTX_T_DOT)
                return ptx_fail(p, "expected a label, found %s", ptx_token_text(p));
            ptx_next(p);
            if (ptx_accept(p, '+') && !ptx_parse_int(p, UINT32_MAX, "offset", &in->offset))
                return false;
        } else if (hw_str_is(word, "inlined_at")) {
            uint64_t n[3];
            ptx_next(p);
            if (!parse_three(p, n))
                return false;
            *parent = find_loc(p, n, line);
        } else {
            return ptx_fail(p, "expected function_name or inlined_at, found %s", ptx_token_text(p));
        }
    }
    return true;
}

bool ptx_parse_loc(ptx_parser *p)
{
    uint64_t n[3];
    uint32_t line = p->t.line, parent = 0;
    ptx_inlined in = { 0 };
    ptx_next(p);
    if (!parse_three(p, n) || !parse_inlined(p, &in, line, &parent))
        return false;
    p->loc = in.loc = add_loc(p, n, line);
    p->u->locs.ptr[p->loc].inlined_at = parent;
    if (in.label.len)
        hw_vec_push(p->scratch, &p->inlined, in);
    return true;
}

/* .file 1 "name" [, time, size] */
bool ptx_parse_file(ptx_parser *p)
{
    enum { MOST = 1 << 20 };
    uint64_t n, ignored;
    ptx_next(p);
    if (p->t.kind != PTX_T_INT || p->t.bits > MOST)
        return ptx_fail(p, "expected a file number, found %s", ptx_token_text(p));
    n = p->t.bits;
    ptx_next(p);
    if (p->t.kind != PTX_T_STRING)
        return ptx_fail(p, "expected a file name, found %s", ptx_token_text(p));
    while (p->u->files.len <= n)
        hw_vec_push(p->arena, &p->u->files, NULL);
    p->u->files.ptr[n] = hw_arena_cstr(p->arena, p->t.text);
    ptx_next(p);
    while (ptx_accept(p, ','))
        if (!ptx_parse_int(p, UINT64_MAX, "file time or size", &ignored))
            return false;
    return true;
}

/* ---- .section ---- */

static bool skip_section(ptx_parser *p)
{
    ptx_place open = ptx_here(p);
    p->quiet = true;
    bool closed = ptx_skip_braces(p);
    p->quiet = false;
    return closed || ptx_error(p, open, HW_E_SYNTAX, "the section has no closing brace");
}

/* The bytes of .debug_str, with the labels that mark its strings; t is the '{'. */
static bool parse_strings(ptx_parser *p)
{
    ptx_next(p);
    while (!ptx_is(p, '}') && p->t.kind != PTX_T_END) {
        if (p->t.kind == PTX_T_NAME) {
            ptx_debug_name name = { p->t.text, p->debug_text.len };
            hw_vec_push(p->scratch, &p->debug_names, name);
            ptx_next(p);
            if (!ptx_expect(p, ':', "after the label"))
                return false;
            continue;
        }
        if (!ptx_is_dot(p, "b8"))
            return ptx_fail(p, "expected .b8 in the section, found %s", ptx_token_text(p));
        ptx_next(p);
        do {
            uint64_t byte;
            if (!ptx_parse_int(p, 255, "byte", &byte))
                return false;
            hw_vec_push(p->scratch, &p->debug_text, (char)byte);
        } while (ptx_accept(p, ','));
    }
    return ptx_expect(p, '}', "after the section");
}

bool ptx_parse_section(ptx_parser *p)
{
    ptx_next(p);
    if (p->t.kind != PTX_T_DOT && p->t.kind != PTX_T_NAME)
        return ptx_fail(p, "expected a section's name, found %s", ptx_token_text(p));
    bool strings = ptx_is_dot(p, "debug_str");
    ptx_next(p);
    if (!ptx_is(p, '{'))
        return ptx_fail(p, "expected '{' after the section's name, found %s", ptx_token_text(p));
    if (strings)
        return parse_strings(p);
    return skip_section(p);
}

static int by_label(const void *a, const void *b)
{
    hw_str x = ((const ptx_debug_name *)a)->label, y = ((const ptx_debug_name *)b)->label;
    size_t n = x.len < y.len ? x.len : y.len;
    int c = memcmp(x.ptr, y.ptr, n);
    return c ? c : (x.len > y.len) - (x.len < y.len);
}

static const char *debug_string(ptx_parser *p, const ptx_inlined *in)
{
    ptx_debug_name want = { .label = in->label };
    const ptx_debug_name *n =
        p->debug_names.len
            ? bsearch(&want, p->debug_names.ptr, p->debug_names.len, sizeof want, by_label)
            : NULL;
    uint64_t at = n ? n->at + in->offset : in->offset;
    if ((!n && !hw_str_is(in->label, "debug_str")) || at >= p->debug_text.len)
        return NULL;
    const char *text = p->debug_text.ptr + at;
    return hw_arena_cstr(p->arena, (hw_str){ text, strnlen(text, p->debug_text.len - at) });
}

/* Files and strings stand at the end of the text: fill in what .loc lines named by number. A name
 * that is not there is no error: only a report suffers. */
void ptx_finish_debug(ptx_parser *p)
{
    struct hw_ptx_unit *u = p->u;
    for (size_t i = 1; i < u->locs.len; i++) {
        uint32_t file = p->loc_files.ptr[i];
        u->locs.ptr[i].file = file < u->files.len ? u->files.ptr[file] : NULL;
    }
    if (p->debug_names.len)
        qsort(p->debug_names.ptr, p->debug_names.len, sizeof *p->debug_names.ptr, by_label);
    for (size_t i = 0; i < p->inlined.len; i++)
        u->locs.ptr[p->inlined.ptr[i].loc].function = debug_string(p, &p->inlined.ptr[i]);
}

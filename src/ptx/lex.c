/* SPDX-License-Identifier: Apache-2.0
 * The scanner: PTX text made tokens, one at a time. */
#include "parse.h"

#include <stdlib.h>

enum { C_SPACE = 1, C_DIGIT = 2, C_NAME = 4, C_START = 8, C_HEX = 16 };

/* clang-format off */
static const uint8_t class_of[256] = {
    ['\t'] = C_SPACE, ['\v'] = C_SPACE, ['\f'] = C_SPACE, ['\r'] = C_SPACE, [' '] = C_SPACE,
    ['0' ... '9'] = C_DIGIT | C_NAME | C_HEX,
    ['a' ... 'f'] = C_NAME | C_START | C_HEX, ['g' ... 'z'] = C_NAME | C_START,
    ['A' ... 'F'] = C_NAME | C_START | C_HEX, ['G' ... 'Z'] = C_NAME | C_START,
    ['_'] = C_NAME | C_START, ['$'] = C_NAME | C_START, ['%'] = C_START,
};
/* clang-format on */

static bool is(char c, uint8_t mask)
{
    return class_of[(uint8_t)c] & mask;
}

static char peek(const ptx_parser *p, size_t ahead)
{
    return (size_t)(p->end - p->at) > ahead ? p->at[ahead] : 0;
}

static void to_line_end(ptx_parser *p)
{
    const char *nl = memchr(p->at, '\n', (size_t)(p->end - p->at));
    p->at = nl ? nl : p->end;
}

/* After the comment's opening; an unclosed one runs to the end, where the parser will complain. */
static void skip_comment(ptx_parser *p)
{
    ptx_place open = { p->line, (uint32_t)(p->at - p->start) };
    p->at += 2;
    while (p->at < p->end) {
        if (*p->at == '*' && peek(p, 1) == '/') {
            p->at += 2;
            return;
        }
        p->line += *p->at++ == '\n';
    }
    p->quiet = false; /* nothing can be read after it: must be said even while skipping */
    ptx_error(p, open, HW_E_SYNTAX, "comment is not closed");
    p->stop = true;
}

/* Lines that are no PTX: "# 1 "file"" left by a preprocessor, "@@DWARF" of old compilers. */
static bool is_foreign_line(const ptx_parser *p)
{
    if (!p->fresh_line)
        return false;
    if (*p->at == '@')
        return peek(p, 1) == '@';
    return *p->at == '#' && (is(peek(p, 1), C_SPACE | C_DIGIT) || peek(p, 1) == 'l');
}

static void skip_blanks(ptx_parser *p)
{
    while (p->at < p->end) {
        char c = *p->at;
        if (is(c, C_SPACE)) {
            p->at++;
        } else if (c == '\n') {
            p->at++;
            p->line++;
            p->fresh_line = true;
        } else if (c == '/' && peek(p, 1) == '/') {
            to_line_end(p);
        } else if (c == '/' && peek(p, 1) == '*') {
            skip_comment(p);
        } else if ((c == '#' || c == '@') && is_foreign_line(p)) {
            to_line_end(p);
        } else {
            return;
        }
    }
}

static const char *name_end(const char *s, const char *end)
{
    while (s < end && is(*s, C_NAME))
        s++;
    return s;
}

static void bad(ptx_parser *p, const char *end, const char *what)
{
    p->t.kind = PTX_T_BAD;
    p->t.text = (hw_str){ p->at, (size_t)(end - p->at) };
    p->at = end;
    if (!p->u->version) /* not even begun: the parser will say that this is not PTX */
        return;
    int shown = p->t.text.len < 40 ? (int)p->t.text.len : 40;
    ptx_fail(p, "%s '%.*s'", what, shown, p->t.text.ptr);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99;
}

/* Digits of a base from s to end (all of them); false if one is foreign or the value too large. */
static bool digits(const char *s, const char *end, unsigned base, uint64_t *out)
{
    uint64_t v = 0;
    if (s == end)
        return false;
    for (; s < end; s++) {
        unsigned d = (unsigned)digit_of(*s);
        if (d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    }
    *out = v;
    return true;
}

/* 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX */
static void lex_pattern(ptx_parser *p, const char *end)
{
    bool single = (p->at[1] | 0x20) == 'f';
    uint64_t bits = 0;
    if (end - p->at != (single ? 10 : 18) || !digits(p->at + 2, end, 16, &bits)) {
        bad(p, end, single ? "0f takes 8 hexadecimal digits:" : "0d takes 16 hexadecimal digits:");
        return;
    }
    p->t.kind = PTX_T_FLOAT;
    p->t.is_single = single;
    p->t.bits = bits;
    if (single) {
        float f;
        uint32_t low = (uint32_t)bits;
        memcpy(&f, &low, 4);
        p->t.value = (double)f;
    } else {
        memcpy(&p->t.value, &bits, 8);
    }
    p->at = end;
}

static const char *skip_digits(const ptx_parser *p, const char *s)
{
    while (s < p->end && is(*s, C_DIGIT))
        s++;
    return s;
}

/* e+12; an e without digits belongs to something else */
static const char *skip_exponent(const ptx_parser *p, const char *s)
{
    if (s >= p->end || (*s | 0x20) != 'e')
        return s;
    const char *e = s + 1;
    if (e < p->end && (*e == '+' || *e == '-'))
        e++;
    const char *end = skip_digits(p, e);
    return end > e ? end : s;
}

static void lex_decimal_float(ptx_parser *p)
{
    const char *s = skip_digits(p, p->at);
    if (s < p->end && *s == '.')
        s = skip_digits(p, s + 1);
    s = skip_exponent(p, s);
    char text[64];
    size_t n = (size_t)(s - p->at);
    if (name_end(s, p->end) != s || n >= sizeof text) {
        bad(p, name_end(s, p->end), "invalid number");
        return;
    }
    memcpy(text, p->at, n);
    text[n] = 0;
    p->t.kind = PTX_T_FLOAT;
    p->t.text = (hw_str){ p->at, n };
    p->t.value = strtod(text, NULL);
    memcpy(&p->t.bits, &p->t.value, 8);
    p->at = s;
}

static bool is_float_text(const char *s, const char *end)
{
    while (s < end && is(*s, C_DIGIT))
        s++;
    if (s == end)
        return false;
    return *s == '.' || ((*s | 0x20) == 'e');
}

static void lex_integer(ptx_parser *p, const char *end)
{
    const char *s = p->at, *stop = end;
    unsigned base = 10;
    if (*s == '0' && end - s > 1) {
        char x = s[1] | 0x20;
        base = x == 'x' ? 16 : x == 'b' ? 2 : 8;
        s += base == 8 ? 1 : 2;
    }
    p->t.is_unsigned = stop[-1] == 'U';
    stop -= p->t.is_unsigned;
    if (s == stop && base == 8) /* 0U */
        s--;
    if (!digits(s, stop, base, &p->t.bits)) {
        bad(p, end, "invalid or too large number");
        return;
    }
    p->t.kind = PTX_T_INT;
    p->t.text = (hw_str){ p->at, (size_t)(end - p->at) };
    p->at = end;
}

static void lex_number(ptx_parser *p)
{
    const char *end = name_end(p->at, p->end);
    char second = peek(p, 1) | 0x20;
    if (*p->at == '0' && (second == 'f' || second == 'd'))
        lex_pattern(p, end);
    else if (is_float_text(p->at, p->end))
        lex_decimal_float(p);
    else
        lex_integer(p, end);
}

static void lex_string(ptx_parser *p)
{
    const char *s = p->at + 1;
    while (s < p->end && *s != '"' && *s != '\n')
        s += *s == '\\' && s + 1 < p->end && s[1] != '\n' ? 2 : 1;
    if (s >= p->end || *s != '"') {
        bad(p, s < p->end ? s : p->end, "string is not closed:");
        return;
    }
    p->t.kind = PTX_T_STRING;
    p->t.text = (hw_str){ p->at + 1, (size_t)(s - p->at - 1) };
    p->at = s + 1;
}

static void lex_punct(ptx_parser *p)
{
    static const struct {
        char text[3];
        uint8_t punct;
    } pairs[] = {
        { "<<", PTX_P_SHL }, { ">>", PTX_P_SHR }, { "<=", PTX_P_LE },  { ">=", PTX_P_GE },
        { "==", PTX_P_EQ },  { "!=", PTX_P_NE },  { "&&", PTX_P_AND }, { "||", PTX_P_OR }
    };
    static const char singles[] = "{}[]()<>,;:@!|+-*/%&^~?=.";
    char next = peek(p, 1);
    p->t.kind = PTX_T_PUNCT;
    p->t.punct = (uint8_t)*p->at;
    if (next == *p->at || next == '=') {
        for (size_t i = 0; i < HW_COUNTOF(pairs); i++) {
            if (pairs[i].text[0] == *p->at && pairs[i].text[1] == next) {
                p->t.punct = pairs[i].punct;
                p->at += 2;
                return;
            }
        }
    }
    if (*p->at && strchr(singles, *p->at)) {
        p->at++;
        return;
    }
    bad(p, p->at + 1, "unexpected character");
}

void ptx_next(ptx_parser *p)
{
    p->last_end = (uint32_t)(p->at - p->start);
    p->last_line = p->line;
    skip_blanks(p);
    ptx_token *t = &p->t;
    t->kind = PTX_T_END;
    t->punct = 0;
    t->is_unsigned = t->is_single = false;
    t->first_on_line = p->fresh_line;
    t->line = p->line;
    t->offset = (uint32_t)(p->at - p->start);
    t->text = (hw_str){ p->at, 0 };
    if (p->at >= p->end || p->stop)
        return;
    p->fresh_line = false;
    char c = *p->at, next = peek(p, 1);
    if (is(c, C_START) && (c != '%' || is(next, C_NAME))) {
        const char *end = name_end(p->at + 1, p->end);
        t->kind = PTX_T_NAME;
        t->text = (hw_str){ p->at, (size_t)(end - p->at) };
        p->at = end;
    } else if (is(c, C_DIGIT) || (c == '.' && is(next, C_DIGIT))) {
        lex_number(p);
    } else if (c == '.' && is(next, C_NAME)) {
        const char *end = name_end(p->at + 1, p->end);
        t->kind = PTX_T_DOT;
        t->text = (hw_str){ p->at + 1, (size_t)(end - p->at - 1) };
        p->at = end;
    } else if (c == '"') {
        lex_string(p);
    } else {
        lex_punct(p);
    }
}

void ptx_lex_start(ptx_parser *p, hw_str text)
{
    while (text.len && text.ptr[text.len - 1] == 0) /* fat binaries pad with NULs */
        text.len--;
    p->start = p->at = text.ptr ? text.ptr : "";
    p->end = p->start + text.len;
    if (text.len >= 3 && memcmp(text.ptr, "\xEF\xBB\xBF", 3) == 0)
        p->at += 3;
    p->line = 1;
    p->fresh_line = true;
    ptx_next(p);
}

bool ptx_is(const ptx_parser *p, int punct)
{
    return p->t.kind == PTX_T_PUNCT && p->t.punct == punct;
}

bool ptx_is_dot(const ptx_parser *p, const char *word)
{
    return p->t.kind == PTX_T_DOT && hw_str_is(p->t.text, word);
}

bool ptx_accept(ptx_parser *p, int punct)
{
    if (!ptx_is(p, punct))
        return false;
    ptx_next(p);
    return true;
}

bool ptx_expect(ptx_parser *p, int punct, const char *where)
{
    if (ptx_accept(p, punct))
        return true;
    if (p->t.kind == PTX_T_BAD) /* reported already */
        return false;
    /* What is missing at a line's end is missing there, not at the next line's first word. */
    ptx_place at =
        p->t.line != p->last_line ? (ptx_place){ p->last_line, p->last_end } : ptx_here(p);
    return ptx_error(p, at, HW_E_SYNTAX, "expected '%c' %s, found %s", punct, where,
                     ptx_token_text(p));
}

bool ptx_follows_colon(const ptx_parser *p)
{
    const char *s = p->at;
    while (s < p->end && is(*s, C_SPACE))
        s++;
    return s < p->end && *s == ':' && !(s + 1 < p->end && s[1] == ':');
}

hw_str ptx_lex_opcode(ptx_parser *p)
{
    const char *begin = p->t.text.ptr, *s = p->at;
    for (;;) {
        if (s < p->end && *s == '.' && s + 1 < p->end && is(s[1], C_NAME))
            s = name_end(s + 1, p->end);
        else if (s + 2 < p->end && s[0] == ':' && s[1] == ':' && is(s[2], C_NAME))
            s = name_end(s + 2, p->end);
        else
            break;
    }
    p->at = s;
    ptx_next(p);
    return (hw_str){ begin, (size_t)(s - begin) };
}

bool ptx_skip_braces(ptx_parser *p)
{
    uint32_t depth = 0;
    while (p->t.kind != PTX_T_END) {
        depth += ptx_is(p, '{');
        depth -= ptx_is(p, '}');
        ptx_next(p);
        if (depth == 0)
            return true;
    }
    return false;
}

ptx_place ptx_here(const ptx_parser *p)
{
    return (ptx_place){ p->t.line, p->t.offset };
}

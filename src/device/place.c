/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a key stands in a JSON text that is known to be well formed: for messages that name the
 * line. */
#include "place.h"

typedef struct cursor {
    hw_str text;
    size_t at;
    uint32_t line;
    size_t line_start;
} cursor;

static bool more(const cursor *c)
{
    return c->at < c->text.len;
}

static char step(cursor *c)
{
    char ch = c->text.ptr[c->at++];
    if (ch == '\n') {
        c->line++;
        c->line_start = c->at;
    }
    return ch;
}

/* The string whose opening quote was just read, without unescaping: keys of device files have no
 * escapes. */
static hw_str read_string(cursor *c)
{
    size_t start = c->at;
    while (more(c) && c->text.ptr[c->at] != '"') {
        if (step(c) == '\\' && more(c))
            step(c);
    }
    hw_str s = { c->text.ptr + start, c->at - start };
    if (more(c))
        step(c);
    return s;
}

static bool followed_by_colon(const cursor *c)
{
    size_t i = c->at;
    while (i < c->text.len && strchr(" \t\r\n", c->text.ptr[i]))
        i++;
    return i < c->text.len && c->text.ptr[i] == ':';
}

static hw_place place_at(const cursor *c, const char *path, size_t start)
{
    const char *eol = memchr(c->text.ptr + c->line_start, '\n', c->text.len - c->line_start);
    size_t end = eol ? (size_t)(eol - c->text.ptr) : c->text.len;
    return (hw_place){ .file = path,
                       .line = c->line,
                       .column = (uint32_t)(start - c->line_start) + 1,
                       .text = { c->text.ptr + c->line_start, end - c->line_start } };
}

/* Depth 1 is the outermost object; the group is looked for there, the key one deeper inside it. */
typedef struct search {
    const char *path, *group, *key;
    uint32_t depth;
    bool inside, found;
    hw_place best;
} search;

static void see_bracket(search *s, char ch)
{
    if (ch == '{' || ch == '[')
        s->depth++;
    if ((ch == '}' || ch == ']') && s->depth > 0)
        s->depth--;
    if (ch == '}' && s->depth == 1)
        s->inside = false;
}

static void see_key(search *s, const cursor *c, hw_str name, size_t start)
{
    bool is_group = s->group && s->depth == 1 && hw_str_is(name, s->group);
    bool reachable = s->group ? s->inside && s->depth >= 2 : s->depth == 1;
    bool is_key = s->key && reachable && hw_str_is(name, s->key);
    if (!is_group && !is_key)
        return;
    s->best = place_at(c, s->path, start);
    s->inside = s->inside || is_group;
    s->found = is_key || !s->key;
}

hw_place hw_json_place(hw_str text, const char *path, const char *group, const char *key)
{
    cursor c = { .text = text, .line = 1 };
    search s = {
        .path = path, .group = group, .key = key, .best = { .file = path, .line = 1, .column = 1 }
    };
    while (more(&c) && !s.found) {
        size_t start = c.at;
        char ch = step(&c);
        see_bracket(&s, ch);
        if (ch != '"')
            continue;
        hw_str name = read_string(&c);
        if (followed_by_colon(&c))
            see_key(&s, &c, name, start);
    }
    return s.best;
}

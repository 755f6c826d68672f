/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels without their mangling, as people call them. */
#include "hw_model.h"

#include <stdlib.h>

/* ---- mangled names (Itanium C++ ABI, section 5.1): the last name, with simple template arguments ----
 */

typedef struct name_reader {
    hw_arena *a;
    const char *at;
    unsigned depth; /* of template arguments */
} name_reader;

static const char *builtin_type(char code)
{
    static const struct {
        char code;
        const char *name;
    } types[] = {
        { 'v', "void" },
        { 'b', "bool" },
        { 'c', "char" },
        { 'a', "signed char" },
        { 'h', "unsigned char" },
        { 's', "short" },
        { 't', "unsigned short" },
        { 'i', "int" },
        { 'j', "unsigned" },
        { 'l', "long" },
        { 'm', "unsigned long" },
        { 'x', "long long" },
        { 'y', "unsigned long long" },
        { 'f', "float" },
        { 'd', "double" },
    };
    for (size_t i = 0; i < HW_COUNTOF(types); i++)
        if (types[i].code == code)
            return types[i].name;
    return NULL;
}

static const char *template_arguments(name_reader *r);

/* "4half" with arguments, if it has some; NULL: no name. */
static const char *source_name(name_reader *r)
{
    char *end;
    r->at += *r->at == 'L'; /* of internal linkage */
    unsigned long n = strtoul(r->at, &end, 10);
    if (end == r->at || n == 0 || n > strlen(end))
        return NULL;
    const char *name = hw_arena_cstr(r->a, (hw_str){ end, n });
    r->at = end + n;
    if (*r->at == 'I')
        name = hw_arena_printf(r->a, "%s<%s>", name, template_arguments(r));
    return name;
}

/* "S1_": something that stood before, which is not looked up. "St": std; "Sa", "Ss" ...: of std. */
static const char *substitution(name_reader *r)
{
    bool of_std = r->at[1] >= 'a' && r->at[1] <= 'z';
    if (of_std && r->at[1] == 't') {
        r->at += 2;
        return "std";
    }
    r->at += of_std ? 2 : strcspn(r->at, "_");
    r->at += !of_std && *r->at == '_';
    return *r->at == 'I' ? hw_arena_printf(r->a, "_<%s>", template_arguments(r)) : "_";
}

/* "N2ns4typeE": its last name. */
static const char *nested_name(name_reader *r)
{
    const char *name = NULL, *next;
    r->at++;
    while (*r->at && *r->at != 'E') {
        next = *r->at == 'S' ? substitution(r) : source_name(r);
        if (!next)
            return NULL;
        name = next;
    }
    r->at += *r->at == 'E';
    return name;
}

/* "Li32E" is 32, "Lb1E" true. */
static const char *literal(name_reader *r)
{
    const char *end = strchr(r->at, 'E');
    if (!end || !builtin_type(r->at[1]))
        return NULL;
    const char *text = hw_arena_cstr(r->a, (hw_str){ r->at + 2, (size_t)(end - r->at - 2) });
    if (r->at[1] == 'b')
        text = text[0] == '1' ? "true" : "false";
    else if (text[0] == 'n')
        text = hw_arena_printf(r->a, "-%s", text + 1);
    r->at = end + 1;
    return text;
}

/* "f" is float, "Pf" float*, "6__half" __half; NULL: something else. Not recursive: qualifiers are
 * gathered first. */
static const char *template_argument(name_reader *r)
{
    const char *after = "", *type = builtin_type(*r->at);
    if (*r->at == 'L')
        return literal(r);
    for (; *r->at && strchr("PRK", *r->at); r->at++)
        after = *r->at == 'P'   ? hw_arena_printf(r->a, "*%s", after)
                : *r->at == 'R' ? hw_arena_printf(r->a, "&%s", after)
                                : hw_arena_printf(r->a, " const%s", after);
    type = builtin_type(*r->at);
    if (type)
        r->at++;
    else if (*r->at == 'S' && r->at[1] != 't')
        type = substitution(r);
    else if (*r->at == 'S')
        r->at += 2, type = source_name(r);
    else
        type = *r->at == 'N' ? nested_name(r) : source_name(r);
    return type ? hw_arena_printf(r->a, "%s%s", type, after) : NULL;
}

/* Nested ones no deeper than this. */
enum { DEEPEST = 8 };

static const char *template_arguments(name_reader *r)
{
    const char *text = "", *one = "";
    r->at++;
    if (++r->depth > DEEPEST)
        one = NULL;
    while (one && *r->at && *r->at != 'E') {
        one = template_argument(r);
        text = one ? hw_arena_printf(r->a, "%s%s%s", text, *text ? ", " : "", one) : text;
    }
    r->depth--;
    if (!one) { /* what follows cannot be told apart */
        r->at += strlen(r->at);
        return *text ? hw_arena_printf(r->a, "%s, ...", text) : "...";
    }
    r->at += *r->at == 'E';
    return text;
}

const char *hw_model_short_name(hw_arena *a, const char *mangled)
{
    name_reader r = { a, mangled, 0 };
    const char *name = NULL, *next = NULL;
    if (strncmp(mangled, "_Z", 2) != 0)
        return mangled;
    bool nested = mangled[2] == 'N';
    r.at += 2 + nested;
    do {
        next = source_name(&r);
        name = next ? next : name;
    } while (next && nested && *r.at != 'E');
    return name ? name : mangled;
}

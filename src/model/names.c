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

/* "Li32E" is 32, "Lb1E" true, "f" float; NULL: something else. */
static const char *template_argument(name_reader *r)
{
    if (r->at[0] != 'L') {
        const char *type = builtin_type(r->at[0]);
        r->at += type != NULL;
        return type;
    }
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

static const char *template_arguments(name_reader *r)
{
    const char *text = "";
    r->at++;
    while (*r->at && *r->at != 'E') {
        const char *one = template_argument(r);
        if (!one)
            return "...";
        text = hw_arena_printf(r->a, "%s%s%s", text, *text ? ", " : "", one);
    }
    r->at += *r->at == 'E';
    return text;
}

const char *hw_model_short_name(hw_arena *a, const char *mangled)
{
    name_reader r = { a, mangled };
    const char *name = NULL;
    if (strncmp(mangled, "_Z", 2) != 0)
        return mangled;
    bool nested = mangled[2] == 'N';
    r.at += 2 + nested;
    do {
        char *end;
        unsigned long n = strtoul(r.at, &end, 10);
        if (end == r.at || n == 0 || n > strlen(end))
            break;
        name = hw_arena_cstr(a, (hw_str){ end, n });
        r.at = end + n;
        if (*r.at == 'I')
            name = hw_arena_printf(a, "%s<%s>", name, template_arguments(&r));
    } while (nested && *r.at != 'E');
    return name ? name : mangled;
}

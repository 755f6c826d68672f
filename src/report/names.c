/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and small texts: kernels without their mangling, shapes, numbers. */
#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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

const char *hw_report_short_name(hw_arena *a, const char *mangled)
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

/* ---- numbers ---- */

const char *hw_grouped(hw_arena *a, uint64_t v)
{
    char digits[24], out[32];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, v), k = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            out[k++] = ',';
        out[k++] = digits[i];
    }
    return hw_arena_cstr(a, (hw_str){ out, (size_t)k });
}

const char *hw_metric_text(hw_arena *a, double value, bool grouped)
{
    if (isnan(value))
        return "n/a";
    if (value != floor(value) || fabs(value) >= 9e15)
        return hw_arena_printf(a, "%.*f", value < 1 && value > -1 ? 4 : 2, value);
    if (value < 0)
        return hw_arena_printf(a, "-%s", hw_metric_text(a, -value, grouped));
    return grouped ? hw_grouped(a, (uint64_t)value)
                   : hw_arena_printf(a, "%" PRIu64, (uint64_t)value);
}

const char *hw_report_shape(hw_arena *a, const hw_report_kernel *k)
{
    return hw_arena_printf(a, "(%u, %u, %u)x(%u, %u, %u)", k->grid[0], k->grid[1], k->grid[2],
                           k->block[0], k->block[1], k->block[2]);
}

const char *hw_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void hw_report_sums_divide(hw_arena *a, const hw_report_run *run, hw_report_sums *into,
                           const hw_report_sums *of, uint64_t n)
{
    n = n ? n : 1;
    into->traffic = hw_arena_alloc_array(a, run->n_devices, sizeof *into->traffic);
    if (of->cache)
        into->cache = hw_arena_alloc_array(a, run->n_devices, sizeof *into->cache);
    for (int i = 0; i < HW_TOTALS; i++)
        into->total[i] = of->total[i] / n;
    for (uint32_t d = 0; d < run->n_devices; d++) {
        for (int t = 0; t < HW_TRAFFICS; t++)
            for (int f = 0; f < HW_FIELDS; f++)
                into->traffic[d][t][f] = of->traffic[d][t][f] / n;
        for (int i = 0; of->cache && i < HW_CACHES; i++)
            into->cache[d][i] = of->cache[d][i] / n;
    }
}

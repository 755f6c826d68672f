/* SPDX-License-Identifier: Apache-2.0
 *
 * Where text goes: growing bytes, and tables in them. */
#include "report.h"

#include <stdio.h>

void hw_out_printf(hw_out *o, const char *fmt, ...)
{
    char fixed[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(fixed, sizeof fixed, fmt, ap);
    va_end(ap);
    const char *text = fixed;
    if (n >= (int)sizeof fixed) {
        va_start(ap, fmt);
        text = hw_arena_vprintf(o->arena, fmt, ap);
        va_end(ap);
    }
    for (int i = 0; i < n; i++)
        hw_vec_push(o->arena, &o->bytes, text[i]);
}

const char *hw_style(const hw_out *o, hw_text_style s)
{
    static const char *const codes[] = { "\033[0m", "\033[1m", "\033[2m", "\033[33m", "\033[32m" };
    return o->colour ? codes[s] : "";
}

hw_text_table hw_table_new(hw_arena *a, unsigned columns, const char *const *headings)
{
    hw_text_table t = { .arena = a, .columns = columns };
    for (unsigned i = 0; i < columns; i++)
        hw_vec_push(a, &t.cells, headings[i]);
    return t;
}

void hw_cell(hw_text_table *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    hw_vec_push(t->arena, &t->cells, hw_arena_vprintf(t->arena, fmt, ap));
    va_end(ap);
}

/* Characters, not bytes. */
static int width_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static const char *cell_text(const hw_text_table *t, size_t i)
{
    const char *text = t->cells.ptr[i];
    return i < t->columns && *text == '>' ? text + 1 : text;
}

void hw_table_print(hw_out *o, const hw_text_table *t, unsigned indent)
{
    int *widths = HW_NEW_N(t->arena, int, t->columns);
    for (size_t i = 0; i < t->cells.len; i++) {
        int w = width_of(cell_text(t, i)), *widest = &widths[i % t->columns];
        *widest = w > *widest ? w : *widest;
    }
    for (size_t i = 0; i < t->cells.len; i++) {
        unsigned k = (unsigned)(i % t->columns);
        bool right = t->cells.ptr[k][0] == '>', last = k + 1 == t->columns;
        const char *text = cell_text(t, i);
        int gap = widths[k] - width_of(text);
        if (k == 0)
            hw_out_printf(o, "%*s%s", (int)indent, "", i == 0 ? hw_style(o, HW_BOLD) : "");
        hw_out_printf(o, "%*s%s", right ? gap : 0, "", text);
        if (!last)
            hw_out_printf(o, "%*s  ", right ? 0 : gap, "");
        else
            hw_out_printf(o, "%s\n", i < t->columns ? hw_style(o, HW_PLAIN) : "");
    }
}

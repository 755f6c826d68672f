/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program prints: text, colours, tables, JSON, complaints. */
#include "cli.h"

/* ---- complaints ---- */

static void complain(cli *c, const char *kind, const char *fmt, va_list ap)
{
    fflush(c->out); /* what was printed before comes before */
    fprintf(c->err, "halfwarp: %s", kind);
    vfprintf(c->err, fmt, ap);
    fputc('\n', c->err);
}

int cli_fail(cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    complain(c, "", fmt, ap);
    va_end(ap);
    return CLI_BAD_INPUT;
}

void cli_warn(cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    complain(c, "warning: ", fmt, ap);
    va_end(ap);
}

int cli_fail_diag(cli *c)
{
    hw_str text = hw_diag_text(c->diag, c->arena);
    fflush(c->out);
    fprintf(c->err, "halfwarp: %.*s\n", HW_STR_ARG(text));
    return CLI_BAD_INPUT;
}

/* ---- text ---- */

void cli_print(cli *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(c->out, fmt, ap);
    va_end(ap);
}

const char *cli_style_of(const cli *c, cli_style s)
{
    static const char *const codes[] = {
        [STYLE_PLAIN] = "\033[0m", [STYLE_BOLD] = "\033[1m",  [STYLE_DIM] = "\033[2m",
        [STYLE_GOOD] = "\033[32m", [STYLE_WARN] = "\033[33m", [STYLE_BAD] = "\033[31m",
    };
    return c->colour ? codes[s] : "";
}

/* ---- tables ---- */

cli_table cli_table_new(cli *c, unsigned columns, const char *const *headings)
{
    cli_table t = { .arena = c->arena, .columns = columns };
    for (unsigned i = 0; i < columns; i++)
        hw_vec_push(c->arena, &t.cells, headings[i]);
    return t;
}

void cli_cell(cli_table *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = hw_arena_vprintf(t->arena, fmt, ap);
    va_end(ap);
    hw_vec_push(t->arena, &t->cells, text);
}

/* Characters, not bytes. */
static int width_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static bool right_aligned(const cli_table *t, unsigned column)
{
    return t->cells.ptr[column][0] == '>';
}

static const char *cell_text(const cli_table *t, size_t i)
{
    const char *text = t->cells.ptr[i];
    return i < t->columns && *text == '>' ? text + 1 : text;
}

static int column_width(const cli_table *t, unsigned column)
{
    int widest = 0;
    for (size_t i = column; i < t->cells.len; i += t->columns) {
        int w = width_of(cell_text(t, i));
        widest = w > widest ? w : widest;
    }
    return widest;
}

void cli_table_print(cli *c, const cli_table *t)
{
    int *widths = HW_NEW_N(t->arena, int, t->columns);
    for (unsigned k = 0; k < t->columns; k++)
        widths[k] = column_width(t, k);
    for (size_t i = 0; i < t->cells.len; i++) {
        unsigned k = (unsigned)(i % t->columns);
        const char *text = cell_text(t, i);
        int gap = widths[k] - width_of(text);
        bool last = k + 1 == t->columns, right = right_aligned(t, k);
        if (i == 0)
            cli_print(c, "%s", cli_style_of(c, STYLE_BOLD));
        cli_print(c, "%*s%s%*s%s", right ? gap : 0, "", text, right || last ? 0 : gap, "",
                  last ? "" : "  ");
        if (i + 1 == t->columns)
            cli_print(c, "%s", cli_style_of(c, STYLE_PLAIN));
        if (last)
            cli_print(c, "\n");
    }
}

/* ---- JSON ---- */

int cli_json(cli *c, json_t *value)
{
    json_dumpf(value, c->out, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    fputc('\n', c->out);
    json_decref(value);
    return 0;
}

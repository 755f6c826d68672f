/* SPDX-License-Identifier: Apache-2.0
 * Says of each instruction whether it is accepted: check_lines PROLOGUE LINES. Every line of LINES
 * is put after the prologue's text as the body of a kernel; prints "+" or "-" and the message. */
#include "hw_ptx.h"

#include <stdio.h>

static void check_line(hw_str prologue, const char *line, size_t len)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_ptx_unit *u = NULL;
    char *text =
        hw_arena_printf(a, "%.*s\n%.*s;\nL: ret;\n}\n", HW_STR_ARG(prologue), (int)len, line);
    if (hw_ptx_parse(a, hw_str_of(text), "test", &u, d) == HW_OK) {
        printf("+ %.*s\n", (int)len, line);
    } else {
        const hw_message *m = d->first;
        printf("- %.*s\t%s\n", (int)len, line, m ? m->text : "?");
    }
    hw_arena_free(a);
}

int main(int argc, char **argv)
{
    hw_arena *a = hw_arena_new();
    hw_str prologue, lines;
    if (argc != 3 || hw_read_file(a, argv[1], &prologue, NULL) != HW_OK ||
        hw_read_file(a, argv[2], &lines, NULL) != HW_OK)
        return 2;
    const char *p = lines.ptr, *end = p + lines.len;
    while (p < end) {
        const char *q = memchr(p, '\n', (size_t)(end - p));
        if (!q)
            q = end;
        if (q > p)
            check_line(prologue, p, (size_t)(q - p));
        p = q + 1;
    }
    hw_arena_free(a);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 * Parses, links and lowers PTX files and verifies what comes out: lower_files [-p] FILE...
 * -p prints the warp IR. Exits 1 if a file is rejected or lowers to something invalid. */
#include "hw_ptx.h"

#include <stdio.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int report(const char *file, const char *stage, hw_diag *d, hw_arena *a)
{
    hw_str text = hw_diag_text(d, a);
    printf("%s: %s\n%.*s\n", file, stage, HW_STR_ARG(text));
    return 1;
}

static int lower_one(const hw_ptx_module *m, uint32_t k, const char *file, bool print)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_wir_module *w = NULL;
    int bad = 0;
    hw_status s = hw_ptx_lower(a, m, k, &w, d);
    if (s != HW_OK)
        bad = report(file, s == HW_E_UNSUPPORTED ? "not supported" : "not lowered", d, a);
    else if (hw_wir_verify(w, d) != HW_OK)
        bad = report(file, "invalid warp IR", d, a);
    if (print && w) {
        hw_str text = hw_wir_print(w, a);
        printf("%.*s\n", HW_STR_ARG(text));
    }
    hw_arena_free(a);
    return bad;
}

static int lower_file(const char *file, bool print, bool times)
{
    hw_arena *a = hw_arena_new();
    hw_diag *d = hw_diag_new(a);
    hw_str text;
    hw_ptx_unit *u = NULL;
    hw_ptx_module *m = NULL;
    int bad = 0;
    double t0 = now_ms();
    if (hw_read_file(a, file, &text, d) != HW_OK || hw_ptx_parse(a, text, file, &u, d) != HW_OK)
        bad = report(file, "not parsed", d, a);
    double t1 = now_ms();
    if (!bad && hw_ptx_link(a, &u, 1, &m, d) != HW_OK)
        bad = report(file, "not linked", d, a);
    double t2 = now_ms();
    for (uint32_t k = 0; !bad && k < m->nkernels; k++)
        bad |= lower_one(m, k, file, print) << 1;
    if (times)
        printf("%s: %zu bytes, parse %.2f ms, link %.2f ms, lower %.2f ms\n", file, text.len,
               t1 - t0, t2 - t1, now_ms() - t2);
    hw_arena_free(a);
    return bad;
}

int main(int argc, char **argv)
{
    bool print = false, times = false;
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-p") == 0)
            print = true;
        else if (strcmp(argv[i], "-t") == 0)
            times = true;
        else
            bad |= lower_file(argv[i], print, times);
    }
    return bad;
}

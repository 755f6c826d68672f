/* SPDX-License-Identifier: Apache-2.0
 * Reads PTX files for the tests: ptx_read [-q] [-l] FILE... parses each (-l: and links them as one
 * module), prints what it found or the messages. Exit status: 0 accepted, 1 rejected. */
#include "hw_ptx.h"

#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void print_module(const hw_ptx_module *m)
{
    for (uint32_t i = 0; i < m->nkernels; i++) {
        const hw_ptx_kernel *k = &m->kernels[i];
        printf("kernel %s: %u params, %u bytes; shared %u%s, local %u%s\n", k->name, k->nparams,
               k->param_bytes, k->static_shared_bytes, k->uses_dynamic_shared ? " + dynamic" : "",
               k->local_bytes, k->recursive ? ", recursive" : "");
    }
    for (uint32_t i = 0; i < m->nvariables; i++)
        printf("variable %s: %llu bytes, align %u, init %llu, relocs %u\n", m->variables[i].name,
               (unsigned long long)m->variables[i].size, m->variables[i].align,
               (unsigned long long)m->variables[i].init_bytes, m->variables[i].nrelocs);
}

static bool fail(const hw_diag *d, hw_arena *a, hw_status s)
{
    fprintf(stderr, "%s\n%s\n", hw_status_name(s), hw_diag_text(d, a).ptr);
    return false;
}

static bool link_all(hw_arena *a, hw_ptx_unit *const *units, size_t n, bool quiet, hw_diag *d)
{
    hw_ptx_module *m;
    hw_status s = hw_ptx_link(a, units, n, &m, d);
    if (s != HW_OK)
        return fail(d, a, s);
    if (!quiet)
        print_module(m);
    return true;
}

static bool read_one(hw_arena *a, const char *path, bool time, hw_ptx_unit **u)
{
    hw_diag *d = hw_diag_new(a);
    hw_str text;
    hw_status s = hw_read_file(a, path, &text, d);
    double begin = now();
    size_t used = hw_arena_used(a);
    if (s == HW_OK)
        s = hw_ptx_parse(a, text, path, u, d);
    double took = now() - begin;
    if (s != HW_OK)
        return fail(d, a, s);
    if (time)
        printf("%s: %.1f MB/s, %.1f bytes kept for each of %zu\n", path,
               (double)text.len / took * 1e-6,
               (double)(hw_arena_used(a) - used) / (double)(text.len ? text.len : 1), text.len);
    return true;
}

int main(int argc, char **argv)
{
    hw_arena *a = hw_arena_new();
    HW_VEC(hw_ptx_unit *) units = { 0 };
    bool quiet = false, together = false, time = false, ok = true;
    for (int i = 1; i < argc; i++) {
        hw_ptx_unit *u = NULL;
        if (argv[i][0] == '-') {
            quiet |= strchr(argv[i], 'q') != NULL;
            together |= strchr(argv[i], 'l') != NULL;
            time |= strchr(argv[i], 't') != NULL;
            continue;
        }
        if (!read_one(a, argv[i], time, &u))
            ok = false;
        else if (together)
            hw_vec_push(a, &units, u);
        else if (!quiet)
            ok &= link_all(a, &u, 1, quiet, hw_diag_new(a));
    }
    if (together && ok)
        ok = link_all(a, units.ptr, units.len, quiet, hw_diag_new(a));
    hw_arena_free(a);
    return ok ? 0 : 1;
}

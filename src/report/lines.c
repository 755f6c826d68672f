/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel by source line or PTX line, hot spots first; and the text of source lines. */
#include "report.h"

#include <stdlib.h>

bool hw_report_has_lines(const hw_report_kernel *k)
{
    for (uint32_t i = 0; i < k->n_sites; i++)
        if (k->sites[i].place.file && k->sites[i].place.line)
            return true;
    return false;
}

double hw_report_excess(const uint64_t f[HW_FIELDS], int traffic)
{
    switch (traffic) {
    case HW_TRAFFIC_shared_ld:
    case HW_TRAFFIC_shared_st:
    case HW_TRAFFIC_matrix_ld:
    case HW_TRAFFIC_matrix_st:
    case HW_TRAFFIC_copy_st:
        return (double)f[HW_FIELD_passes] - (double)f[HW_FIELD_ideal];
    case HW_TRAFFIC_shared_at:
        return (double)f[HW_FIELD_passes] - (double)f[HW_FIELD_ideal] +
               (double)(f[HW_FIELD_serial] - f[HW_FIELD_accesses]);
    case HW_TRAFFIC_global_at:
        return (double)(f[HW_FIELD_serial] - f[HW_FIELD_accesses]);
    case HW_TRAFFIC_constant_ld:
        return (double)f[HW_FIELD_transactions] - (double)f[HW_FIELD_requests];
    case HW_TRAFFIC_texture_ld:
    case HW_TRAFFIC_surface_ld:
    case HW_TRAFFIC_surface_st:
        return 0;
    default: /* global, local: bytes moved for nothing, in sectors */
        return f[HW_FIELD_moved] > f[HW_FIELD_least]
                   ? (double)(f[HW_FIELD_moved] - f[HW_FIELD_least]) / 32
                   : 0;
    }
}

/* The place a reader looks for: of inlined code, where it stands. */
static hw_report_place place_of(const hw_report_site *s, bool by_source)
{
    return by_source ? s->place : (hw_report_place){ NULL, NULL, s->ptx_line };
}

static bool same_file(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static hw_line *find(hw_arena *a, hw_lines *all, hw_report_place p)
{
    for (size_t i = 0; i < all->len; i++)
        if (all->ptr[i].line == p.line && same_file(all->ptr[i].file, p.file))
            return &all->ptr[i];
    hw_vec_push(a, all, (hw_line){ .file = p.file, .line = p.line });
    return &all->ptr[all->len - 1];
}

static void add(hw_line *l, const hw_report_site *s, uint32_t device, bool by_source)
{
    l->text = by_source ? NULL : s->text;
    l->inlined |= s->n_inlined > 0;
    l->sites++;
    l->executed += s->executed;
    l->threads += s->threads;
    l->on += s->on;
    l->branches += s->branches;
    l->divergent += s->divergent;
    /* Lanes that idle cost issue slots: 32 of them are one. */
    l->waste += (double)(s->executed * HW_WARP_LANES - s->threads) / HW_WARP_LANES;
    if (!s->field)
        return;
    for (int f = 0; f < HW_FIELDS; f++)
        l->field[s->traffic][f] += s->field[device][f];
    l->waste += hw_report_excess(s->field[device], s->traffic);
}

static int hotter(const void *a, const void *b)
{
    const hw_line *x = a, *y = b;
    if (x->waste != y->waste)
        return x->waste < y->waste ? 1 : -1;
    if (x->executed != y->executed)
        return x->executed < y->executed ? 1 : -1;
    return x->line < y->line ? -1 : x->line > y->line;
}

hw_lines hw_report_lines(hw_arena *a, const hw_report_run *run, const hw_report_kernel *k,
                         uint32_t device, bool by_source)
{
    hw_lines all = { 0 };
    (void)run;
    for (uint32_t i = 0; i < k->n_sites; i++)
        add(find(a, &all, place_of(&k->sites[i], by_source)), &k->sites[i], device, by_source);
    if (all.len)
        qsort(all.ptr, all.len, sizeof *all.ptr, hotter);
    return all;
}

/* ---- source files ---- */

typedef struct source {
    const char *file;
    hw_str text; /* ptr NULL: not there */
} source;

struct hw_sources {
    hw_arena *arena;
    HW_VEC(source) files;
};

hw_sources *hw_sources_new(hw_arena *a)
{
    hw_sources *s = HW_NEW(a, hw_sources);
    s->arena = a;
    return s;
}

static const source *open_source(hw_sources *s, const char *file)
{
    for (size_t i = 0; i < s->files.len; i++)
        if (strcmp(s->files.ptr[i].file, file) == 0)
            return &s->files.ptr[i];
    source new = { .file = file };
    if (hw_read_file(s->arena, file, &new.text, NULL) != HW_OK)
        new.text = (hw_str){ NULL, 0 };
    hw_vec_push(s->arena, &s->files, new);
    return &s->files.ptr[s->files.len - 1];
}

const char *hw_source_line(hw_sources *s, const char *file, uint32_t line)
{
    const source *f = file ? open_source(s, file) : NULL;
    const char *at = f ? f->text.ptr : NULL, *end = at ? at + f->text.len : NULL;
    for (uint32_t i = 1; at && i < line; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (!at || at >= end || line == 0)
        return NULL;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    return hw_arena_cstr(s->arena, (hw_str){ at, (size_t)((stop ? stop : end) - at) });
}

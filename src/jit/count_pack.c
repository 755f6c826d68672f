/* SPDX-License-Identifier: Apache-2.0
 *
 * A count table as bytes: a header, the arrays, the lanes' patterns, each once.
 */
#include "count.h"

typedef struct flat {
    hw_count_table t; /* pointers not used */
    uint32_t n_patterns, zero;
} flat;

typedef struct flat_site {
    hw_site s;              /* pointers not used */
    uint32_t offset, scale; /* index of a pattern + 1; 0: none */
} flat_site;

enum { PATTERN_BYTES = HW_WARP_LANES * sizeof(int64_t) };

typedef HW_VEC(const int64_t *) patterns;

static uint32_t pattern_index(hw_arena *a, patterns *p, const int64_t *x)
{
    if (!x)
        return 0;
    for (size_t i = p->len; i > 0; i--)
        if (p->ptr[i - 1] == x)
            return (uint32_t)i;
    hw_vec_push(a, p, x);
    return (uint32_t)p->len;
}

static uint8_t *put(uint8_t *at, const void *from, size_t n)
{
    if (n)
        memcpy(at, from, n);
    return at + n;
}

static size_t array_bytes(const flat *f)
{
    return f->t.n_blocks * sizeof(hw_count_block) + f->t.n_insts * sizeof(hw_count_inst) +
           f->t.n_branches * sizeof(hw_count_branch) + f->t.n_sites * sizeof(flat_site) +
           (size_t)f->n_patterns * PATTERN_BYTES;
}

hw_span hw_count_pack(hw_arena *a, const hw_count_table *t)
{
    patterns p = { 0 };
    flat f = { .t = *t };
    flat_site *sites = HW_NEW_N(a, flat_site, t->n_sites + 1);
    for (uint32_t i = 0; i < t->n_sites; i++) {
        sites[i].s = t->sites[i];
        sites[i].offset = pattern_index(a, &p, t->sites[i].offset);
        sites[i].scale = pattern_index(a, &p, t->sites[i].scale);
        sites[i].s.offset = sites[i].s.scale = NULL;
    }
    f.t.blocks = NULL;
    f.t.insts = NULL;
    f.t.sites = NULL;
    f.t.branches = NULL;
    f.t.places = NULL;
    f.n_patterns = (uint32_t)p.len;
    size_t n = sizeof f + array_bytes(&f);
    uint8_t *out = hw_arena_alloc(a, n), *at = put(out, &f, sizeof f);
    at = put(at, t->blocks, t->n_blocks * sizeof *t->blocks);
    at = put(at, t->insts, t->n_insts * sizeof *t->insts);
    at = put(at, t->branches, t->n_branches * sizeof *t->branches);
    at = put(at, sites, t->n_sites * sizeof *sites);
    for (size_t i = 0; i < p.len; i++)
        at = put(at, p.ptr[i], PATTERN_BYTES);
    return (hw_span){ out, n };
}

/* ---- and back ---- */

static void *take(hw_arena *a, const uint8_t **at, size_t n)
{
    void *x = hw_arena_alloc(a, n + 1);
    if (n)
        memcpy(x, *at, n);
    *at += n;
    return x;
}

static void set_places(hw_arena *a, hw_count_table *t, const hw_wir_loc *locs, uint32_t n)
{
    hw_count_place *p = HW_NEW_N(a, hw_count_place, n + 1);
    for (uint32_t i = 0; i < n; i++)
        p[i] = (hw_count_place){ .file = locs[i].file,
                                 .line = locs[i].line,
                                 .column = locs[i].column,
                                 .ptx_line = locs[i].ptx_line,
                                 .inlined_at = locs[i].inlined_at < n ? locs[i].inlined_at : 0,
                                 .function = locs[i].function };
    t->places = p;
    t->n_places = n;
}

static const int64_t *pattern(const int64_t *all, uint32_t n, uint32_t index)
{
    return index && index <= n ? all + (size_t)(index - 1) * HW_WARP_LANES : NULL;
}

const hw_count_table *hw_count_unpack(hw_arena *a, hw_span bytes, const hw_wir_loc *locs,
                                      uint32_t n_locs)
{
    flat f;
    if (bytes.len < sizeof f)
        return NULL;
    memcpy(&f, bytes.ptr, sizeof f);
    if (bytes.len != sizeof f + array_bytes(&f))
        return NULL;
    const uint8_t *at = bytes.ptr + sizeof f;
    hw_count_table *t = HW_NEW(a, hw_count_table);
    *t = f.t;
    t->blocks = take(a, &at, t->n_blocks * sizeof *t->blocks);
    t->insts = take(a, &at, t->n_insts * sizeof *t->insts);
    t->branches = take(a, &at, t->n_branches * sizeof *t->branches);
    flat_site *from = take(a, &at, t->n_sites * sizeof *from);
    const int64_t *all = take(a, &at, (size_t)f.n_patterns * PATTERN_BYTES);
    hw_site *sites = HW_NEW_N(a, hw_site, t->n_sites + 1);
    for (uint32_t i = 0; i < t->n_sites; i++) {
        sites[i] = from[i].s;
        sites[i].offset = pattern(all, f.n_patterns, from[i].offset);
        sites[i].scale = pattern(all, f.n_patterns, from[i].scale);
    }
    t->sites = sites;
    set_places(a, t, locs, n_locs);
    return t;
}

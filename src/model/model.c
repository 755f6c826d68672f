/* SPDX-License-Identifier: Apache-2.0
 *
 * The model: launches gathered by kernel and shape. */
#include "cache.h"

#include <stdlib.h>

hw_model *hw_model_new(const hw_device *const *devices, uint32_t n, hw_model_level level,
                       const char *program, const char *share)
{
    hw_model_share *shared;
    hw_arena *a = hw_model_share_take(share, &shared);
    a = a ? a : hw_arena_new();
    hw_model *m = HW_NEW(a, hw_model);
    m->arena = a;
    m->share = shared;
    m->n = n < HW_MODEL_DEVICES_MAX ? n : HW_MODEL_DEVICES_MAX;
    memcpy(m->devices, devices, m->n * sizeof *devices);
    m->level = level;
    m->program = program ? hw_arena_cstr(a, hw_str_of(program)) : NULL;
    for (uint32_t d = 0; d < m->n; d++) {
        const char *name = devices[d]->name, *path = devices[d]->path;
        bool file = path && strchr(path, '/');
        m->names[d].name = hw_arena_cstr(a, hw_str_of(name));
        m->names[d].load = file ? hw_arena_cstr(a, hw_str_of(path)) : m->names[d].name;
    }
    pthread_mutex_init(&m->lock, NULL);
    hw_model_listen(m);
    hw_model_share_ready(m);
    return m;
}

void hw_model_free(hw_model *m)
{
    if (!m)
        return;
    hw_replay_forget(m);
    for (launch *l = m->under_way, *next; l; l = next) {
        next = l->next;
        hw_arena_free(l->arena);
    }
    pthread_mutex_destroy(&m->lock);
    hw_arena_free(m->arena);
}

const hw_listener *hw_model_listener(hw_model *m)
{
    return &m->listener;
}

void hw_model_bank_width(hw_model *m, uint32_t bytes)
{
    m->bank_width = bytes;
}

/* ---- entries ---- */

static bool same_shape(const entry *e, const hw_model_launch *i)
{
    return memcmp(e->info.grid, i->grid, sizeof i->grid) == 0 &&
           memcmp(e->info.block, i->block, sizeof i->block) == 0 &&
           e->info.dynamic_shared_bytes == i->dynamic_shared_bytes;
}

/* Whether two tables are of the same code: the same instructions at the same places. A program may
 * load a module again and again. */
static bool same_code(const hw_count_table *a, const hw_count_table *b)
{
    if (!a && !b)
        return true;
    if (!a || !b || a->n_insts != b->n_insts || a->n_sites != b->n_sites ||
        a->n_places != b->n_places || a->n_branches != b->n_branches)
        return false;
    for (uint32_t i = 0; i < a->n_insts; i++) {
        const hw_count_inst *x = &a->insts[i], *y = &b->insts[i];
        if (x->cls != y->cls || x->place != y->place || x->site != y->site ||
            a->places[x->place].ptx_line != b->places[y->place].ptx_line)
            return false;
    }
    return true;
}

/* Whether the file stays small with one more set of instructions. */
static bool has_room(const hw_model *m, const hw_count_table *table)
{
    uint64_t each = INST_BYTES + INST_DEVICE_BYTES * (uint64_t)m->n;
    return (m->insts + (table ? table->n_insts : 0)) * each <= SITES_BYTES;
}

/* The entry of a launch: its own shape's, or when a kernel has had too many, the newest, mixed. */
static entry *find(hw_model *m, const hw_model_launch *i, const hw_count_table *table)
{
    entry *newest = NULL;
    unsigned shapes = 0;
    for (entry *e = m->first; e; e = e->next) {
        if (strcmp(e->info.kernel, i->kernel) != 0)
            continue;
        if (!(e->seen == table && e->seen) && !same_code(e->table, table))
            continue;
        if (same_shape(e, i) && !e->mixed)
            return e;
        newest = e;
        shapes++;
    }
    if (!newest || (shapes < SHAPES_MOST && has_room(m, table)))
        return NULL;
    newest->mixed = true;
    return newest;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Line `line` (from 1) of a text, without blanks at its ends; NULL: there is none. */
static const char *line_of(hw_arena *a, hw_str text, uint32_t line)
{
    const char *at = line ? text.ptr : NULL, *end = text.ptr + text.len;
    for (uint32_t i = 1; at && i < line; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    if (!at)
        return NULL;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    stop = stop ? stop : end;
    while (at < stop && blank(*at))
        at++;
    while (stop > at && blank(stop[-1]))
        stop--;
    return hw_arena_cstr(a, (hw_str){ at, (size_t)(stop - at) });
}

static void keep_text(hw_model *m, entry *e, hw_str ptx)
{
    if (!e->table || ptx.len == 0)
        return;
    e->text = HW_NEW_N(m->arena, const char *, e->table->n_places);
    for (uint32_t i = 0; i < e->table->n_places; i++)
        e->text[i] = line_of(m->arena, ptx, e->table->places[i].ptx_line);
}

static const char *copy_text(hw_arena *a, const char *text)
{
    return text ? hw_arena_cstr(a, hw_str_of(text)) : NULL;
}

static const void *copy_of(hw_arena *a, const void *from, size_t n, size_t each)
{
    void *to = hw_arena_alloc_array(a, n, each);
    if (n)
        memcpy(to, from, n * each);
    return to;
}

/* What the profile file needs of a table: all but how the code counts. */
static const hw_count_table *copy_table(hw_arena *a, const hw_count_table *t)
{
    hw_count_table *c = HW_NEW(a, hw_count_table);
    *c = *t;
    c->blocks = NULL;
    c->insts = copy_of(a, t->insts, t->n_insts, sizeof *t->insts);
    hw_site *sites = (hw_site *)(uintptr_t)copy_of(a, t->sites, t->n_sites, sizeof *t->sites);
    for (uint32_t i = 0; i < t->n_sites; i++)
        sites[i].offset = sites[i].scale = NULL;
    c->sites = sites;
    c->branches = NULL;
    hw_count_place *places = HW_NEW_N(a, hw_count_place, t->n_places);
    const hw_count_place none = { 0 };
    for (uint32_t i = 0; i < t->n_places; i++) { /* neighbours mostly share their texts */
        const hw_count_place *before = i ? &t->places[i - 1] : &none;
        hw_count_place *p = &places[i];
        *p = t->places[i];
        p->file = p->file == before->file ? (i ? places[i - 1].file : NULL) : copy_text(a, p->file);
        p->function = p->function == before->function ? (i ? places[i - 1].function : NULL)
                                                      : copy_text(a, p->function);
    }
    c->places = places;
    return c;
}

static entry *add(hw_model *m, const hw_model_launch *i, const hw_count_table *table)
{
    entry *e = HW_NEW(m->arena, entry);
    e->info = *i;
    e->info.kernel = hw_arena_cstr(m->arena, hw_str_of(i->kernel));
    e->info.ptx = (hw_str){ NULL, 0 };
    e->table = table ? copy_table(m->arena, table) : NULL;
    e->seen = table;
    e->first_id = i->id;
    e->sums = hw_model_sums_new(m->arena, m);
    if (table) {
        m->insts += table->n_insts;
        e->insts = HW_NEW_N(m->arena, place_count, table->n_insts);
        e->cells = HW_NEW_N(m->arena, slot *, (size_t)table->n_sites * HW_SITE_SPACES);
    }
    keep_text(m, e, i->ptx);
    if (m->last)
        m->last->next = e;
    else
        m->first = e;
    m->last = e;
    return e;
}

/* ---- groups of equal launches ---- */

static void extend(hw_model *m, group *g, uint64_t id)
{
    g->launches++;
    m->ranges += hw_model_ids_extend(m->arena, &g->ranges, id);
}

static void add_group(hw_model *m, entry *e, const sums *s, const hw_model_launch *l)
{
    if (m->ranges >= RANGES_MOST) {
        e->ungrouped++;
        return;
    }
    for (size_t i = e->groups.len; i > 0; i--) {
        group *g = e->groups.ptr[i - 1];
        bool nested = (g->ranges.ptr[0] & HW_MODEL_NESTED) != 0;
        if (g->context != l->context || g->stream != l->stream ||
            nested != ((l->id & HW_MODEL_NESTED) != 0) || !hw_model_sums_equal(m, &g->sums, s))
            continue;
        extend(m, g, l->id);
        return;
    }
    if (m->groups >= SUMS_MOST / (m->n < 4 ? 4 : m->n)) {
        e->ungrouped++;
        return;
    }
    m->groups++;
    group *g = HW_NEW(m->arena, group);
    g->context = l->context;
    g->stream = l->stream;
    g->sums = hw_model_sums_new(m->arena, m);
    hw_model_sums_add(m, &g->sums, s);
    extend(m, g, l->id);
    hw_vec_push(m->arena, &e->groups, g);
}

/* ---- launches ---- */

/* Takes out the launch that this thread carried out last. */
static launch *take(hw_model *m)
{
    for (launch **at = &m->under_way; *at; at = &(*at)->next) {
        launch *l = *at;
        if (!l->ended || !pthread_equal(l->thread, pthread_self()))
            continue;
        *at = l->next;
        return l;
    }
    return NULL;
}

static void add_launch(hw_model *m, entry *e, const launch *l)
{
    hw_model_sums_add(m, &e->sums, &l->sums);
    for (uint32_t i = 0; i < l->table->n_insts; i++) {
        e->insts[i].warps += l->insts[i].warps;
        e->insts[i].lanes += l->insts[i].lanes;
        e->insts[i].on += l->insts[i].on;
        e->insts[i].divergent += l->insts[i].divergent;
    }
    hw_model_cells_add(m->arena, m, l->table, e->cells, l->cells);
}

void hw_model_launch_done(hw_model *m, const hw_model_launch *i)
{
    pthread_mutex_lock(&m->lock);
    hw_model_share_changing(m, true);
    launch *l = take(m);
    const hw_count_table *table = l ? l->table : NULL;
    entry *e = find(m, i, table);
    if (!e)
        e = add(m, i, table);
    m->launches++;
    e->launches++;
    e->first_id = i->id < e->first_id ? i->id : e->first_id;
    if (i->status != HW_OK) {
        e->failed++;
        e->failure = i->status;
    }
    if (l) {
        for (uint32_t d = 0; d < m->n; d++)
            if (!e->registers[d].count)
                e->registers[d] = hw_model_registers(m->devices[d], i, d, l->registers, l->local);
        if (!e->info.static_shared_bytes)
            e->info.static_shared_bytes = l->fixed;
        if (l->local > e->info.local_bytes)
            e->info.local_bytes = l->local;
        add_launch(m, e, l);
        add_group(m, e, &l->sums, i);
        hw_arena_free(l->arena);
    }
    hw_model_share_changing(m, false);
    pthread_mutex_unlock(&m->lock);
}

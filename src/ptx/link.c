/* SPDX-License-Identifier: Apache-2.0
 * Units made a module: names resolved across units, variables, functions and kernels numbered. */
#include "parse.h"

#include <nettle/sha2.h>
#include <stdlib.h>

/* All symbols of one name that units share. */
typedef struct group {
    hw_str name; /* the table's key: must stand first */
    ptx_symbol *best;
    const hw_ptx_unit *unit; /* of best */
    int rank;
    uint64_t size; /* largest of the .common ones */
    uint32_t align;
} group;

typedef struct linker {
    struct hw_ptx_link *l;
    hw_arena *scratch;
    hw_diag *d;
    ptx_table groups;
    hw_status status;
} linker;

const ptx_symbol *hw_ptx_resolve(const ptx_symbol *s)
{
    while (s->definition)
        s = s->definition;
    return s;
}

static hw_str without_prefix(hw_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len > n && memcmp(s.ptr, prefix, n) == 0 ? (hw_str){ s.ptr + n, s.len - n } : s;
}

/* A function of the device runtime by one of its names, or HW_DC_COUNT. */
static hw_device_function device_function(hw_str name)
{
    static const char *const names[] = {
#define HW_DEVICE_CALL(id, name, operands, result) [HW_DC_##id] = name,
#include "device_call.def"
#undef HW_DEVICE_CALL
    };
    hw_str s = without_prefix(without_prefix(name, "__cudaCDP2"), "cuda");
    if (s.len == name.len)
        return HW_DC_COUNT;
    if (s.len > 5 && memcmp(s.ptr + s.len - 5, "_ptsz", 5) == 0)
        s.len -= 5;
    unsigned k = 0;
    while (k < HW_DC_COUNT && !hw_str_is(s, names[k]))
        k++;
    return k;
}

bool hw_ptx_find_builtin(hw_str name, uint32_t *helper, uint32_t *aux)
{
    static const struct {
        const char *name;
        uint32_t helper;
    } rows[] = {
#define HW_H_NONE                    HW_H_COUNT
#define HW_PTX_BUILTIN(name, helper) { name, HW_H_##helper },
#include "builtin.def"
#undef HW_PTX_BUILTIN
#undef HW_H_NONE
    };
    *helper = HW_H_DEVICE_CALL;
    *aux = device_function(name);
    if (*aux != HW_DC_COUNT)
        return true;
    *aux = 0;
    for (size_t i = 0; i < HW_COUNTOF(rows); i++)
        if (hw_str_is(name, rows[i].name)) {
            *helper = rows[i].helper;
            return true;
        }
    return false;
}

static bool is_builtin(hw_str name)
{
    uint32_t helper, aux;
    return hw_ptx_find_builtin(name, &helper, &aux);
}

static void fail(linker *k, const hw_ptx_unit *u, ptx_place at, const char *text)
{
    k->status = hw_fail_at(k->d, HW_E_LINK, hw_ptx_place(u, at), "%s", text);
}

/* ---- grouping ---- */

static bool is_defined(const ptx_symbol *s)
{
    if (s->kind == PTX_SYM_FUNCTION)
        return s->function->has_body || s->is_alias;
    return s->linkage != PTX_EXTERN;
}

static bool is_shared_by_name(const ptx_symbol *s)
{
    if (s->function && s->kind == PTX_SYM_VARIABLE)
        return false; /* of a function's scope */
    return s->linkage != PTX_LOCAL || !is_defined(s);
}

/* Who wins: a strong definition, a weak one, .common, an extern that can stand for itself. */
static int rank_of(const ptx_symbol *s)
{
    if (!is_defined(s))
        return s->kind == PTX_SYM_VARIABLE && s->space == PTX_SPACE_SHARED && !s->unsized ? 1 : 0;
    return s->linkage == PTX_COMMON ? 2 : s->linkage == PTX_WEAK ? 3 : 4;
}

static bool params_agree(const ptx_param *a, uint32_t na, const ptx_param *b, uint32_t nb)
{
    if (na != nb)
        return false;
    for (uint32_t i = 0; i < na; i++)
        if (a[i].size != b[i].size || a[i].is_reg != b[i].is_reg)
            return false;
    return true;
}

static bool agree(const ptx_symbol *a, const ptx_symbol *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == PTX_SYM_VARIABLE)
        return a->space == b->space;
    const ptx_function *f = a->function, *g = b->function;
    return f->is_kernel == g->is_kernel &&
           params_agree(f->params, f->nparams, g->params, g->nparams) &&
           params_agree(f->results, f->nresults, g->results, g->nresults);
}

static void add_to_group(linker *k, const hw_ptx_unit *u, ptx_symbol *s)
{
    uint64_t hash = hw_hash64(s->name.ptr, s->name.len, 0);
    group *g = ptx_table_find(&k->groups, s->name, hash);
    int rank = rank_of(s);
    if (!g) {
        g = HW_NEW(k->scratch, group);
        *g = (group){ s->name, s, u, rank, s->size, s->align };
        ptx_table_add(k->scratch, &k->groups, g, hash);
        return;
    }
    if (!agree(g->best, s)) {
        fail(k, u, s->place,
             hw_arena_printf(k->scratch, "'%.*s' does not agree with its declaration in %s",
                             HW_STR_ARG(s->name), g->unit->origin));
        return;
    }
    if (rank == 4 && g->rank == 4) {
        fail(k, u, s->place,
             hw_arena_printf(k->scratch, "'%.*s' is also defined in %s, line %u",
                             HW_STR_ARG(s->name), g->unit->origin, g->best->place.line));
        return;
    }
    if (rank <= 2) {
        g->size = s->size > g->size ? s->size : g->size;
        g->align = s->align > g->align ? s->align : g->align;
    }
    if (rank > g->rank) {
        g->best = s;
        g->unit = u;
        g->rank = rank;
    }
}

static void settle_symbol(linker *k, ptx_symbol *s)
{
    if (!is_shared_by_name(s))
        return;
    group *g = ptx_table_find(&k->groups, s->name, hw_hash64(s->name.ptr, s->name.len, 0));
    if (!g || (s == g->best && !g->rank))
        return;
    if (s == g->best) {
        if (g->rank <= 2) {
            s->size = g->size;
            s->align = g->align;
        }
        return;
    }
    if (!s->is_alias || g->rank > rank_of(s))
        s->definition = (ptx_symbol *)g->best;
}

static void reset(ptx_symbol *s)
{
    s->mark = 0;
    if (!s->is_alias)
        s->definition = NULL;
}

static void reset_unit(hw_ptx_unit *u)
{
    for (size_t j = 0; j < u->symbols.len; j++)
        reset(u->symbols.ptr[j]);
    for (size_t j = 0; j < u->functions.len; j++)
        for (size_t i = 0; i < u->functions.ptr[j]->locals.len; i++)
            reset(u->functions.ptr[j]->locals.ptr[i]);
}

static void resolve_names(linker *k)
{
    struct hw_ptx_link *l = k->l;
    for (size_t i = 0; i < l->nunits; i++) {
        hw_ptx_unit *u = l->units[i];
        reset_unit(u);
        for (size_t j = 0; j < u->symbols.len; j++)
            if (is_shared_by_name(u->symbols.ptr[j]))
                add_to_group(k, u, u->symbols.ptr[j]);
    }
    for (size_t i = 0; i < l->nunits; i++)
        for (size_t j = 0; j < l->units[i]->symbols.len; j++)
            settle_symbol(k, l->units[i]->symbols.ptr[j]);
}

/* ---- what is missing ---- */

static bool is_missing(const ptx_symbol *s)
{
    if (s->kind == PTX_SYM_FUNCTION)
        return !s->function->has_body && !is_builtin(s->name);
    return s->kind == PTX_SYM_VARIABLE && s->linkage == PTX_EXTERN && s->space != PTX_SPACE_SHARED;
}

static void need(linker *k, const hw_ptx_unit *u, const ptx_symbol *use, hw_str by)
{
    ptx_symbol *s = (ptx_symbol *)hw_ptx_resolve(use);
    if (!is_missing(s) || s->mark)
        return;
    s->mark = 1; /* said once */
    fail(k, u, use->place,
         hw_arena_printf(k->scratch, "unresolved extern %s '%.*s', needed by '%.*s'",
                         s->kind == PTX_SYM_FUNCTION ? "function" : "variable", HW_STR_ARG(s->name),
                         HW_STR_ARG(by)));
}

static void find_missing(linker *k)
{
    for (size_t i = 0; i < k->l->nunits; i++) {
        const hw_ptx_unit *u = k->l->units[i];
        for (size_t j = 0; j < u->functions.len; j++) {
            const ptx_function *f = u->functions.ptr[j];
            for (size_t r = 0; r < f->refs.len; r++)
                need(k, u, f->refs.ptr[r], f->symbol->name);
        }
        for (size_t j = 0; j < u->symbols.len; j++) {
            const ptx_symbol *s = u->symbols.ptr[j];
            for (uint32_t r = 0; r < s->nrelocs; r++)
                need(k, u, s->relocs[r].symbol, s->name);
        }
    }
}

/* ---- numbering ---- */

static void spread_address_taken(struct hw_ptx_link *l)
{
    for (size_t i = 0; i < l->nunits; i++) {
        for (size_t j = 0; j < l->units[i]->symbols.len; j++) {
            const ptx_symbol *s = l->units[i]->symbols.ptr[j];
            if (s->kind == PTX_SYM_FUNCTION && s->address_taken)
                ((ptx_symbol *)hw_ptx_resolve(s))->address_taken = true;
        }
    }
}

static bool is_mine(const ptx_function *f)
{
    return f->has_body && !f->symbol->definition;
}

static void number_functions(struct hw_ptx_link *l, bool address_taken)
{
    for (size_t i = 0; i < l->nunits; i++) {
        for (size_t j = 0; j < l->units[i]->functions.len; j++) {
            ptx_function *f = l->units[i]->functions.ptr[j];
            if (!is_mine(f) || f->is_kernel || f->symbol->address_taken != address_taken)
                continue;
            f->symbol->index = (uint32_t)l->functions.len;
            hw_vec_push(l->arena, &l->functions, f);
        }
    }
    if (address_taken)
        l->naddressed = (uint32_t)l->functions.len;
}

static bool is_variable(const ptx_symbol *s)
{
    return s->kind == PTX_SYM_VARIABLE && s->linkage != PTX_EXTERN && !s->definition &&
           s->space != PTX_SPACE_SHARED;
}

static void note_dynamic(struct hw_ptx_link *l, const ptx_symbol *s)
{
    enum { LEAST = 16 };
    if (!s->unsized || s->definition)
        return;
    uint32_t align = s->align > LEAST ? s->align : LEAST;
    l->dynamic_align = align > l->dynamic_align ? align : l->dynamic_align;
}

static void number_unit(struct hw_ptx_link *l, const hw_ptx_unit *u, uint32_t *shared)
{
    for (size_t j = 0; j < u->symbols.len; j++) {
        ptx_symbol *s = u->symbols.ptr[j];
        if (is_variable(s)) {
            s->index = (uint32_t)l->variables.len;
            hw_vec_push(l->arena, &l->variables, s);
        } else if (s->kind == PTX_SYM_VARIABLE && s->space == PTX_SPACE_SHARED) {
            s->index = (*shared)++;
            note_dynamic(l, s);
        }
    }
    for (size_t j = 0; j < u->functions.len; j++) {
        ptx_function *f = u->functions.ptr[j];
        for (size_t i = 0; i < f->locals.len; i++)
            if (f->locals.ptr[i]->space == PTX_SPACE_SHARED)
                f->locals.ptr[i]->index = (*shared)++;
        if (f->is_kernel && is_mine(f)) {
            f->symbol->index = (uint32_t)l->kernels.len;
            hw_vec_push(l->arena, &l->kernels, f);
        }
    }
}

/* ---- the module as other rooms see it ---- */

static const char *cstr(struct hw_ptx_link *l, hw_str s)
{
    return hw_arena_cstr(l->arena, s);
}

static const hw_ptx_reloc *make_relocs(struct hw_ptx_link *l, const ptx_symbol *s)
{
    hw_ptx_reloc *out = HW_NEW_N(l->arena, hw_ptx_reloc, s->nrelocs);
    for (uint32_t i = 0; i < s->nrelocs; i++) {
        const ptx_init_reloc *r = &s->relocs[i];
        const ptx_symbol *to = hw_ptx_resolve(r->symbol);
        bool is_function = to->kind == PTX_SYM_FUNCTION;
        uint32_t value = !is_function              ? to->index
                         : to->function->is_kernel ? HW_PTX_KERNEL_HANDLE | to->index
                                                   : to->index + 2;
        out[i] = (hw_ptx_reloc){ .offset = (uint32_t)r->offset,
                                 .width = r->width,
                                 .shift = r->shift,
                                 .is_function = is_function,
                                 .target = value,
                                 .addend = r->addend };
    }
    return s->nrelocs ? out : NULL;
}

static void make_variables(struct hw_ptx_link *l, hw_ptx_module *m)
{
    hw_ptx_variable *v = HW_NEW_N(l->arena, hw_ptx_variable, l->variables.len);
    for (size_t i = 0; i < l->variables.len; i++) {
        const ptx_symbol *s = l->variables.ptr[i];
        v[i] =
            (hw_ptx_variable){ .name = cstr(l, s->name),
                               .space = s->space == PTX_SPACE_CONST ? HW_PTX_CONST : HW_PTX_GLOBAL,
                               .size = s->size,
                               .align = s->align,
                               .visible = s->linkage != PTX_LOCAL,
                               .managed = s->managed,
                               .init = s->init,
                               .init_bytes = s->init_bytes,
                               .relocs = make_relocs(l, s),
                               .nrelocs = s->nrelocs,
                               .is_texture = s->type == PTX_TEXREF,
                               .is_sampler = s->type == PTX_SAMPLERREF,
                               .is_surface = s->type == PTX_SURFREF };
    }
    m->variables = v;
    m->nvariables = (uint32_t)l->variables.len;
}

static uint32_t product(const uint32_t n[3])
{
    uint64_t p = (uint64_t)n[0] * n[1];
    p = p > UINT32_MAX ? UINT32_MAX : p * n[2];
    return p > UINT32_MAX ? UINT32_MAX : (uint32_t)p;
}

static const char *first_file(const hw_ptx_unit *u)
{
    for (size_t i = 0; i < u->files.len; i++)
        if (u->files.ptr[i])
            return u->files.ptr[i];
    return NULL;
}

static void make_kernel(struct hw_ptx_link *l, const ptx_function *f, const ptx_layout *at,
                        hw_ptx_kernel *k)
{
    hw_ptx_param *params = HW_NEW_N(l->arena, hw_ptx_param, f->nparams);
    for (uint32_t i = 0; i < f->nparams; i++)
        params[i] = (hw_ptx_param){ cstr(l, f->params[i].name), f->params[i].offset,
                                    f->params[i].size, f->params[i].align };
    *k = (hw_ptx_kernel){ .name = cstr(l, f->symbol->name),
                          .params = params,
                          .nparams = f->nparams,
                          .param_bytes = f->param_bytes,
                          .max_threads = product(f->maxntid[0] ? f->maxntid : f->reqntid),
                          .min_blocks_per_sm = f->min_blocks,
                          .maxnreg = f->maxnreg,
                          .static_shared_bytes = at->static_bytes,
                          .uses_dynamic_shared = at->uses_dynamic,
                          .local_bytes = at->local_bytes,
                          .recursive = at->recursive,
                          .ptx_version = f->unit->version,
                          .target = f->unit->target,
                          .file = first_file(f->unit) };
    memcpy(k->maxntid, f->maxntid, sizeof k->maxntid);
    memcpy(k->reqntid, f->reqntid, sizeof k->reqntid);
    memcpy(k->cluster, f->cluster, sizeof k->cluster);
}

static hw_status make_kernels(linker *k, hw_ptx_module *m)
{
    struct hw_ptx_link *l = k->l;
    hw_ptx_kernel *out = HW_NEW_N(l->arena, hw_ptx_kernel, l->kernels.len);
    l->layouts = HW_NEW_N(l->arena, ptx_layout, l->kernels.len);
    for (size_t i = 0; i < l->kernels.len; i++) {
        HW_TRY(ptx_layout_kernel(l, l->kernels.ptr[i], &l->layouts[i], k->d));
        make_kernel(l, l->kernels.ptr[i], &l->layouts[i], &out[i]);
    }
    m->kernels = out;
    m->nkernels = (uint32_t)l->kernels.len;
    return HW_OK;
}

/* SHA-256 from nettle: small, in every Debian system, uses the processor's SHA instructions. */
static void make_key(const struct hw_ptx_link *l, uint8_t key[32])
{
    struct sha256_ctx c;
    sha256_init(&c);
    for (size_t i = 0; i < l->nunits; i++) {
        hw_str t = l->units[i]->text;
        uint64_t len = t.len;
        sha256_update(&c, sizeof len, (const uint8_t *)&len);
        if (t.len)
            sha256_update(&c, t.len, (const uint8_t *)t.ptr);
    }
    sha256_digest(&c, 32, key);
}

static hw_status run(linker *k)
{
    struct hw_ptx_link *l = k->l;
    uint32_t shared = 0;
    resolve_names(k);
    if (k->status == HW_OK)
        find_missing(k);
    if (k->status != HW_OK)
        return k->status;
    spread_address_taken(l);
    number_functions(l, true);
    number_functions(l, false);
    for (size_t i = 0; i < l->nunits; i++)
        number_unit(l, l->units[i], &shared);
    l->mark = 1;
    make_variables(l, l->module);
    HW_TRY(make_kernels(k, l->module));
    make_key(l, l->module->key);
    return HW_OK;
}

hw_status hw_ptx_link(hw_arena *a, hw_ptx_unit *const *units, size_t n, hw_ptx_module **out,
                      hw_diag *d)
{
    *out = NULL;
    struct hw_ptx_link *l = HW_NEW(a, struct hw_ptx_link);
    l->arena = a;
    l->nunits = n;
    l->units = HW_NEW_N(a, hw_ptx_unit *, n);
    if (n)
        memcpy((void *)l->units, units, n * sizeof *units);
    l->module = HW_NEW(a, hw_ptx_module);
    l->module->priv = l;
    linker k = { .l = l, .d = d, .scratch = hw_arena_new() };
    hw_status s = run(&k);
    hw_arena_free(k.scratch);
    if (s == HW_OK)
        *out = l->module;
    return s;
}

hw_str hw_ptx_text(const hw_ptx_module *m)
{
    return m->priv->nunits == 1 ? m->priv->units[0]->text : (hw_str){ NULL, 0 };
}

uint32_t hw_ptx_find_kernel(const hw_ptx_module *m, const char *name)
{
    for (uint32_t i = 0; i < m->nkernels; i++)
        if (strcmp(m->kernels[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

uint32_t hw_ptx_find_variable(const hw_ptx_module *m, const char *name)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < m->nvariables; i++) {
        if (strcmp(m->variables[i].name, name) != 0)
            continue;
        if (m->variables[i].visible)
            return i;
        if (found == UINT32_MAX)
            found = i;
    }
    return found;
}

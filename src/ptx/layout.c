/* SPDX-License-Identifier: Apache-2.0
 * Where things stand: parameters, a function's local variables, a kernel's shared variables and
 * what it can reach. */
#include "parse.h"

#include <stdlib.h>

static uint64_t round_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) & ~(align - 1);
}

void ptx_layout_params(ptx_param *params, uint32_t n, uint32_t *bytes)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        at = round_up(at, params[i].align ? params[i].align : 1);
        params[i].offset = (uint32_t)at;
        if (params[i].symbol)
            params[i].symbol->offset = at;
        at += params[i].size;
    }
    *bytes = at <= UINT32_MAX ? (uint32_t)at : UINT32_MAX;
}

bool ptx_layout_locals(ptx_function *f)
{
    uint64_t at = 0;
    for (size_t i = 0; i < f->locals.len; i++) {
        ptx_symbol *s = f->locals.ptr[i];
        if (s->space != PTX_SPACE_LOCAL)
            continue;
        at = round_up(at, s->align ? s->align : 1);
        s->offset = at;
        at += s->size;
        if (at > INT32_MAX)
            return false;
    }
    f->local_bytes = (uint32_t)at;
    return true;
}

/* ---- what a kernel reaches ---- */

typedef struct walk {
    struct hw_ptx_link *link;
    HW_VEC(ptx_function *) functions; /* also the list of those still to look at */
    HW_VEC(const ptx_symbol *) shared;
    bool dynamic, indirect, addressed;
} walk;

static void reach(walk *w, ptx_symbol *use)
{
    ptx_symbol *s = (ptx_symbol *)hw_ptx_resolve(use);
    if (s->mark == w->link->mark)
        return;
    s->mark = w->link->mark;
    if (s->kind == PTX_SYM_FUNCTION) {
        w->addressed |= s->address_taken;
        if (s->function->has_body && !s->function->is_kernel)
            hw_vec_push(w->link->arena, &w->functions, s->function);
        return;
    }
    if (s->space != PTX_SPACE_SHARED)
        return;
    if (!s->unsized)
        hw_vec_push(w->link->arena, &w->shared, s);
    w->dynamic |= s->unsized;
}

static void look_at(walk *w, const ptx_function *f)
{
    w->indirect |= f->calls_indirectly;
    for (size_t i = 0; i < f->refs.len; i++)
        reach(w, f->refs.ptr[i]);
    for (size_t i = 0; i < f->locals.len; i++)
        if (f->locals.ptr[i]->space == PTX_SPACE_SHARED)
            reach(w, f->locals.ptr[i]);
}

static void look_around(walk *w, ptx_function *kernel)
{
    hw_vec_push(w->link->arena, &w->functions, kernel);
    for (size_t next = 0; next < w->functions.len; next++) {
        look_at(w, w->functions.ptr[next]);
        if (!w->indirect && !w->addressed)
            continue;
        for (uint32_t i = 0; i < w->link->naddressed; i++)
            reach(w, w->link->functions.ptr[i]->symbol);
    }
}

/* Function values must not depend on the kernel: see ptx_layout.functions. */
static void order_functions(walk *w, ptx_layout *out)
{
    uint32_t n = (uint32_t)w->functions.len, at = 1;
    out->functions = HW_NEW_N(w->link->arena, ptx_function *, n);
    out->functions[0] = w->functions.ptr[0];
    for (uint32_t i = 0; i < w->link->naddressed && (w->indirect || w->addressed); i++)
        out->functions[at++] = w->link->functions.ptr[i];
    bool placed = w->indirect || w->addressed;
    for (uint32_t i = 1; i < n; i++)
        if (!placed || !w->functions.ptr[i]->symbol->address_taken)
            out->functions[at++] = w->functions.ptr[i];
    HW_CHECK(at == n);
    out->nfunctions = n;
    for (uint32_t i = 0; i < n; i++)
        out->functions[i]->order = i;
}

/* ---- shared memory ---- */

static int by_index(const void *a, const void *b)
{
    const ptx_symbol *x = *(const ptx_symbol *const *)a, *y = *(const ptx_symbol *const *)b;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_address(const void *a, const void *b)
{
    const ptx_symbol *x = ((const ptx_shared *)a)->symbol, *y = ((const ptx_shared *)b)->symbol;
    return (x > y) - (x < y);
}

static bool place_shared(walk *w, ptx_layout *out)
{
    uint32_t n = (uint32_t)w->shared.len;
    uint64_t at = 0;
    if (n)
        qsort(w->shared.ptr, n, sizeof *w->shared.ptr, by_index);
    out->shared = HW_NEW_N(w->link->arena, ptx_shared, n);
    out->nshared = n;
    for (uint32_t i = 0; i < n; i++) {
        const ptx_symbol *s = w->shared.ptr[i];
        at = round_up(at, s->align ? s->align : 1);
        out->shared[i] = (ptx_shared){ s, (uint32_t)at };
        at += s->size;
        if (at > INT32_MAX)
            return false;
    }
    /* As ptxas does: where a module declares dynamic shared memory, every kernel ends where that
     * could begin; in debug code only the kernels that use it do. */
    if (w->link->dynamic_align && (w->dynamic || !out->functions[0]->unit->debug))
        at = round_up(at, w->link->dynamic_align);
    out->uses_dynamic = w->dynamic;
    out->static_bytes = (uint32_t)at;
    if (n)
        qsort(out->shared, n, sizeof *out->shared, by_address);
    return true;
}

uint32_t hw_ptx_shared_offset(const ptx_layout *l, const ptx_symbol *s)
{
    s = hw_ptx_resolve(s);
    if (s->space == PTX_SPACE_SHARED && s->unsized)
        return l->static_bytes;
    ptx_shared want = { .symbol = s };
    const ptx_shared *found =
        l->nshared ? bsearch(&want, l->shared, l->nshared, sizeof want, by_address) : NULL;
    return found ? found->offset : UINT32_MAX;
}

/* ---- local memory: the deepest sum of frames over calls ---- */

typedef struct frame {
    uint32_t function, edge;
} frame;

typedef struct depths {
    const struct hw_ptx_link *link;
    const ptx_layout *layout;
    uint64_t *below; /* deepest sum under a function's own frame */
    enum { UNSEEN, ON_STACK, DONE } * state;
    frame *stack;
    uint32_t top;
    bool recursive;
} depths;

/* The function that edge number e of f leads to; false when there are no more edges. */
static bool edge_target(const depths *d, const ptx_function *f, uint32_t e,
                        const ptx_function **out)
{
    *out = NULL;
    if (e < f->refs.len) {
        const ptx_symbol *s = hw_ptx_resolve(f->refs.ptr[e]);
        if (s->kind == PTX_SYM_FUNCTION && s->function->has_body && !s->function->is_kernel)
            *out = s->function;
        return true;
    }
    e -= (uint32_t)f->refs.len;
    if (!f->calls_indirectly || e >= d->link->naddressed)
        return false;
    *out = d->link->functions.ptr[e];
    return true;
}

static uint64_t whole_depth(const depths *d, uint32_t i)
{
    uint64_t own = d->layout->functions[i]->local_bytes;
    return d->below[i] ? round_up(own, 16) + d->below[i] : own;
}

static void leave(depths *d)
{
    uint32_t i = d->stack[--d->top].function;
    d->state[i] = DONE;
    if (d->top) {
        uint32_t caller = d->stack[d->top - 1].function;
        uint64_t depth = whole_depth(d, i);
        if (depth > d->below[caller])
            d->below[caller] = depth;
    }
}

static void visit(depths *d)
{
    frame *at = &d->stack[d->top - 1];
    const ptx_function *to;
    if (!edge_target(d, d->layout->functions[at->function], at->edge, &to)) {
        leave(d);
        return;
    }
    at->edge++;
    if (!to)
        return;
    uint32_t i = to->order;
    if (d->state[i] == ON_STACK) {
        d->recursive = true;
    } else if (d->state[i] == DONE) {
        uint64_t depth = whole_depth(d, i);
        if (depth > d->below[at->function])
            d->below[at->function] = depth;
    } else {
        d->state[i] = ON_STACK;
        d->stack[d->top++] = (frame){ i, 0 };
    }
}

static void sum_locals(const struct hw_ptx_link *l, ptx_layout *out)
{
    hw_arena *scratch = hw_arena_new();
    depths d = { .link = l, .layout = out };
    d.below = HW_NEW_N(scratch, uint64_t, out->nfunctions);
    d.state = hw_arena_alloc_array(scratch, out->nfunctions, sizeof *d.state);
    d.stack = HW_NEW_N(scratch, frame, out->nfunctions);
    d.state[0] = ON_STACK;
    d.stack[d.top++] = (frame){ 0, 0 };
    while (d.top)
        visit(&d);
    uint64_t bytes = whole_depth(&d, 0);
    out->local_bytes = bytes <= UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    out->recursive = d.recursive;
    hw_arena_free(scratch);
}

hw_status ptx_layout_kernel(struct hw_ptx_link *l, ptx_function *kernel, ptx_layout *out,
                            hw_diag *d)
{
    walk w = { .link = l };
    l->mark++;
    look_around(&w, kernel);
    order_functions(&w, out);
    out->calls_indirectly = w.indirect;
    if (!place_shared(&w, out))
        return hw_fail(d, HW_E_LINK, "shared variables of kernel '%.*s' take more than 2 GB",
                       HW_STR_ARG(kernel->symbol->name));
    sum_locals(l, out);
    return HW_OK;
}

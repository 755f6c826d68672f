/* SPDX-License-Identifier: Apache-2.0
 * Functions, their parameters and calls (PTX ISA 7 "Abstracting the ABI").
 *
 * A scalar parameter or result is a register. A structure (.param .b8 p[N]) lives in the caller's
 * local memory and its address is passed; a structure that is a result is one more parameter after
 * the others. A scalar whose address is taken gets a place in the frame and is copied there. */
#include "lower.h"

uint32_t lw_function_id(const ptx_symbol *s)
{
    return s->index + 1; /* 0 is the kernel */
}

/* ---- places ---- */

static uint32_t place_slot(const lw *l, const ptx_symbol *s)
{
    uint32_t k = (uint32_t)hw_hash64(&s, sizeof s, 0) & l->place_mask;
    while (l->places[k].symbol && l->places[k].symbol != s)
        k = (k + 1) & l->place_mask;
    return k;
}

const lw_place *lw_find_place(const lw *l, const ptx_symbol *s)
{
    if (!l->places)
        return NULL;
    const lw_place *p = &l->places[place_slot(l, s)];
    return p->symbol ? p : NULL;
}

static bool is_structure(ptx_type t, uint64_t size)
{
    return size != ptx_types[t].bits / 8;
}

static bool passed_by_address(const ptx_param *p)
{
    return !p->is_reg && (p->is_array || is_structure(p->type, p->size));
}

static hw_wir_type scalar_type(ptx_type t)
{
    return hw_wir_reg_type(ptx_wir_type(t));
}

static uint32_t frame_area(lw *l, uint64_t size)
{
    uint32_t at = (l->frame_bytes + 15) & ~15u;
    l->frame_bytes = at + (uint32_t)((size + 15) & ~UINT64_C(15));
    return at;
}

static lw_place *add_place(lw *l, const ptx_symbol *s, lw_place_kind kind)
{
    lw_place *p = &l->places[place_slot(l, s)];
    *p = (lw_place){ .symbol = s, .kind = kind, .type = scalar_type(s->type) };
    return p;
}

/* A variable declared in the body for a call. */
static void declare_local(lw *l, const ptx_symbol *s)
{
    bool structure = is_structure(s->type, s->size);
    lw_place *p = add_place(l, s, structure ? LW_FRAME : LW_REG);
    if (structure)
        p->offset = frame_area(l, s->size);
    else
        p->reg = hw_wir_reg_new(&l->b, p->type, NULL);
}

/* A parameter of the function itself: the register it arrives in. */
static uint32_t declare_param(lw *l, const ptx_param *p)
{
    if (p->is_reg)
        return p->reg;
    bool structure = passed_by_address(p);
    lw_place *place = add_place(l, p->symbol, structure ? LW_POINTER : LW_REG);
    return place->reg = hw_wir_reg_new(&l->b, structure ? HW_T_I64 : place->type, NULL);
}

/* mov and cvta name a parameter other than in brackets. */
static void move_to_frame(lw *l)
{
    for (size_t k = 0; k < l->f->insns.len; k++) {
        const ptx_insn *i = &l->f->insns.ptr[k];
        if (i->nops != 2 || i->ops[1].kind != PTX_O_SYMBOL)
            continue;
        const ptx_symbol *s = hw_ptx_resolve(i->ops[1].symbol);
        lw_place *p = (lw_place *)(uintptr_t)lw_find_place(l, s);
        if (!p || p->kind != LW_REG)
            continue;
        p->kind = LW_FRAME;
        p->offset = frame_area(l, s->size);
    }
}

/* Adds the registers of one parameter or result: a .v2 or .v4 register is its parts. */
static uint32_t add_registers(lw *l, const ptx_param *p, uint32_t *list, uint32_t n)
{
    uint32_t parts = p->is_reg ? l->f->regs.ptr[p->reg].vector : 1, reg = declare_param(l, p);
    if (parts <= 1) {
        list[n] = reg;
        return n + 1;
    }
    for (uint32_t k = 0; k < parts; k++)
        list[n + k] = reg + 1 + k;
    return n + parts;
}

static void signature(lw *l)
{
    const ptx_function *f = l->f;
    uint32_t *params = HW_NEW_N(l->lm->arena, uint32_t, 4 * (f->nparams + f->nresults) + 1);
    uint32_t *results = HW_NEW_N(l->lm->arena, uint32_t, 4 * f->nresults + 1);
    uint32_t np = 0, nr = 0;
    for (uint32_t k = 0; k < f->nparams; k++)
        np = add_registers(l, &f->params[k], params, np);
    for (uint32_t k = 0; k < f->nresults; k++) {
        if (passed_by_address(&f->results[k]))
            params[np++] = declare_param(l, &f->results[k]);
        else
            nr = add_registers(l, &f->results[k], results, nr);
    }
    hw_wir_function *w = &l->lm->m->functions.ptr[l->b.function];
    w->params = params;
    w->nparams = np;
    w->results = results;
    w->nresults = nr;
}

void lw_declare_places(lw *l)
{
    const ptx_function *f = l->f;
    uint32_t n = f->is_kernel ? 0 : f->nparams + f->nresults;
    for (size_t k = 0; k < f->locals.len; k++)
        n += f->locals.ptr[k]->space == PTX_SPACE_PARAM;
    uint32_t size = 4;
    while (size < 2 * n)
        size *= 2;
    if (n) {
        l->places = HW_NEW_N(l->arena, lw_place, size);
        l->place_mask = size - 1;
    }
    if (!f->is_kernel)
        signature(l);
    for (size_t k = 0; k < f->locals.len; k++)
        if (f->locals.ptr[k]->space == PTX_SPACE_PARAM)
            declare_local(l, f->locals.ptr[k]);
    if (n)
        move_to_frame(l);
}

static hw_wir_insn *frame_access(lw *l, hw_wir_op op, const lw_place *p)
{
    hw_wir_val at = lw_nullary(l, HW_W_LOCAL_ADDR, HW_T_I64, p->offset), reg = hw_wir_reg(p->reg);
    hw_wir_insn *i = op == HW_W_LOAD
                         ? hw_wir_emit(&l->b, op, p->type, 1, &reg, 1, &at)
                         : hw_wir_emit(&l->b, op, p->type, 0, NULL, 2, (hw_wir_val[]){ at, reg });
    i->space = HW_SPACE_LOCAL;
    i->flags |= HW_I_MADE;
    lw_effect(l, i);
    return i;
}

static void move_params(lw *l, const ptx_param *params, uint32_t n, hw_wir_op op)
{
    for (uint32_t k = 0; k < n; k++) {
        const lw_place *p = params[k].is_reg ? NULL : lw_find_place(l, params[k].symbol);
        if (p && p->kind == LW_FRAME)
            frame_access(l, op, p);
    }
}

void lw_enter(lw *l)
{
    if (!l->f->is_kernel)
        move_params(l, l->f->params, l->f->nparams, HW_W_STORE);
}

void lw_return(lw *l)
{
    if (!l->f->is_kernel)
        move_params(l, l->f->results, l->f->nresults, HW_W_LOAD);
}

/* ---- stack memory taken at run time (ISA 9.7.17) ---- */

/* Addresses are of 64 bits here; 32-bit ones of local memory would not hold them. */
static bool wide_addresses(lw *l)
{
    if (l->t[0] == HW_T_I64)
        return true;
    lw_fail(l, "a stack address of 32 bits is not supported");
    return false;
}

static void stack_address(lw *l, hw_wir_op op, uint32_t nsrc, hw_wir_val size, uint64_t align)
{
    if (!wide_addresses(l))
        return;
    hw_wir_val at = lw_temp(l, HW_T_I64);
    hw_wir_insn *i = hw_wir_emit(&l->b, op, HW_T_I64, 1, &at, nsrc, &size);
    i->imm = align;
    lw_effect(l, i);
    lw_result(l, at);
}

void w_alloca(lw *l)
{
    stack_address(l, HW_W_ALLOCA, 1, lw_source(l, 0), l->i->nops > 2 ? l->i->ops[2].bits : 8);
}

void w_stacksave(lw *l)
{
    stack_address(l, HW_W_STACKSAVE, 0, HW_WIR_NONE, 0);
}

void w_stackrestore(lw *l)
{
    hw_wir_val to = wide_addresses(l) ? lw_source(l, 0) : hw_wir_imm(0);
    lw_effect(l, hw_wir_emit(&l->b, HW_W_STACKRESTORE, HW_T_I64, 0, NULL, 1, &to));
}

/* ---- calls ---- */

typedef struct call {
    const ptx_operand *results, *callee, *args, *proto;
    const ptx_param *formal_results, *formal_params;
    uint32_t nformal_results, nformal_params;
    hw_wir_val src[250], dst[250];
    uint32_t nsrc, ndst;
} call;

hw_wir_val lw_in_register(lw *l, hw_wir_type t, hw_wir_val v)
{
    if (v.kind == HW_V_REG)
        return v;
    hw_wir_val r = lw_temp(l, t);
    hw_wir_mov(&l->b, hw_wir_reg_type(t), r, v);
    return r;
}

static bool take_operands(lw *l, call *c)
{
    const ptx_insn *i = l->i;
    uint32_t k = 0;
    if (k < i->nops && i->ops[k].kind == PTX_O_LIST)
        c->results = &i->ops[k++];
    if (k < i->nops)
        c->callee = &i->ops[k++];
    if (k < i->nops && i->ops[k].kind == PTX_O_LIST)
        c->args = &i->ops[k++];
    if (k < i->nops && i->ops[k].kind == PTX_O_SYMBOL)
        c->proto = &i->ops[k++];
    if (c->callee && k == i->nops)
        return true;
    lw_fail(l, "a call of this form is not supported");
    return false;
}

static bool take_prototype(lw *l, call *c)
{
    const ptx_symbol *s = c->proto ? hw_ptx_resolve(c->proto->symbol) : NULL;
    if (s && s->kind == PTX_SYM_PROTOTYPE && s->prototype) {
        c->formal_results = s->prototype->results;
        c->nformal_results = s->prototype->nresults;
        c->formal_params = s->prototype->params;
        c->nformal_params = s->prototype->nparams;
        return true;
    }
    lw_fail(l, "an indirect call needs a .callprototype");
    return false;
}

static void take_function(call *c, const ptx_function *f)
{
    c->formal_results = f->results;
    c->nformal_results = f->nresults;
    c->formal_params = f->params;
    c->nformal_params = f->nparams;
}

static const lw_place *operand_place(const lw *l, const ptx_operand *o)
{
    return o->kind == PTX_O_SYMBOL ? lw_find_place(l, hw_ptx_resolve(o->symbol)) : NULL;
}

static hw_wir_val argument(lw *l, const ptx_param *formal, const ptx_operand *o)
{
    const lw_place *p = operand_place(l, o);
    if (passed_by_address(formal)) {
        if (!p || p->kind == LW_REG) {
            lw_fail(l, "argument for '%.*s' is no structure", HW_STR_ARG(formal->name));
            return hw_wir_imm(0);
        }
        return lw_symbol_address(l, p->symbol, 0);
    }
    if (!p)
        return lw_in_register(l, ptx_wir_type(formal->type), lw_read(l, o, formal->type));
    if (p->kind == LW_FRAME)
        frame_access(l, HW_W_LOAD, p);
    return lw_fit(l, hw_wir_reg(p->reg), p->type, scalar_type(formal->type), false);
}

/* An argument or result that is a vector register counts as its parts. */
static uint32_t parts_of(const ptx_operand *o)
{
    return o->kind == PTX_O_VECTOR ? o->nitems : 1;
}

static const ptx_operand *part_of(const ptx_operand *o, uint32_t k)
{
    return o->kind == PTX_O_VECTOR ? &o->items[k] : o;
}

static bool has_room(lw *l, const call *c)
{
    if (c->nsrc < HW_COUNTOF(c->src) && c->ndst < HW_COUNTOF(c->dst))
        return true;
    lw_fail(l, "a call with more than %u parameters is not supported",
            (unsigned)HW_COUNTOF(c->src));
    return false;
}

static bool pass_arguments(lw *l, call *c)
{
    uint32_t given = c->args ? c->args->nitems : 0;
    if (given != c->nformal_params) {
        lw_fail(l, "%u arguments, %u are expected", given, c->nformal_params);
        return false;
    }
    for (uint32_t k = 0; k < given; k++) {
        const ptx_operand *o = &c->args->items[k];
        for (uint32_t j = 0; j < parts_of(o); j++)
            if (has_room(l, c))
                c->src[c->nsrc++] = argument(l, &c->formal_params[k], part_of(o, j));
    }
    return l->status == HW_OK;
}

static hw_wir_val result_register(lw *l, const ptx_param *formal, const ptx_operand *o)
{
    hw_wir_type t = scalar_type(formal->type);
    bool direct;
    if (o->kind == PTX_O_REG)
        return lw_target(l, o, t, &direct);
    const lw_place *p = operand_place(l, o);
    if (!p)
        return HW_WIR_NONE;
    return p->type == t && p->kind != LW_POINTER ? hw_wir_reg(p->reg) : lw_temp(l, t);
}

static void take_result(lw *l, call *c, const ptx_param *formal, const ptx_operand *o)
{
    if (!has_room(l, c))
        return;
    if (passed_by_address(formal))
        c->src[c->nsrc++] =
            o ? argument(l, formal, o)
              : lw_nullary(l, HW_W_LOCAL_ADDR, HW_T_I64, frame_area(l, formal->size));
    else
        c->dst[c->ndst++] =
            o ? result_register(l, formal, o) : lw_temp(l, scalar_type(formal->type));
}

static bool take_results(lw *l, call *c)
{
    uint32_t given = c->results ? c->results->nitems : 0;
    if (given && given != c->nformal_results) {
        lw_fail(l, "%u results, %u are expected", given, c->nformal_results);
        return false;
    }
    for (uint32_t k = 0; k < c->nformal_results; k++) {
        const ptx_operand *o = given ? &c->results->items[k] : NULL;
        for (uint32_t j = 0; j < (o ? parts_of(o) : 1); j++)
            take_result(l, c, &c->formal_results[k], o ? part_of(o, j) : NULL);
    }
    return l->status == HW_OK;
}

/* A result that could not be written directly: another width, or a place in the frame. */
static void settle_result(lw *l, const ptx_param *formal, const ptx_operand *o, hw_wir_val v)
{
    const lw_place *p = operand_place(l, o);
    if (!p && o->kind == PTX_O_REG && v.reg != o->reg)
        lw_set(l, o, formal->type, v);
    if (p && v.reg != p->reg) {
        v = lw_fit(l, v, scalar_type(formal->type), p->type, false);
        hw_wir_mov(&l->b, p->type, hw_wir_reg(p->reg), v);
        lw_effect(l, lw_last(l));
    }
    if (p && p->kind == LW_FRAME)
        frame_access(l, HW_W_STORE, p);
}

static void settle_results(lw *l, const call *c)
{
    uint32_t n = 0;
    for (uint32_t k = 0; c->results && k < c->results->nitems; k++) {
        const ptx_param *formal = &c->formal_results[k];
        const ptx_operand *o = &c->results->items[k];
        for (uint32_t j = 0; !passed_by_address(formal) && j < parts_of(o); j++)
            settle_result(l, formal, part_of(o, j), c->dst[n++]);
    }
}

static void emit_call(lw *l, call *c, hw_wir_op op, uint64_t imm, uint64_t aux)
{
    hw_wir_insn *i = hw_wir_emit(&l->b, op, HW_T_NONE, c->ndst, c->dst, c->nsrc, c->src);
    i->imm = imm;
    i->aux = aux;
    lw_effect(l, i);
    settle_results(l, c);
}

static void call_direct(lw *l, call *c)
{
    const ptx_symbol *s = hw_ptx_resolve(c->callee->symbol);
    const ptx_function *f = s->kind == PTX_SYM_FUNCTION ? s->function : NULL;
    if (!f || f->is_kernel) {
        lw_fail(l, "'%.*s' is no function that can be called", HW_STR_ARG(s->name));
        return;
    }
    uint32_t helper = HW_H_COUNT, aux = 0;
    if (!f->has_body && (!hw_ptx_find_builtin(s->name, &helper, &aux) || helper == HW_H_COUNT)) {
        lw_fail(l, "a call of '%.*s' is not supported", HW_STR_ARG(s->name));
        return;
    }
    take_function(c, f);
    if (!pass_arguments(l, c) || !take_results(l, c))
        return;
    if (!f->has_body)
        emit_call(l, c, HW_W_HELPER, helper, aux);
    else
        emit_call(l, c, HW_W_CALL, lw_function_id(s), 0);
}

static void call_indirect(lw *l, call *c)
{
    c->src[c->nsrc++] = lw_in_register(l, HW_T_I64, lw_read(l, c->callee, PTX_U64));
    if (!take_prototype(l, c) || !pass_arguments(l, c) || !take_results(l, c))
        return;
    emit_call(l, c, HW_W_CALLI, 0, 0);
}

void w_call(lw *l)
{
    call *c = HW_NEW(l->arena, call);
    if (!take_operands(l, c))
        return;
    if (c->callee->kind == PTX_O_SYMBOL)
        call_direct(l, c);
    else
        call_indirect(l, c);
}

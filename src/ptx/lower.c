/* SPDX-License-Identifier: Apache-2.0
 * Makes warp IR of a linked kernel and all it reaches: functions, blocks, branches. What single
 * instructions become is the warp column of ptx.def (lower_rows.c). */
#include "lower.h"

/* ---- places in the source ---- */

static uint32_t copy_loc(lw_module *lm, uint32_t loc)
{
    if (!loc || loc >= lm->unit->locs.len)
        return 0;
    if (lm->locs[loc])
        return lm->locs[loc];
    hw_wir_loc c = lm->unit->locs.ptr[loc];
    uint32_t parent = c.inlined_at < loc ? copy_loc(lm, c.inlined_at) : 0;
    c.inlined_at = parent;
    hw_vec_push(lm->arena, &lm->m->locs, c);
    return lm->locs[loc] = (uint32_t)lm->m->locs.len - 1;
}

/* The loc of an instruction: its .loc with its own line of PTX. */
static uint32_t loc_of(lw_module *lm, const ptx_insn *i)
{
    if (lm->last_made && lm->last_loc == i->loc && lm->last_line == i->place.line)
        return lm->last_made;
    hw_wir_loc c = { 0 };
    if (i->loc && i->loc < lm->unit->locs.len) {
        c = lm->unit->locs.ptr[i->loc];
        c.inlined_at = c.inlined_at < i->loc ? copy_loc(lm, c.inlined_at) : 0;
    }
    c.ptx_line = i->place.line;
    hw_vec_push(lm->arena, &lm->m->locs, c);
    lm->last_loc = i->loc;
    lm->last_line = i->place.line;
    return lm->last_made = (uint32_t)lm->m->locs.len - 1;
}

static void enter_unit(lw_module *lm, const struct hw_ptx_unit *u)
{
    if (lm->unit == u)
        return;
    lm->unit = u;
    lm->locs = HW_NEW_N(lm->arena, uint32_t, u->locs.len + 1);
    lm->last_made = 0;
}

/* ---- blocks: one begins at each label and after each branch ---- */

static bool ends_block(const ptx_insn *i)
{
    switch (i->row->id) {
    case PTX_ROW_bra:
    case PTX_ROW_brx:
    case PTX_ROW_ret:
    case PTX_ROW_exit:
    case PTX_ROW_trap:
    case PTX_ROW_brkpt:
        return true;
    default:
        return false;
    }
}

/* begins[k]: the block that begins before instruction k, 0 where none does; block 0 is the entry.
 * One more for the end. */
static uint32_t *make_blocks(lw *l)
{
    const ptx_function *f = l->f;
    size_t n = f->insns.len;
    uint32_t *begins = HW_NEW_N(l->arena, uint32_t, n + 1);
    const char **names = HW_NEW_N(l->arena, const char *, n + 1);
    for (size_t k = 0; k < f->labels.len; k++) {
        begins[f->labels.ptr[k].insn] = 1;
        if (!names[f->labels.ptr[k].insn])
            names[f->labels.ptr[k].insn] = hw_arena_cstr(l->lm->arena, f->labels.ptr[k].name);
    }
    for (size_t k = 0; k < n; k++)
        if (ends_block(&f->insns.ptr[k]) && (k + 1 < n || f->insns.ptr[k].guard >= 0))
            begins[k + 1] = 1;
    hw_wir_block_new(&l->b, NULL);
    for (size_t k = 0; k <= n; k++)
        if (begins[k])
            begins[k] = hw_wir_block_new(&l->b, names[k]);
    if (!f->is_kernel)
        l->last = hw_wir_block_new(&l->b, NULL);
    l->blocks = HW_NEW_N(l->arena, uint32_t, f->labels.len + 1);
    for (size_t k = 0; k < f->labels.len; k++)
        l->blocks[k] = begins[f->labels.ptr[k].insn];
    return begins;
}

static bool is_terminated(lw *l)
{
    const hw_wir_insn *i = lw_last(l);
    return i && (hw_wir_ops[i->op].flags & HW_WF_T);
}

static void start_block(lw *l, uint32_t block)
{
    if (!is_terminated(l))
        hw_wir_br(&l->b, block);
    l->b.block = block;
}

/* ---- control flow ---- */

/* To yes where the guard holds, else to no. */
static void branch(lw *l, uint32_t yes, uint32_t no)
{
    if (l->guard.kind == HW_V_NONE)
        hw_wir_br(&l->b, yes);
    else if (l->guard_negated) {
        l->b.head |= HW_I_ELSE;
        hw_wir_cbr(&l->b, l->guard, no, yes);
    } else
        hw_wir_cbr(&l->b, l->guard, yes, no);
}

/* Lanes whose guard does not hold take one target more; indices beyond the list stay outside. */
static hw_wir_val guarded_index(lw *l, hw_wir_val index, uint32_t n)
{
    hw_wir_val beyond = hw_wir_cmp(&l->b, HW_W_ICMP, HW_C_GE_U, HW_T_I32, index, hw_wir_imm(n));
    hw_wir_val safe = hw_wir_op3(&l->b, HW_W_SELECT, HW_T_I32, beyond, hw_wir_imm(n + 1), index);
    hw_wir_val on = safe, off = hw_wir_imm(n);
    return hw_wir_op3(&l->b, HW_W_SELECT, HW_T_I32, l->guard, l->guard_negated ? off : on,
                      l->guard_negated ? on : off);
}

static void branch_indexed(lw *l, uint32_t next)
{
    const ptx_symbol *s = l->i->nops > 1 && l->i->ops[1].kind == PTX_O_SYMBOL
                              ? hw_ptx_resolve(l->i->ops[1].symbol)
                              : NULL;
    if (!s || !s->targets || !s->targets->n) {
        lw_fail(l, "brx.idx needs a list of .branchtargets");
        return;
    }
    uint32_t n = s->targets->n;
    uint32_t *targets = HW_NEW_N(l->arena, uint32_t, n + 1);
    for (uint32_t k = 0; k < n; k++)
        targets[k] = l->blocks[s->targets->labels[k]];
    hw_wir_val index = lw_source(l, 0);
    if (l->guard.kind != HW_V_NONE)
        index = guarded_index(l, index, n);
    hw_wir_insn *brx = hw_wir_emit(&l->b, HW_W_BRX, HW_T_NONE, 0, NULL, 1, &index);
    brx->flags |= l->guard.kind != HW_V_NONE ? HW_I_ELSE : 0;
    targets[n] = next;
    hw_wir_set_targets(&l->b, n + (l->guard.kind != HW_V_NONE), targets);
}

static void end_lanes(lw *l, hw_wir_op op, uint64_t imm, uint32_t next)
{
    hw_wir_insn *i = hw_wir_emit(&l->b, op, HW_T_NONE, 0, NULL, 0, NULL);
    i->imm = imm;
    lw_effect(l, i);
    if (l->guard.kind == HW_V_REG)
        hw_wir_set_targets(&l->b, 1, &next);
}

static void lower_control(lw *l, uint32_t next)
{
    switch (l->i->row->id) {
    case PTX_ROW_bra:
        branch(l, l->blocks[l->i->ops[0].label], next);
        break;
    case PTX_ROW_brx:
        branch_indexed(l, next);
        break;
    case PTX_ROW_ret:
        if (l->f->is_kernel)
            end_lanes(l, HW_W_RET, 0, next);
        else {
            l->b.head |= HW_I_CALLS;
            branch(l, l->last, next);
        }
        break;
    case PTX_ROW_exit:
        end_lanes(l, HW_W_EXIT, 0, next);
        break;
    default:
        end_lanes(l, HW_W_TRAP, HW_F_TRAP, next);
        break;
    }
}

/* ---- a function ---- */

static void lower_insn(lw *l, const ptx_insn *i, uint32_t next)
{
    l->i = i;
    l->x = i->match;
    for (unsigned k = 0; k < l->x->ntypes; k++)
        l->t[k] = ptx_wir_type(l->x->type[k]);
    l->guard = i->guard >= 0 ? hw_wir_reg((uint32_t)i->guard) : HW_WIR_NONE;
    l->guard_negated = i->guard_negated;
    l->b.loc = loc_of(l->lm, i);
    l->b.head = HW_I_HEAD;
    if (ends_block(i))
        lower_control(l, next);
    else
        lw_rows[i->row->id](l);
    if (l->b.head) /* nothing to do */
        lw_effect(l, hw_wir_emit(&l->b, HW_W_NOP, HW_T_NONE, 0, NULL, 0, NULL));
    l->b.marks = 0;
}

/* The end of the text, and of a device function: its only return, so that the results of lanes that
 * return early are merged with those of the others. */
static void finish_body(lw *l)
{
    l->i = NULL;
    l->guard = HW_WIR_NONE;
    l->b.head = 0;
    l->b.marks = HW_I_MADE;
    if (!l->f->is_kernel)
        start_block(l, l->last);
    else if (is_terminated(l))
        return;
    lw_return(l);
    end_lanes(l, HW_W_RET, 0, 0);
}

static void lower_body(lw *l)
{
    const ptx_function *f = l->f;
    uint32_t *begins = make_blocks(l);
    l->b.block = 0;
    l->b.marks = HW_I_MADE;
    lw_enter(l);
    l->b.marks = 0;
    for (size_t k = 0; k < f->insns.len && l->status == HW_OK; k++) {
        if (begins[k])
            start_block(l, begins[k]);
        lower_insn(l, &f->insns.ptr[k], begins[k + 1]);
    }
    if (l->status != HW_OK)
        return;
    if (begins[f->insns.len])
        start_block(l, begins[f->insns.len]);
    finish_body(l);
}

static hw_status lower_function(lw_module *lm, const ptx_function *f, uint32_t id,
                                hw_arena *scratch)
{
    enter_unit(lm, f->unit);
    lw l = { .lm = lm,
             .arena = scratch,
             .f = f,
             .b = { .m = lm->m, .function = id },
             .frame_bytes = f->local_bytes };
    hw_wir_function *w = &lm->m->functions.ptr[id];
    w->defined = true;
    for (size_t r = 0; r < f->regs.len; r++)
        hw_wir_reg_new(&l.b, ptx_wir_type(f->regs.ptr[r].type),
                       hw_arena_cstr(lm->arena, f->regs.ptr[r].name));
    l.carry = hw_wir_reg_new(&l.b, HW_T_I1, NULL);
    lw_declare_places(&l);
    l.first_temp = (uint32_t)lm->m->functions.ptr[id].regs.len;
    lower_body(&l);
    lm->m->functions.ptr[id].local_bytes = (l.frame_bytes + 15) & ~15u;
    return l.status;
}

/* Function 0 is the kernel, 1 + k the k-th function of the link, so that the value of a function's
 * address is the same in every kernel. Those not reached have no body. */
static void declare_functions(lw_module *lm, const ptx_function *kernel)
{
    hw_wir_function_new(lm->m, hw_arena_cstr(lm->arena, kernel->symbol->name), true);
    for (size_t k = 0; k < lm->link->functions.len; k++) {
        const ptx_symbol *s = lm->link->functions.ptr[k]->symbol;
        uint32_t id = hw_wir_function_new(lm->m, hw_arena_cstr(lm->arena, s->name), false);
        lm->m->functions.ptr[id].defined = false;
    }
}

static hw_status lower_all(lw_module *lm, hw_arena *scratch)
{
    const ptx_layout *lay = lm->layout;
    for (uint32_t k = 0; k < lay->nfunctions; k++) {
        const ptx_function *f = lay->functions[k];
        HW_TRY(lower_function(lm, f, k ? lw_function_id(hw_ptx_resolve(f->symbol)) : 0, scratch));
    }
    return HW_OK;
}

hw_status hw_ptx_lower(hw_arena *a, const hw_ptx_module *m, uint32_t kernel, hw_wir_module **out,
                       hw_diag *d)
{
    const struct hw_ptx_link *link = m->priv;
    if (kernel >= link->kernels.len)
        return hw_fail(d, HW_E_NOT_FOUND, "no kernel %u in the module", kernel);
    const ptx_function *f = link->kernels.ptr[kernel];
    lw_module lm = { .arena = a,
                     .d = d,
                     .link = link,
                     .layout = &link->layouts[kernel],
                     .m = hw_wir_module_new(a) };
    declare_functions(&lm, f);
    hw_arena *scratch = hw_arena_new();
    hw_status s = lower_all(&lm, scratch);
    hw_arena_free(scratch);
    HW_TRY(s);
    lm.m->static_shared_bytes = lm.layout->static_bytes;
    lm.m->param_bytes = f->param_bytes;
    memcpy(lm.m->reqntid, f->reqntid, sizeof f->reqntid);
    lm.m->uses_indirect_calls = lm.layout->calls_indirectly;
    *out = lm.m;
    return HW_OK;
}

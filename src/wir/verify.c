/* SPDX-License-Identifier: Apache-2.0
 * The rules of warp IR, in words. A module that breaks one shows a fault of its producer.
 *
 * Rules
 *   A defined function has blocks; each ends with its only terminator.
 *   Targets are blocks: BR one, CBR two, BRX one or more; a guarded EXIT, RET or TRAP one (where
 * the other lanes go on), an unguarded one none. A guard is a register of type I1. BR, CBR and BRX
 * take none. Operand counts and register types are as wir.def and op.c's signatures say; a
 * destination is a register or NONE, never an immediate; a source is NONE only as a barrier's
 * thread count. Immediates fit the operand's width. No register is written twice by one
 * instruction. Fields (cond, round, space, scope, atom, count, named indices, loc) are in range and
 * belong to the operation's kind. A call's arguments and results match the callee's registers one
 * by one.
 */
#include "inside.h"

typedef struct verifier {
    const hw_wir_module *m;
    const hw_wir_function *f;
    const hw_wir_insn *i;
    size_t block, index;
    hw_diag *d;
    uint32_t failures;
} verifier;

enum { MOST_MESSAGES = 10 };

static HW_PRINTF(2, 3) void broken(verifier *v, const char *fmt, ...)
{
    if (v->failures++ >= MOST_MESSAGES || !v->d)
        return;
    va_list ap;
    va_start(ap, fmt);
    const char *text = hw_arena_vprintf(v->d->arena, fmt, ap);
    va_end(ap);
    const char *where = v->f->name ? v->f->name : "?";
    if (v->i)
        hw_fail(v->d, HW_E_INTERNAL, "%s: block %zu, instruction %zu (%s): %s", where, v->block,
                v->index, v->i->op < HW_W_COUNT ? hw_wir_ops[v->i->op].name : "?", text);
    else
        hw_fail(v->d, HW_E_INTERNAL, "%s: block %zu: %s", where, v->block, text);
}

static hw_wir_type type_of(const verifier *v, uint32_t reg)
{
    return v->f->regs.ptr[reg].type;
}

static bool is_reg(verifier *v, hw_wir_val x)
{
    if (x.kind == HW_V_REG && x.reg >= v->f->regs.len)
        broken(v, "register %u does not exist", x.reg);
    return x.kind == HW_V_REG && x.reg < v->f->regs.len;
}

static void check_dst(verifier *v, uint32_t k)
{
    hw_wir_val x = v->i->dst[k];
    if (x.kind == HW_V_IMM)
        broken(v, "result %u is an immediate", k);
    if (!is_reg(v, x))
        return;
    hw_wir_type want = hw_wir_dst_type(v->i, k);
    if (want != HW_T_NONE && type_of(v, x.reg) != want)
        broken(v, "result %u is of type %s, not %s", k, hw_wir_type_name(type_of(v, x.reg)),
               hw_wir_type_name(want));
    for (uint32_t j = 0; j < k; j++)
        if (v->i->dst[j].kind == HW_V_REG && v->i->dst[j].reg == x.reg)
            broken(v, "results %u and %u are the same register", j, k);
}

static bool is_address(hw_wir_type t)
{
    return t == HW_T_I32 || t == HW_T_I64;
}

static bool may_be_none(const hw_wir_insn *i, uint32_t k)
{
    return k == 1 && (i->op == HW_W_BARRIER || i->op == HW_W_BARRIER_RED);
}

static void check_src(verifier *v, uint32_t k)
{
    hw_wir_val x = v->i->src[k];
    hw_wir_type want = hw_wir_src_type(v->i, k);
    bool ruled = hw_wir_signature[v->i->op][0] != '?';
    if (x.kind == HW_V_NONE && !may_be_none(v->i, k))
        broken(v, "operand %u is missing", k);
    if (x.kind == HW_V_IMM && want != HW_T_NONE && (x.imm & ~hw_wir_mask(hw_wir_bits(want))))
        broken(v, "operand %u: immediate 0x%llx is wider than %s", k, (unsigned long long)x.imm,
               hw_wir_type_name(want));
    if (!is_reg(v, x))
        return;
    hw_wir_type got = type_of(v, x.reg);
    if (want != HW_T_NONE ? got != want : ruled && !is_address(got))
        broken(v, "operand %u is of type %s, not %s", k, hw_wir_type_name(got),
               want != HW_T_NONE ? hw_wir_type_name(want) : "an address");
}

/* ---- what depends on the operation ---- */

static void check_counts(verifier *v)
{
    const hw_wir_op_info *info = &hw_wir_ops[v->i->op];
    if (info->ndst >= 0 && v->i->ndst != info->ndst)
        broken(v, "%u results, not %d", v->i->ndst, info->ndst);
    if (info->nsrc >= 0 && v->i->nsrc != info->nsrc)
        broken(v, "%u operands, not %d", v->i->nsrc, info->nsrc);
}

/* The operands of memory operations follow count and atom. */
static void check_memory(verifier *v)
{
    uint8_t n = v->i->count;
    if (n != 1 && n != 2 && n != 4 && n != 8)
        broken(v, "count %u is not 1, 2, 4 or 8", n);
    if (v->i->op == HW_W_LOAD && v->i->ndst != n)
        broken(v, "%u results for %u elements", v->i->ndst, n);
    if (v->i->op == HW_W_STORE && v->i->nsrc != 1 + n)
        broken(v, "%u operands for %u elements", v->i->nsrc, n);
    if (v->i->op == HW_W_ATOM || v->i->op == HW_W_RED) {
        unsigned values = v->i->atom == HW_ATOM_CAS ? 2 : 1;
        if (v->i->nsrc != 1 + values * n)
            broken(v, "%u operands for an atomic on %u elements", v->i->nsrc, n);
    }
}

static void check_fields(verifier *v)
{
    const hw_wir_insn *i = v->i;
    if (i->type >= HW_T_COUNT || i->type2 >= HW_T_COUNT)
        broken(v, "type out of range");
    if (i->cond >= HW_C_COUNT || i->round > HW_ROUND_NA || i->space >= HW_SPACE_COUNT ||
        i->scope > HW_SCOPE_SYSTEM || i->atom >= HW_ATOM_COUNT)
        broken(v, "cond, round, space, scope or atom out of range");
    if (i->op == HW_W_ICMP && i->cond > HW_C_GE_U)
        broken(v, "integer comparison with a float condition");
    if (i->op == HW_W_FCMP && i->cond < HW_C_FEQ)
        broken(v, "float comparison with an integer condition");
}

static void check_presence(verifier *v)
{
    const hw_wir_insn *i = v->i;
    if (strchr(hw_wir_signature[i->op], 't') && i->type == HW_T_NONE)
        broken(v, "type missing");
    if (strchr(hw_wir_signature[i->op], 'u') && i->type2 == HW_T_NONE)
        broken(v, "type2 missing");
    if (i->loc >= v->m->locs.len)
        broken(v, "loc out of range");
}

static void check_widths(verifier *v)
{
    unsigned from = hw_wir_bits(v->i->type), to = hw_wir_bits(v->i->type2);
    if ((v->i->op == HW_W_ZEXT || v->i->op == HW_W_SEXT) && to <= from)
        broken(v, "extension to a type that is not wider");
    if (v->i->op == HW_W_TRUNC && to >= from)
        broken(v, "truncation to a type that is not narrower");
    if (v->i->op == HW_W_BITCAST && to != from)
        broken(v, "bitcast between widths");
}

/* Upper bound of imm where it is an index; UINT64_MAX elsewhere. */
static uint64_t index_bound(const verifier *v)
{
    switch (v->i->op) {
    case HW_W_SREG:
        return HW_SR_COUNT;
    case HW_W_HELPER:
        return HW_H_COUNT;
    case HW_W_CALL:
    case HW_W_FUNC_ADDR:
        return v->m->functions.len;
    case HW_W_SYMBOL:
        return v->m->symbols.len;
    case HW_W_SHFL:
        return HW_SHFL_IDX + 1;
    case HW_W_BARRIER_RED:
        return 3;
    default:
        return UINT64_MAX;
    }
}

static void check_argument(verifier *v, hw_wir_val x, const hw_wir_function *callee, uint32_t param)
{
    if (param >= callee->regs.len)
        broken(v, "the callee's parameter register does not exist");
    else if (is_reg(v, x) && type_of(v, x.reg) != callee->regs.ptr[param].type)
        broken(v, "argument or result of type %s, not %s", hw_wir_type_name(type_of(v, x.reg)),
               hw_wir_type_name(callee->regs.ptr[param].type));
}

static void check_call(verifier *v)
{
    const hw_wir_function *callee = &v->m->functions.ptr[v->i->imm];
    if (v->i->nsrc != callee->nparams || v->i->ndst != callee->nresults) {
        broken(v, "the callee has %u parameters and %u results", callee->nparams, callee->nresults);
        return;
    }
    for (uint32_t k = 0; k < v->i->nsrc; k++)
        check_argument(v, v->i->src[k], callee, callee->params[k]);
    for (uint32_t k = 0; k < v->i->ndst; k++)
        check_argument(v, v->i->dst[k], callee, callee->results[k]);
}

static void check_guard(verifier *v)
{
    hw_wir_val g = v->i->guard;
    if (g.kind == HW_V_IMM)
        broken(v, "the guard is an immediate");
    if (is_reg(v, g) && type_of(v, g.reg) != HW_T_I1)
        broken(v, "the guard is not a predicate");
    bool branch = v->i->op == HW_W_BR || v->i->op == HW_W_CBR || v->i->op == HW_W_BRX;
    if (g.kind != HW_V_NONE && branch)
        broken(v, "a branch with a guard");
}

static void check_insn(verifier *v)
{
    if (v->i->op >= HW_W_COUNT) {
        broken(v, "unknown operation");
        return;
    }
    uint32_t before = v->failures;
    check_fields(v);
    check_presence(v);
    check_counts(v);
    check_memory(v);
    check_widths(v);
    check_guard(v);
    if (v->i->imm >= index_bound(v))
        broken(v, "index %llu out of range", (unsigned long long)v->i->imm);
    if (v->failures != before)
        return;
    for (uint32_t k = 0; k < v->i->ndst; k++)
        check_dst(v, k);
    for (uint32_t k = 0; k < v->i->nsrc; k++)
        check_src(v, k);
    if (v->i->op == HW_W_CALL)
        check_call(v);
}

static void check_targets(verifier *v, const hw_wir_block *b, const hw_wir_insn *t)
{
    for (uint32_t k = 0; k < b->ntargets; k++)
        if (b->targets[k] >= v->f->blocks.len)
            broken(v, "target block %u does not exist", b->targets[k]);
    uint32_t want = t->guard.kind == HW_V_REG;
    if (t->op == HW_W_BR)
        want = 1;
    else if (t->op == HW_W_CBR)
        want = 2;
    else if (t->op == HW_W_BRX)
        want = b->ntargets ? b->ntargets : 1;
    if (b->ntargets != want)
        broken(v, "%u targets, not %u", b->ntargets, want);
}

static void check_block(verifier *v, const hw_wir_block *b)
{
    v->i = NULL;
    if (b->insns.len == 0) {
        broken(v, "the block is empty");
        return;
    }
    for (v->index = 0; v->index < b->insns.len; v->index++) {
        v->i = &b->insns.ptr[v->index];
        check_insn(v);
        if (v->i->op >= HW_W_COUNT)
            return;
        bool last = v->index + 1 == b->insns.len;
        if (hw_wir_is(v->i, HW_WF_T) != last)
            broken(v, last ? "the block does not end with a terminator"
                           : "a terminator inside the block");
    }
    v->index--;
    if (hw_wir_is(v->i, HW_WF_T))
        check_targets(v, b, v->i);
}

static void check_list(verifier *v, const char *what, const uint32_t *regs, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (regs[k] >= v->f->regs.len)
            broken(v, "%s register %u does not exist", what, regs[k]);
}

static void check_function(verifier *v)
{
    v->i = NULL;
    v->block = 0;
    check_list(v, "parameter", v->f->params, v->f->nparams);
    check_list(v, "result", v->f->results, v->f->nresults);
    for (size_t r = 0; r < v->f->regs.len; r++)
        if (v->f->regs.ptr[r].type < HW_T_I1 || v->f->regs.ptr[r].type > HW_T_I128)
            broken(v, "register %zu has no register type", r);
    if (v->f->is_kernel && (v->f->nparams || v->f->nresults))
        broken(v, "a kernel with register parameters or results");
    if (v->f->defined && v->f->blocks.len == 0)
        broken(v, "no blocks");
    for (v->block = 0; v->f->defined && v->block < v->f->blocks.len; v->block++)
        check_block(v, &v->f->blocks.ptr[v->block]);
}

hw_status hw_wir_verify(const hw_wir_module *m, hw_diag *d)
{
    verifier v = { .m = m, .d = d };
    for (size_t k = 0; k < m->functions.len; k++) {
        v.f = &m->functions.ptr[k];
        check_function(&v);
    }
    return v.failures ? HW_E_INTERNAL : HW_OK;
}

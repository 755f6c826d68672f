/* SPDX-License-Identifier: Apache-2.0
 * hw_wir_simplify: fewer instructions for the code generator to chew on.
 *
 * Works on registers with one definition that has no guard, which is nearly all of what compilers
 * emit. In linear order (dominators first): sources replaced by constants and by the origins of
 * copies, operations on constants folded, equal expressions computed once; then what nobody reads is
 * removed. A use may be replaced by another register only where def(origin) dominates the copy and
 * the copy dominates the use: then no path redefines the origin in between.
 *
 * Where code is counted (hw_wir_module.counted) the tables are made before, and what they count by stays:
 * branches, guarded instructions, accesses, and what makes a block more than an end of lanes. */
#include "analysis.h"
#include "prepare.h"

typedef struct place { /* of an instruction: block and index in it */
    uint32_t block, index;
} place;

typedef struct expr {
    const hw_wir_insn *i;
    place at;
    uint32_t next; /* in its chain; 0 ends */
} expr;

typedef struct simplifier {
    hw_wir_module *m;
    hw_wir_function *f;
    hw_arena *scratch;
    analysis cfg;
    uint32_t *enter, *leave; /* of the dominator tree's preorder, per block */
    uint8_t *ndefs;          /* per register: 0, 1, 2 = more or guarded */
    place *def;              /* of the only one */
    hw_wir_val *same; /* what a register with one definition equals: an immediate or an origin */
    uint32_t *uses;
    HW_VEC(expr) exprs;
    uint32_t *chains;
    size_t chain_mask;
    place here;
} simplifier;

static hw_wir_insn *insn_at(const simplifier *s, place p)
{
    return &s->f->blocks.ptr[p.block].insns.ptr[p.index];
}

/* ---- dominance ---- */

static void number_tree(simplifier *s)
{
    uint32_t n = (uint32_t)s->f->blocks.len, clock = 0, depth = 0;
    uint32_t *first = HW_NEW_N(s->scratch, uint32_t, n), *next = HW_NEW_N(s->scratch, uint32_t, n);
    uint32_t *stack = HW_NEW_N(s->scratch, uint32_t, n + 1);
    s->enter = HW_NEW_N(s->scratch, uint32_t, n);
    s->leave = HW_NEW_N(s->scratch, uint32_t, n);
    for (uint32_t b = 0; b < n; b++) { /* children as lists of block + 1 */
        uint32_t up = s->cfg.out->idom[b];
        if (up == NONE32)
            continue;
        next[b] = first[up];
        first[up] = b + 1;
    }
    stack[depth++] = 0;
    s->enter[0] = clock++;
    while (depth) {
        uint32_t b = stack[depth - 1], child = first[b];
        if (!child) {
            s->leave[b] = clock++;
            depth--;
            continue;
        }
        first[b] = next[child - 1];
        s->enter[child - 1] = clock++;
        stack[depth++] = child - 1;
    }
}

static bool dominates(const simplifier *s, place a, place b)
{
    if (a.block == b.block)
        return a.index < b.index;
    return s->enter[a.block] < s->enter[b.block] && s->leave[b.block] < s->leave[a.block];
}

/* ---- definitions ---- */

static bool unguarded(const hw_wir_insn *i)
{
    return i->guard.kind == HW_V_NONE;
}

static void find_defs(simplifier *s)
{
    for (s->here.block = 0; s->here.block < s->f->blocks.len; s->here.block++) {
        const hw_wir_block *b = &s->f->blocks.ptr[s->here.block];
        for (s->here.index = 0; s->here.index < b->insns.len; s->here.index++) {
            const hw_wir_insn *i = insn_at(s, s->here);
            for (uint32_t d = 0; d < i->ndst; d++) {
                if (i->dst[d].kind != HW_V_REG)
                    continue;
                uint32_t r = i->dst[d].reg;
                s->ndefs[r] = s->ndefs[r] || !unguarded(i) ? 2 : 1;
                s->def[r] = s->here;
            }
        }
    }
    for (uint32_t k = 0; k < s->f->nparams; k++)
        s->ndefs[s->f->params[k]] = 2;
}

static bool has_one_def(const simplifier *s, hw_wir_val v)
{
    return v.kind == HW_V_REG && s->ndefs[v.reg] == 1;
}

/* Does every register source have one definition, before this place on every path? */
static bool sources_settled(const simplifier *s, const hw_wir_insn *i)
{
    for (uint32_t k = 0; k < i->nsrc; k++)
        if (i->src[k].kind == HW_V_REG &&
            !(has_one_def(s, i->src[k]) && dominates(s, s->def[i->src[k].reg], s->here)))
            return false;
    return true;
}

/* ---- replacing sources ---- */

static hw_wir_val replacement(const simplifier *s, hw_wir_val v)
{
    if (!has_one_def(s, v))
        return v;
    hw_wir_val to = s->same[v.reg];
    if (to.kind == HW_V_IMM)
        return to;
    return to.kind == HW_V_REG && dominates(s, s->def[v.reg], s->here) ? to : v;
}

static void replace_sources(const simplifier *s, hw_wir_insn *i)
{
    bool typed = hw_wir_signature[i->op][0] != '?'; /* else an immediate would have no width */
    for (uint32_t k = 0; k < i->nsrc; k++) {
        hw_wir_val to = replacement(s, i->src[k]);
        if (typed || to.kind == HW_V_REG)
            i->src[k] = to;
    }
    hw_wir_val g = replacement(s, i->guard);
    if (g.kind == HW_V_REG)
        i->guard = g;
}

/* ---- folding ---- */

static void become_move(hw_arena *a, hw_wir_insn *i, hw_wir_val v, hw_wir_type t)
{
    if (i->nsrc == 0)
        i->src = HW_NEW(a, hw_wir_val);
    i->src[0] = v;
    i->op = HW_W_MOV;
    i->type = (uint8_t)t;
    i->type2 = HW_T_NONE;
    i->nsrc = 1;
    i->cond = i->round = 0;
    i->imm = i->aux = 0;
    i->flags &= HW_I_NEG_GUARD;
}

static bool all_immediate(const hw_wir_insn *i)
{
    for (uint32_t k = 0; k < i->nsrc; k++)
        if (i->src[k].kind != HW_V_IMM)
            return false;
    return i->nsrc > 0 && i->nsrc <= 4;
}

static bool is_imm(hw_wir_val v, uint64_t bits)
{
    return v.kind == HW_V_IMM && v.imm == bits;
}

/* x + 0 and the like: the operand that the result equals, or NONE. */
static hw_wir_val neutral(const hw_wir_insn *i)
{
    uint64_t ones = hw_wir_mask(hw_wir_bits(i->type));
    switch (i->op) {
    case HW_W_ADD:
    case HW_W_OR:
    case HW_W_XOR:
        if (is_imm(i->src[0], 0))
            return i->src[1];
        return is_imm(i->src[1], 0) ? i->src[0] : HW_WIR_NONE;
    case HW_W_SUB:
    case HW_W_SHL:
    case HW_W_SHR_U:
    case HW_W_SHR_S:
        return is_imm(i->src[1], 0) ? i->src[0] : HW_WIR_NONE;
    case HW_W_MUL:
        if (is_imm(i->src[0], 1))
            return i->src[1];
        return is_imm(i->src[1], 1) ? i->src[0] : HW_WIR_NONE;
    case HW_W_AND:
        if (is_imm(i->src[0], ones))
            return i->src[1];
        return is_imm(i->src[1], ones) ? i->src[0] : HW_WIR_NONE;
    case HW_W_BITCAST:
        return i->src[0];
    case HW_W_SELECT:
        if (i->src[0].kind == HW_V_IMM)
            return i->src[0].imm & 1 ? i->src[1] : i->src[2];
        return HW_WIR_NONE;
    default:
        return HW_WIR_NONE;
    }
}

static void fold(const simplifier *s, hw_wir_insn *i)
{
    if (hw_wir_ops[i->op].flags != HW_WF_P || i->op == HW_W_MOV || i->ndst != 1)
        return;
    hw_wir_type result = hw_wir_dst_type(i, 0);
    uint64_t v[4], out;
    if (all_immediate(i)) {
        for (uint32_t k = 0; k < i->nsrc; k++)
            v[k] = i->src[k].imm;
        if (hw_wir_eval(i, v, &out))
            become_move(s->m->arena, i, hw_wir_imm(out), result);
        return;
    }
    bool packed = i->type >= HW_T_V2F16 && i->op != HW_W_BITCAST && i->op != HW_W_SELECT;
    hw_wir_val same = packed || hw_wir_bits(i->type) > 64 ? HW_WIR_NONE : neutral(i);
    if (same.kind != HW_V_NONE)
        become_move(s->m->arena, i, same, result);
}

/* ---- equal expressions ---- */

/* Values that depend on the operands only and may be computed where first wanted. */
static bool is_expression(const simplifier *s, const hw_wir_insn *i)
{
    bool still = i->space == HW_SPACE_PARAM || (i->space == HW_SPACE_CONST && !s->m->counted);
    bool still_load = i->op == HW_W_LOAD && (i->flags & HW_I_READONLY) && i->count == 1 && still;
    return (hw_wir_ops[i->op].flags == HW_WF_P || still_load) && i->ndst == 1 && unguarded(i);
}

static uint64_t hash_of(const hw_wir_insn *i)
{
    uint64_t words[4] = {
        (uint64_t)i->op << 48 | (uint64_t)i->type << 40 | (uint64_t)i->type2 << 32 | i->flags,
        (uint64_t)i->cond << 24 | (uint64_t)i->round << 16 | (uint64_t)i->space << 8 | i->nsrc,
        i->imm, i->aux
    };
    uint64_t h = hw_hash64(words, sizeof words, 0);
    for (uint32_t k = 0; k < i->nsrc; k++) {
        uint64_t v[2] = { (uint64_t)i->src[k].kind << 32 | i->src[k].reg, i->src[k].imm };
        h = hw_hash64(v, sizeof v, h);
    }
    return h;
}

static bool equal(const hw_wir_insn *a, const hw_wir_insn *b)
{
    if (a->op != b->op || a->type != b->type || a->type2 != b->type2 || a->flags != b->flags ||
        a->cond != b->cond || a->round != b->round || a->space != b->space || a->imm != b->imm ||
        a->aux != b->aux || a->nsrc != b->nsrc)
        return false;
    for (uint32_t k = 0; k < a->nsrc; k++)
        if (a->src[k].kind != b->src[k].kind || a->src[k].reg != b->src[k].reg ||
            a->src[k].imm != b->src[k].imm)
            return false;
    return true;
}

enum { LONGEST_CHAIN = 8 };

static void share(simplifier *s, hw_wir_insn *i)
{
    if (!is_expression(s, i) || i->op == HW_W_MOV || !has_one_def(s, i->dst[0]) ||
        !sources_settled(s, i))
        return;
    uint32_t *chain = &s->chains[hash_of(i) & s->chain_mask];
    uint32_t looked = 0;
    for (uint32_t k = *chain; k && looked < LONGEST_CHAIN; k = s->exprs.ptr[k - 1].next, looked++) {
        const expr *e = &s->exprs.ptr[k - 1];
        if (equal(e->i, i) && dominates(s, e->at, s->here)) {
            become_move(s->m->arena, i, e->i->dst[0], hw_wir_dst_type(i, 0));
            return;
        }
    }
    hw_vec_push(s->scratch, &s->exprs, (expr){ i, s->here, *chain });
    *chain = (uint32_t)s->exprs.len;
}

/* What the result of a move equals from now on. */
static void note_copy(simplifier *s, const hw_wir_insn *i)
{
    if (i->op != HW_W_MOV || !unguarded(i) || !has_one_def(s, i->dst[0]))
        return;
    bool settled = has_one_def(s, i->src[0]) && dominates(s, s->def[i->src[0].reg], s->here);
    if (i->src[0].kind == HW_V_IMM || settled)
        s->same[i->dst[0].reg] = i->src[0];
}

/* A branch on a constant. */
static bool fold_branch(hw_wir_block *b, hw_wir_insn *last)
{
    if (last->op != HW_W_CBR || last->src[0].kind != HW_V_IMM)
        return false;
    b->targets[0] = b->targets[last->src[0].imm & 1 ? 0 : 1];
    b->ntargets = 1;
    *last = (hw_wir_insn){ .op = HW_W_BR, .count = 1, .loc = last->loc };
    return true;
}

static bool rewrite(simplifier *s)
{
    bool branches = false;
    for (uint32_t p = 0; p < s->cfg.nreachable; p++) {
        s->here.block = s->cfg.out->order[p];
        hw_wir_block *b = &s->f->blocks.ptr[s->here.block];
        for (s->here.index = 0; s->here.index < b->insns.len; s->here.index++) {
            hw_wir_insn *i = insn_at(s, s->here);
            replace_sources(s, i);
            fold(s, i);
            share(s, i);
            if (i->ndst == 1)
                note_copy(s, i);
            branches |= !s->m->counted && fold_branch(b, i);
        }
    }
    return branches;
}

/* ---- what nobody reads ---- */

static void count_uses(simplifier *s, const hw_wir_insn *i, uint32_t by)
{
    for (uint32_t k = 0; k < i->nsrc; k++)
        if (i->src[k].kind == HW_V_REG)
            s->uses[i->src[k].reg] += by;
    if (i->guard.kind == HW_V_REG)
        s->uses[i->guard.reg] += by;
}

static bool is_dead(const simplifier *s, const hw_wir_insn *i)
{
    bool still_load = i->op == HW_W_LOAD && i->space == HW_SPACE_PARAM;
    if (s->m->counted && i->guard.kind != HW_V_NONE)
        return false;
    if (hw_wir_ops[i->op].flags != HW_WF_P && !still_load)
        return false;
    for (uint32_t d = 0; d < i->ndst; d++)
        if (i->dst[d].kind == HW_V_REG && s->uses[i->dst[d].reg])
            return false;
    return true;
}

static bool ends_lanes(const hw_wir_block *b)
{
    const hw_wir_insn *last = hw_wir_last(b);
    return (last->op == HW_W_EXIT || last->op == HW_W_RET) && last->guard.kind == HW_V_NONE;
}

/* Backward, so that one pass finds chains; what only feeds itself around a loop stays. */
static void remove_dead(simplifier *s)
{
    for (size_t b = 0; b < s->f->blocks.len; b++)
        for (size_t k = 0; k < s->f->blocks.ptr[b].insns.len; k++)
            count_uses(s, &s->f->blocks.ptr[b].insns.ptr[k], 1);
    for (uint32_t k = 0; k < s->f->nresults; k++)
        s->uses[s->f->results[k]]++;
    for (uint32_t p = (uint32_t)s->f->blocks.len; p-- > 0;) {
        hw_wir_block *b = &s->f->blocks.ptr[s->cfg.out->order[p]];
        size_t kept = b->insns.len;
        bool keeps_first = s->m->counted && ends_lanes(b);
        for (size_t k = b->insns.len; k-- > 0;) {
            if (!(keeps_first && k == 0) && is_dead(s, &b->insns.ptr[k]))
                count_uses(s, &b->insns.ptr[k], UINT32_MAX);
            else
                b->insns.ptr[--kept] = b->insns.ptr[k];
        }
        memmove(b->insns.ptr, b->insns.ptr + kept, (b->insns.len - kept) * sizeof *b->insns.ptr);
        b->insns.len -= kept;
    }
}

static size_t count_insns(const hw_wir_function *f)
{
    size_t n = 0;
    for (size_t b = 0; b < f->blocks.len; b++)
        n += f->blocks.ptr[b].insns.len;
    return n;
}

void hw_wir_simplify(hw_wir_module *m, uint32_t function)
{
    hw_wir_function *f = &m->functions.ptr[function];
    if (!f->defined)
        return;
    simplifier s = { .m = m, .f = f, .scratch = hw_arena_new() };
    size_t nregs = f->regs.len + 1;
    s.cfg = (analysis){ .arena = s.scratch, .scratch = s.scratch, .f = f };
    s.cfg.out = HW_NEW(s.scratch, hw_wir_analysis);
    s.cfg.nblocks = (uint32_t)f->blocks.len;
    hw_wir_find_cfg(&s.cfg);
    s.ndefs = HW_NEW_N(s.scratch, uint8_t, nregs);
    s.def = HW_NEW_N(s.scratch, place, nregs);
    s.same = HW_NEW_N(s.scratch, hw_wir_val, nregs);
    s.uses = HW_NEW_N(s.scratch, uint32_t, nregs);
    for (s.chain_mask = 63; s.chain_mask < count_insns(f);)
        s.chain_mask = s.chain_mask * 2 + 1;
    s.chains = HW_NEW_N(s.scratch, uint32_t, s.chain_mask + 1);
    number_tree(&s);
    find_defs(&s);
    bool branches = rewrite(&s);
    remove_dead(&s);
    if (branches)
        hw_wir_remove_unreachable(f);
    hw_arena_free(s.scratch);
}

/* SPDX-License-Identifier: Apache-2.0
 * Checks an instruction's operands against its row: how many, of what kind, of what type. The rules
 * are ptxas's (PTX ISA 9.4 "Type information for instructions and operands"). */
#include "isa.h"

#include <stdlib.h>

typedef struct checker {
    struct hw_ptx_unit *u;
    const ptx_function *f;
    const ptx_insn *i;
    const ptx_match *m;
    hw_diag *d;
} checker;

static const char *form_text(const checker *c)
{
    hw_arena *a = c->d ? c->d->arena : c->u->arena;
    const char *text = hw_arena_cstr(a, c->i->opcode);
    for (uint32_t k = 0; k < c->i->nmods; k++)
        text = hw_arena_printf(a, "%s.%.*s", text, HW_STR_ARG(c->i->mods[k]));
    return text;
}

static HW_PRINTF(3, 4) hw_status wrong(const checker *c, const ptx_operand *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = hw_arena_vprintf(c->d ? c->d->arena : c->u->arena, fmt, ap);
    va_end(ap);
    hw_place at = hw_ptx_place(c->u, o ? o->place : c->i->place);
    return hw_fail_at(c->d, HW_E_SYNTAX, at, "'%s': %s", form_text(c), text);
}

static const char *kind_text(const ptx_operand *o)
{
    static const char *const texts[] = {
        [PTX_O_REG] = "a register",
        [PTX_O_INT] = "an integer",
        [PTX_O_FLOAT] = "a floating-point literal",
        [PTX_O_SREG] = "a special register",
        [PTX_O_SYMBOL] = "a symbol",
        [PTX_O_LABEL] = "a label",
        [PTX_O_ADDRESS] = "an address",
        [PTX_O_VECTOR] = "a vector",
        [PTX_O_PAIR] = "a pair d|p",
        [PTX_O_LIST] = "a list",
        [PTX_O_SINK] = "'_'",
        [PTX_O_NAME] = "a name",
    };
    return texts[o->kind];
}

/* ---- types ---- */

#define IN(class) (1u << PTX_CL_##class)
/* The classes of registers that a wanted class goes with. */
static const uint8_t goes_with[] = {
    [PTX_CL_PRED] = IN(PRED),
    [PTX_CL_BITS] = IN(BITS) | IN(UNSIGNED) | IN(SIGNED) | IN(FLOAT) | IN(PACKED),
    [PTX_CL_UNSIGNED] = IN(BITS) | IN(UNSIGNED) | IN(SIGNED),
    [PTX_CL_SIGNED] = IN(BITS) | IN(UNSIGNED) | IN(SIGNED),
    [PTX_CL_FLOAT] = IN(BITS) | IN(FLOAT),
    [PTX_CL_PACKED] = IN(BITS),
    [PTX_CL_OPAQUE] = 0,
};
#undef IN

static bool classes_agree(ptx_type want, ptx_type got)
{
    ptx_type_class a = hw_ptx_class(want), b = hw_ptx_class(got);
    if (got == PTX_F16X2 && a != PTX_CL_PACKED)
        b = PTX_CL_BITS; /* a register of this type is untyped for integers, not for floats */
    if (got == PTX_F16X2 && a == PTX_CL_FLOAT)
        return false;
    return want == got || ((goes_with[a] >> b) & 1);
}

/* A wider register: untyped ones hold anything, untyped values go anywhere, integers in integers. */
static bool wider_agrees(ptx_type want, ptx_type got)
{
    ptx_type_class a = hw_ptx_class(want), b = hw_ptx_class(got);
    if (ptx_types[got].bits <= ptx_types[want].bits || b == PTX_CL_PRED)
        return false;
    if (a == PTX_CL_BITS || b == PTX_CL_BITS)
        return b != PTX_CL_OPAQUE;
    return (a == PTX_CL_UNSIGNED || a == PTX_CL_SIGNED) &&
           (b == PTX_CL_UNSIGNED || b == PTX_CL_SIGNED || got == PTX_F16X2);
}

static hw_status check_reg(const checker *c, const ptx_operand *o, const ptx_spec *s, ptx_type want)
{
    ptx_type got = c->f->regs.ptr[o->reg].type;
    if (o->negated && (want != PTX_PRED || s->dest))
        return wrong(c, o, "'!' is for predicates that are read");
    if (o->minus && !s->minus)
        return wrong(c, o, "'-' before a register: only vmad negates what it reads");
    if (s->immediate)
        return wrong(c, o, "a register where a constant is expected");
    if (ptx_types[got].bits == ptx_types[want].bits && classes_agree(want, got))
        return HW_OK;
    if (s->wider && wider_agrees(want, got))
        return HW_OK;
    return wrong(c, o, "register '%.*s' is .%s where .%s is expected",
                 HW_STR_ARG(c->f->regs.ptr[o->reg].name), ptx_types[got].text,
                 ptx_types[want].text);
}

/* An integer literal that ptxas holds to a range. */
static hw_status check_range(const checker *c, const ptx_operand *o, const ptx_spec *s)
{
    if (!s->step || o->kind != PTX_O_INT)
        return HW_OK;
    bool in_range = o->bits >= s->least && o->bits <= s->most;
    bool fits = s->step == PTX_POWERS ? (o->bits & (o->bits - 1)) == 0 : o->bits % s->step == 0;
    if (in_range && fits)
        return HW_OK;
    if (s->least == s->most)
        return wrong(c, o, "%lld where %u is expected", (long long)o->bits, s->least);
    if (s->step == 1)
        return wrong(c, o, "%lld where %u to %u is expected", (long long)o->bits, s->least,
                     s->most);
    if (s->step == PTX_POWERS)
        return wrong(c, o, "%lld where a power of two from %u to %u is expected",
                     (long long)o->bits, s->least, s->most);
    return wrong(c, o, "%lld where a multiple of %u from %u to %u is expected", (long long)o->bits,
                 s->step, s->least, s->most);
}

static hw_status check_literal(const checker *c, const ptx_operand *o, ptx_type want)
{
    ptx_type_class a = hw_ptx_class(want);
    bool is_int = o->kind == PTX_O_INT;
    bool fits =
        is_int ? a == PTX_CL_BITS || a == PTX_CL_UNSIGNED || a == PTX_CL_SIGNED || a == PTX_CL_PRED
               : want == PTX_F32 || want == PTX_F64 ||
                     (a == PTX_CL_BITS && ptx_types[want].bits == (o->is_single ? 32 : 64));
    if (fits)
        return HW_OK;
    return wrong(c, o, "%s where .%s is expected", kind_text(o), ptx_types[want].text);
}

static hw_status check_sreg(const checker *c, ptx_operand *o, const ptx_spec *s, ptx_type want)
{
    int id = hw_ptx_sreg(o->name);
    if (id < 0)
        return wrong(c, o, "unknown special register '%%%.*s'", HW_STR_ARG(o->name));
    if (!s->sreg)
        return wrong(c, o, "a special register can only be read by mov and cvt");
    const ptx_sreg *r = &ptx_sregs[id];
    /* .u16 reads of 32-bit ones are of PTX 1.x; see PTX ISA 10.1 */
    unsigned bits = ptx_types[want].bits;
    bool fits = bits == r->bits || (bits == 16 && r->bits == 32) ||
                (r->how == PTX_SR_SREG && bits == 32 && r->bits == 64);
    if (!fits || hw_ptx_class(want) == PTX_CL_FLOAT)
        return wrong(c, o, "special register '%%%.*s' has %u bits, .%s is expected",
                     HW_STR_ARG(o->name), r->bits, ptx_types[want].text);
    if (r->components && o->component < 0)
        return wrong(c, o, "'%%%.*s' is a vector: name one of .x .y .z", HW_STR_ARG(o->name));
    return HW_OK;
}

static hw_status check_value(const checker *c, ptx_operand *o, const ptx_spec *s, ptx_type want)
{
    switch (o->kind) {
    case PTX_O_REG:
        return check_reg(c, o, s, want);
    case PTX_O_SINK:
        if (s->dest)
            return HW_OK;
        break;
    case PTX_O_INT:
    case PTX_O_FLOAT:
        if (s->dest)
            break;
        HW_TRY(check_literal(c, o, want));
        return check_range(c, o, s);
    case PTX_O_SREG:
        if (!s->dest)
            return check_sreg(c, o, s, want);
        break;
    case PTX_O_SYMBOL:
        if (s->symbol && !s->dest)
            return HW_OK;
        break;
    default:
        break;
    }
    return wrong(c, o, "%s where .%s is expected", kind_text(o), ptx_types[want].text);
}

static hw_status check_vector(const checker *c, ptx_operand *o, const ptx_spec *s, ptx_type want)
{
    unsigned n = c->m->vec;
    if (n == 1 && o->kind != PTX_O_VECTOR)
        return check_value(c, o, s, want);
    if (o->kind == PTX_O_SINK && s->dest)
        return HW_OK;
    if (o->kind != PTX_O_VECTOR)
        return wrong(c, o, "%s where a vector of %u is expected", kind_text(o), n);
    if (o->nitems != n)
        return wrong(c, o, "a vector of %u where %u are expected", o->nitems, n);
    for (unsigned k = 0; k < n; k++)
        HW_TRY(check_value(c, &o->items[k], s, want));
    return HW_OK;
}

static hw_status check_pair(const checker *c, ptx_operand *o, const ptx_spec *s, ptx_type want)
{
    if (o->kind != PTX_O_PAIR) {
        if (s->pair == 2)
            return wrong(c, o, "two results d|p are expected");
        return check_value(c, o, s, want);
    }
    HW_TRY(check_value(c, &o->items[0], s, want));
    return check_value(c, &o->items[1], s, s->pair_type);
}

static hw_status check_address(const checker *c, const ptx_operand *o)
{
    if (o->kind == PTX_O_SYMBOL)
        return HW_OK; /* sym[2], and ptxas takes a plain name */
    if (o->kind != PTX_O_ADDRESS)
        return wrong(c, o, "%s where an address is expected", kind_text(o));
    if (o->nitems != 1)
        return wrong(c, o, "an address of one part is expected");
    const ptx_operand *base = &o->items[0];
    if (base->kind != PTX_O_REG)
        return HW_OK;
    ptx_type got = c->f->regs.ptr[base->reg].type;
    ptx_type_class k = hw_ptx_class(got);
    if ((k != PTX_CL_BITS && k != PTX_CL_UNSIGNED && k != PTX_CL_SIGNED) ||
        ptx_types[got].bits > 64)
        return wrong(c, base, "register '%.*s' is .%s; an address is an integer",
                     HW_STR_ARG(c->f->regs.ptr[base->reg].name), ptx_types[got].text);
    return HW_OK;
}

/* ---- mov (PTX ISA 9.7.9.3 and .4): plain, vector, pack and unpack ---- */

static unsigned item_bits(const checker *c, const ptx_operand *o)
{
    return o->kind == PTX_O_REG ? ptx_types[c->f->regs.ptr[o->reg].type].bits : 0;
}

/* {a, b} as one value of the type: registers of one size, which fill it; literals and '_' count as
 * their neighbours. */
static hw_status check_packed(const checker *c, const ptx_operand *o, ptx_type t, bool dest)
{
    unsigned each = o->nitems ? ptx_types[t].bits / o->nitems : 0;
    if (o->nitems != 2 && o->nitems != 4)
        return wrong(c, o, "a vector of 2 or 4 is expected");
    for (uint32_t k = 0; k < o->nitems; k++) {
        const ptx_operand *part = &o->items[k];
        unsigned bits = item_bits(c, part);
        bool loose =
            dest ? part->kind == PTX_O_SINK : part->kind == PTX_O_INT || part->kind == PTX_O_FLOAT;
        if (bits != each && !(loose && !bits))
            return wrong(c, part, "parts of %u bits are expected, so that they fill .%s", each,
                         ptx_types[t].text);
    }
    return HW_OK;
}

static hw_status check_mov_vector(const checker *c, ptx_type t)
{
    static const ptx_spec dest = { .dest = true }, source = { .sreg = true, .symbol = true };
    ptx_operand *a = &c->i->ops[1];
    HW_TRY(check_vector(c, &c->i->ops[0], &dest, t));
    if (a->kind == PTX_O_SREG) {
        int id = hw_ptx_sreg(a->name);
        if (id >= 0 && ptx_sregs[id].components && a->component < 0)
            return HW_OK;
    }
    return check_vector(c, a, &source, t);
}

static hw_status check_mov(const checker *c)
{
    static const ptx_spec dest = { .dest = true }, source = { .sreg = true, .symbol = true };
    if (c->i->nops != 2)
        return wrong(c, NULL, "%u operands, 2 are expected", c->i->nops);
    ptx_operand *d = &c->i->ops[0], *a = &c->i->ops[1];
    ptx_type t = c->m->type[0];
    if (c->m->vec > 1)
        return check_mov_vector(c, t);
    if (d->kind == PTX_O_VECTOR)
        HW_TRY(check_packed(c, d, t, true));
    else
        HW_TRY(check_value(c, d, &dest, t));
    if (a->kind == PTX_O_VECTOR)
        return check_packed(c, a, t, false);
    if (a->kind == PTX_O_LABEL)
        return wrong(c, a, "the address of a label cannot be taken");
    if (a->kind == PTX_O_SYMBOL && (hw_ptx_class(t) == PTX_CL_FLOAT || ptx_types[t].bits < 32))
        return wrong(c, a, "an address where .%s is expected", ptx_types[t].text);
    return check_value(c, a, &source, t);
}

/* ---- accesses to memory: what goes with which state space (PTX ISA 9.7.9.8, 9.7.9.11, 9.7.13.5) ---- */

#define SPACE(name) (1u << PTX_SPACE_##name)
enum { FAR = SPACE(NONE) | SPACE(GLOBAL), STRONG = FAR | SPACE(SHARED), WIDE_BITS = 256 };

static const struct {
    uint8_t mod;
    uint32_t spaces;
    bool wide; /* only of 256 bits */
} access_rules[] = {
    { PTX_M_volatile, STRONG, false },     { PTX_M_relaxed, STRONG, false },
    { PTX_M_acquire, STRONG, false },      { PTX_M_release, STRONG, false },
    { PTX_M_L1_evict_normal, FAR, false }, { PTX_M_L1_evict_unchanged, FAR, false },
    { PTX_M_L1_evict_first, FAR, false },  { PTX_M_L1_evict_last, FAR, false },
    { PTX_M_L1_no_allocate, FAR, false },  { PTX_M_L2_evict_normal, FAR, true },
    { PTX_M_L2_evict_first, FAR, true },   { PTX_M_L2_evict_last, FAR, true },
    { PTX_M_L2_cache_hint, FAR, false },   { PTX_M_L2_64B, FAR, false },
    { PTX_M_L2_128B, FAR, false },         { PTX_M_L2_256B, FAR, false },
};

static bool is_access(const checker *c, bool *moves)
{
    hw_str op = c->i->opcode;
    *moves = hw_str_is(op, "ld") || hw_str_is(op, "st");
    return (*moves || hw_str_is(op, "atom") || hw_str_is(op, "red")) &&
           !ptx_bag_has(&c->m->mods, PTX_M_async) && !ptx_bag_has(&c->m->mods, PTX_M_bulk);
}

/* Vectors have 128 bits at most, or 256, of 32 or 64 each, in global memory. */
static hw_status check_width(const checker *c, unsigned bits)
{
    unsigned each = bits / c->m->vec;
    bool wide = bits == WIDE_BITS && (each == 32 || each == 64);
    if (c->m->vec == 1 || bits <= 128)
        return HW_OK;
    if (!wide)
        return wrong(c, NULL, "no vectors of %u times %u bits", c->m->vec, each);
    if (!((FAR >> c->m->space) & 1))
        return wrong(c, NULL, "vectors of 256 bits are for global memory");
    return HW_OK;
}

static hw_status check_access(const checker *c)
{
    bool moves;
    if (!is_access(c, &moves))
        return HW_OK;
    unsigned bits = c->m->vec * ptx_types[c->m->type[0]].bits;
    for (size_t k = 0; k < HW_COUNTOF(access_rules); k++) {
        if (!ptx_bag_has(&c->m->mods, access_rules[k].mod))
            continue;
        const char *text = hw_ptx_mod_text(access_rules[k].mod);
        if (!((access_rules[k].spaces >> c->m->space) & 1))
            return wrong(c, NULL, "'.%s' is not for this state space", text);
        if (access_rules[k].wide && moves && bits != WIDE_BITS)
            return wrong(c, NULL, "'.%s' is for vectors of 256 bits", text);
    }
    return moves ? check_width(c, bits) : HW_OK;
}

/* ---- mbarrier (PTX ISA 9.7.13.15) ---- */

/* An ordering names its scope and a scope its ordering; a barrier of another block returns no
 * state. */
static hw_status check_mbarrier(const checker *c)
{
    const ptx_bag *mods = &c->m->mods;
    if (!hw_str_is(c->i->opcode, "mbarrier"))
        return HW_OK;
    bool ordered = ptx_bag_has(mods, PTX_M_release) || ptx_bag_has(mods, PTX_M_relaxed) ||
                   ptx_bag_has(mods, PTX_M_acquire);
    bool scoped = ptx_bag_has(mods, PTX_M_cta) || ptx_bag_has(mods, PTX_M_cluster);
    if (ordered != scoped)
        return wrong(c, NULL,
                     ordered ? "an ordering without a scope ('.cta' or '.cluster')"
                             : "a scope without an ordering before it");
    if (ptx_bag_has(mods, PTX_M_shared_cluster) && c->m->row->specs[0].dest &&
        c->i->ops[0].kind != PTX_O_SINK)
        return wrong(c, &c->i->ops[0], "a barrier of '.shared::cluster' returns no state: '_'");
    return HW_OK;
}

/* ---- all operands ---- */

static hw_status check_operand(const checker *c, ptx_operand *o, const ptx_spec *s)
{
    ptx_type want = hw_ptx_spec_type(s, c->m);
    switch ((ptx_spec_kind)s->kind) {
    case PTX_SK_ADDRESS:
        return check_address(c, o);
    case PTX_SK_LABEL:
        return o->kind == PTX_O_LABEL ? HW_OK
                                      : wrong(c, o, "%s where a label is expected", kind_text(o));
    case PTX_SK_SIZE_OR_IGNORE:
        return o->kind == PTX_O_REG || o->kind == PTX_O_INT
                   ? check_range(c, o, s)
                   : wrong(c, o, "a size or a predicate is expected");
    default:
        break;
    }
    if (s->pair)
        return check_pair(c, o, s, want);
    return s->vector ? check_vector(c, o, s, want) : check_value(c, o, s, want);
}

/* How many operands a row takes; rest: any number more. */
static void operand_range(const ptx_row *r, unsigned *least, unsigned *most, bool *rest)
{
    *least = *most = 0;
    *rest = false;
    for (unsigned k = 0; k < r->nspecs; k++) {
        if (r->specs[k].kind == PTX_SK_REST) {
            *rest = true;
            continue;
        }
        *most += 1;
        *least += !r->specs[k].optional;
    }
}

static bool count_fits(const ptx_row *r, unsigned n)
{
    unsigned least, most;
    bool rest;
    operand_range(r, &least, &most, &rest);
    return n >= least && (rest || n <= most);
}

static hw_status wrong_count(const checker *c)
{
    unsigned least, most;
    bool rest;
    operand_range(c->m->row, &least, &most, &rest);
    if (rest)
        return wrong(c, NULL, "%u operands, at least %u are expected", c->i->nops, least);
    if (least == most)
        return wrong(c, NULL, "%u operands, %u are expected", c->i->nops, least);
    return wrong(c, NULL, "%u operands, %u to %u are expected", c->i->nops, least, most);
}

static hw_status check_operands(const checker *c)
{
    const ptx_row *r = c->m->row;
    if (!count_fits(r, c->i->nops))
        return wrong_count(c);
    uint32_t skipped = 0, missing = r->nspecs > c->i->nops ? r->nspecs - c->i->nops : 0;
    for (unsigned k = r->nspecs; k-- > 0 && missing;)
        if (r->specs[k].optional) {
            skipped |= UINT32_C(1) << k;
            missing--;
        }
    uint32_t o = 0;
    for (unsigned k = 0; k < r->nspecs; k++) {
        if (((skipped >> k) & 1) || r->specs[k].kind == PTX_SK_REST)
            continue;
        HW_TRY(check_operand(c, &c->i->ops[o++], &r->specs[k]));
    }
    return HW_OK;
}

hw_status hw_ptx_check(struct hw_ptx_unit *u, ptx_function *f, ptx_insn *i, hw_diag *d)
{
    const ptx_match *m = NULL;
    HW_TRY(hw_ptx_match(u, i, &m, d));
    while (m->other && !count_fits(m->row, i->nops))
        m = m->other;
    i->row = m->row;
    i->match = (void *)(uintptr_t)m;
    checker c = { u, f, i, m, d };
    if (m->row->any_form)
        return HW_OK;
    if (m->row->nspecs == 1 && m->row->specs[0].kind == PTX_SK_MOV)
        return check_mov(&c);
    HW_TRY(check_access(&c));
    HW_TRY(check_operands(&c));
    return check_mbarrier(&c);
}

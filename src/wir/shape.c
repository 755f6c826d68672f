/* SPDX-License-Identifier: Apache-2.0
 * Shapes of registers: uniform, lane 0's value plus known lane offsets, or varying (hw_wir.h).
 *
 * A register's shape is the meet of its definitions' shapes: equal, or VARYING; a definition that
 * needs a blend makes it VARYING (wait.c). Rules work on offsets c and d only; lane 0's values come
 * from range.c. With z known low zero bits in S and 0 <= c < 2^z, S + c is S | c, so bit operations
 * act on the two parts alone. Where every source is known lane by lane, so is the result. */
#include "analysis.h"

/* ---- lane vectors, each once ---- */

struct lane_vectors {
    int64_t (*ptr)[LANES];
    const int64_t **slots;
    size_t len, mask;
};

static size_t slot_of(const struct lane_vectors *t, const int64_t *v)
{
    size_t at = (size_t)hw_hash64(v, sizeof(int64_t[LANES]), 0) & t->mask;
    while (t->slots[at] && memcmp(t->slots[at], v, sizeof(int64_t[LANES])))
        at = (at + 1) & t->mask;
    return at;
}

static void grow_vectors(analysis *n)
{
    struct lane_vectors *t = n->vectors;
    const int64_t **old = t->slots;
    size_t old_mask = t->mask;
    t->mask = t->mask * 2 + 1;
    t->slots = HW_NEW_N(n->scratch, const int64_t *, t->mask + 1);
    for (size_t k = 0; k <= old_mask; k++)
        if (old[k])
            t->slots[slot_of(t, old[k])] = old[k];
}

/* The one copy of a vector; NULL for zeros. */
static const int64_t *intern(analysis *n, const int64_t *v)
{
    static const int64_t zeros[LANES];
    if (memcmp(v, zeros, sizeof zeros) == 0)
        return NULL;
    size_t at = slot_of(n->vectors, v);
    if (n->vectors->slots[at])
        return n->vectors->slots[at];
    int64_t *copy = HW_NEW_N(n->arena, int64_t, LANES);
    memcpy(copy, v, sizeof zeros);
    n->vectors->slots[at] = copy;
    if (++n->vectors->len * 2 > n->vectors->mask)
        grow_vectors(n);
    return copy;
}

/* ---- sources ---- */

static const hw_shape uniform = { HW_SHAPE_UNIFORM, NULL, NULL };
static const hw_shape varying = { HW_SHAPE_VARYING, NULL, NULL };

typedef struct source {
    hw_shape shape;
    range s; /* of S */
    bool defined;
} source;

typedef struct rule_input {
    analysis *n;
    const hw_wir_insn *i;
    const source *s;
    unsigned bits; /* of the operation's type */
} rule_input;

static int64_t lane(const int64_t *v, unsigned l)
{
    return v ? v[l] : 0;
}

static bool is_const(const source *s)
{
    return s->shape.kind == HW_SHAPE_UNIFORM && s->s.known && s->s.lo == s->s.hi;
}

static bool lanes_known(const source *s)
{
    return s->shape.kind != HW_SHAPE_VARYING && !s->shape.d && s->s.known && s->s.lo == s->s.hi;
}

static source read_source(const analysis *n, const hw_wir_insn *i, uint32_t k)
{
    hw_wir_val v = i->src[k];
    if (v.kind == HW_V_REG)
        return (source){ n->shapes[v.reg], n->ranges[v.reg], n->shaped[v.reg] };
    hw_wir_type t = hw_wir_src_type(i, k);
    int64_t x =
        t == HW_T_I1 ? (int64_t)v.imm : sign_extend(v.imm, t == HW_T_NONE ? 64 : hw_wir_bits(t));
    uint8_t zeros = x ? (uint8_t)__builtin_ctzll((uint64_t)x) : 64;
    return (source){ uniform, { x, x, zeros, true }, true };
}

/* The shape with offsets c and d cut to `bits`; either may be NULL. */
static hw_shape affine(analysis *n, const int64_t *c, const int64_t *d, unsigned bits)
{
    int64_t cc[LANES], dd[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        cc[l] = sign_extend((uint64_t)lane(c, l), bits);
        dd[l] = sign_extend((uint64_t)lane(d, l), bits);
    }
    hw_shape r = { HW_SHAPE_AFFINE, intern(n, cc), intern(n, dd) };
    return r.c || r.d ? r : uniform;
}

/* S + c is S | c in every lane (see above). */
static bool splits(const source *s, unsigned bits)
{
    if (s->shape.kind == HW_SHAPE_VARYING || s->shape.d)
        return false;
    unsigned zeros = s->s.zeros < bits ? s->s.zeros : bits;
    for (unsigned l = 0; l < LANES; l++) {
        int64_t c = lane(s->shape.c, l);
        if (c < 0 || (zeros < 63 && c >> zeros))
            return false;
    }
    return true;
}

/* ---- rules; called when some source is not uniform ---- */

typedef hw_shape rule_fn(const rule_input *r);

static hw_shape s_first(const rule_input *r)
{
    return r->s[0].shape;
}

static hw_shape s_select(const rule_input *r)
{
    const hw_shape *a = &r->s[1].shape, *b = &r->s[2].shape;
    bool same = a->kind == b->kind && a->c == b->c && a->d == b->d;
    return r->s[0].shape.kind == HW_SHAPE_UNIFORM && same ? *a : varying;
}

static hw_shape sum(const rule_input *r, uint64_t sign)
{
    const hw_shape *a = &r->s[0].shape, *b = &r->s[1].shape;
    if (a->kind == HW_SHAPE_VARYING || b->kind == HW_SHAPE_VARYING || (a->d && b->d))
        return varying;
    int64_t c[LANES], d[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        c[l] = (int64_t)((uint64_t)lane(a->c, l) + sign * (uint64_t)lane(b->c, l));
        d[l] = (int64_t)((uint64_t)lane(a->d, l) + sign * (uint64_t)lane(b->d, l));
    }
    return affine(r->n, c, d, r->bits);
}

static hw_shape s_add(const rule_input *r)
{
    return sum(r, 1);
}

static hw_shape s_sub(const rule_input *r)
{
    return sum(r, UINT64_MAX);
}

static hw_shape s_not(const rule_input *r)
{
    if (r->s[0].shape.kind == HW_SHAPE_VARYING)
        return varying;
    int64_t c[LANES], d[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        c[l] = (int64_t)(0 - (uint64_t)lane(r->s[0].shape.c, l));
        d[l] = (int64_t)(0 - (uint64_t)lane(r->s[0].shape.d, l));
    }
    return affine(r->n, c, d, r->bits);
}

static hw_shape scaled(const rule_input *r, const hw_shape *a, int64_t by)
{
    int64_t c[LANES], d[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        c[l] = (int64_t)((uint64_t)lane(a->c, l) * (uint64_t)by);
        d[l] = (int64_t)((uint64_t)lane(a->d, l) * (uint64_t)by);
    }
    return affine(r->n, c, d, r->bits);
}

static hw_shape s_mul(const rule_input *r)
{
    const source *a = &r->s[0], *b = &r->s[1];
    if (a->shape.kind == HW_SHAPE_UNIFORM) {
        a = b;
        b = &r->s[0];
    }
    if (a->shape.kind == HW_SHAPE_VARYING || b->shape.kind != HW_SHAPE_UNIFORM)
        return varying;
    if (is_const(b))
        return scaled(r, &a->shape, b->s.lo);
    return a->shape.d ? varying : affine(r->n, NULL, a->shape.c, r->bits);
}

/* A shift distance known to be smaller than the width; else NONE32. */
static uint32_t distance(const rule_input *r)
{
    const source *by = &r->s[1];
    return is_const(by) && by->s.lo >= 0 && by->s.lo < (int64_t)r->bits ? (uint32_t)by->s.lo
                                                                        : NONE32;
}

static hw_shape s_shl(const rule_input *r)
{
    uint32_t by = distance(r);
    return by == NONE32 || r->s[0].shape.kind == HW_SHAPE_VARYING
               ? varying
               : scaled(r, &r->s[0].shape, (int64_t)((uint64_t)1 << by));
}

static hw_shape s_shr(const rule_input *r)
{
    uint32_t by = distance(r);
    if (by == NONE32 || !splits(&r->s[0], r->bits))
        return varying;
    int64_t c[LANES];
    for (unsigned l = 0; l < LANES; l++)
        c[l] = lane(r->s[0].shape.c, l) >> by;
    return affine(r->n, c, NULL, r->bits);
}

static hw_shape s_bfe_u(const rule_input *r)
{
    uint32_t at = distance(r);
    if (at == NONE32 || !is_const(&r->s[2]) || !splits(&r->s[0], r->bits))
        return varying;
    uint64_t field = hw_wir_mask((unsigned)r->s[2].s.lo & 255);
    int64_t c[LANES];
    for (unsigned l = 0; l < LANES; l++)
        c[l] = (int64_t)((uint64_t)lane(r->s[0].shape.c, l) >> at & field);
    return affine(r->n, c, NULL, r->bits);
}

/* (S | c) op m, m a constant: the part of c that shows in the result, relative to c = 0. */
static hw_shape s_bitwise(const rule_input *r)
{
    const source *a = &r->s[0], *m = &r->s[1];
    if (is_const(a)) {
        a = m;
        m = &r->s[0];
    }
    if (!is_const(m) || !splits(a, r->bits))
        return varying;
    int64_t c[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        int64_t x = lane(a->shape.c, l);
        if (r->i->op == HW_W_AND)
            c[l] = x & m->s.lo;
        else if (r->i->op == HW_W_OR)
            c[l] = x & ~m->s.lo;
        else /* a bit of c adds where m has none and takes away where m has one */
            c[l] = (x & ~m->s.lo) - (x & m->s.lo);
    }
    return affine(r->n, c, NULL, r->bits);
}

static hw_shape s_trunc(const rule_input *r)
{
    return r->s[0].shape.kind == HW_SHAPE_VARYING
               ? varying
               : affine(r->n, r->s[0].shape.c, r->s[0].shape.d, hw_wir_bits(r->i->type2));
}

/* Is S + c (+ d R) known to stay inside the source's width, signed or unsigned? */
static bool cannot_wrap(const rule_input *r)
{
    const source *s = &r->s[0];
    if (s->shape.d || !s->s.known)
        return false;
    bool is_signed = r->i->op == HW_W_SEXT;
    if (!is_signed && s->s.lo < 0)
        return false;
    __int128 lo = is_signed ? -((__int128)1 << (r->bits - 1)) : 0;
    __int128 hi = ((__int128)1 << (r->bits - is_signed)) - 1;
    for (unsigned l = 0; l < LANES; l++) {
        int64_t c = lane(s->shape.c, l);
        if ((__int128)s->s.lo + c < lo || (__int128)s->s.hi + c > hi)
            return false;
    }
    return true;
}

static bool guardable(const rule_input *r)
{
    return r->i->type == HW_T_I32 && r->i->type2 == HW_T_I64 && !r->n->v->no_shapes;
}

static hw_shape s_extend(const rule_input *r)
{
    if (r->s[0].shape.kind == HW_SHAPE_VARYING || r->bits == 1)
        return varying;
    return cannot_wrap(r) || guardable(r) ? r->s[0].shape : varying;
}

/* A comparison that the ranges decide for all lanes. */
static hw_shape s_icmp(const rule_input *r)
{
    int64_t lo[2], hi[2];
    for (int k = 0; k < 2; k++) {
        const source *s = &r->s[k];
        if (s->shape.kind == HW_SHAPE_VARYING || s->shape.d || r->bits > 32)
            return varying;
        lo[k] = s->s.lo;
        hi[k] = s->s.hi;
        for (unsigned l = 0; l < LANES; l++) {
            int64_t c = lane(s->shape.c, l);
            lo[k] = s->s.lo + c < lo[k] ? s->s.lo + c : lo[k];
            hi[k] = s->s.hi + c > hi[k] ? s->s.hi + c : hi[k];
        }
        int64_t most = ((int64_t)1 << (r->bits - 1)) - 1;
        bool is_signed = r->i->cond >= HW_C_LT_S && r->i->cond <= HW_C_GE_S;
        if (hi[k] > most || lo[k] < (is_signed ? -most - 1 : 0))
            return varying; /* may wrap */
    }
    return hi[0] < lo[1] || hi[1] < lo[0] ? uniform : varying;
}

static const int64_t lane_index[LANES] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                           11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                           22, 23, 24, 25, 26, 27, 28, 29, 30, 31 };

/* Thread indices: offsets from lane 0 that are the same in every warp of the block. */
static hw_shape tid_shape(analysis *n, unsigned axis)
{
    const hw_variant *v = n->v;
    uint32_t threads = v->block[0] * v->block[1] * v->block[2];
    int64_t c[LANES];
    for (uint32_t t = 0; t < LANES || t < threads; t++) {
        int64_t offset =
            (int64_t)hw_wir_tid(v, axis, t) - (int64_t)hw_wir_tid(v, axis, t / LANES * LANES);
        if (t < LANES)
            c[t] = offset;
        else if (c[t % LANES] != offset)
            return varying;
    }
    bool line = axis == 0 && v->block[1] * v->block[2] == 1 && threads > 1;
    for (uint32_t t = threads; t < LANES; t++) /* no such lanes: what keeps the vector simple */
        c[t] = line ? t : v->block[axis] == 1 ? 0 : c[t];
    return affine(n, c, NULL, 32);
}

static hw_shape sreg_shape(analysis *n, const hw_wir_insn *i)
{
    static const char kinds[HW_SR_COUNT] = {
#define U                          'U'
#define L                          'L'
#define HW_SREG(name, type, shape) shape,
#include "sreg.def"
#undef HW_SREG
#undef L
#undef U
    };
    if (kinds[i->imm] == 'U')
        return uniform;
    if (i->imm <= HW_SR_TID_Z)
        return tid_shape(n, (unsigned)i->imm - HW_SR_TID_X);
    if (i->imm == HW_SR_LANEID)
        return affine(n, lane_index, NULL, 32);
    int64_t c[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        uint32_t bit = (uint32_t)1 << l;
        uint32_t mask[] = { bit, bit | (bit - 1), bit - 1, ~(bit - 1), ~(bit | (bit - 1)) };
        uint32_t first[] = { 1, 1, 0, UINT32_MAX, UINT32_MAX - 1 };
        uint64_t which = i->imm - HW_SR_LANEMASK_EQ;
        c[l] = (int64_t)mask[which] - (int64_t)first[which];
    }
    return affine(n, c, NULL, 32);
}

static hw_shape s_source(const rule_input *r)
{
    if (r->i->op == HW_W_SREG)
        return sreg_shape(r->n, r->i);
    if (r->i->op == HW_W_LOCAL_ADDR)
        return affine(r->n, NULL, lane_index, 64);
    return uniform;
}

static hw_shape s_load(const rule_input *r)
{
    return r->s[0].shape.kind == HW_SHAPE_UNIFORM ? uniform : varying;
}

/* The same in all executing lanes if they agree on the member mask, the last operand. */
static hw_shape s_vote(const rule_input *r)
{
    uint32_t members = r->i->nsrc;
    return members == 0 || r->s[members - 1].shape.kind == HW_SHAPE_UNIFORM ? uniform : varying;
}

static hw_shape s_shfl(const rule_input *r)
{
    if (r->s[0].shape.kind == HW_SHAPE_UNIFORM)
        return uniform;
    bool whole_warp = is_const(&r->s[2]) && (r->s[2].s.lo & 0x1f1f) == 0x1f;
    bool fixed = is_const(&r->s[1]) && r->i->imm == HW_SHFL_IDX && whole_warp;
    return fixed && r->s[3].shape.kind == HW_SHAPE_UNIFORM ? uniform : varying;
}

static rule_fn *const rules[HW_W_COUNT] = {
    [HW_W_MOV] = s_first,   [HW_W_BITCAST] = s_first, [HW_W_SELECT] = s_select,
    [HW_W_ADD] = s_add,     [HW_W_SUB] = s_sub,       [HW_W_MUL] = s_mul,
    [HW_W_NOT] = s_not,     [HW_W_SHL] = s_shl,       [HW_W_SHR_U] = s_shr,
    [HW_W_SHR_S] = s_shr,   [HW_W_BFE_U] = s_bfe_u,   [HW_W_AND] = s_bitwise,
    [HW_W_OR] = s_bitwise,  [HW_W_XOR] = s_bitwise,   [HW_W_TRUNC] = s_trunc,
    [HW_W_ZEXT] = s_extend, [HW_W_SEXT] = s_extend,   [HW_W_ICMP] = s_icmp,
};

/* Rules of operations that are not a function of one lane's operands: always called. */
static rule_fn *const special[HW_W_COUNT] = {
    [HW_W_SREG] = s_source,        [HW_W_CLOCK] = s_source,     [HW_W_PARAM_ADDR] = s_source,
    [HW_W_SYMBOL] = s_source,      [HW_W_FUNC_ADDR] = s_source, [HW_W_LOCAL_ADDR] = s_source,
    [HW_W_SHARED_BASE] = s_source, [HW_W_LOAD] = s_load,        [HW_W_BALLOT] = s_vote,
    [HW_W_ACTIVEMASK] = s_vote,    [HW_W_VOTE_ALL] = s_vote,    [HW_W_VOTE_ANY] = s_vote,
    [HW_W_VOTE_UNI] = s_vote,      [HW_W_MATCH_ALL] = s_vote,   [HW_W_REDUX] = s_vote,
    [HW_W_ELECT] = s_vote,         [HW_W_SHFL] = s_shfl,        [HW_W_BARRIER_RED] = s_source,
};

/* ---- one instruction ---- */

static hw_shape from_lanes(const rule_input *r)
{
    int64_t c[LANES];
    unsigned bits = hw_wir_bits(hw_wir_dst_type(r->i, 0));
    for (unsigned l = 0; l < LANES; l++) {
        uint64_t v[4], out = 0;
        for (uint32_t k = 0; k < r->i->nsrc; k++) {
            unsigned width = hw_wir_bits(hw_wir_src_type(r->i, k));
            v[k] =
                ((uint64_t)r->s[k].s.lo + (uint64_t)lane(r->s[k].shape.c, l)) & hw_wir_mask(width);
        }
        hw_wir_eval(r->i, v, &out);
        c[l] = (int64_t)out;
    }
    int64_t first = c[0];
    for (unsigned l = 0; l < LANES; l++)
        c[l] = (int64_t)((uint64_t)c[l] - (uint64_t)first);
    hw_shape s = affine(r->n, c, NULL, bits);
    return bits == 1 && s.kind == HW_SHAPE_AFFINE ? varying : s;
}

static bool ruled_by_lane(const rule_input *r)
{
    if (hw_wir_ops[r->i->op].flags != HW_WF_P)
        return false;
    for (uint32_t k = 0; k < r->i->nsrc; k++)
        if (!lanes_known(&r->s[k]))
            return false;
    return r->i->nsrc <= 4 && hw_wir_can_eval(r->i);
}

static bool is_packed(const hw_wir_insn *i)
{
    return i->type >= HW_T_V2F16 && i->op != HW_W_MOV && i->op != HW_W_BITCAST &&
           i->op != HW_W_SELECT;
}

static hw_shape pure_shape(const rule_input *r)
{
    bool all_uniform = true;
    for (uint32_t k = 0; k < r->i->nsrc; k++)
        all_uniform &= r->s[k].shape.kind == HW_SHAPE_UNIFORM;
    if (all_uniform)
        return uniform;
    if (ruled_by_lane(r))
        return from_lanes(r);
    bool wide = hw_wir_bits(r->i->type) > 64 || hw_wir_bits(r->i->type2) > 64;
    if (!rules[r->i->op] || wide || is_packed(r->i))
        return varying;
    hw_shape s = rules[r->i->op](r);
    bool predicate = hw_wir_dst_type(r->i, 0) == HW_T_I1;
    return predicate && s.kind != HW_SHAPE_UNIFORM ? varying : s;
}

/* The shape of result d; other results than the first are uniform only with special rules. */
static hw_shape result_shape(const rule_input *r, uint32_t d)
{
    unsigned op = r->i->op;
    if (op == HW_W_ELECT && d == 1)
        return varying;
    if (op == HW_W_SHFL && d == 1)
        return r->s[0].shape.kind == HW_SHAPE_UNIFORM ? varying : special[op](r);
    if (special[op])
        return special[op](r);
    return hw_wir_ops[op].flags == HW_WF_P ? pure_shape(r) : varying;
}

/* Does the shape of this extension hold only where S + c stays inside the source's width? */
static bool needs_guard(const rule_input *r)
{
    return !ruled_by_lane(r) && !cannot_wrap(r) && guardable(r);
}

enum { MOST_SOURCES = 8 };

/* Reads up to MOST_SOURCES sources (no rule looks at more). False: one has no definition yet. */
static bool read_sources(const analysis *n, const hw_wir_insn *i, source *s)
{
    for (uint32_t k = 0; k < i->nsrc && k < MOST_SOURCES; k++) {
        s[k] = read_source(n, i, k);
        if (!s[k].defined)
            return false;
    }
    return true;
}

static void define(analysis *n, uint32_t reg, hw_shape s)
{
    hw_shape *old = &n->shapes[reg];
    if (!n->shaped[reg]) {
        n->shaped[reg] = 1;
        *old = s;
    } else if (old->kind == HW_SHAPE_VARYING ||
               (old->kind == s.kind && old->c == s.c && old->d == s.d)) {
        return;
    } else {
        *old = varying;
    }
    enqueue_users(n, reg);
}

void hw_wir_make_varying(analysis *n, uint32_t reg)
{
    define(n, reg, varying);
    if (n->shapes[reg].kind == HW_SHAPE_VARYING)
        return;
    n->shapes[reg] = varying;
    enqueue_users(n, reg);
}

static void spread(analysis *n)
{
    while (n->queue_len) {
        const hw_wir_insn *i = n->insns[dequeue(n)];
        source s[MOST_SOURCES];
        if (i->ndst == 0 || !read_sources(n, i, s))
            continue;
        rule_input r = { n, i, s, hw_wir_bits(i->type) };
        for (uint32_t d = 0; d < i->ndst; d++)
            if (i->dst[d].kind == HW_V_REG)
                define(n, i->dst[d].reg, result_shape(&r, d));
    }
}

/* A register whose definitions all need its own value from before, which nobody gave (a flag that
 * only some lanes set, in a loop): it begins as the same nothing in all lanes. */
static bool settle(analysis *n)
{
    const hw_wir_analysis *o = n->out;
    bool found = false;
    for (uint32_t k = 0; k < o->nlive; k++) {
        uint32_t reg = o->live_reg[k];
        if (n->shaped[reg] || !hw_bit(o->live_in_set[0], k))
            continue;
        define(n, reg, uniform);
        found = true;
    }
    return found;
}

void hw_wir_spread_shapes(analysis *n)
{
    do
        spread(n);
    while (settle(n));
}

/* Registers without a definition hold the same nothing in all lanes; parameters anything. */
void hw_wir_start_shapes(analysis *n)
{
    n->out->shape = n->shapes = HW_NEW_N(n->arena, hw_shape, n->nregs + 1);
    n->shaped = HW_NEW_N(n->scratch, uint8_t, n->nregs + 1);
    n->vectors = HW_NEW(n->scratch, struct lane_vectors);
    n->vectors->mask = 63;
    n->vectors->slots = HW_NEW_N(n->scratch, const int64_t *, n->vectors->mask + 1);
    bool *defined = HW_NEW_N(n->scratch, bool, n->nregs + 1);
    for (uint32_t k = 0; k < n->ninsns; k++) {
        for (uint32_t d = 0; d < n->insns[k]->ndst; d++)
            if (n->insns[k]->dst[d].kind == HW_V_REG)
                defined[n->insns[k]->dst[d].reg] = true;
        enqueue(n, k);
    }
    for (uint32_t k = 0; k < n->f->nparams; k++)
        hw_wir_make_varying(n, n->f->params[k]);
    for (uint32_t r = 0; r < n->nregs; r++)
        if (!defined[r] && !n->shaped[r])
            define(n, r, uniform);
}

void hw_wir_finish_shapes(analysis *n)
{
    n->out->wrap_guard = HW_NEW_N(n->arena, bool, n->ninsns + 1);
    for (uint32_t k = 0; k < n->ninsns; k++) {
        const hw_wir_insn *i = n->insns[k];
        source s[MOST_SOURCES];
        bool extends = i->op == HW_W_SEXT || i->op == HW_W_ZEXT;
        if (!extends || !read_sources(n, i, s) || s[0].shape.kind != HW_SHAPE_AFFINE)
            continue;
        rule_input r = { n, i, s, hw_wir_bits(i->type) };
        bool used = i->dst[0].kind == HW_V_REG && n->shapes[i->dst[0].reg].kind == HW_SHAPE_AFFINE;
        n->out->wrap_guard[k] = used && needs_guard(&r);
    }
    hw_wir_group_guards(n);
}

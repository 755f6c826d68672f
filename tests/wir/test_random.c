/* SPDX-License-Identifier: Apache-2.0
 * wir: random functions run twice. The reference runs each lane alone. The warp runs in linear order
 * with pending masks, believing the analysis as generated code does: uniform and affine registers
 * are scalars, definitions without a blend overwrite all lanes with rubbish, dead registers are
 * overwritten at every block. Every claimed shape is checked against each executing lane, and what
 * each lane stored must be the same in both runs.
 *
 *   test_random [SEED [TRIALS]] */
#include "lane.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LANES = 32,
    MOST_ACCESSES = 60,
    MOST_VISITS = 3000,
    INTS = 7,
    LONGS = 3,
    PREDS = 4,
    MOST_LOG = 4096,
    MOST_FRESH = 16
};

static uint64_t rng_state;
static uint64_t rnd(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state;
}
static uint32_t below(uint32_t n)
{
    return (uint32_t)((rnd() >> 20) % n);
}

/* ---- random functions ---- */

typedef struct maker {
    hw_arena *arena;
    hw_wir_module *m;
    hw_wir_builder b;
    uint32_t nblocks;
    uint32_t fresh[HW_T_COUNT][MOST_FRESH], nfresh[HW_T_COUNT]; /* written once */
} maker;

static uint32_t any_reg(hw_wir_type t)
{
    switch (t) {
    case HW_T_I1:
        return INTS + LONGS + below(PREDS);
    case HW_T_I64:
        return INTS + below(LONGS);
    default:
        return below(INTS);
    }
}

static uint32_t any_source(const maker *k, hw_wir_type t)
{
    uint32_t n = k->nfresh[t];
    return n && below(3) ? k->fresh[t][below(n)] : any_reg(t);
}

static uint32_t any_result(maker *k, hw_wir_type t)
{
    uint32_t *n = &k->nfresh[t];
    if (k->b.guard.kind == HW_V_REG || below(4) == 0 || *n == MOST_FRESH)
        return any_reg(t);
    return k->fresh[t][(*n)++] = hw_wir_reg_new(&k->b, t, NULL);
}

static hw_wir_val any_value(const maker *k, hw_wir_type t)
{
    static const uint32_t nice[] = { 0, 1, 2, 3, 4, 5, 16, 31, 32, 255, 0x7fffffff, 0xfffffff0 };
    if (below(3))
        return hw_wir_reg(any_source(k, t));
    uint64_t v = below(4) ? nice[below(HW_COUNTOF(nice))] : rnd();
    unsigned bits = hw_wir_bits(t);
    return hw_wir_imm(bits == 64 ? v : v & (((uint64_t)1 << bits) - 1));
}

static void maybe_guard(maker *k)
{
    k->b.guard = below(6) ? HW_WIR_NONE : hw_wir_reg(any_reg(HW_T_I1));
    k->b.guard_negated = below(2);
}

static hw_wir_insn *emit(maker *k, hw_wir_op op, hw_wir_type t, hw_wir_type result, uint32_t n,
                         const hw_wir_type *sources)
{
    hw_wir_val src[4];
    for (uint32_t s = 0; s < n; s++)
        src[s] = any_value(k, sources[s]);
    hw_wir_val dst = hw_wir_reg(any_result(k, result));
    return hw_wir_emit(&k->b, op, t, 1, &dst, n, src);
}

static void emit_arithmetic(maker *k)
{
    static const hw_wir_op binary[] = { HW_W_ADD,   HW_W_ADD,   HW_W_SUB,    HW_W_MUL,   HW_W_AND,
                                        HW_W_OR,    HW_W_XOR,   HW_W_MIN_S,  HW_W_MAX_U, HW_W_DIV_U,
                                        HW_W_REM_S, HW_W_MIN_U, HW_W_MULHI_U };
    static const hw_wir_op shifts[] = { HW_W_SHL, HW_W_SHR_U, HW_W_SHR_S };
    hw_wir_type t = below(3) ? HW_T_I32 : HW_T_I64;
    hw_wir_type s[4] = { t, t, HW_T_I32, HW_T_I32 };
    if (below(3))
        emit(k, binary[below(HW_COUNTOF(binary))], t, t, 2, s);
    else if (below(2))
        emit(k, shifts[below(3)], t, t, 2, (hw_wir_type[]){ t, HW_T_I32 });
    else if (below(2))
        emit(k, below(2) ? HW_W_MOV : HW_W_NOT, t, t, 1, s);
    else
        emit(k, below(2) ? HW_W_BFE_U : HW_W_BFE_S, t, t, 3,
             (hw_wir_type[]){ t, HW_T_I32, HW_T_I32 });
}

static void emit_other(maker *k)
{
    hw_wir_type i32 = HW_T_I32, i64 = HW_T_I64, i1 = HW_T_I1;
    switch (below(8)) {
    case 0:
        emit(k, HW_W_SELECT, i32, i32, 3, (hw_wir_type[]){ i1, i32, i32 });
        break;
    case 1:
        emit(k, HW_W_SEXT, i32, i64, 1, &i32)->type2 = HW_T_I64;
        break;
    case 2:
        emit(k, HW_W_ZEXT, i32, i64, 1, &i32)->type2 = HW_T_I64;
        break;
    case 3:
        emit(k, HW_W_TRUNC, i64, i32, 1, &i64)->type2 = HW_T_I32;
        break;
    case 4:
        emit(k, HW_W_SREG, i32, i32, 0, NULL)->imm =
            below(HW_SR_LANEMASK_GT + 1 - 3) ?: HW_SR_LANEID;
        break;
    case 5:
        emit(k, (hw_wir_op[]){ HW_W_AND, HW_W_OR, HW_W_XOR }[below(3)], i1, i1, 2,
             (hw_wir_type[]){ i1, i1 });
        break;
    case 6:
        emit(k, HW_W_LOP3, i32, i32, 3, (hw_wir_type[]){ i32, i32, i32 })->imm = rnd() & 255;
        break;
    default:
        emit(k, HW_W_LOCAL_ADDR, i64, i64, 0, NULL)->imm = below(64);
        break;
    }
}

static void emit_memory(maker *k)
{
    hw_wir_insn *i;
    if (below(2)) {
        i = emit(k, HW_W_LOAD, HW_T_I32, HW_T_I32, 1, (hw_wir_type[]){ HW_T_I64 });
        i->flags |= below(2) ? HW_I_VOLATILE : 0;
    } else if (below(4)) {
        hw_wir_type t = below(2) ? HW_T_I32 : HW_T_I64;
        hw_wir_val src[2] = { any_value(k, HW_T_I64), hw_wir_reg(any_source(k, t)) };
        i = hw_wir_emit(&k->b, HW_W_STORE, t, 0, NULL, 2, src);
    } else {
        i = emit(k, HW_W_ATOM, HW_T_I32, HW_T_I32, 3,
                 (hw_wir_type[]){ HW_T_I64, HW_T_I32, HW_T_I32 });
        i->atom = HW_ATOM_CAS;
    }
    i->imm = below(3) ? 0 : 8;
    i->space = HW_SPACE_GENERIC;
}

static void emit_compare(maker *k)
{
    hw_wir_type t = below(4) ? HW_T_I32 : HW_T_I64;
    emit(k, HW_W_ICMP, t, HW_T_I1, 2, (hw_wir_type[]){ t, t })->cond = (uint8_t)below(10);
}

static hw_wir_val index_value(maker *k)
{
    static const hw_wir_sreg indices[] = { HW_SR_TID_X,   HW_SR_TID_Y,  HW_SR_TID_Z,
                                           HW_SR_CTAID_X, HW_SR_NTID_X, HW_SR_LANEID };
    hw_wir_val dst = hw_wir_reg(hw_wir_reg_new(&k->b, HW_T_I32, NULL));
    hw_wir_emit(&k->b, HW_W_SREG, HW_T_I32, 1, &dst, 0, NULL)->imm = indices[below(6)];
    return dst;
}

/* What compilers emit: index arithmetic of few kinds, ending in an address. */
static void emit_address(maker *k)
{
    static const hw_wir_op ops[] = { HW_W_ADD,   HW_W_ADD,   HW_W_SUB,  HW_W_MUL, HW_W_MUL,
                                     HW_W_AND,   HW_W_OR,    HW_W_XOR,  HW_W_SHL, HW_W_SHR_U,
                                     HW_W_SHR_S, HW_W_REM_U, HW_W_DIV_U };
    hw_wir_val v[6] = { index_value(k), index_value(k), index_value(k) };
    hw_wir_val at = hw_wir_imm(below(1000)),
               loaded = hw_wir_reg(hw_wir_reg_new(&k->b, HW_T_I32, NULL));
    hw_wir_emit(&k->b, HW_W_LOAD, HW_T_I32, 1, &loaded, 1, &at)->flags = HW_I_READONLY;
    v[3] = below(2) ? loaded : hw_wir_op2(&k->b, HW_W_AND, HW_T_I32, loaded, hw_wir_imm(127));
    v[4] = hw_wir_imm((uint32_t)(below(2) ? below(9) : UINT32_MAX - below(40)));
    v[5] = hw_wir_imm(1u << below(7));
    for (uint32_t n = 1 + below(4); n > 0; n--) {
        hw_wir_val x =
            hw_wir_op2(&k->b, ops[below(HW_COUNTOF(ops))], HW_T_I32, v[below(4)], v[below(6)]);
        v[below(4)] = x;
    }
    hw_wir_val sum = hw_wir_op2(&k->b, HW_W_ADD, HW_T_I32, v[0], v[1]);
    hw_wir_val wide = hw_wir_cvt(&k->b, below(2) ? HW_W_SEXT : HW_W_ZEXT, HW_T_I32, HW_T_I64, sum);
    wide = hw_wir_op2(&k->b, HW_W_SHL, HW_T_I64, wide, hw_wir_imm(below(4)));
    wide = hw_wir_op2(&k->b, HW_W_ADD, HW_T_I64, wide, hw_wir_imm(rnd() >> 20));
    hw_wir_emit(&k->b, HW_W_STORE, HW_T_I32, 0, NULL, 2, (hw_wir_val[]){ wide, sum })->space =
        HW_SPACE_GENERIC;
}

static void emit_any(maker *k)
{
    if (below(6) == 0) {
        emit_address(k);
        return;
    }
    maybe_guard(k);
    uint32_t what = below(20);
    if (what < 9)
        emit_arithmetic(k);
    else if (what < 13)
        emit_other(k);
    else if (what < 15)
        emit_compare(k);
    else
        emit_memory(k);
    k->b.guard = HW_WIR_NONE;
}

/* Mostly forward to blocks near by; sometimes anywhere, so that any graph can arise. */
static uint32_t any_target(maker *k, uint32_t from)
{
    if (below(4) == 0)
        return 1 + below(k->nblocks - 1);
    uint32_t t = from + 1 + below(3);
    return t < k->nblocks ? t : k->nblocks - 1;
}

static void emit_end(maker *k, uint32_t at)
{
    uint32_t t[3] = { any_target(k, at), any_target(k, at), any_target(k, at) };
    uint32_t what = below(12);
    if (at + 1 == k->nblocks || what == 0) {
        hw_wir_emit(&k->b, HW_W_EXIT, HW_T_NONE, 0, NULL, 0, NULL);
    } else if (what == 1) {
        k->b.guard = hw_wir_reg(any_reg(HW_T_I1));
        hw_wir_emit(&k->b, HW_W_RET, HW_T_NONE, 0, NULL, 0, NULL);
        hw_wir_set_targets(&k->b, 1, t);
        k->b.guard = HW_WIR_NONE;
    } else if (what == 2) {
        hw_wir_val index =
            hw_wir_op2(&k->b, HW_W_REM_U, HW_T_I32, hw_wir_reg(any_reg(HW_T_I32)), hw_wir_imm(3));
        hw_wir_emit(&k->b, HW_W_BRX, HW_T_NONE, 0, NULL, 1, &index);
        hw_wir_set_targets(&k->b, 3, t);
    } else if (what < 10) {
        hw_wir_cbr(&k->b, hw_wir_reg(any_reg(HW_T_I1)), t[0], t[1]);
    } else {
        hw_wir_br(&k->b, t[0]);
    }
}

/* The entry gives every register a value: nothing undefined is ever read. */
static void emit_entry(maker *k)
{
    for (uint32_t r = 0; r < INTS; r++) {
        hw_wir_val dst = hw_wir_reg(r);
        bool sreg = below(2);
        static const hw_wir_sreg useful[] = { HW_SR_TID_X,  HW_SR_TID_Y,  HW_SR_CTAID_X,
                                              HW_SR_NTID_X, HW_SR_LANEID, HW_SR_TID_Z };
        if (sreg)
            hw_wir_emit(&k->b, HW_W_SREG, HW_T_I32, 1, &dst, 0, NULL)->imm = useful[below(6)];
        else
            hw_wir_mov(&k->b, HW_T_I32, dst, hw_wir_imm(below(64)));
    }
    for (uint32_t r = INTS; r < INTS + LONGS; r++) {
        hw_wir_val dst = hw_wir_reg(r), a = hw_wir_reg(below(INTS));
        hw_wir_emit(&k->b, HW_W_SEXT, HW_T_I32, 1, &dst, 1, &a)->type2 = HW_T_I64;
    }
    for (uint32_t r = INTS + LONGS; r < INTS + LONGS + PREDS; r++) {
        hw_wir_val dst = hw_wir_reg(r);
        if (below(3) == 0) { /* one lane, or one lane of some warp */
            hw_wir_val one[2] = { index_value(k), hw_wir_imm(below(20)) };
            hw_wir_emit(&k->b, HW_W_ICMP, HW_T_I32, 1, &dst, 2, one)->cond =
                below(2) ? HW_C_EQ : HW_C_NE;
            continue;
        }
        hw_wir_val s[2] = { hw_wir_reg(below(INTS)), any_value(k, HW_T_I32) };
        hw_wir_emit(&k->b, HW_W_ICMP, HW_T_I32, 1, &dst, 2, s)->cond = (uint8_t)below(10);
    }
}

/* keep: registers written once are used in other blocks, too, perhaps before they are written. */
static hw_wir_module *make(hw_arena *a, bool keep)
{
    maker k = { .arena = a, .m = hw_wir_module_new(a), .nblocks = 3 + below(10) };
    k.b = (hw_wir_builder){ .m = k.m, .function = hw_wir_function_new(k.m, "k", true) };
    for (uint32_t r = 0; r < INTS + LONGS + PREDS; r++)
        hw_wir_reg_new(&k.b, r < INTS ? HW_T_I32 : r < INTS + LONGS ? HW_T_I64 : HW_T_I1, NULL);
    for (uint32_t b = 0; b < k.nblocks; b++)
        hw_wir_block_new(&k.b, NULL);
    for (uint32_t b = 0; b < k.nblocks; b++) {
        k.b.block = b;
        if (!keep)
            memset(k.nfresh, 0, sizeof k.nfresh);
        if (b == 0)
            emit_entry(&k);
        for (uint32_t n = below(b ? 10 : 20); n > 0; n--)
            emit_any(&k);
        emit_end(&k, b);
    }
    return k.m;
}

/* ---- the machine both runs see ---- */

typedef struct world {
    const hw_variant *v;
    uint32_t warp, ctaid[3], nctaid[3];
    uint64_t *log[LANES]; /* what each lane stored */
    uint32_t logged[LANES], atomics[LANES];
    uint32_t accesses[LANES]; /* a lane ends at its MOST_ACCESSES-th: no loop runs for ever */
    bool probing;             /* accesses do not count */
} world;

static uint64_t sreg_value(const world *w, uint32_t lane, uint64_t sreg)
{
    const uint32_t *block = w->v->block;
    uint32_t t = w->warp * LANES + lane, bit = (uint32_t)1 << lane;
    uint32_t tid[3] = { t % block[0], t / block[0] % block[1], t / block[0] / block[1] };
    if (sreg <= HW_SR_TID_Z)
        return tid[sreg];
    if (sreg <= HW_SR_NTID_Z)
        return block[sreg - HW_SR_NTID_X];
    if (sreg <= HW_SR_CTAID_Z)
        return w->ctaid[sreg - HW_SR_CTAID_X];
    if (sreg <= HW_SR_NCTAID_Z)
        return w->nctaid[sreg - HW_SR_NCTAID_X];
    switch (sreg) {
    case HW_SR_LANEID:
        return lane;
    case HW_SR_WARPID:
        return w->warp;
    case HW_SR_LANEMASK_EQ:
        return bit;
    case HW_SR_LANEMASK_LE:
        return bit | (bit - 1);
    case HW_SR_LANEMASK_LT:
        return bit - 1;
    case HW_SR_LANEMASK_GE:
        return ~(bit - 1);
    case HW_SR_LANEMASK_GT:
        return ~(bit | (bit - 1));
    default:
        return 1234567;
    }
}

enum { LOCAL_STRIDE = 4096 };

static uint64_t special(void *ctx, uint32_t lane, const hw_wir_insn *i)
{
    const world *w = ctx;
    if (i->op == HW_W_SREG)
        return sreg_value(w, lane, i->imm);
    return 0x7000000000 + (uint64_t)lane * LOCAL_STRIDE + i->imm;
}

static uint64_t mixed(uint64_t x)
{
    return (x ^ x >> 29) * 0x9e3779b97f4a7c15;
}

static void memory(void *ctx, uint32_t lane, const hw_wir_insn *i, uint64_t address, uint64_t *v)
{
    world *w = ctx;
    w->accesses[lane] += !w->probing;
    if (i->op == HW_W_LOAD) {
        v[0] = mixed(address) >> 32;
    } else if (i->op == HW_W_ATOM) {
        v[0] = mixed(address ^ v[0] ^ v[1] << 8 ^ lane ^ (uint64_t)w->atomics[lane]++ << 40) >> 32;
        v[0] = v[0] % 4;
    } else if (w->logged[lane] + 2 <= MOST_LOG) {
        w->log[lane][w->logged[lane]++] = address;
        w->log[lane][w->logged[lane]++] = v[0];
    }
}

static bool reads_undefined(const hw_wir_insn *i, const bool *defined)
{
    for (uint32_t k = 0; k < i->nsrc; k++)
        if (i->src[k].kind == HW_V_REG && !defined[i->src[k].reg])
            return true;
    return i->guard.kind == HW_V_REG && !defined[i->guard.reg];
}

/* One block; false: something undefined was read. */
static bool run_block(const hw_wir_function *f, const hw_wir_block *b, world *w, uint32_t lane,
                      uint64_t *regs, bool *defined)
{
    lane_env env = { w, special, memory };
    for (size_t k = 0; k < b->insns.len; k++) {
        const hw_wir_insn *i = &b->insns.ptr[k];
        if (reads_undefined(i, defined))
            return false;
        if (k + 1 == b->insns.len)
            return true;
        HW_CHECK(lane_execute(f, i, &env, lane, regs));
        if (i->ndst && i->guard.kind == HW_V_NONE)
            defined[i->dst[0].reg] = true;
        if (w->accesses[lane] >= MOST_ACCESSES)
            return true;
    }
    return true;
}

/* False: the lane goes round without end and without memory, or reads something undefined. */
static bool run_lane(hw_arena *a, const hw_wir_function *f, world *w, uint32_t lane)
{
    uint64_t *regs = HW_NEW_N(a, uint64_t, f->regs.len);
    bool *defined = HW_NEW_N(a, bool, f->regs.len);
    uint32_t at = 0;
    for (int visits = 0; at != UINT32_MAX; visits++) {
        const hw_wir_block *b = &f->blocks.ptr[at];
        if (visits == MOST_VISITS || !run_block(f, b, w, lane, regs, defined))
            return false;
        if (w->accesses[lane] >= MOST_ACCESSES)
            return true;
        uint32_t t = lane_branch(b, regs);
        at = t == UINT32_MAX ? t : b->targets[t];
    }
    return true;
}

/* ---- the warp ---- */

typedef struct warp {
    const hw_wir_function *f;
    const hw_wir_analysis *n;
    world *w;
    uint64_t *vector[LANES]; /* per lane, per register: VARYING registers */
    uint64_t *s, *r;         /* per register: the others */
    uint32_t *pending;       /* per block */
    bool deopt;
    const char *wrong;
    uint32_t wrong_block, wrong_insn;
} warp;

static uint64_t cut(const warp *x, uint32_t reg, uint64_t v)
{
    unsigned bits = hw_wir_bits(x->f->regs.ptr[reg].type);
    return bits == 64 ? v : v & (((uint64_t)1 << bits) - 1);
}

static uint64_t lane_value(const warp *x, uint32_t reg, uint32_t lane)
{
    const hw_shape *h = &x->n->shape[reg];
    if (h->kind == HW_SHAPE_VARYING)
        return x->vector[lane][reg];
    uint64_t c = h->c ? (uint64_t)h->c[lane] : 0, d = h->d ? (uint64_t)h->d[lane] : 0;
    return cut(x, reg, x->s[reg] + c + d * x->r[reg]);
}

/* The lane's registers that an instruction reads, as an array the interpreter understands. */
static void view(const warp *x, const hw_wir_insn *i, uint32_t lane, uint64_t *regs)
{
    for (uint32_t k = 0; k < i->nsrc; k++)
        if (i->src[k].kind == HW_V_REG)
            regs[i->src[k].reg] = lane_value(x, i->src[k].reg, lane);
    if (i->guard.kind == HW_V_REG)
        regs[i->guard.reg] = lane_value(x, i->guard.reg, lane);
}

static bool is_scalar(const warp *x, hw_wir_val v)
{
    return v.kind != HW_V_REG || x->n->shape[v.reg].kind != HW_SHAPE_VARYING;
}

/* Does S + c + d R leave 32 bits in some lane? */
static bool wraps(const warp *x, const hw_wir_insn *i)
{
    uint32_t reg = i->src[0].reg;
    const hw_shape *h = &x->n->shape[reg];
    bool is_signed = i->op == HW_W_SEXT;
    __int128 s = is_signed ? (int32_t)x->s[reg] : (__int128)(uint32_t)x->s[reg];
    __int128 r = is_signed ? (int32_t)x->r[reg] : (__int128)(uint32_t)x->r[reg];
    for (int l = 0; l < LANES; l++) {
        __int128 v = s + (h->c ? h->c[l] : 0) + (h->d ? h->d[l] * r : 0);
        if (v < (is_signed ? INT32_MIN : 0) || v > (is_signed ? INT32_MAX : UINT32_MAX))
            return true;
    }
    return false;
}

static uint64_t scale_of(const warp *x, const hw_wir_insn *i)
{
    if (i->op == HW_W_LOCAL_ADDR)
        return LOCAL_STRIDE;
    uint64_t r = 0;
    bool found = false;
    for (uint32_t k = 0; k < i->nsrc && !found; k++)
        if (i->src[k].kind == HW_V_REG && x->n->shape[i->src[k].reg].d) {
            r = x->r[i->src[k].reg];
            found = true;
        }
    for (uint32_t k = 0; k < i->nsrc && !found && i->op == HW_W_MUL; k++) {
        bool reg = i->src[k].kind == HW_V_REG;
        if (!reg || x->n->shape[i->src[k].reg].kind == HW_SHAPE_UNIFORM) {
            r = reg ? x->s[i->src[k].reg] : i->src[k].imm;
            found = true;
        }
    }
    return i->op == HW_W_SEXT ? (uint64_t)(int32_t)r : r;
}

/* A result that is no vector: S by the operation on S of the sources, R as hw_wir.h says. */
static void run_scalar(warp *x, const hw_wir_insn *i, uint64_t *regs)
{
    uint32_t dst = i->dst[0].reg;
    hw_wir_insn bare = *i;
    bare.guard = HW_WIR_NONE;
    for (uint32_t k = 0; k < i->nsrc; k++) {
        if (!is_scalar(x, i->src[k]))
            x->wrong = "a scalar result of a varying source";
        if (i->src[k].kind == HW_V_REG)
            regs[i->src[k].reg] = x->s[i->src[k].reg];
    }
    lane_env env = { x->w, special, memory };
    uint64_t r = x->n->shape[dst].d ? scale_of(x, i) : 0;
    x->w->probing = true;
    HW_CHECK(lane_execute(x->f, &bare, &env, 0, regs));
    x->w->probing = false;
    x->s[dst] = regs[dst];
    x->r[dst] = cut(x, dst, r);
}

static bool holds(const warp *x, const hw_wir_insn *i, uint32_t lane)
{
    if (i->guard.kind != HW_V_REG)
        return true;
    return (lane_value(x, i->guard.reg, lane) & 1) != ((i->flags & HW_I_NEG_GUARD) != 0);
}

/* Per-lane results in a lane's own way, into results. */
static void run_lanes(warp *x, const hw_wir_insn *i, uint32_t mask, uint64_t *results)
{
    lane_env env = { x->w, special, memory };
    uint64_t *regs = calloc(x->f->regs.len + 1, sizeof *regs);
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(mask >> l & 1) || !holds(x, i, l))
            continue;
        view(x, i, l, regs);
        HW_CHECK(lane_execute(x->f, i, &env, l, regs));
        if (i->ndst)
            results[l] = regs[i->dst[0].reg];
    }
    free(regs);
}

static void write_vector(warp *x, const hw_wir_insn *i, uint32_t mask, bool blend,
                         const uint64_t *results)
{
    uint32_t dst = i->dst[0].reg;
    bool acts[LANES];
    for (uint32_t l = 0; l < LANES; l++)
        acts[l] = (mask >> l & 1) && holds(x, i, l);
    bool guarded = i->guard.kind == HW_V_REG && is_scalar(x, i->guard);
    if (guarded && !(mask && holds(x, i, (uint32_t)__builtin_ctz(mask))))
        return;
    for (uint32_t l = 0; l < LANES; l++) {
        if (acts[l])
            x->vector[l][dst] = results[l];
        else if (!blend)
            x->vector[l][dst] = cut(x, dst, rnd());
    }
}

static void run_insn(warp *x, const hw_wir_insn *i, uint32_t index, uint32_t mask)
{
    uint64_t results[LANES] = { 0 };
    if (x->n->guard_at[index] != UINT32_MAX && wraps(x, i)) {
        x->deopt = true;
        if (x->w->v->no_shapes)
            x->wrong = "a guard where there is nothing to fall back to";
        return;
    }
    if (i->ndst == 0 || !is_scalar(x, i->dst[0])) {
        run_lanes(x, i, mask, results);
        if (i->ndst)
            write_vector(x, i, mask, x->n->blend[index], results);
        return;
    }
    if (x->n->blend[index])
        x->wrong = "a scalar that blends";
    run_lanes(x, i, mask, results);
    bool acts[LANES], any = false;
    for (uint32_t l = 0; l < LANES; l++)
        any |= acts[l] = (mask >> l & 1) && holds(x, i, l);
    if (!any)
        return;
    uint64_t *regs = calloc(x->f->regs.len + 1, sizeof *regs);
    run_scalar(x, i, regs);
    free(regs);
    for (uint32_t l = 0; l < LANES; l++)
        if (!x->wrong && acts[l] && lane_value(x, i->dst[0].reg, l) != results[l])
            x->wrong = "a shape that does not hold";
}

/* Registers dead for the lanes that enter a block: rubbish, unless lanes that wait want them. */
static void clobber_dead(warp *x, uint32_t block, uint32_t mask)
{
    for (uint32_t r = 0; r < x->f->regs.len; r++) {
        if (hw_wir_live_in(x->n, block, r))
            continue;
        bool wanted = false;
        for (uint32_t b = 0; b < x->f->blocks.len; b++)
            wanted |= x->pending[b] && hw_wir_live_in(x->n, b, r);
        if (!wanted)
            x->s[r] = cut(x, r, rnd());
        for (uint32_t l = 0; l < LANES; l++)
            if (mask >> l & 1)
                x->vector[l][r] = cut(x, r, rnd());
    }
}

static void run_branch(warp *x, const hw_wir_block *b, uint32_t block, uint32_t mask)
{
    uint64_t *regs = calloc(x->f->regs.len + 1, sizeof *regs);
    uint32_t first = UINT32_MAX - 1;
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(mask >> l & 1))
            continue;
        view(x, &b->insns.ptr[b->insns.len - 1], l, regs);
        uint32_t t = lane_branch(b, regs);
        if (t == UINT32_MAX)
            continue;
        if (first < UINT32_MAX - 1 && b->targets[t] != first && !x->n->divergent_branch[block])
            x->wrong = "a branch that diverges";
        first = b->targets[t];
        x->pending[b->targets[t]] |= (uint32_t)1 << l;
    }
    free(regs);
}

static uint32_t next_block(const warp *x)
{
    uint32_t best = UINT32_MAX, count = 0;
    for (uint32_t p = 0; p < x->f->blocks.len; p++) {
        uint32_t b = x->n->order[p];
        if (!x->pending[b])
            continue;
        if (best == UINT32_MAX || (x->n->any_order && below(++count) == 0))
            best = b;
    }
    return best;
}

static void run_warp(warp *x, uint32_t lanes)
{
    x->pending[0] = lanes;
    for (uint32_t at; (at = next_block(x)) != UINT32_MAX && !x->deopt && !x->wrong;) {
        uint32_t mask = x->pending[at], others = 0;
        x->pending[at] = 0;
        for (uint32_t b = 0; b < x->f->blocks.len; b++)
            others |= x->pending[b];
        if (others && !x->n->divergent[at])
            x->wrong = "a block that runs with some lanes only";
        clobber_dead(x, at, mask);
        const hw_wir_block *b = &x->f->blocks.ptr[at];
        x->wrong_block = at;
        for (uint32_t k = 0; k + 1 < b->insns.len && !x->deopt && !x->wrong; k++) {
            x->wrong_insn = k;
            run_insn(x, &b->insns.ptr[k], x->n->first_insn[at] + k, mask);
            for (uint32_t l = 0; l < LANES; l++)
                if (x->w->accesses[l] >= MOST_ACCESSES)
                    mask &= ~((uint32_t)1 << l);
        }
        if (!x->deopt && !x->wrong)
            run_branch(x, b, at, mask);
    }
}

/* ---- trials ---- */

static const uint32_t blocks[][3] = { { 256, 1, 1 }, { 16, 16, 1 }, { 32, 8, 1 }, { 10, 10, 1 },
                                      { 8, 4, 4 },   { 100, 1, 1 }, { 64, 2, 2 }, { 7, 1, 1 },
                                      { 4, 2, 2 },   { 1, 64, 1 },  { 32, 1, 1 }, { 4, 8, 1 } };

static void choose_world(world *w, hw_variant *v)
{
    memcpy(v->block, blocks[below(HW_COUNTOF(blocks))], sizeof v->block);
    v->small_grid = below(2);
    v->no_shapes = below(8) == 0;
    v->independent = below(2);
    w->v = v;
    uint32_t threads = v->block[0] * v->block[1] * v->block[2];
    w->warp = below((threads + LANES - 1) / LANES);
    for (int k = 0; k < 3; k++) {
        uint32_t most = k ? 65535 : INT32_MAX;
        if (v->small_grid && most > INT32_MAX / v->block[k])
            most = INT32_MAX / v->block[k];
        w->nctaid[k] = below(2) ? most : 1 + below(most);
        w->ctaid[k] = below(2) ? w->nctaid[k] - 1 : below(w->nctaid[k]);
    }
}

static void new_warp(warp *x, hw_arena *a, const hw_wir_function *f)
{
    x->f = f;
    x->s = HW_NEW_N(a, uint64_t, f->regs.len + 1);
    x->r = HW_NEW_N(a, uint64_t, f->regs.len + 1);
    x->pending = HW_NEW_N(a, uint32_t, f->blocks.len + 1);
    for (int l = 0; l < LANES; l++)
        x->vector[l] = HW_NEW_N(a, uint64_t, f->regs.len + 1);
}

static const char *compare_logs(const world *a, const world *b, uint32_t lanes)
{
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(lanes >> l & 1))
            continue;
        if (a->logged[l] != b->logged[l] ||
            memcmp(a->log[l], b->log[l], a->logged[l] * sizeof(uint64_t)))
            return "a lane stored something else than alone";
    }
    return NULL;
}

typedef struct tally {
    uint32_t run, deopts, any_order, scalars, vectors, blends;
} tally;

static void count(tally *t, const hw_wir_analysis *n)
{
    for (uint32_t r = 0; r < n->nregs; r++)
        *(n->shape[r].kind == HW_SHAPE_VARYING ? &t->vectors : &t->scalars) += 1;
    for (uint32_t k = 0; k < n->first_insn[n->nblocks]; k++)
        t->blends += n->blend[k];
    t->any_order += n->any_order;
}

typedef struct test {
    hw_arena *arena;
    hw_diag *diag;
    hw_wir_module *m;
    hw_variant v;
    world alone, together;
    uint32_t lanes; /* that exist */
    hw_str before;
    warp warp;
    const char *wrong;
} test;

static void set_up(test *x)
{
    x->arena = hw_arena_new();
    x->diag = hw_diag_new(x->arena);
    x->m = make(x->arena, below(2));
    x->before = hw_wir_print(x->m, x->arena);
    choose_world(&x->alone, &x->v);
    x->together = x->alone;
    for (int l = 0; l < LANES; l++) {
        x->alone.log[l] = HW_NEW_N(x->arena, uint64_t, MOST_LOG);
        x->together.log[l] = HW_NEW_N(x->arena, uint64_t, MOST_LOG);
    }
    uint32_t threads = x->v.block[0] * x->v.block[1] * x->v.block[2];
    uint32_t rest = threads - x->alone.warp * LANES;
    x->lanes = rest >= LANES ? UINT32_MAX : ((uint32_t)1 << rest) - 1;
    x->warp.w = &x->together;
}

static bool run_alone(test *x)
{
    bool ends = true;
    for (uint32_t l = 0; l < LANES; l++)
        if (x->lanes >> l & 1)
            ends &= run_lane(x->arena, &x->m->functions.ptr[0], &x->alone, l);
    return ends;
}

static void run_passes(test *x)
{
    if (below(2))
        hw_wir_prepare(x->m, x->diag);
    if (below(2))
        hw_wir_simplify(x->m, 0);
    if (hw_wir_verify(x->m, x->diag) != HW_OK)
        x->wrong = "the verifier, after passes";
}

static void run_together(test *x, tally *t)
{
    x->warp.n = hw_wir_analyse(x->arena, x->m, 0, &x->v);
    new_warp(&x->warp, x->arena, &x->m->functions.ptr[0]);
    t->run++;
    count(t, x->warp.n);
    run_warp(&x->warp, x->lanes);
    x->wrong = x->warp.wrong;
    t->deopts += x->warp.deopt;
    if (!x->wrong && !x->warp.deopt)
        x->wrong = compare_logs(&x->alone, &x->together, x->lanes);
}

static void report(const test *x, uint64_t seed)
{
    fprintf(stderr,
            "seed %" PRIu64 ": %s (block .%u, instruction %u)\nblock %u,%u,%u warp %u\n%s\n", seed,
            x->wrong, x->warp.wrong_block, x->warp.wrong_insn, x->v.block[0], x->v.block[1],
            x->v.block[2], x->alone.warp, hw_diag_text(x->diag, x->arena).ptr);
    fprintf(stderr, "%.*s\nafter passes:\n%.*s", HW_STR_ARG(x->before),
            HW_STR_ARG(hw_wir_print(x->m, x->arena)));
}

static bool trial(uint64_t seed, tally *t)
{
    rng_state = seed * 0x9e3779b97f4a7c15 | 1;
    test x = { 0 };
    set_up(&x);
    if (hw_wir_verify(x.m, x.diag) != HW_OK) {
        x.wrong = "the verifier";
    } else if (run_alone(&x)) {
        run_passes(&x);
        if (!x.wrong)
            run_together(&x, t);
    }
    if (x.wrong)
        report(&x, seed);
    hw_arena_free(x.arena);
    return !x.wrong;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    uint32_t trials = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : argc > 1 ? 1 : 4000;
    tally t = { 0 };
    for (uint32_t k = 0; k < trials; k++)
        if (!trial(seed + k, &t))
            return 1;
    printf("%u functions, %u run: %u deoptimised, %u in any order, %u scalar and %u vector "
           "registers, %u "
           "blends\n",
           trials, t.run, t.deopts, t.any_order, t.scalars, t.vectors, t.blends);
    return 0;
}

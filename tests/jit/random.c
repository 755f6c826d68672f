/* SPDX-License-Identifier: Apache-2.0
 * Random kernels whose graphs of blocks are arbitrary; fuel makes every lane end, and lanes write only what is their own. */
#include "random.h"

enum { INTS = 8, LONGS = 4, PREDS = 4 };

uint64_t rng;
uint64_t rnd(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}
uint32_t below(uint32_t n)
{
    return (uint32_t)((rnd() >> 20) % n);
}

typedef struct maker {
    hw_wir_module *m;
    hw_wir_builder b;
    uint32_t nblocks;
    uint32_t ints[INTS], longs[LONGS], preds[PREDS], fuel;
    /* set in the entry, never again */
    hw_wir_val in, own, line, thread, shared_own, local;
} maker;

static hw_wir_val int_reg(maker *k)
{
    return hw_wir_reg(k->ints[below(INTS)]);
}
static hw_wir_val long_reg(maker *k)
{
    return hw_wir_reg(k->longs[below(LONGS)]);
}
static hw_wir_val pred_reg(maker *k)
{
    return hw_wir_reg(k->preds[below(PREDS)]);
}

static hw_wir_val int_value(maker *k)
{
    static const uint32_t nice[] = { 0, 1, 2, 3, 5, 16, 31, 32, 33, 255, 0x7fffffff, 0xfffffff0 };
    if (below(3))
        return below(5) ? int_reg(k) : k->thread;
    return hw_wir_imm(below(3) ? nice[below(HW_COUNTOF(nice))] : (uint32_t)rnd());
}

static hw_wir_insn *emit(maker *k, hw_wir_op op, hw_wir_type t, hw_wir_val d, uint32_t n,
                         const hw_wir_val *s)
{
    return hw_wir_emit(&k->b, op, t, 1, &d, n, s);
}

static hw_wir_val op2(maker *k, hw_wir_op op, hw_wir_type t, hw_wir_val a, hw_wir_val b)
{
    return hw_wir_op2(&k->b, op, t, a, b);
}

static void arithmetic(maker *k)
{
    static const hw_wir_op ops[] = { HW_W_ADD,   HW_W_ADD,   HW_W_SUB,    HW_W_MUL,     HW_W_AND,
                                     HW_W_OR,    HW_W_XOR,   HW_W_MIN_S,  HW_W_MAX_U,   HW_W_DIV_U,
                                     HW_W_DIV_S, HW_W_REM_U, HW_W_REM_S,  HW_W_MULHI_U, HW_W_SHL,
                                     HW_W_SHR_U, HW_W_SHR_S, HW_W_MULHI_S };
    hw_wir_op op = ops[below(HW_COUNTOF(ops))];
    if (below(4)) {
        emit(k, op, HW_T_I32, int_reg(k), 2, (hw_wir_val[]){ int_value(k), int_value(k) });
    } else {
        bool shifts = op == HW_W_SHL || op == HW_W_SHR_U || op == HW_W_SHR_S;
        emit(k, op, HW_T_I64, long_reg(k), 2,
             (hw_wir_val[]){ long_reg(k), shifts ? int_value(k) : long_reg(k) });
    }
}

/* The thread's number plus something that only running tells, widened. */
static void wrapping(maker *k)
{
    hw_wir_val u = hw_wir_reg(hw_wir_reg_new(&k->b, HW_T_I32, NULL));
    emit(k, HW_W_LOAD, HW_T_I32, u, 1, (hw_wir_val[]){ k->in })->imm = below(64) * 4;
    if (below(3) == 0) /* near the end of 32 bits, signed or not */
        u = op2(k, HW_W_OR, HW_T_I32, u, hw_wir_imm(below(2) ? 0x7fffffe0 : 0xffffffe0));
    u = op2(k, HW_W_ADD, HW_T_I32, k->thread, u);
    for (int n = 1 + (int)below(3); n > 0; n--) { /* what later ones need is tested at the first */
        hw_wir_val w = hw_wir_cvt(&k->b, below(2) ? HW_W_SEXT : HW_W_ZEXT, HW_T_I32, HW_T_I64, u);
        emit(k, HW_W_MOV, HW_T_I64, long_reg(k), 1, &w);
        u = op2(k, below(2) ? HW_W_ADD : HW_W_MUL, HW_T_I32, u, int_value(k));
    }
}

static void other(maker *k)
{
    hw_wir_insn *i;
    switch (below(8)) {
    case 0:
        emit(k, HW_W_SELECT, HW_T_I32, int_reg(k), 3,
             (hw_wir_val[]){ pred_reg(k), int_value(k), int_value(k) });
        break;
    case 1:
        i = emit(k, below(2) ? HW_W_SEXT : HW_W_ZEXT, HW_T_I32, long_reg(k), 1,
                 (hw_wir_val[]){ int_reg(k) });
        i->type2 = HW_T_I64;
        break;
    case 2:
        i = emit(k, HW_W_TRUNC, HW_T_I64, int_reg(k), 1, (hw_wir_val[]){ long_reg(k) });
        i->type2 = HW_T_I32;
        break;
    case 3:
        emit(k, (hw_wir_op[]){ HW_W_AND, HW_W_OR, HW_W_XOR }[below(3)], HW_T_I1, pred_reg(k), 2,
             (hw_wir_val[]){ pred_reg(k), pred_reg(k) });
        break;
    case 4:
        emit(k, HW_W_MOV, HW_T_I32, int_reg(k), 1, (hw_wir_val[]){ int_value(k) });
        break;
    case 5:
        i = emit(k, HW_W_SREG, HW_T_I32, int_reg(k), 0, NULL);
        i->imm = (uint64_t[]){ HW_SR_TID_X,   HW_SR_TID_Y,  HW_SR_LANEID,
                               HW_SR_CTAID_X, HW_SR_NTID_X, HW_SR_WARPID }[below(6)];
        break;
    case 6: /* index arithmetic that may wrap */
        wrapping(k);
        break;
    default:
        emit(k, HW_W_LOP3, HW_T_I32, int_reg(k), 3,
             (hw_wir_val[]){ int_value(k), int_value(k), int_value(k) })
            ->imm = rnd() & 255;
    }
}

static void compare(maker *k)
{
    emit(k, HW_W_ICMP, HW_T_I32, pred_reg(k), 2, (hw_wir_val[]){ int_value(k), int_value(k) })
        ->cond = (uint8_t)below(10);
}

/* ---- memory ---- */

/* base + extended(index) * scale, as compilers write it. */
static hw_wir_val indexed(maker *k, hw_wir_val base, hw_wir_val index, uint32_t scale)
{
    hw_wir_val w = hw_wir_cvt(&k->b, below(2) ? HW_W_SEXT : HW_W_ZEXT, HW_T_I32, HW_T_I64, index);
    if (scale == 4 && below(2))
        w = hw_wir_op2(&k->b, HW_W_SHL, HW_T_I64, w, hw_wir_imm(2));
    else
        w = op2(k, HW_W_MUL, HW_T_I64, w, hw_wir_imm(scale));
    return op2(k, HW_W_ADD, HW_T_I64, base, w);
}

static const hw_wir_type element[] = { HW_T_I8, HW_T_I16, HW_T_I32, HW_T_I32, HW_T_F32, HW_T_I64 };

/* A result register for each element; small ones are widened after. */
static void widen_into_ints(maker *k, hw_wir_type t, const hw_wir_val *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        hw_wir_val d = t == HW_T_I64 ? long_reg(k) : int_reg(k);
        if (t == HW_T_I8 || t == HW_T_I16)
            emit(k, below(2) ? HW_W_SEXT : HW_W_ZEXT, t, d, 1, &r[i])->type2 = HW_T_I32;
        else
            emit(k, HW_W_MOV, t == HW_T_I64 ? HW_T_I64 : HW_T_I32, d, 1, &r[i]);
    }
}

static void load_from(maker *k, hw_wir_val at, hw_wir_space space, uint64_t room)
{
    hw_wir_type t = element[below(HW_COUNTOF(element))];
    uint32_t bytes = hw_wir_bits(t) / 8, n = 1u << below(3);
    hw_wir_val r[4];
    while (bytes * n > 16 || bytes * n > room)
        n /= 2;
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        r[i] = hw_wir_reg(hw_wir_reg_new(&k->b, hw_wir_reg_type(t), NULL));
    hw_wir_insn *i = hw_wir_emit(&k->b, HW_W_LOAD, t, n, r, 1, &at);
    i->count = (uint8_t)n;
    i->space = (uint8_t)space;
    i->flags |= below(8) ? 0 : HW_I_VOLATILE;
    i->imm = below((uint32_t)room / (bytes * n)) * bytes * n;
    widen_into_ints(k, t, r, n);
}

/* Several words through one address: what is done together must give what each would. */
static void load_neighbours(maker *k, hw_wir_val at, hw_wir_space space)
{
    for (uint32_t n = 2 + below(4), i = 0; i < n; i++) {
        hw_wir_val d = int_reg(k);
        hw_wir_insn *in = hw_wir_emit(&k->b, HW_W_LOAD, HW_T_I32, 1, &d, 1, &at);
        in->space = (uint8_t)space;
        in->imm = 4 * (below(3) ? i : below(4));
    }
}

static hw_wir_val masked(maker *k, hw_wir_val x, uint32_t mask)
{
    return op2(k, HW_W_AND, HW_T_I32, x, hw_wir_imm(mask));
}

static void load(maker *k)
{
    hw_wir_val v = int_value(k);
    switch (below(6)) {
    case 0: /* anywhere in the input */
        v = indexed(k, k->in, masked(k, v, 1023), 16);
        break;
    case 1:                /* by rows: thread plus something */
        if (below(3) == 0) /* may go below zero: widened, it wraps */
            v = op2(k, HW_W_AND, HW_T_I32, op2(k, HW_W_SUB, HW_T_I32, k->thread, hw_wir_imm(3)),
                    hw_wir_imm(255));
        v = op2(k, HW_W_ADD, HW_T_I32, k->thread, masked(k, v, 255));
        v = indexed(k, k->in, v, 4u << below(3));
        if (below(2)) {
            load_neighbours(k, v, HW_SPACE_GLOBAL);
            return;
        }
        load_from(k, v, HW_SPACE_GLOBAL, 4);
        return;
    case 2:
        load_from(k, k->own, below(2) ? HW_SPACE_GLOBAL : HW_SPACE_GENERIC, OWN);
        return;
    case 3:
        load_from(k, k->shared_own, HW_SPACE_SHARED, SHARED_OWN);
        return;
    case 4:
        load_from(k, k->local, below(2) ? HW_SPACE_LOCAL : HW_SPACE_GENERIC, LOCAL_STRIDE / 2);
        return;
    default: /* a row of the thread's block */
        v = indexed(k, k->in, masked(k, v, 1023), 16);
        load_neighbours(k, v, HW_SPACE_GLOBAL);
        return;
    }
    load_from(k, v, below(3) ? HW_SPACE_GLOBAL : HW_SPACE_GENERIC, 16);
}

static hw_wir_val narrowed(maker *k, hw_wir_type t)
{
    if (t == HW_T_I64)
        return long_reg(k);
    if (t != HW_T_I8 && t != HW_T_I16)
        return below(4) ? int_reg(k) : hw_wir_imm(below(100));
    return hw_wir_cvt(&k->b, HW_W_TRUNC, HW_T_I32, t, int_reg(k));
}

static void store_to(maker *k, hw_wir_val at, hw_wir_space space, uint64_t room)
{
    hw_wir_type t = element[below(HW_COUNTOF(element))];
    uint32_t bytes = hw_wir_bits(t) / 8, n = 1u << below(3);
    hw_wir_val s[5] = { at };
    while (n && (bytes * n > 16 || bytes * n > room))
        n /= 2;
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        s[1 + i] = narrowed(k, t);
    hw_wir_insn *i = hw_wir_emit(&k->b, HW_W_STORE, t, 0, NULL, n + 1, s);
    i->count = (uint8_t)n;
    i->space = (uint8_t)space;
    i->flags |= below(8) ? 0 : HW_I_VOLATILE;
    i->imm = below((uint32_t)room / (bytes * n)) * bytes * n;
}

static void store(maker *k)
{
    switch (below(5)) {
    case 0: /* own memory, anywhere in it */
        store_to(k, indexed(k, k->own, masked(k, int_value(k), 31), 16), HW_SPACE_GLOBAL, 16);
        break;
    case 1:
        store_to(k, k->line, HW_SPACE_GLOBAL, 16);
        break;
    case 2:
        store_to(k, k->shared_own, HW_SPACE_SHARED, SHARED_OWN);
        break;
    case 3:
        store_to(k, k->local, below(2) ? HW_SPACE_LOCAL : HW_SPACE_GENERIC, LOCAL_STRIDE / 2);
        break;
    default:
        store_to(k, k->own, HW_SPACE_GENERIC, OWN);
    }
}

static void atomic(maker *k)
{
    static const uint8_t kinds[] = { HW_ATOM_ADD,  HW_ATOM_MIN_S, HW_ATOM_MAX_U, HW_ATOM_XOR,
                                     HW_ATOM_EXCH, HW_ATOM_INC,   HW_ATOM_DEC };
    bool shared = below(2), cas = below(4) == 0;
    hw_wir_val s[3] = { shared ? k->shared_own : k->own, int_value(k), int_value(k) };
    hw_wir_val d = int_reg(k);
    bool red = below(2) && !cas;
    hw_wir_insn *i =
        hw_wir_emit(&k->b, red ? HW_W_RED : HW_W_ATOM, HW_T_I32, !red, &d, cas ? 3 : 2, s);
    i->atom = cas ? HW_ATOM_CAS : kinds[below(HW_COUNTOF(kinds))];
    i->space = shared ? HW_SPACE_SHARED : HW_SPACE_GLOBAL;
    i->imm = below(8) * 4;
}

static void any(maker *k)
{
    static void (*const kinds[])(maker *) = { arithmetic, arithmetic, arithmetic, other,
                                              other,      compare,    compare,    load,
                                              load,       store,      store,      atomic };
    k->b.guard = below(7) ? HW_WIR_NONE : pred_reg(k);
    k->b.guard_negated = below(2);
    kinds[below(HW_COUNTOF(kinds))](k);
    k->b.guard = HW_WIR_NONE;
}

/* ---- graphs ---- */

/* Block 0 enters, 1 ends; others come in pairs: fuel, body. */
static uint32_t any_target(maker *k, uint32_t from, bool wild)
{
    uint32_t pairs = (k->nblocks - 2) / 2, me = from < 2 ? 0 : (from - 2) / 2;
    uint32_t to = wild || below(8) == 0 ? below(pairs) : me + 1 + below(3);
    return to < pairs ? 2 + 2 * to : 1;
}

static void end_block(maker *k, uint32_t at, bool wild)
{
    uint32_t t[3] = { any_target(k, at, wild), any_target(k, at, wild), any_target(k, at, wild) };
    uint32_t what = below(12);
    if (what == 0) {
        k->b.guard = pred_reg(k);
        hw_wir_emit(&k->b, HW_W_EXIT, HW_T_NONE, 0, NULL, 0, NULL);
        hw_wir_set_targets(&k->b, 1, t);
        k->b.guard = HW_WIR_NONE;
    } else if (what == 1) {
        hw_wir_val x = op2(k, HW_W_REM_U, HW_T_I32, int_reg(k), hw_wir_imm(3));
        hw_wir_emit(&k->b, HW_W_BRX, HW_T_NONE, 0, NULL, 1, &x);
        hw_wir_set_targets(&k->b, 3, t);
    } else if (what < 9) {
        hw_wir_cbr(&k->b, pred_reg(k), t[0], t[1]);
    } else {
        hw_wir_br(&k->b, t[0]);
    }
}

static hw_wir_val param(maker *k, hw_wir_type t, uint64_t at)
{
    hw_wir_val p = hw_wir_reg(hw_wir_reg_new(&k->b, HW_T_I64, NULL));
    emit(k, HW_W_PARAM_ADDR, HW_T_I64, p, 0, NULL)->imm = at;
    hw_wir_val d = hw_wir_reg(hw_wir_reg_new(&k->b, t, NULL));
    emit(k, HW_W_LOAD, t, d, 1, &p)->space = HW_SPACE_PARAM;
    return d;
}

static hw_wir_val sreg(maker *k, hw_wir_sreg s)
{
    hw_wir_val d = hw_wir_reg(hw_wir_reg_new(&k->b, HW_T_I32, NULL));
    emit(k, HW_W_SREG, HW_T_I32, d, 0, NULL)->imm = s;
    return d;
}

/* Across lanes, where all of the warp is here. Sources that do not exist are left out. */
static void across(maker *k, bool whole)
{
    static const hw_wir_op votes[] = { HW_W_VOTE_ALL, HW_W_VOTE_ANY, HW_W_VOTE_UNI };
    static const uint8_t reductions[] = { HW_ATOM_ADD,   HW_ATOM_MIN_S, HW_ATOM_MIN_U,
                                          HW_ATOM_MAX_S, HW_ATOM_MAX_U, HW_ATOM_AND,
                                          HW_ATOM_OR,    HW_ATOM_XOR };
    hw_wir_val all = hw_wir_imm(UINT32_MAX), d[2] = { int_reg(k), pred_reg(k) };
    hw_wir_val few = op2(k, HW_W_AND, HW_T_I32, int_reg(k), hw_wir_imm(3));
    hw_wir_insn *i;
    switch (below(6)) {
    case 0:
        emit(k, HW_W_BALLOT, HW_T_NONE, d[0], 2, (hw_wir_val[]){ pred_reg(k), all });
        break;
    case 1:
        emit(k, votes[below(3)], HW_T_NONE, d[1], 2, (hw_wir_val[]){ pred_reg(k), all });
        break;
    case 2:
        emit(k, HW_W_MATCH_ANY, HW_T_I32, d[0], 2, (hw_wir_val[]){ few, all });
        break;
    case 3:
        hw_wir_emit(&k->b, HW_W_MATCH_ALL, HW_T_I32, 2, d, 2, (hw_wir_val[]){ few, all });
        break;
    case 4:
        emit(k, HW_W_REDUX, HW_T_I32, d[0], 2, (hw_wir_val[]){ int_reg(k), all })->atom =
            reductions[below(8)];
        break;
    default:
        if (!whole)
            return;
        i = hw_wir_emit(
            &k->b, HW_W_SHFL, HW_T_I32, 2, d, 4,
            (hw_wir_val[]){ int_reg(k), int_value(k),
                            hw_wir_imm((uint64_t[]){ 31, 0, 0x1c03, 0x181f, 0x100f }[below(5)]),
                            all });
        i->imm = below(4);
    }
}

static void entry(maker *k, bool flat, bool whole)
{
    hw_wir_val x = sreg(k, HW_SR_TID_X);
    if (!flat) {
        hw_wir_val y = op2(k, HW_W_MUL, HW_T_I32, sreg(k, HW_SR_TID_Z), sreg(k, HW_SR_NTID_Y));
        y = op2(k, HW_W_ADD, HW_T_I32, y, sreg(k, HW_SR_TID_Y));
        y = op2(k, HW_W_MUL, HW_T_I32, y, sreg(k, HW_SR_NTID_X));
        x = op2(k, HW_W_ADD, HW_T_I32, x, y);
    }
    k->thread = x;
    k->in = param(k, HW_T_I64, 0);
    k->own = indexed(k, param(k, HW_T_I64, 8), x, OWN);
    k->line = indexed(k, param(k, HW_T_I64, 16), x, 16);
    k->shared_own = op2(k, HW_W_MUL, HW_T_I32, x, hw_wir_imm(SHARED_OWN));
    k->local = hw_wir_reg(hw_wir_reg_new(&k->b, HW_T_I64, NULL));
    emit(k, HW_W_LOCAL_ADDR, HW_T_I64, k->local, 0, NULL);
    for (uint32_t i = 0; i < INTS; i++) {
        hw_wir_val d = hw_wir_reg(k->ints[i]);
        if (below(2))
            emit(k, HW_W_LOAD, HW_T_I32, d, 1, (hw_wir_val[]){ k->in })->imm = below(64) * 4;
        else
            hw_wir_mov(&k->b, HW_T_I32, d, below(2) ? x : hw_wir_imm(below(64)));
    }
    for (uint32_t i = 0; i < LONGS; i++)
        emit(k, HW_W_SEXT, HW_T_I32, hw_wir_reg(k->longs[i]), 1, (hw_wir_val[]){ int_reg(k) })
            ->type2 = HW_T_I64;
    for (uint32_t i = 0; i < PREDS; i++)
        emit(k, HW_W_ICMP, HW_T_I32, hw_wir_reg(k->preds[i]), 2,
             (hw_wir_val[]){ int_value(k), int_value(k) })
            ->cond = (uint8_t)below(10);
    for (uint32_t n = below(5); n > 0; n--)
        across(k, whole);
    hw_wir_mov(&k->b, HW_T_I32, hw_wir_reg(k->fuel), hw_wir_imm(FUEL));
}

/* All registers into the thread's own memory. */
static void leave(maker *k)
{
    for (uint32_t i = 0; i < INTS; i++) {
        hw_wir_val s[2] = { k->own, hw_wir_reg(k->ints[i]) };
        hw_wir_insn *in = hw_wir_emit(&k->b, HW_W_STORE, HW_T_I32, 0, NULL, 2, s);
        in->imm = OWN - 128 + 4 * i;
        in->space = HW_SPACE_GLOBAL;
    }
    for (uint32_t i = 0; i < LONGS; i++) {
        hw_wir_val s[2] = { k->own, hw_wir_reg(k->longs[i]) };
        hw_wir_insn *in = hw_wir_emit(&k->b, HW_W_STORE, HW_T_I64, 0, NULL, 2, s);
        in->imm = OWN - 64 + 8 * i;
        in->space = HW_SPACE_GLOBAL;
    }
}

static void body(maker *k, bool wild, bool barriers, uint32_t at)
{
    for (uint32_t n = below(8); n > 0; n--)
        any(k);
    if (barriers && below(3) == 0)
        hw_wir_emit(&k->b, HW_W_BARRIER, HW_T_NONE, 0, NULL, 2,
                    (hw_wir_val[]){ hw_wir_imm(0), HW_WIR_NONE });
    if (barriers && below(6) == 0)
        hw_wir_emit(&k->b, HW_W_YIELD, HW_T_NONE, 0, NULL, 0, NULL);
    for (uint32_t n = below(3); n > 0; n--)
        any(k);
    end_block(k, at, wild);
}

hw_wir_module *make(hw_arena *a, bool flat, bool whole, bool large)
{
    uint32_t pairs = (large ? 160 : 1) + below(8);
    maker k = { .m = hw_wir_module_new(a), .nblocks = 2 + 2 * pairs };
    bool wild = below(3) == 0, barriers = below(2) || large;
    k.b = (hw_wir_builder){ .m = k.m, .function = hw_wir_function_new(k.m, "k", true) };
    k.m->static_shared_bytes = SHARED_BYTES;
    k.m->param_bytes = 24;
    for (uint32_t i = 0; i < INTS; i++)
        k.ints[i] = hw_wir_reg_new(&k.b, HW_T_I32, NULL);
    for (uint32_t i = 0; i < LONGS; i++)
        k.longs[i] = hw_wir_reg_new(&k.b, HW_T_I64, NULL);
    for (uint32_t i = 0; i < PREDS; i++)
        k.preds[i] = hw_wir_reg_new(&k.b, HW_T_I1, NULL);
    k.fuel = hw_wir_reg_new(&k.b, HW_T_I32, NULL);
    k.m->functions.ptr[0].local_bytes = LOCAL_STRIDE / 2;
    for (uint32_t b = 0; b < k.nblocks; b++)
        hw_wir_block_new(&k.b, NULL);
    k.b.block = 0;
    entry(&k, flat, whole);
    hw_wir_br(&k.b, 2);
    k.b.block = 1;
    leave(&k);
    hw_wir_emit(&k.b, HW_W_EXIT, HW_T_NONE, 0, NULL, 0, NULL);
    for (uint32_t b = 2; b < k.nblocks; b += 2) {
        k.b.block = b;
        hw_wir_val f = hw_wir_reg(k.fuel), p = hw_wir_reg(hw_wir_reg_new(&k.b, HW_T_I1, NULL));
        emit(&k, HW_W_ADD, HW_T_I32, f, 2, (hw_wir_val[]){ f, hw_wir_imm(UINT32_MAX) });
        emit(&k, HW_W_ICMP, HW_T_I32, p, 2, (hw_wir_val[]){ f, hw_wir_imm(0) })->cond = HW_C_EQ;
        hw_wir_cbr(&k.b, p, 1, b + 1);
        k.b.block = b + 1;
        body(&k, wild, barriers, b + 1);
    }
    return k.m;
}

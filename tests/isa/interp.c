/* SPDX-License-Identifier: Apache-2.0
 * A plain interpreter of warp IR for tests: see interp.h. */
#include "interp.h"

#include <stdlib.h>

enum { LANES = 32, DEPTH = 16, MAX_STEPS = 10000000 };

typedef struct frame {
    const hw_wir_function *f;
    u128 (*regs)[LANES];
    uint32_t at[LANES], in[LANES]; /* block, instruction */
    uint32_t live;                 /* lanes still in this function */
    uint64_t local;                /* offset of its local memory */
} frame;

/* ---- memory and what a lane knows ---- */

static uint64_t address_of(const interp *x, const hw_wir_insn *i, u128 base)
{
    uint64_t a = (uint64_t)base + i->imm;
    return i->space == HW_SPACE_SHARED ? (uint64_t)(uintptr_t)x->shared + a : a;
}

static u128 load(uint64_t a, unsigned bits)
{
    u128 v = 0;
    memcpy(&v, (const void *)(uintptr_t)a, bits / 8);
    return v;
}

static void store(uint64_t a, u128 v, unsigned bits)
{
    memcpy((void *)(uintptr_t)a, &v, bits / 8);
}

static u128 atomic(const hw_wir_insn *i, u128 old, const u128 *s)
{
    unsigned bits = hw_wir_bits(i->type);
    u128 v = s[1];
    __int128 x = interp_sign(old, bits), y = interp_sign(v, bits);
    hw_wir_insn add = { .op = HW_W_FADD, .type = i->type, .nsrc = 2 };
    u128 r = 0;
    switch (i->atom) {
    case HW_ATOM_ADD:
        return old + v;
    case HW_ATOM_MIN_S:
        return (u128)(x < y ? x : y);
    case HW_ATOM_MAX_S:
        return (u128)(x > y ? x : y);
    case HW_ATOM_MIN_U:
        return old < v ? old : v;
    case HW_ATOM_MAX_U:
        return old > v ? old : v;
    case HW_ATOM_AND:
        return old & v;
    case HW_ATOM_OR:
        return old | v;
    case HW_ATOM_XOR:
        return old ^ v;
    case HW_ATOM_EXCH:
        return v;
    case HW_ATOM_CAS:
        return old == v ? s[2] : old;
    case HW_ATOM_INC:
        return old >= v ? 0 : old + 1;
    case HW_ATOM_DEC:
        return old == 0 || old > v ? v : old - 1;
    case HW_ATOM_FADD:
        interp_pure(&add, (u128[]){ old, v }, &r);
        return r;
    default:
        add.op = i->atom == HW_ATOM_FMIN ? HW_W_FMIN : HW_W_FMAX;
        interp_pure(&add, (u128[]){ old, v }, &r);
        return r;
    }
}

static u128 special(const interp *x, unsigned sr, unsigned lane)
{
    uint32_t t = x->warp * LANES + lane, nx = x->ntid[0] ? x->ntid[0] : 1,
             ny = x->ntid[1] ? x->ntid[1] : 1;
    uint32_t bit = UINT32_C(1) << lane;
    switch (sr) {
    case HW_SR_TID_X:
        return t % nx;
    case HW_SR_TID_Y:
        return t / nx % ny;
    case HW_SR_TID_Z:
        return t / nx / ny;
    case HW_SR_NTID_X:
    case HW_SR_NTID_Y:
    case HW_SR_NTID_Z:
        return x->ntid[sr - HW_SR_NTID_X];
    case HW_SR_CTAID_X:
    case HW_SR_CTAID_Y:
    case HW_SR_CTAID_Z:
        return x->ctaid[sr - HW_SR_CTAID_X];
    case HW_SR_NCTAID_X:
    case HW_SR_NCTAID_Y:
    case HW_SR_NCTAID_Z:
        return x->nctaid[sr - HW_SR_NCTAID_X];
    case HW_SR_LANEID:
        return lane;
    case HW_SR_WARPID:
        return x->warp;
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
        return 0;
    }
}

static bool known_op(const interp *x, const frame *f, const hw_wir_insn *i, unsigned lane, u128 *d)
{
    switch (i->op) {
    case HW_W_SREG:
        *d = special(x, (unsigned)i->imm, lane);
        return true;
    case HW_W_CLOCK:
        *d = 0;
        return true;
    case HW_W_PARAM_ADDR:
        *d = (uint64_t)(uintptr_t)x->params + i->imm;
        return true;
    case HW_W_SYMBOL:
        *d = x->symbols[i->imm];
        return true;
    case HW_W_FUNC_ADDR:
        *d = i->imm + 1;
        return true;
    case HW_W_LOCAL_ADDR:
        *d = (uint64_t)(uintptr_t)x->local + lane * x->local_stride + f->local + i->imm;
        return true;
    case HW_W_SHARED_BASE:
        *d = (uint64_t)(uintptr_t)x->shared;
        return true;
    default:
        return false;
    }
}

/* ---- across lanes ---- */

static u128 value(const frame *f, hw_wir_val v, unsigned lane)
{
    return v.kind == HW_V_REG ? f->regs[v.reg][lane] : v.imm;
}

static void set(frame *f, hw_wir_val d, unsigned lane, u128 v)
{
    if (d.kind == HW_V_REG)
        f->regs[d.reg][lane] = v & interp_mask(hw_wir_bits(f->f->regs.ptr[d.reg].type));
}

static uint32_t ballot(const frame *f, const hw_wir_insn *i, uint32_t act, uint32_t members)
{
    uint32_t r = 0;
    for (unsigned l = 0; l < LANES; l++)
        if (((act & members) >> l) & 1)
            r |= (uint32_t)(value(f, i->src[0], l) != 0) << l;
    return r;
}

static void shuffle(frame *f, const hw_wir_insn *i, uint32_t act)
{
    u128 r[LANES];
    bool p[LANES];
    for (unsigned l = 0; l < LANES; l++) {
        unsigned b = (unsigned)value(f, i->src[1], l), c = (unsigned)value(f, i->src[2], l);
        unsigned seg = (c >> 8) & 31, clamp = c & 31, max = (l & seg) | (clamp & ~seg), j = l;
        unsigned low = l & seg;
        b &= 31;
        if (i->imm == HW_SHFL_UP)
            j = l - b, p[l] = (int)j >= (int)max;
        else if (i->imm == HW_SHFL_DOWN)
            j = l + b, p[l] = j <= max;
        else if (i->imm == HW_SHFL_BFLY)
            j = l ^ b, p[l] = j <= max;
        else
            j = low | (b & ~seg), p[l] = j <= max;
        unsigned from = p[l] ? j & 31 : l;
        r[l] = (act >> from) & 1 ? value(f, i->src[0], from) : 0;
    }
    for (unsigned l = 0; l < LANES; l++)
        if ((act >> l) & 1) {
            set(f, i->dst[0], l, r[l]);
            set(f, i->dst[1], l, p[l]);
        }
}

static u128 reduce(const frame *f, const hw_wir_insn *i, uint32_t lanes)
{
    bool first = true;
    u128 r = 0;
    hw_wir_insn one = *i;
    for (unsigned l = 0; l < LANES; l++)
        if ((lanes >> l) & 1) {
            u128 v = value(f, i->src[0], l);
            r = first ? v : atomic(&one, r, (u128[]){ 0, v }) & interp_mask(32);
            first = false;
        }
    return r;
}

static uint32_t equal_lanes(const frame *f, const hw_wir_insn *i, unsigned l, uint32_t lanes)
{
    uint32_t r = 0;
    for (unsigned k = 0; k < LANES; k++)
        if ((lanes >> k) & 1)
            r |= (uint32_t)(value(f, i->src[0], k) == value(f, i->src[0], l)) << k;
    return r;
}

static void lane_result(frame *f, const hw_wir_insn *i, unsigned l, uint32_t act)
{
    uint32_t members = i->nsrc > 1 ? (uint32_t)value(f, i->src[1], l) & act : act;
    uint32_t votes = i->nsrc == 2 && i->op <= HW_W_VOTE_UNI ? ballot(f, i, act, members) : 0;
    switch (i->op) {
    case HW_W_BALLOT:
        set(f, i->dst[0], l, votes);
        break;
    case HW_W_ACTIVEMASK:
        set(f, i->dst[0], l, act);
        break;
    case HW_W_VOTE_ALL:
        set(f, i->dst[0], l, votes == members);
        break;
    case HW_W_VOTE_ANY:
        set(f, i->dst[0], l, votes != 0);
        break;
    case HW_W_VOTE_UNI:
        set(f, i->dst[0], l, votes == members || votes == 0);
        break;
    case HW_W_MATCH_ANY:
        set(f, i->dst[0], l, equal_lanes(f, i, l, members));
        break;
    case HW_W_MATCH_ALL: {
        bool all = equal_lanes(f, i, l, members) == members;
        set(f, i->dst[0], l, all ? members : 0);
        set(f, i->dst[1], l, all);
        break;
    }
    case HW_W_REDUX:
        set(f, i->dst[0], l, reduce(f, i, members));
        break;
    default: { /* ELECT */
        uint32_t m = (uint32_t)value(f, i->src[0], l) & act;
        unsigned leader = m ? (unsigned)__builtin_ctz(m) : 0;
        set(f, i->dst[0], l, leader);
        set(f, i->dst[1], l, leader == l);
        break;
    }
    }
}

static void across(frame *f, const hw_wir_insn *i, uint32_t act)
{
    if (i->op == HW_W_SHFL) {
        shuffle(f, i, act);
        return;
    }
    if (i->ndst == 0) /* only waits */
        return;
    /* all lanes read before one writes */
    frame copy = *f;
    u128(*before)[LANES] = malloc(sizeof *before * f->f->regs.len);
    u128(*after)[LANES] = f->regs;
    memcpy(before, f->regs, sizeof *before * f->f->regs.len);
    copy.regs = before;
    for (unsigned l = 0; l < LANES; l++) {
        if (!((act >> l) & 1))
            continue;
        frame one = copy;
        lane_result(&one, i, l, act);
        for (unsigned k = 0; k < i->ndst; k++)
            if (i->dst[k].kind == HW_V_REG) {
                u128 v = before[i->dst[k].reg][l];
                before[i->dst[k].reg][l] = after[i->dst[k].reg][l];
                after[i->dst[k].reg][l] = v;
            }
    }
    free(before);
}

/* ---- running ---- */

static bool run_function(interp *x, const hw_wir_function *f, uint32_t act, uint64_t local,
                         const hw_wir_insn *call, frame *caller, unsigned depth);

static bool call_function(interp *x, frame *f, const hw_wir_insn *i, uint32_t act, unsigned depth)
{
    if (i->op == HW_W_CALL)
        return run_function(x, &x->m->functions.ptr[i->imm], act, f->local + f->f->local_bytes, i,
                            f, depth + 1);
    for (unsigned l = 0; l < LANES; l++) {
        if (!((act >> l) & 1))
            continue;
        u128 which = value(f, i->src[0], l);
        hw_wir_insn direct = *i;
        direct.src = i->src + 1;
        direct.nsrc--;
        if (which == 0 || which > x->m->functions.len) {
            x->failed = "indirect call of no function";
            return false;
        }
        if (!run_function(x, &x->m->functions.ptr[which - 1], UINT32_C(1) << l,
                          f->local + f->f->local_bytes, &direct, f, depth + 1))
            return false;
    }
    return true;
}

static void copy_bytes(interp *x, const u128 *s, uint64_t size)
{
    uint8_t *to = x->shared + (uint32_t)s[0];
    uint64_t n = (uint64_t)s[2] < size ? (uint64_t)s[2] : size;
    memcpy(to, (const void *)(uintptr_t)(uint64_t)s[1], n);
    memset(to + n, 0, size - n);
}

/* Helpers of pure arithmetic; others are not for this interpreter. */
static bool help(frame *f, const hw_wir_insn *i, unsigned l, const u128 *s)
{
    if (i->imm != HW_H_FNS)
        return false;
    uint32_t mask = (uint32_t)s[0], base = (uint32_t)s[1];
    int32_t offset = (int32_t)(uint32_t)s[2], step = offset < 0 ? -1 : 1;
    int64_t n = offset < 0 ? -(int64_t)offset : offset;
    u128 r = UINT32_MAX;
    if (n == 0)
        r = base < 32 && (mask >> base) & 1 ? base : UINT32_MAX;
    for (int64_t at = base; n > 0 && at >= 0 && at < 32; at += step)
        if ((mask >> at) & 1 && --n == 0)
            r = (u128)at;
    set(f, i->dst[0], l, r);
    return true;
}

static bool moves(const hw_wir_insn *i)
{
    return i->op == HW_W_LOAD || i->op == HW_W_STORE || i->op == HW_W_ATOM || i->op == HW_W_RED;
}

static bool lane_op(interp *x, frame *f, const hw_wir_insn *i, unsigned l)
{
    u128 s[16], d = 0;
    for (unsigned k = 0; k < i->nsrc && k < 16; k++)
        s[k] = value(f, i->src[k], l);
    if (x->low_at && moves(i) && i->space != HW_SPACE_PARAM)
        x->low_at[i->loc] += (uint8_t)((uint64_t)s[0] + i->imm);
    unsigned bits = hw_wir_bits(i->type);
    switch (i->op) {
    case HW_W_LOAD:
        for (unsigned k = 0; k < i->ndst; k++)
            set(f, i->dst[k], l, load(address_of(x, i, s[0]) + k * bits / 8, bits));
        return true;
    case HW_W_STORE:
        for (unsigned k = 1; k < i->nsrc; k++)
            store(address_of(x, i, s[0]) + (k - 1) * bits / 8, s[k], bits);
        return true;
    case HW_W_ATOM:
    case HW_W_RED: {
        uint64_t a = address_of(x, i, s[0]);
        u128 old = load(a, bits);
        store(a, atomic(i, old, s), bits);
        if (i->ndst)
            set(f, i->dst[0], l, old);
        return true;
    }
    case HW_W_COPY:
        copy_bytes(x, s, i->imm);
        return true;
    case HW_W_BARRIER: /* the only warp */
    case HW_W_BARRIER_ARRIVE:
    case HW_W_FENCE:
    case HW_W_PREFETCH:
    case HW_W_WARPSYNC:
    case HW_W_YIELD:
    case HW_W_NOP:
        return true;
    case HW_W_HELPER:
        if (help(f, i, l, s))
            return true;
        x->failed = "a helper that it does not know";
        return false;
    case HW_W_ISSPACE: {
        uint64_t a = (uint64_t)s[0], sh = (uint64_t)(uintptr_t)x->shared;
        bool shared = a >= sh && a < sh + 65536;
        set(f, i->dst[0], l, (i->space == HW_SPACE_SHARED) == shared);
        return true;
    }
    default:
        break;
    }
    if (!known_op(x, f, i, l, &d) && !interp_pure(i, s, &d)) {
        x->failed = hw_wir_ops[i->op].name;
        return false;
    }
    set(f, i->dst[0], l, d);
    return true;
}

static uint32_t guarded(const frame *f, const hw_wir_insn *i, uint32_t act)
{
    uint32_t r = 0;
    if (i->guard.kind != HW_V_REG)
        return act;
    for (unsigned l = 0; l < LANES; l++)
        if ((act >> l) & 1 && (value(f, i->guard, l) != 0) != ((i->flags & HW_I_NEG_GUARD) != 0))
            r |= UINT32_C(1) << l;
    return r;
}

static void go(frame *f, unsigned l, uint32_t block)
{
    f->at[l] = block;
    f->in[l] = 0;
}

static bool terminate(interp *x, frame *f, const hw_wir_block *b, const hw_wir_insn *i,
                      uint32_t act)
{
    uint32_t on = guarded(f, i, act);
    for (unsigned l = 0; l < LANES; l++) {
        if (!((act >> l) & 1))
            continue;
        bool taken = (on >> l) & 1;
        if (i->op == HW_W_BR)
            go(f, l, b->targets[0]);
        else if (i->op == HW_W_CBR)
            go(f, l, b->targets[value(f, i->src[0], l) ? 0 : 1]);
        else if (i->op == HW_W_BRX && value(f, i->src[0], l) < b->ntargets)
            go(f, l, b->targets[(uint32_t)value(f, i->src[0], l)]);
        else if (i->op == HW_W_BRX || (i->op == HW_W_TRAP && taken)) {
            x->failed = "trap";
            return false;
        } else if (taken) {
            f->live &= ~(UINT32_C(1) << l);
            if (i->op == HW_W_EXIT)
                x->lanes &= ~(UINT32_C(1) << l);
        } else {
            go(f, l, b->targets[0]);
        }
    }
    return true;
}

static uint32_t choose(const frame *f)
{
    uint32_t block = UINT32_MAX, in = 0, act = 0;
    for (unsigned l = 0; l < LANES; l++) {
        if (!((f->live >> l) & 1))
            continue;
        if (f->at[l] < block || (f->at[l] == block && f->in[l] < in)) {
            block = f->at[l];
            in = f->in[l];
            act = 0;
        }
        if (f->at[l] == block && f->in[l] == in)
            act |= UINT32_C(1) << l;
    }
    return act;
}

static bool step(interp *x, frame *f, uint32_t act, unsigned depth)
{
    unsigned first = (unsigned)__builtin_ctz(act);
    const hw_wir_block *b = &f->f->blocks.ptr[f->at[first]];
    const hw_wir_insn *i = &b->insns.ptr[f->in[first]];
    if (x->active_at)
        x->active_at[i->loc] += (unsigned)__builtin_popcount(act);
    if (hw_wir_ops[i->op].flags & HW_WF_T)
        return terminate(x, f, b, i, act);
    uint32_t on = guarded(f, i, act);
    if (x->acting_at)
        x->acting_at[i->loc] += (unsigned)__builtin_popcount(on);
    if (hw_wir_ops[i->op].flags & HW_WF_X) {
        if (on)
            across(f, i, on);
    } else if (i->op == HW_W_CALL || i->op == HW_W_CALLI) {
        if (on && !call_function(x, f, i, on, depth))
            return false;
        f->live &= x->lanes;
    } else {
        for (unsigned l = 0; l < LANES; l++)
            if ((on >> l) & 1 && !lane_op(x, f, i, l))
                return false;
    }
    for (unsigned l = 0; l < LANES; l++)
        if ((act >> l) & 1)
            f->in[l]++;
    return true;
}

static void give_results(const hw_wir_function *f, const frame *from, uint32_t lanes,
                         const hw_wir_insn *call, frame *caller)
{
    for (unsigned l = 0; l < LANES; l++)
        for (uint32_t k = 0; (lanes >> l) & 1 && k < call->ndst; k++)
            set(caller, call->dst[k], l, from->regs[f->results[k]][l]);
}

static bool run_function(interp *x, const hw_wir_function *f, uint32_t act, uint64_t local,
                         const hw_wir_insn *call, frame *caller, unsigned depth)
{
    if (depth > DEPTH || !f->defined) {
        x->failed = "call too deep or of nothing";
        return false;
    }
    frame fr = { .f = f, .live = act, .local = local };
    fr.regs = calloc(f->regs.len + 1, sizeof *fr.regs);
    for (unsigned l = 0; call && l < LANES; l++)
        for (uint32_t k = 0; k < f->nparams && k < call->nsrc; k++)
            fr.regs[f->params[k]][l] = value(caller, call->src[k], l);
    bool ok = true;
    for (unsigned n = 0; ok && fr.live; n++) {
        ok = n < MAX_STEPS && step(x, &fr, choose(&fr), depth);
        if (n >= MAX_STEPS)
            x->failed = "too many steps";
    }
    if (ok && call)
        give_results(f, &fr, act & x->lanes, call, caller);
    free(fr.regs);
    return ok;
}

bool interp_run(interp *x)
{
    x->failed = NULL;
    return run_function(x, &x->m->functions.ptr[0], x->lanes, 0, NULL, NULL, 0);
}

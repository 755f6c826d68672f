/* SPDX-License-Identifier: Apache-2.0
 * Calls that inlining cannot remove made jumps within the kernel: of functions that recurse, that may
 * wait (barriers, spin loops), that end threads or that take stack memory as they run.
 *
 * Such a function stands in the kernel once. Every lane has a stack in its local memory and a pointer
 * into it, so lanes may be in different calls, or in different depths of one, and wait there as
 * anywhere else:
 *
 *   [0, local_bytes)   the kernel's own local memory, then as much as calls that stay calls need
 *   from there up      a frame a call: HEADER (where to return), the function's local memory, then
 *                      the registers that a call from it must keep because it may enter it again
 *   from the end down  what `alloca` took
 *
 * A return jumps by the number in the header. Other functions stay calls: of other functions only
 * ones that stay calls as well. */
#include "prepare.h"

enum { HEADER = 16, I64 = HW_T_I64 };

typedef HW_VEC(uint32_t) indices;

typedef struct flattener {
    hw_wir_module *m;
    hw_arena *scratch;
    hw_wir_builder b; /* in the new kernel */
    uint32_t n;       /* functions */
    uint64_t **calls; /* per function: those it calls, then those it reaches (bits) */
    bool *special;    /* needs flattening for what it does itself */
    bool *flat;       /* per function */
    bool *takes;      /* has alloca and the like */
    uint32_t *save;   /* per function: bytes of registers that a call from it keeps, at most */
    uint32_t *first_reg, *first_block, *entry;
    indices *returns;  /* per function: blocks that its calls come back to */
    indices jumps;     /* pairs: block that returns, function */
    uint32_t sp, top;  /* registers: this lane's frame; the lowest byte that alloca took */
    uint32_t *old_top; /* per function: register with `top` at its entry */
    uint32_t base;     /* where frames begin */
    bool any_alloca, deep;

    /* the function at hand */
    uint32_t x;
    const hw_wir_function *f;
    uint64_t **live_out; /* per block, a bit a register; NULL: nothing is ever kept */
} flattener;

static bool has(const uint64_t *set, uint32_t i)
{
    return (set[i / 64] >> (i % 64)) & 1;
}

static void put(uint64_t *set, uint32_t i, bool on)
{
    if (on)
        set[i / 64] |= UINT64_C(1) << (i % 64);
    else
        set[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

static size_t words(size_t bits)
{
    return bits / 64 + 1;
}

static uint32_t round_up(uint32_t x)
{
    return (x + 15) & ~15u;
}

/* ---- who is flattened ---- */

bool hw_wir_can_call(const hw_wir_function *caller, const hw_wir_insn *i, const hw_wir_function *f)
{
    if (!f->defined || f->is_kernel || f->nparams + 1 != i->nsrc || f->nresults != i->ndst)
        return false;
    for (uint32_t k = 0; k < f->nparams; k++)
        if (i->src[k + 1].kind == HW_V_REG &&
            caller->regs.ptr[i->src[k + 1].reg].type != f->regs.ptr[f->params[k]].type)
            return false;
    for (uint32_t k = 0; k < f->nresults; k++)
        if (i->dst[k].kind == HW_V_REG &&
            caller->regs.ptr[i->dst[k].reg].type != f->regs.ptr[f->results[k]].type)
            return false;
    return true;
}

static bool is_stack_op(unsigned op)
{
    return op == HW_W_ALLOCA || op == HW_W_STACKSAVE || op == HW_W_STACKRESTORE;
}

static void look_at_call(flattener *x, uint32_t from, const hw_wir_insn *i)
{
    const hw_wir_function *f = &x->m->functions.ptr[from];
    if (i->op == HW_W_CALL)
        put(x->calls[from], (uint32_t)i->imm, true);
    for (uint32_t t = 1; i->op == HW_W_CALLI && t < x->n; t++)
        if (hw_wir_can_call(f, i, &x->m->functions.ptr[t]))
            put(x->calls[from], t, true);
    x->takes[from] |= is_stack_op(i->op);
    x->special[from] |= is_stack_op(i->op) || i->op == HW_W_EXIT;
}

static void look_at_functions(flattener *x)
{
    for (uint32_t k = 0; k < x->n; k++) {
        const hw_wir_function *f = &x->m->functions.ptr[k];
        x->calls[k] = HW_NEW_N(x->scratch, uint64_t, words(x->n));
        x->special[k] = f->defined && hw_wir_may_suspend(f, true);
        for (size_t b = 0; f->defined && b < f->blocks.len; b++)
            for (size_t j = 0; j < f->blocks.ptr[b].insns.len; j++)
                look_at_call(x, k, &f->blocks.ptr[b].insns.ptr[j]);
    }
}

/* Calls of calls are calls. */
static void close_calls(flattener *x)
{
    for (uint32_t via = 0; via < x->n; via++)
        for (uint32_t from = 0; from < x->n; from++)
            if (has(x->calls[from], via))
                for (size_t w = 0; w < words(x->n); w++)
                    x->calls[from][w] |= x->calls[via][w];
}

/* Does something have to be done at all? */
static bool choose(flattener *x)
{
    bool any = x->takes[0];
    for (uint32_t k = 1; k < x->n; k++) {
        x->special[k] |= has(x->calls[k], k);
        x->deep |= has(x->calls[0], k) && has(x->calls[k], k);
    }
    for (uint32_t k = 1; k < x->n; k++) {
        if (!has(x->calls[0], k) || !x->m->functions.ptr[k].defined)
            continue;
        x->flat[k] = x->special[k];
        for (uint32_t t = 1; t < x->n; t++)
            x->flat[k] |= has(x->calls[k], t) && x->special[t];
        x->any_alloca |= x->takes[k];
        any |= x->flat[k];
    }
    x->any_alloca |= x->takes[0];
    x->deep |= x->any_alloca;
    return any;
}

/* May a call of t from the function at hand enter that again before it returns? */
static bool enters_again(const flattener *x, uint32_t t)
{
    return x->x != 0 && (t == x->x || has(x->calls[t], x->x));
}

/* ---- what a call keeps ---- */

static void read_backwards(const flattener *x, const hw_wir_insn *i, uint64_t *live)
{
    for (uint32_t d = 0; d < i->ndst && i->guard.kind == HW_V_NONE; d++)
        if (i->dst[d].kind == HW_V_REG)
            put(live, i->dst[d].reg, false);
    for (uint32_t s = 0; s < i->nsrc; s++)
        if (i->src[s].kind == HW_V_REG)
            put(live, i->src[s].reg, true);
    if (i->guard.kind == HW_V_REG)
        put(live, i->guard.reg, true);
    for (uint32_t r = 0; i->op == HW_W_RET && r < x->f->nresults; r++)
        put(live, x->f->results[r], true);
}

static bool flow_backwards(const flattener *x, uint32_t b, uint64_t **in, uint64_t *now)
{
    const hw_wir_block *w = &x->f->blocks.ptr[b];
    size_t n = words(x->f->regs.len);
    for (uint32_t t = 0; t < w->ntargets; t++)
        for (size_t k = 0; k < n; k++)
            x->live_out[b][k] |= in[w->targets[t]][k];
    memcpy(now, x->live_out[b], n * sizeof *now);
    for (size_t k = w->insns.len; k-- > 0;)
        read_backwards(x, &w->insns.ptr[k], now);
    bool changed = memcmp(now, in[b], n * sizeof *now) != 0;
    memcpy(in[b], now, n * sizeof *now);
    return changed;
}

static void find_live(flattener *x)
{
    size_t blocks = x->f->blocks.len, n = words(x->f->regs.len);
    uint64_t **in = HW_NEW_N(x->scratch, uint64_t *, blocks + 1);
    x->live_out = HW_NEW_N(x->scratch, uint64_t *, blocks + 1);
    for (size_t b = 0; b <= blocks; b++) {
        in[b] = HW_NEW_N(x->scratch, uint64_t, n);
        x->live_out[b] = HW_NEW_N(x->scratch, uint64_t, n);
    }
    for (bool again = true; again;) {
        again = false;
        for (size_t b = blocks; b-- > 0;)
            again |= flow_backwards(x, (uint32_t)b, in, in[blocks]);
    }
}

/* Registers of the function at hand that are wanted after instruction k of block b. */
static uint64_t *live_after(const flattener *x, uint32_t b, size_t k)
{
    const hw_wir_block *w = &x->f->blocks.ptr[b];
    size_t n = words(x->f->regs.len);
    uint64_t *live = HW_NEW_N(x->scratch, uint64_t, n);
    memcpy(live, x->live_out[b], n * sizeof *live);
    for (size_t j = w->insns.len; j-- > k + 1;)
        read_backwards(x, &w->insns.ptr[j], live);
    const hw_wir_insn *i = &w->insns.ptr[k];
    for (uint32_t d = 0; d < i->ndst && i->guard.kind == HW_V_NONE; d++)
        if (i->dst[d].kind == HW_V_REG)
            put(live, i->dst[d].reg, false);
    return live;
}

/* Registers that the call at instruction k of block b keeps, and how many bytes they take. */
typedef struct kept {
    indices regs; /* of the new kernel */
    uint32_t bytes;
} kept;

static uint32_t bytes_of(unsigned type)
{
    return type == HW_T_I1 ? 1 : hw_wir_bits((hw_wir_type)type) / 8;
}

static kept registers_kept(flattener *x, uint32_t b, size_t k)
{
    kept s = { 0 };
    if (!x->live_out)
        return s;
    uint64_t *live = live_after(x, b, k);
    if (x->takes[x->x])
        hw_vec_push(x->scratch, &s.regs, x->old_top[x->x]);
    for (uint32_t r = 0; r < x->f->regs.len; r++)
        if (has(live, r))
            hw_vec_push(x->scratch, &s.regs, r + x->first_reg[x->x]);
    for (size_t j = 0; j < s.regs.len; j++) {
        unsigned type = x->m->functions.ptr[0].regs.ptr[s.regs.ptr[j]].type;
        s.bytes = (s.bytes + bytes_of(type) - 1) / bytes_of(type) * bytes_of(type);
        s.bytes += bytes_of(type);
    }
    return s;
}

static bool is_flat_call(const flattener *x, const hw_wir_insn *i)
{
    if (i->op == HW_W_CALL)
        return x->flat[i->imm];
    for (uint32_t t = 1; i->op == HW_W_CALLI && t < x->n; t++)
        if (x->flat[t] && hw_wir_can_call(x->f, i, &x->m->functions.ptr[t]))
            return true;
    return false;
}

static void open_function(flattener *x, uint32_t k, const hw_wir_function *f)
{
    x->x = k;
    x->f = f;
    x->live_out = NULL;
    if (k != 0 && has(x->calls[k], k))
        find_live(x);
}

static void measure(flattener *x, uint32_t k)
{
    open_function(x, k, &x->m->functions.ptr[k]);
    for (uint32_t b = 0; x->live_out && b < x->f->blocks.len; b++)
        for (size_t j = 0; j < x->f->blocks.ptr[b].insns.len; j++) {
            if (!is_flat_call(x, &x->f->blocks.ptr[b].insns.ptr[j]))
                continue;
            uint32_t bytes = round_up(registers_kept(x, b, j).bytes);
            x->save[k] = bytes > x->save[k] ? bytes : x->save[k];
        }
}

/* ---- building ---- */

static hw_wir_val fresh(flattener *x, unsigned type)
{
    return hw_wir_reg(hw_wir_reg_new(&x->b, (hw_wir_type)type, NULL));
}

static hw_wir_val moved(const flattener *x, hw_wir_val v)
{
    if (v.kind == HW_V_REG)
        v.reg += x->first_reg[x->x];
    return v;
}

static hw_wir_val lane_local(flattener *x, uint64_t offset)
{
    hw_wir_val d = fresh(x, I64);
    hw_wir_emit(&x->b, HW_W_LOCAL_ADDR, HW_T_I64, 1, &d, 0, NULL)->imm = offset;
    return d;
}

/* The generic address of a place relative to the lane's frame. */
static hw_wir_val in_frame(flattener *x, uint64_t offset)
{
    return hw_wir_op2(&x->b, HW_W_ADD, HW_T_I64, lane_local(x, offset), hw_wir_reg(x->sp));
}

static void store(flattener *x, unsigned type, hw_wir_val at, uint64_t offset, hw_wir_val v)
{
    hw_wir_insn *i =
        hw_wir_emit(&x->b, HW_W_STORE, (hw_wir_type)type, 0, NULL, 2, (hw_wir_val[]){ at, v });
    i->space = HW_SPACE_LOCAL;
    i->imm = offset;
}

static void load(flattener *x, unsigned type, hw_wir_val to, hw_wir_val at, uint64_t offset)
{
    hw_wir_insn *i = hw_wir_emit(&x->b, HW_W_LOAD, (hw_wir_type)type, 1, &to, 1, &at);
    i->space = HW_SPACE_LOCAL;
    i->imm = offset;
}

static void move_kept(flattener *x, const kept *s, hw_wir_val at, bool out)
{
    uint32_t offset = 0;
    for (size_t j = 0; j < s->regs.len; j++) {
        hw_wir_val r = hw_wir_reg(s->regs.ptr[j]), v = r;
        unsigned type = x->m->functions.ptr[0].regs.ptr[r.reg].type;
        unsigned in_memory = type == HW_T_I1 ? HW_T_I8 : type;
        offset = (offset + bytes_of(type) - 1) / bytes_of(type) * bytes_of(type);
        if (type == HW_T_I1 && out)
            v = hw_wir_op3(&x->b, HW_W_SELECT, HW_T_I8, r, hw_wir_imm(1), hw_wir_imm(0));
        else if (type == HW_T_I1)
            v = fresh(x, HW_T_I8);
        if (out)
            store(x, in_memory, at, offset, v);
        else
            load(x, in_memory, v, at, offset);
        if (type == HW_T_I1 && !out)
            hw_wir_emit(&x->b, HW_W_ICMP, HW_T_I8, 1, &r, 2, (hw_wir_val[]){ v, hw_wir_imm(0) })
                ->cond = HW_C_NE;
        offset += bytes_of(type);
    }
}

/* Bytes of a frame before what calls keep. */
static uint32_t frame_bytes(const flattener *x, uint32_t k)
{
    return HEADER + round_up(x->m->functions.ptr[k].local_bytes);
}

/* The launch ends unless the lanes have room up to sp + bytes (the kernel: up to bytes). */
static void trap_if(flattener *x, hw_wir_val p, hw_status why)
{
    uint32_t on = hw_wir_block_new(&x->b, NULL);
    hw_wir_insn *t = hw_wir_emit(&x->b, HW_W_TRAP, HW_T_NONE, 0, NULL, 0, NULL);
    t->guard = p;
    t->imm = (uint64_t)why;
    hw_wir_set_targets(&x->b, 1, &on);
    x->b.block = on;
}

/* ... and of the header that a call from it would write. */
static hw_wir_val end_of_frame(flattener *x)
{
    if (x->x == 0)
        return hw_wir_imm(x->base + HEADER);
    uint64_t bytes = frame_bytes(x, x->x) + x->save[x->x] + HEADER;
    return hw_wir_op2(&x->b, HW_W_ADD, HW_T_I64, hw_wir_reg(x->sp), hw_wir_imm(bytes));
}

static hw_wir_val limit(flattener *x)
{
    if (x->any_alloca)
        return hw_wir_reg(x->top);
    hw_wir_val d = fresh(x, I64);
    hw_wir_emit(&x->b, HW_W_SREG, HW_T_I64, 1, &d, 0, NULL)->imm = HW_SR_LOCAL_BYTES;
    return d;
}

/* ---- calls and returns ---- */

static void enter(flattener *x)
{
    x->b.block = x->entry[x->x];
    trap_if(x, hw_wir_cmp(&x->b, HW_W_ICMP, HW_C_GT_U, HW_T_I64, end_of_frame(x), limit(x)),
            HW_F_STACK_OVERFLOW);
    if (x->takes[x->x])
        hw_wir_mov(&x->b, HW_T_I64, hw_wir_reg(x->old_top[x->x]), hw_wir_reg(x->top));
    hw_wir_br(&x->b, x->first_block[x->x]);
}

/* A call of t: what is kept, the new frame, the arguments, the jump; and where it comes back. */
static void call(flattener *x, uint32_t t, const hw_wir_insn *i, uint32_t first, const kept *kept_)
{
    const hw_wir_function *g = &x->m->functions.ptr[t];
    static const kept nothing;
    const kept *s = enters_again(x, t) ? kept_ : &nothing;
    uint32_t own = x->x ? frame_bytes(x, x->x) : 0, step = own + round_up(s->bytes);
    hw_wir_val arg[256], sp = hw_wir_reg(x->sp);
    for (uint32_t k = 0; k < g->nparams; k++) {
        arg[k] = fresh(x, g->regs.ptr[g->params[k]].type);
        hw_wir_mov(&x->b, (hw_wir_type)g->regs.ptr[g->params[k]].type, arg[k],
                   moved(x, i->src[first + k]));
    }
    if (s->regs.len)
        move_kept(x, s, in_frame(x, own), true);
    if (x->x)
        hw_wir_emit(&x->b, HW_W_ADD, HW_T_I64, 1, &sp, 2, (hw_wir_val[]){ sp, hw_wir_imm(step) });
    else
        hw_wir_mov(&x->b, HW_T_I64, sp, hw_wir_imm(x->base));
    store(x, HW_T_I32, in_frame(x, 0), 0, hw_wir_imm(x->returns[t].len));
    for (uint32_t k = 0; k < g->nparams; k++)
        hw_wir_mov(&x->b, (hw_wir_type)g->regs.ptr[g->params[k]].type,
                   hw_wir_reg(g->params[k] + x->first_reg[t]), arg[k]);
    hw_wir_br(&x->b, x->entry[t]);

    x->b.block = hw_wir_block_new(&x->b, NULL);
    hw_vec_push(x->scratch, &x->returns[t], x->b.block);
    hw_wir_val result[256];
    for (uint32_t k = 0; k < g->nresults; k++) {
        result[k] = fresh(x, g->regs.ptr[g->results[k]].type);
        hw_wir_mov(&x->b, (hw_wir_type)g->regs.ptr[g->results[k]].type, result[k],
                   hw_wir_reg(g->results[k] + x->first_reg[t]));
    }
    if (x->x)
        hw_wir_emit(&x->b, HW_W_SUB, HW_T_I64, 1, &sp, 2, (hw_wir_val[]){ sp, hw_wir_imm(step) });
    if (s->regs.len)
        move_kept(x, s, in_frame(x, own), false);
    for (uint32_t k = 0; k < g->nresults; k++)
        if (i->dst[k].kind == HW_V_REG)
            hw_wir_mov(&x->b, (hw_wir_type)g->regs.ptr[g->results[k]].type, moved(x, i->dst[k]),
                       result[k]);
}

/* An instruction as it stands, its registers renumbered. */
static hw_wir_insn *copy(flattener *x, const hw_wir_insn *i)
{
    hw_arena *a = x->m->arena;
    hw_wir_insn c = *i;
    c.dst = HW_NEW_N(a, hw_wir_val, i->ndst + 1u);
    c.src = HW_NEW_N(a, hw_wir_val, i->nsrc + 1u);
    for (uint32_t k = 0; k < i->ndst; k++)
        c.dst[k] = moved(x, i->dst[k]);
    for (uint32_t k = 0; k < i->nsrc; k++)
        c.src[k] = moved(x, i->src[k]);
    c.guard = moved(x, i->guard);
    hw_wir_block *w = &x->m->functions.ptr[0].blocks.ptr[x->b.block];
    hw_vec_push(a, &w->insns, c);
    return &w->insns.ptr[w->insns.len - 1];
}

/* A call of f, as one or as jumps, from an indirect one. */
static void call_one_of(flattener *x, uint32_t t, const hw_wir_insn *i, const kept *s)
{
    if (x->flat[t]) {
        call(x, t, i, 1, s);
        return;
    }
    hw_wir_insn *c = copy(x, i);
    c->op = HW_W_CALL;
    c->imm = t;
    c->src++;
    c->nsrc--;
    c->guard = HW_WIR_NONE;
    c->flags = HW_I_MADE;
}

/* One test for each function that the value could stand for. */
static void call_indirect(flattener *x, const hw_wir_insn *i, const kept *s)
{
    uint32_t join = hw_wir_block_new(&x->b, NULL);
    for (uint32_t t = 1; t < x->n; t++) {
        if (!hw_wir_can_call(x->f, i, &x->m->functions.ptr[t]))
            continue;
        uint32_t yes = hw_wir_block_new(&x->b, NULL), no = hw_wir_block_new(&x->b, NULL);
        hw_wir_cbr(&x->b,
                   hw_wir_cmp(&x->b, HW_W_ICMP, HW_C_EQ, HW_T_I64, moved(x, i->src[0]),
                              hw_wir_imm((uint64_t)t + 1)),
                   yes, no);
        x->b.block = yes;
        call_one_of(x, t, i, s);
        hw_wir_br(&x->b, join);
        x->b.block = no;
    }
    hw_wir_emit(&x->b, HW_W_TRAP, HW_T_NONE, 0, NULL, 0, NULL)->imm = HW_F_INVALID_PC;
    x->b.block = join;
}

/* Go on in `on` where the guard holds; returns the block where the others go on. */
static uint32_t branch_on_guard(flattener *x, const hw_wir_insn *i)
{
    uint32_t on = hw_wir_block_new(&x->b, NULL), round = hw_wir_block_new(&x->b, NULL);
    bool negated = (i->flags & HW_I_NEG_GUARD) != 0;
    x->b.head |= negated ? HW_I_ELSE : 0;
    hw_wir_cbr(&x->b, moved(x, i->guard), negated ? round : on, negated ? on : round);
    x->b.block = on;
    return round;
}

static void flat_call(flattener *x, uint32_t b, size_t k)
{
    const hw_wir_insn *i = &x->f->blocks.ptr[b].insns.ptr[k];
    bool guarded = i->guard.kind == HW_V_REG;
    kept s = registers_kept(x, b, k);
    uint32_t after = guarded ? branch_on_guard(x, i) : 0;
    if (i->op == HW_W_CALL)
        call(x, (uint32_t)i->imm, i, 0, &s);
    else
        call_indirect(x, i, &s);
    if (guarded) {
        hw_wir_br(&x->b, after);
        x->b.block = after;
    }
}

static void give_back(flattener *x, const hw_wir_insn *i, const hw_wir_block *w)
{
    bool guarded = i->guard.kind == HW_V_REG;
    uint32_t after = guarded ? branch_on_guard(x, i) : 0;
    if (x->takes[x->x])
        hw_wir_mov(&x->b, HW_T_I64, hw_wir_reg(x->top), hw_wir_reg(x->old_top[x->x]));
    hw_wir_val number = fresh(x, HW_T_I32);
    load(x, HW_T_I32, number, in_frame(x, 0), 0);
    hw_wir_emit(&x->b, HW_W_BRX, HW_T_I32, 0, NULL, 1, &number);
    hw_vec_push(x->scratch, &x->jumps, x->b.block);
    hw_vec_push(x->scratch, &x->jumps, x->x);
    if (guarded) {
        x->b.block = after;
        hw_wir_br(&x->b, w->targets[0] + x->first_block[x->x]);
    }
}

/* ---- stack memory taken at run time ---- */

/* alloca: downward from the end of local memory, as PTX has it (ISA 9.7.17). */
static void take(flattener *x, const hw_wir_insn *i)
{
    uint64_t align = i->imm > 16 ? i->imm : 16;
    hw_wir_builder *b = &x->b;
    hw_wir_val top = hw_wir_reg(x->top), bytes = moved(x, i->src[0]), base = lane_local(x, 0);
    hw_wir_val end = hw_wir_op2(b, HW_W_ADD, HW_T_I64, base, top);
    hw_wir_val at = hw_wir_op2(b, HW_W_AND, HW_T_I64, hw_wir_op2(b, HW_W_SUB, HW_T_I64, end, bytes),
                               hw_wir_imm(~(align - 1)));
    hw_wir_val to = hw_wir_op2(b, HW_W_SUB, HW_T_I64, at, base);
    hw_wir_val above = hw_wir_cmp(b, HW_W_ICMP, HW_C_GT_U, HW_T_I64, to, top); /* it wrapped */
    hw_wir_val below = hw_wir_cmp(b, HW_W_ICMP, HW_C_LT_U, HW_T_I64, to, end_of_frame(x));
    trap_if(x, hw_wir_op2(b, HW_W_OR, HW_T_I1, above, below), HW_F_STACK_OVERFLOW);
    hw_wir_mov(b, HW_T_I64, top, to);
    hw_wir_mov(b, HW_T_I64, moved(x, i->dst[0]), at);
}

static void stack_op(flattener *x, const hw_wir_insn *i)
{
    uint32_t after = i->guard.kind == HW_V_REG ? branch_on_guard(x, i) : 0;
    hw_wir_val top = hw_wir_reg(x->top);
    if (i->op == HW_W_ALLOCA)
        take(x, i);
    else if (i->op == HW_W_STACKSAVE)
        hw_wir_emit(&x->b, HW_W_ADD, HW_T_I64, 1, (hw_wir_val[]){ moved(x, i->dst[0]) }, 2,
                    (hw_wir_val[]){ lane_local(x, 0), top });
    else
        hw_wir_emit(&x->b, HW_W_SUB, HW_T_I64, 1, &top, 2,
                    (hw_wir_val[]){ moved(x, i->src[0]), lane_local(x, 0) });
    if (!after)
        return;
    hw_wir_br(&x->b, after);
    x->b.block = after;
}

/* ---- bodies ---- */

static void insn(flattener *x, uint32_t b, size_t k)
{
    const hw_wir_block *w = &x->f->blocks.ptr[b];
    const hw_wir_insn *i = &w->insns.ptr[k];
    x->b.loc = i->loc;
    x->b.marks = HW_I_MADE;
    if (is_flat_call(x, i)) {
        x->b.head = (i->flags & HW_I_HEAD) | HW_I_CALLS;
        flat_call(x, b, k);
    } else if (is_stack_op(i->op)) {
        x->b.head = i->flags & HW_I_HEAD;
        stack_op(x, i);
    } else if (i->op == HW_W_RET && x->x) {
        x->b.head = (i->flags & HW_I_HEAD) | HW_I_CALLS;
        give_back(x, i, w);
    } else if (i->op == HW_W_LOCAL_ADDR && x->x) {
        hw_wir_val at = in_frame(x, i->imm + HEADER);
        hw_wir_insn *m = copy(x, i);
        m->op = HW_W_MOV;
        m->type = HW_T_I64;
        m->imm = 0;
        m->nsrc = 1;
        m->src[0] = at;
    } else {
        copy(x, i);
        uint32_t *targets = HW_NEW_N(x->scratch, uint32_t, w->ntargets + 1);
        for (uint32_t t = 0; t < w->ntargets; t++)
            targets[t] = w->targets[t] + x->first_block[x->x];
        if (k + 1 == w->insns.len)
            hw_wir_set_targets(&x->b, w->ntargets, targets);
    }
}

static void body(flattener *x, uint32_t k, const hw_wir_function *f)
{
    open_function(x, k, f);
    if (k)
        enter(x);
    for (uint32_t b = 0; b < f->blocks.len; b++) {
        x->b.block = x->first_block[k] + b;
        if (k == 0 && b == 0 && x->any_alloca) {
            bool any = x->any_alloca;
            x->any_alloca = false; /* the limit itself */
            hw_wir_mov(&x->b, HW_T_I64, hw_wir_reg(x->top), limit(x));
            x->any_alloca = any;
        }
        for (size_t j = 0; j < f->blocks.ptr[b].insns.len; j++)
            insn(x, b, j);
    }
}

/* ---- room ---- */

/* The deepest frames, or (calls) local memory, below function k; loops counted once. */
static uint32_t need(flattener *x, uint32_t k, uint32_t *known, bool flat)
{
    if (known[k])
        return known[k] - 1;
    known[k] = 1;
    uint32_t most = 0;
    const hw_wir_function *f = &x->m->functions.ptr[k];
    for (uint32_t t = 1; f->defined && t < x->n; t++) {
        if (!has(x->calls[k], t) || x->flat[t] != flat)
            continue;
        uint32_t own = flat ? frame_bytes(x, t) + x->save[t]
                            : x->m->functions.ptr[t].local_bytes + HW_WIR_CALL_BYTES;
        own += need(x, t, known, flat);
        most = own > most ? own : most;
    }
    known[k] = most + 1;
    return most;
}

static void find_room(flattener *x)
{
    uint32_t *known = HW_NEW_N(x->scratch, uint32_t, x->n), calls = 0;
    for (uint32_t k = 0; k < x->n; k++)
        if (k == 0 || x->flat[k]) {
            uint32_t n = need(x, k, known, false);
            calls = n > calls ? n : calls;
        }
    memset(known, 0, x->n * sizeof *known);
    hw_wir_function *kernel = &x->m->functions.ptr[0];
    kernel->local_bytes = round_up(kernel->local_bytes);
    x->base = kernel->local_bytes + round_up(calls);
    x->m->stack_bytes = round_up(calls) + need(x, 0, known, true) + HEADER;
    x->m->deep_stack = x->deep;
}

/* ---- the new kernel ---- */

static void number(flattener *x)
{
    hw_wir_function *kernel = &x->m->functions.ptr[0];
    x->sp = hw_wir_reg_new(&x->b, HW_T_I64, NULL);
    x->top = hw_wir_reg_new(&x->b, HW_T_I64, NULL);
    uint32_t blocks = (uint32_t)kernel->blocks.len;
    for (uint32_t k = 1; k < x->n; k++) {
        const hw_wir_function *f = &x->m->functions.ptr[k];
        if (!x->flat[k])
            continue;
        x->first_reg[k] = (uint32_t)kernel->regs.len;
        x->first_block[k] = blocks;
        x->entry[k] = blocks + (uint32_t)f->blocks.len;
        blocks = x->entry[k] + 1;
        for (size_t r = 0; r < f->regs.len; r++)
            hw_vec_push(x->m->arena, &kernel->regs, f->regs.ptr[r]);
        x->old_top[k] = hw_wir_reg_new(&x->b, HW_T_I64, NULL);
    }
    x->old_top[0] = x->top;
}

static void make_kernel(flattener *x)
{
    hw_wir_function *kernel = &x->m->functions.ptr[0], old = *kernel;
    uint32_t blocks = (uint32_t)old.blocks.len;
    for (uint32_t k = 1; k < x->n; k++)
        blocks += x->flat[k] ? (uint32_t)x->m->functions.ptr[k].blocks.len + 1 : 0;
    memset(&kernel->blocks, 0, sizeof kernel->blocks);
    for (uint32_t b = 0; b < blocks; b++)
        hw_vec_push(x->m->arena, &kernel->blocks,
                    (hw_wir_block){ .label = b < old.blocks.len ? old.blocks.ptr[b].label : NULL });
    for (uint32_t k = 0; k < x->n; k++)
        if (k == 0)
            body(x, 0, &old);
        else if (x->flat[k])
            body(x, k, &x->m->functions.ptr[k]);
    for (size_t j = 0; j < x->jumps.len; j += 2) {
        const indices *to = &x->returns[x->jumps.ptr[j + 1]];
        x->b.block = x->jumps.ptr[j];
        hw_wir_set_targets(&x->b, (uint32_t)to->len, to->ptr);
    }
    for (uint32_t k = 1; k < x->n; k++)
        if (x->flat[k]) {
            x->m->functions.ptr[k].defined = false;
            x->m->functions.ptr[k].blocks.len = 0;
        }
}

void hw_wir_flatten_calls(hw_wir_module *m)
{
    flattener x = { .m = m, .n = (uint32_t)m->functions.len, .scratch = hw_arena_new() };
    x.b.m = m;
    x.calls = HW_NEW_N(x.scratch, uint64_t *, x.n);
    bool **flags[] = { &x.special, &x.flat, &x.takes };
    for (size_t k = 0; k < HW_COUNTOF(flags); k++)
        *flags[k] = HW_NEW_N(x.scratch, bool, x.n);
    uint32_t **numbers[] = { &x.save, &x.first_reg, &x.first_block, &x.entry, &x.old_top };
    for (size_t k = 0; k < HW_COUNTOF(numbers); k++)
        *numbers[k] = HW_NEW_N(x.scratch, uint32_t, x.n);
    x.returns = HW_NEW_N(x.scratch, indices, x.n);
    look_at_functions(&x);
    close_calls(&x);
    if (choose(&x)) {
        number(&x);
        for (uint32_t k = 1; k < x.n; k++)
            if (x.flat[k])
                measure(&x, k);
        find_room(&x);
        make_kernel(&x);
        hw_wir_tidy_graph(m, &m->functions.ptr[0]);
    }
    hw_arena_free(x.scratch);
}

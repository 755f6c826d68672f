/* SPDX-License-Identifier: Apache-2.0
 * Liveness of registers. A lane's own path decides; a guarded definition does not end a value's
 * life. Only "global" registers (read in some block before being written there) get a bit in the
 * sets, so the sets stay small in kernels with hundreds of thousands of registers. */
#include "analysis.h"

typedef struct blocksets {
    uint64_t *use, *def;
} blocksets;

static size_t words_of(const analysis *n)
{
    return (n->out->nlive + 63) / 64;
}

static void set_bit(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << (i % 64);
}

static bool unguarded(const hw_wir_insn *i)
{
    return i->guard.kind == HW_V_NONE;
}

/* Calls fn for each register an instruction reads: operands, guard, and results of a return. */
typedef void read_fn(void *ctx, uint32_t reg);
static void each_read(const analysis *n, const hw_wir_insn *i, read_fn *fn, void *ctx)
{
    for (uint32_t k = 0; k < i->nsrc; k++)
        if (i->src[k].kind == HW_V_REG)
            fn(ctx, i->src[k].reg);
    if (i->guard.kind == HW_V_REG)
        fn(ctx, i->guard.reg);
    if (i->op == HW_W_RET)
        for (uint32_t k = 0; k < n->f->nresults; k++)
            fn(ctx, n->f->results[k]);
}

typedef struct finder {
    analysis *n;
    uint32_t *written; /* per register: 1 + the block that wrote it last without a guard */
    uint32_t block;
} finder;

static void find_exposed(void *ctx, uint32_t reg)
{
    finder *w = ctx;
    hw_wir_analysis *o = w->n->out;
    if (w->written[reg] == w->block + 1 || o->live_bit[reg] != NONE32)
        return;
    o->live_bit[reg] = o->nlive;
    o->live_reg[o->nlive++] = reg;
}

static void mark_written(const hw_wir_insn *i, uint32_t *written, uint32_t stamp)
{
    for (uint32_t k = 0; k < i->ndst && unguarded(i); k++)
        if (i->dst[k].kind == HW_V_REG)
            written[i->dst[k].reg] = stamp;
}

static void find_globals(analysis *n, uint32_t *written)
{
    hw_wir_analysis *o = n->out;
    o->live_bit = HW_NEW_N(n->arena, uint32_t, n->nregs + 1);
    o->live_reg = HW_NEW_N(n->arena, uint32_t, n->nregs + 1);
    memset(o->live_bit, 0xff, n->nregs * sizeof *o->live_bit);
    finder w = { n, written, 0 };
    for (w.block = 0; w.block < n->nblocks; w.block++) {
        const hw_wir_block *b = &n->f->blocks.ptr[w.block];
        for (size_t k = 0; k < b->insns.len; k++) {
            each_read(n, &b->insns.ptr[k], find_exposed, &w);
            mark_written(&b->insns.ptr[k], written, w.block + 1);
        }
    }
}

typedef struct setter {
    analysis *n;
    const uint32_t *written;
    uint32_t stamp;
    uint64_t *use;
} setter;

static void set_use(void *ctx, uint32_t reg)
{
    setter *w = ctx;
    if (w->written[reg] != w->stamp)
        set_bit(w->use, w->n->out->live_bit[reg]);
}

static void find_block_sets(analysis *n, uint32_t *written, blocksets *sets)
{
    size_t words = words_of(n);
    memset(written, 0, n->nregs * sizeof *written);
    for (uint32_t b = 0; b < n->nblocks; b++) {
        sets[b].use = HW_NEW_N(n->scratch, uint64_t, words + 1);
        sets[b].def = HW_NEW_N(n->scratch, uint64_t, words + 1);
        setter w = { n, written, b + 1, sets[b].use };
        const hw_wir_block *block = &n->f->blocks.ptr[b];
        for (size_t k = 0; k < block->insns.len; k++) {
            const hw_wir_insn *i = &block->insns.ptr[k];
            each_read(n, i, set_use, &w);
            mark_written(i, written, b + 1);
            for (uint32_t d = 0; d < i->ndst && unguarded(i); d++)
                if (i->dst[d].kind == HW_V_REG && n->out->live_bit[i->dst[d].reg] != NONE32)
                    set_bit(sets[b].def, n->out->live_bit[i->dst[d].reg]);
        }
    }
}

/* live_out = union of the targets' live_in; live_in = use | (live_out & ~def). True if it grew. */
static bool update_block(analysis *n, uint32_t b, const blocksets *s, size_t words)
{
    const hw_wir_block *block = &n->f->blocks.ptr[b];
    uint64_t *out = n->out->live_out_set[b], *in = n->out->live_in_set[b], grew = 0;
    for (uint32_t t = 0; t < block->ntargets; t++) {
        const uint64_t *from = n->out->live_in_set[block->targets[t]];
        for (size_t w = 0; w < words; w++)
            out[w] |= from[w];
    }
    for (size_t w = 0; w < words; w++) {
        uint64_t next = s->use[w] | (out[w] & ~s->def[w]);
        grew |= next ^ in[w];
        in[w] = next;
    }
    return grew != 0;
}

static void solve(analysis *n, const blocksets *sets)
{
    size_t words = words_of(n);
    n->out->live_in_set = HW_NEW_N(n->arena, uint64_t *, n->nblocks);
    n->out->live_out_set = HW_NEW_N(n->arena, uint64_t *, n->nblocks);
    for (uint32_t b = 0; b < n->nblocks; b++) {
        n->out->live_in_set[b] = HW_NEW_N(n->arena, uint64_t, words + 1);
        n->out->live_out_set[b] = HW_NEW_N(n->arena, uint64_t, words + 1);
    }
    for (bool again = true; again;) {
        again = false;
        for (uint32_t p = n->nblocks; p-- > 0;) {
            uint32_t b = n->out->order[p];
            if (update_block(n, b, &sets[b], words))
                again = true;
        }
    }
}

/* ---- inside blocks ---- */

typedef struct sweep {
    analysis *n;
    bool *live;
    uint32_t now; /* 32-bit units live at this point */
} sweep;

static uint32_t weight(const analysis *n, uint32_t reg)
{
    unsigned bits = hw_wir_bits(n->f->regs.ptr[reg].type);
    return bits == 1 ? 0 : (bits + 31) / 32;
}

static void born(void *ctx, uint32_t reg)
{
    sweep *s = ctx;
    if (!s->live[reg])
        s->now += weight(s->n, reg);
    s->live[reg] = true;
}

static void die(sweep *s, uint32_t reg)
{
    if (s->live[reg])
        s->now -= weight(s->n, reg);
    s->live[reg] = false;
}

/* Backward over one instruction. */
static void sweep_insn(sweep *s, const hw_wir_insn *i, uint32_t index)
{
    for (uint32_t k = 0; k < i->ndst; k++) {
        if (i->dst[k].kind != HW_V_REG)
            continue;
        if (unguarded(i))
            die(s, i->dst[k].reg);
        else if (s->live[i->dst[k].reg])
            s->n->guarded_live[index] = true;
    }
    each_read(s->n, i, born, s);
    if (s->now > s->n->out->max_live)
        s->n->out->max_live = s->now;
}

static void each_bit(const analysis *n, const uint64_t *set, read_fn *fn, void *ctx)
{
    for (size_t w = 0; w < words_of(n); w++)
        for (uint64_t rest = set[w]; rest; rest &= rest - 1)
            fn(ctx, n->out->live_reg[w * 64 + (size_t)__builtin_ctzll(rest)]);
}

static void kill_reg(void *ctx, uint32_t reg)
{
    die(ctx, reg);
}

static void sweep_blocks(analysis *n)
{
    n->guarded_live = HW_NEW_N(n->scratch, bool, n->ninsns + 1);
    sweep s = { n, HW_NEW_N(n->scratch, bool, n->nregs + 1), 0 };
    for (uint32_t b = 0; b < n->nblocks; b++) {
        const hw_wir_block *block = &n->f->blocks.ptr[b];
        each_bit(n, n->out->live_out_set[b], born, &s);
        for (uint32_t k = (uint32_t)block->insns.len; k-- > 0;)
            sweep_insn(&s, &block->insns.ptr[k], n->out->first_insn[b] + k);
        each_bit(n, n->out->live_in_set[b], kill_reg, &s);
    }
}

void hw_wir_find_liveness(analysis *n)
{
    uint32_t *written = HW_NEW_N(n->scratch, uint32_t, n->nregs + 1);
    find_globals(n, written);
    blocksets *sets = HW_NEW_N(n->scratch, blocksets, n->nblocks);
    find_block_sets(n, written, sets);
    solve(n, sets);
    sweep_blocks(n);
}

/* SPDX-License-Identifier: Apache-2.0
 * Where lanes of a warp can wait while other lanes run, and what that means for definitions.
 *
 * Linear order (hw_wir.h): the waiting block smallest in position runs next. So lanes wait only at
 * blocks after the running one, and lanes wait at w while p runs only if
 *   - a divergent branch sent some lanes to w and others to a block before w, or
 *   - lanes went on to w past others that were already waiting at a block before w,
 * and p lies between that block and w; a back edge taken from between lets everything from its
 * target on run, too. For each w these p are an interval [wait_lo[w], w). A least fixpoint over all
 * edges; a block covered by an interval may run with only some of the live lanes.
 *
 * A definition of r in block p needs a blend if r is live into a w that lanes may be waiting at, or
 * if its guard is not uniform and the old value is wanted afterwards. Position nblocks is the end
 * of a function that returns values: lanes that returned wait there. */
#include "analysis.h"

enum { MOST_ROUNDS = 64 };

typedef struct waits {
    analysis *n;
    uint32_t **least; /* least[k][p]: least back-edge target from positions [p, p + 2^k) */
    uint32_t levels;
    uint32_t *next_wait; /* per position: least w > p where lanes may wait while p runs; or end */
    uint32_t *next_free; /* union-find for next_wait */
    uint32_t end;        /* = nblocks + 1: nobody waits */
    bool everything;     /* all branches diverge and somebody always waits */
} waits;

static const hw_wir_block *block_at(const analysis *n, uint32_t p)
{
    return &n->f->blocks.ptr[n->out->order[p]];
}

/* ---- back edges ---- */

static void build_least(waits *w)
{
    uint32_t count = w->n->nblocks;
    for (w->levels = 1; ((uint32_t)1 << w->levels) <= count; w->levels++)
        ;
    w->least = HW_NEW_N(w->n->scratch, uint32_t *, w->levels);
    w->least[0] = HW_NEW_N(w->n->scratch, uint32_t, count + 1);
    for (uint32_t p = 0; p < count; p++) {
        const hw_wir_block *b = block_at(w->n, p);
        w->least[0][p] = p;
        for (uint32_t k = 0; k < b->ntargets; k++) {
            uint32_t t = w->n->out->position[b->targets[k]];
            if (t < w->least[0][p])
                w->least[0][p] = t;
        }
    }
    for (uint32_t k = 1; k < w->levels; k++) {
        uint32_t half = (uint32_t)1 << (k - 1);
        w->least[k] = HW_NEW_N(w->n->scratch, uint32_t, count + 1);
        for (uint32_t p = 0; p + 2 * half <= count; p++) {
            uint32_t a = w->least[k - 1][p], b = w->least[k - 1][p + half];
            w->least[k][p] = a < b ? a : b;
        }
    }
}

/* The interval [lo, hi) extended downwards over the back edges that start in it. */
static uint32_t extend(const waits *w, uint32_t lo, uint32_t hi)
{
    for (;;) {
        if (hi > w->n->nblocks)
            hi = w->n->nblocks;
        if (lo >= hi)
            return lo;
        uint32_t k = 31 - (uint32_t)__builtin_clz(hi - lo);
        uint32_t a = w->least[k][lo], b = w->least[k][hi - ((uint32_t)1 << k)];
        uint32_t least = a < b ? a : b;
        if (least >= lo)
            return lo;
        lo = least;
    }
}

/* ---- branches ---- */

static bool targets_differ(const hw_wir_block *b)
{
    for (uint32_t k = 1; k < b->ntargets; k++)
        if (b->targets[k] != b->targets[0])
            return true;
    return false;
}

/* Lanes that end are gone; those that return from a function wait at its end. */
static bool returns(const analysis *n, const hw_wir_insn *last)
{
    return last->op == HW_W_RET && !n->f->is_kernel;
}

static bool diverges(const waits *w, const hw_wir_block *b)
{
    const hw_wir_insn *last = hw_wir_last(b);
    bool splits = returns(w->n, last) ? last->guard.kind == HW_V_REG : targets_differ(b);
    if (!splits || w->everything)
        return splits;
    return is_varying(w->n, last->nsrc ? last->src[0] : last->guard);
}

static bool parts_lanes(const waits *w, uint32_t p)
{
    uint32_t b = w->n->out->order[p];
    return diverges(w, &w->n->f->blocks.ptr[b]) && (w->everything || !w->n->single[b]);
}

/* ---- the fixpoint ---- */

static uint32_t find_free(uint32_t *next, uint32_t p)
{
    while (next[p] != p) {
        next[p] = next[next[p]];
        p = next[p];
    }
    return p;
}

/* next_wait from the intervals: the least w gets each position first. */
static void spread_waits(waits *w)
{
    uint32_t count = w->n->nblocks;
    for (uint32_t p = 0; p <= count; p++) {
        w->next_wait[p] = w->everything && p < count ? p + 1 : w->end;
        w->next_free[p] = p;
    }
    for (uint32_t at = 0; at <= count && !w->everything; at++)
        for (uint32_t p = find_free(w->next_free, w->n->wait_lo[at]); p < at;
             p = find_free(w->next_free, p)) {
            w->next_wait[p] = at;
            w->next_free[p] = p + 1;
        }
}

static bool lower(waits *w, uint32_t at, uint32_t lo)
{
    if (lo >= at)
        return false;
    lo = extend(w, lo, at);
    if (lo >= w->n->wait_lo[at])
        return false;
    w->n->wait_lo[at] = lo;
    return true;
}

/* Lanes leave the block at p for `at`: those that run meanwhile are at the branch's other targets
 * or waited already. */
static bool leave(waits *w, uint32_t p, uint32_t at, uint32_t others)
{
    uint32_t lo = w->next_wait[p] < others ? w->next_wait[p] : others;
    return lower(w, at, lo);
}

static bool visit_block(waits *w, uint32_t p)
{
    const hw_wir_block *b = block_at(w->n, p);
    bool split = parts_lanes(w, p), changed = false;
    uint32_t least = w->end, second = w->end; /* the two smallest target positions */
    for (uint32_t k = 0; k < b->ntargets && split; k++) {
        uint32_t t = w->n->out->position[b->targets[k]];
        if (t < least) {
            second = least;
            least = t;
        } else if (t > least && t < second) {
            second = t;
        }
    }
    for (uint32_t k = 0; k < b->ntargets; k++) {
        uint32_t t = w->n->out->position[b->targets[k]];
        changed |= leave(w, p, t, t == least ? second : least);
    }
    if (returns(w->n, hw_wir_last(b)))
        changed |= leave(w, p, w->n->nblocks, least);
    return changed;
}

static void mark_blocks(waits *w)
{
    analysis *n = w->n;
    for (uint32_t p = 0; p < n->nblocks; p++) {
        uint32_t b = n->out->order[p];
        n->out->divergent[b] = w->next_wait[p] != w->end;
        n->out->divergent_branch[b] = diverges(w, &n->f->blocks.ptr[b]);
    }
}

static bool run_rounds(waits *w)
{
    for (int round = 0; round < MOST_ROUNDS; round++) {
        spread_waits(w);
        bool changed = false;
        for (uint32_t p = 0; p < w->n->nreachable; p++)
            changed |= visit_block(w, p);
        if (!changed)
            return true;
    }
    return false;
}

/* Lanes may be parked anywhere while others run (spinning lanes give way, or lanes wait at a
 * barrier in divergent code): whatever a divergent branch reaches may wait and may run. */
static void spread_any_order(analysis *n)
{
    uint32_t *stack = HW_NEW_N(n->scratch, uint32_t, n->nblocks + 1), depth = 0;
    bool *reached = HW_NEW_N(n->scratch, bool, n->nblocks);
    for (uint32_t b = 0; b < n->nblocks; b++)
        if (n->out->divergent_branch[b])
            stack[depth++] = b;
    while (depth) {
        const hw_wir_block *b = &n->f->blocks.ptr[stack[--depth]];
        for (uint32_t k = 0; k < b->ntargets; k++)
            if (!reached[b->targets[k]]) {
                reached[b->targets[k]] = true;
                if (!n->out->divergent_branch[b->targets[k]])
                    stack[depth++] = b->targets[k];
            }
    }
    for (uint32_t b = 0; b < n->nblocks; b++)
        n->out->divergent[b] |= reached[b];
}

void hw_wir_find_waits(analysis *n)
{
    waits w = { .n = n, .end = n->nblocks + 1 };
    if (!n->wait_lo) {
        n->wait_lo = HW_NEW_N(n->scratch, uint32_t, n->nblocks + 1);
        for (uint32_t p = 0; p <= n->nblocks; p++)
            n->wait_lo[p] = p;
    }
    build_least(&w);
    w.next_wait = HW_NEW_N(n->scratch, uint32_t, n->nblocks + 2);
    w.next_free = HW_NEW_N(n->scratch, uint32_t, n->nblocks + 2);
    w.everything = n->pessimistic;
    if (!run_rounds(&w)) {
        w.everything = true;
        run_rounds(&w);
    }
    mark_blocks(&w);
    if (n->out->any_order)
        spread_any_order(n);
}

/* ---- blends ---- */

typedef struct blender {
    analysis *n;
    uint32_t *waiting; /* per bit of the live sets: how many waiting blocks have it live in */
    bool changed;
} blender;

static void count_set(blender *s, const uint64_t *set, uint32_t by)
{
    for (size_t w = 0; w < (s->n->out->nlive + 63) / 64; w++)
        for (uint64_t rest = set[w]; rest; rest &= rest - 1)
            s->waiting[w * 64 + (size_t)__builtin_ctzll(rest)] += by;
}

/* Lanes begin (by = 1) or cease (by = -1) to be possibly waiting at position w. */
static void count_wait(blender *s, uint32_t w, uint32_t by)
{
    analysis *n = s->n;
    if (w < n->nblocks) {
        count_set(s, n->out->live_in_set[n->out->order[w]], by);
        return;
    }
    for (uint32_t k = 0; k < n->f->nresults; k++)
        if (n->out->live_bit[n->f->results[k]] != NONE32)
            s->waiting[n->out->live_bit[n->f->results[k]]] += by;
}

static bool wanted(const blender *s, const hw_wir_insn *i)
{
    for (uint32_t d = 0; d < i->ndst; d++) {
        if (i->dst[d].kind != HW_V_REG)
            continue;
        uint32_t bit = s->n->out->live_bit[i->dst[d].reg];
        if (bit != NONE32 && s->waiting[bit])
            return true;
    }
    return false;
}

static void blend_block(blender *s, uint32_t b)
{
    analysis *n = s->n;
    const hw_wir_block *block = &n->f->blocks.ptr[b];
    for (uint32_t k = 0; k < block->insns.len; k++) {
        const hw_wir_insn *i = &block->insns.ptr[k];
        uint32_t index = n->out->first_insn[b] + k;
        bool guarded = n->guarded_live[index] && is_varying(n, i->guard);
        if (i->ndst == 0 || n->out->blend[index] || !(guarded || wanted(s, i)))
            continue;
        n->out->blend[index] = true;
        s->changed = true;
        for (uint32_t d = 0; d < i->ndst; d++)
            if (i->dst[d].kind == HW_V_REG)
                hw_wir_make_varying(n, i->dst[d].reg);
    }
}

/* waits_from: a list for each position of the w whose interval begins there. */
static void sweep_positions(blender *s, const uint32_t *first, const uint32_t *next)
{
    analysis *n = s->n;
    for (uint32_t p = 0; p < n->nblocks; p++) {
        if (n->wait_lo[p] < p)
            count_wait(s, p, UINT32_MAX); /* w = p no longer waits: it runs */
        for (uint32_t w = first[p]; w != NONE32; w = next[w])
            count_wait(s, w, 1);
        blend_block(s, n->out->order[p]);
    }
}

static void blend_any_order(blender *s)
{
    analysis *n = s->n;
    for (uint32_t b = 0; b < n->nblocks; b++)
        if (n->out->divergent[b])
            count_wait(s, n->out->position[b], 1);
    count_wait(s, n->nblocks, 1);
    for (uint32_t b = 0; b < n->nblocks; b++)
        if (n->out->divergent[b])
            blend_block(s, b);
}

bool hw_wir_find_blends(analysis *n)
{
    blender s = { .n = n };
    s.waiting = HW_NEW_N(n->scratch, uint32_t, n->out->nlive + 1);
    uint32_t *first = HW_NEW_N(n->scratch, uint32_t, n->nblocks + 1);
    uint32_t *next = HW_NEW_N(n->scratch, uint32_t, n->nblocks + 1);
    memset(first, 0xff, (n->nblocks + 1) * sizeof *first);
    for (uint32_t w = 0; w <= n->nblocks; w++)
        if (n->wait_lo[w] < w) {
            next[w] = first[n->wait_lo[w]];
            first[n->wait_lo[w]] = w;
        }
    sweep_positions(&s, first, next);
    if (n->out->any_order) {
        memset(s.waiting, 0, n->out->nlive * sizeof *s.waiting);
        blend_any_order(&s);
    }
    return s.changed;
}

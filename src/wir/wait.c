/* SPDX-License-Identifier: Apache-2.0
 * Where lanes of a warp can wait while other lanes run, and what that means for definitions.
 *
 * Two blocks are a pair if lanes of one warp may be at both at the same time; the first in position
 * runs, the other waits (linear order, see hw_wir.h). Pairs arise from divergent branches (any two
 * of their targets) and go on: when the lanes of one block move to its targets, each target is
 * paired with the block that waits. Lanes that meet in one block are no pair. The least set of pairs
 * closed under this is kept in a hash table and only grows, as branches are found to diverge.
 * When any order is possible (hw_wir_analysis.any_order), either block of a pair may run; and a block
 * is paired with itself where lanes that came to a barrier together need not leave it together.
 *
 * A definition of r in block p needs a blend if r is live into a block that waits while p runs, or
 * if its guard is not uniform and the old value is wanted afterwards. Block number nblocks stands
 * for the end of a function that returns values: lanes that returned wait there. */
#include "analysis.h"

enum { MOST_PAIRS = 1 << 18 };

typedef struct pair {
    uint32_t run, wait; /* blocks; position of run < position of wait */
} pair;

struct waits {
    uint64_t *slots; /* open addressing; 0: free, else 1 + key */
    size_t mask;
    HW_VEC(pair) pairs; /* all of them; [done..] still to be followed */
    size_t done;
    uint64_t **wanted; /* per block: live-in of the blocks that wait while it runs; NULL: nobody */
    bool *parted;      /* per block: its targets have been paired */
    bool any_order, gave_up;
};

static uint32_t position(const analysis *n, uint32_t block)
{
    return block == n->nblocks ? n->nblocks : n->out->position[block];
}

/* ---- the set ---- */

static size_t slot_of(const struct waits *w, uint64_t key)
{
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & w->mask;
    while (w->slots[at] && w->slots[at] != key + 1)
        at = (at + 1) & w->mask;
    return at;
}

static uint64_t key_of(const analysis *n, pair p)
{
    return (uint64_t)p.run * (n->nblocks + 1) + p.wait;
}

static void grow(analysis *n, struct waits *w)
{
    w->mask = w->mask * 2 + 1;
    w->slots = HW_NEW_N(n->scratch, uint64_t, w->mask + 1);
    for (size_t k = 0; k < w->pairs.len; k++) {
        uint64_t key = key_of(n, w->pairs.ptr[k]);
        w->slots[slot_of(w, key)] = key + 1;
    }
}

static void set_bit(uint64_t *set, uint32_t i)
{
    set[i / 64] |= (uint64_t)1 << (i % 64);
}

/* While `run` runs, what is live into `wait` is wanted. */
static void want(analysis *n, uint32_t run, uint32_t wait)
{
    size_t words = (n->out->nlive + 63) / 64;
    uint64_t **set = &n->waits->wanted[run];
    if (!*set)
        *set = HW_NEW_N(n->scratch, uint64_t, words + 1);
    for (size_t k = 0; k < words && wait < n->nblocks; k++)
        (*set)[k] |= n->out->live_in_set[wait][k];
    for (uint32_t k = 0; k < n->f->nresults && wait == n->nblocks; k++)
        if (n->out->live_bit[n->f->results[k]] != NONE32)
            set_bit(*set, n->out->live_bit[n->f->results[k]]);
}

static void add(analysis *n, uint32_t a, uint32_t b)
{
    struct waits *w = n->waits;
    if (w->gave_up)
        return;
    pair p = position(n, a) < position(n, b) ? (pair){ a, b } : (pair){ b, a };
    uint64_t key = key_of(n, p);
    size_t at = slot_of(w, key);
    if (w->slots[at])
        return;
    w->slots[at] = key + 1;
    hw_vec_push(n->scratch, &w->pairs, p);
    want(n, p.run, p.wait);
    if (w->any_order && p.wait < n->nblocks)
        want(n, p.wait, p.run);
    if (w->pairs.len * 2 > w->mask)
        grow(n, w);
    w->gave_up = w->pairs.len > MOST_PAIRS;
}

static void add_pair(analysis *n, uint32_t a, uint32_t b)
{
    if (a != b)
        add(n, a, b);
}

/* ---- branches ---- */

/* Lanes that end are gone; those that return from a function wait at its end. */
static bool returns(const analysis *n, const hw_wir_insn *last)
{
    return last->op == HW_W_RET && !n->f->is_kernel;
}

/* Where lanes may be after a block: its targets, and the function's end. */
static uint32_t target_count(const analysis *n, const hw_wir_block *b)
{
    return b->ntargets + returns(n, hw_wir_last(b));
}

static uint32_t target(const analysis *n, const hw_wir_block *b, uint32_t k)
{
    return k < b->ntargets ? b->targets[k] : n->nblocks;
}

static bool diverges(const analysis *n, const hw_wir_block *b)
{
    const hw_wir_insn *last = hw_wir_last(b);
    bool splits = false;
    for (uint32_t k = 1; k < target_count(n, b); k++)
        splits |= target(n, b, k) != target(n, b, 0);
    return splits && is_varying(n, last->nsrc ? last->src[0] : last->guard);
}

/* Barriers of different numbers, or for different lanes. */
static bool leave_apart(const analysis *n, const hw_wir_block *b)
{
    const hw_wir_insn *i = b->insns.len > 1 ? &b->insns.ptr[b->insns.len - 2] : NULL;
    bool apart = false;
    for (uint32_t k = 0; i && hw_wir_waits(i->op) && k < i->nsrc && k < 2; k++)
        apart |= is_varying(n, i->src[k]);
    return apart;
}

static void part_lanes(analysis *n, uint32_t block)
{
    const hw_wir_block *b = &n->f->blocks.ptr[block];
    if (n->waits->any_order && leave_apart(n, b))
        add(n, b->targets[0], b->targets[0]);
    n->out->divergent_branch[block] = diverges(n, b);
    bool parts = n->out->divergent_branch[block] && (n->pessimistic || !n->single[block]);
    if (!parts || n->waits->parted[block])
        return;
    n->waits->parted[block] = true;
    for (uint32_t k = 1; k < target_count(n, b); k++)
        for (uint32_t j = 0; j < k; j++)
            add_pair(n, target(n, b, j), target(n, b, k));
}

/* The lanes of `moves` go on; `stays` stays. */
static void follow(analysis *n, uint32_t moves, uint32_t stays)
{
    const hw_wir_block *b = &n->f->blocks.ptr[moves];
    for (uint32_t k = 0; k < target_count(n, b); k++)
        add_pair(n, target(n, b, k), stays);
}

static void start_waits(analysis *n)
{
    struct waits *w = n->waits = HW_NEW(n->scratch, struct waits);
    w->mask = 255;
    w->slots = HW_NEW_N(n->scratch, uint64_t, w->mask + 1);
    w->wanted = HW_NEW_N(n->scratch, uint64_t *, n->nblocks + 1);
    w->parted = HW_NEW_N(n->scratch, bool, n->nblocks);
}

/* From now on either block of a pair may run. */
static void forget_order(analysis *n)
{
    struct waits *w = n->waits;
    w->any_order = true;
    w->done = 0;
    for (size_t k = 0; k < w->pairs.len; k++)
        if (w->pairs.ptr[k].wait < n->nblocks)
            want(n, w->pairs.ptr[k].wait, w->pairs.ptr[k].run);
}

/* Too many pairs: every block that a divergent branch can reach may wait and may run. */
static void pair_everything(analysis *n)
{
    uint32_t *stack = HW_NEW_N(n->scratch, uint32_t, n->nblocks + 1), depth = 0;
    bool *reached = HW_NEW_N(n->scratch, bool, n->nblocks + 1);
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
    n->waits->wanted[n->nblocks] = NULL;
    want(n, n->nblocks, n->nblocks);
    uint64_t *all = n->waits->wanted[n->nblocks];
    for (uint32_t b = 0; b < n->nblocks; b++)
        for (size_t k = 0; k < (n->out->nlive + 63) / 64 && reached[b]; k++)
            all[k] |= n->out->live_in_set[b][k];
    for (uint32_t b = 0; b < n->nblocks; b++)
        if (reached[b])
            n->waits->wanted[b] = all;
}

void hw_wir_find_waits(analysis *n)
{
    if (!n->waits)
        start_waits(n);
    struct waits *w = n->waits;
    if (n->out->any_order && !w->any_order)
        forget_order(n);
    for (uint32_t p = 0; p < n->nreachable; p++)
        part_lanes(n, n->out->order[p]);
    while (w->done < w->pairs.len && !w->gave_up) {
        pair p = w->pairs.ptr[w->done++];
        follow(n, p.run, p.wait);
        if (w->any_order && p.wait < n->nblocks)
            follow(n, p.wait, p.run);
    }
    if (w->gave_up)
        pair_everything(n);
    for (uint32_t b = 0; b < n->nblocks; b++)
        n->out->divergent[b] = w->wanted[b] != NULL;
}

/* ---- for code generation ---- */

static void waits_at(analysis *n, uint32_t run, uint32_t wait)
{
    uint64_t **set = &n->out->waiting[run];
    if (!*set)
        *set = HW_NEW_N(n->arena, uint64_t, n->nblocks / 64 + 1);
    if (wait < n->nblocks)
        set_bit(*set, wait);
}

void hw_wir_publish_waits(analysis *n)
{
    const struct waits *w = n->waits;
    n->out->waiting = HW_NEW_N(n->arena, uint64_t *, n->nblocks + 1);
    for (uint32_t b = 0; b < n->nblocks && w->gave_up; b++)
        for (uint32_t k = 0; k < n->nblocks && w->wanted[b]; k++)
            waits_at(n, b, k);
    for (size_t k = 0; k < w->pairs.len && !w->gave_up; k++) {
        pair p = w->pairs.ptr[k];
        waits_at(n, p.run, p.wait);
        if (w->any_order && p.wait < n->nblocks)
            waits_at(n, p.wait, p.run);
    }
}

/* ---- blends ---- */

static bool wanted(const analysis *n, const hw_wir_insn *i, const uint64_t *set)
{
    for (uint32_t d = 0; set && d < i->ndst; d++) {
        if (i->dst[d].kind != HW_V_REG)
            continue;
        uint32_t bit = n->out->live_bit[i->dst[d].reg];
        if (bit != NONE32 && hw_bit(set, bit))
            return true;
    }
    return false;
}

bool hw_wir_find_blends(analysis *n)
{
    bool changed = false;
    for (uint32_t index = 0; index < n->ninsns; index++) {
        const hw_wir_insn *i = n->insns[index];
        if (i->ndst == 0 || n->out->blend[index])
            continue;
        bool guarded = n->guarded_live[index] && is_varying(n, i->guard);
        guarded |=
            n->out->any_order && i->op == HW_W_BARRIER_RED; /* lanes get it when they go on */
        if (!guarded && !wanted(n, i, n->waits->wanted[n->block_of[index]]))
            continue;
        n->out->blend[index] = changed = true;
        for (uint32_t d = 0; d < i->ndst; d++)
            if (i->dst[d].kind == HW_V_REG)
                hw_wir_make_varying(n, i->dst[d].reg);
    }
    return changed;
}

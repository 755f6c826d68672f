/* SPDX-License-Identifier: Apache-2.0
 * The control-flow graph: linear order with contiguous loops, predecessors, dominators.
 *
 * Order: strongly connected components in topological order; inside a component its first-visited
 * block (the header) first, then, with the edges into it removed, the same again. So loops are
 * contiguous and nested, whatever the graph (Bourdoncle's weak topological order); in a reducible
 * one they are the natural loops. The fall-through successor comes as early as possible.
 * Dominators: Semi-NCA (Georgiadis). All walks are iterative: graphs may be very deep. */
#include "analysis.h"

/* ---- predecessors ---- */

static void find_preds(analysis *n)
{
    hw_wir_analysis *o = n->out;
    o->npreds = HW_NEW_N(n->arena, uint32_t, n->nblocks);
    o->preds = HW_NEW_N(n->arena, uint32_t *, n->nblocks);
    size_t edges = 0;
    for (uint32_t b = 0; b < n->nblocks; b++)
        for (uint32_t k = 0; k < n->f->blocks.ptr[b].ntargets; k++, edges++)
            o->npreds[n->f->blocks.ptr[b].targets[k]]++;
    uint32_t *all = HW_NEW_N(n->arena, uint32_t, edges + 1);
    for (uint32_t b = 0; b < n->nblocks; b++) {
        o->preds[b] = all;
        all += o->npreds[b];
        o->npreds[b] = 0;
    }
    for (uint32_t b = 0; b < n->nblocks; b++)
        for (uint32_t k = 0; k < n->f->blocks.ptr[b].ntargets; k++) {
            uint32_t t = n->f->blocks.ptr[b].targets[k];
            o->preds[t][o->npreds[t]++] = b;
        }
}

/* ---- order ---- */

typedef struct frame {
    uint32_t block, next; /* next target to visit */
} frame;

typedef struct item { /* a component still to be ordered */
    uint32_t scope;   /* its blocks have scope[b] == this; NONE32: the single block `block` */
    uint32_t block;   /* its first-visited block */
    uint32_t size;
    uint32_t loop; /* the loop it is part of, or NONE32 */
} item;

typedef struct orderer {
    analysis *n;
    uint32_t *scope, *index, *low;
    uint32_t next_scope, next_index;
    uint32_t loop; /* being decomposed */
    HW_VEC(frame) walk;
    HW_VEC(uint32_t) open; /* Tarjan's stack */
    HW_VEC(item) items;
} orderer;

static void visit(orderer *o, uint32_t b)
{
    o->index[b] = o->low[b] = ++o->next_index;
    hw_vec_push(o->n->scratch, &o->open, b);
    hw_vec_push(o->n->scratch, &o->walk, (frame){ b, 0 });
}

static bool has_edge_to_itself(const analysis *n, uint32_t b)
{
    for (uint32_t k = 0; k < n->f->blocks.ptr[b].ntargets; k++)
        if (n->f->blocks.ptr[b].targets[k] == b)
            return true;
    return false;
}

/* The blocks above and including b on Tarjan's stack are a component; b was entered first. */
static void close_component(orderer *o, uint32_t b, uint32_t header)
{
    uint32_t scope = o->next_scope++, size = 0, top;
    do {
        top = o->open.ptr[--o->open.len];
        o->scope[top] = scope;
        o->index[top] = 0; /* for the walk inside the component */
        size++;
    } while (top != b);
    bool looping = size > 1 || (b != header && has_edge_to_itself(o->n, b));
    hw_vec_push(o->n->scratch, &o->items, (item){ looping ? scope : NONE32, b, size, o->loop });
}

/* One step of Tarjan's walk inside `scope`, where edges into the header do not count. */
static void step(orderer *o, uint32_t scope, uint32_t header)
{
    frame *top = &o->walk.ptr[o->walk.len - 1];
    const hw_wir_block *block = &o->n->f->blocks.ptr[top->block];
    uint32_t b = top->block;
    if (top->next < block->ntargets) {
        uint32_t t = block->targets[top->next++];
        if (o->scope[t] != scope || t == header)
            return;
        if (!o->index[t])
            visit(o, t);
        else if (o->index[t] < o->low[b])
            o->low[b] = o->index[t];
        return;
    }
    o->walk.len--;
    if (o->low[b] == o->index[b])
        close_component(o, b, header);
    else if (o->walk.len) {
        uint32_t up = o->walk.ptr[o->walk.len - 1].block;
        if (o->low[b] < o->low[up])
            o->low[up] = o->low[b];
    }
}

static void place(analysis *n, uint32_t b, uint32_t l)
{
    n->out->position[b] = n->nreachable;
    n->out->order[n->nreachable++] = b;
    n->loop_of[b] = l;
    n->out->loop_header[b] = l == NONE32 ? NONE32 : n->loops.ptr[l].header;
}

/* Split a component into its parts, walking from `start`; the topologically first part ends on top
 * of items. */
static void decompose(orderer *o, uint32_t start, uint32_t scope, uint32_t header)
{
    visit(o, start);
    while (o->walk.len)
        step(o, scope, header);
}

static void open_loop(orderer *o, item it)
{
    analysis *n = o->n;
    hw_vec_push(n->scratch, &n->loops,
                (loop){ it.block, it.loop, n->nreachable, n->nreachable + it.size });
    o->loop = (uint32_t)n->loops.len - 1;
}

static void find_order(analysis *n)
{
    orderer o = { .n = n, .next_scope = 1, .loop = NONE32 };
    o.scope = HW_NEW_N(n->scratch, uint32_t, n->nblocks);
    o.index = HW_NEW_N(n->scratch, uint32_t, n->nblocks);
    o.low = HW_NEW_N(n->scratch, uint32_t, n->nblocks);
    for (uint32_t b = 0; b < n->nblocks; b++)
        n->out->position[b] = n->loop_of[b] = n->out->loop_header[b] = NONE32;
    decompose(&o, 0, 0, NONE32);
    while (o.items.len) {
        item it = o.items.ptr[--o.items.len];
        if (it.scope == NONE32) {
            place(n, it.block, it.loop);
        } else {
            open_loop(&o, it);
            decompose(&o, it.block, it.scope, it.block);
        }
    }
    uint32_t at = n->nreachable;
    for (uint32_t b = 0; b < n->nblocks; b++)
        if (n->out->position[b] == NONE32) {
            n->out->position[b] = at;
            n->out->order[at++] = b;
        }
}

/* ---- dominators ---- */

typedef struct graph { /* edges of node v: to[first[v]] .. to[first[v+1]] */
    uint32_t nodes, root;
    uint32_t *first, *to;
} graph;

typedef struct nca {
    const graph *out, *in;
    uint32_t *number, *node, *parent; /* number: 1 + preorder, 0 unreached; the rest by preorder */
    uint32_t *semi, *label, *ancestor, *idom;
    uint32_t *path, count;
} nca;

static void number_nodes(nca *s, hw_arena *scratch)
{
    uint32_t *stack = HW_NEW_N(scratch, uint32_t, s->out->nodes + 1);
    uint32_t *next = HW_NEW_N(scratch, uint32_t, s->out->nodes);
    uint32_t depth = 0;
    stack[depth++] = s->out->root;
    s->node[0] = s->out->root;
    s->number[s->out->root] = s->count = 1;
    while (depth) {
        uint32_t v = stack[depth - 1];
        uint32_t edge = s->out->first[v] + next[v]++;
        if (edge == s->out->first[v + 1]) {
            depth--;
            continue;
        }
        uint32_t t = s->out->to[edge];
        if (s->number[t])
            continue;
        s->node[s->count] = t;
        s->parent[s->count] = s->number[v] - 1;
        s->number[t] = ++s->count;
        stack[depth++] = t;
    }
}

/* The label of least semidominator on the path to the root of v's linked tree; compresses it. */
static uint32_t best_label(nca *s, uint32_t v)
{
    uint32_t depth = 0;
    while (s->ancestor[v] != NONE32 && s->ancestor[s->ancestor[v]] != NONE32) {
        s->path[depth++] = v;
        v = s->ancestor[v];
    }
    while (depth) {
        uint32_t u = s->path[--depth], up = s->ancestor[u];
        if (s->semi[s->label[up]] < s->semi[s->label[u]])
            s->label[u] = s->label[up];
        s->ancestor[u] = s->ancestor[up];
        v = u;
    }
    return s->label[v];
}

static void find_semidominators(nca *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        s->semi[i] = s->label[i] = i;
        s->idom[i] = s->parent[i];
        s->ancestor[i] = NONE32;
    }
    for (uint32_t i = s->count - 1; i > 0; i--) {
        uint32_t v = s->node[i];
        for (uint32_t k = s->in->first[v]; k < s->in->first[v + 1]; k++) {
            uint32_t pred = s->number[s->in->to[k]];
            if (!pred)
                continue;
            uint32_t label = pred - 1 <= i ? pred - 1 : best_label(s, pred - 1);
            if (s->semi[label] < s->semi[i])
                s->semi[i] = s->semi[label];
        }
        s->ancestor[i] = s->parent[i];
    }
}

/* result[v]: immediate dominator of node v, or NONE32 for the root and what it does not reach. */
static void dominators(hw_arena *scratch, const graph *out, const graph *in, uint32_t *result)
{
    uint32_t count = out->nodes;
    nca s = { .out = out, .in = in };
    uint32_t **arrays[] = { &s.number, &s.node,     &s.parent, &s.semi,
                            &s.label,  &s.ancestor, &s.idom,   &s.path };
    for (size_t k = 0; k < HW_COUNTOF(arrays); k++)
        *arrays[k] = HW_NEW_N(scratch, uint32_t, count + 1);
    number_nodes(&s, scratch);
    find_semidominators(&s);
    for (uint32_t i = 1; i < s.count; i++)
        while (s.idom[i] > s.semi[i])
            s.idom[i] = s.idom[s.idom[i]];
    for (uint32_t v = 0; v < count; v++)
        result[v] = s.number[v] > 1 ? s.node[s.idom[s.number[v] - 1]] : NONE32;
}

static bool can_end(const hw_wir_block *b)
{
    unsigned op = hw_wir_last(b)->op;
    return op == HW_W_RET || op == HW_W_EXIT || op == HW_W_TRAP;
}

/* Node nblocks stands for the end of the function. */
static graph build(analysis *n, bool reversed)
{
    graph g = { .nodes = n->nblocks + 1, .root = reversed ? n->nblocks : 0 };
    g.first = HW_NEW_N(n->scratch, uint32_t, g.nodes + 2);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t b = 0; b < n->nblocks; b++) {
            const hw_wir_block *block = &n->f->blocks.ptr[b];
            for (uint32_t k = 0; k < block->ntargets + can_end(block); k++) {
                uint32_t t = k < block->ntargets ? block->targets[k] : n->nblocks;
                uint32_t from = reversed ? t : b, to = reversed ? b : t;
                if (pass == 0)
                    g.first[from + 2]++;
                else
                    g.to[g.first[from + 1]++] = to;
            }
        }
        if (pass == 0) {
            for (uint32_t v = 0; v < g.nodes; v++)
                g.first[v + 2] += g.first[v + 1];
            g.to = HW_NEW_N(n->scratch, uint32_t, g.first[g.nodes + 1] + 1);
        }
    }
    return g;
}

static void find_dominators(analysis *n)
{
    graph forward = build(n, false), backward = build(n, true);
    uint32_t *idom = HW_NEW_N(n->scratch, uint32_t, n->nblocks + 1);
    dominators(n->scratch, &forward, &backward, idom);
    memcpy(n->out->idom, idom, n->nblocks * sizeof *idom);
    dominators(n->scratch, &backward, &forward, idom);
    for (uint32_t b = 0; b < n->nblocks; b++)
        n->out->ipdom[b] = idom[b] == n->nblocks ? NONE32 : idom[b];
}

void hw_wir_find_cfg(analysis *n)
{
    hw_wir_analysis *o = n->out;
    o->order = HW_NEW_N(n->arena, uint32_t, n->nblocks);
    o->position = HW_NEW_N(n->arena, uint32_t, n->nblocks);
    o->idom = HW_NEW_N(n->arena, uint32_t, n->nblocks);
    o->ipdom = HW_NEW_N(n->arena, uint32_t, n->nblocks);
    o->loop_header = HW_NEW_N(n->arena, uint32_t, n->nblocks);
    n->loop_of = HW_NEW_N(n->scratch, uint32_t, n->nblocks);
    find_preds(n);
    find_order(n);
    find_dominators(n);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions and conditional nodes: IF, WHILE, SWITCH. (CUDA Programming Guide, "Conditional Graph Nodes".)
 *
 * A graph and its exec share conditions, so a graph that has some has one exec at a time, as in CUDA. A launch takes
 * copies of a node's bodies; whatever later happens to the exec does not touch it. The default value of a condition is
 * assigned whenever the graph that the handle was made for begins: for one made for a body, at each round.
 */
#include "graph.h"

#include <stdlib.h>

#define EACH(l, g) (hw_cu_link *l = (g)->nodes.next; l != &(g)->nodes; l = l->next)

enum { ASSIGN_DEFAULT = 1 };

struct hw_cu_condition {
    void *handle;
    hw_cu_context *ctx;
    _Atomic uint32_t refs, value;
    uint32_t initial;
    bool assigns; /* initial, at the beginning */
    bool used;    /* by a node */
    bool executable;
};

/* Between a kernel that sets a condition and the end of the last graph that has it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static hw_cu_condition *retain(hw_cu_condition *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

static void release(hw_cu_condition *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    pthread_mutex_lock(&lock);
    hw_cu_handle_drop(c->handle);
    pthread_mutex_unlock(&lock);
    free(c);
}

static hw_cu_condition *find(uint64_t handle)
{
    return hw_cu_handle_get((const void *)(uintptr_t)handle, HW_CU_CONDITION);
}

bool hw_cu_condition_set(hw_cu_context *ctx, uint64_t handle, uint32_t value)
{
    pthread_mutex_lock(&lock);
    hw_cu_condition *c = find(handle);
    bool ours = c && c->ctx == ctx;
    if (ours)
        atomic_store(&c->value, value);
    pthread_mutex_unlock(&lock);
    return ours;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph graph,
                                        CUcontext context, unsigned int value, unsigned int flags)
{
    hw_cu_graph *g;
    hw_cu_context *ctx;
    CU_TRY(hw_cu_find_graph(graph, &g));
    CU_NEED(out && flags <= ASSIGN_DEFAULT, INVALID_VALUE);
    if (context)
        CU_TRY(hw_cu_find_context(context, &ctx));
    else
        CU_TRY(hw_cu_current_any(&ctx));
    hw_cu_condition **more = realloc(g->conditions, (g->nconditions + 1) * sizeof(*more));
    CU_NEED(more, OUT_OF_MEMORY);
    g->conditions = more;
    hw_cu_condition *c = calloc(1, sizeof *c);
    CU_NEED(c, OUT_OF_MEMORY);
    *c = (hw_cu_condition){
        .ctx = ctx, .refs = 1, .value = value, .initial = value, .assigns = flags == ASSIGN_DEFAULT
    };
    c->handle = hw_cu_handle_new(HW_CU_CONDITION, c);
    g->conditions[g->nconditions++] = c;
    *out = (uintptr_t)c->handle;
    return CUDA_SUCCESS;
}

CUresult hw_cu_conditions_copy(hw_cu_graph *to, const hw_cu_graph *from)
{
    if (!from->nconditions)
        return CUDA_SUCCESS;
    to->conditions = calloc(from->nconditions, sizeof(*to->conditions));
    CU_NEED(to->conditions, OUT_OF_MEMORY);
    for (; to->nconditions < from->nconditions; to->nconditions++) {
        to->conditions[to->nconditions] = retain(from->conditions[to->nconditions]);
    }
    return CUDA_SUCCESS;
}

void hw_cu_conditions_drop(hw_cu_graph *g)
{
    for (size_t i = 0; i < g->nconditions; i++) {
        release(g->conditions[i]);
    }
    free(g->conditions);
    g->conditions = NULL;
    g->nconditions = 0;
}

/* ---- nodes ---- */

static bool graph_has_condition(const hw_cu_graph *g, const hw_cu_condition *c)
{
    for (; g; g = g->parent) {
        for (size_t i = 0; i < g->nconditions; i++) {
            if (g->conditions[i] == c)
                return true;
        }
    }
    return false;
}

static bool size_fits(CUgraphConditionalNodeType type, unsigned size)
{
    static const unsigned most[] = { [CU_GRAPH_COND_TYPE_IF] = 2,
                                     [CU_GRAPH_COND_TYPE_WHILE] = 1,
                                     [CU_GRAPH_COND_TYPE_SWITCH] = UINT32_MAX };
    return (unsigned)type < HW_COUNTOF(most) && size && size <= most[type];
}

static CUresult add_bodies(hw_cu_node *n, size_t count, bool with_handles)
{
    n->bodies = calloc(count, sizeof(*n->bodies));
    CU_NEED(n->bodies, OUT_OF_MEMORY);
    for (; with_handles && n->nbodies < count; n->nbodies++) {
        hw_cu_graph *g = n->bodies[n->nbodies] = hw_cu_graph_new(true);
        CU_NEED(g, OUT_OF_MEMORY);
        g->is_child = true;
        g->parent = n->graph;
    }
    return CUDA_SUCCESS;
}

CUresult hw_cu_conditional_set(hw_cu_node *n, const CUgraphNodeParams *p)
{
    const CUDA_CONDITIONAL_NODE_PARAMS *k = &p->conditional;
    CU_NEED(!n->condition, NOT_SUPPORTED); /* cannot be changed */
    hw_cu_condition *c = find(k->handle);
    CU_NEED(c && !c->used && graph_has_condition(n->graph, c), INVALID_VALUE);
    CU_NEED(size_fits(k->type, k->size), INVALID_VALUE);
    CU_NEED(!k->ctx || k->ctx == c->ctx->handle, INVALID_VALUE);
    CU_TRY(add_bodies(n, k->size, true));
    CUgraph *handles = calloc(k->size, sizeof(*handles));
    CU_NEED(handles, OUT_OF_MEMORY);
    for (size_t i = 0; i < k->size; i++) {
        handles[i] = n->bodies[i]->handle;
    }
    n->condition = retain(c);
    c->used = true;
    n->params.conditional = *k;
    n->params.conditional.phGraph_out = handles;
    n->params.conditional.ctx = c->ctx->handle;
    return CUDA_SUCCESS;
}

void hw_cu_conditional_clear(hw_cu_node *n)
{
    for (size_t i = 0; i < n->nbodies; i++) {
        hw_cu_graph_free(n->bodies[i]);
    }
    free(n->bodies);
    if (n->condition && n->handle) {
        n->condition->used = false;
        free(n->params.conditional.phGraph_out);
    }
    release(n->condition);
    n->bodies = NULL;
    n->nbodies = 0;
    n->condition = NULL;
}

/* Copies have no handles: graphs that a program sees are not cloned if they have conditions. */
CUresult hw_cu_conditional_copy(hw_cu_node *to, const hw_cu_node *from)
{
    to->condition = retain(from->condition);
    to->params.conditional.phGraph_out = NULL;
    CU_TRY(add_bodies(to, from->nbodies, false));
    for (; to->nbodies < from->nbodies; to->nbodies++) {
        CU_TRY(hw_cu_graph_clone(from->bodies[to->nbodies], false, &to->bodies[to->nbodies]));
        to->bodies[to->nbodies]->is_child = true;
        to->bodies[to->nbodies]->parent = to->graph;
    }
    return CUDA_SUCCESS;
}

/* ---- instantiating ---- */

static bool node_has(const hw_cu_node *n, CUgraphNodeType type)
{
    bool has = n->params.type == type || (n->child && hw_cu_graph_has(n->child, type));
    for (size_t i = 0; i < n->nbodies && !has; i++) {
        has = hw_cu_graph_has(n->bodies[i], type);
    }
    return has;
}

bool hw_cu_graph_has(const hw_cu_graph *g, CUgraphNodeType type)
{
    for
        EACH(l, g)
        {
            if (node_has(HW_CU_NODE_OF(l), type))
                return true;
        }
    return false;
}

static CUresult check(hw_cu_graph *g, const hw_cu_context *ctx, CUgraphInstantiateResult *why,
                      CUgraphNode *where);

static CUresult check_node(hw_cu_node *n, const hw_cu_context *ctx, CUgraphInstantiateResult *why,
                           CUgraphNode *where)
{
    *where = n->handle;
    *why = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
    CU_NEED(!ctx || hw_cu_node_may_be_in_body(n), NOT_SUPPORTED);
    CU_NEED(!ctx || !n->launch || n->launch->f->module->ctx == ctx, INVALID_VALUE);
    if (n->child)
        CU_TRY(check(n->child, ctx, why, where));
    for (size_t i = 0; i < n->nbodies; i++) {
        CU_TRY(check(n->bodies[i], n->condition->ctx, why, where));
    }
    return CUDA_SUCCESS;
}

/* ctx: of the body that the graph is, or is in; NULL: it is in none. */
static CUresult check(hw_cu_graph *g, const hw_cu_context *ctx, CUgraphInstantiateResult *why,
                      CUgraphNode *where)
{
    for (size_t i = 0; i < g->nconditions; i++) {
        *why = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
        CU_NEED(g->conditions[i]->used, INVALID_VALUE);
        *why = CUDA_GRAPH_INSTANTIATE_ERROR;
        CU_NEED(!g->conditions[i]->executable, INVALID_VALUE);
    }
    for
        EACH(l, g)
        {
            CU_TRY(check_node(HW_CU_NODE_OF(l), ctx, why, where));
        }
    *where = NULL;
    return CUDA_SUCCESS;
}

CUresult hw_cu_conditions_check(hw_cu_graph *g, CUgraphInstantiateResult *why, CUgraphNode *where)
{
    return check(g, NULL, why, where);
}

void hw_cu_conditions_executable(hw_cu_graph *g, bool yes)
{
    for (size_t i = 0; i < g->nconditions; i++) {
        g->conditions[i]->executable = yes;
    }
    for
        EACH(l, g)
        {
            const hw_cu_node *n = HW_CU_NODE_OF(l);
            for (size_t i = 0; i < n->nbodies; i++)
                hw_cu_conditions_executable(n->bodies[i], yes);
        }
}

/* ---- carrying out ---- */

static void assign_defaults(const hw_cu_graph *g)
{
    for (size_t i = 0; i < g->nconditions; i++) {
        if (g->conditions[i]->assigns)
            atomic_store(&g->conditions[i]->value, g->conditions[i]->initial);
    }
}

hw_status hw_cu_graph_run(hw_cu_graph *g, uint32_t stream, hw_fault *fault)
{
    hw_status s = HW_OK;
    assign_defaults(g);
    for (hw_cu_link *l = g->nodes.next; l != &g->nodes && s == HW_OK; l = l->next) {
        s = hw_cu_node_run(HW_CU_NODE_OF(l), stream, fault);
    }
    return s;
}

/* A kernel that could not be started would leave a loop without its end. */
static bool may_go_on(const hw_cu_condition *c)
{
    return atomic_load(&c->ctx->launch_error) == HW_OK && hw_cu_ready() == CUDA_SUCCESS;
}

hw_status hw_cu_conditional_run(hw_cu_node *n, uint32_t stream, hw_fault *fault)
{
    const hw_cu_condition *c = n->condition;
    hw_status s = HW_OK;
    uint32_t value = atomic_load(&c->value);
    size_t body = n->params.conditional.type == CU_GRAPH_COND_TYPE_SWITCH ? value : !value;
    if (n->params.conditional.type != CU_GRAPH_COND_TYPE_WHILE)
        return body < n->nbodies ? hw_cu_graph_run(n->bodies[body], stream, fault) : HW_OK;
    while (s == HW_OK && atomic_load(&c->value) && may_go_on(c))
        s = hw_cu_graph_run(n->bodies[0], stream, fault);
    return s;
}

typedef struct turn { /* one launch of a node: it is in a graph of its own */
    hw_cu_graph *graph;
    uint32_t stream;
} turn;

static hw_status turn_run(void *p, hw_fault *fault)
{
    const turn *t = p;
    return hw_cu_graph_run(t->graph, t->stream, fault);
}

static void turn_drop(void *p)
{
    turn *t = p;
    hw_cu_graph_free(t->graph);
    free(t);
}

/* Takes g; r: whether it was made. */
static CUresult submit(hw_cu_stream *s, hw_cu_graph *g, CUresult r)
{
    turn *t = r == CUDA_SUCCESS ? malloc(sizeof *t) : NULL;
    if (!t) {
        hw_cu_graph_free(g);
        return r == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : r;
    }
    *t = (turn){ g, s->number };
    return hw_cu_submit(s, turn_run, turn_drop, t);
}

CUresult hw_cu_conditional_submit(hw_cu_node *n, hw_cu_stream *s)
{
    hw_cu_graph *g = hw_cu_graph_new(false);
    CU_NEED(g, OUT_OF_MEMORY);
    return submit(s, g, hw_cu_node_clone_into(g, n));
}

/* The defaults of the graph itself are assigned by a task of their own, before its nodes. */
CUresult hw_cu_conditions_begin(const hw_cu_graph *g, hw_cu_stream *s)
{
    if (!g->nconditions)
        return CUDA_SUCCESS;
    hw_cu_graph *begin = hw_cu_graph_new(false);
    CU_NEED(begin, OUT_OF_MEMORY);
    return submit(s, begin, hw_cu_conditions_copy(begin, g));
}

/* SPDX-License-Identifier: Apache-2.0
 * Executable graphs: instantiated, updated, launched; memory of graphs. (CUDA Driver API, "Graph Management".)
 */
#include "capture.h"

#include <stdlib.h>

#define EACH(l, g) (hw_cu_link *l = (g)->nodes.next; l != &(g)->nodes; l = l->next)

enum { AUTO_FREE = 1, UPLOAD = 2, DEVICE_LAUNCH = 4, NODE_PRIORITY = 8 };

typedef struct hw_cu_graph_exec {
    CUgraphExec handle;
    hw_cu_graph *graph;
    uint64_t flags;
} hw_cu_graph_exec;

static CUresult find_exec(CUgraphExec handle, hw_cu_graph_exec **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_GRAPH_EXEC);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The copy of a graph's node, child graphs included. */
static hw_cu_node *copy_in(const hw_cu_graph *g, CUgraphNode original)
{
    for
        EACH(l, g)
        {
            hw_cu_node *n = HW_CU_NODE_OF(l);
            if (n->origin == original)
                return n;
            hw_cu_node *inner = n->child ? copy_in(n->child, original) : NULL;
            for (size_t i = 0; i < n->nbodies && !inner; i++)
                inner = copy_in(n->bodies[i], original);
            if (inner)
                return inner;
        }
    return NULL;
}

CUresult hw_cu_find_exec_node(CUgraphExec exec, CUgraphNode original, hw_cu_node **out)
{
    hw_cu_graph_exec *x;
    CU_TRY(find_exec(exec, &x));
    *out = original ? copy_in(x->graph, original) : NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- instantiating ---- */

static void visit(hw_cu_node *n, hw_cu_link *into)
{
    if (n->mark)
        return;
    n->mark = 1;
    for (size_t i = 0; i < n->nneeds; i++) {
        visit(n->needs[i], into);
    }
    hw_cu_list_remove(&n->link);
    hw_cu_list_add(into, &n->link);
}

/* Put the nodes in an order that respects the edges, else as they were added. (Edges make no circles.) */
static void sort_nodes(hw_cu_graph *g)
{
    hw_cu_link sorted;
    hw_cu_list_init(&sorted);
    for
        EACH(l, g)
        {
            HW_CU_NODE_OF(l)->mark = 0;
        }
    while (g->nodes.next != &g->nodes)
        visit(HW_CU_NODE_OF(g->nodes.next), &sorted);
    while (sorted.next != &sorted) {
        hw_cu_link *l = sorted.next;
        hw_cu_node *n = HW_CU_NODE_OF(l);
        hw_cu_list_remove(l);
        hw_cu_list_add(&g->nodes, l);
        if (n->child)
            sort_nodes(n->child);
        for (size_t i = 0; i < n->nbodies; i++)
            sort_nodes(n->bodies[i]);
    }
}

/* Graphs with memory or conditional nodes have one exec at a time: they share what it works on. */
static CUresult instantiate(CUgraphExec *out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    hw_cu_graph *g, *c;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(out && p->flags <= (AUTO_FREE | UPLOAD | DEVICE_LAUNCH | NODE_PRIORITY), INVALID_VALUE);
    CU_NEED(!g->is_child, INVALID_VALUE);
    CU_NEED(!(p->flags & DEVICE_LAUNCH), NOT_SUPPORTED);
    CU_TRY(hw_cu_conditions_check(g, &p->result_out, &p->hErrNode_out));
    CU_TRY(hw_cu_graph_clone(g, false, &c));
    hw_cu_graph_exec *x = calloc(1, sizeof *x);
    CU_NEED(x, OUT_OF_MEMORY);
    sort_nodes(c);
    x->graph = c;
    x->flags = p->flags;
    hw_cu_conditions_executable(c, true);
    *out = x->handle = hw_cu_handle_new(HW_CU_GRAPH_EXEC, x);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS p = { .flags = flags };
    return instantiate(out, graph, &p);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    CU_NEED(p, INVALID_VALUE);
    p->hErrNode_out = NULL;
    p->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    CUresult r = instantiate(out, g, p);
    if (r == CUDA_SUCCESS)
        p->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return r;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph g, CUgraphNode *error, char *log,
                               size_t size)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS p = { 0 };
    if (log && size)
        *log = '\0';
    CUresult r = instantiate(out, g, &p);
    if (error)
        *error = p.hErrNode_out;
    return r;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags)
{
    hw_cu_graph_exec *x;
    CU_TRY(find_exec(handle, &x));
    CU_NEED(flags, INVALID_VALUE);
    *flags = x->flags;
    return CUDA_SUCCESS;
}

/* Launches that are under way have copies of what they need. */
CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    hw_cu_graph_exec *x;
    CU_TRY(find_exec(handle, &x));
    hw_cu_handle_drop(handle);
    hw_cu_conditions_executable(x->graph, false);
    hw_cu_graph_free(x->graph);
    free(x);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
    hw_cu_node *n;
    CU_TRY(hw_cu_find_exec_node(exec, node, &n));
    CU_NEED(n->params.type <= CU_GRAPH_NODE_TYPE_MEMSET, INVALID_VALUE);
    n->enabled = enabled != 0;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
    hw_cu_node *n;
    CU_TRY(hw_cu_find_exec_node(exec, node, &n));
    CU_NEED(enabled && n->params.type <= CU_GRAPH_NODE_TYPE_MEMSET, INVALID_VALUE);
    *enabled = n->enabled;
    return CUDA_SUCCESS;
}

/* ---- launching ---- */

CUresult hw_cu_graph_submit(hw_cu_graph *g, hw_cu_stream *s)
{
    for
        EACH(l, g)
        {
            CU_TRY(hw_cu_node_submit(HW_CU_NODE_OF(l), s));
        }
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
    hw_cu_graph_exec *x;
    hw_cu_stream *s;
    CU_TRY(find_exec(handle, &x));
    CU_TRY(hw_cu_find_stream(stream, &s));
    if (s->capture)
        return hw_cu_capture_graph(s, x->graph);
    CU_TRY(hw_cu_conditions_begin(x->graph, s));
    return hw_cu_graph_submit(x->graph, s);
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream)
{
    hw_cu_graph_exec *x;
    hw_cu_stream *s;
    CU_TRY(find_exec(handle, &x));
    return hw_cu_find_stream(stream, &s); /* there is no other place to bring it to */
}

/* ---- updating: the graph must have the exec's nodes and edges ---- */

static bool same_edges(const hw_cu_node *a, const hw_cu_node *b)
{
    if (a->nneeds != b->nneeds)
        return false;
    for (size_t i = 0; i < a->nneeds; i++) {
        if (a->needs[i]->mark != b->needs[i]->mark)
            return false;
    }
    return true;
}

static CUgraphExecUpdateResult compare(const hw_cu_graph *a, const hw_cu_graph *b,
                                       const hw_cu_node **at);

/* What two nodes at one place hold: their child graphs, their bodies. */
static CUgraphExecUpdateResult compare_inner(const hw_cu_node *n, const hw_cu_node *m)
{
    const hw_cu_node *inner;
    CUgraphExecUpdateResult r = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    if (n->child)
        r = compare(n->child, m->child, &inner);
    if (n->condition &&
        (n->params.conditional.type != m->params.conditional.type || n->nbodies != m->nbodies))
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    for (size_t i = 0; i < n->nbodies && r == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++)
        r = compare(n->bodies[i], m->bodies[i], &inner);
    return r;
}

static CUgraphExecUpdateResult compare(const hw_cu_graph *a, const hw_cu_graph *b,
                                       const hw_cu_node **at)
{
    uint32_t i = 0;
    const hw_cu_link *y = b->nodes.next;
    *at = NULL;
    if (a->n != b->n)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for
        EACH(x, a)
        {
            hw_cu_node *n = HW_CU_NODE_OF(x), *m = HW_CU_NODE_OF(y);
            n->mark = m->mark = i++;
            *at = m;
            if (n->params.type != m->params.type)
                return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
            if (!same_edges(n, m))
                return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
            CUgraphExecUpdateResult r = compare_inner(n, m);
            if (r != CU_GRAPH_EXEC_UPDATE_SUCCESS)
                return r;
            y = y->next;
        }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Node handles the program has stay those of the graph it instantiated. */
static void keep_names(const hw_cu_graph *from, hw_cu_graph *to)
{
    const hw_cu_link *old = from->nodes.next;
    for
        EACH(l, to)
        {
            hw_cu_node *n = HW_CU_NODE_OF(l);
            const hw_cu_node *was = HW_CU_NODE_OF(old);
            n->origin = was->origin;
            n->enabled = was->enabled;
            if (n->child)
                keep_names(was->child, n->child);
            for (size_t i = 0; i < n->nbodies; i++)
                keep_names(was->bodies[i], n->bodies[i]);
            old = old->next;
        }
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    hw_cu_graph_exec *x;
    hw_cu_graph *g, *c;
    const hw_cu_node *at;
    CU_TRY(find_exec(handle, &x));
    CU_TRY(hw_cu_find_graph(graph, &g));
    CU_NEED(info && !g->is_child, INVALID_VALUE);
    *info = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_ERROR };
    CU_TRY(hw_cu_graph_clone(g, false, &c));
    sort_nodes(c);
    info->result = compare(x->graph, c, &at);
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        info->errorNode = at ? at->origin : NULL;
        hw_cu_graph_free(c);
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    keep_names(x->graph, c);
    hw_cu_conditions_executable(x->graph, false);
    hw_cu_conditions_executable(c, true);
    hw_cu_graph_free(x->graph);
    x->graph = c;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error,
                           CUgraphExecUpdateResult *result)
{
    CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_ERROR };
    CUresult r = cuGraphExecUpdate_v2(exec, graph, &info);
    if (error)
        *error = info.errorNode;
    if (result)
        *result = info.result;
    return r;
}

/* ---- memory of allocation nodes ---- */

CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute which, void *value)
{
    hw_cu_gpu *g;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(value && (unsigned)which <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, INVALID_VALUE);
    uint64_t v = which & 1 ? g->graph_high : g->graph_bytes;
    memcpy(value, &v, sizeof v);
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute which, void *value)
{
    hw_cu_gpu *g;
    uint64_t v;
    CU_TRY(hw_cu_find_gpu(dev, &g));
    CU_NEED(value && (which & 1) && (unsigned)which <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
            INVALID_VALUE);
    memcpy(&v, value, sizeof v);
    CU_NEED(v == 0, INVALID_VALUE); /* high-water marks can only be reset */
    g->graph_high = g->graph_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
    hw_cu_gpu *g;
    return hw_cu_find_gpu(dev, &g); /* graphs hold no memory but their nodes' own */
}

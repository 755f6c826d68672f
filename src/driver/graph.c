/* SPDX-License-Identifier: Apache-2.0
 * Graphs: their nodes and edges, cloning, user objects. (CUDA Driver API, "Graph Management".)
 */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>

#define EACH(l, g) (hw_cu_link *l = (g)->nodes.next; l != &(g)->nodes; l = l->next)

/* ---- making and ending ---- */

hw_cu_graph *hw_cu_graph_new(bool with_handle)
{
    hw_cu_graph *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    hw_cu_list_init(&g->nodes);
    if (with_handle)
        g->handle = hw_cu_handle_new(HW_CU_GRAPH, g);
    return g;
}

static void node_free(hw_cu_node *n)
{
    hw_cu_list_remove(&n->link);
    n->graph->n--;
    hw_cu_node_clear(n);
    if (n->handle)
        hw_cu_handle_drop(n->handle);
    free(n->needs);
    free(n->attributes);
    free(n);
}

void hw_cu_graph_free(hw_cu_graph *g)
{
    while (g->nodes.next != &g->nodes)
        node_free(HW_CU_NODE_OF(g->nodes.next));
    for (size_t i = 0; i < g->nusers; i++) {
        hw_cu_user_release(g->users[i]);
    }
    if (g->handle)
        hw_cu_handle_drop(g->handle);
    hw_cu_conditions_drop(g);
    free(g->users);
    free(g);
}

CUresult hw_cu_find_graph(CUgraph handle, hw_cu_graph **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_GRAPH);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult hw_cu_find_node(CUgraphNode handle, hw_cu_node **out)
{
    CU_TRY(hw_cu_ready());
    *out = hw_cu_handle_get(handle, HW_CU_NODE);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(out && flags == 0, INVALID_VALUE);
    hw_cu_graph *g = hw_cu_graph_new(true);
    CU_NEED(g, OUT_OF_MEMORY);
    *out = g->handle;
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle)
{
    hw_cu_graph *g;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(!g->is_child, INVALID_VALUE);
    hw_cu_graph_free(g);
    return CUDA_SUCCESS;
}

/* ---- edges ---- */

static bool depends(const hw_cu_node *n, const hw_cu_node *on)
{
    for (size_t i = 0; i < n->nneeds; i++) {
        if (n->needs[i] == on)
            return true;
    }
    return false;
}

/* Does n reach target by following what nodes need? Marks of the graph are cleared before. */
static bool reaches(hw_cu_node *n, const hw_cu_node *target)
{
    if (n == target)
        return true;
    if (n->mark)
        return false;
    n->mark = 1;
    for (size_t i = 0; i < n->nneeds; i++) {
        if (reaches(n->needs[i], target))
            return true;
    }
    return false;
}

static CUresult add_need(hw_cu_node *n, hw_cu_node *on)
{
    CU_NEED(n->graph == on->graph && n != on && !depends(n, on), INVALID_VALUE);
    hw_cu_node **more = realloc(n->needs, (n->nneeds + 1) * sizeof(hw_cu_node *));
    CU_NEED(more, OUT_OF_MEMORY);
    n->needs = more;
    n->needs[n->nneeds++] = on;
    return CUDA_SUCCESS;
}

static void drop_need(hw_cu_node *n, const hw_cu_node *on)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->nneeds; i++) {
        if (n->needs[i] != on)
            n->needs[kept++] = n->needs[i];
    }
    n->nneeds = kept;
}

static CUresult check_edges(const CUgraphEdgeData *edges, size_t n)
{
    for (size_t i = 0; edges && i < n; i++) {
        CU_NEED(edges[i].type <= 1 && !edges[i].to_port, INVALID_VALUE);
    }
    return CUDA_SUCCESS; /* programmatic edges are kept as full ones, which is later but never wrong */
}

CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t n)
{
    hw_cu_graph *g;
    hw_cu_node *a, *b;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(!n || (from && to), INVALID_VALUE);
    CU_TRY(check_edges(edges, n));
    for (size_t i = 0; i < n; i++) {
        CU_TRY(hw_cu_find_node(from[i], &a));
        CU_TRY(hw_cu_find_node(to[i], &b));
        CU_NEED(a->graph == g && b->graph == g, INVALID_VALUE);
        for
            EACH(l, g)
            {
                HW_CU_NODE_OF(l)->mark = 0;
            }
        CU_NEED(!reaches(a, b), INVALID_VALUE); /* a circle */
        CU_TRY(add_need(b, a));
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return cuGraphAddDependencies_v2(g, from, to, NULL, n);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode *from,
                                      const CUgraphNode *to, const CUgraphEdgeData *edges, size_t n)
{
    hw_cu_graph *g;
    hw_cu_node *a, *b;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(!n || (from && to), INVALID_VALUE);
    CU_TRY(check_edges(edges, n));
    for (size_t i = 0; i < n; i++) {
        CU_TRY(hw_cu_find_node(from[i], &a));
        CU_TRY(hw_cu_find_node(to[i], &b));
        CU_NEED(depends(b, a), INVALID_VALUE);
        drop_need(b, a);
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t n)
{
    return cuGraphRemoveDependencies_v2(g, from, to, NULL, n);
}

/* ---- nodes ---- */

static hw_cu_node *node_new(hw_cu_graph *g, bool with_handle)
{
    hw_cu_node *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->graph = g;
    n->enabled = true;
    g->n++;
    hw_cu_list_add(&g->nodes, &n->link);
    if (with_handle)
        n->handle = hw_cu_handle_new(HW_CU_NODE, n);
    return n;
}

CUresult hw_cu_node_add(hw_cu_graph *g, const CUgraphNode *needs, size_t n,
                        const CUgraphNodeParams *p, hw_cu_node **out)
{
    hw_cu_node *on;
    CU_NEED(!n || needs, INVALID_VALUE);
    hw_cu_node *node = node_new(g, true);
    CU_NEED(node, OUT_OF_MEMORY);
    node->params.type = p->type;
    CUresult r = hw_cu_node_set(node, p);
    for (size_t i = 0; r == CUDA_SUCCESS && i < n; i++) {
        r = hw_cu_find_node(needs[i], &on);
        if (r == CUDA_SUCCESS)
            r = add_need(node, on);
    }
    if (r != CUDA_SUCCESS)
        node_free(node);
    *out = node;
    return r;
}

CUresult cuGraphDestroyNode(CUgraphNode handle)
{
    hw_cu_node *n;
    CU_TRY(hw_cu_find_node(handle, &n));
    CU_NEED(n->params.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
                n->params.type != CU_GRAPH_NODE_TYPE_MEM_FREE,
            NOT_SUPPORTED);
    for
        EACH(l, n->graph)
        {
            drop_need(HW_CU_NODE_OF(l), n);
        }
    node_free(n);
    return CUDA_SUCCESS;
}

/* Lists: NULL asks for the number; a list that is too long is filled up with NULL. */
static void put(CUgraphNode *out, size_t room, size_t i, const hw_cu_node *n)
{
    if (out && i < room)
        out[i] = n->handle;
}

static void finish(CUgraphNode *out, size_t *room, size_t n)
{
    for (size_t i = n; out && i < *room; i++) {
        out[i] = NULL;
    }
    if (!out || n < *room)
        *room = n;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *out, size_t *n)
{
    hw_cu_graph *g;
    size_t i = 0;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(n, INVALID_VALUE);
    for
        EACH(l, g)
        {
            put(out, *n, i++, HW_CU_NODE_OF(l));
        }
    finish(out, n, i);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode *out, size_t *n)
{
    hw_cu_graph *g;
    size_t i = 0;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(n, INVALID_VALUE);
    for
        EACH(l, g)
        {
            if (!HW_CU_NODE_OF(l)->nneeds)
                put(out, *n, i++, HW_CU_NODE_OF(l));
        }
    finish(out, n, i);
    return CUDA_SUCCESS;
}

static void plain_edges(CUgraphEdgeData *edges, size_t n)
{
    if (edges)
        memset(edges, 0, n * sizeof *edges);
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                            CUgraphEdgeData *edges, size_t *n)
{
    hw_cu_graph *g;
    size_t count = 0;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(n && !from == !to, INVALID_VALUE);
    for
        EACH(l, g)
        {
            const hw_cu_node *b = HW_CU_NODE_OF(l);
            for (size_t i = 0; i < b->nneeds; i++, count++) {
                put(from, *n, count, b->needs[i]);
                put(to, *n, count, b);
            }
        }
    if (from)
        plain_edges(edges, *n);
    size_t room = *n;
    finish(from, &room, count);
    finish(to, n, count);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    return cuGraphGetEdges_v2(g, from, to, NULL, n);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *edges,
                                       size_t *n)
{
    hw_cu_node *node;
    CU_TRY(hw_cu_find_node(handle, &node));
    CU_NEED(n, INVALID_VALUE);
    for (size_t i = 0; i < node->nneeds; i++) {
        put(out, *n, i, node->needs[i]);
    }
    if (out)
        plain_edges(edges, *n);
    finish(out, n, node->nneeds);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *n)
{
    return cuGraphNodeGetDependencies_v2(node, out, NULL, n);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode *out,
                                         CUgraphEdgeData *edges, size_t *n)
{
    hw_cu_node *node;
    size_t i = 0;
    CU_TRY(hw_cu_find_node(handle, &node));
    CU_NEED(n, INVALID_VALUE);
    for
        EACH(l, node->graph)
        {
            if (depends(HW_CU_NODE_OF(l), node))
                put(out, *n, i++, HW_CU_NODE_OF(l));
        }
    if (out)
        plain_edges(edges, *n);
    finish(out, n, i);
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *n)
{
    return cuGraphNodeGetDependentNodes_v2(node, out, NULL, n);
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type)
{
    hw_cu_node *n;
    CU_TRY(hw_cu_find_node(handle, &n));
    CU_NEED(type, INVALID_VALUE);
    *type = n->params.type;
    return CUDA_SUCCESS;
}

/* ---- clones ---- */

static CUresult clone_node(hw_cu_node *n, hw_cu_graph *into, bool with_handles)
{
    hw_cu_node *c = node_new(into, with_handles);
    CU_NEED(c, OUT_OF_MEMORY);
    n->clone = c;
    c->origin = n->handle ? n->handle : n->origin;
    return hw_cu_node_copy(c, n);
}

CUresult hw_cu_node_clone_into(hw_cu_graph *g, hw_cu_node *n)
{
    return clone_node(n, g, false);
}

static CUresult clone_into(const hw_cu_graph *g, hw_cu_graph *into, bool with_handles)
{
    for
        EACH(l, g)
        {
            CU_TRY(clone_node(HW_CU_NODE_OF(l), into, with_handles));
        }
    for
        EACH(l, g)
        {
            const hw_cu_node *n = HW_CU_NODE_OF(l);
            for (size_t i = 0; i < n->nneeds; i++) {
                CU_TRY(add_need(n->clone, n->needs[i]->clone));
            }
        }
    into->users = calloc(g->nusers ? g->nusers : 1, sizeof *into->users);
    CU_NEED(into->users, OUT_OF_MEMORY);
    for (size_t i = 0; i < g->nusers; i++) {
        into->users[into->nusers++] = g->users[i];
        hw_cu_user_retain(g->users[i]);
    }
    return hw_cu_conditions_copy(into, g);
}

CUresult hw_cu_graph_clone(const hw_cu_graph *g, bool with_handles, hw_cu_graph **out)
{
    hw_cu_graph *c = hw_cu_graph_new(with_handles);
    CU_NEED(c, OUT_OF_MEMORY);
    CUresult r = clone_into(g, c, with_handles);
    if (r != CUDA_SUCCESS)
        hw_cu_graph_free(c);
    else
        *out = c;
    return r;
}

CUresult cuGraphClone(CUgraph *out, CUgraph handle)
{
    hw_cu_graph *g, *c;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(out, INVALID_VALUE);
    CU_NEED(!hw_cu_graph_has(g, CU_GRAPH_NODE_TYPE_CONDITIONAL) &&
                !hw_cu_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC) &&
                !hw_cu_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_FREE),
            INVALID_VALUE);
    CU_TRY(hw_cu_graph_clone(g, true, &c));
    *out = c->handle;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
    hw_cu_graph *g;
    CU_TRY(hw_cu_find_graph(clone, &g));
    CU_NEED(out && original, INVALID_VALUE);
    for
        EACH(l, g)
        {
            if (HW_CU_NODE_OF(l)->origin == original) {
                *out = HW_CU_NODE_OF(l)->handle;
                return CUDA_SUCCESS;
            }
        }
    return CUDA_ERROR_INVALID_VALUE;
}

/* ---- user objects ---- */

typedef struct hw_cu_user_object {
    CUuserObject handle;
    void *ptr;
    CUhostFn destroy;
    unsigned refs;
} hw_cu_user_object;

void hw_cu_user_retain(hw_cu_user u)
{
    __atomic_add_fetch(&u.object->refs, u.count, __ATOMIC_RELAXED);
}

void hw_cu_user_release(hw_cu_user u)
{
    if (__atomic_sub_fetch(&u.object->refs, u.count, __ATOMIC_ACQ_REL))
        return;
    hw_cu_handle_drop(u.object->handle);
    u.object->destroy(u.object->ptr);
    free(u.object);
}

static CUresult find_user(CUuserObject handle, unsigned count, hw_cu_user *out)
{
    CU_TRY(hw_cu_ready());
    *out = (hw_cu_user){ hw_cu_handle_get(handle, HW_CU_USER_OBJECT), count };
    CU_NEED(out->object && count && count <= INT32_MAX, INVALID_VALUE);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectCreate(CUuserObject *out, void *ptr, CUhostFn destroy, unsigned int refs,
                            unsigned int flags)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(out && destroy && refs && flags == 1,
            INVALID_VALUE); /* CU_USER_OBJECT_NO_DESTRUCTOR_SYNC */
    hw_cu_user_object *o = calloc(1, sizeof *o);
    CU_NEED(o, OUT_OF_MEMORY);
    *o = (hw_cu_user_object){ .ptr = ptr, .destroy = destroy, .refs = refs };
    *out = o->handle = hw_cu_handle_new(HW_CU_USER_OBJECT, o);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count)
{
    hw_cu_user u;
    CU_TRY(find_user(handle, count, &u));
    hw_cu_user_retain(u);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count)
{
    hw_cu_user u;
    CU_TRY(find_user(handle, count, &u));
    CU_NEED(count <= u.object->refs, INVALID_VALUE);
    hw_cu_user_release(u);
    return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject object, unsigned int count,
                                 unsigned int flags)
{
    hw_cu_graph *g;
    hw_cu_user u;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_TRY(find_user(object, count, &u));
    CU_NEED(flags <= 1, INVALID_VALUE); /* 1: the caller's references move to the graph */
    hw_cu_user *more = realloc(g->users, (g->nusers + 1) * sizeof *more);
    CU_NEED(more, OUT_OF_MEMORY);
    g->users = more;
    g->users[g->nusers++] = u;
    if (!flags)
        hw_cu_user_retain(u);
    return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph handle, CUuserObject object, unsigned int count)
{
    hw_cu_graph *g;
    hw_cu_user u;
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_TRY(find_user(object, count, &u));
    for (size_t i = 0; i < g->nusers; i++) {
        if (g->users[i].object == u.object && g->users[i].count >= count) {
            g->users[i].count -= count;
            if (!g->users[i].count)
                g->users[i] = g->users[--g->nusers];
            hw_cu_user_release(u);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/* ---- a picture for Graphviz ---- */

static const char *type_name(CUgraphNodeType t)
{
    static const char *const names[] = { "kernel",
                                         "memcpy",
                                         "memset",
                                         "host",
                                         "graph",
                                         "empty",
                                         "wait event",
                                         "record event",
                                         "",
                                         "",
                                         "alloc",
                                         "free",
                                         "memory operations",
                                         "conditional" };
    return (unsigned)t < HW_COUNTOF(names) ? names[t] : "";
}

CUresult cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned int flags)
{
    hw_cu_graph *g;
    uint32_t i = 0;
    (void)flags; /* how much to say of each node */
    CU_TRY(hw_cu_find_graph(handle, &g));
    CU_NEED(path, INVALID_VALUE);
    FILE *f = fopen(path, "w");
    CU_NEED(f, OPERATING_SYSTEM);
    fprintf(f, "digraph graph_0 {\n");
    for
        EACH(l, g)
        {
            hw_cu_node *n = HW_CU_NODE_OF(l);
            n->mark = i++;
            fprintf(f, "  n%u [label=\"%u %s%s%s\"];\n", n->mark, n->mark,
                    type_name(n->params.type), n->launch ? " " : "",
                    n->launch ? n->launch->f->source.name : "");
        }
    for
        EACH(l, g)
        {
            const hw_cu_node *n = HW_CU_NODE_OF(l);
            for (size_t k = 0; k < n->nneeds; k++) {
                fprintf(f, "  n%u -> n%u;\n", n->needs[k]->mark, n->mark);
            }
        }
    fprintf(f, "}\n");
    return fclose(f) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

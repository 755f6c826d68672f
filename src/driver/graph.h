/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs (private).
 *
 *   graph  nodes, in the order they were added, each with the nodes it depends on.
 *   node   what an entry point described, kept to be told again, and the same checked and ready to run.
 *   exec   a clone of a graph and an order that respects its edges. A launch submits its nodes to one stream in that
 *          order, which is one of the orders a graph allows.
 *
 * As in CUDA, graphs are not locked: one thread at a time works on one.
 */
#ifndef HW_DRIVER_GRAPH_H
#define HW_DRIVER_GRAPH_H

#include "copy.h"
#include "driver.h"
#include "launch.h"

typedef struct hw_cu_graph hw_cu_graph;

typedef struct hw_cu_graph_memory { /* of an allocation node and its clones */
    unsigned refs;
    CUdeviceptr address;
    hw_cu_gpu *gpu;
    uint64_t size;
} hw_cu_graph_memory;

typedef struct hw_cu_node {
    CUgraphNode handle; /* NULL in execs */
    CUgraphNode origin; /* the node this one was cloned from */
    hw_cu_graph *graph;
    CUgraphNodeParams params;
    struct hw_cu_node **needs;
    size_t nneeds;
    bool enabled;
    uint32_t mark;            /* scratch: index, visit state */
    struct hw_cu_node *clone; /* scratch: its copy while cloning */
    hw_cu_launch *launch;     /* KERNEL */
    void **args;              /* KERNEL: addresses into launch, for params.kernel.kernelParams */
    bool cooperative;
    CUlaunchAttributeValue *attributes; /* KERNEL: 16, NULL: none set */
    hw_cu_copy copy;                    /* MEMCPY */
    hw_cu_fill fill;                    /* MEMSET */
    hw_cu_graph *child;                 /* GRAPH: owned */
    hw_cu_graph_memory *memory;         /* MEM_ALLOC */
    hw_cu_link link;
} hw_cu_node;

typedef struct hw_cu_user {
    struct hw_cu_user_object *object;
    unsigned count;
} hw_cu_user;

struct hw_cu_graph {
    CUgraph handle; /* NULL in execs */
    bool is_child;
    hw_cu_link nodes;
    size_t n;
    hw_cu_user *users;
    size_t nusers;
};

/* ---- graph.c ---- */
hw_cu_graph *hw_cu_graph_new(bool with_handle);
void hw_cu_graph_free(hw_cu_graph *g);
CUresult hw_cu_find_graph(CUgraph handle, hw_cu_graph **out);
CUresult hw_cu_find_node(CUgraphNode handle, hw_cu_node **out);
CUresult hw_cu_graph_clone(const hw_cu_graph *g, bool with_handles, hw_cu_graph **out);
/* A new node that depends on n others of g. */
CUresult hw_cu_node_add(hw_cu_graph *g, const CUgraphNode *needs, size_t n,
                        const CUgraphNodeParams *p, hw_cu_node **out);
#define HW_CU_NODE_OF(l) HW_CU_ITEM(l, hw_cu_node, link)
void hw_cu_user_retain(hw_cu_user u);
void hw_cu_user_release(hw_cu_user u);

/* ---- node.c: what depends on a node's type ---- */
/* Make a node what p says; the type must be the node's own, or the node new. */
CUresult hw_cu_node_set(hw_cu_node *n, const CUgraphNodeParams *p);
void hw_cu_node_clear(hw_cu_node *n);
CUresult hw_cu_node_copy(hw_cu_node *to, const hw_cu_node *from);
CUresult hw_cu_node_submit(hw_cu_node *n, hw_cu_stream *s);
void hw_cu_node_take_launch(hw_cu_node *n, hw_cu_launch *l);

/* ---- graph_exec.c ---- */
CUresult hw_cu_graph_submit(hw_cu_graph *g, hw_cu_stream *s);
CUresult hw_cu_find_exec_node(CUgraphExec exec, CUgraphNode original, hw_cu_node **out);

#endif

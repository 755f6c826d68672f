/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs (private).
 *
 *   graph  nodes, in the order they were added, each with the nodes it depends on.
 *   node   what an entry point described, kept to be told again, and the same checked and ready to run.
 *   exec   a clone of a graph and an order that respects its edges. A launch submits its nodes to one stream in that
 *          order, which is one of the orders a graph allows.
 *   condition  what a conditional handle names: a value that kernels set and conditional nodes look at. A conditional
 *          node's bodies are graphs of its own; the node is one task of the stream, which carries them out.
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

typedef struct hw_cu_condition hw_cu_condition;

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
    CUstreamBatchMemOpParams *ops;      /* BATCH_MEM_OP: owned, in params.memOp */
    hw_cu_condition *condition;         /* CONDITIONAL: counted */
    hw_cu_graph **bodies;               /* CONDITIONAL: owned */
    size_t nbodies;
    hw_cu_link link;
} hw_cu_node;

typedef struct hw_cu_user {
    struct hw_cu_user_object *object;
    unsigned count;
} hw_cu_user;

struct hw_cu_graph {
    CUgraph handle; /* NULL in execs */
    bool is_child;
    hw_cu_graph *parent; /* whose node has it; NULL: none */
    hw_cu_link nodes;
    size_t n;
    hw_cu_condition **conditions; /* counted */
    size_t nconditions;
    hw_cu_user *users;
    size_t nusers;
};

/* ---- graph.c ---- */
hw_cu_graph *hw_cu_graph_new(bool with_handle);
void hw_cu_graph_free(hw_cu_graph *g);
CUresult hw_cu_find_graph(CUgraph handle, hw_cu_graph **out);
CUresult hw_cu_find_node(CUgraphNode handle, hw_cu_node **out);
CUresult hw_cu_graph_clone(const hw_cu_graph *g, bool with_handles, hw_cu_graph **out);
CUresult hw_cu_node_clone_into(hw_cu_graph *g, hw_cu_node *n); /* alone, without a handle */
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
/* Carry out now, on this thread, as part of a conditional node on the stream of that number. */
hw_status hw_cu_node_run(hw_cu_node *n, uint32_t stream, hw_fault *fault);
bool hw_cu_node_may_be_in_body(const hw_cu_node *n);
void hw_cu_node_take_launch(hw_cu_node *n, hw_cu_launch *l);

/* ---- memop.c ---- */
CUresult hw_cu_memops_check(hw_cu_context *ctx, const CUstreamBatchMemOpParams *p, unsigned n,
                            unsigned flags);
CUresult hw_cu_memops_submit(hw_cu_stream *s, const CUstreamBatchMemOpParams *p, unsigned n);

/* ---- conditional.c ---- */
CUresult hw_cu_conditional_set(hw_cu_node *n, const CUgraphNodeParams *p);
CUresult hw_cu_conditional_submit(hw_cu_node *n, hw_cu_stream *s);
hw_status hw_cu_conditional_run(hw_cu_node *n, uint32_t stream, hw_fault *fault);
CUresult hw_cu_conditional_copy(hw_cu_node *to, const hw_cu_node *from);
void hw_cu_conditional_clear(hw_cu_node *n);
CUresult hw_cu_conditions_copy(hw_cu_graph *to, const hw_cu_graph *from);
void hw_cu_conditions_drop(hw_cu_graph *g);
/* The graph's defaults, then its nodes. */
hw_status hw_cu_graph_run(hw_cu_graph *g, uint32_t stream, hw_fault *fault);
CUresult hw_cu_conditions_begin(const hw_cu_graph *g,
                                hw_cu_stream *s);                 /* at the start of a launch */
bool hw_cu_graph_has(const hw_cu_graph *g, CUgraphNodeType type); /* at any depth */
/* May the graph be instantiated, as its conditions have it? */
CUresult hw_cu_conditions_check(hw_cu_graph *g, CUgraphInstantiateResult *why, CUgraphNode *where);
void hw_cu_conditions_executable(hw_cu_graph *g, bool yes);

/* ---- graph_exec.c ---- */
CUresult hw_cu_graph_submit(hw_cu_graph *g, hw_cu_stream *s);
CUresult hw_cu_find_exec_node(CUgraphExec exec, CUgraphNode original, hw_cu_node **out);

#endif

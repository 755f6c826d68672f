/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream capture: work given to a stream becomes nodes of a graph. (CUDA Programming Guide, "Creating a Graph Using
 * Stream Capture".)
 *
 *   capture  a graph being made, the stream it began in, the streams that joined it.
 *   tips     of a stream or of a captured event: the nodes the next one will depend on.
 *
 * A stream joins when it waits for an event that was recorded in the capture; before the capture ends all that joined
 * must have been waited for again by the stream it began in.
 */
#include "capture.h"

#include <stdlib.h>

struct hw_cu_capture {
    hw_cu_graph *graph;
    hw_cu_stream *origin;
    hw_cu_context *ctx;
    CUstreamCaptureMode mode;
    uint64_t id;
    pthread_t thread;
    bool own_graph; /* made by the capture: goes if it fails */
    _Atomic bool invalid;
    hw_cu_link link; /* of all that go on */
    hw_cu_tips gone; /* of streams that joined and were destroyed */
};

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CU_TRY(hw_cu_ready());
    CU_NEED(mode && (unsigned)*mode <= CU_STREAM_CAPTURE_MODE_RELAXED, INVALID_VALUE);
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- calls that do not go together with a capture ---- */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static hw_cu_link all = { &all, &all };
static _Atomic unsigned going_on;

static void join_all(hw_cu_capture *c)
{
    pthread_mutex_lock(&all_lock);
    hw_cu_list_add(&all, &c->link);
    atomic_fetch_add(&going_on, 1);
    pthread_mutex_unlock(&all_lock);
}

static void leave_all(hw_cu_capture *c)
{
    pthread_mutex_lock(&all_lock);
    hw_cu_list_remove(&c->link);
    atomic_fetch_sub(&going_on, 1);
    pthread_mutex_unlock(&all_lock);
}

/* Does a capture forbid the calling thread what may be unsafe? (cuThreadExchangeStreamCaptureMode.) */
static bool forbids(const hw_cu_capture *c)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    return pthread_equal(c->thread, pthread_self()) ||
           (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
            c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult hw_cu_capture_unsafe(void)
{
    bool forbidden = false;
    if (!atomic_load_explicit(&going_on, memory_order_relaxed))
        return CUDA_SUCCESS;
    pthread_mutex_lock(&all_lock);
    for (hw_cu_link *l = all.next; l != &all; l = l->next) {
        hw_cu_capture *c = HW_CU_ITEM(l, hw_cu_capture, link);
        if (!forbids(c))
            continue;
        forbidden = true;
        c->invalid = true;
    }
    pthread_mutex_unlock(&all_lock);
    return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/* ---- tips ---- */

static CUresult set_tips(hw_cu_tips *t, const CUgraphNode *nodes, size_t n)
{
    CUgraphNode *copy = malloc((n ? n : 1) * sizeof *copy);
    CU_NEED(copy, OUT_OF_MEMORY);
    if (n)
        memcpy(copy, nodes, n * sizeof *copy);
    free(t->nodes);
    *t = (hw_cu_tips){ copy, n };
    return CUDA_SUCCESS;
}

static CUresult add_tips(hw_cu_tips *t, const CUgraphNode *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool there = false;
        for (size_t k = 0; k < t->n; k++) {
            there |= t->nodes[k] == nodes[i];
        }
        if (there)
            continue;
        CUgraphNode *more = realloc(t->nodes, (t->n + 1) * sizeof *more);
        CU_NEED(more, OUT_OF_MEMORY);
        t->nodes = more;
        t->nodes[t->n++] = nodes[i];
    }
    return CUDA_SUCCESS;
}

void hw_cu_tips_drop(hw_cu_tips *t)
{
    free(t->nodes);
    *t = (hw_cu_tips){ 0 };
}

/* ---- work that becomes a node ---- */

CUresult hw_cu_capture_add(hw_cu_stream *s, const CUgraphNodeParams *p, hw_cu_node **out)
{
    CU_NEED(!s->capture->invalid, STREAM_CAPTURE_INVALIDATED);
    CU_TRY(hw_cu_node_add(s->capture->graph, s->tips.nodes, s->tips.n, p, out));
    return set_tips(&s->tips, &(*out)->handle, 1);
}

/* A node whose work is at hand already: filled in by the caller. */
static CUresult add_ready(hw_cu_stream *s, CUgraphNodeType type, hw_cu_node **out)
{
    const CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
    CU_TRY(hw_cu_capture_add(s, &p, out));
    (*out)->params.type = type;
    return CUDA_SUCCESS;
}

CUresult hw_cu_capture_launch(hw_cu_stream *s, hw_cu_launch *l, bool *done)
{
    hw_cu_node *n;
    *done = s->capture != NULL;
    if (!*done)
        return CUDA_SUCCESS;
    CUresult r = add_ready(s, CU_GRAPH_NODE_TYPE_KERNEL, &n);
    if (r == CUDA_SUCCESS)
        hw_cu_node_take_launch(n, l);
    else
        free(l);
    return r;
}

CUresult hw_cu_capture_copy(hw_cu_stream *s, const hw_cu_copy *c, bool *done)
{
    hw_cu_node *n;
    *done = s->capture != NULL;
    if (!*done)
        return CUDA_SUCCESS;
    CU_TRY(add_ready(s, CU_GRAPH_NODE_TYPE_MEMCPY, &n));
    n->copy = *c;
    n->params.memcpy.copyCtx = s->ctx->handle;
    n->params.memcpy.copyParams = (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = c->src.address,
        .srcPitch = c->src.pitch,
        .srcHeight = c->src.pitch ? c->src.slice / c->src.pitch : 0,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = c->dst.address,
        .dstPitch = c->dst.pitch,
        .dstHeight = c->dst.pitch ? c->dst.slice / c->dst.pitch : 0,
        .WidthInBytes = c->width,
        .Height = c->height,
        .Depth = c->depth,
    };
    return CUDA_SUCCESS;
}

CUresult hw_cu_capture_fill(hw_cu_stream *s, const hw_cu_fill *f, bool *done)
{
    hw_cu_node *n;
    *done = s->capture != NULL;
    if (!*done)
        return CUDA_SUCCESS;
    CU_TRY(add_ready(s, CU_GRAPH_NODE_TYPE_MEMSET, &n));
    n->fill = *f;
    n->params.memset.ctx = s->ctx->handle;
    n->params.memset.p = (CUDA_MEMSET_NODE_PARAMS){ f->address, f->pitch, f->value,
                                                    f->element, f->width, f->height };
    return CUDA_SUCCESS;
}

CUresult hw_cu_capture_graph(hw_cu_stream *s, const hw_cu_graph *g)
{
    hw_cu_node *n;
    CU_NEED(!hw_cu_graph_has(g, CU_GRAPH_NODE_TYPE_CONDITIONAL) &&
                !hw_cu_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC) &&
                !hw_cu_graph_has(g, CU_GRAPH_NODE_TYPE_MEM_FREE),
            NOT_SUPPORTED);
    CU_TRY(add_ready(s, CU_GRAPH_NODE_TYPE_GRAPH, &n));
    CU_TRY(hw_cu_graph_clone(g, true, &n->child));
    n->child->is_child = true;
    n->child->parent = n->graph;
    n->params.graph.graph = n->child->handle;
    return CUDA_SUCCESS;
}

/* ---- events ---- */

/* Threads may record one event at a time, and nearly always outside of captures. */
static CUresult mark_event(hw_cu_event *e, uint64_t capture_id, const hw_cu_tips *tips)
{
    pthread_mutex_lock(&e->ctx->lock);
    hw_cu_tips_drop(&e->tips);
    e->capture_id = capture_id;
    CUresult r = tips ? set_tips(&e->tips, tips->nodes, tips->n) : CUDA_SUCCESS;
    pthread_mutex_unlock(&e->ctx->lock);
    return r;
}

CUresult hw_cu_capture_record(hw_cu_stream *s, hw_cu_event *e, bool external, bool *done)
{
    *done = s->capture != NULL;
    if (*done && !external)
        return mark_event(e, s->capture->id, &s->tips);
    if (e->capture_id)
        mark_event(e, 0, NULL);
    if (!*done)
        return CUDA_SUCCESS;
    const CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                  .eventRecord = { e->handle } };
    hw_cu_node *n;
    return hw_cu_capture_add(s, &p, &n);
}

static hw_cu_capture *capture_by_id(hw_cu_context *ctx, uint64_t id)
{
    hw_cu_capture *found = NULL;
    pthread_mutex_lock(&ctx->lock);
    for (hw_cu_link *l = ctx->streams.next; id && l != &ctx->streams; l = l->next) {
        hw_cu_capture *c = HW_CU_ITEM(l, hw_cu_stream, link)->capture;
        if (c && c->id == id)
            found = c;
    }
    pthread_mutex_unlock(&ctx->lock);
    return found;
}

CUresult hw_cu_capture_wait(hw_cu_stream *s, hw_cu_event *e, bool external, bool *done)
{
    hw_cu_capture *c = capture_by_id(e->ctx, e->capture_id);
    *done = c || s->capture;
    if (!*done)
        return CUDA_SUCCESS;
    if (!c) {
        CU_NEED(external, STREAM_CAPTURE_ISOLATION);
        const CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                                      .eventWait = { e->handle } };
        hw_cu_node *n;
        return hw_cu_capture_add(s, &p, &n);
    }
    CU_NEED(s->handle != CU_STREAM_LEGACY, STREAM_CAPTURE_IMPLICIT);
    CU_NEED(!s->capture || s->capture == c, STREAM_CAPTURE_MERGE);
    if (!s->capture) {
        s->capture = c;
        hw_cu_tips_drop(&s->tips);
    }
    return add_tips(&s->tips, e->tips.nodes, e->tips.n);
}

bool hw_cu_captured(const hw_cu_event *e)
{
    return e->capture_id && capture_by_id(e->ctx, e->capture_id);
}

void hw_cu_capture_invalidate(hw_cu_stream *s)
{
    s->capture->invalid = true;
}

/* ---- beginning and ending ---- */

static bool holds_legacy(const hw_cu_capture *c)
{
    return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
           !(c->origin->flags & CU_STREAM_NON_BLOCKING);
}

static CUresult begin(CUstream handle, hw_cu_graph *g, bool own, const CUgraphNode *tips, size_t n,
                      CUstreamCaptureMode mode)
{
    hw_cu_stream *s;
    CU_NEED((unsigned)mode <= CU_STREAM_CAPTURE_MODE_RELAXED, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream(handle, &s));
    CU_NEED(s->handle != CU_STREAM_LEGACY, STREAM_CAPTURE_UNSUPPORTED);
    CU_NEED(!s->capture, ILLEGAL_STATE);
    hw_cu_capture *c = calloc(1, sizeof *c);
    CU_NEED(c, OUT_OF_MEMORY);
    *c = (hw_cu_capture){ .graph = g, .origin = s, .ctx = s->ctx, .mode = mode, .own_graph = own };
    c->thread = pthread_self();
    c->id = atomic_fetch_add(&hw_cu.next_id, 1) + 1;
    s->capture = c;
    if (holds_legacy(c))
        atomic_fetch_add(&c->ctx->captures, 1);
    join_all(c);
    return set_tips(&s->tips, tips, n);
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    CU_TRY(hw_cu_ready());
    hw_cu_graph *g = hw_cu_graph_new(true);
    CU_NEED(g, OUT_OF_MEMORY);
    CUresult r = begin(stream, g, true, NULL, 0, mode);
    if (r != CUDA_SUCCESS)
        hw_cu_graph_free(g);
    return r;
}

CUresult cuStreamBeginCapture(CUstream stream)
{
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *needs,
                                     const CUgraphEdgeData *edges, size_t n,
                                     CUstreamCaptureMode mode)
{
    hw_cu_graph *g;
    hw_cu_node *node;
    (void)edges;
    CU_TRY(hw_cu_find_graph(graph, &g));
    CU_NEED(needs || !n, INVALID_VALUE);
    for (size_t i = 0; i < n; i++) {
        CU_TRY(hw_cu_find_node(needs[i], &node));
        CU_NEED(node->graph == g, INVALID_VALUE);
    }
    return begin(stream, g, false, needs, n, mode);
}

static void mark_reached(hw_cu_node *n)
{
    if (n->mark)
        return;
    n->mark = 1;
    for (size_t i = 0; i < n->nneeds; i++) {
        mark_reached(n->needs[i]);
    }
}

static void mark_from_origin(const hw_cu_capture *c)
{
    hw_cu_node *n;
    for (hw_cu_link *l = c->graph->nodes.next; l != &c->graph->nodes; l = l->next) {
        HW_CU_NODE_OF(l)->mark = 0;
    }
    for (size_t i = 0; i < c->origin->tips.n; i++) {
        if (hw_cu_find_node(c->origin->tips.nodes[i], &n) == CUDA_SUCCESS)
            mark_reached(n);
    }
}

static bool joined_again(const hw_cu_tips *t)
{
    hw_cu_node *n;
    for (size_t i = 0; i < t->n; i++) {
        if (hw_cu_find_node(t->nodes[i], &n) == CUDA_SUCCESS && !n->mark)
            return false;
    }
    return true;
}

/* All streams leave the capture; did each come back to its origin? */
static bool leave(hw_cu_capture *c)
{
    mark_from_origin(c);
    bool joined = joined_again(&c->gone);
    hw_cu_tips_drop(&c->gone);
    pthread_mutex_lock(&c->ctx->lock);
    for (hw_cu_link *l = c->ctx->streams.next; l != &c->ctx->streams; l = l->next) {
        hw_cu_stream *s = HW_CU_ITEM(l, hw_cu_stream, link);
        if (s->capture != c)
            continue;
        joined &= joined_again(&s->tips);
        s->capture = NULL;
        hw_cu_tips_drop(&s->tips);
    }
    pthread_mutex_unlock(&c->ctx->lock);
    if (holds_legacy(c))
        atomic_fetch_sub(&c->ctx->captures, 1);
    leave_all(c);
    return joined;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
    hw_cu_stream *s;
    CU_TRY(hw_cu_find_stream(handle, &s));
    hw_cu_capture *c = s->capture;
    if (out)
        *out = NULL;
    CU_NEED(c, ILLEGAL_STATE);
    CU_NEED(out || !c->own_graph, INVALID_VALUE); /* else the program has the graph already */
    CU_NEED(c->origin == s, STREAM_CAPTURE_UNMATCHED);
    CU_NEED(c->mode == CU_STREAM_CAPTURE_MODE_RELAXED || pthread_equal(c->thread, pthread_self()),
            STREAM_CAPTURE_WRONG_THREAD);
    CUresult r = leave(c)     ? CUDA_SUCCESS
                 : c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                              : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (c->invalid)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (r == CUDA_SUCCESS && out)
        *out = c->graph->handle;
    if (r != CUDA_SUCCESS && c->own_graph)
        hw_cu_graph_free(c->graph);
    free(c);
    return r;
}

/* A stream is destroyed: if it is where a capture began, the capture ends without a result. */
void hw_cu_capture_forget(hw_cu_stream *s)
{
    hw_cu_capture *c = s->capture;
    if (!c)
        return;
    if (c->origin != s) { /* what it did must be joined all the same */
        add_tips(&c->gone, s->tips.nodes, s->tips.n);
        hw_cu_tips_drop(&s->tips);
        s->capture = NULL;
        return;
    }
    s->capture = NULL;
    hw_cu_tips_drop(&s->tips);
    hw_cu_tips_drop(&c->gone);
    for (hw_cu_link *l = c->ctx->streams.next; l != &c->ctx->streams; l = l->next) {
        hw_cu_stream *o = HW_CU_ITEM(l, hw_cu_stream, link);
        if (o->capture == c) {
            o->capture = NULL;
            hw_cu_tips_drop(&o->tips);
        }
    }
    if (holds_legacy(c))
        atomic_fetch_sub(&c->ctx->captures, 1);
    leave_all(c);
    if (c->own_graph)
        hw_cu_graph_free(c->graph);
    free(c);
}

/* ---- asking ---- */

static CUstreamCaptureStatus status_of(const hw_cu_stream *s)
{
    return !s->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
           : s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    hw_cu_stream *s;
    CU_NEED(status, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream(handle, &s));
    *status = status_of(s);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **needs,
                                   const CUgraphEdgeData **edges, size_t *n)
{
    hw_cu_stream *s;
    CU_NEED(status, INVALID_VALUE);
    CU_TRY(hw_cu_find_stream(handle, &s));
    *status = status_of(s);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (id)
        *id = s->capture->id;
    if (graph)
        *graph = s->capture->graph->handle;
    if (needs)
        *needs = s->tips.nodes;
    if (edges)
        *edges = NULL;
    if (n)
        *n = s->tips.n;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **needs, size_t *n)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, needs, NULL, n);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *nodes,
                                              const CUgraphEdgeData *edges, size_t n,
                                              unsigned int flags)
{
    hw_cu_stream *s;
    hw_cu_node *node;
    (void)edges;
    CU_TRY(hw_cu_find_stream(handle, &s));
    CU_NEED(flags <= 1 && (nodes || !n), INVALID_VALUE);
    CU_NEED(s->capture, ILLEGAL_STATE);
    for (size_t i = 0; i < n; i++) {
        CU_TRY(hw_cu_find_node(nodes[i], &node));
        CU_NEED(node->graph == s->capture->graph, INVALID_VALUE);
    }
    return flags ? set_tips(&s->tips, nodes, n) : add_tips(&s->tips, nodes, n);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t n,
                                           unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, n, flags);
}

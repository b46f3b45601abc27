#include "libcuda/graph.h"

#include <stdlib.h>
#include <string.h>
#include <threads.h>

typedef struct capture {
    CUgraph graph;
    CUstream origin;
    CUstreamCaptureMode mode;
    thrd_t thread;
    bool invalid;
    cuuint64_t id;
} capture;

static CUresult invalidate(capture *c, CUresult why)
{
    c->invalid = true;
    return why;
}

CUresult capture_add(CUstream s, const work *w)
{
    capture *c = s->capture;
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUgraphNode node = graph_add(c->graph, s->tail.items, s->tail.count, w);
    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool early = w->programmatic && s->tail.count == 1 && !s->joined &&
                 s->tail.items[0]->work.type == CU_GRAPH_NODE_TYPE_KERNEL;
    if (early && !node_list_join(c->graph, &node->early, s->tail.items, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->tail = (node_list){ &node->self, 1 };
    s->joined = false;
    return CUDA_SUCCESS;
}

CUresult capture_wait(CUstream s, CUevent e)
{
    capture *c = s->capture;
    if (!e->capture)
        return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (c && c != e->capture)
        return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    if (e->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!c)
        s->tail = e->at;
    else if (!node_list_join(c->graph, &s->tail, e->at.items, e->at.count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->capture = e->capture;
    s->joined = true;
    return CUDA_SUCCESS;
}

CUresult capture_refuses(CUcontext context, refused_call call)
{
    CUstreamCaptureMode mode = this_thread()->capture_mode;
    for (CUstream s = NULL; (s = handle_next(STREAM_HANDLE, s));) {
        capture *c = s->handle.context == context ? s->capture : NULL;
        if (!c)
            continue;
        /* the rules of cuThreadExchangeStreamCaptureMode */
        bool relaxed =
            mode == CU_STREAM_CAPTURE_MODE_RELAXED || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED;
        bool global =
            mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        bool unsafe = !relaxed && (global || thrd_equal(c->thread, thrd_current()));
        if (unsafe || call == WAITING_CALL)
            return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return CUDA_SUCCESS;
}

CUresult stream_ready(CUcontext c, CUstream named, CUstream *stream)
{
    CUresult r = stream_find(c, named, stream);
    if (r || *stream != c->null_stream)
        return r;
    for (CUstream s = NULL; (s = handle_next(STREAM_HANDLE, s));)
        if (s->handle.context == c && s->capture && !(s->flags & CU_STREAM_NON_BLOCKING))
            return invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return CUDA_SUCCESS;
}

CUresult stream_submit(CUcontext c, CUstream named, const work *w)
{
    CUstream s;
    CUresult r = stream_ready(c, named, &s);
    r = r ? r : work_check(w);
    if (r)
        return r;
    return s->capture ? capture_add(s, w) : work_run(c, s, driver.overlaps, w);
}

CUresult stream_record(CUcontext c, CUstream named, CUevent e)
{
    CUstream s;
    CUresult r = stream_ready(c, named, &s);
    if (r)
        return r;
    if (s->capture && s->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    e->capture = s->capture;
    if (s->capture) {
        e->captured = true;
        e->at = s->tail;
    } else {
        event_stamp(e);
    }
    return CUDA_SUCCESS;
}

CUresult capture_begin(CUcontext context, CUstream named, CUstreamCaptureMode mode)
{
    CUstream s;
    CUresult r = stream_find(context, named, &s);
    if (r)
        return r;
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (s == context->null_stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    capture *c = calloc(1, sizeof *c);
    CUgraph graph = c ? graph_new() : NULL;
    if (!graph) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *c = (capture){
        .graph = graph, .origin = s, .mode = mode, .thread = thrd_current(), .id = ++driver.counted
    };
    graph->captured = true;
    s->capture = c;
    s->tail = (node_list){ 0 };
    s->joined = false;
    return CUDA_SUCCESS;
}

static void finish_capture(capture *c)
{
    for (CUstream s = NULL; (s = handle_next(STREAM_HANDLE, s));)
        if (s->capture == c)
            s->capture = NULL;
    for (CUevent e = NULL; (e = handle_next(EVENT_HANDLE, e));)
        if (e->capture == c)
            e->capture = NULL;
    free(c);
}

void stream_destroy(CUstream s)
{
    capture *c = s->capture;
    if (c)
        c->invalid = true;
    if (c && c->origin == s) {
        graph_free(c->graph);
        finish_capture(c);
    }
    handle_free(s);
}

CUresult capture_end(CUcontext context, CUstream named, CUgraph *graph)
{
    CUstream s;
    CUresult r = graph ? stream_find(context, named, &s) : CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    capture *c = s->capture;
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s)
        return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !thrd_equal(c->thread, thrd_current()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    graph_mark_needed(c->graph, s->tail); /* nodes of other streams must be predecessors of these */
    for (CUstream other = NULL; (other = handle_next(STREAM_HANDLE, other));)
        for (size_t i = 0; other->capture == c && i < other->tail.count; i++)
            if (!other->tail.items[i]->marked)
                r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    r = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : r;
    c->graph->captured = false;
    *graph = r ? NULL : c->graph;
    if (r)
        graph_free(c->graph);
    finish_capture(c);
    return r;
}

CUstreamCaptureStatus capture_status(CUstream s)
{
    return !s->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
           : s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult capture_describe(CUstream s, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                          const CUgraphNode **dependencies, const CUgraphEdgeData **edges,
                          size_t *count)
{
    CUstreamCaptureStatus now = capture_status(s);
    const capture *c = now == CU_STREAM_CAPTURE_STATUS_ACTIVE ? s->capture : NULL;
    node_list tail = c ? s->tail : (node_list){ 0 };
    CUgraphEdgeData *plain = NULL;
    if (c && edges) {
        plain = arena_try_alloc(c->graph->handle.arena, (tail.count + 1) * sizeof *plain);
        if (!plain)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memset(plain, 0, tail.count * sizeof *plain);
    }
    *status = now;
    GIVE(id, c ? c->id : 0);
    GIVE(graph, c ? c->graph : NULL);
    GIVE(dependencies, tail.items);
    GIVE(edges, plain);
    GIVE(count, tail.count);
    return CUDA_SUCCESS;
}

CUresult capture_depend(CUstream s, const CUgraphNode *nodes, size_t count, bool replace)
{
    capture *c = s->capture;
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (size_t i = 0; i < count; i++)
        if (!is_node(nodes[i]) || nodes[i]->graph != c->graph)
            return CUDA_ERROR_INVALID_VALUE;
    node_list tail = replace ? (node_list){ 0 } : s->tail;
    if (!node_list_join(c->graph, &tail, nodes, count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->tail = tail;
    return CUDA_SUCCESS;
}

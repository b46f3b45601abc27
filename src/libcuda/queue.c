#include "libcuda/queue.h"

#include <stdlib.h>

#include "libcuda/launch.h"
#include "libcuda/stream.h"

enum { MOST_QUEUED = 4096 };

typedef struct launch_queue {
    deferred deferred;
    CUcontext context;
    const void *of;
    arena *arena;
    emu_stream *stream;
    VEC(CUfunction) functions; /* of the launches */
} launch_queue;

static CUresult run(void *context)
{
    launch_queue *q = context;
    emu_report report;
    if (emu_stream_finish(q->stream, &report))
        return CUDA_SUCCESS;
    bool two = report.fault == EMU_RACE && report.other_line;
    return launch_fail(q->context, q->functions.items[report.launch],
                       two ? q->functions.items[report.other_launch] : NULL, &report);
}

static void free_queue(launch_queue *q)
{
    emu_stream_free(q->stream);
    arena_free(q->arena);
    free(q);
}

/* What a kernel did wrong is the context's to say, as after any launch that was not waited for. */
static CUresult finish(deferred *d)
{
    launch_queue *q = (launch_queue *)(void *)d;
    driver_take_out(d);
    CUresult r = driver_try(run, q);
    free_queue(q);
    return r == CUDA_ERROR_OUT_OF_MEMORY ? r : CUDA_SUCCESS;
}

CUresult queue_finish(void)
{
    CUresult r = CUDA_SUCCESS;
    while (!r && driver_deferred())
        r = finish(driver_deferred());
    return r;
}

static CUresult make_stream(void *context)
{
    launch_queue *q = context;
    const char *order = setting("PTXGEN_CUDA_ORDER");
    q->stream = emu_stream_new(
        device_memory(), &(emu_stream_config){ .order = order ? strtoull(order, NULL, 10) : 0 });
    return CUDA_SUCCESS;
}

static CUresult make_queue(CUcontext c, const void *of, launch_queue **made)
{
    launch_queue *q = calloc(1, sizeof *q);
    if (!q)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *q = (launch_queue){
        .deferred = { .done = finish }, .context = c, .of = of, .arena = driver_arena()
    };
    CUresult r = q->arena ? driver_try(make_stream, q) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        free_queue(q);
        return r;
    }
    driver_defer(&q->deferred);
    *made = q;
    return CUDA_SUCCESS;
}

typedef struct addition {
    launch_queue *to;
    const work *launch;
} addition;

static CUresult add(void *context)
{
    const addition *a = context;
    const work *w = a->launch;
    *VEC_PUSH(a->to->arena, &a->to->functions) = launch_function(&w->as.launch);
    a->to->functions.count--; /* until the launch is there as well */
    CUresult r =
        launch_add(a->to->context, a->to->stream, &w->as.launch, w->programmatic, w->cooperative);
    a->to->functions.count += !r;
    return r;
}

/* Whether the null stream is one of two, and has an order with the other. */
static bool are_ordered(const void *of, const void *other)
{
    if (!handle_is(of, STREAM_HANDLE) || !handle_is(other, STREAM_HANDLE))
        return true;
    const struct CUstream_st *a = of, *b = other;
    CUcontext c = a->handle.context;
    return c == b->handle.context && (a == c->null_stream || b == c->null_stream) &&
           !((a->flags | b->flags) & CU_STREAM_NON_BLOCKING);
}

/* The queue of a stream or graph launch, once all are done that have an order with it; NULL: there
 * is none yet. */
static CUresult find_queue(const void *of, launch_queue **found)
{
    *found = NULL;
    CUresult r = CUDA_SUCCESS;
    deferred *next;
    for (deferred *d = driver_deferred(); !r && d; d = next) {
        launch_queue *q = (launch_queue *)(void *)d;
        next = d->next;
        if (q->of == of)
            *found = q;
        else if (are_ordered(of, q->of))
            r = finish(d);
    }
    return r;
}

CUresult queue_launch(CUcontext c, const void *of, const work *w)
{
    launch_queue *q;
    CUresult r = find_queue(of, &q);
    if (!r && q && (!w->programmatic || q->functions.count == MOST_QUEUED)) {
        r = finish(&q->deferred);
        q = NULL;
    }
    r = r ? r : c->failure;
    if (!r && !q)
        r = make_queue(c, of, &q);
    r = r ? r : driver_try(add, &(addition){ q, w });
    if (r || !w->cooperative)
        return r;
    r = finish(&q->deferred);
    return r ? r : c->failure;
}

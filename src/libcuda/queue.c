#include "libcuda/launch.h"

#include <stdlib.h>

enum { MOST_QUEUED = 4096 };

typedef struct launch_queue {
    struct launch_queue *next; /* next queue, younger */
    CUcontext context;
    const void *of;
    arena *arena;
    emu_stream *stream;
    VEC(CUfunction) functions; /* one per launch */
} launch_queue;

static CUresult run_queue(void *context)
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

/* Runs a queue. A kernel fault is stored in the context, not returned. */
static CUresult finish_queue(launch_queue *q)
{
    launch_queue **at = &driver.queues;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    CUresult r = driver_try(run_queue, q);
    free_queue(q);
    return r == CUDA_ERROR_OUT_OF_MEMORY ? r : CUDA_SUCCESS;
}

CUresult queue_finish(void)
{
    CUresult r = CUDA_SUCCESS;
    while (!r && driver.queues)
        r = finish_queue(driver.queues);
    return r;
}

static CUresult make_stream(void *context)
{
    launch_queue *q = context;
    const char *order = setting("PTXGEN_CUDA_ORDER");
    q->stream = emu_stream_new(
        driver.memory, &(emu_stream_config){ .order = order ? strtoull(order, NULL, 10) : 0 });
    return CUDA_SUCCESS;
}

static CUresult make_queue(CUcontext c, const void *of, launch_queue **made)
{
    launch_queue *q = calloc(1, sizeof *q), **end = &driver.queues;
    if (!q)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *q = (launch_queue){ .context = c, .of = of, .arena = driver_arena() };
    if (!q->arena || driver_try(make_stream, q)) {
        free_queue(q);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    while (*end)
        end = &(*end)->next;
    *end = *made = q;
    return CUDA_SUCCESS;
}

typedef struct addition {
    launch_queue *to;
    queued_launch launch;
} addition;

static CUresult add_launch(void *context)
{
    const addition *a = context;
    launch_queue *q = a->to;
    const CUDA_KERNEL_NODE_PARAMS *l = a->launch.params;
    *VEC_PUSH(q->arena, &q->functions) = launch_function(l);
    q->functions.count--; /* counted only after the launch was added */
    CUresult r =
        launch_add(q->context, q->stream, l, a->launch.programmatic, a->launch.cooperative);
    q->functions.count += !r;
    return r;
}

/* Returns true if two streams are ordered: one is the null stream and the other is blocking.
 * Anything but two streams counts as ordered. */
static bool are_ordered(const void *of, const void *other)
{
    if (!handle_is(of, STREAM_HANDLE) || !handle_is(other, STREAM_HANDLE))
        return true;
    const struct CUstream_st *a = of, *b = other;
    CUcontext c = a->handle.context;
    return c == b->handle.context && (a == c->null_stream || b == c->null_stream) &&
           !((a->flags | b->flags) & CU_STREAM_NON_BLOCKING);
}

CUresult queue_launch(CUcontext c, const void *of, queued_launch launch)
{
    launch_queue *q = NULL, *next;
    CUresult r = CUDA_SUCCESS;
    for (launch_queue *other = driver.queues; !r && other; other = next) {
        next = other->next;
        if (other->of == of)
            q = other;
        else if (are_ordered(of, other->of))
            r = finish_queue(other);
    }
    if (!r && q && (!launch.programmatic || q->functions.count == MOST_QUEUED)) {
        r = finish_queue(q);
        q = NULL;
    }
    r = r ? r : c->failure;
    if (!r && !q)
        r = make_queue(c, of, &q);
    r = r ? r : driver_try(add_launch, &(addition){ q, launch });
    if (r || !launch.cooperative)
        return r;
    r = finish_queue(q);
    return r ? r : c->failure;
}

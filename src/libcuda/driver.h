/* State of the emulated CUDA driver: one device, its memory, and the objects behind the handles of
 * the API. Contexts own the other objects. Streams and events are declared here, too.
 *
 * A driver library is global by nature, so this is the only part of the project with process-wide
 * state. All of it is in driver.c, under one lock. The entry points are generated from the tables
 * in entry/ (see entry_points.def). They take and release the lock, so other code needs no
 * synchronization.
 *
 * A launch passes through these files in this order:
 *   entry/launch   parses the launch attributes
 *   capture        adds the launch to a graph if its stream is being captured
 *   work           checks it
 *   queue          defers it if later launches may overlap with it
 *   launch         runs it on the emulator
 *
 * Work in a stream is complete when the call that submits it returns, as with
 * CUDA_LAUNCH_BLOCKING=1. So a stream is only an order and, during capture, a position in a graph.
 * An event is the time of its record, or such a position. Launches are deferred only if the program
 * uses programmatic dependent launches. Deferred launches run before the next call that is neither
 * a launch nor a query (see launch.h). */
#pragma once

#include <stdbool.h>

#include "emu/emu.h"
#include "libcuda/api.h"
#include "kernel/target.h"

enum {
    SM_COUNT = 2,
    DEVICE_MEMORY_GIB = 16,
    WARP_THREADS = 32,
    LEAST_DEPENDENT_SM = 90, /* first SM version with programmatic dependent launches */
    SHARED_WITHOUT_OPT_IN = 48 * 1024,
    MOST_PUSHED = 32,
    CONTEXT_LIMITS = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1,
    STREAM_ATTRIBUTES = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN + 1,
    GREATEST_PRIORITY = -5,
};
#define DEVICE_MEMORY_BYTES ((size_t)DEVICE_MEMORY_GIB << 30)

typedef enum handle_kind {
    CONTEXT_HANDLE,
    MODULE_HANDLE,
    FUNCTION_HANDLE,
    STREAM_HANDLE,
    EVENT_HANDLE,
    BUFFER_HANDLE, /* an allocation; programs name it by its address */
    GRAPH_HANDLE,
    EXEC_HANDLE,
    LINK_HANDLE,
    POOL_HANDLE,
    RESERVATION_HANDLE,
    PHYSICAL_HANDLE,
    MAPPING_HANDLE,
    HANDLE_KINDS
} handle_kind;

/* The first member of every object that a program can name. Handles are looked up among the live
 * objects, so the handle of a destroyed object is an error, not a crash. */
typedef struct handle {
    struct handle *next, *previous; /* live objects of this kind, newest first */
    struct handle *chain;           /* next handle in the hash bucket */
    handle_kind kind;
    CUcontext context; /* NULL: no context owns it */
    arena *arena;      /* freed with the handle; may be NULL */
} handle;

/* Creates a zeroed object, with or without its own arena. Returns NULL if memory runs out. */
void *handle_new(handle_kind kind, size_t size, CUcontext context);
void *handle_new_with_arena(handle_kind kind, size_t size, CUcontext context);
void handle_free(void *object);
bool handle_is(const void *object, handle_kind kind);

/* Returns the next live object of a kind after `after`, or the first for NULL; NULL at the end. */
void *handle_next(handle_kind kind, const void *after);

static inline CUresult check_handle(const void *object, handle_kind kind)
{
    return handle_is(object, kind) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static inline CUresult check_value(bool valid)
{
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

struct CUctx_st {
    handle handle;
    CUresult failure; /* error of the first kernel that failed; every later call returns it */
    unsigned flags;
    uint64_t id;
    unsigned attached; /* calls of cuCtxAttach minus calls of cuCtxDetach */
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    size_t limits[CONTEXT_LIMITS]; /* by CU_LIMIT_…; only the stack size is enforced */
    unsigned retained;             /* retain count of the primary context, otherwise 0 */
    bool primary;
    CUstream null_stream;   /* the stream of NULL and CU_STREAM_LEGACY */
    CUstream thread_stream; /* the stream of CU_STREAM_PER_THREAD, shared by all threads */
};

typedef struct node_list {
    CUgraphNode *items;
    size_t count;
} node_list;

struct CUstream_st {
    handle handle;
    unsigned flags;
    uint64_t id;
    int priority;
    CUstreamAttrValue attributes[STREAM_ATTRIBUTES]; /* hints by attribute id, without effect */
    struct capture *capture;                         /* its capture, or NULL */
    node_list tail; /* during capture: nodes that the next node depends on */
    bool joined;    /* tail includes an event's nodes: no programmatic edge is possible */
};

struct CUevent_st {
    handle handle;
    unsigned flags;
    bool recorded, captured; /* captured: last recorded during a capture, so without a time */
    uint64_t nanoseconds;    /* host clock at the record */
    struct capture *capture; /* active capture that it was recorded in, or NULL */
    node_list at;
};

int stream_priority(int wish); /* clamps to the supported range */
CUstream stream_new(CUcontext c, unsigned flags, int priority);

/* Finds a stream by its handle; NULL and CU_STREAM_* name the default streams. */
CUresult stream_find(CUcontext c, CUstream named, CUstream *stream);

void event_stamp(CUevent e); /* records the event at the current time */

static inline CUresult check_made(const void *object)
{
    return object ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Stores a value through a pointer that may be NULL. */
#define GIVE(place, value) ((void)((place) ? *(place) = (value) : (value)))

/* State shared by the library's files. Access it only with the lock held. */
extern struct driver {
    const target *target; /* target of the device; NULL before cuInit */
    emu_memory *memory;
    emu_checks checks;           /* from PTXGEN_CUDA_CHECKS; zero until the first launch */
    struct launch_queue *queues; /* queues of deferred launches, oldest first */
    bool overlaps;               /* the program uses programmatic dependent launches */
    uint64_t counted;            /* last id given to an object */
} driver;

/* Takes the lock, on failure too. Returns CUDA_ERROR_NOT_INITIALIZED before cuInit, and
 * CUDA_ERROR_OUT_OF_MEMORY if the state of a new thread cannot be allocated. */
CUresult driver_enter(void);

CUresult leave(CUresult result); /* releases the lock and returns result */

typedef struct thread_state {
    CUcontext pushed[MOST_PUSHED]; /* the last one is the current context */
    unsigned count;
    CUstreamCaptureMode capture_mode;
} thread_state;
thread_state *this_thread(void); /* never NULL after driver_enter succeeded */

/* Initializes the driver once for target t. Returns CUDA_ERROR_NO_DEVICE if t is NULL. */
CUresult driver_start(const target *t);

unsigned driver_threads(void); /* threads that run the blocks of a launch: PTXGEN_CUDA_THREADS */

/* Returns the zeroed device memory for grid barriers of a cooperative launch. Call it inside
 * driver_try. One workspace is enough because cooperative launches do not overlap. */
uint64_t driver_workspace(void);

arena *driver_arena(void); /* creates an arena; NULL if memory runs out */

/* Buffers text that a kernel prints. driver_write_printed writes the buffer to standard output. */
void driver_print(void *unused, const char *text, size_t length);
void driver_write_printed(void);

/* Returns work(context). If an allocation in work fails, work is abandoned and the result is
 * CUDA_ERROR_OUT_OF_MEMORY (see arena_try). Device memory and arenas may be allocated only inside;
 * outside, use arena_try_alloc. */
CUresult driver_try(CUresult (*work)(void *context), void *context);

/* Writes a line to standard error, prefixed with the library's name. */
void say(const char *format, ...) PRINTF_LIKE(1, 2);

/* Returns the value of an environment variable, or NULL if it is unset or empty. */
const char *setting(const char *name);

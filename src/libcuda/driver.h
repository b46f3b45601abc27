/* The state behind the driver API: one device, its memory, and the objects that programs hold
 * handles of. Contexts own the others, and streams and events are here as well.
 *
 * A driver library is global by nature: this is the one part of the project that has state of the
 * process, all of it in driver.c and under one lock. The functions that programs call are in
 * entry/: the tables there (entry_points.def) generate them, with the lock taken and given back,
 * so that no other code needs a thought of threads.
 *
 * A launch goes one way through the files: entry/launch, capture (which puts it into a graph if its
 * stream is captured), work, queue (which keeps it if later launches may overlap with it), launch,
 * and the emulator.
 *
 * Work in streams is done before the call that submits it returns, as if every launch were
 * followed by a synchronisation (CUDA_LAUNCH_BLOCKING=1 on a device). So a stream is no more than
 * an order and, while it is captured, a place in a graph; an event is the time at which it was
 * recorded, or such a place. Once the program has to do with programmatic dependent launches,
 * launches are deferred, for others to overlap with: they run before the next call that neither
 * adds to them nor only asks something (see launch.h). */
#ifndef PTXGEN_LIBCUDA_DRIVER_H
#define PTXGEN_LIBCUDA_DRIVER_H

#include <stdbool.h>

#include "emu/emu.h"
#include "libcuda/api.h"
#include "kernel/target.h"

enum {
    SM_COUNT = 2,
    DEVICE_MEMORY_GIB = 16,
    WARP_THREADS = 32,
    LEAST_DEPENDENT_SM = 90, /* that has programmatic dependent launches */
    SHARED_WITHOUT_ASKING = 48 * 1024,
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
    BUFFER_HANDLE, /* an allocation, which programs know by its address */
    GRAPH_HANDLE,
    EXEC_HANDLE,
    LINK_HANDLE,
    POOL_HANDLE,
    RESERVATION_HANDLE,
    PHYSICAL_HANDLE,
    MAPPING_HANDLE,
    HANDLE_KINDS
} handle_kind;

/* The first member of every object that a program can name. A handle is looked up among the live
 * ones, so that the handle of a destroyed object is an error and not a crash. */
typedef struct handle {
    struct handle *next, *previous; /* of the live ones of its kind, the newest first */
    struct handle *chain;           /* the next one of the same hash */
    handle_kind kind;
    CUcontext context; /* NULL: it belongs to none */
    arena *arena;      /* freed with the handle, or NULL */
} handle;

/* Make an object of size bytes, all zero, without or with an arena. NULL: there is no memory. */
void *handle_new(handle_kind kind, size_t size, CUcontext context);
void *handle_new_with_arena(handle_kind kind, size_t size, CUcontext context);
void handle_free(void *object);
bool handle_is(const void *object, handle_kind kind);

/* Returns the first live object of a kind after another one (NULL: of all), or NULL. */
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
    CUresult failure; /* of the first kernel that failed: every later call returns it */
    unsigned flags;
    uint64_t id;
    unsigned attached; /* calls of cuCtxAttach that cuCtxDetach has not taken back */
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    size_t limits[CONTEXT_LIMITS]; /* by CU_LIMIT_…: only the stack's is ever reached */
    unsigned retained;             /* of the primary context: 0 otherwise */
    bool primary;
    CUstream null_stream;   /* NULL and CU_STREAM_LEGACY */
    CUstream thread_stream; /* CU_STREAM_PER_THREAD, of all threads */
};

/* Nodes of a graph. */
typedef struct node_list {
    CUgraphNode *items;
    size_t count;
} node_list;

struct CUstream_st {
    handle handle;
    unsigned flags;
    uint64_t id;
    int priority;
    CUstreamAttrValue attributes[STREAM_ATTRIBUTES]; /* by id: hints, which are kept */
    struct capture *capture;                         /* that it takes part in, or NULL */
    node_list tail; /* of the capture: what the next node depends on, */
    bool joined;    /* and that an event is part of it: a programmatic launch comes after all */
};

struct CUevent_st {
    handle handle;
    unsigned flags;
    bool recorded, captured; /* captured: last recorded in a capture, so that it has no time */
    uint64_t nanoseconds;    /* by the host's clock */
    struct capture *capture; /* that it was recorded in, while that goes on */
    node_list at;
};

int stream_priority(int wish); /* the nearest one that there is */
CUstream stream_new(CUcontext c, unsigned flags, int priority);

/* Finds the stream that a handle names in a context, also by the three that need no object. */
CUresult stream_find(CUcontext c, CUstream named, CUstream *stream);

void event_stamp(CUevent e); /* records it now */

static inline CUresult check_made(const void *object)
{
    return object ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Gives a value to a place that may be NULL. */
#define GIVE(place, value) ((void)((place) ? *(place) = (value) : (value)))

/* The state that other files use, with the lock held. */
extern struct driver {
    const target *target; /* of the device; NULL before cuInit */
    emu_memory *memory;
    emu_checks checks;           /* as PTXGEN_CUDA_CHECKS says, for launch.c; all zero at first */
    struct launch_queue *queues; /* of deferred launches, for queue.c: the oldest */
    bool overlaps;               /* the program has to do with programmatic dependent launches */
    uint64_t counted;            /* numbers that were given to objects */
} driver;

/* Takes the lock, whatever it returns: CUDA_ERROR_NOT_INITIALIZED before cuInit, and
 * CUDA_ERROR_OUT_OF_MEMORY for a thread that calls first when there is none left. */
CUresult driver_enter(void);

CUresult leave(CUresult result); /* gives the lock back and returns the result */

typedef struct thread_state {
    CUcontext pushed[MOST_PUSHED]; /* contexts; the last is the current one */
    unsigned count;
    CUstreamCaptureMode capture_mode;
} thread_state;
thread_state *this_thread(void); /* never NULL once it has the lock */

/* Makes what the driver needs, for a device that is a target (NULL: there is none). The first
 * target stays. */
CUresult driver_start(const target *t);

unsigned driver_threads(void); /* that run the blocks of a launch: PTXGEN_CUDA_THREADS */

/* Returns zeroed device memory where the blocks of a cooperative launch meet, inside of driver_try.
 * Such launches run one after another. */
uint64_t driver_workspace(void);

arena *driver_arena(void); /* a new one, or NULL if there is no memory */

/* Keeps what a kernel prints for driver_write_printed, which writes it to standard output. */
void driver_print(void *unused, const char *text, size_t length);
void driver_write_printed(void);

/* Returns work(context), which may use device_memory and arenas as if memory had no end. If it has,
 * work stops there (see arena_try) and the result is CUDA_ERROR_OUT_OF_MEMORY. Outside of it only
 * arena_try_alloc may be used. */
CUresult driver_try(CUresult (*work)(void *context), void *context);

/* Writes a line on standard error, after the library's name. */
void say(const char *format, ...) PRINTF_LIKE(1, 2);

/* Returns the value of an environment variable; NULL if it is not set or empty. */
const char *setting(const char *name);

#endif

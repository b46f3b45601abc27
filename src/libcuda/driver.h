/* The state behind the driver API: one device, its memory, and the objects that programs hold
 * handles of.
 *
 * A driver library is global by nature: this is the one part of the project that has state of the
 * process, all of it in driver.c and under one lock. The functions that programs call stand in
 * entry/, and no file of the library calls those of another. Each is
 *
 *     CUcontext c;
 *     CUresult r = enter_context(&c);          takes the lock
 *     return leave(r ? r : work(c, ...));      gives it back
 *
 * so that all that is beside that folder runs with the lock held and needs no thought of threads.
 * Work in streams is done before the call that submits it returns, as if every launch were
 * followed by a synchronisation (CUDA_LAUNCH_BLOCKING=1 on a device). Once the program has to do
 * with programmatic dependent launches, launches are deferred, for others to overlap with: they are
 * done before the next call does anything but add to them, or ask what they do not change (see
 * queue.h).
 */
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
    MOST_PUSHED = 32
};
#define DEVICE_MEMORY_BYTES ((size_t)DEVICE_MEMORY_GIB << 30)

typedef enum handle_kind {
    CONTEXT_HANDLE,
    MODULE_HANDLE,
    FUNCTION_HANDLE,
    STREAM_HANDLE,
    EVENT_HANDLE,
    BUFFER_HANDLE, /* an allocation; programs know it by its address */
    GRAPH_HANDLE,
    NODE_HANDLE,
    EXEC_HANDLE,
    LINK_HANDLE,
    POOL_HANDLE,
    RESERVATION_HANDLE,
    PHYSICAL_HANDLE,
    MAPPING_HANDLE,
} handle_kind;

/* The first member of every object that a program can name. A handle is looked up among the live
 * ones, so that the handle of a destroyed object is an error and not a crash. */
typedef struct handle {
    struct handle *next, *previous; /* of all live ones, the newest first */
    struct handle *chain;           /* the next one of the same hash */
    handle_kind kind;
    CUcontext context; /* that it goes with; NULL: of none */
} handle;

/* size bytes set to zero, an object of this kind; NULL when there is no memory. */
void *handle_new(handle_kind kind, size_t size, CUcontext context);
void handle_free(void *object);
bool handle_is(const void *object, handle_kind kind);

/* The first live object of a kind behind after (NULL: from the start), or NULL. */
void *handle_next(handle_kind kind, const void *after);

/* Takes the lock, whatever it returns: CUDA_ERROR_NOT_INITIALIZED before cuInit, and
 * CUDA_ERROR_OUT_OF_MEMORY for a thread that calls first when there is none left, or for the work
 * that was deferred. */
CUresult enter(void);

/* The same for a call that may add to the work that was deferred, which is left alone. */
CUresult enter_to_add(void);

/* The same for a call that a device answers, too, without waiting for what it does: for a question
 * of what such work does not change, or for a new object that it does not know. */
CUresult enter_to_ask(void);

/* Work for the next call of enter, the one that was deferred first ahead of others. done is called
 * once, takes it out and may free it. */
typedef struct deferred {
    struct deferred *next;
    CUresult (*done)(struct deferred *d);
} deferred;
deferred *driver_deferred(void); /* the first; NULL: there is none */
void driver_defer(deferred *d);
void driver_take_out(deferred *d);

/* The program has to do with programmatic dependent launches, from the first call on. */
void driver_overlap(void);
bool driver_overlaps(void);
CUresult leave(CUresult result);

/* What each thread has of its own; never NULL behind enter. */
typedef struct thread_state {
    CUcontext pushed[MOST_PUSHED]; /* contexts; the last is the current one */
    unsigned count;
    CUstreamCaptureMode capture_mode;
} thread_state;
thread_state *this_thread(void);

/* 1, 2, 3 and so on. */
uint64_t driver_count(void);

/* What cuInit does: makes what the driver needs, for a device that is a target, or NULL: there is
 * none. The first one stays. */
CUresult driver_start(const target *t);
const target *device_target(void);
emu_memory *device_memory(void);

/* Room for what checks.h gives; all zero at first. */
emu_checks *device_checks(void);

/* On how many threads the blocks of a launch run: PTXGEN_CUDA_THREADS. */
unsigned driver_threads(void);

/* Where the blocks of a cooperative launch meet: zeros, inside of driver_try. Its launches run one
 * after another. */
uint64_t driver_workspace(void);

/* An arena for an object, or NULL where there is no memory. */
arena *driver_arena(void);

/* What a kernel prints, which comes to standard output with the next call that may wait for it. */
void driver_print(void *unused, const char *text, size_t length);

/* Calls work(context), which may use device_memory and arenas of objects as if memory had no end:
 * where it has, CUDA_ERROR_OUT_OF_MEMORY comes back and work has stopped there (see arena_try), and
 * otherwise what work returns. Outside of it only arena_try_alloc may be used. */
CUresult driver_try(CUresult (*work)(void *context), void *context);

/* One line on standard error, which starts with the library's name. */
void say(const char *format, ...) PRINTF_LIKE(1, 2);

/* NULL where the environment variable is not set or empty. */
const char *setting(const char *name);

#endif

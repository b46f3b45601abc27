/* The state behind the driver API: one device, its memory, and the objects that programs hold
 * handles of.
 *
 * A driver library is global by nature: this is the one part of the project that has state of the
 * process, all of it in driver.c and under one lock. Every entry point is
 *
 *     CUcontext c;
 *     CUresult r = enter_context(&c);          takes the lock
 *     return leave(r ? r : work(c, ...));      gives it back
 *
 * so that functions that are no entry points run with the lock held and need no thought of threads.
 * Work in streams is done before the call that submits it returns, as if every launch were
 * followed by a synchronisation (CUDA_LAUNCH_BLOCKING=1 on a device).
 */
#ifndef PTXGEN_LIBCUDA_DRIVER_H
#define PTXGEN_LIBCUDA_DRIVER_H

#include <stdbool.h>

#include "emu/emu.h"
#include "libcuda/api.h"
#include "target.h"

enum { SM_COUNT = 2, DEVICE_MEMORY_GIB = 16, WARP_THREADS = 32, SHARED_WITHOUT_ASKING = 48 * 1024 };
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
} handle_kind;

/* The first member of every object that a program can name. A handle is checked by looking for it
 * among the live ones, so that one of a destroyed object is an error and not a crash. */
typedef struct handle {
    struct handle *next, *previous;
    handle_kind kind;
    CUcontext context; /* that it goes with; NULL: of none */
} handle;

/* size bytes set to zero, an object of this kind; NULL when there is no memory. */
void *handle_new(handle_kind kind, size_t size, CUcontext context);
void handle_free(void *object);
bool handle_is(const void *object, handle_kind kind);

/* The first live object of a kind behind after (NULL: from the start), or NULL. */
void *handle_next(handle_kind kind, const void *after);

/* Take the lock, whatever they return, and say CUDA_ERROR_NOT_INITIALIZED before cuInit.
 * enter_context also finds the thread's current context: CUDA_ERROR_INVALID_CONTEXT where there is
 * none, and where a kernel of it failed what that kernel's launch returned. */
CUresult enter(void);
CUresult enter_context(CUcontext *context);
CUresult leave(CUresult result);

/* For cuInit alone: enter without its check, and what the check asks for. */
void lock_driver(void);
void set_initialised(void);

const target *device_target(void);
void device_set_target(const target *t);
emu_memory *device_memory(void);

/* One line on standard error, which starts with the library's name. */
void say(const char *format, ...) PRINTF_LIKE(1, 2);

/* NULL where the environment variable is not set or empty. */
const char *setting(const char *name);

#endif

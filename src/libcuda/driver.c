#include "libcuda/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "base/os_process.h"

struct driver driver;

/* Process-wide state used only in this file. */
static struct {
    once_flag once;
    mtx_t lock; /* recursive, since a host function in a stream may call the library */
    tss_t thread;
    CUresult state; /* of lock and thread: the error if they are unusable */
    arena *arena;
    unsigned threads; /* 0: PTXGEN_CUDA_THREADS not read yet */
    handle *handles[HANDLE_KINDS];
    handle **buckets; /* hash table of live handles; bucket_count is 0 or a power of 2 */
    size_t bucket_count, handle_count;
    uint64_t workspace;
    char *printed; /* kernel output that is not written yet */
    size_t printed_bytes;
} own = { .once = ONCE_FLAG_INIT, .state = CUDA_ERROR_OPERATING_SYSTEM };

static void make_lock(void)
{
    if (mtx_init(&own.lock, mtx_plain | mtx_recursive) == thrd_success &&
        tss_create(&own.thread, free) == thrd_success)
        own.state = CUDA_SUCCESS;
}

thread_state *this_thread(void)
{
    return tss_get(own.thread);
}

/* Takes the lock; works before cuInit.
 *
 * A thread's state is not _Thread_local: the C library allocates a shared library's thread-local
 * storage at first access, and ends the process if memory runs out. */
static CUresult enter_library(void)
{
    call_once(&own.once, make_lock);
    if (own.state)
        return own.state;
    mtx_lock(&own.lock);
    if (this_thread())
        return CUDA_SUCCESS;
    thread_state *state = calloc(1, sizeof *state);
    if (state && tss_set(own.thread, state) == thrd_success)
        return CUDA_SUCCESS;
    free(state);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult driver_enter(void)
{
    CUresult r = enter_library();
    return !r && !driver.target ? CUDA_ERROR_NOT_INITIALIZED : r;
}

CUresult leave(CUresult result)
{
    if (!own.state)
        mtx_unlock(&own.lock);
    return result;
}

void driver_write_printed(void)
{
    if (!own.printed_bytes)
        return;
    fwrite(own.printed, 1, own.printed_bytes, stdout);
    fflush(stdout);
    own.printed_bytes = 0;
}

void driver_print(void *unused, const char *text, size_t length)
{
    enum { ROOM = 1 << 20 };
    (void)unused;
    if (!own.printed)
        own.printed = malloc(ROOM);
    if (!own.printed || own.printed_bytes + length > ROOM)
        driver_write_printed();
    if (!own.printed || length > ROOM) {
        fwrite(text, 1, length, stdout);
        return;
    }
    memcpy(own.printed + own.printed_bytes, text, length);
    own.printed_bytes += length;
}

unsigned driver_threads(void)
{
    if (own.threads)
        return own.threads;
    const char *text = setting("PTXGEN_CUDA_THREADS");
    char *end;
    unsigned long count = text ? strtoul(text, &end, 10) : 0;
    if (text && (*text < '0' || *text > '9' || *end || !count || count > EMU_MOST_THREADS)) {
        say("PTXGEN_CUDA_THREADS: '%s' is not a number from 1 to %d; using one per CPU", text,
            EMU_MOST_THREADS);
        count = 0;
    }
    own.threads = count ? (unsigned)count : os_cpu_count();
    return own.threads;
}

static CUresult make_memory(void *unused)
{
    (void)unused;
    driver.memory = emu_memory_new(own.arena);
    return CUDA_SUCCESS;
}

CUresult driver_start(const target *t)
{
    CUresult r = enter_library();
    if (r || driver.target)
        return leave(r);
    if (!t)
        return leave(CUDA_ERROR_NO_DEVICE);
    own.arena = own.arena ? own.arena : arena_try_new(NULL);
    r = own.arena ? driver_try(make_memory, NULL) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!r)
        driver.target = t;
    return leave(r);
}

typedef struct trial {
    CUresult (*work)(void *context);
    void *context;
    CUresult result;
} trial;

static void run_trial(void *context)
{
    trial *t = context;
    t->result = t->work(t->context);
}

CUresult driver_try(CUresult (*work)(void *context), void *context)
{
    trial t = { .work = work, .context = context };
    return arena_try(own.arena, run_trial, &t) ? t.result : CUDA_ERROR_OUT_OF_MEMORY;
}

uint64_t driver_workspace(void)
{
    enum { WORKSPACE_BYTES = 16 };
    static const unsigned char zero;
    if (!own.workspace)
        own.workspace = emu_alloc(driver.memory, WORKSPACE_BYTES);
    emu_fill(driver.memory, own.workspace, &zero, sizeof zero, WORKSPACE_BYTES);
    return own.workspace;
}

arena *driver_arena(void)
{
    return arena_try_new(own.arena);
}

static handle **bucket_of(const void *object)
{
    uint64_t hash = (uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);
    return &own.buckets[hash >> 32 & (own.bucket_count - 1)];
}

static void link_handle(handle *h)
{
    handle **head = bucket_of(h);
    h->chain = *head;
    *head = h;
}

void *handle_new(handle_kind kind, size_t size, CUcontext context)
{
    enum { FIRST_BUCKETS = 64 };
    /* Keeps at least one bucket per handle. If memory runs out, chains get longer. */
    size_t count = own.bucket_count ? 2 * own.bucket_count : FIRST_BUCKETS;
    handle **grown = own.handle_count < own.bucket_count ? NULL : calloc(count, sizeof *grown);
    if (grown) {
        free(own.buckets);
        own.buckets = grown;
        own.bucket_count = count;
        for (int other = 0; other < HANDLE_KINDS; other++)
            for (handle *h = own.handles[other]; h; h = h->next)
                link_handle(h);
    }
    handle *h = own.buckets ? calloc(1, size) : NULL;
    if (!h)
        return NULL;
    h->kind = kind;
    h->context = context;
    h->next = own.handles[kind];
    if (h->next)
        h->next->previous = h;
    own.handles[kind] = h;
    own.handle_count++;
    link_handle(h);
    return h;
}

void *handle_new_with_arena(handle_kind kind, size_t size, CUcontext context)
{
    arena *a = driver_arena();
    handle *h = a ? handle_new(kind, size, context) : NULL;
    if (h)
        h->arena = a;
    else
        arena_free(a);
    return h;
}

void handle_free(void *object)
{
    handle *h = object, **link = bucket_of(h);
    while (*link != h)
        link = &(*link)->chain;
    *link = h->chain;
    own.handle_count--;
    if (h->previous)
        h->previous->next = h->next;
    else
        own.handles[h->kind] = h->next;
    if (h->next)
        h->next->previous = h->previous;
    arena_free(h->arena);
    free(h);
}

bool handle_is(const void *object, handle_kind kind)
{
    const handle *h = own.buckets ? *bucket_of(object) : NULL;
    while (h && h != object)
        h = h->chain;
    return h && h->kind == kind;
}

void *handle_next(handle_kind kind, const void *after)
{
    return after ? ((const handle *)after)->next : own.handles[kind];
}

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("ptxgen libcuda: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

int stream_priority(int wish)
{
    return wish < GREATEST_PRIORITY ? GREATEST_PRIORITY : wish > 0 ? 0 : wish;
}

CUstream stream_new(CUcontext c, unsigned flags, int priority)
{
    CUstream s = handle_new(STREAM_HANDLE, sizeof *s, c);
    if (s) {
        s->flags = flags;
        s->id = ++driver.counted;
        s->priority = stream_priority(priority);
    }
    return s;
}

CUresult stream_find(CUcontext c, CUstream named, CUstream *stream)
{
    if (!named || named == CU_STREAM_LEGACY)
        *stream = c->null_stream;
    else if (named == CU_STREAM_PER_THREAD)
        *stream = c->thread_stream;
    else if (handle_is(named, STREAM_HANDLE))
        *stream = named;
    else
        return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

void event_stamp(CUevent e)
{
    e->recorded = true;
    e->captured = false;
    e->nanoseconds = os_nanoseconds();
}

/* Shuts the library down. Unlike a driver, reports memory that the program has not freed. */
__attribute__((destructor)) static void end(void)
{
    if (driver.memory && setting("PTXGEN_CUDA_LEAKS")) {
        enum { LISTED = 20 };
        emu_allocation list[LISTED];
        uint64_t bytes;
        emu_free(driver.memory, own.workspace); /* not a leak of the program */
        size_t count = emu_live(driver.memory, list, LISTED, &bytes);
        for (size_t i = 0; i < count && i < LISTED; i++)
            say("leak: %llu bytes at 0x%llx", (unsigned long long)list[i].size,
                (unsigned long long)list[i].address);
        say("not freed: %llu bytes of device memory in %zu allocations", (unsigned long long)bytes,
            count);
    }
    if (own.state)
        return;
    free(own.printed);
    free(own.buckets);
    own.buckets = NULL;
    free(this_thread());
    tss_delete(own.thread);
    own.state = CUDA_ERROR_DEINITIALIZED; /* for calls made while the process exits */
}

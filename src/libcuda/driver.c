#include "libcuda/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

#include "libcuda/context.h"

/* All that lives as long as the process. */
static struct driver {
    once_flag once;
    mtx_t lock; /* recursive: a host function in a stream may call the library */
    bool initialised;
    const target *target;
    emu_memory *memory;
    handle *handles;
} driver = { .once = ONCE_FLAG_INIT };

static void make_lock(void)
{
    mtx_init(&driver.lock, mtx_plain | mtx_recursive);
}

void lock_driver(void)
{
    call_once(&driver.once, make_lock);
    mtx_lock(&driver.lock);
}

void set_initialised(void)
{
    if (!driver.memory)
        driver.memory = emu_memory_new();
    driver.initialised = true;
}

CUresult enter(void)
{
    lock_driver();
    return driver.initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult enter_context(CUcontext *context)
{
    CUresult r = enter();
    *context = r ? NULL : context_current();
    if (r)
        return r;
    if (!*context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if ((*context)->primary && !(*context)->retained)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return (*context)->failure;
}

CUresult leave(CUresult result)
{
    mtx_unlock(&driver.lock);
    return result;
}

const target *device_target(void)
{
    return driver.target;
}

void device_set_target(const target *t)
{
    driver.target = t;
}

emu_memory *device_memory(void)
{
    return driver.memory;
}

void *handle_new(handle_kind kind, size_t size, CUcontext context)
{
    handle *h = calloc(1, size);
    if (!h)
        return NULL;
    h->kind = kind;
    h->context = context;
    h->next = driver.handles;
    if (h->next)
        h->next->previous = h;
    driver.handles = h;
    return h;
}

void handle_free(void *object)
{
    handle *h = object;
    if (h->previous)
        h->previous->next = h->next;
    else
        driver.handles = h->next;
    if (h->next)
        h->next->previous = h->previous;
    free(h);
}

bool handle_is(const void *object, handle_kind kind)
{
    for (const handle *h = driver.handles; h; h = h->next)
        if (h == object)
            return h->kind == kind;
    return false;
}

void *handle_next(handle_kind kind, const void *after)
{
    handle *h = after ? ((const handle *)after)->next : driver.handles;
    while (h && h->kind != kind)
        h = h->next;
    return h;
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

/* What a program leaves behind; asked for, because a driver frees it without a word. */
__attribute__((destructor)) static void report_leaks(void)
{
    enum { LISTED = 20 };
    emu_allocation list[LISTED];
    uint64_t bytes;
    if (!driver.memory || !setting("PTXGEN_CUDA_LEAKS"))
        return;
    size_t count = emu_live(driver.memory, list, LISTED, &bytes);
    for (size_t i = 0; i < count && i < LISTED; i++)
        say("leak: %llu bytes at 0x%llx", (unsigned long long)list[i].size,
            (unsigned long long)list[i].address);
    say("not freed: %llu bytes of device memory in %zu allocations", (unsigned long long)bytes,
        count);
}

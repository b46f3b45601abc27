/* Opens the CUDA driver functions in DRIVER_FUNCTIONS(F), which must be defined before this is
 * included:
 *
 *   by default         with dlopen: the program does not link CUDA and starts without it
 *   DRIVER_LINKED      linked with -lcuda, as in most programs
 *
 * The list has symbol names, as dlsym needs them. cuda.h maps source names (cuMemAlloc) to symbol
 * names (cuMemAlloc_v2). */
#ifndef DECODE_LOADER_H
#define DECODE_LOADER_H

#include <dlfcn.h>
#include <string.h>

typedef struct driver_api {
    void *library; /* handle for dlsym */
#define MEMBER(name) __typeof__(name) *name;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
} driver_api;

/* Opens the driver. Returns NULL, or the name of a missing library or function. */
static inline const char *driver_open(driver_api *d)
{
#ifdef DRIVER_LINKED
    d->library = dlopen(NULL, RTLD_NOW);
#define LINKED(name) d->name = name;
    DRIVER_FUNCTIONS(LINKED)
#undef LINKED
#else
    d->library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!d->library)
        return "libcuda.so.1";
#define LOOKED_UP(name)                           \
    do {                                          \
        void *symbol = dlsym(d->library, #name);  \
        memcpy(&d->name, &symbol, sizeof symbol); \
        if (!symbol)                              \
            return #name;                         \
    } while (0);
    DRIVER_FUNCTIONS(LOOKED_UP)
#undef LOOKED_UP
#endif
    return NULL;
}

#endif

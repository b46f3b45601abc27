/* Functions of the CUDA driver API, those that DRIVER_FUNCTIONS(F) lists when this is included,
 * found in one of two ways:
 *
 *   by dlopen          the program links nothing of CUDA, and starts where there is none
 *   DRIVER_LINKED      they are linked with -lcuda, as most programs do
 *
 * The list has the names of their symbols, which is what dlsym wants; cuda.h maps what programs
 * write (cuMemAlloc) to them (cuMemAlloc_v2).
 */
#ifndef DECODE_LOADER_H
#define DECODE_LOADER_H

#include <dlfcn.h>
#include <string.h>

typedef struct driver_api {
    void *library; /* what dlsym looks in */
#define MEMBER(name) __typeof__(name) *name;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
} driver_api;

/* NULL, or the name of what is missing. */
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

#include "driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#ifdef DECODE_LINKED

const char *driver_open(driver_api *d)
{
    d->library = dlopen(NULL, RTLD_NOW);
#define LINKED(name) d->name = name;
    DRIVER_FUNCTIONS(LINKED)
#undef LINKED
    return NULL;
}

#else

static int find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

const char *driver_open(driver_api *d)
{
    d->library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!d->library)
        return "libcuda.so.1";
#define LOOKED_UP(name)                     \
    if (!find(d->library, #name, &d->name)) \
        return #name;
    DRIVER_FUNCTIONS(LOOKED_UP)
#undef LOOKED_UP
    return NULL;
}

#endif

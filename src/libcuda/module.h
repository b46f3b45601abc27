/* Modules and their functions. */
#ifndef PTXGEN_LIBCUDA_MODULE_H
#define PTXGEN_LIBCUDA_MODULE_H

#include "libcuda/context.h"

/* A library (cuLibraryLoadData) is a module, and a kernel of it a function. */
struct CUmod_st {
    handle handle;
    arena *arena;
    const char *text; /* the PTX */
    emu_module *module;
};

struct CUfunc_st {
    handle handle;
    CUmodule module;
    const char *name;
    emu_entry_info info;
    size_t dynamic_shared; /* bytes a launch may ask for: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_… */
    const void **params;   /* room for where the values of a launch's parameters stand */
};

void module_destroy(CUmodule m);

/* Says a line of the PTX on standard error, with its number. */
void module_say_line(CUmodule m, unsigned line);

/* Threads that a block of it may have. */
unsigned function_threads(CUfunction f);

#endif

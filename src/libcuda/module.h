/* Modules and their functions. */
#ifndef PTXGEN_LIBCUDA_MODULE_H
#define PTXGEN_LIBCUDA_MODULE_H

#include "libcuda/context.h"

/* A library (cuLibraryLoadData) is a module of no context, and a kernel of it a function. */
struct CUmod_st {
    handle handle;
    bool is_library;
    arena *arena;
    const char *text; /* the PTX */
    emu_module *module;
    CUfunction *functions; /* by number of the entry; NULL for one that nobody has asked for */
};

struct CUfunc_st {
    handle handle;
    CUmodule module;
    uint64_t id; /* which no other function has, also when it is gone */
    const char *name;
    emu_entry_info info;
    size_t dynamic_shared; /* bytes a launch may ask for: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_… */
    const void **params;   /* room for where the values of a launch's parameters stand */
};

void module_destroy(CUmodule m);

/* What programs ask modules and libraries for. A function has one handle, however often it is asked
 * for; of functions as many are given as there is room for. */
CUresult module_function(CUfunction *function, CUmodule m, const char *name);
CUresult module_function_count(unsigned *count, CUmodule m);
CUresult module_functions(CUfunction *functions, unsigned room, CUmodule m);
CUresult module_global(CUdeviceptr *address, size_t *size, CUmodule m, const char *name);

/* Says a line of the PTX on standard error, with its number. */
void module_say_line(CUmodule m, unsigned line);

/* What a function declares, and what it may be allowed. PTX has no registers of the machine:
 * CU_FUNC_ATTRIBUTE_NUM_REGS, and the occupancy that follows from it, take the emulator's count of
 * registers that are live together, which is about what ptxas allocates. */
CUresult function_attribute(int *value, CUfunction_attribute which, CUfunction f);
CUresult function_set_attribute(CUfunction f, CUfunction_attribute which, int value);
CUresult function_param(CUfunction f, size_t index, size_t *offset, size_t *size);

/* Blocks of so many threads, each with so much dynamic shared memory, that an SM holds. */
unsigned function_blocks(CUfunction f, unsigned threads, size_t dynamic);

/* Threads that a block of it may have. */
unsigned function_threads(CUfunction f);

#endif

/* Modules and their functions, and how modules are made of what programs have: PTX, fat binaries
 * with PTX in them, and files of both. */
#ifndef PTXGEN_LIBCUDA_MODULE_H
#define PTXGEN_LIBCUDA_MODULE_H

#include "libcuda/driver.h"

/* A library (cuLibraryLoadData) is a module of no context, and a kernel of it a function. */
struct CUmod_st {
    handle handle;
    bool is_library;
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
    const void **params;   /* room for the addresses of a launch's parameters */
};

/* The logs that a program gives the JIT compiler or the linker by options: of information and of
 * errors. The other options are about optimisation. */
enum { JIT_INFO_LOG, JIT_ERROR_LOG };
typedef struct jit_log {
    char *text[2];
    size_t size[2];
    void **filled[2]; /* where the driver says how much of the log it used */
} jit_log;

/* Finds the logs among options. Fails if there are options and no places for them. */
CUresult jit_log_read(jit_log *log, unsigned count, const CUjit_option *options, void **values);

/* Fills in both logs. If the program gave none, an error goes to standard error. */
void jit_log_write(const jit_log *log, const char *info, const char *error);

/* What to load, one of the two: an image, with its size or 0 for PTX text and fat binaries in
 * memory, which have an end; or a file, of which source_read makes an image. */
typedef struct load_source {
    const void *image;
    size_t size;
    const char *path;
} load_source;

/* Inside of driver_try. source_ptx copies the PTX of an image, and fails with
 * CUDA_ERROR_NO_BINARY_FOR_GPU and a message if there is only machine code. */
CUresult source_read(arena *a, load_source *from);
CUresult source_ptx(arena *a, load_source from, const char **ptx, const char **message);

/* Makes a module of a context or, where that is NULL, of none, by the options of a JIT compiler. If
 * the emulator cannot parse it, the result is CUDA_ERROR_INVALID_PTX, with the line and the message
 * in the log. */
CUresult module_load(CUcontext c, load_source from, unsigned count, const CUjit_option *options,
                     void **values, CUmodule *module);
void module_destroy(CUmodule m);

void module_say_line(CUmodule m, unsigned line);

/* Returns how many blocks an SM holds, by their threads and bytes of dynamic shared memory. PTX has
 * no registers of the machine: the emulator's count of registers that are live together is about
 * what ptxas allocates. */
unsigned function_blocks(CUfunction f, unsigned threads, size_t dynamic);

unsigned function_threads(CUfunction f); /* that a block may have at most */

#endif

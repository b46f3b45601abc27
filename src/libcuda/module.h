/* Modules and their functions, loaded from PTX or fat binaries with PTX, in memory or files. */
#pragma once

#include "libcuda/driver.h"

/* A library (cuLibraryLoadData) is a module without a context; its kernels are functions. */
struct CUmod_st {
    handle handle;
    bool is_library;
    const char *text; /* the PTX */
    emu_module *module;
    CUfunction *functions; /* by entry number; NULL until first requested */
};

struct CUfunc_st {
    handle handle;
    CUmodule module;
    uint64_t id; /* unique, never reused */
    const char *name;
    emu_entry_info info;
    size_t dynamic_shared; /* limit in bytes for a launch: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_… */
    const void **params;   /* scratch: pointers to a launch's parameters */
};

/* The log buffers among the options of JIT compiler or linker. Others are ignored. */
enum { JIT_INFO_LOG, JIT_ERROR_LOG };
typedef struct jit_log {
    char *text[2];
    size_t size[2];
    void **filled[2]; /* receive the number of bytes used */
} jit_log;

/* Finds the log buffers in count options. Fails if count is not 0 but an array is NULL. */
CUresult jit_log_read(jit_log *log, unsigned count, const CUjit_option *options, void **values);

/* Writes both logs. An error without a log buffer goes to standard error. */
void jit_log_write(const jit_log *log, const char *info, const char *error);

/* The source of a module: an image or a file. size may be 0 for PTX text and fat binaries in
 * memory, which mark their own end. source_read turns a file into an image. */
typedef struct load_source {
    const void *image;
    size_t size;
    const char *path;
} load_source;

/* Read a file, and copy the PTX of an image. Call them inside driver_try. source_ptx fails with
 * CUDA_ERROR_NO_BINARY_FOR_GPU and a message if the image has only machine code. */
CUresult source_read(arena *a, load_source *from);
CUresult source_ptx(arena *a, load_source from, const char **ptx, const char **message);

/* Loads a module into a context, or a library if c is NULL, with JIT options. After invalid PTX
 * (CUDA_ERROR_INVALID_PTX) the log has the line and the message. */
CUresult module_load(CUcontext c, load_source from, unsigned count, const CUjit_option *options,
                     void **values, CUmodule *module);
void module_destroy(CUmodule m);

void module_say_line(CUmodule m, unsigned line);

/* Returns the number of blocks that fit on an SM (occupancy). Register use is estimated by the
 * emulator's maximum of simultaneously live registers, which is close to that of ptxas. */
unsigned function_blocks(CUfunction f, unsigned threads, size_t dynamic);

unsigned function_threads(CUfunction f); /* maximum threads per block */

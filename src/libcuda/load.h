/* Making modules of what programs have: PTX, fat binaries with PTX in them, and files of both. */
#ifndef PTXGEN_LIBCUDA_LOAD_H
#define PTXGEN_LIBCUDA_LOAD_H

#include "libcuda/jit_log.h"
#include "libcuda/module.h"

/* What to load: one of the two. */
typedef struct load_source {
    const void *image;
    const char *path;
} load_source;

/* PTX of an image as its own copy, all inside of driver_try: CUDA_ERROR_NO_BINARY_FOR_GPU and a
 * message where there is only machine code. size: of all of it, or 0 for PTX text and fat binaries
 * in memory, which have an end. */
CUresult load_ptx(arena *a, const void *image, size_t size, const char **ptx, const char **message);

/* A module of a context or, where that is NULL, of none. What the emulator cannot parse is
 * CUDA_ERROR_INVALID_PTX, with its line and message in the log. */
CUresult load_module(CUcontext c, load_source from, const jit_log *log, CUmodule *module);

#endif

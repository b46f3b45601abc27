/* The linker: PTX of several images as one, which is handed out as a fat binary.
 *
 * There is no machine code to link: what is put behind one another is text. So a name that several
 * images define is an error even where none of them shows it to the others, and a variable of
 * another image cannot be reached. Functions of other images can. */
#ifndef PTXGEN_LIBCUDA_LINK_H
#define PTXGEN_LIBCUDA_LINK_H

#include "libcuda/jit_log.h"
#include "libcuda/module.h"

struct CUlinkState_st {
    handle handle;
    arena *arena;
    jit_log log;
    VEC(const char *) texts; /* the PTX of each image */
    void *linked;            /* NULL: not yet */
    size_t linked_bytes;
};

CUlinkState link_new(CUcontext c, const jit_log *log);
void link_free(CUlinkState l);

/* Adds an image of a type that CU_JIT_INPUT_… names, of size bytes; messages go to the log. */
CUresult link_add(CUlinkState l, CUjitInputType type, const void *image, size_t size);

/* The same of a file. */
CUresult link_add_file(CUlinkState l, CUjitInputType type, const char *path);

/* Makes what is handed out, which lives as long as the linker. */
CUresult link_finish(CUlinkState l);

#endif

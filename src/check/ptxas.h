/* ptxas, NVIDIA's assembler: finds it, runs it to validate kernels, and reads their resources. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "kernel/target.h"

typedef struct ptxas {
    const char *path;
    const char *version;  /* "13.0.88" */
    target_set known;     /* targets that it supports */
    const target *oldest; /* the oldest of known, used for older targets */
} ptxas;

/* Resources of a kernel. spill_bytes: the larger of stores and loads. shared_bytes: static. */
typedef struct ptxas_result {
    bool accepted;
    unsigned registers, spill_bytes, stack_bytes, shared_bytes;
    const char *message; /* output of ptxas if it rejected the kernel */
    char *cubin;         /* of an accepted kernel */
    size_t cubin_size;
    const char *unwritable; /* temporary folder or file that could not be written, or NULL */
} ptxas_result;

/* Finds ptxas at given, a path, or if that is NULL on PATH, in $CUDA_HOME, $CUDA_PATH and the usual
 * CUDA folders. Returns false with a message if there is none that runs. */
bool ptxas_find(arena *a, const char *given, ptxas *out, const char **error);

/* Assembles one module for a target, or for the oldest supported target if t is older. Returns
 * false with a message only if ptxas cannot run or does not support t. Thread-safe. */
bool ptxas_run(arena *a, const ptxas *assembler, const char *ptx, size_t length, const target *t,
               ptxas_result *result, const char **error);

/* Returns true if a kernel has no spills and no stack that count. On sm_103 products of bytes take
 * long, and ptxas spills registers to load their operands early: that is accepted. */
bool ptxas_is_lean(const ptxas_result *r, const char *ptx, const target *t);

/* Parse the output of ptxas: the version ("13.0.88", or NULL) of --version, the known targets of
 * --help, and the resources of -v for a module with one kernel. */
const char *ptxas_parse_version(arena *a, const char *text);
target_set ptxas_parse_targets(const char *help);
void ptxas_parse_report(const char *text, ptxas_result *result);

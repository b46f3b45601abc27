/* The checks of a kernel set as a Ninja build: incremental, and run by whatever executes Ninja
 * builds, on one machine or on many. */
#ifndef PTXGEN_EMIT_NINJA_H
#define PTXGEN_EMIT_NINJA_H

#include "base/strbuf.h"
#include "emit/tree.h"
#include "kernel/kernel.h"

/* Programs and files as the commands name them. Paths are relative to the folder in which ptxgen
 * runs, which is the one in which Ninja is to run. */
typedef struct ninja_build {
    const char *file;    /* of the Ninja build itself */
    const char *depfile; /* of the run of ptxgen that writes folder and file */
    const char *folder;  /* of the outputs: the header, which the depfile names, first */
    const output_file *outputs;
    size_t output_count;
    const char *ptxgen, *ptxas;
    const char *const *generate; /* the arguments of that run */
    size_t generate_count;
    const char *const *verify; /* arguments that read the same spec and run --verify */
    size_t verify_count;
    const assembly_plan *plan;
    size_t plan_count;
} ninja_build;

/* One edge for each planned run of ptxas (target "validate", the default), one for each instance on
 * the emulator ("verify"), and one that generates again where the spec or ptxgen changed. */
void emit_ninja(strbuf *out, const kernel_set *set, const ninja_build *build);

#endif

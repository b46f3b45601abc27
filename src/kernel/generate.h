/* Generates the kernels of a spec's instances as PTX text. */
#pragma once

#include "base/strbuf.h"
#include "kernel/kernel.h"

/* A checked spec: all that generation needs. */
typedef struct spec {
    const char *prefix;           /* "ptxgen" by default */
    const target *const *targets; /* oldest first, no duplicates; sm_80 by default */
    size_t target_count;
    embedding embed;
    instance *instances; /* in the order of the spec, without duplicates */
    size_t instance_count;
    const pipeline *pipelines; /* the instances include their steps */
    size_t pipeline_count;
    const alias *aliases; /* names for chosen instances */
    size_t alias_count;
    const upper_storey *upper;
    const struct plan *plan;  /* plan of the upper storey's section; the instances include its
                                 kernels, by name. NULL: no such section */
    const char *const *files; /* files read, without standard input, for the depfile */
    size_t file_count;
} spec;

/* Builds one kernel whose PTX passed the verifier of src/ptx. Returns false with a message in
 * *error if it did not, which is a bug in ptxgen. Resets scratch; out points into a. */
bool generate_ptx(arena *a, arena *scratch, const instance *in, const target *t, kernel *out,
                  const char **error);

/* Returns the bit of the build stage with a name of a length ("build", "fold", "print"), or 0. */
unsigned generate_stage(const char *word, size_t length);

/* Appends every instance, built for the oldest target, after each of a set of stages. */
void generate_dump(const spec *s, unsigned stages, strbuf *out);

/* Builds every instance for every target that it does not exclude. A kernel with the same text for
 * adjacent targets is kept once, for the oldest. Returns false with diagnostics on failure. */
bool generate_kernels(arena *a, const spec *s, kernel_set *out, diags *d);

/* Generation: from a spec's instances to kernels as PTX text. */
#ifndef PTXGEN_KERNEL_GENERATE_H
#define PTXGEN_KERNEL_GENERATE_H

#include "base/strbuf.h"
#include "kernel/kernel.h"

/* What to generate: a spec's meaning, checked. */
typedef struct spec {
    const char *prefix;           /* "ptxgen" where the spec names none */
    const target *const *targets; /* oldest first, no duplicates; sm_80 where the spec names none */
    size_t target_count;
    embedding embed;
    instance *instances; /* in the order of the spec, each configuration once */
    size_t instance_count;
    const pipeline *pipelines; /* their steps are among the instances */
    size_t pipeline_count;
    const alias *aliases; /* of what is among the instances */
    size_t alias_count;
    const upper_storey *upper;
    const struct plan *plan;  /* of the upper storey's section, its kernels among the instances by
                                 their names; NULL: no section says one */
    const char *const *files; /* that were read, without standard input: what a depfile lists */
    size_t file_count;
} spec;

/* Builds one kernel: PTX text that passed the verifier of src/ptx. False and what is wrong in error
 * when it did not, which is a defect of ptxgen. scratch is reset first; what out points to is in a.
 */
bool generate_ptx(arena *a, arena *scratch, const instance *in, const target *t, kernel *out,
                  const char **error);

/* The stage of building a kernel that a word of this length names ("build", "fold", "print"), as a
 * bit; 0 where it names none. */
unsigned generate_stage(const char *word, size_t length);

/* Appends every instance, for the oldest target, as it is after each stage of a set. */
void generate_dump(const spec *s, unsigned stages, strbuf *out);

/* Builds every instance for every target of the spec that it does not exclude; kernels whose text
 * is the same for several targets in a row are kept once, for the oldest. */
bool generate_kernels(arena *a, const spec *s, kernel_set *out, diags *d);

#endif

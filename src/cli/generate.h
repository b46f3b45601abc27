/* From a spec's instances to kernels that are checked, and from those to files: what a program that
 * uses ptxgen as a library would call, and what main.c calls. */
#ifndef PTXGEN_CLI_GENERATE_H
#define PTXGEN_CLI_GENERATE_H

#include "emit/describe.h"
#include "emit/earlier.h"
#include "emit/tree.h"
#include "emit/ninja.h"
#include "kernel/kernel.h"
#include "check/ptxas.h"
#include "model/check/verify_step.h"
#include "input/spec.h"

/* Called after each finished piece of long work, from one thread at a time; may be NULL. */
typedef struct progress {
    void (*step)(void *context, const char *what, size_t done, size_t total);
    void *context;
} progress;

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

/* Lists the runs of ptxas that validate a set: each kernel for its own target, for every newer one
 * of the spec up to the one that has a kernel of its own, and for the GPUs that take it which ptxas
 * knows. For targets that ptxas is too new for, the oldest it knows. */
typedef VEC(assembly_plan) assembly_plans;
void generate_assembly_plans(arena *a, const kernel_set *set, const ptxas *assembler,
                             assembly_plans *out);

typedef struct validation {
    size_t accepted, checked; /* kernels; each for its own target and the spec's newer ones */
    unsigned least_registers, most_registers;
    unsigned spills;
} validation;

/* Runs ptxas as planned, on jobs threads, and notes the resources. A rejection or a spill is an
 * error at the instance's section. */
bool generate_validate(arena *a, kernel_set *set, const ptxas *assembler, unsigned jobs,
                       const progress *show, validation *out, diags *d);

/* What was found of one kernel. */
typedef struct verified {
    const kernel *kernel;
    bool right;
    uint64_t blocks, instructions; /* run; instructions of all threads */
    bool sampled;                  /* blocks are some of the grids' */
    double worst;                  /* largest error as a part of its bound */
} verified;

typedef struct verification {
    verified *kernels; /* those of the set, then the edited ones */
    size_t right, checked;
    const plan *plan; /* of the step that was run; NULL: none was */
    step_result step;
} verification;

/* Runs every kernel on the emulator, on jobs threads, and notes the errors; and those edited ones
 * that stand in files beside what the header holds. A wrong result is an error at the instance's
 * section or at a line of the file. Where all are right, and all of a decoder's are there, its step
 * is run: what is wrong with it is an error at its section. */
bool generate_verify(arena *a, kernel_set *set, const kernel_list *edited, uint64_t seed,
                     unsigned jobs, const progress *show, verification *out, diags *d);

/* The files of a set in a folder; NULL: by their names alone. */
const char *generate_header_path(arena *a, const kernel_set *set, const char *folder);
const char *generate_manifest_path(arena *a, const kernel_set *set, const char *folder);

/* Appends them in this order. */
enum { GENERATED_HEADER, GENERATED_MANIFEST, GENERATED_KERNELS };
void generate_files(arena *a, const described_set *d, const char *folder, output_files *files);

#endif

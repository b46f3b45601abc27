/* The result of generation: kernels as PTX text, and the set of kernels in one header. */
#pragma once

#include "kernel/pipeline.h"
#include "kernel/upper.h"
#include "version.h"

/* Results of ptxas for a kernel on one target. */
typedef struct resources {
    bool known;
    unsigned registers, spill_bytes, stack_bytes;
} resources;

typedef struct kernel {
    const instance *instance; /* kernels with one name may differ in passes */
    const target *target;     /* oldest target that it runs on */
    const target *newest;     /* newest of the spec's targets that it serves */
    bool specific;            /* runs only on its target, not on newer ones */
    bool overlaps;    /* may overlap with earlier launches if the host asks for it: see overlap */
    unsigned isa;     /* PTX ISA version, times ten */
    const char *file; /* PREFIX.NAME.sm_80.ptx, unique: PREFIX and NAME have no dot */
    const char *ptx;
    size_t ptx_length;
    const char *edited_file; /* edited file that ptx was read from; NULL: as generated */
    uint64_t generated;      /* checksum of the generated text, if edited_file is not NULL */
    size_t shared_bytes;     /* bytes of static shared memory */
    resources resources;     /* on its own target */
    /* Resources on each of the set's targets, known if ptxas was run; NULL: not run at all. */
    const resources *on_targets;
    bool verified; /* verified as correct on the emulator */
    double error;  /* largest error as a fraction of the tolerance */
} kernel;

/* Ways to embed PTX in a header: strings, C23's #embed, or the assembler's .incbin. */
typedef enum embedding { EMBED_STRING, EMBED_C23, EMBED_INCBIN, EMBED_COUNT } embedding;
extern const char *const embedding_names[EMBED_COUNT];
bool embedding_find(const char *word, embedding *found);

/* A name for the kernels that variant = auto chose. All candidates have the same parameters. */
typedef struct alias {
    const char *name;
    const instance **chosen; /* one per target of the spec */
} alias;

typedef struct kernel_set {
    const char *prefix;
    embedding embed;
    const target *const *targets; /* oldest first */
    size_t target_count;
    kernel *kernels; /* in the order of the spec; targets of a name are adjacent, oldest first */
    size_t kernel_count;
    const pipeline *pipelines;
    size_t pipeline_count;
    const alias *aliases;
    size_t alias_count;
    const upper_storey *upper;
    const struct plan *plan; /* plan of the upper storey's section; the kernels include its own, by
                                name. NULL: no such section */
} kernel_set;

/* Returns the GPUs on which a host loads a kernel: it is the newest of its name that the GPU
 * runs and has the shared memory for. An edited kernel counts as its file's. */
target_set kernel_gpus(const kernel_set *set, const kernel *k);

typedef VEC(kernel) kernel_list;

/* A run of ptxas for a target that ptxas knows. */
typedef struct assembly_plan {
    const kernel *kernel;
    const target *target;
} assembly_plan;
typedef VEC(assembly_plan) assembly_plans;

/* Lists the ptxas runs that validate a set: each kernel for its own target, for newer targets up to
 * the next kernel's, and for the known GPUs that load it; at least ptxas' oldest target. */
void kernel_plan_assemblies(arena *a, const kernel_set *set, target_set known, const target *oldest,
                            assembly_plans *out);

/* What generation makes: kernels as PTX text, and the set that one header describes. */
#ifndef PTXGEN_KERNEL_KERNEL_H
#define PTXGEN_KERNEL_KERNEL_H

#include "kernel/pipeline.h"
#include "kernel/upper.h"
#include "version.h"

/* What ptxas said of a kernel, for one target. */
typedef struct resources {
    bool known;
    unsigned registers, spill_bytes, stack_bytes;
} resources;

typedef struct kernel {
    const instance *instance; /* kernels of one name may differ in passes */
    const target *target;     /* the oldest it runs on */
    const target *newest;     /* of the spec's targets that it is generated for */
    bool specific;            /* it runs on its target alone, not on newer ones */
    bool overlaps;    /* with launches ahead of it, where the host asks for it: see overlap */
    unsigned isa;     /* PTX ISA version, times ten */
    const char *file; /* PREFIX.NAME.sm_80.ptx, that of no other spec in a folder: neither prefix
                         nor name has a dot */
    const char *ptx;
    size_t ptx_length;
    const char *edited_file; /* the path of the file that ptx was read from, which somebody changed;
                                NULL: ptx is as generated */
    uint64_t generated;      /* the checksum of the generated text where edited_file is not NULL */
    size_t shared_bytes;     /* static */
    resources resources;     /* for its own target */
    /* For each of the set's targets, known where ptxas was run; NULL: nowhere. */
    const resources *on_targets;
    bool verified; /* on the emulator, and found right; */
    double error;  /* the largest, as a part of its tolerance */
} kernel;

/* How a header holds its PTX: as strings, or read by the compiler from the .ptx files beside it,
 * with C23's #embed or the assembler's .incbin. */
typedef enum embedding { EMBED_STRING, EMBED_C23, EMBED_INCBIN, EMBED_COUNT } embedding;
extern const char *const embedding_names[EMBED_COUNT];
bool embedding_find(const char *word, embedding *found);

/* A name for what variant = auto chose, whatever it is. All that may be chosen take the same
 * parameters. */
typedef struct alias {
    const char *name;
    const instance **chosen; /* for each of the spec's targets */
} alias;

typedef struct kernel_set {
    const char *prefix;
    embedding embed;
    const target *const *targets; /* oldest first */
    size_t target_count;
    kernel *kernels; /* in the order of the spec; kernels of one name side by side, oldest target
                        first */
    size_t kernel_count;
    const pipeline *pipelines;
    size_t pipeline_count;
    const alias *aliases;
    size_t alias_count;
    const upper_storey *upper;
    const struct plan *plan; /* of the upper storey's section; its kernels are among these, by their
                                names. NULL: the spec has none */
} kernel_set;

/* Returns the GPUs that a host takes a kernel of a set for: of those of its name the newest that
 * the GPU runs and has the shared memory for. An edited kernel counts as the one of its file. */
target_set kernel_gpus(const kernel_set *set, const kernel *k);

typedef VEC(kernel) kernel_list;

/* One run of ptxas: the target is one that it takes. */
typedef struct assembly_plan {
    const kernel *kernel;
    const target *target;
} assembly_plan;
typedef VEC(assembly_plan) assembly_plans;

/* Lists the runs of ptxas that validate a set: each kernel for its own target, for every newer one
 * of the spec up to the one that has a kernel of its own, and for the GPUs that take it among the
 * targets that ptxas knows. Targets older than the oldest that it knows are replaced by that. */
void kernel_plan_assemblies(arena *a, const kernel_set *set, target_set known, const target *oldest,
                            assembly_plans *out);

#endif

/* Pipelines: kernels that belong together, as data. A pipeline's section in a spec asks for all its
 * kernels at once; header and manifest say in which order they run and which buffers they share, so
 * that a host can launch them one after the other or record them in a CUDA graph.
 *
 * A pipeline is a family without a kernel of its own: it has keys, and steps in place of build.
 */
#ifndef PTXGEN_KERNEL_PIPELINE_H
#define PTXGEN_KERNEL_PIPELINE_H

#include "kernel/family.h"

/* A step's parameter and the buffer that it gets, by its name in the pipeline. */
typedef struct binding {
    const char *param, *buffer;
} binding;

/* A key and a value: of a pipeline, which has to have it, or of a step, which is given it. */
typedef struct condition {
    const char *key;
    int64_t value;
} condition;

/* What a pipeline may do at one point. Of steps that write the same buffer the first whose
 * conditions hold is taken. */
enum { MAX_CONDITIONS = 3 };
typedef struct pipeline_step {
    const char *family;
    const char *n, *k;                  /* the pipeline's keys that give the step's; NULL: n, k */
    condition set[2];                   /* the step's own values; ends with a key that is NULL */
    condition when[MAX_CONDITIONS + 1]; /* all must hold; ends with a key that is NULL */
    bool for_later;                     /* left out where no later step reads what it writes */
    binding bind[MAX_PARAMS + 1];
} pipeline_step;

/* A step that is taken, and its kernel. */
typedef struct pipeline_launch {
    const pipeline_step *step;
    const instance *kernel;
} pipeline_launch;

/* One configuration of a pipeline with the kernels of its steps. */
typedef struct pipeline {
    const instance *instance;
    const pipeline_launch *steps;
    size_t step_count;
} pipeline;

/* The steps that an instance of a pipeline takes: at most. */
enum { PIPELINE_MOST_STEPS = 8 };

/* All pipelines; ends with NULL. */
extern const family *const pipelines[];

/* The families and behind them the pipelines: what a section of a spec may name. */
const family *const *families_and_pipelines(arena *a);

/* The steps of a pipeline's family: at least as many as any of its instances takes. */
size_t pipeline_step_count(const family *f);

/* The steps that a pipeline's instance takes, in their order: their number. taken has room for all
 * of its family. */
size_t pipeline_take_steps(const instance *in, const pipeline_step **taken);

/* The instance that a step of a pipeline's instance is. */
instance step_instance(arena *a, const instance *in, const pipeline_step *s);

/* Returns the name of the buffer that a step's parameter is bound to; NULL: none. The number of
 * rows is bound to the pipeline's, by the same name. */
const char *step_buffer(const pipeline_step *s, const char *param_name);

/* A buffer that a step writes and a later one reads: a part of the workspace. */
typedef struct pipeline_part {
    const char *name;
    int64_t bytes, offset; /* from the start of the workspace; a multiple of MEMORY_ALIGNMENT. With
                              rows = run_time both are of one row, and grow with their number */
} pipeline_part;

/* The buffers of a pipeline. What its caller gives it, outputs, weights, inputs, numbers: the
 * parameters that the buffers are bound to, with the buffers' names and sizes. All others are parts
 * of one workspace, which parts that are not needed at once share. */
typedef struct pipeline_buffers {
    param *params;
    int64_t *bytes;     /* of the buffer, or of the number itself; -1: the number of rows decides */
    const char **sizes; /* the same as formulas over m */
    size_t count;
    pipeline_part *parts;
    size_t part_count;
    int64_t workspace; /* bytes, where 16 bytes align it */
    bool by_row;       /* with rows = run_time: bytes of one row */
} pipeline_buffers;
pipeline_buffers pipeline_buffers_of(arena *a, const pipeline *p);

/* Where a step finds a parameter. */
typedef struct pipeline_place {
    const pipeline_part *part; /* of the workspace; NULL: a buffer of the caller, */
    size_t buffer;             /* by its number */
} pipeline_place;
pipeline_place pipeline_place_of(const pipeline_buffers *buffers, const pipeline_step *s,
                                 const char *param_name);

#endif

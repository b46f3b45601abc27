/* Pipelines: kernels that belong together, as data. A pipeline's section in a spec asks for all its
 * kernels at once; header and manifest say in which order they run and which buffers they share, so
 * that a host can launch them one after the other or record them in a CUDA graph.
 *
 * A pipeline is a family without a kernel of its own: it has keys, and steps in place of build.
 */
#ifndef PTXGEN_GEN_PIPELINE_H
#define PTXGEN_GEN_PIPELINE_H

#include "gen/family.h"

enum { MAX_STEPS = 4, MAX_BUFFERS = 16 };

/* A step's parameter and the buffer that it gets: one of the caller's, or the workspace. */
typedef struct binding {
    const char *param, *buffer;
} binding;
extern const char WORKSPACE[];

typedef struct pipeline_step {
    const char *families[2]; /* by the pipeline's weights; one alone serves all */
    const char *n;           /* the pipeline's key that gives the step's n; NULL: n */
    binding bind[MAX_PARAMS];
} pipeline_step;

/* One configuration of a pipeline with the instances of its steps. */
typedef struct pipeline {
    const instance *instance;
    const instance *steps[MAX_STEPS];
    size_t step_count;
} pipeline;

/* All pipelines; ends with NULL. */
extern const family *const pipelines[];

/* The families and behind them the pipelines: what a section of a spec may name. */
const family *const *families_and_pipelines(arena *a);

size_t pipeline_step_count(const family *f);

/* The instance that a step of a pipeline's instance is. */
instance step_instance(arena *a, const instance *in, const pipeline_step *s);

/* The step's binding of a parameter. */
const char *step_buffer(const pipeline_step *s, const char *param_name);

/* What the caller of a pipeline gives it, outputs, weights, inputs, numbers: the parameters that
 * the buffers are bound to, with the buffers' names and sizes. */
typedef struct pipeline_buffers {
    param params[MAX_BUFFERS];
    int64_t bytes[MAX_BUFFERS]; /* of the buffer, or of the number itself */
    size_t count;
    int64_t workspace; /* bytes, where 16 bytes align it */
} pipeline_buffers;
pipeline_buffers pipeline_buffers_of(arena *a, const pipeline *p);

#endif

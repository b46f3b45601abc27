/* Pipelines: kernels that belong together, as data. A pipeline's section in a spec generates all
 * its kernels. Header and manifest give their order and shared buffers, so that a host can launch
 * them in order or record a CUDA graph.
 *
 * A pipeline is a family without a kernel of its own: it has keys, and steps instead of build. */
#pragma once

#include "kernel/family.h"

/* A step's parameter, and the name of the pipeline's buffer bound to it. */
typedef struct binding {
    const char *param, *buffer;
} binding;

/* A key and a value: of a pipeline, as a condition, or of a step, to be set. */
typedef struct condition {
    const char *key;
    int64_t value;
} condition;

/* A possible step of a pipeline. The first valid one of those with the same output is used. */
enum { MAX_CONDITIONS = 3 };
typedef struct pipeline_step {
    const char *family;
    const char *n, *k;                  /* the pipeline's keys for them; NULL: n, k */
    condition set[2];                   /* the step's own values; ends with a NULL key */
    condition when[MAX_CONDITIONS + 1]; /* conditions, all required; ends with a NULL key */
    bool for_later;                     /* omitted if no later step reads its outputs */
    binding bind[MAX_PARAMS + 1];
} pipeline_step;

/* A step in use, and its kernel. */
typedef struct pipeline_launch {
    const pipeline_step *step;
    const instance *kernel;
} pipeline_launch;

/* A configuration of a pipeline with the kernels of its steps. */
typedef struct pipeline {
    const instance *instance;
    const pipeline_launch *steps;
    size_t step_count;
} pipeline;

/* Maximum steps of a pipeline's instance. */
enum { PIPELINE_MOST_STEPS = 8 };

/* All pipelines; ends with NULL. */
extern const family *const pipelines[];

/* Returns the families followed by the pipelines: the names of a spec's sections. */
const family *const *families_and_pipelines(arena *a);

size_t pipeline_step_count(const family *f);

/* Writes a pipeline's steps to taken [pipeline_step_count] in order. Returns their number. */
size_t pipeline_take_steps(const instance *in, const pipeline_step **taken);

/* Returns the kernel instance of a pipeline's step. */
instance step_instance(arena *a, const instance *in, const pipeline_step *s);

/* Returns the buffer of a step's parameter, or NULL. Rows are bound by the same name. */
const char *step_buffer(const pipeline_step *s, const char *param_name);

/* A part of the workspace: a buffer that one step writes and a later one reads. */
typedef struct pipeline_part {
    const char *name;
    int64_t bytes, offset; /* offset in the workspace, a multiple of MEMORY_ALIGNMENT; with rows =
                              run_time both are per row and scale with the rows */
} pipeline_part;

/* The buffers of a pipeline. The caller's buffers are outputs, weights, inputs and numbers,
 * described by the parameters that they are bound to, with the buffers' names. All others are parts
 * of one workspace; parts that are not live together share memory. */
typedef struct pipeline_buffers {
    param *params;
    int64_t *bytes;     /* bytes of the buffer or number; -1: the number of rows decides */
    const char **sizes; /* bytes as formulas over m */
    size_t count;
    pipeline_part *parts;
    size_t part_count;
    int64_t workspace; /* bytes of the workspace, aligned to 16 */
    bool by_row;       /* rows = run_time: workspace is bytes per row */
} pipeline_buffers;
pipeline_buffers pipeline_buffers_of(arena *a, const pipeline *p);

/* Location of a step's argument. */
typedef struct pipeline_place {
    const pipeline_part *part; /* part of the workspace; NULL: a buffer of the caller */
    size_t buffer;             /* index of the caller's buffer */
} pipeline_place;
pipeline_place pipeline_place_of(const pipeline_buffers *buffers, const pipeline_step *s,
                                 const char *param_name);

/* A model to try a decoder's step with: random weights, of sizes with which all that the decoder
 * says shows in the result, and caches with random rows.
 *
 * Large matrices repeat after some rows, an odd number, and caches after some positions. The first
 * positions of a cache are large, so that a window that is one too long or too short is seen.
 */
#ifndef PTXGEN_CHECK_STEP_MODEL_H
#define PTXGEN_CHECK_STEP_MODEL_H

#include "family/plan.h"
#include "ref/random.h"
#include "ref/step.h"

/* A tensor's content: as the plan has it, or of whole rows that repeat. */
typedef struct model_tensor {
    void *bytes;
    uint64_t stored, rows; /* bytes and rows that there are */
    uint64_t size;         /* that a kernel may read: whole 16 bytes, ones behind the content */
} model_tensor;

typedef struct step_model {
    const decoder *d;
    const plan *plan;
    model_tensor *tensors; /* as in plan.tensors */
    format kv_format;
    void *rows[2];  /* of K and V caches: MODEL_CACHE_ROWS that repeat, through all heads */
    void *first[2]; /* rows of the first MODEL_LARGE_POSITIONS positions, of any head */
    uint64_t row_bytes;
} step_model;
enum { MODEL_CACHE_ROWS = 509, MODEL_LARGE_POSITIONS = 16 };

step_model step_model_new(arena *a, const plan *p, uint64_t seed);

/* The bytes of a row of a cache: head_dim values. */
const void *step_model_row(const step_model *m, const ref_cached *which);

/* For the reference; user is the model. */
ref_weights step_model_weights;
ref_earlier step_model_earlier;

#endif

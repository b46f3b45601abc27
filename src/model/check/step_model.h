/* A model to try a decoder's step with: random weights, of sizes with which all that the decoder
 * says shows in the result, and caches with random rows.
 *
 * Large matrices repeat after some rows, an odd number, and caches after some positions. The first
 * positions of a cache are large, so that a window that is one too long or too short is seen. A
 * delta net's state and last inputs are the same for all layers and sequences.
 */
#ifndef PTXGEN_MODEL_CHECK_STEP_MODEL_H
#define PTXGEN_MODEL_CHECK_STEP_MODEL_H

#include "model/plan/plan.h"
#include "ref/random.h"
#include "model/reference/step.h"

/* A tensor's content: as the plan has it, or of whole rows that repeat. */
typedef struct model_tensor {
    void *bytes;
    float *values;         /* the content decoded, where tokens are fed one by one; else NULL */
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
    float *states, *inputs; /* as a delta net's caches have them; NULL: there is none */
} step_model;
enum { MODEL_CACHE_ROWS = 509, MODEL_LARGE_POSITIONS = 16 };

step_model step_model_new(arena *a, const plan *p, uint64_t seed);

/* Returns the rows of K or V that a head has in a cache: max_seq_len, or those of a ring. */
uint64_t step_model_cache_rows(const step_model *m, int64_t layer);

/* Return the offset of an item in its part of a cache, its format, and its size in bytes. */
uint64_t step_model_offset(const step_model *m, const ref_cached *which);
format step_model_format(const step_model *m, const ref_cached *which);
uint64_t step_model_row_bytes(const step_model *m, const ref_cached *which);

/* Returns the item's content before the first token. */
const void *step_model_row(const step_model *m, const ref_cached *which);

/* Callbacks of the reference; user is the model. */
ref_weights step_model_weights;
ref_earlier step_model_earlier;

#endif

/* A model for trials of a decoder's step: random weights, of sizes with which every feature of the
 * decoder affects the result, and caches with random rows.
 *
 * Large matrices repeat after an odd number of rows, and caches after some positions. The first
 * positions of a cache have large values, so that a window that is off by one shows. States and last
 * inputs of recurrences are equal for all layers and sequences. */
#pragma once

#include "model/plan/plan.h"
#include "ref/random.h"
#include "model/reference/step.h"

/* A tensor's content, complete or as rows that repeat. */
typedef struct model_tensor {
    void *bytes;
    float *values;         /* decoded content if tokens are fed one by one, else NULL */
    uint64_t stored, rows; /* bytes and rows made */
    uint64_t size;         /* bytes that a kernel may read: a multiple of 16, padded with 0xff */
} model_tensor;

typedef struct step_model {
    const decoder *d;
    const plan *plan;
    model_tensor *tensors; /* as in plan.tensors */
    format kv_format;
    void *rows[2];  /* of K and V: MODEL_CACHE_ROWS rows that repeat through all heads */
    void *first[2]; /* of K and V: rows of positions below MODEL_LARGE_POSITIONS, for all heads */
    uint64_t row_bytes;     /* of the layer with the longest rows */
    float *states, *inputs; /* content of a recurrence's caches; NULL without recurrences */
} step_model;
enum { MODEL_CACHE_ROWS = 509, MODEL_LARGE_POSITIONS = 16 };

step_model step_model_new(arena *a, const plan *p, uint64_t seed);

/* Returns the rows per head in a layer's cache: max_seq_len, or the length of a ring. */
uint64_t step_model_cache_rows(const step_model *m, int64_t layer);

/* Returns the number of a sequence's page, as the trial's page table has it. */
uint64_t step_model_page(const step_model *m, int64_t sequence, uint64_t index);

/* Returns the bytes after which rows of K or V repeat in a layer's cache. */
uint64_t step_model_pattern(const step_model *m, int64_t layer);

/* Returns the byte offset of an item in its part of a cache, its format, or its bytes. */
uint64_t step_model_offset(const step_model *m, const ref_cached *which);
format step_model_format(const step_model *m, const ref_cached *which);
uint64_t step_model_row_bytes(const step_model *m, const ref_cached *which);

/* Returns the item's content before the first token. */
const void *step_model_row(const step_model *m, const ref_cached *which);

/* Callbacks of the reference; user is the model. */
ref_weights step_model_weights;
ref_earlier step_model_earlier;

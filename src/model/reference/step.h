/* A decoder's whole step in double precision: what tokens of some sequences give, layer by layer,
 * with caches that grow. Nothing is rounded but what the decoder says:
 *
 *   K and V    as kv_type when they are written, K behind RoPE: f16 and bf16 to the nearest even;
 *              q8_0 in blocks of 32 of a head's values, d = amax / 127, q = x / d rounded half away
 *              from zero, d as f16. f32 stays as exact as it is.
 *   precision  with Q8 what a matrix of integers is multiplied by, as of a problem that quantizes:
 *              of a normed vector x gamma is rounded, and the norm's factor multiplies the product.
 *              In steps of a prompt it and the matrix are rounded to f16.
 *   attention  of a step whose kernel multiplies on tensor cores: q, the weights of the softmax,
 *              and what the caches have, are rounded to f16.
 *
 * It is as fast as plain loops are: a row of weights is decoded once for all tokens of a call.
 */
#ifndef PTXGEN_MODEL_REFERENCE_STEP_H
#define PTXGEN_MODEL_REFERENCE_STEP_H

#include "base/arena.h"
#include "model/decoder.h"

/* The blocks of a tensor. Those of a matrix may be fewer than its rows: they repeat. */
typedef struct ref_tensor {
    const void *blocks;
    uint64_t rows;       /* that are there: at least 1 */
    const float *values; /* of these rows, decoded; NULL: the blocks are decoded for each call */
} ref_tensor;
typedef ref_tensor ref_weights(void *user, decoder_tensor t, int64_t layer);

/* What a cache has: a head's row of K (values: of V), as kv_type has it. Of latent attention rows
 * of the latent and what RoPE turns are those of K of head 0, and there is no V. A delta net has of
 * each value head the state behind a position, [S of v, S of k], and (values, head 0) the inputs of
 * its convolution at a position, [channels], both as they are. */
typedef struct ref_cached {
    int64_t sequence, layer, kv_head;
    uint64_t position;
    bool values;
} ref_cached;
uint64_t ref_cached_values(const decoder *d, const ref_cached *which);

/* Tells what was there before the first token: of a delta net the states behind the last position,
 * and the inputs of the last few. */
typedef void ref_earlier(void *user, const ref_cached *which, float *row);

typedef struct ref_row {
    int64_t sequence;
    uint32_t token; /* one that is not in the vocabulary gives NaN */
} ref_row;

typedef struct ref_step ref_step;

/* A decoder's caches, empty, for d->sequences sequences. d has to outlive it. It lives in the
 * arena. */
ref_step *ref_step_new(arena *a, const decoder *d, ref_weights *weights, void *user);

/* Has a sequence start anew behind a number of positions whose rows another one tells. */
void ref_step_start(ref_step *s, int64_t sequence, uint64_t positions, ref_earlier *earlier,
                    void *user);

/* Has tokens that are fed from here on be those of steps of so many rows, which decides what is
 * rounded: at first 1; and whether attention rounds to f16: at first it does not. */
void ref_step_set_rows(ref_step *s, int64_t m, bool attends_by_halves);

/* Tokens at the next positions of their sequences, in one call: several of one sequence see each
 * other as if they came one by one. Either of the two may be NULL:
 *
 *   logits [count, vocab]
 *   hidden [count, layers + 1, hidden]  behind the embedding, then behind each layer */
void ref_step_feed(ref_step *s, const ref_row *rows, size_t count, double *logits, double *hidden);

/* The logits of tokens that were fed, from what that gave as hidden. */
void ref_step_logits(ref_step *s, const double *hidden, size_t count, double *logits);

/* Takes the last call of feed back: sequences are as long as they were, with what they had. */
void ref_step_take_back(ref_step *s);

/* What a cache has at a position that there is; of a delta net the state is the present one, and
 * there are the inputs of the last DELTA_RING positions. */
void ref_step_cached(const ref_step *s, const ref_cached *which, double *row);

/* How the experts of a row of the last call were chosen: the scores of all, which are logits, or
 * behind a choice bias or groups probabilities; and how far the last one that was chosen, or the
 * last group, is ahead of the first that was not. Of layers without experts scores is NULL, and the
 * gap infinite. */
typedef struct ref_choice {
    const double *scores;
    double gap;
} ref_choice;
ref_choice ref_step_choice(const ref_step *s, int64_t layer, size_t row);

#endif

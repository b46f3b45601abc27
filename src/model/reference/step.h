/* The reference of a decoder's whole step, in double precision: tokens of several sequences go
 * through all layers, with growing caches. It rounds only what the decoder rounds:
 *
 *   K and V    to kv_type when written, K after RoPE: f16 and bf16 to nearest even; f32 not at all;
 *              q8_0 in blocks of 32 values of a head, d = amax / 127, q = x / d rounded half away
 *              from zero, d then stored as f16
 *   precision  with Q8, x of a quantized matrix to 8 bits: of a normed x, x * gamma is rounded, and
 *              the norm's factor multiplies the product. In prompt steps, x and W to f16
 *   attention  q, softmax weights and cache rows to f16, where the step's kernel uses tensor cores
 *
 * Speed is that of plain loops: a row of weights is decoded once per call, for all its tokens. */
#pragma once

#include "base/arena.h"
#include "model/decoder.h"

/* A tensor's blocks. A matrix may have fewer rows than its shape: they repeat. */
typedef struct ref_tensor {
    const void *blocks;
    uint64_t rows;       /* rows present, at least 1 */
    const float *values; /* decoded rows; NULL = decode the blocks in each call */
} ref_tensor;
typedef ref_tensor ref_weights(void *user, decoder_tensor t, int64_t layer);

/* An item in a cache: a head's row of K, or of V if values is set, as kv_type, of the layer that
 * wrote it. Latent attention has rows of K of head 0 only: latent and RoPE part. Items of a
 * recurrence are f32. Its states are those after a position, one per head; see ref_delta_net and
 * ref_mamba2 for their order. With values and head 0, an item is its convolution's inputs at a
 * position, [channels]. */
typedef struct ref_cached {
    int64_t sequence, layer, kv_head;
    uint64_t position;
    bool values, recurrent;
} ref_cached;
uint64_t ref_cached_values(const decoder *d, const ref_cached *which);

/* Returns an item from before the first token: a row of K or V; for a recurrence, the states after
 * the last earlier position, and the last few inputs. */
typedef void ref_earlier(void *user, const ref_cached *which, float *row);

typedef struct ref_row {
    int64_t sequence;
    uint32_t token; /* logits are NaN if it is not in the vocabulary */
} ref_row;

typedef struct ref_step ref_step;

/* Returns empty caches for d->sequences sequences, allocated in the arena. d must outlive them. */
ref_step *ref_step_new(arena *a, const decoder *d, ref_weights *weights, void *user);

/* Restarts a sequence after some earlier positions, whose items the callback returns. */
void ref_step_start(ref_step *s, int64_t sequence, uint64_t positions, ref_earlier *earlier,
                    void *user);

/* Sets the step size, which decides what is rounded, and if attention rounds to f16. */
void ref_step_set_rows(ref_step *s, int64_t m, bool attends_in_f16);

/* Runs tokens at the next positions of their sequences. Several tokens of a sequence see each other
 * as if fed one by one. Either output may be NULL:
 *
 *   logits [count, vocab]
 *   hidden [count, layers + 1, hidden]  after the embedding, then after each layer
 */
void ref_step_feed(ref_step *s, const ref_row *rows, size_t count, double *logits, double *hidden);

/* Computes the logits of tokens that were fed, from their hidden output. */
void ref_step_logits(ref_step *s, const double *hidden, size_t count, double *logits);

/* Undoes the last ref_step_feed: restores lengths and states of all sequences. */
void ref_step_undo(ref_step *s);

/* Reads a cached item: of a recurrence, its state and inputs of DELTA_RING positions. */
void ref_step_cached(const ref_step *s, const ref_cached *which, double *row);

/* The router's choice for a row of the last call. scores are logits, or probabilities with a choice
 * bias or groups; NULL in layers without experts. gap is the lead of the last chosen expert or
 * group over the first rejected one; infinite without experts. */
typedef struct ref_choice {
    const double *scores;
    double gap;
} ref_choice;
ref_choice ref_step_choice(const ref_step *s, int64_t layer, size_t row);

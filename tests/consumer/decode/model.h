/* A language model with one layer. Its weights have the layout of a GGUF file; the CPU computes a
 * decode step from the decoded weights.
 *
 *     q, k, v = Wq x, Wk x, Wv x                  x in q8_1
 *     x      += Wo attention(q, keys, values)     adds one key and value per step; in 8 bits
 *     x      += Wdown (silu(Wgate x) * (Wup x))   x, and the product, in q8_1
 *     logits  = Wwords (rmsnorm(x) * gamma)
 */
#ifndef DECODE_MODEL_H
#define DECODE_MODEL_H

#include <stddef.h>

#include "attention.h"

enum {
    KV = KV_HEADS * HEAD_DIM,
    FEED_FORWARD = 512,
    WORDS = 320,
    MAX_SEQ_LEN = 64,
};

typedef enum matrix { Q, K, V, OUTPUT, GATE, UP, DOWN, WORD, MATRICES } matrix;

typedef struct model {
    unsigned char *blocks[MATRICES]; /* Q4_K, row by row */
    size_t bytes[MATRICES];
    float *weights[MATRICES]; /* the decoded weights */
    float gamma[HIDDEN];
    float keys[KV_HEADS][MAX_SEQ_LEN][HEAD_DIM], values[KV_HEADS][MAX_SEQ_LEN][HEAD_DIM];
} model;

/* Makes pseudo-random weights, always the same. Returns 0 if out of memory. */
int model_make(model *m);
void model_free(model *m);

/* Computes the pseudo-random embedding of the word at a position, always the same. */
void model_embedding(unsigned position, float x[HIDDEN]);

/* Runs the step at a position; earlier positions must be done. */
void model_step(model *m, unsigned position, float x[HIDDEN], float logits[WORDS]);

#endif

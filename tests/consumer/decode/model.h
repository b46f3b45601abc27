/* A language model of one layer, small enough to check by hand: weights as a GGUF file has them,
 * and what a decode step gives, computed on the CPU from the dequantised weights.
 *
 *     q, k, v = Wq x, Wk x, Wv x                  x in q8_1
 *     x      += Wo attention(q, keys, values)     one more key and value a step; in 8 bits
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
    float *weights[MATRICES]; /* the same, dequantised */
    float gamma[HIDDEN];
    float keys[KV_HEADS][MAX_SEQ_LEN][HEAD_DIM], values[KV_HEADS][MAX_SEQ_LEN][HEAD_DIM];
} model;

/* Random weights, the same every time. 0 when there is no memory. */
int model_make(model *m);
void model_free(model *m);

/* The embedding of the word at a position: random, the same every time. */
void model_embedding(unsigned position, float x[HIDDEN]);

/* One step at a position; those before it have been done. */
void model_step(model *m, unsigned position, float x[HIDDEN], float logits[WORDS]);

#endif

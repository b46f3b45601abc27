/* What is found of a decoder's step. */
#ifndef PTXGEN_MODEL_CHECK_STEP_RESULT_H
#define PTXGEN_MODEL_CHECK_STEP_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that were read, and that had to be. */
typedef struct step_bytes {
    uint64_t read, needed;
} step_bytes;

typedef struct step_result {
    bool right;
    int64_t layers, of_layers; /* that were run, of so many */
    size_t positions;          /* of tokens that were fed */
    double worst;              /* largest error of a logit, as a part of its bound */
    double worst_hidden;       /* the same of hidden states and caches */
    double weights_read;   /* how often a step reads the layers' weights that it needs, at most */
    step_bytes caches;     /* what tokens see of them, in all steps */
    uint64_t instructions; /* thread-instructions */
    const char *message;   /* when not right: the layer, what is wrong there, and by how much */
} step_result;

/* How often what is needed was read; 0 where nothing is needed. */
static inline double step_bytes_times(step_bytes of)
{
    return of.needed ? (double)of.read / (double)of.needed : 0;
}

#endif

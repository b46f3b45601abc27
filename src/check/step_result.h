/* What is found of a decoder's step. */
#ifndef PTXGEN_CHECK_STEP_RESULT_H
#define PTXGEN_CHECK_STEP_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct step_result {
    bool right;
    int64_t layers, of_layers; /* that were run, of so many */
    size_t positions;          /* of tokens that were fed */
    double worst;              /* largest error of a logit, as a part of its bound */
    double worst_hidden;       /* the same of hidden states and caches */
    double read;           /* how often a step reads the layers' weights that it needs, at most */
    uint64_t instructions; /* thread-instructions */
    const char *message;   /* when not right: the layer, what is wrong there, and by how much */
} step_result;

#endif

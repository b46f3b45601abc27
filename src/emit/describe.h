/* The facts about one kernel that header and manifest both tell, with all formulas evaluated. */
#ifndef PTXGEN_EMIT_DESCRIBE_H
#define PTXGEN_EMIT_DESCRIBE_H

#include "base/strbuf.h"
#include "gen/kernel.h"

enum { PTXGEN_HEADER_ABI = 3 };

/* Figures that run-time values decide are -1. */
typedef struct description {
    param params[MAX_PARAMS];
    int64_t param_bytes[MAX_PARAMS]; /* of the buffer, or of the number itself */
    size_t param_count;
    int64_t block;
    int64_t grid[3];
    bool grid_fixed; /* none of grid is -1 */
    int64_t dynamic_shared;
} description;

description describe_kernel(arena *a, const kernel *k);

/* The format that a query asks for as weights: of W, or of K and V. */
format weights_of(const instance *in);

/* The same of a pipeline's first step that has weights. */
format pipeline_weights(const pipeline *p);

bool param_is_pointer(const param *p);

/* The word that a key of the instance has as its value, or NULL for a key with a number. */
const char *config_word(const instance *in, const key *k);

/* Whether variant = auto chose the kernel for its targets, from k->target to k->newest. */
bool kernel_is_chosen(const kernel *k);

/* "chosen by q4k_gemv auto, precision q8, for sm_75 to sm_90". */
void print_choice(strbuf *out, const kernel *k);

/* The C identifier of a set's kernel: PREFIX_NAME. Where an instance has kernels for several
 * targets, that is the one for the oldest, and the others are PREFIX_NAME_sm_90. */
const char *kernel_identifier(arena *a, const kernel_set *set, const kernel *k);

#endif

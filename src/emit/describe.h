/* Facts about the kernels of a set for header, manifest and report, with all formulas evaluated. */
#pragma once

#include "base/strbuf.h"
#include "kernel/kernel.h"
#include "kernel/pipeline.h"

enum { PTXGEN_HEADER_ABI = 11 };

/* A kernel's PTX in the header. It is the text of the file, except in a model's header with
 * embedded strings: there indentation, columns and comments, a third of the header, are left out.
 * Line numbers stay the file's, so that fault reports match it. */
typedef struct header_text {
    const char *text;
    size_t length;
    uint64_t checksum;  /* FNV-1a */
    const char *behind; /* text after the kernel's name; NULL: text is the file's */
    size_t before;      /* bytes before the name */
} header_text;

/* A kernel with its formulas evaluated. Numbers that depend on run-time values are -1. */
typedef struct description {
    const kernel *kernel;
    const char *id; /* C identifier: PREFIX_NAME, or PREFIX_NAME_sm_90 if the instance has a kernel
                       for an older target */
    const param *params;
    const int64_t *param_bytes; /* bytes of the buffer or of the number */
    size_t param_count;
    int64_t block;
    int64_t grid[3];
    bool grid_fixed; /* true: no element of grid is -1 */
    int64_t dynamic_shared;
    uint64_t checksum;              /* FNV-1a of the PTX */
    header_text text;               /* the PTX in the header */
    const struct description *like; /* first kernel with the same text, usually itself */
} description;

/* A set and its kernels' descriptions, in the set's order. */
typedef struct described_set {
    const kernel_set *set;
    const description *kernels;
} described_set;

described_set describe_set(arena *a, const kernel_set *set);

/* Returns the weights' format for queries: of W, or of K and V. */
format weights_of(const instance *in);

/* Returns a pipeline's weights: its key's, or those of the first step with weights. */
format pipeline_weights(const pipeline *p);

/* Returns the format of x from the caller of a pipeline: q8_1 or f32. */
format pipeline_activations(const pipeline_buffers *buffers);

/* Returns the format of x in the products of a pipeline: the first that is not f32, or f32. */
format pipeline_precision(const pipeline *p);

bool param_is_pointer(const param *p);

/* Returns the word that is a key's value, or NULL for a key with a number. */
const char *config_word(const instance *in, const key *k);

/* Returns true if variant = auto chose the kernel for its targets, k->target to k->newest. */
bool kernel_is_chosen(const kernel *k);

/* Returns the target in its PTX: the architecture's general one, unless the kernel is specific. */
const char *kernel_target_name(const kernel *k);

/* Prints "chosen by q4k_gemv auto, precision q8, for sm_75 to sm_90". */
void print_choice(strbuf *out, const kernel *k);

/* Returns the C identifier of a pipeline: PREFIX_NAME. */
const char *pipeline_identifier(arena *a, const kernel_set *set, const pipeline *p);

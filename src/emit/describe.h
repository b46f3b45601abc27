/* The facts about the kernels of a set that header, manifest and report all tell, with all formulas
 * evaluated. */
#ifndef PTXGEN_EMIT_DESCRIBE_H
#define PTXGEN_EMIT_DESCRIBE_H

#include "base/strbuf.h"
#include "kernel/kernel.h"
#include "kernel/pipeline.h"

enum { PTXGEN_HEADER_ABI = 9 };

/* A kernel's PTX as a header has it: the text of its file, but for the strings of a model's header.
 * Its kernels are long, and what only readers of PTX need, indentation, columns and comments, would
 * be a third of the header. Lines are those of the file, so that the driver's report of a fault is.
 */
typedef struct header_text {
    const char *text;
    size_t length;
    uint64_t checksum;  /* FNV-1a */
    const char *behind; /* the kernel's name; NULL: the file's text */
    size_t before;      /* bytes ahead of the name */
} header_text;

/* Figures that run-time values decide are -1. */
typedef struct description {
    const kernel *kernel;
    const char *id; /* its C identifier: PREFIX_NAME, or PREFIX_NAME_sm_90 where the instance has a
                       kernel for an older target */
    const param *params;
    const int64_t *param_bytes; /* of the buffer, or of the number itself */
    size_t param_count;
    int64_t block;
    int64_t grid[3];
    bool grid_fixed; /* none of grid is -1 */
    int64_t dynamic_shared;
    uint64_t checksum;              /* FNV-1a of the PTX */
    header_text text;               /* the PTX as the header has it */
    const struct description *like; /* the first kernel of a model whose text is its as well: but
                                       for the name it is the same. Mostly itself */
} description;

/* A set and its kernels' descriptions, in the order of the set. */
typedef struct described_set {
    const kernel_set *set;
    const description *kernels;
} described_set;

described_set describe_set(arena *a, const kernel_set *set);

/* The format that a query asks for as weights: of W, or of K and V. */
format weights_of(const instance *in);

/* The same of a pipeline: what its key says, or its first step that has weights. */
format pipeline_weights(const pipeline *p);

/* The format in which the caller of a pipeline gives x: q8_1, or f32. */
format pipeline_activations(const pipeline_buffers *buffers);

/* The format in which the steps of a pipeline multiply x: the first that is not f32. */
format pipeline_precision(const pipeline *p);

bool param_is_pointer(const param *p);

/* The word that a key of the instance has as its value, or NULL for a key with a number. */
const char *config_word(const instance *in, const key *k);

/* Whether variant = auto chose the kernel for its targets, from k->target to k->newest. */
bool kernel_is_chosen(const kernel *k);

/* The target that its PTX names: the general one of an architecture, unless it is specific. */
const char *kernel_target_name(const kernel *k);

/* "chosen by q4k_gemv auto, precision q8, for sm_75 to sm_90". */
void print_choice(strbuf *out, const kernel *k);

/* The C identifier of a set's pipeline: PREFIX_NAME. */
const char *pipeline_identifier(arena *a, const kernel_set *set, const pipeline *p);

#endif

/* Variants of a model's step: other numbers of rows, weights that are fetched for the next launch,
 * kernels of other numbers of warps. Each has kernels of its own, and all have one layout of
 * memory.
 */
#ifndef PTXGEN_TESTS_VARIANTS_H
#define PTXGEN_TESTS_VARIANTS_H

#include "kernel/generate.h"
#include "model/plan/plan.h"
#include "ref/reference.h"

enum { MOST_NUMBERS = DECODER_MOST_STEPS };

/* Numbers of an option, "1,8,512"; count 0: the option is not given. */
typedef struct number_list {
    int64_t values[MOST_NUMBERS];
    size_t count;
} number_list;
bool number_list_parse(const char *text, number_list *list);

typedef struct variant_options {
    number_list rows;   /* of steps, in place of the key m */
    bool next;          /* also a variant whose key next has the other value */
    const char *family; /* of which there are variants with other numbers of warps, or a part of its
                           name; NULL: none */
    number_list warps;
    bool early; /* also variants, of each number of warps, that let the next launch start at once */
} variant_options;

typedef struct variant {
    const char *said; /* "next fetched", "gate_up of 8 warps"; NULL: the step as the spec says it */
    const char *wrong; /* why there is no such step; NULL: there is */
    bool early;        /* it differs only where launches overlap */
    kernel_set set;
} variant;
typedef VEC(variant) variants;

/* Makes the kernels of a spec's model for a target, then those of each variant, of which only steps
 * of few rows are used. Returns what is wrong with the model, or NULL. */
const char *make_variants(arena *a, const char *path, const target *t, const variant_options *o,
                          variants *out);

/* Returns true if a step of at most this many rows has a kernel, by its number in the plan. */
bool plan_uses(const plan *p, size_t number, int64_t rows);

const kernel *kernel_named(const kernel_set *set, const char *name);

#endif

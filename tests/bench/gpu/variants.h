/* Variants of a model's step: other numbers of rows, weights prefetched for the next launch, other
 * numbers of warps. Each variant has its own kernels. All have the same layout of memory. */
#ifndef PTXGEN_TESTS_VARIANTS_H
#define PTXGEN_TESTS_VARIANTS_H

#include "kernel/generate.h"
#include "model/plan/plan.h"
#include "ref/reference.h"

enum { MOST_NUMBERS = DECODER_MOST_STEPS };

/* The numbers of an option, "1,8,512". count = 0: the option is not given. */
typedef struct number_list {
    int64_t values[MOST_NUMBERS];
    size_t count;
} number_list;
bool number_list_parse(const char *text, number_list *list);

typedef struct variant_options {
    number_list rows;   /* rows of steps, in place of the key m */
    bool next;          /* adds a variant with the other value of the key next */
    const char *family; /* part of the name of the families with variants; may be NULL */
    number_list warps;
    bool early; /* adds variants, one for each number of warps, that let the next launch start at
                   once */
} variant_options;

typedef struct variant {
    const char *name;  /* "next fetched", "gate_up of 8 warps"; NULL: the step of the spec */
    const char *wrong; /* reason why the variant cannot be made, or NULL */
    bool early;        /* differs from the usual step only if launches overlap */
    kernel_set set;
} variant;
typedef VEC(variant) variants;

/* Generates the kernels of a spec's model for a target, then the kernels of each variant, which has
 * only steps of few rows. Returns a message if the model is wrong, else NULL. */
const char *make_variants(arena *a, const char *path, const target *t, const variant_options *o,
                          variants *out);

/* Returns true if a step of at most `rows` rows launches the kernel with this index in the plan. */
bool plan_uses(const plan *p, size_t number, int64_t rows);

const kernel *kernel_named(const kernel_set *set, const char *name);

#endif

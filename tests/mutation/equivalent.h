/* Mutants that compute the same: a list of patterns with reasons, read from a file. */
#ifndef PTXGEN_TESTS_EQUIVALENT_H
#define PTXGEN_TESTS_EQUIVALENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "kernel/kernel.h"
#include "mutation/mutants.h"

/* A line of the file: "kernel | kind | before | after | reason", or "kernel / phase | ..." of what
 * stands behind such a comment alone. In all but the reason * stands for any text; before and after
 * have registers without their numbers, and after is empty for a line that was dropped. */
typedef struct equivalence {
    const char *kernel, *phase, *kind, *before, *after,
        *reason; /* phase: "*" where none is named */
} equivalence;

typedef VEC(equivalence) equivalence_list;

/* False and what is wrong where a line does not have five fields. */
bool read_equivalences(arena *a, const char *text, equivalence_list *out, const char **error);

/* The index of the first that a mutant of a kernel fits, by the name of its instance or family, or
 * -1. */
int find_equivalence(arena *a, const equivalence_list *list, const kernel *k, const mutant *m);

#endif

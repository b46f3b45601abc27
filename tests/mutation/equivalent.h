/* Mutants that compute the same: a list of patterns with reasons, read from a file. */
#ifndef PTXGEN_TESTS_EQUIVALENT_H
#define PTXGEN_TESTS_EQUIVALENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "family/family.h"
#include "mutation/mutants.h"

/* A line of the file: "kernel | kind | before | after | reason". In all but the reason * stands for
 * any text; before and after have registers without their numbers, and after is empty for a line
 * that was dropped. */
typedef struct equivalence {
    const char *kernel, *kind, *before, *after, *reason;
} equivalence;

typedef VEC(equivalence) equivalence_list;

/* False and what is wrong where a line does not have five fields. */
bool read_equivalences(arena *a, const char *text, equivalence_list *out, const char **error);

/* The index of the first that a mutant fits of an instance, whose name or family's name the kernel
 * is, or -1. */
int find_equivalence(arena *a, const equivalence_list *list, const instance *in, const mutant *m);

#endif

/* Mutants that are known to compute the same: patterns with reasons, read from a file. */
#ifndef PTXGEN_TESTS_EQUIVALENT_H
#define PTXGEN_TESTS_EQUIVALENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "kernel/kernel.h"
#include "mutation/mutants.h"

/* A line of the file: "kernel | kind | before | after | reason", or "kernel / phase | ..." for one
 * phase only. In every field except the reason, * matches any text. Registers in before and after
 * have no numbers; after is empty for a dropped line. */
typedef struct equivalence {
    const char *kernel, *phase, *kind, *before, *after,
        *reason; /* phase is "*" if the line names none */
} equivalence;

typedef VEC(equivalence) equivalence_list;

/* Parses the file. Returns false and sets *error if a line does not have five fields. */
bool read_equivalences(arena *a, const char *text, equivalence_list *out, const char **error);

/* Returns the index of the first pattern that matches a mutant, by the kernel's instance or family.
 * Returns -1 if there is none. */
int find_equivalence(arena *a, const equivalence_list *list, const kernel *k, const mutant *m);

#endif

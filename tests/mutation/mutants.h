/* Mutants of a kernel: its PTX text with one small defect each, of the kinds that people who write
 * such kernels make. */
#ifndef PTXGEN_TESTS_MUTANTS_H
#define PTXGEN_TESTS_MUTANTS_H

#include "base/strbuf.h"

typedef struct mutant {
    const char *kind;
    unsigned line;              /* of the text, from 1 */
    const char *before, *after; /* the line, without blanks around it and without its comment; after
                                   is "" where it was dropped */
    const char *probe; /* in place of the line, where there is such a thing: lines that do what it
                          does and trap where the mutant would do something else. NULL: none */
} mutant;

typedef VEC(mutant) mutant_list;

/* The kinds in the order of a report; ends with NULL. */
extern const char *const mutant_kinds[];

/* Appends all mutants of a text, line by line. */
void plant_mutants(arena *a, const char *ptx, mutant_list *out);

/* The text with one line replaced; declarations (may be "") go before the first .reg line. */
const char *replace_line(arena *a, const char *ptx, unsigned line, const char *by,
                         const char *declarations);

#endif

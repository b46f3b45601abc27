/* Mutants of a kernel: its PTX text with one small defect each, of the kinds that kernel authors
 * make. */
#ifndef PTXGEN_TESTS_MUTANTS_H
#define PTXGEN_TESTS_MUTANTS_H

#include "base/strbuf.h"

typedef struct mutant {
    const char *kind;
    unsigned line;              /* line of the text, from 1 */
    const char *before, *after; /* the line without surrounding blanks and comment; after is "" if
                                   it was dropped */
    const char *probe; /* lines to put in place of the line: they compute the same and trap if the
                          mutant would differ; NULL = no probe */
} mutant;

typedef VEC(mutant) mutant_list;

/* Names of the kinds in the report's order; ends with NULL. */
extern const char *const mutant_kinds[];

/* Appends all mutants of a text, line by line. */
void plant_mutants(arena *a, const char *ptx, mutant_list *out);

/* Returns the text with one line replaced. Inserts declarations, which may be "", before the first
 * .reg line. */
const char *replace_line(arena *a, const char *ptx, unsigned line, const char *by,
                         const char *declarations);

#endif

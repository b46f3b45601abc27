/* Size formulas: "min(n, sm_count*16)", "n*k/256*144", "ceil_div(k*m, 32*num_warps)".
 *
 * A formula has whole numbers, names, + - * / ( ), min(a, b), max(a, b) and ceil_div(a, b). A name
 * is a term, a derived size (always printed as a number), a key of the instance's family, or a
 * run-time value: sm_count; k, n and m with dynamic dims; m with rows = run_time. All numbers of a
 * launch are formulas. The tool evaluates them if the configuration fixes all names; otherwise the
 * header has them as C. */
#pragma once

#include "base/strbuf.h"
#include "kernel/family.h"

/* Values known only at launch; 0: unknown. */
typedef struct run_values {
    int64_t k, n, m;
    int64_t sm_count;
} run_values;

/* Returns the value of a formula, or -1 if it needs a run-time value that run (may be NULL) lacks.
 * A NULL formula is 1. Values above INT64_MAX become INT64_MAX. Aborts on a malformed formula:
 * formulas are constants of families, and tests evaluate all of them. */
int64_t formula_value(const char *formula, const instance *in, const run_values *run);
static inline unsigned formula_unsigned(const char *formula, const instance *in)
{
    return (unsigned)formula_value(formula, in, NULL);
}

/* Prints a formula. Terms are replaced by their formulas; derived sizes and keys with words by
 * numbers:
 *
 *   FORMULA_NAMES    names of keys and run-time values: "min(n, sm_count*16)"
 *   FORMULA_NUMBERS  numbers for all that the configuration fixes: "min(4096, sm_count*16)"
 *   FORMULA_C        FORMULA_NUMBERS as a C expression: members of *run, and the functions
 *                    PTXGEN_MIN, PTXGEN_MAX and PTXGEN_CEIL_DIV
 */
typedef enum formula_style { FORMULA_NAMES, FORMULA_NUMBERS, FORMULA_C } formula_style;
void formula_print(strbuf *out, const char *formula, const instance *in, formula_style style);

const char *formula_names(arena *a, const char *formula, const instance *in);

/* Returns the formula as in the family's table, for --help-family. NULL is "1". */
const char *formula_text(const char *formula);

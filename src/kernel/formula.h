/* Size formulas: "min(n, sm_count*16)", "n*k/256*144", "ceil_div(k*m, 32*num_warps)".
 *
 * Whole numbers, names, + - * / ( ), min(a, b), max(a, b) and ceil_div(a, b). A name is a term, a
 * derived size (always printed as its number) or a key of the instance's family, or a run-time
 * value: sm_count, with dynamic dims k, n and m, and with rows = run_time m, which the caller of
 * the kernel knows. Every number about a launch comes from such a formula: the tool evaluates it
 * where the configuration fixes all names, and the header prints it as C where it does not.
 */
#ifndef PTXGEN_KERNEL_FORMULA_H
#define PTXGEN_KERNEL_FORMULA_H

#include "base/strbuf.h"
#include "kernel/family.h"

/* What the host knows at launch. Zero: not known. */
typedef struct run_values {
    int64_t k, n, m;
    int64_t sm_count;
} run_values;

/* The value of a formula, or -1 where it needs a run-time value that run (may be NULL) does not
 * have. A NULL formula is 1. A value above INT64_MAX is INT64_MAX. Aborts on a malformed formula:
 * they are constants of ours, all evaluated by tests. */
int64_t formula_value(const char *formula, const instance *in, const run_values *run);

/* The formula as text, where the terms' own formulas stand in place of their names, and numbers in
 * place of derived sizes and of keys with words:
 *
 *   FORMULA_NAMES    over numbers of the configuration and run-time values: "min(n, sm_count*16)"
 *   FORMULA_NUMBERS  what the configuration fixes as numbers: "min(4096, sm_count*16)"
 *   FORMULA_C        the same as a C expression, where run-time values are members of *run and
 *                    functions are PTXGEN_MIN, PTXGEN_MAX and PTXGEN_CEIL_DIV
 */
typedef enum formula_style { FORMULA_NAMES, FORMULA_NUMBERS, FORMULA_C } formula_style;
void formula_print(strbuf *out, const char *formula, const instance *in, formula_style style);

/* Returns the text of FORMULA_NAMES: what header and manifest give, where no other name is known.
 */
const char *formula_names(arena *a, const char *formula, const instance *in);

/* The formula as the family's table has it, for --help-family. NULL is "1". */
const char *formula_text(const char *formula);

#endif

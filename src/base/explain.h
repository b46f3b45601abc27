/* What is known of each code of a diagnostic: its number, meaning, an example and a remedy. */
#ifndef PTXGEN_BASE_EXPLAIN_H
#define PTXGEN_BASE_EXPLAIN_H

#include "base/diag.h"

/* The code as shown: "E014". */
const char *diag_number(diag_code code);

/* The code that text means: "E014", "e14" or "14". False where there is none. */
bool diag_find(const char *text, diag_code *out);

/* --explain: every code with its meaning, one a line. --explain CODE: all that is known of one. */
void diag_list(strbuf *out);
void diag_explain(strbuf *out, diag_code code);

#endif

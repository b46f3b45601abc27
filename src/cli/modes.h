/* What ptxgen does without a spec: it shows families, predicted times and codes, and writes a spec
 * to start from, or that of a model. */
#ifndef PTXGEN_CLI_MODES_H
#define PTXGEN_CLI_MODES_H

#include "cli/options.h"

/* What there is to show goes to out; EXIT_USAGE where a name is none, after saying so. */
status mode_list(arena *a, const command_line *o, strbuf *out);
status mode_help_family(arena *a, const command_line *o, strbuf *out);
status mode_explain(const char *code, strbuf *out);
status mode_man(const char *name, strbuf *out);

/* Writes the starter spec to a path, "-" being standard output, or the starter engine to a folder;
 * a file that exists is an error. */
void mode_init(arena *a, const command_line *o, strbuf *out, diags *d);

/* The spec of a model's step. What it is in one line goes to standard error. */
void mode_from_gguf(arena *a, const command_line *o, strbuf *out, diags *d);

#endif

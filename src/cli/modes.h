/* What ptxgen does without a spec: it shows families, predicted times and codes, writes a spec to
 * start from, or that of a model, and runs programs on the emulated driver. */
#ifndef PTXGEN_CLI_MODES_H
#define PTXGEN_CLI_MODES_H

#include "cli/options.h"

/* What there is to show goes to out; EXIT_USAGE where a name is none, after saying so. */
status mode_list(arena *a, const command_line *o, strbuf *out);
status mode_help_family(arena *a, const command_line *o, strbuf *out);
status mode_explain(const char *code, strbuf *out);
status mode_man(arena *a, const command_line *o, strbuf *out);

/* Writes the starter spec to a path, "-" being standard output, or the starter engine to a folder;
 * a file that exists is an error. */
void mode_init(arena *a, const command_line *o, strbuf *out, diags *d);

/* The spec of a model's step. What it is in one line goes to standard error. */
void mode_from_gguf(arena *a, const command_line *o, strbuf *out, diags *d);

/* "ptxgen run": becomes the program that argv (NULL-ended) names, with its arguments, for which
 * libcuda.so.1 is the emulated one, whether the program is linked with it or opens it. Returns only
 * if that fails: the status, after a message. */
status mode_run(arena *a, char *const *argv);

#endif

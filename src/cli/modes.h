/* Modes of ptxgen without a spec: show families, predicted times, codes and manual pages, write a
 * starter spec or a model's spec, and run programs on the emulated driver. */
#pragma once

#include "cli/options.h"

/* Append the text to out. Return EXIT_USAGE after a message if the name is unknown. */
status mode_list(arena *a, const command_line *o, strbuf *out);
status mode_help_family(arena *a, const command_line *o, strbuf *out);
status mode_explain(const char *code, strbuf *out);
status mode_man(arena *a, const command_line *o, strbuf *out);

/* Writes the starter spec ("-": to standard output), engine or server. An existing file is an error. */
void mode_init(arena *a, const command_line *o, strbuf *out, diags *d);

/* Appends the spec of a model. Prints a summary of the model on standard error. */
void mode_from_gguf(arena *a, const command_line *o, strbuf *out, diags *d);

/* Implements "ptxgen run": becomes the program argv[0] (argv is NULL-terminated) with the emulated
 * driver as libcuda.so.1. Returns a status only on failure, after a message. */
status mode_run(arena *a, char *const *argv);

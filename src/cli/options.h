/* The command line: its options, their help text, and how they go together. */
#ifndef PTXGEN_CLI_OPTIONS_H
#define PTXGEN_CLI_OPTIONS_H

#include "cli/run.h"

/* EXIT_SPEC: the spec is wrong or a kernel failed a check. EXIT_FILE: a file could not be read or
 * written. */
typedef enum status { EXIT_DONE, EXIT_SPEC, EXIT_USAGE, EXIT_FILE } status;

/* What --init takes for the starter engine; all else names a file. */
#define STARTER_ENGINE "engine"

typedef struct command_line {
    request run; /* what to do with a spec */
    const char *help_family, *explain, *init, *man, *from_gguf, *color;
    model_options model; /* of --from-gguf */
    bool list, help, version;
} command_line;

/* Reads the command line. Returns EXIT_USAGE after it has said what is wrong. */
status options_parse(arena *a, int argc, char **argv, command_line *out);

void options_help(strbuf *out);

status options_status(const diags *d);

/* Says on standard error what is wrong with the command line. Returns EXIT_USAGE. */
status wrong_usage(const char *text, ...) PRINTF_LIKE(1, 2);

#endif

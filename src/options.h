/* The command line: its options, their help text, and how they go together. */
#ifndef PTXGEN_OPTIONS_H
#define PTXGEN_OPTIONS_H

#include "base/strbuf.h"
#include "spec/select.h"

/* EXIT_SPEC: the spec is wrong or a kernel failed a check. EXIT_FILE: a file could not be read or
 * written. */
typedef enum status { EXIT_DONE, EXIT_SPEC, EXIT_USAGE, EXIT_FILE } status;

typedef struct command_line {
    const char *spec, *out, *depfile, *stamp, *emit_ninja, *report, *only, *ptxas, *help_family,
        *explain, *init, *color;
    spec_overrides overrides; /* its embed points to embed */
    embedding embed;
    shard shard; /* count 0: all */
    uint64_t jobs, seed;
    const char *program; /* as it was called, and with what */
    const char *const *arguments;
    size_t argument_count;
    unsigned dump; /* stages of generate_stage */
    bool validate, verify, print_outputs, list, quiet, verbose, help, version;
} command_line;

/* Reads the command line. What is wrong with it goes to standard error, and EXIT_USAGE comes back.
 */
status options_parse(arena *a, int argc, char **argv, command_line *out);

void options_help(strbuf *out);

/* Says on standard error what is wrong with the command line. Returns EXIT_USAGE. */
status wrong_usage(const char *text, ...) PRINTF_LIKE(1, 2);

#endif

/* The command line: options, their help text, and their combinations. */
#pragma once

#include "cli/run.h"

/* Exit statuses. EXIT_SPEC: a wrong spec or a failed check. EXIT_FILE: a file error. */
typedef enum status { EXIT_DONE, EXIT_SPEC, EXIT_USAGE, EXIT_FILE } status;

/* Arguments of --init for starter programs; any other argument is a file name. */
#define STARTER_ENGINE "engine"
#define STARTER_SERVER "server"

typedef struct command_line {
    request run; /* options for a spec */
    const char *help_family, *explain, *init, *man, *from_gguf, *color;
    model_options model; /* options of --from-gguf */
    bool list, help, version;
} command_line;

/* Parses the command line. Returns EXIT_USAGE after a message if it is wrong. */
status options_parse(arena *a, int argc, char **argv, command_line *out);

void options_help(strbuf *out);

status options_status(const diags *d);

/* Prints a message about the command line on standard error. Returns EXIT_USAGE. */
status wrong_usage(const char *text, ...) PRINTF_LIKE(1, 2);

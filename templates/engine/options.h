/* The command line of the engine, and what it prints. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Options, each with a number. TOKENS is the most to print, 0: as many as there is room for. */
enum { TOKENS, TEMPERATURE, TOP_K, TOP_P, MIN_P, SEED, NO_OVERLAP, ANY_MODEL, OPTIONS };

typedef struct command {
    const char *path, *text; /* the model's file; the prompt */
    double options[OPTIONS];
} command;

enum { GO_ON = -1 };

/* Reads the command line. Returns GO_ON or the exit status, after a message or the help. */
int command_read(command *c, int argc, char **argv);

#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
/* Prints "engine: ..." to standard error, in one line and without control characters, which strings
 * of a file may have. Returns false. */
bool fail(const char *format, ...);

/* Prints text to standard output. A terminal gets '?' for control characters except newline and
 * tab: a vocabulary may have escape sequences. */
void print_text(const char *text, size_t length);

#endif

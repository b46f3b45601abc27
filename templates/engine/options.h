/* The engine's command line and output. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Indices of the options. TOKENS 0: up to max_seq_len. */
enum { TOKENS, TEMPERATURE, TOP_K, TOP_P, MIN_P, SEED, NO_OVERLAP, ANY_MODEL, OPTIONS };

typedef struct command {
    const char *path, *text; /* path of the model's file; prompt */
    double options[OPTIONS];
} command;

enum { GO_ON = -1 };

/* Reads the command line. Returns GO_ON, or an exit status after it printed an error or the help.
 */
int command_read(command *c, int argc, char **argv);

#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
/* Prints "engine: ..." to standard error, on one line, with '?' for control characters: strings of
 * a file may contain them. Returns false. */
bool fail(const char *format, ...);

/* Prints text to standard output. On a terminal, prints '?' for control characters except newline
 * and tab: a vocabulary may have escape sequences. */
void print_text(const char *text, size_t length);

/* Text that is printed in pieces. A character's bytes may span several of them. */
typedef struct text_output {
    char *waiting; /* bytes of an incomplete character, not printed yet; the caller frees them */
    size_t count;
} text_output;

/* Prints the complete characters of the text so far. Returns false after an error. */
bool print_piece(text_output *o, const char *bytes, size_t length);

/* Prints the rest and ends the line. Returns false if the text could not be written. */
bool print_end(const text_output *o);

#endif

/* Command lines, messages and printed text. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Indices of the options. TOKENS 0: up to max_seq_len. PAGES 0: for all sequences at full length. */
enum {
    TOKENS,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    MIN_P,
    SEED,
    NO_OVERLAP,
    ANY_MODEL,
    PAGES, /* this one and the next only of a server */
    QUEUE,
    OPTIONS
};

/* Describes a program; it defines PROGRAM. */
typedef struct program_info {
    const char *name, *usage;
    bool is_server; /* has no prompt, but --socket and the options of a server */
} program_info;
extern const program_info PROGRAM;

typedef struct command {
    const char *path, *text, *socket; /* path of the model's file; prompt; path of a socket */
    double options[OPTIONS];
} command;

enum { GO_ON = -1 };

/* Reads the command line. Returns GO_ON, or an exit status after it printed an error or the help.
 */
int command_read(command *c, int argc, char **argv);

/* Returns true if an option may have a value; describes its values in range, e.g. "a number from 0
 * to 1". */
bool option_accepts(int option, double value, char *range, size_t size);

#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
/* Prints "PROGRAM: ..." to standard error, on one line, with '?' for control characters: strings of
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

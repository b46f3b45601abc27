/* Diagnostics: what is wrong with the user's input, where, and what would be right.
 *
 * All problems of a run are collected and shown together, the way a compiler does:
 *
 *     kernels.ini:7:13: error: k = 1000 is not a multiple of 256 [E014]
 *         7 | k         = 1000
 *           |             ^~~~
 *
 * Every kind of problem has a stable code, listed in diag.def. */
#ifndef PTXGEN_BASE_DIAG_H
#define PTXGEN_BASE_DIAG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/strbuf.h"

/* A stretch of one line of a text file. line and column count from 1 in bytes; line 0: the file as
 * a whole, file NULL: no place at all (a command-line option, say). text is the whole line without
 * its end, kept for the excerpt. from is the place that includes the file, NULL where none does. */
typedef struct location {
    const char *file;
    const char *text;
    const struct location *from;
    unsigned line, column, length;
} location;

typedef enum diag_code {
#define DIAG(id, number, meaning, why, example, message, remedy) DIAG_##id,
#include "base/diag.def"
#undef DIAG
    DIAG_COUNT
} diag_code;

typedef enum severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE } severity;

typedef struct diagnostic {
    severity severity;
    diag_code code;
    location where;
    const char *message;
    bool hidden; /* past the limit; kept for its code */
} diagnostic;

/* Errors, and likewise warnings and notes, that are kept and shown; further ones are counted. */
enum { DIAG_LIMIT = 50 };

typedef struct diags {
    arena *arena;
    VEC(diagnostic) list;
    size_t errors, warnings;
    size_t kept[SEVERITY_NOTE + 1]; /* by severity */
    bool seen[DIAG_COUNT];          /* an error of this code was kept */
    bool dropped;                   /* the last error or warning was not kept, nor are its notes */
} diags;

diags diags_new(arena *a);
void diag_add(diags *d, severity level, diag_code code, location where, const char *format, ...)
    PRINTF_LIKE(5, 6);
#define diag_error(d, ...)   diag_add(d, SEVERITY_ERROR, __VA_ARGS__)
#define diag_warning(d, ...) diag_add(d, SEVERITY_WARNING, __VA_ARGS__)
/* A note that explains the diagnostic before it has the code of that and is shown without. */
#define diag_note(d, ...) diag_add(d, SEVERITY_NOTE, __VA_ARGS__)

/* Returns true if no further error will be shown, so that its message needs no care. */
bool diags_full(const diags *d);

/* Appends all kept diagnostics, sorted by line (a note follows the diagnostic that it explains);
 * those of an included file stand at the place of its include. color adds terminal escapes. Bytes
 * that are not printable become '?', so that input can't reach the terminal. */
void diags_render(const diags *d, strbuf *out, bool color);

/* Returns a place for a sentence: "line 3", or "line 3 of b.ini" in a sentence about another file.
 */
const char *diag_line(arena *a, const location *where, const location *sentence);

/* Returns the candidate that a user who typed text most likely meant, or NULL: by edit distance
 * with transpositions, at most a third of the length, whatever the case of letters. */
const char *closest_match(const char *text, const char *const *candidates, size_t count);

const char *diag_number(diag_code code); /* "E014" */

/* Finds the code that text means: "E014", "e14" or "14". */
bool diag_find(const char *text, diag_code *out);

/* Append every code with its meaning, and all that is known of one, as --explain shows them. */
void diag_list(strbuf *out);
void diag_explain(strbuf *out, diag_code code);

#endif

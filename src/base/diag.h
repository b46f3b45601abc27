/* Diagnostics: errors, warnings and notes about the user's input.
 *
 * All diagnostics of a run are collected and shown together, like those of a compiler:
 *
 *     kernels.ini:7:13: error: k = 1000 is not a multiple of 256; use 768 or 1024 [E014]
 *         7 | k         = 1000
 *           |             ^~~~
 *
 * Each kind of diagnostic has a stable code, listed in diag.def and explained by --explain. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/strbuf.h"

/* A range of one line of a text file. line and column count from 1, in bytes. line is 0 for a whole
 * file; file is NULL without a place, e.g. for a command-line option. text is the whole line
 * without its end. from is the location of the include of the file, or NULL. */
typedef struct location {
    const char *file;
    const char *text;
    const struct location *from;
    unsigned line, column, length;
} location;

typedef enum diag_code {
#define DIAG(id, number) DIAG_##id,
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
    bool hidden; /* beyond DIAG_LIMIT; kept for its code */
} diagnostic;

/* Maximum number of shown errors, of warnings and of notes; further ones are only counted. */
enum { DIAG_LIMIT = 50 };

typedef struct diags {
    arena *arena;
    VEC(diagnostic) list;
    size_t errors, warnings;
    size_t kept[SEVERITY_NOTE + 1]; /* by severity */
    bool seen[DIAG_COUNT];          /* an error of this code was kept */
    bool dropped;                   /* the last error or warning was not kept */
} diags;

diags diags_new(arena *a);
void diag_add(diags *d, severity level, diag_code code, location where, const char *format, ...)
    PRINTF_LIKE(5, 6);
#define diag_error(d, ...)   diag_add(d, SEVERITY_ERROR, __VA_ARGS__)
#define diag_warning(d, ...) diag_add(d, SEVERITY_WARNING, __VA_ARGS__)
/* Adds a note. It explains the preceding diagnostic if both have the same code. */
#define diag_note(d, ...) diag_add(d, SEVERITY_NOTE, __VA_ARGS__)

/* Returns true if further errors are not shown, so that their messages need no work. */
bool diags_full(const diags *d);

/* Appends all kept diagnostics, sorted by location. Notes follow the diagnostic that they explain.
 * Diagnostics of an included file are sorted at its include. color adds terminal escapes. Control
 * characters become '?', so that input cannot reach the terminal. */
void diags_render(const diags *d, strbuf *out, bool color);

/* Returns a line's name for a message at `sentence`: "line 3", or "line 3 of b.ini" elsewhere. */
const char *diag_line(arena *a, const location *where, const location *sentence);

/* Returns the candidate most similar to text by edit distance with transpositions, or NULL if all
 * distances exceed a third of the length. Ignores case. */
const char *closest_match(const char *text, const char *const *candidates, size_t count);

const char *diag_number(diag_code code); /* "E014" */

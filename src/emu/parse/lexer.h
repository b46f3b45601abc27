/* Splits PTX text into tokens.
 *
 * The first mistake ends the parse: lexer_error does not return but jumps to where the parse was
 * started, with the report filled in.
 */
#ifndef PTXGEN_EMU_PARSE_LEXER_H
#define PTXGEN_EMU_PARSE_LEXER_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "emu/emu.h"

enum { MAX_NAME = 1024 };

typedef enum token_kind {
    TOKEN_END,
    TOKEN_NAME,      /* an identifier, %name included */
    TOKEN_DIRECTIVE, /* .name, .L2::128B; text is without the dot */
    TOKEN_INTEGER,
    TOKEN_FLOAT32, /* 0f… */
    TOKEN_FLOAT64, /* 0d… and decimal */
    TOKEN_STRING,
    TOKEN_PUNCTUATION, /* one character, or two of << >> == != <= >= && || */
} token_kind;

typedef struct token {
    token_kind kind;
    const char *text; /* as long as the arena */
    uint64_t bits;    /* value of a number */
    unsigned line;
} token;

typedef struct lexer {
    arena *arena;
    const char *at, *end;
    unsigned line;
    token token; /* the current one */
    jmp_buf *failed;
    emu_report *report;
} lexer;

void lexer_start(lexer *l, arena *a, const char *text, size_t length);
void lexer_next(lexer *l);

static inline bool lexer_is(const lexer *l, const char *punctuation)
{
    return l->token.kind == TOKEN_PUNCTUATION && strcmp(l->token.text, punctuation) == 0;
}

static inline bool lexer_is_directive(const lexer *l, const char *name)
{
    return l->token.kind == TOKEN_DIRECTIVE && strcmp(l->token.text, name) == 0;
}

/* Goes past the current token if it is this one. */
static inline bool lexer_accept(lexer *l, const char *punctuation)
{
    bool is = lexer_is(l, punctuation);
    if (is)
        lexer_next(l);
    return is;
}

static inline bool lexer_accept_directive(lexer *l, const char *name)
{
    bool is = lexer_is_directive(l, name);
    if (is)
        lexer_next(l);
    return is;
}

void lexer_expect(lexer *l, const char *punctuation);
const char *lexer_expect_name(lexer *l, const char *what);

/* Goes past a group, such as { and all up to its }, if the current token opens one. */
void lexer_skip_group(lexer *l, const char *open, const char *close);

_Noreturn void lexer_error(lexer *l, unsigned line, const char *format, ...) PRINTF_LIKE(3, 4);

/* A token as an error message shows it. */
const char *lexer_shown(lexer *l);

#endif

/* Splits PTX text into tokens. The first error ends the parse: lexer_error fills in the report and
 * jumps to the start of the parse. */
#pragma once

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
    TOKEN_NAME,      /* identifier, including %name */
    TOKEN_DIRECTIVE, /* .name, .L2::128B; text excludes the dot */
    TOKEN_INTEGER,
    TOKEN_FLOAT32, /* 0f… */
    TOKEN_FLOAT64, /* 0d… and decimal */
    TOKEN_STRING,
    TOKEN_PUNCTUATION, /* one character, or one of << >> == != <= >= && || */
} token_kind;

typedef struct token {
    token_kind kind;
    const char *text; /* lives as long as the arena */
    uint64_t bits;    /* value of a number */
    unsigned line;
} token;

typedef struct lexer {
    arena *arena;
    const char *at, *end;
    unsigned line;
    token token; /* current token */
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

/* Consumes the current token if it equals punctuation or a directive. Returns true if it did. */
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

/* Skips a bracketed group, such as { … }, if the current token opens one. */
void lexer_skip_group(lexer *l, const char *open, const char *close);

_Noreturn void lexer_error(lexer *l, unsigned line, const char *format, ...) PRINTF_LIKE(3, 4);

/* Returns the current token in the form of an error message. */
const char *lexer_shown(lexer *l);

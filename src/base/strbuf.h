/* A growing, NUL-terminated string in an arena. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

/* Character classes of ASCII, independent of the locale. */
static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns the length of text or width, whichever is larger. */
static inline size_t wider(size_t width, const char *text)
{
    return strlen(text) > width ? strlen(text) : width;
}

/* Returns true if a list, separated by commas or spaces, contains a name. */
bool lists_word(const char *list, const char *name);

typedef struct strbuf {
    arena *arena;
    char *text;
    size_t length, capacity;
} strbuf;

strbuf strbuf_new(arena *a);

/* Make room for `more` bytes after the end. strbuf_reserve returns a pointer to them. */
void strbuf_grow(strbuf *s, size_t more);
static inline char *strbuf_reserve(strbuf *s, size_t more)
{
    if (s->capacity - s->length <= more)
        strbuf_grow(s, more);
    return s->text + s->length;
}

void strbuf_bytes(strbuf *s, const char *bytes, size_t count);
static inline void strbuf_put(strbuf *s, const char *text)
{
    strbuf_bytes(s, text, strlen(text));
}
void strbuf_char(strbuf *s, char c);
void strbuf_unsigned(strbuf *s, uint64_t number);
void strbuf_signed(strbuf *s, int64_t number);

void strbuf_upper(strbuf *s, const char *text); /* ASCII letters in upper case */

/* Appends a number in lower-case hexadecimal digits, with leading zeros. */
void strbuf_hex(strbuf *s, uint64_t number, unsigned digits);

/* Appends spaces up to a column, counted from the byte at line_start. */
void strbuf_pad(strbuf *s, size_t line_start, size_t column);

/* Appends formatted text, but no floating point: its decimal point depends on the locale. */
void strbuf_format(strbuf *s, const char *format, ...) PRINTF_LIKE(2, 3);

/* A string that grows at its end, kept in an arena. Always NUL-terminated. */
#ifndef PTXGEN_BASE_STRBUF_H
#define PTXGEN_BASE_STRBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct strbuf {
    arena *arena;
    char *text;
    size_t length, capacity;
} strbuf;

strbuf strbuf_new(arena *a);

/* Makes room for more bytes behind the end and gives a pointer to the first of them. */
char *strbuf_reserve(strbuf *s, size_t more);

void strbuf_bytes(strbuf *s, const char *bytes, size_t count);
void strbuf_put(strbuf *s, const char *text);
void strbuf_char(strbuf *s, char c);
void strbuf_unsigned(strbuf *s, uint64_t number);
void strbuf_signed(strbuf *s, int64_t number);

/* digits hexadecimal digits, lower case, with leading zeros. */
void strbuf_hex(strbuf *s, uint64_t number, unsigned digits);

/* Spaces up to a column counted from the byte at line_start; none when the text is there already.
 */
void strbuf_pad(strbuf *s, size_t line_start, size_t column);

/* printf. Not for floating point: its decimal point follows the locale. */
void strbuf_format(strbuf *s, const char *format, ...) PRINTF_LIKE(2, 3);

#endif

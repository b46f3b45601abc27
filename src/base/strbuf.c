#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>

enum { FIRST_CAPACITY = 256 };

bool lists_word(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',' || at[-1] == ' ') && strchr(", ", at[length]))
            return true;
    return false;
}

strbuf strbuf_new(arena *a)
{
    strbuf s = { .arena = a, .text = arena_alloc(a, FIRST_CAPACITY), .capacity = FIRST_CAPACITY };
    s.text[0] = '\0';
    return s;
}

void strbuf_grow(strbuf *s, size_t more)
{
    size_t wanted = s->length + more + 1, doubled = s->capacity * 2;
    if (wanted <= more)
        arena_exhausted(s->arena, more);
    size_t capacity = wanted > doubled ? wanted : doubled;
    char *text = arena_alloc(s->arena, capacity);
    memcpy(text, s->text, s->length);
    s->text = text;
    s->capacity = capacity;
}

/* Appends count uninitialised bytes and returns a pointer to the first. */
static char *lengthen(strbuf *s, size_t count)
{
    char *end = strbuf_reserve(s, count);
    end[count] = '\0';
    s->length += count;
    return end;
}

void strbuf_bytes(strbuf *s, const char *bytes, size_t count)
{
    char *end = lengthen(s, count);
    if (count)
        memcpy(end, bytes, count);
}

void strbuf_char(strbuf *s, char c)
{
    *lengthen(s, 1) = c;
}

void strbuf_unsigned(strbuf *s, uint64_t number)
{
    char digits[20];
    size_t first = sizeof digits;
    do
        digits[--first] = (char)('0' + number % 10);
    while (number /= 10);
    strbuf_bytes(s, digits + first, sizeof digits - first);
}

void strbuf_signed(strbuf *s, int64_t number)
{
    if (number < 0)
        strbuf_char(s, '-');
    strbuf_unsigned(s, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void strbuf_upper(strbuf *s, const char *text)
{
    for (; *text; text++)
        strbuf_char(s, *text >= 'a' && *text <= 'z' ? (char)(*text - 'a' + 'A') : *text);
}

void strbuf_hex(strbuf *s, uint64_t number, unsigned digits)
{
    char *end = lengthen(s, digits);
    for (unsigned i = digits; i-- > 0; number >>= 4)
        end[i] = "0123456789abcdef"[number & 15];
}

void strbuf_pad(strbuf *s, size_t line_start, size_t column)
{
    size_t at = s->length - line_start;
    if (at < column)
        memset(lengthen(s, column - at), ' ', column - at);
}

void strbuf_format(strbuf *s, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length > 0) {
        vsnprintf(strbuf_reserve(s, (size_t)length), (size_t)length + 1, format, again);
        s->length += (size_t)length;
    }
    va_end(again);
}

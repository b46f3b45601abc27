#include "base/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

diags diags_new(arena *a)
{
    return (diags){ .arena = a };
}

static void add(diags *d, severity level, diag_code code, location where, const char *format,
                va_list args)
{
    *VEC_PUSH(d->arena, &d->list) =
        (diagnostic){ .severity = level,
                      .code = code,
                      .where = where,
                      .message = arena_vformat(d->arena, format, args) };
    d->errors += level == SEVERITY_ERROR;
}

void diag_error(diags *d, diag_code code, location where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(d, SEVERITY_ERROR, code, where, format, args);
    va_end(args);
}

void diag_warning(diags *d, diag_code code, location where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(d, SEVERITY_WARNING, code, where, format, args);
    va_end(args);
}

void diag_note(diags *d, diag_code code, location where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(d, SEVERITY_NOTE, code, where, format, args);
    va_end(args);
}

const char *diag_number(diag_code code)
{
    static const char *const numbers[] = {
#define DIAG_TEXT(number)         (number) < 10 ? "E00" #number : "E0" #number
#define DIAG(id, number, meaning) [DIAG_##id] = DIAG_TEXT(number),
#include "base/diag.def"
#undef DIAG
    };
    return numbers[code];
}

/* A group is an error or warning and the notes that explain it; groups go by line. */
typedef struct group {
    size_t first, count;
    unsigned line, column;
} group;

static int by_place(const void *left, const void *right)
{
    const group *a = left, *b = right;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* The bytes of a piece of user input, none of which may steer a terminal. UTF-8 passes. */
static void put_harmless(strbuf *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        strbuf_char(out, c == '\t' ? '\t' : c < 0x20 || c == 0x7f ? '?' : (char)c);
    }
}

/* The line with a caret under the place. A long line is cut to a window around it. */
static void put_excerpt(strbuf *out, const location *where, const char *caret_on,
                        const char *color_off)
{
    enum { WINDOW = 160, BEFORE = 60 };
    size_t length = strlen(where->text), column = where->column ? where->column - 1 : 0;
    if (column > length)
        column = length;
    size_t from = length > WINDOW && column > BEFORE ? column - BEFORE : 0;
    size_t shown = length - from > WINDOW ? WINDOW : length - from;
    size_t marked = where->length ? where->length : 1;
    if (marked > from + shown - column && from + shown > column)
        marked = from + shown - column;

    strbuf_format(out, "%5u | ", where->line);
    put_harmless(out, where->text + from, shown);
    strbuf_put(out, "\n      | ");
    for (size_t i = from; i < column; i++)
        if ((where->text[i] & 0xc0) != 0x80) /* one column a character, not a byte */
            strbuf_char(out, where->text[i] == '\t' ? '\t' : ' ');
    strbuf_put(out, caret_on);
    strbuf_char(out, '^');
    for (size_t i = column + 1; i < column + marked && i < length; i++)
        if ((where->text[i] & 0xc0) != 0x80)
            strbuf_char(out, '~');
    strbuf_put(out, color_off);
    strbuf_char(out, '\n');
}

static void put_diagnostic(strbuf *out, const diagnostic *d, bool color)
{
    static const char *const words[] = { "error", "warning", "note" };
    static const char *const colors[] = { "\033[1;31m", "\033[1;35m", "\033[1;36m" };
    const char *off = color ? "\033[0m" : "";
    const char *on = color ? colors[d->severity] : "";

    if (d->where.file) {
        put_harmless(out, d->where.file, strlen(d->where.file));
        if (d->where.line)
            strbuf_format(out, ":%u:%u", d->where.line, d->where.column);
    } else {
        strbuf_put(out, "ptxgen");
    }
    strbuf_format(out, ": %s%s:%s ", on, words[d->severity], off);
    for (const char *line = d->message; *line;) {
        size_t length = strcspn(line, "\n");
        put_harmless(out, line, length);
        line += length;
        if (*line) {
            strbuf_put(out, "\n    ");
            line++;
        }
    }
    if (d->severity != SEVERITY_NOTE)
        strbuf_format(out, " [%s]", diag_number(d->code));
    strbuf_char(out, '\n');
    if (d->where.line && d->where.text)
        put_excerpt(out, &d->where, on, off);
}

void diags_render(const diags *d, strbuf *out, bool color)
{
    VEC(group) groups = { 0 };
    for (size_t i = 0; i < d->list.count; i++) {
        const diagnostic *item = &d->list.items[i];
        if (item->severity == SEVERITY_NOTE && groups.count)
            groups.items[groups.count - 1].count++;
        else
            *VEC_PUSH(d->arena, &groups) = (group){ i, 1, item->where.line, item->where.column };
    }
    if (groups.count)
        qsort(groups.items, groups.count, sizeof *groups.items, by_place);
    for (size_t g = 0; g < groups.count; g++)
        for (size_t i = 0; i < groups.items[g].count; i++)
            put_diagnostic(out, &d->list.items[groups.items[g].first + i], color);
}

enum { LONGEST_NAME = 64 };

/* Optimal string alignment distance: insert, delete, replace, swap neighbours. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][LONGEST_NAME + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = before[j - 1] + (a[i - 1] != b[j - 1]);
            best = before[j] + 1 < best ? before[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                earlier[j - 2] + 1 < best)
                best = earlier[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *closest_match(const char *text, const char *const *candidates, size_t count)
{
    size_t length = strlen(text);
    if (length == 0 || length > LONGEST_NAME)
        return NULL;
    const char *closest = NULL;
    size_t closest_distance = (length + 2) / 3 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t candidate_length = strlen(candidates[i]);
        if (candidate_length > LONGEST_NAME)
            continue;
        size_t distance = edit_distance(text, length, candidates[i], candidate_length);
        if (distance < closest_distance) {
            closest_distance = distance;
            closest = candidates[i];
        }
    }
    return closest;
}

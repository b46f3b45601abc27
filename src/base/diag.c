#include "base/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *diag_number(diag_code code)
{
    static const char *const numbers[] = {
#define DIAG(id, number) (number) < 10 ? "E00" #number : "E0" #number,
#include "base/diag.def"
#undef DIAG
    };
    return numbers[code];
}

diags diags_new(arena *a)
{
    return (diags){ .arena = a };
}

void diag_add(diags *d, severity level, diag_code code, location where, const char *format, ...)
{
    bool is_error = level == SEVERITY_ERROR;
    d->errors += is_error;
    d->warnings += level == SEVERITY_WARNING;
    bool hidden = d->kept[level] >= DIAG_LIMIT || (level == SEVERITY_NOTE && d->dropped);
    if (level != SEVERITY_NOTE)
        d->dropped = hidden;
    if (hidden && (!is_error || d->seen[code]))
        return;
    d->kept[level] += !hidden;
    d->seen[code] = d->seen[code] || is_error;
    va_list args;
    va_start(args, format);
    *VEC_PUSH(d->arena, &d->list) = (diagnostic){ .severity = level,
                                                  .code = code,
                                                  .where = where,
                                                  .message = arena_vformat(d->arena, format, args),
                                                  .hidden = hidden };
    va_end(args);
}

bool diags_full(const diags *d)
{
    return d->errors >= DIAG_LIMIT;
}

const char *diag_line(arena *a, const location *where, const location *sentence)
{
    return where->file == sentence->file
               ? arena_format(a, "line %u", where->line)
               : arena_format(a, "line %u of %s", where->line, where->file);
}

/* A diagnostic and its notes; groups are sorted by location. */
typedef struct group {
    const diagnostic *head;
    size_t count;
} group;

static unsigned include_depth(const location *where)
{
    unsigned depth = 0;
    for (const location *at = where->from; at; at = at->from)
        depth++;
    return depth;
}

/* Orders locations as in one text in which each included file follows the name that includes it. */
static int compare_places(const location *a, const location *b)
{
    unsigned a_depth = include_depth(a), b_depth = include_depth(b);
    if (a_depth != b_depth) {
        int order = a_depth > b_depth ? compare_places(a->from, b) : compare_places(a, b->from);
        return order ? order : a_depth > b_depth ? 1 : -1;
    }
    int order = a->from != b->from ? compare_places(a->from, b->from) : 0;
    if (order)
        return order;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->column < b->column ? -1 : a->column > b->column;
}

static int by_place(const void *left, const void *right)
{
    const group *a = left, *b = right;
    int order = compare_places(&a->head->where, &b->head->where);
    return order ? order : a->head < b->head ? -1 : a->head > b->head;
}

/* Returns true if a byte continues a UTF-8 character that starts at most three bytes before it. */
static bool is_continued(const char *text, size_t at)
{
    for (size_t back = 1; back <= 3 && back <= at; back++) {
        unsigned char first = (unsigned char)text[at - back];
        if (first >= 0xc0)
            return first >= (back == 1 ? 0xc2 : back == 2 ? 0xe0 : 0xf0) && first < 0xf8;
        if (first < 0x80)
            return false;
    }
    return false;
}

/* Appends text with '?' for control characters, which could steer a terminal: below U+0020, and
 * from U+007F to U+009F, as UTF-8 or as a single byte. */
static void put_harmless(strbuf *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i],
                      next = i + 1 < length ? (unsigned char)text[i + 1] : 0;
        bool is_pair = c == 0xc2 && next >= 0x80 && next < 0xa0;
        bool is_control =
            c < 0x20 || c == 0x7f || is_pair || (c >= 0x80 && c < 0xa0 && !is_continued(text, i));
        strbuf_char(out, c == '\t' || !is_control ? (char)c : '?');
        i += is_pair;
    }
}

/* Writes the line with a caret below the location. A long line is cut to a window around it. */
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
        if ((where->text[i] & 0xc0) != 0x80) /* one column per character, not per byte */
            strbuf_char(out, where->text[i] == '\t' ? '\t' : ' ');
    strbuf_put(out, caret_on);
    strbuf_char(out, '^');
    for (size_t i = column + 1; i < column + marked && i < length; i++)
        if ((where->text[i] & 0xc0) != 0x80)
            strbuf_char(out, '~');
    strbuf_put(out, color_off);
    strbuf_char(out, '\n');
}

enum { MOST_INCLUDES = 20 };

/* Writes the innermost `most` includes, the outermost first. */
static void put_includes(strbuf *out, const location *from, unsigned most)
{
    if (!from)
        return;
    if (most)
        put_includes(out, from->from, most - 1);
    else
        strbuf_format(out, "In a file included through %u others:\n", include_depth(from) + 1);
    if (!most)
        return;
    strbuf_put(out, "In file included from ");
    put_harmless(out, from->file, strlen(from->file));
    strbuf_format(out, ":%u:\n", from->line);
}

/* Maximum number of bytes shown of a message's line. Quoted input can have any length. */
enum { LONGEST_LINE = 2000 };

static void put_diagnostic(strbuf *out, const diagnostic *d, bool with_code, bool color)
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
        put_harmless(out, line, length < LONGEST_LINE ? length : LONGEST_LINE);
        strbuf_put(out, length > LONGEST_LINE ? "..." : "");
        line += length;
        if (*line) {
            strbuf_put(out, "\n    ");
            line++;
        }
    }
    if (with_code)
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
        if (item->hidden)
            continue;
        group *last = groups.count ? &groups.items[groups.count - 1] : NULL;
        if (last && item->severity == SEVERITY_NOTE && last->head->severity != SEVERITY_NOTE &&
            item->code == last->head->code)
            last->count++;
        else
            *VEC_PUSH(d->arena, &groups) = (group){ .head = item, .count = 1 };
    }
    if (groups.count)
        qsort(groups.items, groups.count, sizeof *groups.items, by_place);
    const location *from = NULL; /* include of the previous diagnostic */
    for (size_t g = 0; g < groups.count; g++)
        for (size_t i = 0; i < groups.items[g].count; i++) {
            const diagnostic *item = &groups.items[g].head[i];
            if (item->where.from != from)
                put_includes(out, item->where.from, MOST_INCLUDES);
            from = item->where.from;
            put_diagnostic(out, item, i == 0, color);
        }
}

enum { LONGEST_NAME = 64 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

enum { EDIT = 2 };

/* Returns the cost of a missing character: half for an underscore, which users omit more often. */
static size_t weight(char c)
{
    return c == '_' ? EDIT / 2 : EDIT;
}

/* Returns the optimal string alignment distance (with swaps of neighbours). Ignores case. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][LONGEST_NAME + 1] = { { 0 } };
    for (size_t j = 1; j <= b_length; j++)
        rows[0][j] = rows[0][j - 1] + weight(b[j - 1]);
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        size_t deletion = weight(a[i - 1]);
        now[0] = before[0] + deletion;
        for (size_t j = 1; j <= b_length; j++) {
            size_t insertion = weight(b[j - 1]);
            size_t best = before[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]) ? EDIT : 0);
            best = before[j] + deletion < best ? before[j] + deletion : best;
            best = now[j - 1] + insertion < best ? now[j - 1] + insertion : best;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]) && earlier[j - 2] + EDIT < best)
                best = earlier[j - 2] + EDIT;
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
    size_t closest_distance = (length + 1) / 3 * EDIT + 1;
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

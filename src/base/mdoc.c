/* A line of a page is text, or a dot followed by macros and words. Block macros (a section, a list,
 * an example) set the margin. Macros within a line format words: "Fl v" is -v, "Op Ar file" is
 * [file], and "Ns" suppresses the next space. Words are collected until a space may end them. A
 * word that would exceed the right margin starts a new line. Supported macros:
 *
 *   .Sh .Ss .Pp .Bl -tag|-enum|-dash .It .El .Bd -literal .Ed .Dd .Dt .Os .Nm .Nd
 *   Fl Ar Op Cm Ic Va Vt Fn In Ev Dv Pa Li Em Sy Xr Sx Ql Sq Dq Pq Ns
 */
#include "base/mdoc.h"

#include <stdlib.h>

enum {
    WIDTH = 78,
    TEXT_INDENT = 5,
    SUBSECTION_INDENT = 3,
    TAG_WIDTH = 6,
    NUMBER_WIDTH = 4,
    EXAMPLE_INDENT = 6,
    MAX_WORDS = 64,
    MAX_LISTS = 8,
};

typedef enum list_kind { LIST_TAG, LIST_ENUM, LIST_DASH } list_kind;

typedef struct list {
    list_kind kind;
    unsigned indent, width; /* columns of the list, and of text after a tag */
    unsigned items;
    bool compact;
} list;

typedef struct writer {
    strbuf *out;
    strbuf word; /* text since the last space */
    unsigned word_columns, column, indent;
    bool joined;  /* no space before the next word */
    bool literal; /* within an example, indented by example_indent */
    unsigned example_indent;
    bool synopsis;
    bool blank_above; /* the last line is empty or a heading */
    const char *name; /* name of the page */
    list lists[MAX_LISTS];
    unsigned list_count;
} writer;

static unsigned columns_of(const char *text)
{
    unsigned columns = 0;
    for (; *text; text++)
        columns += (*text & 0xC0) != 0x80; /* UTF-8: skip continuation bytes */
    return columns;
}

/* Appends text without escapes: "\&" becomes nothing, "\e" a backslash, "\-" a dash. */
static void put_unescaped(strbuf *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '\\' || i + 1 == length)
            strbuf_char(out, text[i]);
        else if (text[++i] != '&')
            strbuf_char(out, text[i] == 'e' ? '\\' : text[i]);
    }
}

/* Ends a line and removes trailing spaces. */
static void newline(writer *w)
{
    while (w->out->length && w->out->text[w->out->length - 1] == ' ')
        w->out->length--;
    strbuf_char(w->out, '\n');
    w->column = 0;
}

static void end_word(writer *w)
{
    w->joined = false;
    if (!w->word.length)
        return;
    if (w->column > w->indent && w->column + 1 + w->word_columns > WIDTH)
        newline(w);
    bool spaced = w->column > w->indent;
    for (; w->column < w->indent; w->column++)
        strbuf_char(w->out, ' ');
    if (spaced) {
        strbuf_char(w->out, ' ');
        w->column++;
    }
    strbuf_bytes(w->out, w->word.text, w->word.length);
    w->column += w->word_columns;
    w->word.length = w->word_columns = 0;
    w->blank_above = false;
}

static void end_line(writer *w)
{
    end_word(w);
    if (w->column)
        newline(w);
}

static void blank_line(writer *w)
{
    end_line(w);
    if (!w->blank_above)
        newline(w);
    w->blank_above = true;
}

static void put(writer *w, const char *text)
{
    if (!w->joined)
        end_word(w);
    size_t start = w->word.length;
    put_unescaped(&w->word, text, strlen(text));
    strbuf_char(&w->word, '\0');
    w->word.length--;
    w->word_columns += columns_of(w->word.text + start);
    w->joined = false;
}

static void put_joined(writer *w, const char *text)
{
    w->joined = w->word.length > 0;
    put(w, text);
}

static void put_opening(writer *w, const char *text)
{
    put(w, text);
    w->joined = true;
}

/* The words after a dot. Words in quotes are one word, and never a macro. */
typedef struct words {
    const char *at[MAX_WORDS];
    bool quoted[MAX_WORDS];
    unsigned count;
} words;

static words split(arena *a, const char *line, size_t length)
{
    words found = { .count = 0 };
    char *at = arena_copy(a, line, length);
    while (*(at += strspn(at, " ")) && found.count < MAX_WORDS) {
        bool quoted = *at == '"';
        at += quoted;
        found.quoted[found.count] = quoted;
        found.at[found.count++] = at;
        at += strcspn(at, quoted ? "\"" : " ");
        if (*at)
            *at++ = '\0';
    }
    return found;
}

static bool word_is(const words *l, unsigned n, const char *text)
{
    return n < l->count && strcmp(l->at[n], text) == 0;
}

/* A macro within a line. It encloses each of its words, or with encloses the rest of the line. */
typedef struct macro {
    const char *name, *before, *after;
    bool encloses;
} macro;

static const macro *find_macro(const words *l, unsigned n)
{
    static const macro macros[] = { { "Fl", "-", NULL, false },
                                    { "Fn", NULL, "()", false },
                                    { "In", "<", ">", false },
                                    { "Op", "[", "]", true },
                                    { "Pq", "(", ")", true },
                                    { "Ql", "'", "'", true },
                                    { "Sq", "'", "'", true },
                                    { "Dq", "\"", "\"", true },
                                    { .name = "Ar" },
                                    { .name = "Cm" },
                                    { .name = "Ic" },
                                    { .name = "Va" },
                                    { .name = "Ev" },
                                    { .name = "Dv" },
                                    { .name = "Vt" },
                                    { .name = "Pa" },
                                    { .name = "Li" },
                                    { .name = "Em" },
                                    { .name = "Sy" },
                                    { .name = "Xr" },
                                    { .name = "Sx" },
                                    { .name = "Ns" },
                                    { .name = "Nm" } };
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
        if (word_is(l, n, macros[i].name) && !l->quoted[n])
            return &macros[i];
    return NULL;
}

static bool closes(const words *l, unsigned n)
{
    return strlen(l->at[n]) == 1 && !l->quoted[n] && strchr(".,:;)]?!", *l->at[n]);
}

/* Appends the name of a page: "ptxgen(1)". */
static void put_page(writer *w, const words *l, unsigned n)
{
    put(w, l->at[n]);
    put_joined(w, "(");
    w->joined = true;
    put(w, l->at[n + 1]);
    put_joined(w, ")");
}

/* Appends the words from number n on and applies the macros within the line. */
static void put_words(writer *w, const words *l, unsigned n)
{
    const char *open[MAX_WORDS]; /* closing marks of open enclosures */
    unsigned open_count = 0;
    const macro *style = NULL;
    for (; n < l->count; n++) {
        unsigned rest = n;
        while (rest < l->count && closes(l, rest))
            rest++;
        while (open_count && rest == l->count)
            put_joined(w, open[--open_count]);
        const macro *found = find_macro(l, n);
        bool last = n + 1 == l->count || find_macro(l, n + 1) || closes(l, n + 1);
        if (found && found->encloses) {
            put_opening(w, found->before);
            open[open_count++] = found->after;
            style = NULL;
        } else if (found) {
            style = found;
            if (word_is(l, n, "Ns")) {
                w->joined = true;
            } else if (word_is(l, n, "Nm") && last) {
                put(w, w->name);
            } else if (word_is(l, n, "Ar") && last) {
                put(w, "file");
            } else if (word_is(l, n, "Xr") && n + 2 < l->count) {
                put_page(w, l, n + 1);
                n += 2;
            }
        } else if (closes(l, n)) {
            w->joined = w->word.length > 0;
            put(w, l->at[n]);
        } else if (word_is(l, n, "(") || word_is(l, n, "[")) {
            put_opening(w, word_is(l, n, "(") ? "(" : "[");
        } else {
            if (style && style->before)
                put_opening(w, style->before);
            put(w, l->at[n]);
            if (style && style->after)
                put_joined(w, style->after);
        }
    }
    while (open_count)
        put_joined(w, open[--open_count]);
}

static void put_heading(writer *w, const words *l, unsigned indent)
{
    blank_line(w);
    w->indent = indent;
    for (unsigned n = 1; n < l->count; n++)
        put(w, l->at[n]);
    end_line(w);
    w->blank_above = true;
    w->indent = TEXT_INDENT;
    w->synopsis = word_is(l, 1, "SYNOPSIS");
}

static const char *begin_list(writer *w, const words *l)
{
    if (w->list_count == MAX_LISTS)
        return "too many nested lists";
    list *made = &w->lists[w->list_count++];
    *made = (list){ .indent = w->indent, .width = NUMBER_WIDTH };
    if (word_is(l, 1, "-tag"))
        made->width = TAG_WIDTH;
    else if (word_is(l, 1, "-enum"))
        made->kind = LIST_ENUM;
    else if (word_is(l, 1, "-dash"))
        made->kind = LIST_DASH;
    else
        return "a list must be -tag, -enum or -dash";
    for (unsigned n = 2; n < l->count; n++) {
        if (word_is(l, n, "-compact"))
            made->compact = true;
        else if (word_is(l, n, "-width") && n + 1 < l->count && !word_is(l, n + 1, "Ds"))
            made->width = (unsigned)strlen(l->at[n + 1]) + 2;
    }
    end_line(w);
    return NULL;
}

static const char *begin_item(writer *w, const words *l)
{
    if (!w->list_count)
        return "no list has begun";
    list *of = &w->lists[w->list_count - 1];
    if (of->compact)
        end_line(w);
    else
        blank_line(w);
    w->indent = of->indent;
    of->items++;
    if (of->kind == LIST_TAG) {
        put_words(w, l, 1);
    } else if (of->kind == LIST_ENUM) {
        put(w, arena_format(w->out->arena, "%u.", of->items));
    } else {
        put(w, "-");
    }
    end_word(w);
    w->indent = of->indent + of->width;
    if (w->column + 1 > w->indent)
        newline(w);
    for (; w->column && w->column < w->indent; w->column++)
        strbuf_char(w->out, ' ');
    return NULL;
}

static void put_name(writer *w, const words *l)
{
    if (!w->name && l->count > 1)
        w->name = l->at[1];
    if (w->synopsis && l->count == 1) {
        end_line(w);
        w->indent = TEXT_INDENT;
    }
    put_words(w, l, 0);
    if (w->synopsis && l->count == 1) {
        end_word(w);
        w->indent = TEXT_INDENT + columns_of(w->name) + 1;
    }
}

/* Renders a line that begins with a dot. Returns NULL or an error. */
static const char *take_macros(writer *w, const char *line, size_t length)
{
    words l = split(w->out->arena, line, length);
    if (!l.count || word_is(&l, 0, "\\\"") || word_is(&l, 0, "Dd") || word_is(&l, 0, "Os"))
        return NULL;
    if (word_is(&l, 0, "Dt") && l.count > 2) {
        put_page(w, &l, 1);
        end_line(w);
    } else if (word_is(&l, 0, "Sh")) {
        put_heading(w, &l, 0);
    } else if (word_is(&l, 0, "Ss")) {
        put_heading(w, &l, SUBSECTION_INDENT);
    } else if (word_is(&l, 0, "Pp")) {
        blank_line(w);
    } else if (word_is(&l, 0, "Bl")) {
        return begin_list(w, &l);
    } else if (word_is(&l, 0, "It")) {
        return begin_item(w, &l);
    } else if (word_is(&l, 0, "El")) {
        if (!w->list_count)
            return "no list has begun";
        end_line(w);
        w->indent = w->lists[--w->list_count].indent;
    } else if (word_is(&l, 0, "Bd") && word_is(&l, 1, "-literal")) {
        blank_line(w);
        w->literal = true;
        w->example_indent = w->indent;
        if (word_is(&l, 2, "-offset") && l.count > 3) /* "2n" */
            w->example_indent +=
                word_is(&l, 3, "indent") ? EXAMPLE_INDENT : (unsigned)atoi(l.at[3]);
    } else if (word_is(&l, 0, "Nd")) {
        put(w, "-");
        put_words(w, &l, 1);
    } else if (word_is(&l, 0, "Nm")) {
        put_name(w, &l);
    } else if (find_macro(&l, 0)) {
        put_words(w, &l, 0);
    } else {
        return arena_format(w->out->arena, "unknown macro '%s'", l.at[0]);
    }
    return NULL;
}

bool mdoc_render(strbuf *out, const char *page, unsigned *line, const char **error)
{
    writer w = { .out = out, .word = strbuf_new(out->arena), .blank_above = true };
    *error = NULL;
    *line = 0;
    while (*page && !*error) {
        size_t length = strcspn(page, "\n");
        ++*line;
        if (w.literal && length == 3 && memcmp(page, ".Ed", length) == 0) {
            w.literal = false;
        } else if (w.literal) {
            for (unsigned column = 0; length && column < w.example_indent; column++)
                strbuf_char(out, ' ');
            put_unescaped(out, page, length);
            strbuf_char(out, '\n');
            w.blank_above = !length;
        } else if (*page == '.') {
            *error = take_macros(&w, page + 1, length - 1);
        } else {
            for (size_t i = 0, count; i < length; i += count + 1) {
                count = strcspn(page + i, " \n");
                if (count)
                    put(&w, arena_copy(out->arena, page + i, count));
            }
        }
        page += length + (page[length] == '\n');
    }
    end_line(&w);
    if (!*error && (w.list_count || w.literal))
        *error = "a list or an example has no end";
    return !*error;
}

/* Reads INI text with inih.
 *
 * inih distinguishes keys, headers, comments and continued lists. But it passes no line numbers or
 * columns to its handler, cuts lines at its buffer's size, and reports only the first wrong line.
 * Therefore it reads through read_line below, one line at a time. read_line
 * - counts lines and keeps the whole line for messages and values
 * - passes inih a short line of the same kind, or an empty line for one that inih would misread
 * - reports the previous line as wrong if the handler was not called for it
 *
 * inih cuts section names at 49 bytes, so read_line parses headers. */
#include "input/section.h"

#include <ini.h>
#include <stdio.h>
#include <string.h>

/* Number of lines that are not UTF-8 text after which reading stops: the file is not a spec. */
enum { MAX_BAD_LINES = 10 };

static const char BLANKS[] = " \t";
static const char LABEL_CHARACTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_-.";

typedef struct reader {
    arena *arena;
    diags *diags;
    const char *next, *end; /* rest of the text */
    location line;          /* the whole current line */
    size_t code;            /* length of the line without its comment */
    bool handled;           /* the line needs no call of the handler, or had one */
    bool skipping;          /* after an unreadable key line: skips the indented lines that follow */
    unsigned bad_lines;
    section *section;
    entry *entry; /* entry that an indented line continues */
    section_list *sections;
} reader;

location location_part(location where, size_t offset, size_t length)
{
    where.column += (unsigned)offset;
    where.length = (unsigned)length;
    return where;
}

const char *const global_keys[] = { "prefix", "targets", "dims", "embed", "include", NULL };

bool is_global_key(const char *name)
{
    for (const char *const *k = global_keys; *k; k++)
        if (strcmp(*k, name) == 0)
            return true;
    return false;
}

bool section_is_global(const section *s)
{
    return s->name && strcmp(s->name, GLOBAL_SECTION) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns the length of the UTF-8 sequence at text, of which `left` bytes remain. Returns 0 for an
 * invalid sequence or a control character, which could steer a terminal. */
static size_t character_length(const unsigned char *text, size_t left)
{
    static const unsigned smallest[] = { 0, 0, 0xa0, 0x800, 0x10000 };
    if (text[0] < 0x80)
        return text[0] == '\t' || (text[0] >= ' ' && text[0] != 0x7f);
    size_t length = text[0] < 0xc0 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (!length || length > left || text[0] > 0xf4)
        return 0;
    unsigned code = text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < smallest[length] || code > 0x10ffff || surrogate ? 0 : length;
}

/* Reports the first byte of a line that is not text, and replaces all such bytes by '?'. */
static bool clean_text(reader *r, char *line, size_t size)
{
    bool clean = true;
    for (size_t at = 0, length; at < size; at += length) {
        unsigned char c = (unsigned char)line[at];
        length = character_length((const unsigned char *)line + at, size - at);
        if (length)
            continue;
        location where = location_part(r->line, at, 1);
        if (clean && c == '\r')
            diag_error(r->diags, DIAG_SYNTAX, where,
                       "carriage return inside a line; end lines with LF or CR LF");
        else if (clean)
            diag_error(r->diags, DIAG_BAD_UTF8, where,
                       "byte 0x%02x is not UTF-8 text; save the file as UTF-8 without control "
                       "characters",
                       c);
        clean = false;
        line[at] = '?';
        length = 1;
    }
    return clean;
}

/* Marks the section as damaged, so that its missing keys are not reported. */
static void mark_damaged(reader *r)
{
    if (r->section)
        r->section->damaged = true;
}

static section *add_section(reader *r)
{
    section *s = arena_zalloc(r->arena, sizeof *s);
    s->where = s->name_where = r->line;
    *VEC_PUSH(r->arena, r->sections) = s;
    r->section = s;
    r->entry = NULL;
    return s;
}

/* Narrows the range [*from, *to) of text to exclude blanks at both ends. */
static void trim(const char *text, size_t *from, size_t *to)
{
    while (*from < *to && is_blank(text[*from]))
        ++*from;
    while (*to > *from && is_blank(text[*to - 1]))
        --*to;
}

/* Reads [family] or [family:label], and an optional comment. An invalid header begins a section
 * without a name, so that its keys are not added to the previous section. */
static void read_header(reader *r, size_t start)
{
    const char *text = r->line.text;
    section *s = add_section(r);
    size_t open = start + 1, close = open + strcspn(text + open, "]");
    s->where = location_part(r->line, start, close + 1 - start);
    if (!text[close]) {
        s->where = location_part(r->line, start, close - start);
        diag_error(r->diags, DIAG_BAD_SECTION, s->where,
                   "the section header has no ']'; write [family] or [family:label]");
        return;
    }
    size_t behind = close + 1 + strspn(text + close + 1, BLANKS);
    if (text[behind] && text[behind] != ';' && text[behind] != '#') {
        diag_error(r->diags, DIAG_BAD_SECTION,
                   location_part(r->line, behind, strlen(text + behind)),
                   "text after a section header; move it to its own line");
        return;
    }

    size_t colon = open + strcspn(text + open, ":]"), name = open, name_end = colon;
    trim(text, &name, &name_end);
    s->name_where = location_part(r->line, name, name_end - name);
    if (name == name_end) {
        diag_error(r->diags, DIAG_BAD_SECTION, s->where,
                   "the section header has no name; write [family] or [family:label]");
        return;
    }
    s->title = s->name = arena_copy(r->arena, text + name, name_end - name);
    if (colon == close)
        return;
    size_t label = colon + 1, label_end = close;
    trim(text, &label, &label_end);
    s->label = arena_copy(r->arena, text + label, label_end - label);
    s->title = arena_format(r->arena, "%s:%s", s->name, s->label);
    if (!*s->label || s->label[strspn(s->label, LABEL_CHARACTERS)]) {
        diag_error(r->diags, DIAG_BAD_SECTION,
                   *s->label ? location_part(r->line, label, label_end - label) : s->where,
                   "'%s' is not a label; use letters, digits, '_', '-' and '.'", s->label);
        s->name = NULL;
    }
}

/* Returns the length of a line without its comment, which some versions of inih keep. */
static size_t code_length(const char *text)
{
    size_t length = 0;
    while (text[length] && !(text[length] == ';' && (!length || is_blank(text[length - 1]))))
        length++;
    while (length && is_blank(text[length - 1]))
        length--;
    return length;
}

/* Returns true if inih may read the line: not if it is empty or continues an unreadable one. */
static bool accept_line(reader *r, bool clean)
{
    const char *text = r->line.text;
    size_t start = strspn(text, BLANKS);
    if (!clean) {
        r->skipping = true;
        mark_damaged(r);
        if (++r->bad_lines == MAX_BAD_LINES)
            r->next = r->end;
        return false;
    }
    if (start >= r->code || text[start] == '#')
        return false;
    r->skipping = r->skipping && start;
    return !r->skipping;
}

/* Returns the shortest line of the same kind, key line or continued list, for inih. */
static const char *stand_in(const reader *r)
{
    const char *text = r->line.text;
    size_t start = strspn(text, BLANKS), separator = strcspn(text, "=:");
    if (start && r->entry)
        return " x";
    if (separator >= r->code)
        return "x";
    return separator == start ? "=x" : "x=x";
}

/* Replaces fgets for inih. */
static char *read_line(char *buffer, int capacity, void *stream)
{
    reader *r = stream;
    if (!r->handled) {
        diag_error(r->diags, DIAG_SYNTAX, r->line,
                   "expected 'key = value', a [section] or a comment");
        mark_damaged(r);
        r->handled = true;
    }
    if (r->next == r->end)
        return NULL;

    const char *start = r->next, *newline = memchr(start, '\n', (size_t)(r->end - start));
    size_t size = (size_t)((newline ? newline : r->end) - start);
    r->next = newline ? newline + 1 : r->end;
    if (size && start[size - 1] == '\r')
        size--;
    char *line = arena_copy(r->arena, start, size);
    r->line.text = line;
    r->line.line++;
    r->line.length = (unsigned)size;

    bool clean = clean_text(r, line, size);
    r->code = code_length(line);
    size_t blanks = strspn(line, BLANKS);
    const char *handed;
    if (!accept_line(r, clean)) {
        handed = "";
    } else if (line[blanks] == '[' && !(blanks && r->entry)) {
        read_header(r, blanks);
        r->handled = true;
        handed = "[]"; /* after any header, inih continues no key */
    } else {
        r->handled = false;
        handed = stand_in(r);
    }
    snprintf(buffer, (size_t)capacity, "%s\n", handed);
    return buffer;
}

/* Adds the items in length bytes at an offset of the line; its end also separates items. */
static void add_items(reader *r, size_t offset, size_t length)
{
    entry *e = r->entry;
    size_t end = offset + length;
    const char *text = r->line.text;
    while (offset <= end && length) {
        size_t to = offset;
        while (to < end && text[to] != ',')
            to++;
        size_t from = offset, last = to;
        trim(text, &from, &last);
        location where = location_part(r->line, from, last - from);
        location comma = location_part(r->line, to < end ? to : offset - 1, 1);
        if (from < last)
            *VEC_PUSH(r->arena, &e->items) =
                (item){ .text = arena_copy(r->arena, text + from, last - from), .where = where };
        else if (to < end)
            diag_error(r->diags, DIAG_EMPTY_LIST, comma,
                       "the list of '%s' has an empty item; remove the extra comma", e->key);
        e->open = from == last;
        e->open_where = comma;
        offset = to + 1;
    }
}

static void begin_entry(reader *r)
{
    const char *text = r->line.text;
    size_t separator = strcspn(text, "=:"), start = 0, end = separator;
    trim(text, &start, &end);
    if (!r->section) {
        diag_error(r->diags, DIAG_NO_SECTION, location_part(r->line, start, end - start),
                   "a key precedes the first section; put [ptxgen] or [family] above it");
        add_section(r);
    }
    if (start == end) {
        diag_error(r->diags, DIAG_SYNTAX, location_part(r->line, separator, 1),
                   "no key before '%c'; write 'key = value'", text[separator]);
        r->entry = NULL; /* inih does not continue a key without a name */
        return;
    }
    if (text[separator] == ':')
        diag_error(r->diags, DIAG_SYNTAX, location_part(r->line, separator, 1),
                   "a key and its value are separated by '=', not ':'");

    location where = location_part(r->line, start, end - start);
    r->entry = VEC_PUSH(r->arena, &r->section->entries);
    *r->entry = (entry){ .key = arena_copy(r->arena, text + start, end - start),
                         .where = where,
                         .open = true,
                         .open_where = where };
    size_t value = separator + 1 + strspn(text + separator + 1, BLANKS);
    add_items(r, value, r->code > value ? r->code - value : 0);
}

static int handle(void *user, const char *section_name, const char *name, const char *value)
{
    (void)section_name, (void)name, (void)value;
    reader *r = user;
    r->handled = true;
    size_t start = strspn(r->line.text, BLANKS), length = r->code - start;
    const char *text = r->line.text + start;
    if (!start || !r->entry) {
        begin_entry(r);
        return 1;
    }
    bool is_key = memchr(text, '=', length);
    if (!is_key && text[0] != '[') {
        add_items(r, start, length);
        return 1;
    }
    /* An indented header or key is most likely not meant as a list item. */
    if (is_key)
        length = strcspn(text, "= \t");
    diag_error(r->diags, DIAG_SYNTAX, location_part(r->line, start, length),
               "an indented line continues the list of '%s'; remove the indent before '%.*s'",
               r->entry->key, (int)length, text);
    mark_damaged(r);
    return 1;
}

void sections_read(arena *a, const char *file, const location *from, const char *text, size_t size,
                   section_list *out, diags *d)
{
    static const char BYTE_ORDER_MARK[] = "\xef\xbb\xbf";
    size_t mark = sizeof BYTE_ORDER_MARK - 1;
    bool marked = size >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0;
    reader r = { .arena = a,
                 .diags = d,
                 .next = marked ? text + mark : text,
                 .end = text + size,
                 .line = { .file = file, .from = from, .column = 1 },
                 .handled = true,
                 .sections = out };
    ini_parse_stream(read_line, &r, handle, &r);
    for (size_t i = 0; i < out->count; i++)
        for (size_t j = 0; j < out->items[i]->entries.count; j++) {
            const entry *e = &out->items[i]->entries.items[j];
            if (e->open && e->items.count)
                diag_error(d, DIAG_EMPTY_LIST, e->open_where,
                           "the list of '%s' ends with a comma; remove it, or continue the list on "
                           "an indented line",
                           e->key);
            else if (e->open)
                diag_error(d, DIAG_EMPTY_LIST, e->where, "'%s' has no value; write '%s = value'",
                           e->key, e->key);
        }
}

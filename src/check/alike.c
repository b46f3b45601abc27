#include "check/alike.h"

#include <string.h>

#include "base/arena.h"

/* Returns true if a line is a directive with one word. */
static bool is_directive(const char *line, const char *name)
{
    size_t length = strlen(name);
    return strncmp(line, name, length) == 0 && line[length] == ' ' &&
           !strpbrk(line + length + 1, " ,;/");
}

/* Returns true if no value depends on a line, as long as no access is at fault. */
static bool is_free(const char *line)
{
    return !*line || is_directive(line, ".version") || is_directive(line, ".target") ||
           strcmp(line, "griddepcontrol.wait;") == 0 ||
           strcmp(line, "griddepcontrol.launch_dependents;") == 0;
}

/* Copies the text up to an end, without comments and with single spaces, to a line. */
static void clean_line(const char *text, const char *end, char *line)
{
    char *to = line;
    for (; text < end && strncmp(text, "//", 2) != 0; text++)
        if (*text != ' ' && *text != '\t' && *text != '\r')
            *to++ = *text;
        else if (to > line && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
    if (to > line && to[-1] == ' ')
        to[-1] = '\0';
}

static void remove_cache_hint(char *line)
{
    static const char load[] = "ld.global", hint[] = ".nc";
    char *at = strstr(line, load);
    at = at ? at + strlen(load) : line;
    if (strncmp(at, hint, strlen(hint)) == 0)
        memmove(at, at + strlen(hint), strlen(at + strlen(hint)) + 1);
}

/* Takes the next line that decides values; false: there is none. line has room for all of the text.
 */
static bool next_line(const char **text, const char *end, char *line)
{
    while (*text < end) {
        const char *newline = memchr(*text, '\n', (size_t)(end - *text));
        clean_line(*text, newline ? newline : end, line);
        *text = newline ? newline + 1 : end;
        remove_cache_hint(line);
        if (!is_free(line))
            return true;
    }
    return false;
}

/* Returns false if two slashes in a string, or behind the start of another comment, may have ended
 * a line. */
static bool is_plain(const char *line)
{
    size_t quotes = 0;
    for (const char *at = line; (at = strchr(at, '"')); at++)
        quotes++;
    return quotes % 2 == 0 && !strstr(line, "/*");
}

bool kernels_are_alike(const kernel *a, const kernel *b)
{
    if (strcmp(a->instance->name, b->instance->name) != 0 ||
        a->instance->passes != b->instance->passes)
        return false;
    arena *scratch = arena_new();
    const char *x = a->ptx, *y = b->ptx, *x_end = x + a->ptx_length, *y_end = y + b->ptx_length;
    char *of_x = arena_alloc(scratch, a->ptx_length + 1);
    char *of_y = arena_alloc(scratch, b->ptx_length + 1);
    bool alike = true, more = true;
    while (alike && more) {
        more = next_line(&x, x_end, of_x);
        alike = next_line(&y, y_end, of_y) == more &&
                (!more || (is_plain(of_x) && strcmp(of_x, of_y) == 0));
    }
    arena_free(scratch);
    return alike;
}

#include "emit/header_text.h"

#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"

/* Prints a line without what ptxas passes over. It stays a line, if an empty one, so that lines
 * have the numbers that they have in the file. No line has a string with blanks in it. */
static void print_dense(strbuf *out, const char *line, const char *end)
{
    const char *comment = NULL;
    for (const char *at = line; at + 1 < end && !comment; at++)
        if (at[0] == '/' && at[1] == '/')
            comment = at;
    end = comment ? comment : end;
    while (end > line && end[-1] == ' ')
        end--;
    size_t before = out->length;
    for (const char *at = line; at < end; at++) {
        bool starts = out->length == before;
        if (*at != ' ' || (!starts && at[-1] != ' ' && at[-1] != ','))
            strbuf_char(out, *at);
    }
    strbuf_char(out, '\n');
}

header_text header_text_of(arena *a, const kernel_set *set, const kernel *k)
{
    static const char entry[] = ".visible .entry ";
    header_text made = { k->ptx, k->ptx_length, 0, NULL, 0 };
    if (set->plan && set->embed == EMBED_STRING && !k->edited_file) {
        const char *end;
        strbuf out = strbuf_new(a);
        for (const char *line = k->ptx; *line; line = *end ? end + 1 : end) {
            end = line + strcspn(line, "\n");
            print_dense(&out, line, end);
        }
        const char *name = strstr(out.text, entry);
        made = (header_text){ .text = out.text, .length = out.length };
        made.before = (size_t)(name + strlen(entry) - out.text);
        made.behind = name + strlen(entry) + strlen(k->instance->name);
    }
    made.checksum = fnv1a64(made.text, made.length);
    return made;
}

bool header_text_is_alike(const header_text *a, const header_text *b)
{
    return a->behind && b->behind && a->before == b->before &&
           memcmp(a->text, b->text, a->before) == 0 && strcmp(a->behind, b->behind) == 0;
}

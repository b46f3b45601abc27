/* Plants faults in the text of a correct kernel. */
#ifndef PTXGEN_TESTS_MUTATE_H
#define PTXGEN_TESTS_MUTATE_H

#include <stdbool.h>
#include <string.h>

#include "test.h"
#include "base/strbuf.h"

/* Returns text with each `from` replaced by `to`. Fails the test if `from` does not occur, since no
 * fault would be planted. */
static inline const char *mutate(arena *a, const char *text, const char *from, const char *to)
{
    strbuf out = strbuf_new(a);
    const char *found = strstr(text, from);
    if (!found)
        fail_msg("nothing to replace: '%s' does not occur in\n%s", from, text);
    for (; found; found = strstr(text, from)) {
        strbuf_bytes(&out, text, (size_t)(found - text));
        strbuf_put(&out, to);
        text = found + strlen(from);
    }
    strbuf_put(&out, text);
    return out.text;
}

/* An edit of instructions that does not depend on register numbers. It applies to lines that begin
 * with a mnemonic and end, before their comment, with ending ("" matches any). Match number `which`
 * (from 1; 0 = all) becomes the text `to`, where $1, $2, … are the line's operands and $0 is the
 * line. */
typedef struct line_edit {
    const char *mnemonic, *ending;
    unsigned which;
    const char *to;
} line_edit;

/* Returns the end of an operand: a comma outside of braces, or the semicolon. */
static inline const char *operand_end(const char *at)
{
    for (int depth = 0; *at != ';' && (*at != ',' || depth); at++)
        depth += (*at == '{') - (*at == '}');
    return at;
}

static inline void put_operand(strbuf *out, const char *line, char number)
{
    if (number == '0') {
        strbuf_bytes(out, line, strcspn(line, ";") + 1);
        return;
    }
    line += strcspn(line, " ");
    for (; number > '1'; number--)
        line = operand_end(line) + 1;
    line += strspn(line, " ");
    strbuf_bytes(out, line, (size_t)(operand_end(line) - line));
}

static inline bool edit_fits(const line_edit *e, const char *line)
{
    size_t length = strcspn(line, ";\n") + 1, ending = strlen(e->ending);
    return strncmp(line, e->mnemonic, strlen(e->mnemonic)) == 0 && line[length - 1] == ';' &&
           ending <= length && strncmp(line + length - ending, e->ending, ending) == 0;
}

/* Returns text with an edit applied. Fails the test if no line matches. */
static inline const char *edit_lines(arena *a, const char *text, const line_edit *e)
{
    strbuf out = strbuf_new(a);
    unsigned found = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const char *code = line + strspn(line, " ");
        if (edit_fits(e, code) && (++found == e->which || !e->which)) {
            for (const char *c = e->to; *c; c++)
                if (*c == '$')
                    put_operand(&out, code, *++c);
                else
                    strbuf_char(&out, *c);
            strbuf_char(&out, '\n');
        } else {
            strbuf_bytes(&out, line, strcspn(line, "\n") + 1);
        }
    }
    if (found < e->which || !found)
        fail_msg("nothing to edit: %u lines are '%s…%s' in\n%s", found, e->mnemonic, e->ending,
                 text);
    return out.text;
}

/* Swaps two of four registers in a brace group of each line that contains a mnemonic. group counts
 * from 0. */
static inline const char *exchange_registers(arena *a, const char *text, const char *mnemonic,
                                             unsigned group, unsigned first, unsigned second)
{
    strbuf out = strbuf_new(a);
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n") + 1;
        const char *at = strstr(line, mnemonic);
        if (!at || at >= line + length) {
            strbuf_bytes(&out, line, length);
            line += length;
            continue;
        }
        for (unsigned g = 0; g <= group; g++)
            at = strchr(at, '{') + 1;
        const char *names[4], *end = at;
        for (unsigned i = 0; i < 4; i++) {
            names[i] = end + strspn(end, ", ");
            end = names[i] + strcspn(names[i], ",}");
        }
        strbuf_bytes(&out, line, (size_t)(at - line));
        for (unsigned i = 0; i < 4; i++) {
            const char *name = names[i == first ? second : i == second ? first : i];
            strbuf_format(&out, "%s%.*s", i ? ", " : "", (int)strcspn(name, ",}"), name);
        }
        strbuf_bytes(&out, end, (size_t)(line + length - end));
        line += length;
    }
    return out.text;
}

#endif

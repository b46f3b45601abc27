/* Make requires a backslash before a space, a hash, a colon, and before a backslash that precedes a
 * space, and doubles the dollar sign. Ninja's depfile reader accepts the same. */
#include <string.h>

#include "emit/emit.h"

static void put_name(strbuf *out, const char *name)
{
    for (const char *c = name; *c; c++) {
        size_t backslashes = strspn(c, "\\");
        if (backslashes && (c[backslashes] == ' ' || c[backslashes] == '\0'))
            strbuf_bytes(out, c, backslashes);
        if (backslashes) {
            strbuf_bytes(out, c, backslashes);
            c += backslashes - 1;
            continue;
        }
        if (*c == ' ' || *c == '#' || *c == ':')
            strbuf_char(out, '\\');
        else if (*c == '$')
            strbuf_char(out, '$');
        strbuf_char(out, *c);
    }
}

char depfile_obstacle(const char *name, depfile_reader reader)
{
    bool for_make = reader == FOR_MAKE_AND_NINJA;
    size_t length = strlen(name);
    for (const char *c = name; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == '\177' || strchr("\"&'*;<>?^`|", *c) ||
            (for_make && (*c == '%' || *c == '=')))
            return *c;
        if (for_make && *c == '\\' && (c[1] == '#' || c[1] == ':'))
            return *c;
    }
    if (for_make && name[0] == '~') /* home folder */
        return '~';
    if (for_make && length && name[length - 1] == ')' &&
        strchr(name, '(')) /* member of an archive */
        return '(';
    return '\0';
}

void emit_depfile(strbuf *out, const char *output, const char *const *inputs, size_t input_count)
{
    put_name(out, output);
    strbuf_char(out, ':');
    for (size_t i = 0; i < input_count; i++) {
        strbuf_put(out, i ? " \\\n  " : " ");
        put_name(out, inputs[i]);
    }
    strbuf_char(out, '\n');
    for (size_t i = 1; i < input_count; i++) {
        put_name(out, inputs[i]);
        strbuf_put(out, ":\n");
    }
}

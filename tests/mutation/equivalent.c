#include "mutation/equivalent.h"

#include <string.h>

#include "mutation/dataflow.h"

enum { FIELDS = 5 };

static const char *trimmed(arena *a, const char *from, const char *end)
{
    while (from < end && *from == ' ')
        from++;
    while (end > from && end[-1] == ' ')
        end--;
    return arena_copy(a, from, (size_t)(end - from));
}

bool read_equivalences(arena *a, const char *text, equivalence_list *out, const char **error)
{
    for (unsigned number = 1; *text; number++, text += *text == '\n') {
        const char *line = text, *end = text + strcspn(text, "\n"), *fields[FIELDS];
        unsigned count = 0;
        text = end;
        if (line == end || *line == '#')
            continue;
        for (; count < FIELDS && line <= end; count++) {
            const char *bar = memchr(line, '|', (size_t)(end - line));
            const char *stop = bar && count + 1 < FIELDS ? bar : end;
            fields[count] = trimmed(a, line, stop);
            line = stop + 1;
        }
        if (count < FIELDS) {
            *error = arena_format(a, "line %u has %u fields, not %d", number, count, FIELDS);
            return false;
        }
        const char *slash = strstr(fields[0], " / "), *kernel_end = fields[0] + strlen(fields[0]);
        *VEC_PUSH(a, out) = (equivalence){
            .kernel = trimmed(a, fields[0], slash ? slash : kernel_end),
            .phase = slash ? trimmed(a, slash + strlen(" / "), kernel_end) : "*",
            .kind = fields[1],
            .before = fields[2],
            .after = fields[3],
            .reason = fields[4],
        };
    }
    return true;
}

/* Returns "add.u32 %r12, %r3, 1;" as "add.u32 %r, %r, 1;". */
static const char *without_numbers(arena *a, const char *text)
{
    strbuf out = strbuf_new(a);
    while (*text) {
        size_t name = *text == '%' ? 1 + strspn(text + 1, "rdfhp") : 0;
        strbuf_bytes(&out, text, name ? name : 1);
        text += name ? name + strspn(text + name, "0123456789") : 1;
    }
    return out.text;
}

static bool fits(const char *pattern, const char *text)
{
    if (*pattern == '*')
        return fits(pattern + 1, text) || (*text && fits(pattern, text + 1));
    return *pattern == *text && (!*text || fits(pattern + 1, text + 1));
}

int find_equivalence(arena *a, const equivalence_list *list, const kernel *k, const mutant *m)
{
    const instance *in = k->instance;
    const char *phase = line_phase(a, k->ptx, m->line), *before = without_numbers(a, m->before),
               *after = without_numbers(a, m->after);
    for (size_t i = 0; i < list->count; i++) {
        const equivalence *e = &list->items[i];
        if ((fits(e->kernel, in->family->name) || fits(e->kernel, in->name)) &&
            fits(e->phase, phase) && fits(e->kind, m->kind) && fits(e->before, before) &&
            fits(e->after, after))
            return (int)i;
    }
    return -1;
}

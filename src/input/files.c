/* Reads a spec and its includes depth first, so that sections keep the order of one long file.
 * Files are compared by identity, since the same file may have several names. */
#include "input/section.h"

#include <string.h>

#include "base/hash.h"
#include "base/os.h"

enum { MAX_DEPTH = 10000 };

/* A file that is being read, and its include depth (0 = the spec). */
typedef struct open_file {
    const char *path;
    unsigned depth;
} open_file;

typedef struct reading {
    arena *arena;
    diags *diags;
    spec_files *out;
    name_map numbers; /* of all files read so far, by identity */
    VEC(bool) open;   /* by number: true while the file or one of its includes is being read */
} reading;

bool is_include(const entry *e)
{
    return strcmp(e->key, "include") == 0;
}

/* Returns the path of a name that the file at path includes. */
static const char *resolve(arena *a, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (name[0] != '/' && slash && !os_is_stream(path))
        return arena_format(a, "%.*s%s", (int)(slash + 1 - path), path, name);
    return strcmp(name, "-") == 0 ? "./-" : name;
}

static void read_file(reading *r, const open_file *file, const location *from);

static void include(reading *r, const open_file *includer, const item *i)
{
    open_file file = { resolve(r->arena, includer->path, i->text), includer->depth + 1 };
    if (file.depth > MAX_DEPTH) {
        diag_error(r->diags, DIAG_BAD_INCLUDE, i->where,
                   "%s is nested in more than %d includes; include it nearer to the spec",
                   file.path, MAX_DEPTH);
        return;
    }
    const char *identity = os_file_identity(r->arena, file.path);
    size_t next = r->open.count;
    size_t number = identity ? name_map_find_or_add(r->arena, &r->numbers, identity, next) : next;
    if (number == next) {
        *VEC_PUSH(r->arena, &r->open) = true;
        read_file(r, &file, &i->where);
        r->open.items[number] = false;
    } else if (r->open.items[number]) {
        const char *own = os_file_identity(r->arena, includer->path);
        diag_error(r->diags, DIAG_BAD_INCLUDE, i->where,
                   "%s includes itself%s; remove this include", file.path,
                   own && strcmp(own, identity) == 0 ? "" : " through other files");
    }
}

/* Appends the sections of a file; the sections of included files follow the [ptxgen] section that
 * includes them. Stack frames stay small, since includes can be thousands deep. */
static void add_sections(reading *r, const open_file *file, const section_list *sections)
{
    for (size_t i = 0; i < sections->count; i++) {
        section *s = sections->items[i];
        s->depth = file->depth;
        *VEC_PUSH(r->arena, &r->out->sections) = s;
        for (size_t j = 0; section_is_global(s) && j < s->entries.count; j++) {
            const entry *e = &s->entries.items[j];
            for (size_t k = 0; is_include(e) && k < e->items.count; k++)
                include(r, file, &e->items.items[k]);
        }
    }
}

static void read_file(reading *r, const open_file *file, const location *from)
{
    const char *name = from ? file->path : r->out->name, *error;
    char *text;
    size_t size;
    bool (*read)(arena *, const char *, size_t, char **, size_t *, const char **) =
        from ? os_read_short_file : os_read_input;
    if (!read(r->arena, file->path, SPEC_MAX_BYTES, &text, &size, &error)) {
        if (from)
            diag_error(r->diags, DIAG_UNREADABLE, *from, "cannot read %s: %s", name, error);
        else
            diag_error(r->diags, DIAG_UNREADABLE, (location){ .file = name }, "cannot read: %s",
                       error);
        return;
    }
    if (from || !os_is_stream(file->path))
        *VEC_PUSH(r->arena, &r->out->paths) = file->path;
    section_list sections = { 0 };
    sections_read(r->arena, name, from, text, size, &sections, r->diags);
    add_sections(r, file, &sections);
}

void files_read(arena *a, const char *path, spec_files *out, diags *d)
{
    *out = (spec_files){ .name = strcmp(path, "-") == 0 ? "<stdin>" : path };
    reading r = { .arena = a, .diags = d, .out = out };
    const char *identity = os_is_stream(path) ? NULL : os_file_identity(a, path);
    if (identity) {
        name_map_find_or_add(a, &r.numbers, identity, 0);
        *VEC_PUSH(a, &r.open) = true;
    }
    read_file(&r, &(open_file){ .path = path }, NULL);
}

void files_read_text(arena *a, const char *name, const char *text, size_t size, spec_files *out,
                     diags *d)
{
    *out = (spec_files){ .name = name };
    sections_read(a, name, NULL, text, size, &out->sections, d);
    for (size_t i = 0; i < out->sections.count; i++) {
        const section *s = out->sections.items[i];
        for (size_t j = 0; section_is_global(s) && j < s->entries.count; j++)
            if (is_include(&s->entries.items[j]))
                diag_error(d, DIAG_BAD_INCLUDE, s->entries.items[j].where,
                           "include works only in a spec that is read from a file");
    }
}

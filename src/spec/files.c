/* Files are read depth first, so that their sections come out in the order that one long file would
 * have. Which file is which, the file system decides: the same one may have several names. */
#include "spec/files.h"

#include <string.h>

#include "base/os.h"
#include "spec/spec.h"

static const char STANDARD_INPUT[] = "-";

/* A file that is being read, and the one whose include asked for it. */
typedef struct open_file {
    const char *path;
    const struct open_file *parent;
} open_file;

typedef struct reading {
    arena *arena;
    diags *diags;
    spec_files *out;
} reading;

static bool is_standard_input(const char *path)
{
    return strcmp(path, STANDARD_INPUT) == 0;
}

bool is_include(const entry *e)
{
    return strcmp(e->key, "include") == 0;
}

/* A name that stands in the file at path, as seen from the present folder. */
static const char *resolve(arena *a, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    if (name[0] != '/' && slash)
        return arena_format(a, "%.*s%s", (int)(slash + 1 - path), path, name);
    return is_standard_input(name) ? arena_format(a, "./%s", name) : name;
}

static bool includes_itself(const open_file *includer, const char *path)
{
    for (const open_file *f = includer; f; f = f->parent)
        if (!is_standard_input(f->path) && os_same_file(f->path, path))
            return true;
    return false;
}

static bool was_read(const spec_files *files, const char *path)
{
    for (size_t i = 0; i < files->paths.count; i++)
        if (os_same_file(files->paths.items[i], path))
            return true;
    return false;
}

static void read_file(const reading *r, const open_file *file, const location *from);

static void include(const reading *r, const open_file *includer, const item *i)
{
    open_file file = { .path = resolve(r->arena, includer->path, i->text), .parent = includer };
    if (!was_read(r->out, file.path))
        read_file(r, &file, &i->where);
    else if (includes_itself(includer, file.path))
        diag_error(r->diags, DIAG_BAD_INCLUDE, i->where, "%s includes itself%s", file.path,
                   os_same_file(includer->path, file.path) ? "" : " through other files");
}

/* Adds the sections of one text, and behind a [ptxgen] those it includes. */
static void take_sections(const reading *r, const open_file *file, const section_list *sections)
{
    for (size_t i = 0; i < sections->count; i++) {
        section *s = sections->items[i];
        *VEC_PUSH(r->arena, &r->out->sections) = s;
        for (size_t j = 0; section_is_global(s) && j < s->entries.count; j++) {
            const entry *e = &s->entries.items[j];
            for (size_t k = 0; is_include(e) && k < e->items.count; k++)
                include(r, file, &e->items.items[k]);
        }
    }
}

static void read_file(const reading *r, const open_file *file, const location *from)
{
    const char *name = from ? file->path : r->out->name, *error;
    char *text;
    size_t size;
    if (!os_read_short_file(r->arena, file->path, SPEC_MAX_BYTES, &text, &size, &error)) {
        if (from)
            diag_error(r->diags, DIAG_UNREADABLE, *from, "cannot read %s: %s", name, error);
        else
            diag_error(r->diags, DIAG_UNREADABLE, (location){ .file = name }, "cannot read: %s",
                       error);
        return;
    }
    if (!is_standard_input(file->path))
        *VEC_PUSH(r->arena, &r->out->paths) = file->path;
    section_list sections = { 0 };
    sections_read(r->arena, name, from, text, size, &sections, r->diags);
    take_sections(r, file, &sections);
}

void files_read(arena *a, const char *path, spec_files *out, diags *d)
{
    *out = (spec_files){ .name = is_standard_input(path) ? "<stdin>" : path };
    reading r = { .arena = a, .diags = d, .out = out };
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
                           "include needs a spec that is read from a file");
    }
}

#include "emit/tree.h"

#include <string.h>

#include "base/os.h"

/* A file's new contents, complete beside it. */
typedef struct pending_file {
    output_file *file;
    os_pending contents;
} pending_file;

typedef VEC(pending_file) pending_files;

const char *path_in(arena *a, const char *folder, const char *name)
{
    if (!folder)
        return name;
    size_t length = strlen(folder);
    return arena_format(a, "%s%s%s", folder, folder[length - 1] == '/' ? "" : "/", name);
}

static bool fail(diags *d, const char *path, const char *error)
{
    diag_error(d, DIAG_UNWRITABLE, (location){ .file = path }, "cannot write: %s", error);
    return false;
}

/* The folders of all files. */
static bool make_folders(arena *a, const output_file *files, size_t count, diags *d)
{
    const char *made = "", *error;
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(files[i].path, '/');
        size_t length = slash ? (size_t)(slash - files[i].path) : 0;
        if (!length || (strncmp(made, files[i].path, length) == 0 && !made[length]))
            continue;
        made = arena_copy(a, files[i].path, length);
        if (!os_make_directories(a, made, &error))
            return fail(d, made, error);
    }
    return true;
}

/* What stands at a file's path can't be replaced when it is not a file that can be read: a folder,
 * say. That is found here, before anything is renamed. */
static bool write_changed(arena *a, output_file *files, size_t count, pending_files *pending,
                          diags *d)
{
    for (size_t i = 0; i < count; i++) {
        output_file *f = &files[i];
        const char *error;
        bool same = false;
        if (!f->bytes) {
            *VEC_PUSH(a, pending) = (pending_file){ .file = f };
            continue;
        }
        if (os_exists(f->path) && !os_file_holds(a, f->path, f->bytes, f->size, &same, &error))
            return fail(d, f->path, error);
        if (same && !f->always)
            continue;
        pending_file one = { .file = f };
        if (!os_write_pending(a, f->path, f->bytes, f->size, &one.contents, &error))
            return fail(d, f->path, error);
        *VEC_PUSH(a, pending) = one;
    }
    return true;
}

static bool put(arena *a, const pending_file *p, diags *d)
{
    const char *error;
    if (!p->file->bytes) {
        os_remove_file(p->file->path);
        if (os_exists(p->file->path))
            return fail(d, p->file->path, "it can't be removed");
    } else if (!os_commit(a, &p->contents, &error)) {
        return fail(d, p->file->path, error);
    }
    p->file->changed = true;
    return true;
}

bool emit_tree(arena *a, output_file *files, size_t count, diags *d)
{
    pending_files pending = { 0 };
    bool ok = make_folders(a, files, count, d) && write_changed(a, files, count, &pending, d);
    for (int renames = 0; renames < 2; renames++)
        for (size_t i = 0; ok && i < pending.count; i++) {
            const pending_file *p = &pending.items[i];
            bool is_rename = !p->file->bytes || p->contents.temporary;
            if (is_rename == renames)
                ok = put(a, p, d);
        }
    for (size_t i = 0; !ok && i < pending.count; i++)
        if (!pending.items[i].file->changed)
            os_discard(&pending.items[i].contents);
    return ok;
}

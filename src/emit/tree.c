#include "emit/emit.h"

#include <string.h>

#include "base/os.h"

typedef VEC(os_pending) pending_files;

const char *path_in(arena *a, const char *folder, const char *name)
{
    size_t length = strlen(folder);
    return arena_format(a, "%s%s%s", folder, folder[length - 1] == '/' ? "" : "/", name);
}

static bool fail(diags *d, const char *path, const char *error)
{
    diag_error(d, DIAG_UNWRITABLE, (location){ .file = path }, "cannot write: %s", error);
    return false;
}

static void discard(const pending_files *pending, size_t first)
{
    for (size_t i = first; i < pending->count; i++)
        os_discard(&pending->items[i]);
}

/* What stands at path can't be replaced when it is not a file that can be read: a folder, say. That
 * is found here, before anything is renamed. */
static bool compare(arena *scratch, const char *path, const output_file *file, bool *same,
                    const char **error)
{
    char *old;
    size_t size;
    *same = false;
    if (!os_exists(path))
        return true;
    if (!os_read_file(scratch, path, &old, &size, error))
        return false;
    *same = size == file->size && memcmp(old, file->bytes, size) == 0;
    return true;
}

static bool write_changed(arena *a, arena *scratch, const char *folder, const output_file *files,
                          size_t count, pending_files *pending, diags *d)
{
    for (size_t i = 0; i < count; i++) {
        const char *path = path_in(a, folder, files[i].name), *error;
        bool same;
        arena_reset(scratch);
        if (!compare(scratch, path, &files[i], &same, &error))
            return fail(d, path, error);
        if (same)
            continue;
        os_pending written;
        if (!os_write_pending(a, path, files[i].bytes, files[i].size, &written, &error))
            return fail(d, path, error);
        *VEC_PUSH(a, pending) = written;
    }
    return true;
}

bool emit_tree(arena *a, const char *folder, const output_file *files, size_t count,
               size_t *changed, diags *d)
{
    const char *error;
    pending_files pending = { 0 };
    *changed = 0;
    if (!os_make_directories(a, folder, &error))
        return fail(d, folder, error);

    arena *scratch = arena_new();
    bool ok = write_changed(a, scratch, folder, files, count, &pending, d);
    arena_free(scratch);
    if (!ok) {
        discard(&pending, 0);
        return false;
    }
    for (size_t i = 0; i < pending.count; i++) {
        if (!os_commit(a, &pending.items[i], &error)) {
            discard(&pending, i + 1);
            return fail(d, pending.items[i].path, error);
        }
        ++*changed;
    }
    return true;
}

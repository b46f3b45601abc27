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

/* What stands at a file's path can't be replaced when it is not a file that can be read: a folder,
 * say. That is found here, before anything is renamed. */
static bool write_changed(arena *a, const char *folder, const output_file *files, size_t count,
                          pending_files *pending, diags *d)
{
    for (size_t i = 0; i < count; i++) {
        const char *path = path_in(a, folder, files[i].name), *error;
        bool same = false;
        if (os_exists(path) &&
            !os_file_holds(a, path, files[i].bytes, files[i].size, &same, &error))
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

    if (!write_changed(a, folder, files, count, &pending, d)) {
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

#include "emit/tree.h"

#include <string.h>

#include "base/hash.h"
#include "base/os.h"
#include "base/os_process.h"

/* A file whose new contents are complete under a temporary name. */
typedef struct pending_file {
    output_file *file;
    os_pending contents;
    bool is_new; /* no file existed at its path */
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

/* Name of a folder's journal. It lists the files that a run will add, before the first is renamed:
 * a checksum and a name per line. The run removes it at its end. If the run is killed, the next run
 * removes the listed files, since no manifest lists them. */
static const char JOURNAL[] = "ptxgen-journal.tmp";
enum { JOURNAL_MAX_BYTES = 64 << 20, CHECKSUM_DIGITS = 16, GENERATED_MAX_BYTES = 256 << 20 };

static bool has_checksum(arena *a, const char *path, const char *checksum)
{
    char *bytes;
    size_t size;
    const char *error;
    return os_read_short_file(a, path, GENERATED_MAX_BYTES, &bytes, &size, &error) &&
           strcmp(fnv1a64_text(a, fnv1a64(bytes, size)), checksum) == 0;
}

/* Removes leftovers of a killed run from a locked folder, except files that this run writes. */
static void remove_leftovers(arena *a, const char *folder, const output_file *files, size_t count)
{
    const char *path = path_in(a, folder, JOURNAL), *error;
    char *line;
    size_t size;
    name_map written = { 0 };
    os_remove_temporaries(a, folder);
    if (!os_read_short_file(a, path, JOURNAL_MAX_BYTES, &line, &size, &error))
        return;
    for (size_t i = 0; i < count; i++)
        if (files[i].bytes)
            name_map_find_or_add(a, &written, os_name_of(files[i].path), i);
    for (size_t length; *line; line += length) {
        length = strcspn(line, "\n");
        const char *name = length > CHECKSUM_DIGITS ? arena_copy(a, line + CHECKSUM_DIGITS + 1,
                                                                 length - CHECKSUM_DIGITS - 1)
                                                    : "";
        const char *added = path_in(a, folder, name);
        if (*name && !strchr(name, '/') && name_map_find(&written, name) == SIZE_MAX &&
            has_checksum(a, added, arena_copy(a, line, CHECKSUM_DIGITS)))
            os_remove_file(added);
        length += line[length] == '\n';
    }
    os_remove_file(path);
}

/* Locks the folders of all files to be replaced and removes leftovers of killed runs there. */
static bool lock_folders(arena *a, const output_file *files, size_t count, os_locks *locks,
                         diags *d)
{
    VEC(const char *) folders = { 0 };
    name_map known = { 0 };
    const char *failed, *error;
    for (size_t i = 0; i < count; i++) {
        if (os_is_device(files[i].path))
            continue;
        const char *folder = os_folder_of(a, files[i].path);
        if (name_map_find_or_add(a, &known, folder, folders.count) == folders.count)
            *VEC_PUSH(a, &folders) = folder;
    }
    if (!os_lock_folders(a, folders.items, folders.count, locks, &failed, &error))
        return fail(d, failed, error);
    for (size_t i = 0; i < locks->count; i++)
        remove_leftovers(a, locks->items[i].folder, files, count);
    return true;
}

/* Writes changed files under temporary names. Fails before renames if one cannot be replaced. */
static bool write_changed(arena *a, output_file *files, size_t count, pending_files *pending,
                          diags *d)
{
    for (size_t i = 0; i < count && !os_interrupted(); i++) {
        output_file *f = &files[i];
        const char *error;
        bool same = false, exists = os_exists(f->path);
        if (!f->bytes) {
            *VEC_PUSH(a, pending) = (pending_file){ .file = f };
            continue;
        }
        if (exists && !os_file_holds(a, f->path, f->bytes, f->size, &same, &error))
            return fail(d, f->path, error);
        if (same && !f->always)
            continue;
        pending_file one = { .file = f, .is_new = !exists };
        if (!os_write_pending(a, f->path, f->bytes, f->size, &one.contents, &error))
            return fail(d, f->path, error);
        *VEC_PUSH(a, pending) = one;
    }
    return !os_interrupted();
}

/* Writes a folder's journal if files will be added there. */
static bool write_journal(arena *a, const char *folder, const pending_files *pending, diags *d)
{
    strbuf lines = strbuf_new(a);
    const char *path = path_in(a, folder, JOURNAL), *error;
    for (size_t i = 0; i < pending->count; i++) {
        const pending_file *p = &pending->items[i];
        if (p->is_new && strcmp(os_folder_of(a, p->contents.path), folder) == 0)
            strbuf_format(&lines, "%s %s\n",
                          fnv1a64_text(a, fnv1a64(p->file->bytes, p->file->size)),
                          os_name_of(p->contents.path));
    }
    return !lines.length || os_write_file(a, path, lines.text, lines.length, &error) ||
           fail(d, path, error);
}

/* Writes devices and pipes first, then the journals, then renames and removes files. */
static bool put_all(arena *a, const os_locks *locks, const pending_files *pending, diags *d)
{
    const char *error;
    for (int renames = 0; renames < 2; renames++) {
        for (size_t i = 0; renames && i < locks->count; i++)
            if (!write_journal(a, locks->items[i].folder, pending, d))
                return false;
        for (size_t i = 0; i < pending->count; i++) {
            pending_file *p = &pending->items[i];
            output_file *f = p->file;
            bool is_rename = !f->bytes || p->contents.temporary;
            if (is_rename != renames)
                continue;
            if (!f->bytes)
                os_remove_file(f->path);
            if (!f->bytes && os_exists(f->path))
                return fail(d, f->path, "it can't be removed");
            if (f->bytes && !os_commit(a, &p->contents, &error))
                return fail(d, f->path, error);
            f->changed = true;
            if (!renames && os_interrupted())
                return false;
        }
    }
    return true;
}

bool emit_tree(arena *a, output_file *files, size_t count, diags *d)
{
    pending_files pending = { 0 };
    os_locks locks = { 0 };
    if (!make_folders(a, files, count, d) || !lock_folders(a, files, count, &locks, d))
        return false;
    os_defer_signals();
    bool ok = write_changed(a, files, count, &pending, d) && put_all(a, &locks, &pending, d);
    for (size_t i = 0; !ok && i < pending.count; i++) { /* undo what can be undone */
        const pending_file *p = &pending.items[i];
        if (!p->file->changed)
            os_discard(&p->contents);
        else if (p->is_new)
            os_remove_file(p->file->path);
    }
    for (size_t i = 0; i < locks.count; i++)
        os_remove_file(path_in(a, locks.items[i].folder, JOURNAL));
    os_unlock(&locks);
    os_deliver_signals();
    return ok;
}

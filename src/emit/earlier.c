#include "emit/emit.h"

#include <jansson.h>
#include <string.h>

#include "base/os.h"

enum { MAX_BYTES = 256 << 20 };

static bool read_file(arena *a, const char *path, char **text, size_t *size, diags *d)
{
    const char *error;
    if (os_read_short_file(a, path, MAX_BYTES, text, size, &error))
        return true;
    diag_error(d, DIAG_UNREADABLE, (location){ .file = path }, "cannot read: %s", error);
    return false;
}

bool earlier_read(arena *a, const char *folder, const char *prefix, earlier_run *out, diags *d)
{
    const char *path = path_in(a, folder, arena_format(a, "%s_kernels.json", prefix));
    char *text = NULL;
    size_t length = 0, index;
    *out = (earlier_run){ .folder = folder };
    if (os_exists(path) && !read_file(a, path, &text, &length, d))
        return false;
    json_t *manifest = json_loadb(text ? text : "", length, 0, NULL), *item;
    json_t *kernels = json_object_get(manifest, "kernels");
    if (text && !json_is_array(kernels))
        diag_warning(d, DIAG_UNREADABLE, (location){ .file = path },
                     "is not a manifest of ptxgen: it is replaced, and .ptx files of earlier runs "
                     "are kept");
    json_array_foreach(kernels, index, item)
    {
        const char *name = json_string_value(json_object_get(item, "file"));
        const char *checksum = json_string_value(json_object_get(item, "fnv1a64"));
        size_t length_of_name = name ? strlen(name) : 0, end = strlen(".ptx");
        /* The manifest may come from anyone: accept only names of files in the folder itself. */
        if (!checksum || length_of_name <= end || strchr(name, '/') ||
            strcmp(name + length_of_name - end, ".ptx") != 0)
            continue;
        earlier_file file = { arena_strdup(a, name), arena_strdup(a, checksum) };
        if (name_map_find_or_add(a, &out->numbers, file.name, out->files.count) == out->files.count)
            *VEC_PUSH(a, &out->files) = file;
    }
    json_decref(manifest);
    return true;
}

static bool has_checksum(arena *a, const earlier_file *file, const char *text, size_t length)
{
    return strcmp(file->checksum, fnv1a64_text(a, fnv1a64(text, length))) == 0;
}

bool earlier_edited(arena *a, earlier_run *e, kernel_set *set, kernel_list *edited, diags *d)
{
    for (size_t i = 0; i < set->kernel_count; i++) {
        kernel *k = &set->kernels[i];
        const char *path = path_in(a, e->folder, k->file);
        char *text;
        size_t length;
        if (!os_exists(path))
            continue;
        if (!read_file(a, path, &text, &length, d))
            return false;
        size_t at = name_map_find(&e->numbers, k->file);
        if ((length == k->ptx_length && memcmp(text, k->ptx, length) == 0) ||
            (at < e->files.count && has_checksum(a, &e->files.items[at], text, length)))
            continue;
        kernel found = *k;
        found.edited_file = path;
        found.generated = fnv1a64(k->ptx, k->ptx_length);
        found.ptx = text;
        found.ptx_length = length;
        found.overlaps = k->overlaps && strstr(text, "griddepcontrol.wait");
        *(set->embed == EMBED_STRING ? VEC_PUSH(a, edited) : k) = found;
    }
    return true;
}

bool earlier_stale(arena *a, earlier_run *e, const kernel_set *set, output_files *stale, diags *d)
{
    name_map present = { 0 };
    for (size_t i = 0; i < set->kernel_count; i++)
        name_map_find_or_add(a, &present, set->kernels[i].file, i);
    for (size_t i = 0; i < e->files.count; i++) {
        const earlier_file *file = &e->files.items[i];
        const char *path = path_in(a, e->folder, file->name);
        char *text;
        size_t length;
        bool needed = name_map_find(&present, file->name) != SIZE_MAX;
        if (needed || !os_exists(path))
            continue;
        if (!read_file(a, path, &text, &length, d))
            return false;
        if (has_checksum(a, file, text, length))
            *VEC_PUSH(a, stale) = (output_file){ .path = path };
        else
            diag_warning(
                d, DIAG_EDITED, (location){ .file = path },
                "edited since ptxgen wrote it: kept, although no kernel of the spec needs it");
    }
    return true;
}

#include "emit/edited.h"

#include <jansson.h>
#include <string.h>

#include "base/os.h"
#include "emit/emit.h"

const char *ptx_checksum(arena *a, const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
    strbuf digits = strbuf_new(a);
    strbuf_hex(&digits, hash, 16);
    return digits.text;
}

/* Whether the manifest says that ptxgen wrote this text as the file of this name. */
static bool wrote(const json_t *manifest, const char *file, const char *checksum)
{
    size_t index;
    json_t *item;
    json_array_foreach(json_object_get(manifest, "kernels"), index, item)
    {
        const char *name = json_string_value(json_object_get(item, "file"));
        const char *written = json_string_value(json_object_get(item, "fnv1a64"));
        if (name && written && strcmp(name, file) == 0)
            return strcmp(written, checksum) == 0;
    }
    return false;
}

static bool read_file(arena *a, const char *path, char **text, size_t *size, diags *d)
{
    const char *error;
    if (os_read_file(a, path, text, size, &error))
        return true;
    diag_error(d, DIAG_UNREADABLE, (location){ .file = path }, "cannot read: %s", error);
    return false;
}

static bool compare_kernels(arena *a, const kernel_set *set, const char *folder,
                            const json_t *manifest, kernel_list *edited, diags *d)
{
    for (size_t i = 0; i < set->kernel_count; i++) {
        const kernel *k = &set->kernels[i];
        const char *path = path_in(a, folder, k->file);
        char *text;
        size_t length;
        if (!os_exists(path))
            continue;
        if (!read_file(a, path, &text, &length, d))
            return false;
        if ((length == k->ptx_length && memcmp(text, k->ptx, length) == 0) ||
            wrote(manifest, k->file, ptx_checksum(a, text, length)))
            continue;
        kernel *copy = VEC_PUSH(a, edited);
        *copy = *k;
        copy->file = path;
        copy->ptx = text;
        copy->ptx_length = length;
    }
    return true;
}

bool find_edited(arena *a, const kernel_set *set, const char *folder, kernel_list *edited, diags *d)
{
    const char *path = path_in(a, folder, arena_format(a, "%s_kernels.json", set->prefix));
    char *text = NULL;
    size_t length = 0;
    if (os_exists(path) && !read_file(a, path, &text, &length, d))
        return false;
    json_t *manifest = json_loadb(text ? text : "", length, 0, NULL);
    bool read = compare_kernels(a, set, folder, manifest, edited, d);
    json_decref(manifest);
    return read;
}

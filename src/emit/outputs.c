#include "emit/outputs.h"

#include "base/os.h"
#include "emit/header.h"
#include "emit/manifest.h"

const char *emit_header_path(arena *a, const kernel_set *set, const char *folder)
{
    return path_in(a, folder, arena_format(a, "%s_kernels.h", set->prefix));
}

const char *emit_manifest_path(arena *a, const kernel_set *set, const char *folder)
{
    return path_in(a, folder, arena_format(a, "%s_kernels.json", set->prefix));
}

static void add_file(arena *a, output_files *files, const char *path, const char *bytes,
                     size_t size)
{
    *VEC_PUSH(a, files) = (output_file){ .path = path, .bytes = bytes, .size = size };
}

void emit_files(arena *a, const described_set *d, const char *folder, output_files *files)
{
    const kernel_set *set = d->set;
    strbuf header = strbuf_new(a), manifest = strbuf_new(a);
    emit_header(&header, d);
    emit_manifest(&manifest, d);
    add_file(a, files, emit_header_path(a, set, folder), header.text, header.length);
    add_file(a, files, emit_manifest_path(a, set, folder), manifest.text, manifest.length);
    for (size_t i = 0; i < set->kernel_count; i++) {
        const kernel *k = &set->kernels[i];
        add_file(a, files, path_in(a, folder, k->file), k->ptx, k->ptx_length);
    }
}

/* The outputs of a kernel set: header, manifest and .ptx files, report, depfile and Ninja build. */
#pragma once

#include <jansson.h>

#include "base/hash.h"
#include "emit/describe.h"
#include "emit/tree.h"

/* Writes PREFIX_kernels.h. Its constant text is in templates/header*.h.in. */
void emit_header(strbuf *out, const described_set *d);

/* Writes PREFIX_kernels.json: the header's facts for other languages and tools. */
void emit_manifest(strbuf *out, const described_set *d);

/* Returns the manifest as a value that callers may extend. "kernels" is in the set's order. */
json_t *manifest_json(arena *a, const described_set *d);

/* Return the paths of header and manifest in a folder, or their names if folder is NULL. */
const char *emit_header_path(arena *a, const kernel_set *set, const char *folder);
const char *emit_manifest_path(arena *a, const kernel_set *set, const char *folder);

/* Appends header, manifest and one .ptx file per kernel, in this order. */
enum { GENERATED_HEADER, GENERATED_MANIFEST, GENERATED_KERNELS };
void emit_files(arena *a, const described_set *d, const char *folder, output_files *files);

/* Writes a self-contained HTML page from templates/report. It shows registers and occupancy if
 * ptxas was run, and errors if the kernels were verified. */
void emit_report(strbuf *out, const described_set *d);

/* Readers of a depfile. Ninja accepts a few names that Make cannot. */
typedef enum depfile_reader { FOR_NINJA, FOR_MAKE_AND_NINJA } depfile_reader;

/* Returns the first character of a name that the reader does not accept, or '\0'. */
char depfile_obstacle(const char *name, depfile_reader reader);

/* Writes a Makefile rule with names escaped for Make and Ninja. Each input but the spec also gets
 * an empty rule, so that Make continues if an included file was deleted. */
void emit_depfile(strbuf *out, const char *output, const char *const *inputs, size_t input_count);

/* The checks of a kernel set as an incremental Ninja build. Programs and files are as in its
 * commands; paths are relative to the folder in which ptxgen runs, where Ninja must run, too. */
typedef struct ninja_build {
    const char *file;    /* path of the Ninja build */
    const char *depfile; /* depfile of the ptxgen run that writes folder and file */
    const char *folder;  /* folder of the outputs; the header, the depfile's target, is first */
    const output_file *outputs;
    size_t output_count;
    const char *ptxgen, *ptxas;
    const char *const *generate; /* arguments of that run */
    size_t generate_count;
    const char *const *verify; /* arguments that read the same spec and run --verify */
    size_t verify_count;
    const assembly_plan *plan;
    size_t plan_count;
} ninja_build;

/* Writes one edge per planned ptxas run (target "validate", the default), one per instance on the
 * emulator ("verify"), and one that generates again if the spec or ptxgen changed. */
void emit_ninja(strbuf *out, const kernel_set *set, const ninja_build *build);

/* Files that an earlier run left in a folder: edited ones, and stale ones.
 *
 * The manifest has a checksum of every PTX text that was written. A file with that checksum is
 * unchanged since ptxgen wrote it, in any version, and may be replaced or removed. A file with
 * another checksum, or in no manifest of this prefix, is the user's, unless its text equals the
 * generated text. */
typedef struct earlier_file {
    const char *name, *checksum; /* as in the manifest */
} earlier_file;

typedef struct earlier_run {
    const char *folder;
    VEC(earlier_file) files;
    name_map numbers; /* index in files by name */
} earlier_run;

/* Reads the manifest of a prefix in a folder. A missing manifest means no files; so does, with a
 * warning, a file that is not a manifest. Returns false with a diagnostic if it cannot be read. */
bool earlier_read(arena *a, const char *folder, const char *prefix, earlier_run *out, diags *d);

/* Finds kernels of the set whose files were edited. If the header embeds the files, the set's
 * kernels get their text. If it embeds strings, the set keeps the generated kernels, and the edited
 * ones are appended to edited. Returns false with a diagnostic if a file cannot be read. */
bool earlier_edited(arena *a, earlier_run *e, kernel_set *set, kernel_list *edited, diags *d);

/* Appends to stale the files that an earlier run wrote and the set no longer has. Edited files are
 * kept, with a warning. Returns false with a diagnostic if a file cannot be read. */
bool earlier_stale(arena *a, earlier_run *e, const kernel_set *set, output_files *stale, diags *d);

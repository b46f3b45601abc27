/* What is written of a kernel set: header, manifest and .ptx files, a report, and what build tools
 * read. */
#ifndef PTXGEN_EMIT_EMIT_H
#define PTXGEN_EMIT_EMIT_H

#include <jansson.h>

#include "base/hash.h"
#include "emit/describe.h"
#include "emit/tree.h"

/* PREFIX_kernels.h: templates/header*.h.in hold its constant text. */
void emit_header(strbuf *out, const described_set *d);

/* PREFIX_kernels.json: what the header says, for other languages and tools. */
void emit_manifest(strbuf *out, const described_set *d);

/* The same as a value, for who has more to say. The kernels under "kernels" are in the order of the
 * set. */
json_t *manifest_json(arena *a, const described_set *d);

/* The files of a set in a folder; NULL: by their names alone. */
const char *emit_header_path(arena *a, const kernel_set *set, const char *folder);
const char *emit_manifest_path(arena *a, const kernel_set *set, const char *folder);

/* Appends header, manifest and a .ptx file a kernel, in this order. */
enum { GENERATED_HEADER, GENERATED_MANIFEST, GENERATED_KERNELS };
void emit_files(arena *a, const described_set *d, const char *folder, output_files *files);

/* An HTML page for people that needs no other file and no network: templates/report/page.html with
 * its script, its styles, a chart library and the facts in it. Registers and occupancy are in it
 * where ptxas was run, errors where the kernels were verified. */
void emit_report(strbuf *out, const described_set *d);

/* The programs that read a depfile: Ninja can read a few names that Make cannot. */
typedef enum depfile_reader { FOR_NINJA, FOR_MAKE_AND_NINJA } depfile_reader;

/* Returns the first character of a name that cannot be written for the reader, '\0' if there is
 * none.
 */
char depfile_obstacle(const char *name, depfile_reader reader);

/* A Makefile rule: the output depends on the inputs. Each input but the first, the spec itself, has
 * a rule that does nothing, so that Make goes on when an included file is no longer there. Names
 * are escaped for Make and Ninja. */
void emit_depfile(strbuf *out, const char *output, const char *const *inputs, size_t input_count);

/* The checks of a kernel set as a Ninja build: incremental, and run by whatever executes Ninja
 * builds, on one machine or on many. These are programs and files as its commands name them. Paths
 * are relative to the folder in which ptxgen runs, which is the one in which Ninja is to run. */
typedef struct ninja_build {
    const char *file;    /* of the Ninja build itself */
    const char *depfile; /* of the run of ptxgen that writes folder and file */
    const char *folder;  /* of the outputs: the header, which the depfile names, first */
    const output_file *outputs;
    size_t output_count;
    const char *ptxgen, *ptxas;
    const char *const *generate; /* the arguments of that run */
    size_t generate_count;
    const char *const *verify; /* arguments that read the same spec and run --verify */
    size_t verify_count;
    const assembly_plan *plan;
    size_t plan_count;
} ninja_build;

/* One edge for each planned run of ptxas (target "validate", the default), one for each instance on
 * the emulator ("verify"), and one that generates again where the spec or ptxgen changed. */
void emit_ninja(strbuf *out, const kernel_set *set, const ninja_build *build);

/* What an earlier run left in a folder: files that somebody has edited since, and files that nobody
 * needs any more.
 *
 * The manifest holds a checksum of every PTX text that was written. A file that has it is as ptxgen
 * left it, by whatever version, and may be written anew or removed. A file that does not, or that
 * no manifest of this prefix tells of, is somebody's work, unless its text is the generated one.
 */
typedef struct earlier_file {
    const char *name, *checksum; /* in the manifest's digits */
} earlier_file;

typedef struct earlier_run {
    const char *folder;
    VEC(earlier_file) files;
    name_map numbers; /* of the names, among files */
} earlier_run;

/* Reads the manifest of a prefix in a folder. One that is not there tells of no file, and neither
 * does, with a warning, one that is no manifest; false and a diagnostic where it can't be read. */
bool earlier_read(arena *a, const char *folder, const char *prefix, earlier_run *out, diags *d);

/* Finds those kernels of the set whose files were edited. A header that embeds these files embeds
 * what stands there: the kernels become that. A header of strings holds the generated kernels all
 * the same: those that stand there are appended to edited. False and a diagnostic where a file
 * can't be read. */
bool earlier_edited(arena *a, earlier_run *e, kernel_set *set, kernel_list *edited, diags *d);

/* Appends, as files to be removed, those that were written and that the set has no longer. One that
 * was edited is left, with a warning. False and a diagnostic where one can't be read. */
bool earlier_stale(arena *a, earlier_run *e, const kernel_set *set, output_files *stale, diags *d);

#endif

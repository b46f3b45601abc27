/* What an earlier run left in a folder: files that somebody has edited since, and files that nobody
 * needs any more.
 *
 * The manifest holds a checksum of every PTX text that was written. A file that has it is as ptxgen
 * left it, by whatever version, and may be written anew or removed. A file that does not, or that
 * no manifest of this prefix tells of, is somebody's work, unless its text is the generated one.
 */
#ifndef PTXGEN_EMIT_EARLIER_H
#define PTXGEN_EMIT_EARLIER_H

#include "base/hash.h"
#include "emit/tree.h"
#include "kernel/kernel.h"

/* A file that was written, and its checksum in the manifest's digits. */
typedef struct earlier_file {
    const char *name, *checksum;
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

/* Files that are made in memory and put in place together. */
#ifndef PTXGEN_EMIT_TREE_H
#define PTXGEN_EMIT_TREE_H

#include "base/diag.h"

typedef struct output_file {
    const char *path;
    const char *bytes; /* NULL: the file is to be removed */
    size_t size;
    bool always;  /* made new also where the same bytes stand there */
    bool changed; /* set by emit_tree: it was put in place */
} output_file;

typedef VEC(output_file) output_files;

/* The path of a file in a folder; NULL: the name alone. */
const char *path_in(arena *a, const char *folder, const char *name);

/* Puts files in place, in folders that are made where missing. A file whose bytes are there already
 * is not touched. All new contents are written under temporary names first. When every one is
 * complete, what can't be renamed is written, devices and pipes; then files are renamed and
 * removed, in the order given. So a failure (a full disk, a folder that may not be written) leaves
 * the old files as they were, unless it comes among the renames, where little is left to go wrong.
 *
 * The folders are locked meanwhile: of two runs into one folder, the second waits. A run that a
 * signal ends removes its temporary files first; those of a killed run, and files that it added,
 * are removed by the next one. False and a diagnostic on failure. */
bool emit_tree(arena *a, output_file *files, size_t count, diags *d);

#endif

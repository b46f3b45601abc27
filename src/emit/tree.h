/* Replaces a set of files together. Their contents are made in memory first. */
#pragma once

#include "base/diag.h"

typedef struct output_file {
    const char *path;
    const char *bytes; /* NULL: remove the file */
    size_t size;
    bool always;  /* replace the file even if it has the same bytes */
    bool changed; /* set by emit_tree: the file was replaced */
} output_file;

typedef VEC(output_file) output_files;

/* Returns the path of a file in a folder, or its name if folder is NULL. */
const char *path_in(arena *a, const char *folder, const char *name);

/* Puts files in place and makes missing folders. A file with the same bytes is not touched. New
 * contents are first written under temporary names. When all are complete, devices and pipes are
 * written; then files are renamed and removed, in the given order. A failure such as a full disk
 * leaves the old files unchanged, unless a rename fails.
 *
 * The folders are locked meanwhile: a second run into a folder waits. A run that a signal ends
 * removes its temporary files first; the next run removes those of a killed run and the files that
 * it added. Returns false with a diagnostic on failure. */
bool emit_tree(arena *a, output_file *files, size_t count, diags *d);

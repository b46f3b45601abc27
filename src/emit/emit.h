/* What is written for a kernel set, as text in memory. */
#ifndef PTXGEN_EMIT_EMIT_H
#define PTXGEN_EMIT_EMIT_H

#include "base/strbuf.h"
#include "gen/kernel.h"

/* One file to be: name relative to the output folder. */
typedef struct output_file {
    const char *name;
    const char *bytes;
    size_t size;
} output_file;

typedef VEC(output_file) output_files;

/* PREFIX_kernels.h; see templates/header.h.in for its text and DESIGN for its contents. */
void emit_header(strbuf *out, const kernel_set *set);

/* PREFIX_kernels.json. */
void emit_manifest(strbuf *out, const kernel_set *set);

/* A Makefile rule: the outputs depend on the inputs. Each input but the first, the spec itself, has
 * a rule that does nothing, so that Make goes on when an included file is no longer there. Names
 * are escaped for Make and Ninja. */
void emit_depfile(strbuf *out, const char *const *outputs, size_t output_count,
                  const char *const *inputs, size_t input_count);

/* The path of a file in a folder. */
const char *path_in(arena *a, const char *folder, const char *name);

/* Puts files into a folder, made where missing. A file whose bytes are there already is not
 * touched. All new contents are written under temporary names first; only when every one is
 * complete are they renamed, so that a failure (a full disk, a folder that may not be written)
 * leaves the old files as they were. changed counts the files that were new or different. False and
 * a diagnostic on failure. */
bool emit_tree(arena *a, const char *folder, const output_file *files, size_t count,
               size_t *changed, diags *d);

#endif

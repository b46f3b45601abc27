/* The files that a spec is made of: the one its user names and, in [ptxgen] include = ..., others
 * whose sections join it as if they stood behind that section. */
#ifndef PTXGEN_INPUT_FILES_H
#define PTXGEN_INPUT_FILES_H

#include "input/section.h"

typedef struct spec_files {
    const char *name;        /* of the spec in messages */
    section_list sections;   /* of all files, in the order of reading */
    VEC(const char *) paths; /* without standard input */
} spec_files;

/* The key of [ptxgen] that is read here. */
bool is_include(const entry *e);

/* Reads the file at path ("-": standard input) and all that it includes. A name in include is
 * relative to the folder of the file it stands in. A file that is included twice is read once; one
 * that includes itself, directly or through others, is an error. */
void files_read(arena *a, const char *path, spec_files *out, diags *d);

/* Reads text that is called name and touches no file: an include is an error. */
void files_read_text(arena *a, const char *name, const char *text, size_t size, spec_files *out,
                     diags *d);

#endif

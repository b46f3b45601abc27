/* The sections of a spec as they stand in its text: names, keys and list items, each with its
 * place. What they mean is decided by values.h. */
#ifndef PTXGEN_INPUT_SECTION_H
#define PTXGEN_INPUT_SECTION_H

#include "base/diag.h"

/* All kernels of a run are in memory at once, 25 KB each. */
enum { SPEC_MAX_INSTANCES = 10000, SPEC_MAX_BYTES = 64 << 20 };

/* One item of a comma-separated list. */
typedef struct item {
    const char *text;
    location where;
} item;

/* A key with its list, which may go on over indented lines. */
typedef struct entry {
    const char *key;
    location where; /* of the key */
    VEC(item) items;
    bool open;           /* the list ended in a comma, or has no item yet: more must follow */
    location open_where; /* the comma, or the key */
} entry;

typedef struct section {
    const char *title; /* all between the brackets, blanks removed: what must be unique */
    const char *name;  /* the family; NULL where the header is wrong or missing */
    const char *label; /* NULL: none */
    location where;    /* from [ to ] */
    location name_where;
    unsigned depth; /* includes between its file and the spec */
    VEC(entry) entries;
    bool damaged; /* some of its lines were unreadable, so that absent keys say nothing */
} section;

typedef VEC(section *) section_list;

/* Reads the INI text of a file, which stands included at from (NULL: the spec itself). Whatever is
 * no INI goes to d, and reading goes on behind it. */
void sections_read(arena *a, const char *file, const location *from, const char *text, size_t size,
                   section_list *out, diags *d);

/* [ptxgen], which is no family's, and its keys, NULL behind the last. */
#define GLOBAL_SECTION "ptxgen"
#define DEFAULT_PREFIX "ptxgen"
#define DEFAULT_TARGET "sm_80"
bool section_is_global(const section *s);
extern const char *const global_keys[];
bool is_global_key(const char *name);

/* The place of length bytes at offset within a place on the same line. */
location location_part(location where, size_t offset, size_t length);

/* The files that a spec is made of: the one its user names and, in [ptxgen] include = ..., others
 * whose sections join it as if they stood behind that section. */
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

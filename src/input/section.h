/* The syntax of a spec: sections, keys and list items with locations. */
#pragma once

#include "base/diag.h"

/* Limits of a spec. All kernels of a run are in memory at once, 25 KB each. */
enum { SPEC_MAX_INSTANCES = 10000, SPEC_MAX_BYTES = 64 << 20 };

typedef struct item {
    const char *text;
    location where;
} item;

/* A key and its list, which may continue on indented lines. */
typedef struct entry {
    const char *key;
    location where; /* of the key */
    VEC(item) items;
    bool open;           /* another item must follow */
    location open_where; /* location of the comma, or of the key */
} entry;

typedef struct section {
    const char *title; /* text in the brackets without blanks, unique within a file */
    const char *name;  /* name of the family; NULL for an invalid or missing header */
    const char *label; /* NULL without a label */
    location where;    /* from '[' to ']' */
    location name_where;
    unsigned depth; /* include depth of the file, 0 = the spec */
    VEC(entry) entries;
    bool damaged; /* some lines were unreadable, so missing keys are not reported */
} section;

typedef VEC(section *) section_list;

/* Parses the INI text of a file that `from` includes (NULL: the spec). Adds errors to d. */
void sections_read(arena *a, const char *file, const location *from, const char *text, size_t size,
                   section_list *out, diags *d);

/* The section for the whole spec, [ptxgen], and the names of its keys, NULL-terminated. */
#define GLOBAL_SECTION "ptxgen"
#define DEFAULT_PREFIX "ptxgen"
#define DEFAULT_TARGET "sm_80"
bool section_is_global(const section *s);
extern const char *const global_keys[];
bool is_global_key(const char *name);

/* Returns the location of length bytes at an offset within a location. */
location location_part(location where, size_t offset, size_t length);

/* All files of a spec. Sections of a file that [ptxgen] includes follow that section. */
typedef struct spec_files {
    const char *name;        /* name of the spec in messages */
    section_list sections;   /* sections of all files, in reading order */
    VEC(const char *) paths; /* paths of all files except standard input */
} spec_files;

/* Returns true for the key include of [ptxgen]. */
bool is_include(const entry *e);

/* Reads the file at path ("-": standard input) and its includes, relative to the including
 * file, each once. A cycle of includes is an error. */
void files_read(arena *a, const char *path, spec_files *out, diags *d);

/* Parses a text called name without reading files; an include is an error. */
void files_read_text(arena *a, const char *name, const char *text, size_t size, spec_files *out,
                     diags *d);

/* Help texts about families and keys, for --list, --help-family and the manual pages. */
#pragma once

#include "kernel/family.h"
#include "kernel/upper.h"

/* A heading of --list, and which of its families to use when. */
typedef struct purpose_text {
    const char *heading, *advice;
} purpose_text;
extern const purpose_text help_purposes[PURPOSE_COUNT];
purpose help_purpose_of(const family *f);

/* Prints --list: families by purpose, a line each. */
void spec_list_families(strbuf *out, const family *const *list);

/* Print --help-family of a family or pipeline, and of [ptxgen]. */
void spec_help_family(strbuf *out, const family *f);
void spec_help_globals(strbuf *out);

/* A key as help texts show it. */
typedef struct help_row {
    const key *key;
    const char *range; /* values; NULL: help_put_range prints them */
    const char *def;   /* default */
    const char *with;  /* condition for the key, "experts"; NULL: none */
} help_row;

/* Prints the keys of a section, a line each, in aligned columns. */
void help_put_keys(strbuf *out, const help_row *rows, size_t count);

const help_row *help_global_rows(arena *a, size_t *count);

/* Prints the values of a key, and returns its default in a family. */
void help_put_range(strbuf *out, const key *k);
const char *help_default(arena *a, const family *f, const key *k);

/* Appends a manual page in mdoc: its template with each line that is .\" @NAME@ replaced by the
 * table of that name, made from the rows of keys and formats. upper may be NULL. */
void manual_page(strbuf *out, const char *text, const family *const *list,
                 const upper_storey *upper);

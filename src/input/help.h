/* What --list and --help-family show of the families, from their tables alone. */
#ifndef PTXGEN_INPUT_HELP_H
#define PTXGEN_INPUT_HELP_H

#include "base/strbuf.h"
#include "kernel/family.h"

/* --list: every family with its line. --help-family: all that its struct says. */
void spec_list_families(strbuf *out, const family *const *list);
void spec_help_family(strbuf *out, const family *f);

/* A key as --help-family shows it. */
typedef struct help_row {
    const key *key;
    const char *range; /* NULL: as the key says */
    const char *def;   /* its default */
} help_row;

/* Prints the keys of a section, a line each, with aligned columns. */
void help_put_keys(strbuf *out, const help_row *rows, size_t count);

#endif

/* A spec: INI text that says which kernels to generate. The grammar stands in the README. */
#ifndef PTXGEN_INPUT_SPEC_H
#define PTXGEN_INPUT_SPEC_H

#include "base/diag.h"
#include "kernel/kernel.h"

/* All kernels of a run are in memory at once, 25 KB each. */
enum { SPEC_MAX_INSTANCES = 10000, SPEC_MAX_BYTES = 64 << 20 };

typedef struct spec {
    const char *prefix;           /* "ptxgen" where the spec names none */
    const target *const *targets; /* oldest first, no duplicates; sm_80 where the spec names none */
    size_t target_count;
    embedding embed;
    instance *instances; /* in the order of the spec, each configuration once */
    size_t instance_count;
    const pipeline *pipelines; /* their steps are among the instances */
    size_t pipeline_count;
    const alias *aliases; /* of what is among the instances */
    size_t alias_count;
    const plan *plan;       /* of the decoder, its kernels among the instances by their names; NULL:
                               no section says one */
    location decoder_where; /* of its section */
    decoder *decoder;       /* the plan's */
    const char *const *files; /* that were read, without standard input: what a depfile lists */
    size_t file_count;
} spec;

/* What the command line says instead of the spec; NULL where it says nothing. */
typedef struct spec_overrides {
    const char *prefix;
    const char *targets; /* "sm_80,sm_90" */
    const embedding *embed;
} spec_overrides;

/* Reads the spec in the file at path ("-": standard input) and the files that it includes. list
 * holds the families and pipelines it may name. All problems go to d; false when d has an error. */
bool spec_read(arena *a, const char *path, const family *const *list,
               const spec_overrides *overrides, spec *out, diags *d);

/* The same for a text called name. No file is touched: an include is an error. */
bool spec_parse(arena *a, const char *name, const char *text, size_t size,
                const family *const *list, const spec_overrides *overrides, spec *out, diags *d);

/* --list: every family with its line. --help-family: all that its struct says. */
void spec_list_families(strbuf *out, const family *const *list);
void spec_help_family(strbuf *out, const family *f);

/* The same of the section [decoder], which is no family. */
void spec_help_decoder(strbuf *out);

/* Reads a number as a spec has it: 4096, 4k, 1M, 2^20 or 2^31-1. Returns false for anything else,
 * and for numbers above 2^62. */
bool spec_parse_number(const char *text, int64_t *out);

#endif

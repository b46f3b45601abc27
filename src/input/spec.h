/* A spec: INI text that says which kernels to generate. The grammar stands in the README. */
#ifndef PTXGEN_INPUT_SPEC_H
#define PTXGEN_INPUT_SPEC_H

#include "base/diag.h"
#include "kernel/generate.h"

/* What the command line says instead of the spec; NULL where it says nothing. */
typedef struct spec_overrides {
    const char *prefix;
    const char *targets; /* "sm_80,sm_90" */
    const embedding *embed;
} spec_overrides;

/* Reads the spec in the file at path ("-": standard input) and the files that it includes. list
 * holds the families and pipelines it may name; upper, unless NULL, reads a section of its own. All
 * problems go to d; false when d has an error. */
bool spec_read(arena *a, const char *path, const family *const *list, const upper_storey *upper,
               const spec_overrides *overrides, spec *out, diags *d);

/* The same for a text called name. No file is touched: an include is an error. */
bool spec_parse(arena *a, const char *name, const char *text, size_t size,
                const family *const *list, const upper_storey *upper,
                const spec_overrides *overrides, spec *out, diags *d);

/* A part of a spec's instances, for checks that are spread over machines. Part index of count, both
 * from 1, has every count-th instance: neighbours cost about the same, and go to different parts.
 * Each instance is in exactly one part. */
typedef struct shard {
    uint64_t index, count;
} shard;

/* Keeps the instances of a shard. Drops pipelines and aliases, whose kernels may be elsewhere. */
void spec_keep_shard(spec *s, shard part);

/* Keeps the instance of a name and drops pipelines and aliases. Adds an error and returns false if
 * the spec has no such instance. */
bool spec_keep_instance(arena *a, spec *s, const char *name, diags *d);

#endif

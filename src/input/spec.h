/* A spec: INI text that defines the kernels to generate. ptxgen-spec(5) describes the format. */
#pragma once

#include "base/diag.h"
#include "kernel/generate.h"

/* Options of the command line that override the spec; NULL without the option. */
typedef struct spec_overrides {
    const char *prefix;
    const char *targets; /* "sm_80,sm_90" */
    const embedding *embed;
} spec_overrides;

/* Reads the spec at path ("-": standard input) and its includes. list: families and pipelines;
 * upper reads its own section, or is NULL. Adds problems to d; returns false if d has errors. */
bool spec_read(arena *a, const char *path, const family *const *list, const upper_storey *upper,
               const spec_overrides *overrides, spec *out, diags *d);

/* Parses a spec from a text called name. Reads no files: an include is an error. */
bool spec_parse(arena *a, const char *name, const char *text, size_t size,
                const family *const *list, const upper_storey *upper,
                const spec_overrides *overrides, spec *out, diags *d);

/* A part of a spec's instances, for several machines: every count-th instance from index (from
 * 1), since neighbours cost about the same. Parts are disjoint. */
typedef struct shard {
    uint64_t index, count;
} shard;

/* Keeps the instances of a shard. Drops pipelines and aliases, which may cross shards. */
void spec_keep_shard(spec *s, shard part);

/* Keeps one instance and no pipelines or aliases. Returns false with an error if it is unknown. */
bool spec_keep_instance(arena *a, spec *s, const char *name, diags *d);

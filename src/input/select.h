/* A part of a spec's instances, for checks that are spread over machines or asked for alone. */
#ifndef PTXGEN_INPUT_SELECT_H
#define PTXGEN_INPUT_SELECT_H

#include "input/spec.h"

/* Part index of count, both from 1: every count-th instance, so that neighbours, which cost about
 * the same, fall to different parts. Each instance is in exactly one part. */
typedef struct shard {
    uint64_t index, count;
} shard;

/* Keeps the instances of a shard. Pipelines and aliases, whose kernels may be elsewhere, are
 * dropped. */
void spec_keep_shard(spec *s, shard part);

/* Keeps the instance of this name and drops pipelines. An error where the spec has none. */
bool spec_keep_instance(arena *a, spec *s, const char *name, diags *d);

#endif

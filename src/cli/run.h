/* Processes a spec: reads it, generates kernels, checks them, and writes the requested files. */
#pragma once

#include "check/progress.h"
#include "input/spec.h"
#include "kernel/generate.h"

/* A request from the command line; fields are named like options. NULL: not requested. */
typedef struct request {
    const char *spec, *out, *expect, *depfile, *stamp, *emit_ninja, *report, *only, *ptxas;
    spec_overrides overrides; /* its embed may point to the member embed */
    embedding embed;
    const upper_storey *upper; /* or NULL */
    shard shard;               /* count = 0: all instances */
    uint64_t jobs, seed;       /* jobs = 0: one per CPU */
    const char *program;       /* argv of this run, for a Ninja build */
    const char *const *arguments;
    size_t argument_count;
    unsigned dump; /* bits of ptx_stage */
    bool validate, verify, prune, print_outputs, plan;
    bool quiet, verbose; /* verbosity of a successful run */
} request;

/* Processes a request. Appends results to out, for standard output, and problems to d. Returns
 * false if d has errors; *wrote is true if any file was changed all the same. */
bool run_request(arena *a, const request *q, const progress *show, strbuf *out, bool *wrote,
                 diags *d);

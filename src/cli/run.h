/* A run on a spec: reads it, makes its kernels, checks them, and writes what was asked for. */
#ifndef PTXGEN_CLI_RUN_H
#define PTXGEN_CLI_RUN_H

#include "check/progress.h"
#include "input/spec.h"
#include "kernel/generate.h"

/* What is asked for; paths that are NULL are not. Options of the same names say it. */
typedef struct request {
    const char *spec, *out, *expect, *depfile, *stamp, *emit_ninja, *report, *only, *ptxas;
    spec_overrides overrides; /* its embed points to embed */
    embedding embed;
    const upper_storey *upper; /* NULL: none */
    shard shard;               /* count 0: all */
    uint64_t jobs, seed;       /* jobs 0: one for each CPU */
    const char *program;       /* as it was called, and with what: a Ninja build calls it again */
    const char *const *arguments;
    size_t argument_count;
    unsigned dump; /* stages of generate_stage */
    bool validate, verify, prune, print_outputs, plan;
    bool quiet, verbose; /* what is said of a run that went well */
} request;

/* Does it. What there is to say goes to out, for standard output; problems to d. False where d has
 * an error; wrote says whether a file was put in place all the same. */
bool run_request(arena *a, const request *q, const progress *show, strbuf *out, bool *wrote,
                 diags *d);

#endif

/* A spec: INI text that says which kernels to generate. The grammar stands in the README. */
#ifndef PTXGEN_INPUT_SPEC_H
#define PTXGEN_INPUT_SPEC_H

#include "base/diag.h"
#include "input/section.h"
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

#endif

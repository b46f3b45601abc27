/* What the implementation part of the header defines: PTX, tables, descriptors. */
#ifndef PTXGEN_EMIT_HEADER_DATA_H
#define PTXGEN_EMIT_HEADER_DATA_H

#include "emit/describe.h"

void print_upper(strbuf *out, const char *text);

/* The array IDENTIFIER_ptx of a kernel. */
void print_ptx(strbuf *out, const kernel_set *set, const kernel *k);

/* The C functions that give a kernel's grid and dynamic shared memory where run-time values decide
 * them; NULL where they don't. */
typedef struct run_functions {
    const char *grid, *shared;
} run_functions;

/* Defines what the kernels of a set need and returns which is whose. */
const run_functions *print_run_functions(strbuf *out, const kernel_set *set);

/* The table IDENTIFIER_config. Returns how many entries it has. */
size_t print_config(strbuf *out, const char *id, const instance *in);

/* All of a kernel: its PTX, its tables, its descriptor. */
void print_definitions(strbuf *out, const kernel_set *set, const kernel *k,
                       const run_functions *at_run_time);

/* Pipelines: their declarations, their data, and the entries of their table. */
void print_pipeline_declarations(strbuf *out, const kernel_set *set);
void print_pipeline_definitions(strbuf *out, const kernel_set *set);
void print_pipeline_table(strbuf *out, const kernel_set *set);

/* The C identifier of a set's pipeline: PREFIX_NAME. */
const char *pipeline_identifier(arena *a, const kernel_set *set, const pipeline *p);

#endif

/* The definitions of one kernel in the header: its PTX, its tables, its descriptor. */
#ifndef PTXGEN_EMIT_HEADER_DATA_H
#define PTXGEN_EMIT_HEADER_DATA_H

#include "emit/describe.h"

void print_upper(strbuf *out, const char *text);

void print_definitions(strbuf *out, const kernel_set *set, const kernel *k);

/* Pipelines: their declarations, their data, and the entries of their table. */
void print_pipeline_declarations(strbuf *out, const kernel_set *set);
void print_pipeline_definitions(strbuf *out, const kernel_set *set);
void print_pipeline_table(strbuf *out, const kernel_set *set);

#endif

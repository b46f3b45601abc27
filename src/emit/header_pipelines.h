/* Pipelines as C data: their declarations, their data, and the entries of their table. */
#ifndef PTXGEN_EMIT_HEADER_PIPELINES_H
#define PTXGEN_EMIT_HEADER_PIPELINES_H

#include "emit/describe.h"

void print_pipeline_declarations(strbuf *out, const described_set *d);
void print_pipeline_definitions(strbuf *out, const described_set *d);
void print_pipeline_table(strbuf *out, const described_set *d);

#endif

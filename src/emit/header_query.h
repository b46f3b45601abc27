/* What a query may say, in C: see kernel/query.def. */
#ifndef PTXGEN_EMIT_HEADER_QUERY_H
#define PTXGEN_EMIT_HEADER_QUERY_H

#include "emit/describe.h"

/* An enumeration for each key with words. */
void print_query_enums(strbuf *out, const described_set *d);

/* Members of ptxgen_query, a line each. */
void print_query_size_members(strbuf *out, const described_set *d);
void print_query_option_members(strbuf *out, const described_set *d);
void print_query_matrix_members(strbuf *out, const described_set *d);

/* How many there are, and a line for each: { "key", query->member }. */
void print_query_size_count(strbuf *out, const described_set *d);
void print_query_option_count(strbuf *out, const described_set *d);
void print_query_matrix_count(strbuf *out, const described_set *d);
void print_query_size_rows(strbuf *out, const described_set *d);
void print_query_option_rows(strbuf *out, const described_set *d);
void print_query_matrix_rows(strbuf *out, const described_set *d);

#endif

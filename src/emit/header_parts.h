/* The parts that header.c puts together, each of which is a file. */
#ifndef PTXGEN_EMIT_HEADER_PARTS_H
#define PTXGEN_EMIT_HEADER_PARTS_H

#include "emit/describe.h"

/* Prints a template's text, filled in for a set. */
void header_fill(strbuf *out, const char *text, const described_set *d);

/* Prints "PTXGEN_Q4_K" of "q4_k"; of several names "PTXGEN_GEMV, PTXGEN_Q4_K". */
void print_constant(strbuf *out, const char *name);
void print_constants(strbuf *out, const char *const *names, size_t count);

/* Prints a line of an array of ptxgen_param; bytes are negative where the launch decides them. */
void print_param(strbuf *out, const param *p, int64_t bytes, const char *size);

/* Prints the table IDENTIFIER_config. Returns how many entries it has. */
size_t print_config(strbuf *out, const char *id, const instance *in);

/* Prints the array IDENTIFIER_ptx; and returns true if that is one of words, not of characters. */
void print_ptx(strbuf *out, const kernel_set *set, const description *d);
bool is_printed_as_words(const kernel_set *set, const description *d);

/* Prints the kernels' PTX, tables and descriptors, which the implementation part defines. */
void print_kernel_definitions(strbuf *out, const described_set *d);

/* Prints pipelines: their declarations, their data, and the entries of their table. */
void print_pipeline_declarations(strbuf *out, const described_set *d);
void print_pipeline_definitions(strbuf *out, const described_set *d);
void print_pipeline_table(strbuf *out, const described_set *d);

/* Prints the typed functions that load and launch each instance, pipeline and alias: see
 * templates/header_cuda.h.in for what they call. */
void print_launches(strbuf *out, const described_set *d);
void print_pipeline_launches(strbuf *out, const described_set *d);
void print_alias_launches(strbuf *out, const described_set *d);

/* Returns the place in the table of kernels of the first of a name. */
size_t kernel_place(const kernel_set *set, const char *name);

/* Prints the names of the first kernel's parameters as a call passes them: "y, w, x". */
void print_first_arguments(strbuf *out, const described_set *d);

/* Prints what a query may say, see kernel/query.def: an enumeration for each key with words; of one
 * kind of keys members of ptxgen_query, a line each, how many there are, and a line for each,
 * { "key", query->member }. */
enum { QUERY_SIZES, QUERY_OPTIONS, QUERY_MATRICES };
void print_query_enums(strbuf *out, const described_set *d);
void print_query_members(strbuf *out, const described_set *d, int kind);
void print_query_count(strbuf *out, const described_set *d, int kind);
void print_query_rows(strbuf *out, const described_set *d, int kind);

#endif

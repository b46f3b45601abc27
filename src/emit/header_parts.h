/* Parts of the header that header.c puts together, one file each. */
#pragma once

#include "emit/describe.h"

/* Prints a template with its placeholders filled in for a set. */
void header_fill(strbuf *out, const char *text, const described_set *d);

/* Prints "PTXGEN_Q4_K" for "q4_k". */
void print_constant(strbuf *out, const char *name);

/* Prints a list of constants: "PTXGEN_GEMV, PTXGEN_Q4_K". */
void print_constants(strbuf *out, const char *const *names, size_t count);

/* Prints an element of an array of ptxgen_param. bytes < 0: they depend on the launch. */
void print_param(strbuf *out, const param *p, int64_t bytes, const char *size);

/* Prints the table IDENTIFIER_config. Returns its number of entries. */
size_t print_config(strbuf *out, const char *id, const instance *in);

/* Prints the array IDENTIFIER_ptx. */
void print_ptx(strbuf *out, const kernel_set *set, const description *d);

/* Returns true if print_ptx prints an array of 64-bit words. */
bool is_printed_as_words(const kernel_set *set, const description *d);

/* Prints the implementation part: the kernels' PTX, tables and descriptors. */
void print_kernel_definitions(strbuf *out, const described_set *d);

/* Print pipelines: declarations, data, and entries of the table. */
void print_pipeline_declarations(strbuf *out, const described_set *d);
void print_pipeline_definitions(strbuf *out, const described_set *d);
void print_pipeline_table(strbuf *out, const described_set *d);

/* Print typed load, launch and node functions, which call those of header_cuda.h.in. */
void print_launches(strbuf *out, const described_set *d);
void print_pipeline_launches(strbuf *out, const described_set *d);
void print_alias_launches(strbuf *out, const described_set *d);

/* Returns the index in the table of kernels of the first kernel with a name. */
size_t kernel_place(const kernel_set *set, const char *name);

/* Prints the arguments of the first kernel as in a call: "y, w, x". */
void print_first_arguments(strbuf *out, const described_set *d);

/* Kinds of members of ptxgen_query, see kernel/query.def. */
enum { QUERY_SIZES, QUERY_OPTIONS, QUERY_MATRICES };

/* Prints an enumeration for each key with words. */
void print_query_enums(strbuf *out, const described_set *d);

/* Print the members of a kind, their number, and a row { "key", query->member } for each. */
void print_query_members(strbuf *out, const described_set *d, int kind);
void print_query_count(strbuf *out, const described_set *d, int kind);
void print_query_rows(strbuf *out, const described_set *d, int kind);

/* The definitions of one kernel in the header: its PTX, its tables, its descriptor. */
#ifndef PTXGEN_EMIT_HEADER_DATA_H
#define PTXGEN_EMIT_HEADER_DATA_H

#include "emit/describe.h"

void print_upper(strbuf *out, const char *text);

void print_definitions(strbuf *out, const kernel_set *set, const kernel *k);

#endif

/* A kernel's tables and its descriptor, which the implementation part of the header defines. */
#ifndef PTXGEN_EMIT_HEADER_DATA_H
#define PTXGEN_EMIT_HEADER_DATA_H

#include "emit/header_functions.h"

/* The table IDENTIFIER_config. Returns how many entries it has. */
size_t print_config(strbuf *out, const char *id, const instance *in);

/* All of a kernel but its PTX. */
void print_definitions(strbuf *out, const kernel_set *set, const description *d,
                       const run_functions *at_run_time);

#endif

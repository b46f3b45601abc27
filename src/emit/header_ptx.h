/* A kernel's PTX as C. */
#ifndef PTXGEN_EMIT_HEADER_PTX_H
#define PTXGEN_EMIT_HEADER_PTX_H

#include "emit/describe.h"

/* The array IDENTIFIER_ptx. */
void print_ptx(strbuf *out, const kernel_set *set, const description *d);

/* Whether that is one of words, not of characters. */
bool is_printed_as_words(const kernel_set *set, const description *d);

#endif

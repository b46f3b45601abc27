/* PREFIX_kernels.h: templates/header*.h.in hold its constant text. */
#ifndef PTXGEN_EMIT_HEADER_H
#define PTXGEN_EMIT_HEADER_H

#include "emit/describe.h"

void emit_header(strbuf *out, const described_set *d);

/* Prints a template's text, filled in for a set. */
void header_fill(strbuf *out, const char *text, const described_set *d);

#endif

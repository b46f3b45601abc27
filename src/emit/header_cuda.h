/* The typed functions of the header: to load and launch each instance, pipeline and alias. See
 * templates/header_cuda.h.in for what they call. */
#ifndef PTXGEN_EMIT_HEADER_CUDA_H
#define PTXGEN_EMIT_HEADER_CUDA_H

#include "emit/describe.h"

void print_launches(strbuf *out, const described_set *d);
void print_pipeline_launches(strbuf *out, const described_set *d);
void print_alias_launches(strbuf *out, const described_set *d);

/* The names of a kernel's parameters as a call passes them: "y, w, x". */
void print_arguments(strbuf *out, const description *d);

#endif

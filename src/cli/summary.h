/* What is said of checks that went well, and of kernels, for standard output. */
#ifndef PTXGEN_CLI_SUMMARY_H
#define PTXGEN_CLI_SUMMARY_H

#include "check/validate.h"
#include "check/verify_set.h"

void summary_validation(strbuf *out, const ptxas *assembler, const validation *v);

/* all: a line for each kernel as well. */
void summary_verification(strbuf *out, const verification *v, bool all);

/* A line for each kernel: its target and size. */
void summary_kernels(strbuf *out, const kernel_set *set);

#endif

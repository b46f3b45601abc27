/* Summaries of successful checks, and of kernels, for standard output. */
#pragma once

#include "check/validate.h"
#include "check/verify_set.h"

void summary_validation(strbuf *out, const ptxas *assembler, const validation *v);

/* Appends the summary of --verify. all: adds a line for each kernel. */
void summary_verification(strbuf *out, const verification *v, bool all);

/* Appends a line for each kernel: target, PTX version, size, registers if known. */
void summary_kernels(strbuf *out, const kernel_set *set);

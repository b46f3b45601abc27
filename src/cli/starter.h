/* --init engine: the folder of a program that prints text from a model, to start with. */
#ifndef PTXGEN_CLI_STARTER_H
#define PTXGEN_CLI_STARTER_H

#include "base/diag.h"
#include "base/strbuf.h"

/* Writes all of the folder's files or, where one is there already, none. Its spec is that of a
 * Llama 3.1 8B, or spec where that is not NULL. False where d got an error; *count: the files. */
bool starter_write(arena *a, const char *folder, const strbuf *spec, size_t *count, diags *d);

#endif

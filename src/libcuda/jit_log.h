/* The logs that a program gives the JIT compiler or the linker by options, and finds messages in.
 */
#ifndef PTXGEN_LIBCUDA_JIT_LOG_H
#define PTXGEN_LIBCUDA_JIT_LOG_H

#include "libcuda/api.h"

enum { JIT_INFO_LOG, JIT_ERROR_LOG };

/* The options that mean something here; the others are about optimisation. */
typedef struct jit_log {
    char *text[2]; /* of information and of errors */
    size_t size[2];
    void **filled[2]; /* where the driver says how much of the log it used */
} jit_log;

jit_log jit_log_of(unsigned count, const CUjit_option *options, void **values);

/* Fills in both logs. Where the program gave none, an error goes to standard error. */
void jit_log_write(const jit_log *log, const char *info, const char *error);

#endif

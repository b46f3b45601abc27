/* ptxas, NVIDIA's assembler: found where it is installed, run to validate kernels, read for what
 * they use. */
#ifndef PTXGEN_CHECK_PTXAS_H
#define PTXGEN_CHECK_PTXAS_H

#include <stdbool.h>

#include "base/arena.h"
#include "kernel/target.h"

typedef struct ptxas {
    const char *path;
    const char *version;  /* "13.0.88" */
    target_set known;     /* targets that it takes */
    const target *oldest; /* of them: older PTX is validated at the oldest */
} ptxas;

/* spill_bytes: stored or loaded, the larger. shared_bytes: static, with what the system reserves.
 */
typedef struct ptxas_result {
    bool accepted;
    unsigned registers, spill_bytes, stack_bytes, shared_bytes;
    const char *message; /* what ptxas printed, where it rejected the kernel */
    char *cubin;         /* of an accepted one */
    size_t cubin_size;
    const char *unwritable; /* temporary folder or file that made the run fail, else NULL */
} ptxas_result;

/* given: a path from the command line or NULL: then PATH, $CUDA_HOME, $CUDA_PATH and the folders
 * where CUDA is usually installed are searched. False and a sentence in error when there is none
 * that runs. */
bool ptxas_find(arena *a, const char *given, ptxas *out, const char **error);

/* Assembles one module for one target, or for the oldest that ptxas takes where t is older. False
 * and error only when ptxas could not be run, or knows no architecture as new as t. May be called
 * from several threads at once. */
bool ptxas_run(arena *a, const ptxas *assembler, const char *ptx, size_t length, const target *t,
               ptxas_result *result, const char **error);

/* Parse the output of ptxas: the version, "13.0.88", of --version or NULL; the targets of our table
 * that --help lists; the figures of -v for a module with one kernel. */
const char *ptxas_parse_version(arena *a, const char *text);
target_set ptxas_parse_targets(const char *help);
void ptxas_parse_report(const char *text, ptxas_result *result);

#endif

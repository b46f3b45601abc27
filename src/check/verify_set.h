/* --verify: all kernels of a set on the emulator, and the step that they are part of. */
#ifndef PTXGEN_CHECK_VERIFY_SET_H
#define PTXGEN_CHECK_VERIFY_SET_H

#include "check/progress.h"
#include "kernel/kernel.h"

/* What was found of one kernel. */
typedef struct verified {
    const kernel *kernel;
    bool right;
    uint64_t blocks, instructions; /* run; instructions of all threads */
    bool sampled;                  /* blocks are some of the grids' */
    double worst;                  /* largest error as a part of its bound */
} verified;

typedef struct verification {
    verified *kernels; /* those of the set, then the edited ones */
    size_t right, checked;
    const char
        *step; /* the summary's line on the step that was run; NULL: none was, or it is wrong */
} verification;

/* Runs every kernel on the emulator, on jobs threads, and notes the errors; and those edited ones
 * that stand in files beside what the header holds. A wrong result is an error at the instance's
 * section or at a line of the file. Where all are right, and all of a decoder's are there, its step
 * is run: what is wrong with it is an error at its section. */
bool verify_set(arena *a, kernel_set *set, const kernel_list *edited, uint64_t seed, unsigned jobs,
                const progress *show, verification *out, diags *d);

/* Returns true if the texts of two kernels of one name differ at most in comments, spaces,
 * .version, .target, the cache hint .nc of loads, and lines of griddepcontrol: one proof is enough
 * for both. No value depends on these as long as no access is at fault. */
bool kernels_are_alike(const kernel *a, const kernel *b);

#endif

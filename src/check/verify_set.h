/* --verify: runs all kernels of a set on the emulator, and a decoder's step. */
#pragma once

#include "check/progress.h"
#include "kernel/kernel.h"

typedef struct verified {
    const kernel *kernel;
    bool right;
    uint64_t blocks, instructions; /* blocks that ran; instructions of all threads */
    bool sampled;                  /* only a sample of the blocks ran */
    double worst;                  /* largest error as a fraction of its bound */
} verified;

typedef struct verification {
    verified *kernels; /* kernels of the set, then the edited ones */
    size_t right, checked;
    const char *step; /* line of the summary about the step; NULL if no step ran or it is wrong */
} verification;

/* Verifies all kernels of a set, and edited kernels of which the header has the generated version,
 * on `jobs` threads. Records errors. Reports a wrong result at the instance's section or at a line
 * of the edited file. If all kernels are right and a decoder is complete, verifies its step;
 * reports a problem at its section. */
bool verify_set(arena *a, kernel_set *set, const kernel_list *edited, uint64_t seed, unsigned jobs,
                const progress *show, verification *out, diags *d);

/* Returns true if the texts of two kernels with the same name differ at most in comments, spaces,
 * .version, .target, the cache hint .nc, and griddepcontrol lines. One verification is then enough,
 * since these affect no results as long as no access is faulty. */
bool kernels_are_alike(const kernel *a, const kernel *b);

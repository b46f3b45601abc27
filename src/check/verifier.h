/* Runs trials of one kernel on the emulator and keeps what is found. */
#ifndef PTXGEN_CHECK_VERIFIER_H
#define PTXGEN_CHECK_VERIFIER_H

#include <stdatomic.h>

#include "check/run.h"
#include "kernel/kernel.h"

typedef struct verify_result {
    bool right;
    double worst;       /* largest error, as a part of the family's tolerance: right is below 1 */
    uint64_t blocks;    /* run, */
    uint64_t of_blocks; /* of so many in the grids of the launches */
    uint64_t instructions; /* thread-instructions */
    unsigned isa;          /* PTX ISA version of the text, times ten */
    size_t shared_bytes;   /* static, that it declares */
    const char *message;   /* when not right: what is wrong, and how to repeat it */
    unsigned line; /* of the PTX text, from 1: where the rule was broken or the worst element
                      stored; 0 where no line is to blame */
} verify_result;

/* Cores for kernels that are verified beside one another. Those that have no kernel left run blocks
 * of the others'. */
typedef struct verify_cores {
    unsigned count;
    atomic_size_t unfinished;    /* kernels: who calls for one counts it down */
    atomic_uint_least64_t ahead; /* blocks that were run so */
} verify_cores;

typedef struct verifier {
    arena *result_arena, *scratch;
    const kernel *kernel;
    const emu_module *module;
    uint64_t seed;
    verify_cores *cores; /* NULL: one */
    bool alike;          /* an alike kernel is proven in full */
    verify_result result;
    trial trial; /* that is run, */
    trial_run run;
} verifier;

/* Parses the kernel's text. Returns false if it can't be run, or not where the header says. */
bool verifier_load(verifier *v);

/* Refuses the first instruction that rounds as none of a generated kernel does. */
void verifier_check_rounding(verifier *v);

/* Runs the trial of a setup on a device of its own, as runs says: that may change the trial between
 * launches. */
bool verifier_try(verifier *v, const trial_setup *setup, bool (*runs)(verifier *));

/* Launches the trial, and judges what it leaves. Returns false if it is wrong. */
bool verifier_launch(verifier *v, selection which);

/* Returns about what a block of the trial does at most. */
uint64_t verifier_block_work(const trial *t);

/* Returns why a trial takes more time or addresses than one may; NULL: it does not. */
const char *verifier_refusal(arena *a, const trial *t);

#endif

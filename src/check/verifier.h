/* Runs trials of one kernel on the emulator and collects the result. */
#pragma once

#include <stdatomic.h>

#include "check/run.h"
#include "kernel/kernel.h"

typedef struct verify_result {
    bool right;
    double worst;          /* largest error as a fraction of its bound; at most 1 if right */
    uint64_t blocks;       /* number of blocks that ran */
    uint64_t of_blocks;    /* number of blocks in the grids of all launches */
    uint64_t instructions; /* thread-instructions */
    unsigned isa;          /* PTX ISA version of the text times ten */
    size_t shared_bytes;   /* static shared memory that it declares */
    const char *message;   /* if not right: the problem and how to reproduce it */
    unsigned line;         /* PTX line that broke the rule or stored the worst element, or 0 */
} verify_result;

/* Cores for kernels that are verified in parallel. Idle cores run blocks of unfinished kernels. */
typedef struct verify_cores {
    unsigned count;
    atomic_size_t unfinished; /* number of unfinished kernels, decremented by the caller */
    atomic_uint_least64_t speculated_blocks; /* total of all launches: see emu_launch_config */
} verify_cores;

typedef struct verifier {
    arena *result_arena, *scratch;
    const kernel *kernel;
    const emu_module *module;
    uint64_t seed;
    verify_cores *cores; /* NULL: one core */
    bool alike;          /* an equivalent kernel is verified in full */
    verify_result result;
    trial trial; /* current trial */
    trial_run run;
} verifier;

/* Parses the kernel's text. Returns false if it cannot run, or if its .target is too new. */
bool verifier_load(verifier *v);

/* Rejects the first instruction whose rounding mode no generated kernel uses. */
void verifier_check_rounding(verifier *v);

/* Prepares a trial on a new device and calls runs, which may change the trial between launches. */
bool verifier_try(verifier *v, const trial_setup *setup, bool (*runs)(verifier *));

/* Launches the trial and judges its results. Returns false if they are wrong. */
bool verifier_launch(verifier *v, selection which);

/* Returns an upper estimate of the thread instructions of a block of the trial. */
uint64_t verifier_block_work(const trial *t);

/* Returns a message if a trial needs too much time or address space, or NULL. */
const char *verifier_refusal(arena *a, const trial *t);

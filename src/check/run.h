/* A trial on a device: its buffers there, its launch, and the judgement of what that leaves. */
#ifndef PTXGEN_CHECK_RUN_H
#define PTXGEN_CHECK_RUN_H

#include "check/blocks.h"
#include "check/device.h"

typedef struct trial_run {
    device *device;
    const trial *trial;
    const char *output, *in_place_of; /* an output that lies where an input does; NULL: none */
    uint64_t addresses[MAX_PARAMS];   /* of buffers */
    const void *pointers[MAX_PARAMS]; /* to parameters, as a launch takes them */
} trial_run;

/* Places the trial's buffers on the device. */
bool run_place(trial_run *r);

/* Prepares a launch: what the one before has left in scratch memory must not serve this one, what
 * is updated is as it was, and nothing counts as written. */
bool run_clear(trial_run *r);

/* Returns the launch of the whole grid, or of some blocks; module and limits are left to fill in.
 */
device_launch run_launch(const trial_run *r, const block_choice *c);

/* Runs a launch on the emulator that may begin before launches ahead of it have ended, which touch
 * anything but weights and what is settled. */
bool run_behind_others(const trial_run *r, const device_launch *l);

/* Reads blocks of the output params[index] from the first one on, with which of them are written;
 * what is not is as it was in a buffer that is updated, and elsewhere all ones. */
trial_output run_read(arena *a, const trial_run *r, size_t index, uint64_t first, uint64_t count);

/* What is wrong; NULL: nothing. Where address is not 0, its last store is to blame, and blame says
 * so: a line of the PTX is to follow. */
typedef struct run_verdict {
    const char *what, *blame;
    uint64_t address;
} run_verdict;

/* Judges all outputs of a launch. j has the worst element; a message is in the arena. Of a grid
 * that is run whole everything has to be written, of chosen blocks the first and the last element
 * of an output by those of the grid, unless inputs say whose they are. */
run_verdict run_judge(arena *a, const trial_run *r, const block_choice *c, judgement *j);

#endif

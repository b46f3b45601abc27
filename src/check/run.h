/* A trial on a device: places its buffers, launches it, and judges the results. */
#pragma once

#include "check/blocks.h"
#include "check/device.h"

typedef struct trial_run {
    device *device;
    const trial *trial;
    const char *output, *in_place_of; /* an output at an input's address */
    uint64_t addresses[MAX_PARAMS];   /* addresses of buffers */
    const void *pointers[MAX_PARAMS]; /* pointers to parameters, for a launch */
} trial_run;

/* Places the trial's buffers on the device. */
bool run_place(trial_run *r);

/* Prepares a launch: discards scratch memory, restores buffers, marks outputs as not written. */
bool run_clear(trial_run *r);

/* Returns a launch of the whole grid or of chosen blocks. The caller sets module and limits. */
device_launch run_launch(const trial_run *r, const block_choice *c);

/* Runs a launch that overlaps unknown ones, which access all but weights and settled state. */
bool run_after_unknown(const trial_run *r, const device_launch *l);

/* Reads count blocks of the output params[index] and marks the written ones. Unwritten blocks have
 * their old content in an updated buffer, and all bits set elsewhere. */
trial_output run_read(arena *a, const trial_run *r, size_t index, uint64_t first, uint64_t count);

/* A problem, or what = NULL. blame introduces the PTX line of the last store to address. */
typedef struct run_verdict {
    const char *what, *blame;
    uint64_t address;
} run_verdict;

/* Judges all outputs of a launch. j receives the worst element; a message is allocated in a. After
 * a whole grid, all elements must be written. After chosen blocks, the first and the last element
 * must be written if their blocks ran, unless inputs assign results to blocks. */
run_verdict run_judge(arena *a, const trial_run *r, const block_choice *c, judgement *j);

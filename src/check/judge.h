/* How far what a trial's launch has left is from what its reference says. */
#ifndef PTXGEN_CHECK_JUDGE_H
#define PTXGEN_CHECK_JUDGE_H

#include "check/trial.h"

/* How far an output is from what it should be. Elements count values, also in quantized outputs. */
typedef struct judgement {
    double worst; /* largest error as a part of its bound; above 1 is wrong, a NaN is infinite */
    uint64_t judged;
    const char *output; /* of the worst element: the parameter's name, */
    const char *field;  /* what of it: "", or "d of ", "s of " for fields of its block, */
    uint64_t element;
    double got, expected; /* and its values */
} judgement;

/* Some of the blocks of an output, of its format, from the first one on; those that an array of
 * addresses points to count as one behind the other. written has one byte a block, not zero where
 * the kernel wrote it; NULL: everywhere. */
typedef struct trial_output {
    const void *bytes;
    const uint8_t *written;
    uint64_t first, count;
} trial_output;

/* The format of an output's values, and how many blocks there are of it and of each of its targets
 * (or of itself). */
format trial_output_format(const param *p);

/* Where a block of 32 quants with a scale has them. */
unsigned trial_quants_at(format f);
uint64_t trial_output_blocks(const trial_param *p);
uint64_t trial_target_blocks(const trial_param *p);

/* The first of these blocks of params[index] that is not written though it has to be, or the one
 * behind the last. */
uint64_t trial_missing_block(const trial *t, size_t index, const trial_output *o);

/* The first of them that is written though a cache keeps its content there, or the one behind the
 * last. */
uint64_t trial_stray_block(const trial *t, size_t index, const trial_output *o);

/* The blocks of a cache that a row writes for one of its heads: count is 0 where it writes none. */
typedef struct trial_blocks {
    uint64_t first, count;
} trial_blocks;
trial_blocks trial_row_blocks(const trial *t, const trial_param *p, size_t row, int64_t kv_head);

/* Judges these blocks of params[index]. Keeps in j what is worse, and adds to judged. */
void trial_judge(const trial *t, size_t index, const trial_output *o, judgement *j);

/* Judges values against ones that are known, in the same way. */
void judge_values(const param *p, const void *bytes, const ref_value *expected, uint64_t first,
                  uint64_t count, double tolerance, judgement *j);

/* The first byte that is not 0 of a zeroed buffer that a launch has left, or its size. */
uint64_t trial_first_remains(const trial_param *p, const void *bytes);

#endif

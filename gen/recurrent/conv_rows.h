/* The rows of a step that a block of a recurrent family processes, all of one sequence, and the
 * inputs of their causal convolution: the step's inputs and the previous ones, in a ring. */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { CONV_GROUP_ROWS = MAX_VECTORS }; /* rows in shared memory at once */

typedef struct conv_rows {
    const instance *in;
    unsigned channels, columns; /* channels of the convolution; columns of x */
    unsigned taps;              /* weights per channel, at most 4; 0: no convolution */
    int64_t state_values;       /* of a sequence */
    val row, count;             /* the block's first row, and its number of rows */
    val position;               /* position of the first row */
    val x;                      /* first row's first channel */
    val state, inputs;          /* state and ring of the sequence */
    val word;                   /* a word of shared memory, if m exceeds a group */
} conv_rows;

/* Keys of a family that updates the states of sequences. */
#define KEYS_OF_SEQUENCES                                                                \
    KEY_NUMBER("max_seq_len", "positions per sequence, e.g. 8192", shape.max_seq_len, 1, \
               INT32_MAX, .required = true, .tag = "s"),                                 \
        KEY_NUMBER("m", "rows", shape.m, 1, PROBLEM_MOST_ROWS, .def = 1, .tag = "m")

/* Returns a message if heads is not a multiple of the key `divisor` with value groups, or if a row
 * of x with of_x values exceeds 32-bit offsets into the ring; else NULL. */
const char *conv_rows_check(arena *a, const char *divisor, long long heads, long long groups,
                            long long of_x, const char **blamed);

/* Returns true if m exceeds the rows of a group. */
bool conv_rows_are_many(const instance *in);

/* Returns the address of a sequence's values in a pool with `values` f32 per sequence. */
val conv_rows_own(ptx *p, const char *pool, val sequence, int64_t values);

/* Returns true if a row after the first one continues the previous row: they have the same sequence
 * and consecutive positions below max_seq_len. */
val conv_rows_go_on(ptx *p, const instance *in, val row);

/* Returns the number of rows from a row on that belong to its run; each lane tests one at a time. */
val conv_rows_count(ptx *p, const instance *in, val row);

/* Fills in all fields but x. Ends the block if its row continues the previous one. */
void conv_rows_find(ptx *p, conv_rows *r);

val conv_rows_x(ptx *p, const conv_rows *r, val number);

/* Returns silu of the convolution of a channel and row, with options.bias plus its bias. If m does
 * not exceed a group, it also stores the input to the ring where keeps holds. */
val conv_rows_convolve(ptx *p, const conv_rows *r, val number, val channel, val keeps);

/* Stores a channel's inputs of the last rows to the ring, at most as many as it holds. */
void conv_rows_keep_last(ptx *p, const conv_rows *r, val channel);

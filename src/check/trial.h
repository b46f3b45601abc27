/* A trial: one run of a kernel on made-up inputs, and the judgement of what came out.
 *
 * A trial knows nothing of the device that runs it. It holds everything a launch needs (buffers,
 * numbers, grid) and everything a judgement needs (the problem its reference computes), so that the
 * emulator and a GPU are asked the same questions.
 */
#ifndef PTXGEN_CHECK_TRIAL_H
#define PTXGEN_CHECK_TRIAL_H

#include "check/device.h"
#include "kernel/family.h"
#include "ref/random.h"

/* The choices that make a trial. Sizes that the instance fixes must be the instance's.
 * shape.seq_len is the caller's number, so it may be above max_seq_len. */
typedef struct trial_setup {
    problem_shape shape;
    int64_t sm_count; /* of the GPU the grid is made for */
    fill_kind kind;
    uint64_t seed;
    uint64_t turn;                                        /* see problem.turn */
    enum { ALL_FINITE, WITH_NAN, WITH_INFINITY } spoiled; /* one value or scale of */
    unsigned spoiled_input;                               /* this input */
    bool one_cache; /* rows with caches are the last positions of one sequence */
} trial_setup;

typedef struct trial_param {
    param param;            /* with kind PARAM_OUT, PARAM_IN, PARAM_SCRATCH or PARAM_U32 */
    uint64_t values;        /* pointers: of the whole buffer; numbers: 1 */
    uint64_t size;          /* the same in bytes */
    device_buffer content;  /* of inputs. Who places an array of addresses fills it */
    device_buffer *targets; /* buffers that an array of addresses points to; without bytes if the
                               kernel writes them and does not read them first; NULL: no array */
    uint64_t target_count;  /* values, or 1 if all addresses are the same */
    uint32_t number;        /* of PARAM_U32 */
} trial_param;

enum { TRIAL_BLOCK_BYTES = 512 }; /* of a block of any format, at most */

typedef struct trial {
    arena *arena;
    const instance *instance;
    trial_setup setup;
    trial_param params[MAX_PARAMS];
    size_t param_count;
    unsigned grid[3], block;
    size_t dynamic_shared;
    uint32_t *seq_lens; /* of sequence_count sequences */
    size_t sequence_count;
    problem problem;
    bool spoiled; /* as the setup says; false if the input's format has no such value */
    struct {
        format format;
        uint8_t *bytes;                    /* of the input */
        uint64_t blocks;                   /* that there are, */
        uint64_t of_row;                   /* and those of a row of x, */
        bool weights;                      /* of which inputs may choose rows */
        uint64_t at;                       /* number of the one that is spoiled */
        uint8_t before[TRIAL_BLOCK_BYTES]; /* what it was */
    } spoilt;
} trial;

/* Returns an instance's options, with the roundings of its family. */
problem_options trial_options(const instance *in);

/* Returns how many inputs a setup may spoil. */
size_t trial_input_count(arena *a, const instance *in);

/* Fills the inputs and computes the launch. Buffers are allocated from a. Positions of a cache from
 * its sequence's length on are NaN, so that using one shows. Of several sequences the first has
 * shape.seq_len positions, the second none unless caches are full, the others parts of seq_len. If
 * seq_len is more than a cache holds, all sequences have it. Rows of one cache have one position
 * more each, the last one shape.seq_len. A kernel that writes to a cache writes the last position.
 */
trial trial_prepare(arena *a, const instance *in, const trial_setup *setup);

/* Change seq_len and the sequences' lengths with it, or each length. No position may become valid
 * that was not: it is NaN already. */
void trial_shorten(trial *t, int64_t seq_len);
void trial_shorten_each(trial *t, const uint32_t *seq_lens);

/* Spoils another block of the spoiled input in place of the one that was. */
void trial_move_spoiled(trial *t, uint64_t block);

/* Return the valid positions of a sequence, and the rows of its cache that have one: all rows of a
 * ring that is full. */
int64_t trial_valid_positions(const trial *t, size_t sequence);
int64_t trial_valid_rows(const trial *t, size_t sequence);

/* Return how many caches an input holds or points to, one a sequence (0: it is no cache, or the
 * kernel writes it), and one of them. */
size_t trial_cache_count(const trial_param *p);
device_buffer trial_cache(const trial_param *p, size_t sequence);

/* Returns the setup for a message: "k 4096, n 33, sm_count 132, normal inputs, seed 7". */
const char *trial_describe(arena *a, const trial *t);

/* The error of an output. Elements count values, also in quantized outputs. */
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

/* Return the format of an output's values, and the number of its blocks: in all, and in each of its
 * targets (or in itself). */
format trial_output_format(const param *p);
uint64_t trial_output_blocks(const trial_param *p);
uint64_t trial_target_blocks(const trial_param *p);

/* Returns the offset of the quants in a block of 32 with a scale. */
unsigned trial_quants_at(format f);

/* Returns the first of these blocks of params[index] that is not written but has to be, or the one
 * after the last. */
uint64_t trial_missing_block(const trial *t, size_t index, const trial_output *o);

/* Returns the first of them that is written but belongs to the part of a cache that keeps its
 * content, or the one after the last. */
uint64_t trial_stray_block(const trial *t, size_t index, const trial_output *o);

/* The blocks of a cache that a row writes for one of its heads: count is 0 where it writes none. */
typedef struct trial_blocks {
    uint64_t first, count;
} trial_blocks;
trial_blocks trial_row_blocks(const trial *t, const trial_param *p, size_t row, int64_t kv_head);

/* Compares these blocks of params[index] with the reference. Keeps the worst element in j. */
void trial_judge(const trial *t, size_t index, const trial_output *o, judgement *j);

/* Compares values with ones that are known, in the same way. */
void judge_values(const param *p, const void *bytes, const ref_value *expected, uint64_t first,
                  uint64_t count, double tolerance, judgement *j);

#endif

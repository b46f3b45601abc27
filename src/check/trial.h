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

/* What a trial is about. Sizes that the instance fixes must be the instance's. shape.seq_len is
 * what the caller of the kernel says, so it may be above max_seq_len. */
typedef struct trial_setup {
    problem_shape shape;
    int64_t sm_count; /* of the GPU the grid is made for */
    fill_kind kind;
    uint64_t seed;
    uint64_t turn;                                        /* see problem.turn */
    enum { ALL_FINITE, WITH_NAN, WITH_INFINITY } spoiled; /* one value, or scale, */
    unsigned spoiled_input;                               /* of this one of the inputs */
    bool one_cache; /* rows with caches are the last positions of one sequence */
} trial_setup;

typedef struct trial_param {
    param param;            /* with kind PARAM_OUT, PARAM_IN, PARAM_SCRATCH or PARAM_U32 */
    uint64_t values;        /* pointers: of the whole buffer; numbers: 1 */
    uint64_t size;          /* the same in bytes */
    device_buffer content;  /* of inputs. Arrays of addresses: to be filled by who knows them */
    device_buffer *targets; /* of an array of addresses: what they point to, without bytes where
                              that is an output that is not read first; NULL: it is none */
    uint64_t target_count;  /* of them: values, or 1 that all addresses are the same of */
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
    bool spoiled; /* as the setup says; not where no value of the input's format is so */
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

/* An instance's options, with what its family does to numbers. */
problem_options trial_options(const instance *in);

/* Inputs that a setup may spoil. */
size_t trial_input_count(arena *a, const instance *in);

/* Fills the inputs and works out the launch. Buffers are allocated from a. Positions of a cache
 * from its sequence's length on are NaN, so that using one shows. Of several sequences the first
 * has shape.seq_len, the others parts of it, the second none unless caches are full; where that is
 * more than a cache holds, all have it. Rows of one cache have one position more each, the last one
 * shape.seq_len. What writes to a cache writes the last position. */
trial trial_prepare(arena *a, const instance *in, const trial_setup *setup);

/* Changes seq_len, and the sequences' lengths with it or to given ones; not to such that make more
 * positions valid than there were, since these are NaN already. */
void trial_shorten(trial *t, int64_t seq_len);
void trial_shorten_each(trial *t, const uint32_t *seq_lens);

/* Spoils another block of the spoiled input in place of the one that was. */
void trial_move_spoiled(trial *t, uint64_t block);

/* Positions of a sequence that are valid, and rows of its cache that have one: of a ring all, as
 * soon as it is full. */
int64_t trial_valid_positions(const trial *t, size_t sequence);
int64_t trial_valid_rows(const trial *t, size_t sequence);

/* The caches that an input holds or points to, one a sequence: 0 where it is none, as what is
 * written to. */
size_t trial_cache_count(const trial_param *p);
device_buffer trial_cache(const trial_param *p, size_t sequence);

/* "k 4096, n 33, sm_count 132, normal inputs, seed 7": the setup, for a message. */
const char *trial_describe(arena *a, const trial *t);

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

/* A trial: one run of a kernel on random inputs, and the judgement of its results.
 *
 * A trial is independent of the device. It holds all data for a launch (buffers, numbers, grid) and
 * for the judgement (the problem for the reference), so that the emulator and a GPU get the same
 * inputs. */
#pragma once

#include "check/device.h"
#include "kernel/family.h"
#include "ref/random.h"

/* Parameters of a trial. Sizes that the instance fixes must match. shape.seq_len is the caller's
 * number and may exceed max_seq_len. */
typedef struct trial_setup {
    problem_shape shape;
    int64_t sm_count; /* SM count of the GPU whose grid is used */
    fill_kind kind;
    uint64_t seed;
    uint64_t turn;                                        /* see problem.turn */
    enum { ALL_FINITE, WITH_NAN, WITH_INFINITY } spoiled; /* replaces one value or scale */
    unsigned spoiled_input;                               /* of the input with this number */
    bool one_cache; /* rows are the last positions of one sequence */
} trial_setup;

typedef struct trial_param {
    param param;           /* kind is PARAM_OUT, PARAM_IN, PARAM_SCRATCH or PARAM_U32 */
    uint64_t values;       /* number of values of a buffer; 1 for a number */
    uint64_t size;         /* size in bytes */
    device_buffer content; /* content of an input, or of an updated output before the launch */
    uint32_t number;       /* value of a PARAM_U32 */
} trial_param;

enum { TRIAL_BLOCK_BYTES = 512 }; /* maximum block size of all formats, in bytes */

typedef struct trial {
    arena *arena;
    const instance *instance;
    trial_setup setup;
    trial_param params[MAX_PARAMS];
    size_t param_count;
    unsigned grid[3], block;
    size_t dynamic_shared;
    uint32_t *seq_lens;  /* length of each row's sequence */
    uint32_t *sequences; /* sequence of each row */
    size_t row_count;
    problem problem;
    bool spoiled; /* an input is spoiled; false if its format has no such value */
    struct {
        format format;
        uint8_t *bytes;                    /* bytes of the spoiled input */
        uint64_t blocks;                   /* number of its blocks */
        uint64_t of_row;                   /* number of blocks of a row of x */
        bool weights;                      /* other inputs may select its rows */
        uint64_t at;                       /* index of the spoiled block */
        uint8_t before[TRIAL_BLOCK_BYTES]; /* original content of that block */
    } spoilt;
} trial;

/* Returns an instance's options, with the roundings of its family. */
problem_options trial_options(const instance *in);

/* Returns the number of inputs that a setup may spoil. */
size_t trial_input_count(arena *a, const instance *in);

/* Fills the inputs and computes the launch; allocates buffers in a. Cache positions beyond a
 * sequence's length, and pages of sequences without rows, are NaN, which reveals their use. Rows and
 * sequences are in different orders, and so are pages.
 * - With several sequences, that of the first row has shape.seq_len positions, the second none unless
 *   caches are full, the others fractions of seq_len.
 * - If seq_len exceeds the cache, all sequences have that length.
 * - Rows of one cache have consecutive positions; the last row has shape.seq_len.
 * - A kernel that writes to a cache writes the last position.
 */
trial trial_prepare(arena *a, const instance *in, const trial_setup *setup);

/* Shorten all sequences by seq_len, or each. No position may become valid: it is already NaN. */
void trial_shorten(trial *t, int64_t seq_len);
void trial_shorten_each(trial *t, const uint32_t *seq_lens);

/* Restores the spoiled block of the input and spoils another one. */
void trial_move_spoiled(trial *t, uint64_t block);

/* Return the number of valid positions of a sequence; of the cache rows that hold them; and of all
 * cache rows that it has per KV head. */
int64_t trial_valid_positions(const trial *t, size_t sequence);
int64_t trial_valid_rows(const trial *t, size_t sequence);
int64_t trial_cache_rows(const trial *t);

/* Returns true if a parameter is a cache that the kernel only reads. */
bool trial_is_read_cache(const trial_param *p);

/* Returns the setup as text for messages: "k 4096, n 33, sm_count 132, normal inputs, seed 7". */
const char *trial_describe(arena *a, const trial *t);

/* Errors of an output. Elements are values, also in quantized outputs. */
typedef struct judgement {
    double worst; /* largest error as a fraction of its bound; wrong if above 1 */
    uint64_t judged;
    const char *output; /* parameter of the worst element */
    const char *field;  /* field of a block: "d of ", "s of ", "q of ", or "" for a value */
    uint64_t element;
    double got, expected; /* values of the worst element */
} judgement;

/* A range of blocks of an output. written has one byte per block, nonzero if the kernel wrote it;
 * NULL: all written. */
typedef struct trial_output {
    const void *bytes;
    const uint8_t *written;
    uint64_t first, count;
} trial_output;

/* Returns the number of blocks of an output. */
uint64_t trial_output_blocks(const trial_param *p);

/* Returns the offset of the quants in a block of 32 values with a scale. */
unsigned trial_quants_at(format f);

/* Returns the first block of o that must be written but is not, or the end of o. */
uint64_t trial_missing_block(const trial *t, size_t index, const trial_output *o);

/* Returns the first block of o that is written but must keep its content, or the end of o. */
uint64_t trial_stray_block(const trial *t, size_t index, const trial_output *o);

/* Cache blocks that a row writes for one head; count = 0: none. */
typedef struct trial_blocks {
    uint64_t first, count;
} trial_blocks;
trial_blocks trial_row_blocks(const trial *t, const trial_param *p, size_t row, int64_t kv_head);

/* Compares blocks o of the output params[index] with the reference. j keeps the worst element. */
void trial_judge(const trial *t, size_t index, const trial_output *o, judgement *j);

/* Compares values with expected ones. Keeps the worst element in j. */
void judge_values(const param *p, const void *bytes, const ref_value *expected, uint64_t first,
                  uint64_t count, double tolerance, judgement *j);

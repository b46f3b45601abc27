/* Common parts of GEMV kernels: parameters, rows of weights, and the store of results. */
#pragma once

#include "gen/common/reduce.h"
#include "kernel/family.h"
#include "ptx/ptx.h"

enum { QKV_MATRICES = 3 };

/* Return a size: an immediate or, with dynamic dims, the kernel's parameter NAME_dim. */
val dim_k(ptx *p, const instance *in);
val dim_n(ptx *p, const instance *in);
val dim_m(ptx *p, const instance *in);

/* Vectors that a list chooses from X's rows. Word v of the list is row * slots + slot; each row has
 * one result per slot. Vectors from `count` on repeat the last one and store nothing. */
typedef struct gemv_chosen {
    val words, count;                    /* address of the list, and its length */
    val first;                           /* first word; VAL_NONE: loaded where it is used */
    unsigned rows, slots;                /* rows of X, and slots per row */
    unsigned slot_values, values_beside; /* values per slot, and of a row of Y besides its slots */
} gemv_chosen;

/* Operands of a GEMV: addresses, epilogue and sizes. */
typedef struct gemv_operands {
    val y, w, x;
    const gemv_chosen *chosen; /* NULL: vectors are rows of X and Y, in order */
    val factor;                /* address of the sum's factor, [1]; VAL_NONE: 1 */
    val bias, residual;        /* added to the result, [n] and [m, n]; VAL_NONE: none */
    val times;                 /* multiplies the activated result, [m, n]; VAL_NONE: none */
    int64_t epilogue;          /* activation of the sum and bias, see problem_options */
    double scale, softcap;     /* of the result, see gemv_store_rows; 0: none */
    val factors;       /* factor of each vector's results, in shared memory; VAL_NONE: none */
    val n;             /* number of rows */
    unsigned multiple; /* a divisor of n; 0: unknown, or n is an immediate */
    val before;        /* rows of other matrices before these in Y; VAL_NONE: none */
    val stride;        /* values from a row of Y to the next; VAL_NONE: n */
    val blocks;        /* blocks of the weights' format per row */
    val row_bytes;     /* bytes per row of W */
    int64_t x_bytes;   /* bytes per row of X, if k is baked in */
    val m;             /* rows of X and Y at run time; VAL_NONE: the block's own */
    val first;         /* the block's first row of X and Y */
    val offsets[MAX_VECTORS]; /* bytes from x to each of the block's rows */
} gemv_operands;

/* Returns rows of X and Y per block: m, or an equal share of more than MAX_VECTORS rows. */
int64_t gemv_vectors(const instance *in);
#define GEMV_VECTORS                                                                            \
    {                                                                                           \
        "vectors", gemv_vectors, "rows of X and Y per block: m, at most 8 without tensor cores" \
    }
/* Refuses more than MAX_VECTORS rows per block. */
const char *check_any_rows(const instance *in, arena *a, const char **blamed);
#define GEMV_GRID_Y "ceil_div(m, vectors)" /* 1 if rows are fixed and at most MAX_VECTORS */
extern const derived_size gemv_sizes[];    /* only GEMV_VECTORS */

/* Loads the parameters y, w and x, and bias and residual if present. Sizes rows by the weights'
 * format; scale and softcap are the options'. */
gemv_operands gemv_parameters(ptx *p, const instance *in);

/* Loads the parameters by name, for kernels of several matrices or outputs. */
gemv_operands gemv_of(ptx *p, const instance *in, const char *y, const char *w, const char *x);

/* Gate and up: an instance's matrices `first` and first + 1, or up alone without a gate. x and y of
 * g[0] belong to both. */
enum { GEMV_PAIR = 2 };
typedef struct gemv_pair {
    unsigned count;         /* matrices */
    instance of[GEMV_PAIR]; /* instance of each matrix */
    gemv_operands g[GEMV_PAIR];
    val before, bias; /* rows before theirs in the tensors, and in bg and bu; VAL_NONE: 0 */
} gemv_pair;
gemv_pair gemv_pair_of(ptx *p, const instance *in, unsigned first);
/* Returns the instance of gate, or of up without a gate. */
instance gemv_first_of_pair(const instance *in, unsigned first);

/* Returns the number of matrices of Q, K and V: two without V. */
unsigned gemv_matrices_of_qkv(const instance *in);
/* Returns the operands of matrix `matrix` of Q, K and V. */
gemv_operands gemv_of_qkv(ptx *p, const instance *in, unsigned matrix);
/* Returns the first row of a matrix in Y. */
int64_t gemv_first_of_qkv(const instance *in, unsigned matrix);

/* Neighbouring matrices of Q, K and V with one format. Their rows are divided into groups; the
 * groups of one matrix follow those of the preceding one. */
typedef struct gemv_run {
    unsigned from, count;
    int64_t before, groups;              /* groups of preceding runs, and of this run */
    int64_t groups_before[QKV_MATRICES]; /* groups of the run before each of its matrices */
} gemv_run;

/* Finds the runs and returns their number; rows: rows per group. */
unsigned gemv_runs_of_qkv(const instance *in, int64_t rows, gemv_run runs[QKV_MATRICES]);
/* Loads the operands of each matrix of a run. */
void gemv_operands_of_run(ptx *p, const instance *in, const gemv_run *run,
                          gemv_operands of[QKV_MATRICES]);
/* Returns the operands of the matrix that has group *number of the run, and makes *number the
 * group's number in that matrix. */
gemv_operands gemv_matrix_of_run(ptx *p, const gemv_run *run, const gemv_operands *of, val *number);

/* For persistent blocks that stride over the groups of all runs: returns the block that has a row of
 * Y, and the block's first group after `preceding` groups, counted from there. */
int64_t gemv_block_of_row(const instance *in, int64_t row, int64_t blocks, int64_t rows);
val gemv_first_group(ptx *p, int64_t preceding);

/* Returns registers per thread for m vectors: 64 for one, else the family's maximum. */
unsigned gemv_registers(const instance *in);

/* Returns &W[row]. */
val gemv_row(ptx *p, const gemv_operands *g, val row);

/* An address and a constant offset in bytes. */
typedef struct place {
    val base;
    int64_t offset;
} place;

/* Returns the place of vector `number` of X: base + offsets[number]. Without that offset (NULL or
 * VAL_NONE) it is base + number * count * bytes, a constant offset where the sizes are baked in. */
place place_of_vector(ptx *p, val base, const val *offsets, unsigned number, val count,
                      unsigned bytes);

/* Returns the row of X of vector `number`. With rows = run_time the last block in y may have fewer
 * vectors: in place of missing ones the last is read again, and nothing is stored. */
val gemv_vector_read(ptx *p, const gemv_operands *g, val number);
/* Returns the address of vector `number` of X. */
val gemv_vector(ptx *p, const gemv_operands *g, val number);
/* Returns the address of vector `number`'s results in Y; *stored: predicate, they are stored. */
val gemv_results(ptx *p, const gemv_operands *g, val number, val *stored);

/* Returns true if every iteration is known to have `rows` rows. Otherwise the last one may have
 * fewer: the last row is read again in place of missing rows, and nothing is stored. */
bool gemv_loops_are_full(const gemv_operands *g, unsigned rows);
/* Returns &W[row + number], number < rows. */
val gemv_loop_row(ptx *p, const gemv_operands *g, val row, unsigned number, unsigned rows);

/* Returns cap(scale times activation(factor sum + bias[row]) + residual), without absent terms, for
 * the element of Y `offset` bytes past its start. If the cap would make an infinity finite, the
 * result is NaN. */
val gemv_finished(ptx *p, const gemv_operands *g, val sum, val row, val offset);

/* Stores Y[vector][row + r] = gemv_finished of sum number rows * vector + r. cap(y) = softcap tanh(y
 * / softcap). */
void gemv_store_rows(ptx *p, const gemv_operands *g, val row, unsigned rows, unsigned vectors,
                     spread_sums sums);

/* Returns activation(gate) * up. The activations (ACTIVATION_*) are:
 *
 * - silu: g / (1 + exp(-g)), with the options' limit
 * - gelu, tanh form: g / (1 + exp(-2 u)) with u = sqrt(2 / pi) (g + 0.044715 g^3)
 * - swiglu_oai, of gpt-oss: g / (1 + exp(-1.702 g)) (up + 1), g at most 7, up in [-7, 7]
 * - gelu_erf: g Phi(g); relu: max(g, 0); relu2: max(g, 0)^2
 *
 * Far below 0 exp is infinite and the result 0. */
val gated(ptx *p, const problem_options *o, val gate, val up);

/* Factors and biases of a row's sums of gate and up: f32, or VAL_NONE. */
typedef struct gemv_biases {
    val gate_factor, up_factor;
    val gate, up;
} gemv_biases;
gemv_biases gemv_biases_of_row(ptx *p, const instance *in, val row);
void gemv_add_biases(ptx *p, const gemv_biases *biases, val *gate, val *up);

/* Stores Y[vector][row] = activation(gate + its bias) * (up + its bias), by a row's warp. The
 * lanes' partial sums of vector v are sums[2 v] (gate) and sums[2 v + 1] (up). Without a gate it
 * stores activation(up + its bias), and sums[v] is up. */
void gemv_store_gated(ptx *p, const instance *in, const gemv_operands *g, val row, const val *sums,
                      const gemv_biases *biases);

/* Stores y[row] = sum, by thread 0 of the block. */
void gemv_store(ptx *p, const gemv_operands *g, val row, val sum);

/* Multiplies a row of one matrix, or of each of a pair, with all vectors of g[0]'s x (exact.c):
 * results[rows * vector + matrix] are the lane's partial sums. */
void exact_multiply(ptx *p, const instance *of, const gemv_operands *g, unsigned rows, val row,
                    val *results);
/* Stores activation(gate) * up, or activation(up), of a row, with element `bias` of the biases. */
void exact_gated_row(ptx *p, const gemv_pair *pair, val row, val bias);

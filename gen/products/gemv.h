/* What every GEMV starts and ends with: its parameters, the rows of its weights, the store of a
 * result. */
#ifndef PTXGEN_GEN_PRODUCTS_GEMV_H
#define PTXGEN_GEN_PRODUCTS_GEMV_H

#include "gen/common/reduce.h"
#include "kernel/family.h"
#include "ptx/ptx.h"

enum { QKV_MATRICES = 3 };

/* A size as an immediate or, with dynamic dims, as the kernel's parameter NAME_dim. */
val dim_k(ptx *p, const instance *in);
val dim_n(ptx *p, const instance *in);
val dim_m(ptx *p, const instance *in);

/* Vectors that a list chooses of X's rows: word v of it is row * slots + slot, where the row has a
 * result of so many slots. Vectors from count on stand for the last one, and store nothing. */
typedef struct gemv_chosen {
    val words, count;     /* their address, and how many there are */
    val first;            /* the first of them; without a kind: loaded where it is needed */
    unsigned rows, slots; /* that there are, and of each */
    unsigned slot_values, values_beside; /* of a slot, and of a row of Y beside its slots */
} gemv_chosen;

typedef struct gemv_operands {
    val y, w, x;
    const gemv_chosen *chosen; /* NULL: vectors are rows of X and Y, in order */
    val factor;                /* of the sum, [1]; without a kind: 1 */
    val bias, residual;        /* added to the result, [n] and [m, n]; without a kind: none */
    double scale, softcap;     /* of the result, see gemv_store_turn; 0: none */
    val factors;       /* of each vector's results, in shared memory; without a kind: none */
    val n;             /* rows, */
    unsigned multiple; /* of which it is one; 0: what n says, where that is a number */
    val before;    /* and how many of other matrices are ahead of them in Y; without a kind: none */
    val stride;    /* values from a row of Y to the next; without a kind: n */
    val blocks;    /* of the weights' format in a row */
    val row_bytes; /* of a row of W */
    int64_t x_bytes;         /* of a row of X, where its size is baked in */
    val m;                   /* rows of X and Y at run time; without a kind: those of the block */
    val first;               /* of them the block's first */
    val behind[MAX_VECTORS]; /* and how far behind x each of its rows is, in bytes */
} gemv_operands;

/* Rows of X and Y that a block takes: a size that a launch's formulas name. It is m, or of more
 * than MAX_VECTORS an equal share of them. */
int64_t gemv_vectors(const instance *in);
#define GEMV_VECTORS                                               \
    {                                                              \
        "vectors", gemv_vectors,                                   \
            "rows of X and Y that a block takes: m, or a share of" \
            " more than 8"                                         \
    }
/* Refuses more rows at once than MAX_VECTORS. */
const char *check_any_rows(const instance *in, arena *a, const char **blamed);
#define GEMV_GRID_Y "ceil_div(m, vectors)" /* one, where rows are fixed and at most MAX_VECTORS */
extern const derived_size gemv_sizes[];    /* that alone */

/* Loads the parameters y, w and x, bias and residual where there are some, and sizes the rows by
 * the weights' format. scale and softcap are the options'. */
gemv_operands gemv_parameters(ptx *p, const instance *in);

/* The same for kernels of several matrices or outputs, with the names of these parameters. */
gemv_operands gemv_of(ptx *p, const instance *in, const char *y, const char *w, const char *x);

/* Gate and up, the instance's matrices from one on: x and y of the first are those of both. */
enum { GEMV_PAIR = 2 };
typedef struct gemv_pair {
    instance of[GEMV_PAIR]; /* each alone */
    gemv_operands g[GEMV_PAIR];
    val before, bias; /* rows ahead of them in their tensors, and in bg and bu; without a kind: 0 */
} gemv_pair;
gemv_pair gemv_pair_of(ptx *p, const instance *in, unsigned first);

/* Return how many matrices Q, K and V are, two without a V; of one the operands, and its first row
 * of Y. */
unsigned gemv_matrices_of_qkv(const instance *in);
gemv_operands gemv_of_qkv(ptx *p, const instance *in, unsigned matrix);
int64_t gemv_first_of_qkv(const instance *in, unsigned matrix);

/* Neighbouring matrices of Q, K and V that have one format. Their rows come in groups of so many,
 * those of one matrix behind those of another. */
typedef struct gemv_run {
    unsigned from, count;
    int64_t before, groups;      /* of runs ahead, and of this one: */
    int64_t ahead[QKV_MATRICES]; /* of its matrices ahead of each */
} gemv_run;

/* Finds the runs, and returns how many; loads the operands of each matrix of one; and chooses those
 * of the matrix that has group number number of the run, which becomes the group's in that one. */
unsigned gemv_runs_of_qkv(const instance *in, int64_t rows, gemv_run runs[QKV_MATRICES]);
void gemv_operands_of_run(ptx *p, const instance *in, const gemv_run *run,
                          gemv_operands of[QKV_MATRICES]);
gemv_operands gemv_matrix_of_run(ptx *p, const gemv_run *run, const gemv_operands *of, val *number);

/* What a thread may have of registers when it multiplies m vectors: 64 for one, else all of its
 * family. */
unsigned gemv_registers(const instance *in);

/* &W[row]. */
val gemv_row(ptx *p, const gemv_operands *g, val row);

/* A pointer and an offset from it in bytes. */
typedef struct place {
    val base;
    int64_t offset;
} place;

/* Returns where vector number of X is: so many bytes behind the base; NULL, or without a kind:
 * count * bytes behind the one ahead of it, which is an offset alone where the sizes are baked in.
 */
place place_of_vector(ptx *p, val base, const val *behind, unsigned number, val count,
                      unsigned bytes);

/* The row of X that vector number number is, and where it is; and where Y has its results, and
 * whether they are stored. With rows = run_time the last block in y may have fewer vectors than the
 * others: for those that are missing the last vector is read again, and nothing is stored. */
val gemv_vector_read(ptx *p, const gemv_operands *g, val number);
val gemv_vector(ptx *p, const gemv_operands *g, val number);
val gemv_results(ptx *p, const gemv_operands *g, val number, val *stored);

/* A block may take a turn of several rows at once, from row on. The last turn may have fewer: for
 * what is missing the last row is read again, and nothing is stored. Return true if it is known
 * that no turn has fewer; and &W[row + number], number below rows. */
bool gemv_turns_are_whole(const gemv_operands *g, unsigned rows);
val gemv_row_of_turn(ptx *p, const gemv_operands *g, val row, unsigned number, unsigned rows);

/* cap(scale (factor sum + bias[row]) + residual), with what of these there is: an element of Y that
 * is `offset` bytes behind its start. An infinity that the cap would make a number becomes NaN. */
val gemv_finished(ptx *p, const gemv_operands *g, val sum, val row, val offset);

/* Y[vector][row + r] = cap(scale (factor sum number rows * vector + r + bias) + residual), with
 * what of these there is; cap(y) = softcap tanh(y / softcap): */
void gemv_store_turn(ptx *p, const gemv_operands *g, val row, unsigned rows, unsigned vectors,
                     spread_sums sums);

/* activation(gate) * up, by ACTIVATION_: silu(g) = g / (1 + exp(-g)); gelu, by its tanh form, which
 * is g / (1 + exp(-2 u)) with u = sqrt(2 / pi) (g + 0.044715 g^3); swiglu_oai, of gpt-oss, is
 * g / (1 + exp(-1.702 g)) (up + 1) with g at most 7 and up clamped to [-7, 7]. Far below 0 exp is
 * infinite and the result 0. */
val gated(ptx *p, int64_t activation, val gate, val up);

/* The factors and then the biases of a row's sums of gate and up: f32, or VAL_NONE. */
typedef struct gemv_biases {
    val gate_factor, up_factor;
    val gate, up;
} gemv_biases;
gemv_biases gemv_biases_of_row(ptx *p, const instance *in, val row);
void gemv_add_biases(ptx *p, const gemv_biases *biases, val *gate, val *up);

/* Y[vector][row] = activation(gate + its bias) * (up + its bias), by a row's warp: of vector v it
 * has the lanes' parts of gate as sums[2 v] and those of up behind it. */
void gemv_store_gated(ptx *p, const instance *in, const gemv_operands *g, val row, const val *sums,
                      const gemv_biases *biases);

/* Stores y[row] = sum, by thread 0 of the block alone. */
void gemv_store(ptx *p, const gemv_operands *g, val row, val sum);

/* exact.c: the lane's parts of the products of a row of one matrix, or of each of a pair, with all
 * vectors of the first one's x, results[rows * vector + matrix]; and stores activation(gate) * up
 * of a row of both, with biases number bias. */
void exact_multiply(ptx *p, const instance *of, const gemv_operands *g, unsigned rows, val row,
                    val *results);
void exact_gated_row(ptx *p, const gemv_pair *pair, val row, val bias);

#endif

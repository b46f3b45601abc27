/* Down-projections of experts, weighted and added up: row v of Y is
 *
 *   y[v] = residual[v] + scale (sum over its experts, ascending by id, of
 *          weights[v][slot] (W[id] f[v][slot] + bd[id]) + weights[v][experts_used] Ws f[v][shared])
 *
 * with what of these there are. f is [m, experts_used k + n_shared]: the values of each slot,
 * behind them those of the expert that all rows use. Which experts rows use stands in device
 * memory: see blocks/experts.h. An id that is no expert's reads no weights, and its rows are NaN.
 *
 * All additions to a row are in the order of the list, whichever rows there are beside it.
 */
#ifndef PTXGEN_GEN_BLOCKS_EXPERT_DOWN_H
#define PTXGEN_GEN_BLOCKS_EXPERT_DOWN_H

#include "gen/blocks/experts.h"
#include "gen/blocks/gemv.h"
#include "gen/blocks/stream.h"

enum { EXPERT_DOWN_SHARED = 0 /* of weights_of */ };

typedef struct expert_down {
    const instance *in;
    instance planes; /* of the experts' matrices, */
    instance shared; /* of that of the expert that all rows use */
    unsigned rows, vectors;
    gemv_operands g, of_shared;
    val weights, biases, list, in_use;
    var totals[STREAM_ROWS * MAX_VECTORS]; /* rows * vector + row: the lane's parts, */
    val totals_at;                         /* or in shared memory: its first; without a kind: no */
} expert_down;

/* A warp's, of so many rows of each matrix at a time. */
expert_down expert_down_new(ptx *p, const instance *in, unsigned rows);

bool expert_down_has_shared(const instance *in);

/* The instance of the shared expert's matrix alone. */
instance expert_down_shared(const instance *in);

/* Refuses more rows of experts than 32 bits count. */
const char *expert_down_check(const instance *in, arena *a, const char **blamed);

/* Where the values of a row's choice are: its word counts all rows' slots. And its weight. */
val expert_down_values(ptx *p, const expert_down *d, val word, val row);
val expert_down_weight(ptx *p, const expert_down *d, val word, val row);

/* How far into f those of a row's shared expert are, in bytes; and its weight. */
int64_t expert_down_shared_values_at(const instance *in, unsigned row);
val expert_down_weight_of_shared(ptx *p, const expert_down *d, unsigned row);

/* Totals of 0. */
void expert_down_begin(ptx *p, expert_down *d);

/* To the totals of a row of X, a number or one known at run time, the weighted product of each row
 * of weights. */
void expert_down_add(ptx *p, expert_down *d, val row_of_x, val weight, const val *products);

/* Adds up the lanes' totals and stores the results of the rows from one on. */
void expert_down_store(ptx *p, const expert_down *d, val row);

/* The biases of an expert's rows, which one lane adds. */
void expert_down_biases(ptx *p, const expert_down *d, val id, val row, val biases[STREAM_ROWS]);

/* What an expert that does not exist comes to. */
val expert_down_nan(ptx *p);

#endif

/* Down-projections of experts, weighted and added up: row v of Y is
 *
 *   y[v] = residual[v] + scale (sum over its experts, ascending by id, of
 *          weights[v][slot] (W[id] f[v][slot] + bd[id]) + weights[v][experts_used] Ws f[v][shared])
 *
 * with what of these there are. f is [m, experts_used k + n_shared]: the values of each slot,
 * behind them those of the expert that all rows use. Which experts rows use stands in device
 * memory: see products/experts.h. An id that is no expert's reads no weights, and its rows are NaN.
 *
 * All additions to a row are in the order of the list, whichever rows there are beside it.
 */
#ifndef PTXGEN_GEN_EXPERTS_EXPERT_DOWN_H
#define PTXGEN_GEN_EXPERTS_EXPERT_DOWN_H

#include "gen/products/experts.h"
#include "gen/products/stream_plan.h"

typedef struct expert_down {
    const instance *in;
    instance shared; /* of the matrix of the expert that all rows use */
    unsigned rows, vectors;
    unsigned lanes;        /* that share a row: groups of them have rows of their own */
    unsigned rows_of_warp; /* that it takes at a time */
    gemv_operands g, of_shared;
    val weights, biases, list, in_use;
    var totals[STREAM_ROWS * MAX_VECTORS]; /* rows * vector + row: the lane's parts, */
    val totals_at;                         /* or in shared memory: its first; without a kind: no */
} expert_down;

/* A warp's, of which groups of so many lanes take so many rows of each matrix at a time. */
expert_down expert_down_new(ptx *p, const instance *in, unsigned rows, unsigned lanes);

/* The first row of the lane's group, where its warp's first is this one: groups without rows take
 * the last ones again. */
val expert_down_row_to_read(ptx *p, const expert_down *d, val first);

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

/* Adds up the lanes' totals and stores the results of the warp's rows from one on. */
void expert_down_store(ptx *p, const expert_down *d, val first);

/* The biases of an expert's rows from one on, which one lane of the group adds. */
void expert_down_biases(ptx *p, const expert_down *d, val id, val row, val biases[STREAM_ROWS]);

/* The shared memory of a block of stream_expert_down beside its plan. The instance decides all
 * sizes:
 *
 *   tables         of the experts' format, and of the shared expert's
 *   tile           as many vectors as there is room for, in the list's order, those of an expert
 *                  side by side
 *   another tile   of the shared expert's vectors, m of them; the same one where that is too much
 *   totals         where m is more than 1: each lane's part of a warp's rows times all rows of X.
 *                  If X has one row, they are in registers
 */
enum { EXPERT_TILE_VARIANTS = 4 };

/* The numbers of vectors that there is code for: powers of two, and m. Returns how many. */
unsigned expert_tile_variants(unsigned vectors, unsigned variants[EXPERT_TILE_VARIANTS]);

typedef struct expert_tile {
    unsigned slots;     /* vectors that the tile has room for: as many as fit, and one expert's */
    bool passes;        /* an expert's columns come in several, */
    bool shared_passes; /* or the shared expert's */
    bool apart;         /* the tile of the shared expert is another one */
    bool all_fit;       /* the tile takes all vectors that there may be, once */
    int64_t tables, bytes; /* of the tables, of the tile, */
    int64_t both, staged;  /* of both tiles, and of all */
} expert_tile;
expert_tile expert_tile_of(const instance *in);

/* The plan of stream_expert_down's tile: which vectors of f it has, those of which experts of the
 * list. It is in shared memory, made anew for each group of experts, records of 4 words:
 *
 *   the first entry of the list that the tile has, how many, how many vectors, nothing;
 *   of each expert its id, its first vector, how many vectors, nothing;
 *   of each vector its word of the list, its row of X or none, its weight, and the row of X that it
 *   is of
 *
 * with as many records of experts as of vectors: slots. An expert has 1, 2, 4 or m vectors; those
 * behind its rows' are there for nothing, and have no row. Of one row of X experts have one vector
 * each, and of the records there is less: the first entry and how many; the id; the weight.
 */
enum { PLAN_RECORD = 4 }; /* words */
enum {
    PLAN_HEAD_FIRST,
    PLAN_HEAD_EXPERTS,
    PLAN_HEAD_VECTORS
}; /* entries of the list, and its first one */
enum { PLAN_EXPERT_ID, PLAN_FIRST_VECTOR, PLAN_VECTOR_COUNT };
enum { PLAN_WORD_OF_LIST, PLAN_ROW_OF_X, PLAN_WEIGHT, PLAN_ROW };
#define PLAN_NO_ROW    UINT32_MAX
#define PLAN_NO_EXPERT UINT32_MAX /* of one row of X: there are fewer */

typedef struct expert_plan {
    const expert_down *of;
    expert_tile tile;
    val words; /* of shared memory: PLAN_RECORD * (1 + 2 * slots) */
    val first; /* the list's entry that the tile starts with */
} expert_plan;

/* Makes the plan of the group that starts with plan->first, as many experts as fit, or with passes
 * one. By all threads; where there are several rows of X they meet behind it. Returns the vectors.
 */
val expert_plan_make(ptx *p, const expert_plan *plan);

/* The records of an expert and of a vector, by their numbers in the tile, and a word of one. */
val expert_plan_expert(ptx *p, const expert_plan *plan, val number);
val expert_plan_vector(ptx *p, const expert_plan *plan, val number);
val expert_plan_word(ptx *p, val at, unsigned word);

/* Returns where a vector of the tile, by its number, comes from. A stream_source.place; its context
 * is the plan. */
val expert_plan_source(ptx *p, const void *context, val vector);

/* What the families share; further keys come between the two groups. */
#define KEYS_OF_EXPERT_DOWN                                                                        \
    KEY_WEIGHTS,                                                                                   \
        KEY_WORD("weights_s", "format of Ws, of the expert that all rows use",                     \
                 weights_of[EXPERT_DOWN_SHARED], weights_choices, .like = KEY_FIELD(weights),      \
                 .only_with = KEY_FIELD(shape.n_shared), .tag = "s"),                              \
        KEY_NUMBER("k", "columns of an expert's W", shape.k, 1, 1 << 20, .of_weights = true,       \
                   .of_weights_in = KEY_FIELD(weights), .required = true, .tag = "k"),             \
        KEY_N, KEY_EXPERTS, KEY_EXPERTS_USED,                                                      \
        KEY_NUMBER("n_shared", "columns of Ws; 0: there is none", shape.n_shared, 0, 1 << 20,      \
                   .of_weights = true, .of_weights_in = KEY_FIELD(weights_of[EXPERT_DOWN_SHARED]), \
                   .zero_is_none = true, .tag = "shared"),                                         \
        KEY_NUMBER("m", "rows of X and Y", shape.m, 1, MAX_VECTORS, .def = 1, .tag = "m")
#define KEYS_AROUND_EXPERT_DOWN                           \
    KEY_OPTION(bias, "vectors [experts,n] added to W x"), \
        KEY_OPTION(residual, "values [m,n] added"), KEY_SCALE("of the sum")
#define PARAMS_OF_EXPERT_DOWN                                            \
    OUT(F32, y, "m*n", 4), EXPERTS_WEIGHTS(w, 0, "experts*n*k"),         \
        WEIGHTS(ws, "n*n_shared", .matrix = EXPERT_DOWN_SHARED + 1,      \
                .only_with = KEY_FIELD(shape.n_shared)),                 \
        IN(F32, x, "m*(experts_used*k+n_shared)", 16), EXPERTS_BIAS(bd), \
        IN_WHERE(residual, F32, residual, "m*n", 4),                     \
        IN(F32, weights, "m*(experts_used+min(1, n_shared))", 4), EXPERTS_LIST
#define EXPERT_DOWN                                                                             \
    .computes = "y[m,n] = residual + scale sum over experts e of row m, "                       \
                "weights[m,e] (x[m,e,k] W[e,n,k]^T + bd[e,n])",                                 \
    .op = OP_EXPERT_DOWN, .activations = FORMAT_F32, .same_bits = true, .check = check_experts, \
    .fit = ref_fit_experts, .reference = ref_expert_down

#endif

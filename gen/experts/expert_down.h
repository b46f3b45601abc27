/* Down-projections of experts, weighted and summed. Row v of Y is
 *
 *   y[v] = residual[v] + scale (sum over its experts, ascending by id, of
 *          weights[v][slot] (W[id] f[v][slot] + bd[id]) + weights[v][experts_used] Ws f[v][shared])
 *
 * without the terms that the keys leave out. With shared = add, the output of another launch takes
 * the place of Ws f[v][shared]. f is [m, experts_used k + n_shared]: the values of each slot, then
 * the values of the shared expert, which all rows use. The list of experts in use is in device
 * memory: see products/experts.h. For an id >= experts no weights are read, and its rows are NaN.
 *
 * The additions to a row are in the order of the list and do not depend on other rows. */
#pragma once

#include "gen/products/experts.h"
#include "gen/products/stream_plan.h"

typedef struct expert_down {
    const instance *in;
    instance shared; /* instance of the shared expert's matrix */
    unsigned rows, vectors;
    unsigned lanes;        /* lanes per row; a warp has WARP / lanes groups */
    unsigned rows_of_warp; /* rows per warp and iteration */
    gemv_operands g, of_shared;
    val weights, biases, list, in_use;
    var totals[STREAM_ROWS * MAX_VECTORS]; /* [rows * vector + row]: the lane's partial sums, */
    val totals_at;                         /* or their address in shared memory */
} expert_down;

/* Returns the state of a warp whose groups of `lanes` lanes process `rows` rows of each matrix at a
 * time. */
expert_down expert_down_new(ptx *p, const instance *in, unsigned rows, unsigned lanes);

/* Returns the first row that the lane's group reads; first is its warp's first row. Groups without
 * rows read the last rows again. */
val expert_down_row_to_read(ptx *p, const expert_down *d, val first);

/* Return the address of the values of a row's slot, and the slot's weight. word is the slot's index
 * over all rows. */
val expert_down_values(ptx *p, const expert_down *d, val word, val row);
val expert_down_weight(ptx *p, const expert_down *d, val word, val row);

/* Returns the byte offset of a row's shared-expert values in f. */
int64_t expert_down_shared_values_at(const instance *in, unsigned row);
val expert_down_weight_of_shared(ptx *p, const expert_down *d, unsigned row);

void expert_down_begin(ptx *p, expert_down *d);

/* Adds weight * products[r] to the totals of a row of X. row_of_x: an immediate or a register. */
void expert_down_add(ptx *p, expert_down *d, val row_of_x, val weight, const val *products);

/* Adds the shared expert's output, reduces the totals over the lanes, and stores the results of the
 * warp's rows from first on. */
void expert_down_store(ptx *p, expert_down *d, val first);

/* Loads the biases of an expert's rows from row on. One lane of the group gets them, others 0. */
void expert_down_biases(ptx *p, const expert_down *d, val id, val row, val biases[STREAM_ROWS]);

/* Shared memory of a block of stream_expert_down, without its plan. The instance determines all
 * sizes:
 *
 *   tables         of the experts' format, and of the shared expert's
 *   tile           as many vectors as fit, in the list's order, the vectors of an expert together
 *   second tile    the m vectors of the shared expert; it reuses the first tile if both do not fit
 *   totals         if m > 1: each lane's partial sums, rows of the warp times rows of X.
 *                  If m = 1 they are in registers */
enum { EXPERT_TILE_VARIANTS = 4 };

/* Fills variants with the vector counts that code is generated for: powers of two, and m. Returns
 * the number of variants. */
unsigned expert_tile_variants(unsigned vectors, unsigned variants[EXPERT_TILE_VARIANTS]);

typedef struct expert_tile {
    unsigned slots;        /* vectors that the tile can hold; at least those of one expert */
    bool passes;           /* an expert's columns are staged in several passes */
    bool shared_passes;    /* the shared expert's columns are staged in several passes */
    bool apart;            /* the shared expert has a tile of its own */
    bool all_fit;          /* the tile can hold all vectors, so it is staged once */
    int64_t tables, bytes; /* bytes of the tables, and of the tile */
    int64_t both, staged;  /* bytes of both tiles, and of everything staged */
} expert_tile;
expert_tile expert_tile_of(const instance *in);

/* The plan of stream_expert_down's tile: the vectors of f in it, and the experts of the list that
 * they belong to. It is in shared memory and rewritten for each group of experts. Records have 4
 * words:
 *
 *   head       first entry of the list in the tile, number of experts, number of vectors, unused
 *   expert     id, its first vector, number of vectors, unused
 *   vector     word of the list, row of X or PLAN_NO_ROW, weight, row of X to read
 *
 * There are `slots` expert records and as many vector records. An expert has 1, 2, 4 or m vectors;
 * the padding vectors after its rows have PLAN_NO_ROW. If m = 1, each expert has one vector, and
 * only these words are used: first entry and number of experts; id; weight. */
enum { PLAN_RECORD = 4 }; /* words per record */
enum { PLAN_HEAD_FIRST, PLAN_HEAD_EXPERTS, PLAN_HEAD_VECTORS };
enum { PLAN_EXPERT_ID, PLAN_FIRST_VECTOR, PLAN_VECTOR_COUNT };
enum { PLAN_WORD_OF_LIST, PLAN_ROW_OF_X, PLAN_WEIGHT, PLAN_ROW };
#define PLAN_NO_ROW    UINT32_MAX
#define PLAN_NO_EXPERT UINT32_MAX /* an unused record, if m = 1 */

typedef struct expert_plan {
    const expert_down *of;
    expert_tile tile;
    val words; /* address in shared memory; PLAN_RECORD * (1 + 2 * slots) words */
    val first; /* the tile's first entry of the list */
} expert_plan;

/* Makes the plan of the group that starts at plan->first: as many experts as fit, or one expert
 * with passes. All threads must call it. If m > 1 it ends with a barrier. Returns the number of
 * vectors. */
val expert_plan_make(ptx *p, const expert_plan *plan);

/* Return the address of an expert's or a vector's record in the tile, and a word of a record. */
val expert_plan_expert(ptx *p, const expert_plan *plan, val number);
val expert_plan_vector(ptx *p, const expert_plan *plan, val number);
val expert_plan_word(ptx *p, val at, unsigned word);

/* Returns the address in f of a vector of the tile. A stream_source.place; context is the plan. */
val expert_plan_source(ptx *p, const void *context, val vector);

/* Rows that the families share. Each family's own keys come between the two groups of keys. */
#define KEYS_OF_EXPERT_DOWN                                                                        \
    KEY_WEIGHTS,                                                                                   \
        KEY_WORD("weights_s", "format of Ws, the shared expert's matrix",                          \
                 weights_of[EXPERT_DOWN_SHARED], weights_choices, .like = KEY_FIELD(weights),      \
                 .only_with = KEY_FIELD(shape.n_shared), .tag = "s"),                              \
        KEY_NUMBER("k", "columns of an expert's W, e.g. 768", shape.k, 1, 1 << 20,                 \
                   .of_weights = true, .of_weights_in = KEY_FIELD(weights), .required = true,      \
                   .tag = "k"),                                                                    \
        KEY_N, KEY_EXPERTS, KEY_EXPERTS_USED,                                                      \
        KEY_NUMBER("n_shared", "columns of Ws; 0 = no shared expert", shape.n_shared, 0, 1 << 20,  \
                   .of_weights = true, .of_weights_in = KEY_FIELD(weights_of[EXPERT_DOWN_SHARED]), \
                   .zero_is_none = true, .tag = "shared"),                                         \
        KEY_NUMBER("m", "rows of X and Y", shape.m, 1, MAX_VECTORS, .def = 1, .tag = "m")
#define KEYS_AROUND_EXPERT_DOWN                                                 \
    KEY_OPTION(bias, "add: bd[experts,n] is added to W x"),                     \
        KEY_OPTION(residual, "add: residual[m,n] is added"), KEY_SHARED_OUTPUT, \
        KEY_SCALE("factor of the sum")
#define PARAMS_OF_EXPERT_DOWN                                            \
    OUT(F32, y, "m*n", 4), EXPERTS_WEIGHTS(w, 0, "experts*n*k"),         \
        WEIGHTS(ws, "n*n_shared", .matrix = EXPERT_DOWN_SHARED + 1,      \
                .only_with = KEY_FIELD(shape.n_shared)),                 \
        IN(F32, x, "m*(experts_used*k+n_shared)", 16), EXPERTS_BIAS(bd), \
        IN_WHERE(residual, F32, residual, "m*n", 4),                     \
        IN_WHERE(route.shared, F32, shared, "m*n", 4),                   \
        IN(F32, weights, "m*(experts_used+min(1, n_shared+shared))", 4), EXPERTS_LIST
#define EXPERT_DOWN                                                                             \
    .computes = "y[m,n] = residual + scale sum over experts e of row m, "                       \
                "weights[m,e] (x[m,e,k] W[e,n,k]^T + bd[e,n])",                                 \
    .op = OP_EXPERT_DOWN, .activations = FORMAT_F32, .same_bits = true, .check = check_experts, \
    .fit = ref_fit_experts, .reference = ref_expert_down

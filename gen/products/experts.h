/* Experts: matrices of one size, consecutive in a tensor. Each row of X uses some of them.
 * moe_route writes a list of them to device memory, in words of 32 bits:
 *
 *   experts in use, 0, 0, 0
 *   for each of these, ascending by id, an entry of 2 + m words:
 *     its id, the number of rows that use it, and for each row, ascending,
 *     row * experts_used + slot
 *
 * The expert is the row's choice number `slot`. An id out of range reads no weights. */
#pragma once

#include "gen/products/gemv.h"

#define KEY_EXPERTS                                                                 \
    KEY_NUMBER("experts", "number of experts, e.g. 128", shape.experts, 1, 1 << 16, \
               .required = true, .tag = "e")
#define KEY_EXPERTS_USED                                                              \
    KEY_NUMBER("experts_used", "experts per row of X, e.g. 8", shape.experts_used, 1, \
               EXPERTS_USED_AT_MOST, .required = true, .tag = "of")
/* Larger than n if two matrices of each expert share one tensor. */
#define KEY_PLANE_ROWS                                                                        \
    KEY_NUMBER("plane_rows", "rows from an expert's matrix to the next", shape.plane_rows, 1, \
               INT32_MAX, .def = 1, .like = KEY_FIELD(shape.n), .tag = "plane")

/* Output of a shared expert from another launch, summed with its weight. */
#define KEY_SHARED_OUTPUT                                                           \
    KEY_WORD("shared", "add: a shared expert's output [m,n]", options.route.shared, \
             shared_output_choices)
extern const choice shared_output_choices[];

/* Gate and up, or up alone. */
#define KEY_UNGATED \
    KEY_WORD("ungated", "1: without Wg, activation(Wu x)", options.ungated, ungated_choices)
#define WHERE_GATED .unless = KEY_FIELD(options.ungated)
extern const choice ungated_choices[];

/* Values of a tensor of experts with `row` values per row. */
#define EXPERTS_VALUES(row) "((experts-1)*plane_rows+n)*" row
/* Matrix number (0: key weights) and vector per expert; only those of experts in use are read. */
#define EXPERTS_WEIGHTS(id, number, ...) \
    WEIGHTS(id, __VA_ARGS__, .matrix = (number), .touched = "n*k", .by_expert = true)
#define EXPERTS_BIAS(id) EXPERTS_BIAS_WHERE(id, .touched = "n")
#define EXPERTS_BIAS_WHERE(id, ...) \
    IN_WHERE(bias, F32, id, "experts*n", 4, .by_expert = true, __VA_ARGS__)
#define EXPERTS_BIASES EXPERTS_BIAS_WHERE(bg, .touched = "n", WHERE_GATED), EXPERTS_BIAS(bu)
#define EXPERTS_LIST   IN_FITTED(U32, list, EXPERT_LIST_VALUES, 16)

/* Keys and parameters of tensor-core products; the last arguments are keys of the family, and the
 * parameters of X. */
#define KEYS_OF_EXPERTS(formats, usual_rows, most_at_once, ...)                                    \
    KEYS_OF_PRODUCT(formats), KEY_EXPERTS, KEY_EXPERTS_USED,                                       \
        KEY_NUMBER("m", "rows of X, each with experts_used choices", shape.m, 1, EXPERT_MOST_ROWS, \
                   .def = usual_rows, .tag = "m"),                                                 \
        KEY_NUMBER("tile", "rows of an expert per block at a time; 0 = from m", tile_rows, 0,      \
                   most_at_once, .zero_is_none = true, .tag = "t"),                                \
        __VA_ARGS__, KEY_OPTION(bias, "add: biases [experts,n] are added"), KEY_PLANE_ROWS
#define PARAMS_OF_EXPERT_PAIRS(...)                                                               \
    OUT(F32, y, "m*experts_used*n", 4), EXPERTS_WEIGHTS(wg, 0, EXPERTS_VALUES("k"), WHERE_GATED), \
        EXPERTS_WEIGHTS(wu, 0, EXPERTS_VALUES("k")), __VA_ARGS__, EXPERTS_BIASES, EXPERTS_LIST
#define PARAMS_OF_EXPERT_PRODUCTS(...)                                                           \
    OUT(F32, y, "m*experts_used*n", 4), EXPERTS_WEIGHTS(w, 0, EXPERTS_VALUES("k")), __VA_ARGS__, \
        EXPERTS_BIAS(bias), EXPERTS_LIST

/* Returns the most entries that the list can have. */
int64_t experts_listed(const instance *in);

/* Returns the number of shared experts whose weights follow those of a row's experts: 0 or 1. */
int64_t experts_shared_weights(const instance *in);

/* Refuses experts_used > experts, planes shorter than their matrix, more than 2^32 rows, and an
 * activation that needs a gate without one. */
const char *check_experts(const instance *in, arena *a, const char **blamed);

/* An entry of the list. */
typedef struct expert_entry {
    val id, count;
    val choices; /* address of the words row * experts_used + slot */
} expert_entry;

val experts_in_use(ptx *p, val list);
/* Returns the rows of X and Y that an entry chooses. A down-projection has a row of X per choice. */
gemv_chosen experts_rows(const instance *in, const expert_entry *e);
expert_entry expert_entry_at(ptx *p, const instance *in, val list, val number);

/* Loads word `number` of an entry, which must be below its count. */
val expert_choice(ptx *p, const expert_entry *e, val number);
/* Returns the row in a list's word. */
val expert_row(ptx *p, const instance *in, val word);

/* Returns the NaN that is the result of an expert id out of range. */
val expert_nan(ptx *p);

/* Returns a predicate: the id is that of an expert. */
val expert_exists(ptx *p, const instance *in, val id);
/* Returns the first row of an expert's matrix in its tensor. */
val expert_first_row(ptx *p, const instance *in, val id);
/* Returns the address of an expert's matrix. */
val expert_plane(ptx *p, const instance *in, val tensor, val id, val row_bytes);

enum { EXPERT_DOWN_SHARED = 0 /* index in weights_of */ };

/* Returns the instance of the shared expert's down-projection, which all rows use, for n_shared >
 * 0. The routed experts' instance is its neighbour. */
instance expert_down_shared(const instance *in);

/* Experts: matrices of one size, one behind the other in a tensor, of which each row of X uses
 * some. Which ones stands in device memory, as moe_route leaves it, in words of 32 bits:
 *
 *   experts in use, 0, 0, 0
 *   for each of these, ascending by id, an entry of 2 + m words:
 *     its id, how many rows use it, and for each of those, ascending, row * experts_used + slot
 *
 * where the expert is the row's choice number slot. An id that is no expert's reads no weights.
 */
#ifndef PTXGEN_GEN_PRODUCTS_EXPERTS_H
#define PTXGEN_GEN_PRODUCTS_EXPERTS_H

#include "kernel/family.h"
#include "ptx/ptx.h"

#define KEY_EXPERTS \
    KEY_NUMBER("experts", "that there are", shape.experts, 1, 1 << 16, .required = true, .tag = "e")
#define KEY_EXPERTS_USED                                                                     \
    KEY_NUMBER("experts_used", "by a row of X", shape.experts_used, 1, EXPERTS_USED_AT_MOST, \
               .required = true, .tag = "of")
/* Where two matrices of each expert are one tensor's, it is more than the rows of one. */
#define KEY_PLANE_ROWS                                                                        \
    KEY_NUMBER("plane_rows", "rows from an expert's matrix to the next", shape.plane_rows, 1, \
               INT32_MAX, .def = 1, .like = KEY_FIELD(shape.n), .tag = "plane")

/* Values of a tensor of experts, of which a row has these. */
#define EXPERTS_VALUES(row) "((experts-1)*plane_rows+n)*" row
/* What each expert has of its own, matrix number (0: of the weights' format) and vector: a launch
 * takes that of the experts in use. */
#define EXPERTS_WEIGHTS(id, number, count) \
    WEIGHTS(id, count, .matrix = (number), .touched = "n*k", .by_expert = true)
#define EXPERTS_BIAS(id) IN_WHERE(bias, F32, id, "experts*n", 4, .touched = "n", .by_expert = true)
#define EXPERTS_LIST     IN_FITTED(U32, list, EXPERT_LIST_VALUES, 16)

/* Entries of the list, at most. */
int64_t experts_listed(const instance *in);

/* Refuses more experts a row than there are, planes that are shorter than their matrix, and more
 * rows in all than 32 bits count. */
const char *check_experts(const instance *in, arena *a, const char **blamed);

/* An entry of the list, below the number of experts in use. */
typedef struct expert_entry {
    val id, count;
    val choices; /* address of the words row * experts_used + slot */
} expert_entry;

val experts_in_use(ptx *p, val list);
expert_entry expert_entry_at(ptx *p, const instance *in, val list, val number);

/* Word number number of an entry, below its count, and the row that it says. */
val expert_choice(ptx *p, const expert_entry *e, val number);
val expert_row(ptx *p, const instance *in, val word);

/* What an expert that does not exist comes to. */
val expert_nan(ptx *p);

/* Whether there is an expert of that id, and where its matrix starts in a tensor, whose rows have
 * so many bytes: by rows, and as an address. */
val expert_exists(ptx *p, const instance *in, val id);
val expert_first_row(ptx *p, const instance *in, val id);
val expert_plane(ptx *p, const instance *in, val tensor, val id, val row_bytes);

/* Of down-projections the matrix alone of an expert that all rows use, where there is n_shared; the
 * experts' is the one beside it. */
enum { EXPERT_DOWN_SHARED = 0 /* of weights_of */ };
instance expert_down_shared(const instance *in);

#endif

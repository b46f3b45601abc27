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
#ifndef PTXGEN_GEN_EXPERTS_EXPERT_PLAN_H
#define PTXGEN_GEN_EXPERTS_EXPERT_PLAN_H

#include "gen/experts/expert_down.h"

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
    unsigned slots; /* vectors of f that the tile has room for */
    val words;      /* of shared memory: PLAN_RECORD * (1 + 2 * slots) */
    val first;      /* the list's entry that the tile starts with */
} expert_plan;

/* Of one row of X, by all threads of a block: so many experts from first on, and their vectors. */
void expert_plan_of_one_row(ptx *p, const expert_plan *plan, val experts);

/* Of several rows, by one warp: an expert a lane, as many as fit; with passes one. */
void expert_plan_of_rows(ptx *p, const expert_plan *plan);

/* The records of an expert and of a vector, by their numbers in the tile, and a word of one. */
val expert_plan_expert(ptx *p, const expert_plan *plan, val number);
val expert_plan_vector(ptx *p, const expert_plan *plan, val number);
val expert_plan_word(ptx *p, val at, unsigned word);

/* Where vector number vector of the tile comes from: for stream.source, whose context is the plan.
 */
val expert_plan_source(ptx *p, const void *context, val vector);

#endif

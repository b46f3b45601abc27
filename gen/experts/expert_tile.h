/* What a block of stream_expert_down has in shared memory beside its plan, as far as it follows
 * from the instance:
 *
 *   tables         of the experts' format, and of the shared expert's
 *   tile           as many vectors as there is room for, in the list's order, those of an expert
 *                  side by side
 *   another tile   of the shared expert's vectors, m of them; the same one where that is too much
 *   totals         where m is more than 1: the lanes' parts of a warp's rows times all rows of X.
 *                  Of one row of X they are in registers
 */
#ifndef PTXGEN_GEN_EXPERTS_EXPERT_TILE_H
#define PTXGEN_GEN_EXPERTS_EXPERT_TILE_H

#include "gen/experts/expert_down.h"

enum { EXPERT_TILE_VARIANTS = 4 };

/* The numbers of vectors that there is code for: powers of two, and m. Returns how many. */
unsigned expert_tile_variants(unsigned vectors, unsigned variants[EXPERT_TILE_VARIANTS]);

typedef struct expert_tile {
    int64_t slots; /* vectors that the tile has room for: as many as fit, and one expert's */
    bool apart;    /* the tile of the shared expert is another one */
    bool all_fit;  /* the tile takes all vectors that there may be, once */
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
    unsigned slots; /* vectors of f that the tile has room for */
    val words;      /* of shared memory: PLAN_RECORD * (1 + 2 * slots) */
    val first;      /* the list's entry that the tile starts with */
} expert_plan;

/* Makes the plan of the group that starts with plan->first, as many experts as fit, or with passes
 * one. By all threads; where there are several rows of X they meet behind it. Returns the vectors.
 */
val expert_plan_make(ptx *p, const expert_plan *plan);

/* The records of an expert and of a vector, by their numbers in the tile, and a word of one. */
val expert_plan_expert(ptx *p, const expert_plan *plan, val number);
val expert_plan_vector(ptx *p, const expert_plan *plan, val number);
val expert_plan_word(ptx *p, val at, unsigned word);

/* Where vector number vector of the tile comes from: for stream.source, whose context is the plan.
 */
val expert_plan_source(ptx *p, const void *context, val vector);

#endif

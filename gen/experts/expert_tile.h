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

/* Vectors that the tile has room for: as many as fit, and one expert's. */
int64_t expert_tile_slots(const instance *in);

/* Whether the tile of the shared expert is another one. */
bool expert_tile_is_apart(const instance *in);

/* Whether the tile takes all vectors that there may be, once. */
bool expert_tile_all_fit(const instance *in);

/* Bytes of the tables, of the tile, of both tiles, and of all. */
int64_t expert_tile_tables_bytes(const instance *in);
int64_t expert_tile_bytes(const instance *in);
int64_t expert_tiles_bytes(const instance *in);
int64_t expert_tile_staged_bytes(const instance *in);

#endif

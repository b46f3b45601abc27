/* variant = auto: which family serves a plain one best, by target and shape.
 *
 * What is chosen takes the plain family's parameters, is launched like it with a grid of its own
 * metadata, and is as exact: a caller that can launch the one can launch the other.
 */
#ifndef PTXGEN_GEN_TUNING_H
#define PTXGEN_GEN_TUNING_H

#include "gen/family.h"

/* Sizes, both ends included. A size that is left to the run is 0. */
typedef struct size_range {
    int64_t least, most;
} size_range;

typedef struct tuning_row {
    const family *plain; /* whose variant = auto it answers */
    unsigned least_sm, most_sm;
    size_range k, n;
    const family *chosen;
    int64_t num_warps; /* of families with that key */
} tuning_row;

/* The first row that fits is taken; every plain family's last row fits all. */
extern const tuning_row tuning_rows[];
extern const size_t tuning_row_count;

/* The row for an instance of a plain family on a target. */
const tuning_row *tuning_find(const instance *asked, const target *t);

/* The instance that the row makes of it, chosen for this target and excluding all others; its name
 * is not made yet. */
instance tuning_choose(const instance *asked, const target *t);

#endif

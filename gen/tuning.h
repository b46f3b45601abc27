/* variant = auto: which family serves a plain one best, by target, shape and precision.
 *
 * What is chosen takes the plain family's parameters, aligned as GGUF tensors are, and grid and
 * shared memory by its own metadata: a caller that launches by ptxgen_grid and ptxgen_shared can
 * launch the one as well as the other. With precision = f32 it is as exact; with q8 it may round x
 * to 8 bits, 32 values by one f32 scale, as llama.cpp does (q8_1) ahead of each such product.
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
    int64_t num_warps, rows_per_warp; /* of families with these keys */
} tuning_row;

/* The first row that fits is taken, but none whose family rounds x where precision = f32, and none
 * whose family has no dynamic dims where sizes are left to the run. Every plain family's last row
 * fits all. */
extern const tuning_row tuning_rows[];
extern const size_t tuning_row_count;

/* The row for an instance of a plain family on a target. */
const tuning_row *tuning_find(const instance *asked, const target *t);

/* The instance that the row makes of it, keys that only the chosen family has at their defaults;
 * chosen for this target and excluding all others. Its name is not made yet. */
instance tuning_choose(const instance *asked, const target *t);

#endif

/* What decides is paper arithmetic; no row rests on a measured time. By the table of costs the
 * kernels of several warps have 53 registers a thread (Q4_K) and 64 (Q6_K), so that registers allow
 * 36 and 32 warps an SM. Memory is kept busy where
 *
 *   - an SM is full: its limit of blocks times num_warps reaches these 36 and 32;
 *   - all SMs are: n * num_warps, the warps of a launch, reaches SMs * 36, which is some 2300 for
 *     the largest GPU of sm_75 (72 SMs of 32 warps) and 4000 to 5300 for the large ones from sm_80
 *     on (108 to 148 SMs);
 *   - a warp has work: its turn of the loop takes two super-blocks of 256 weights or more.
 *
 * Among numbers of warps that do that the least is best, since each warp has 80 instructions beside
 * its loop, a turn of which has 113; but a long row gets two, so that the last rows, when SMs fall
 * idle, take half the time.
 *
 * No row names a family with dp4a, though every target has the instruction: those with f32
 * activations round x to 8 bits, and the plain families promise f32 throughout. Nor one that takes
 * several vectors, since its grid asks the host for the number of SMs.
 */
#include "gen/tuning.h"

#include <stdio.h>
#include <stdlib.h>

extern const family q4k_gemv, vectorized_q4k_gemv, mwv_q4k_gemv;
extern const family q6k_gemv, mwv_q6k_gemv;

#define ANY_SM    0, UINT32_MAX
#define SINCE(sm) sm, UINT32_MAX
#define FROM(least)      \
    {                    \
        least, INT64_MAX \
    }
#define UP_TO(most) \
    {               \
        1, most     \
    }
#define KNOWN        FROM(1)
#define KNOWN_OR_NOT FROM(0)

const tuning_row tuning_rows[] = {
    /* Two warps take four super-blocks in a turn; of fewer one warp does all. */
    { &q4k_gemv, ANY_SM, UP_TO(768), KNOWN_OR_NOT, &vectorized_q4k_gemv, 1 },

    /* Few rows leave SMs idle, so a row gets more warps, as many as it has two super-blocks for:
     * 1024 * 4 and 1024 * 8 warps fill all SMs, and so do 2048 * 4. */
    { &q4k_gemv, 75, 79, FROM(2048), UP_TO(1024), &mwv_q4k_gemv, 4 },
    { &q4k_gemv, SINCE(80), FROM(4096), UP_TO(1024), &mwv_q4k_gemv, 8 },
    { &q4k_gemv, SINCE(80), FROM(2048), UP_TO(2048), &mwv_q4k_gemv, 4 },

    /* These SMs take 16 blocks: 32 of 36 warps with two a block. */
    { &q4k_gemv, 86, 87, FROM(2048), KNOWN, &mwv_q4k_gemv, 4 },

    /* Many rows: the fewest warps that fill an SM of 16 blocks and 32 warps, or of 24 and more. */
    { &q4k_gemv, ANY_SM, KNOWN, KNOWN, &mwv_q4k_gemv, 2 },

    /* Sizes left to the run: full SMs for 1024 rows and more, idle warps only below 1024 columns.
     */
    { &q4k_gemv, ANY_SM, KNOWN_OR_NOT, KNOWN_OR_NOT, &mwv_q4k_gemv, 4 },

    /* One super-block: a whole warp shares it in the plain kernel, half a warp in the other. */
    { &q6k_gemv, ANY_SM, UP_TO(256), KNOWN_OR_NOT, &q6k_gemv, 1 },

    /* Two or three: one warp takes two at a time, 6.7 instructions a weight against 8.3. */
    { &q6k_gemv, ANY_SM, UP_TO(768), KNOWN_OR_NOT, &mwv_q6k_gemv, 1 },

    /* As for Q4_K. With 64 registers two warps a block fill the SMs of 16 blocks as well. */
    { &q6k_gemv, 75, 79, FROM(2048), UP_TO(1024), &mwv_q6k_gemv, 4 },
    { &q6k_gemv, SINCE(80), FROM(4096), UP_TO(1024), &mwv_q6k_gemv, 8 },
    { &q6k_gemv, SINCE(80), FROM(2048), UP_TO(2048), &mwv_q6k_gemv, 4 },
    { &q6k_gemv, ANY_SM, KNOWN, KNOWN, &mwv_q6k_gemv, 2 },
    { &q6k_gemv, ANY_SM, KNOWN_OR_NOT, KNOWN_OR_NOT, &mwv_q6k_gemv, 4 },
};

const size_t tuning_row_count = sizeof tuning_rows / sizeof *tuning_rows;

static bool holds(size_range range, int64_t size)
{
    return size >= range.least && size <= range.most;
}

const tuning_row *tuning_find(const instance *asked, const target *t)
{
    for (const tuning_row *row = tuning_rows; row < tuning_rows + tuning_row_count; row++)
        if (row->plain == asked->family && t->sm >= row->least_sm && t->sm <= row->most_sm &&
            holds(row->k, asked->shape.k) && holds(row->n, asked->shape.n))
            return row;
    fprintf(stderr, "ptxgen: no row of gen/tuning.c fits %s\n", asked->family->name);
    abort();
}

instance tuning_choose(const instance *asked, const target *t)
{
    const tuning_row *row = tuning_find(asked, t);
    instance chosen = *asked;
    chosen.family = row->chosen;
    chosen.variant = VARIANT_PLAIN;
    chosen.num_warps = family_key(row->chosen, "num_warps") ? row->num_warps : 0;
    chosen.chosen_by = asked->family;
    chosen.chosen_for = target_bit(t);
    chosen.excluded = ~chosen.chosen_for;
    return chosen;
}

/* What decides is paper arithmetic; no row rests on a measured time. A unit test holds the table
 * against the cost model (src/cost.h): for the matrices of real models nothing is more than a tenth
 * faster than what is chosen (with blocks of 32 weights three tenths, for fewer rows), and what
 * rounds x saves a twentieth at least.
 *
 * Rounding pays where memory is fast for its SMs. The kernels of several warps have 7.1
 * instructions a weight (Q4_K) and 6.3 (Q6_K), so that an SM, at 128 in a clock, takes 10 and 17
 * bytes a clock at most. A copy moves 3 to 6 bytes a clock and SM on the parts of sm_75, 86, 89 and
 * 120: there they are as fast as memory, and rounding would buy nothing. It moves 12 on an A100
 * (sm_80), 17 on an H200 (90) and 25 on a B200 (100), and from sm_90 on needs more bytes in flight
 * than those kernels have. The streaming ones take 1.4 to 2.5 instructions a weight, with 40 KB and
 * more in flight, but first need some 0.8 us for each 6144 values of x to have it in shared memory.
 * That pays where n is large and rows have a step of 1024 weights or more. They have 12 warps, two
 * blocks of which fill an SM, and a row a warp: 24 rows a block would leave SMs idle, or the last
 * turn half empty, up to n = 8192, and the instructions that two rows save, 15 %, are nowhere the
 * bound.
 *
 * By the table of costs the kernels of several warps have 53 registers a thread (Q4_K) and 64
 * (Q6_K), so that registers allow 36 and 32 warps an SM. They keep memory busy where
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
 * The kernels of Q8_0, Q5_0 and Q4_0 that round nothing have one warp a row and two or four bytes a
 * load. Where rows are fewer than a GPU takes warps, that leaves SMs idle while a streaming block
 * has a dozen long rows in flight, on every GPU; where they are many, an SM waits for 11 (Q5_0) to
 * 18 KB at a time, too little for the memory of sm_90 and newer, and for Q5_0 of sm_80 and 86.
 *
 * No row names a family that takes several vectors and rounds nothing: its grid asks the host for
 * the number of SMs and it is no faster.
 */
#include "gen/tuning.h"

#include <stdio.h>
#include <stdlib.h>

extern const family q4k_gemv, vectorized_q4k_gemv, mwv_q4k_gemv, stream_q4k_gemv;
extern const family q6k_gemv, mwv_q6k_gemv, stream_q6k_gemv;
extern const family q8_0_gemv, q5_0_gemv, q4_0_gemv;
extern const family stream_q8_0_gemv, stream_q5_0_gemv, stream_q4_0_gemv;

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
/* Rows whose x leaves room for two blocks on an SM that has 164 KiB of shared memory, as with
 * sm_80, or more: 81 for each, and 1 for the system. */
#define STREAM(least)    \
    {                    \
        least, 54 * 1024 \
    }
/* The same where it has 100 KiB (sm_86, 89 and 120), or 64 (sm_75). */
#define STREAM_100(least) \
    {                     \
        least, 32 * 1024  \
    }
#define STREAM_64(least) \
    {                    \
        least, 20 * 1024 \
    }
#define KNOWN        FROM(1)
#define KNOWN_OR_NOT FROM(0)

const tuning_row tuning_rows[] = {
    /* Memory that is fast for its SMs: x may be rounded. The fewer rows, the longer they must be.
     */
    { &q4k_gemv, 80, 80, STREAM(2048), FROM(3584), &stream_q4k_gemv, 12, 1 },
    { &q4k_gemv, 80, 80, STREAM(1024), FROM(8192), &stream_q4k_gemv, 12, 1 },
    { &q4k_gemv, 90, 119, STREAM(2048), FROM(2048), &stream_q4k_gemv, 12, 1 },
    { &q4k_gemv, 90, 119, STREAM(8192), FROM(1536), &stream_q4k_gemv, 12, 1 },
    { &q4k_gemv, 90, 119, STREAM(1024), FROM(4096), &stream_q4k_gemv, 12, 1 },

    /* Two warps take four super-blocks in a turn; of fewer one warp does all. */
    { &q4k_gemv, ANY_SM, UP_TO(768), KNOWN_OR_NOT, &vectorized_q4k_gemv, 1, 1 },

    /* Few rows leave SMs idle, so a row gets more warps, as many as it has two super-blocks for:
     * 1024 * 4 and 1024 * 8 warps fill all SMs, and so do 1536 * 4 and 2048 * 4. Of some hundred
     * rows, as a GPU has that shares a matrix with others, more would. */
    { &q4k_gemv, ANY_SM, FROM(6144), UP_TO(256), &mwv_q4k_gemv, 12, 1 },
    { &q4k_gemv, ANY_SM, FROM(4096), UP_TO(512), &mwv_q4k_gemv, 8, 1 },
    { &q4k_gemv, 75, 89, FROM(2048), UP_TO(1536), &mwv_q4k_gemv, 4, 1 },
    { &q4k_gemv, SINCE(90), FROM(4096), UP_TO(1024), &mwv_q4k_gemv, 8, 1 },
    { &q4k_gemv, SINCE(90), FROM(2048), UP_TO(2048), &mwv_q4k_gemv, 4, 1 },

    /* These SMs take 16 blocks: 32 of 36 warps with two a block. */
    { &q4k_gemv, 86, 87, FROM(2048), KNOWN, &mwv_q4k_gemv, 4, 1 },

    /* Short rows where instructions are the bound: the fewest warps. */
    { &q4k_gemv, 80, 80, UP_TO(1792), FROM(3072), &vectorized_q4k_gemv, 1, 1 },

    /* Many rows: the fewest warps that fill an SM of 16 blocks and 32 warps, or of 24 and more. */
    { &q4k_gemv, ANY_SM, KNOWN, KNOWN, &mwv_q4k_gemv, 2, 1 },

    /* Sizes left to the run: full SMs for 1024 rows and more, idle warps only below 1024 columns.
     */
    { &q4k_gemv, ANY_SM, KNOWN_OR_NOT, KNOWN_OR_NOT, &mwv_q4k_gemv, 4, 1 },

    { &q6k_gemv, 90, 119, STREAM(2560), FROM(2560), &stream_q6k_gemv, 12, 1 },
    { &q6k_gemv, 90, 119, STREAM(8192), FROM(2048), &stream_q6k_gemv, 12, 1 },
    { &q6k_gemv, 90, 119, STREAM(1024), FROM(5120), &stream_q6k_gemv, 12, 1 },

    /* One super-block: a whole warp shares it in the plain kernel, half a warp in the other. */
    { &q6k_gemv, ANY_SM, UP_TO(256), KNOWN_OR_NOT, &q6k_gemv, 1, 1 },

    /* Two or three: one warp takes two at a time, 6.7 instructions a weight against 8.3. */
    { &q6k_gemv, ANY_SM, UP_TO(768), KNOWN_OR_NOT, &mwv_q6k_gemv, 1, 1 },

    /* As for Q4_K. With 64 registers two warps a block fill the SMs of 16 blocks as well. */
    { &q6k_gemv, ANY_SM, FROM(6144), UP_TO(256), &mwv_q6k_gemv, 12, 1 },
    { &q6k_gemv, ANY_SM, FROM(4096), UP_TO(512), &mwv_q6k_gemv, 8, 1 },
    { &q6k_gemv, 75, 89, FROM(2048), UP_TO(1536), &mwv_q6k_gemv, 4, 1 },
    { &q6k_gemv, SINCE(90), FROM(4096), UP_TO(1024), &mwv_q6k_gemv, 8, 1 },
    { &q6k_gemv, SINCE(90), FROM(2048), UP_TO(2048), &mwv_q6k_gemv, 4, 1 },
    { &q6k_gemv, 80, 80, UP_TO(1792), FROM(3072), &mwv_q6k_gemv, 1, 1 },
    { &q6k_gemv, ANY_SM, KNOWN, KNOWN, &mwv_q6k_gemv, 2, 1 },
    { &q6k_gemv, ANY_SM, KNOWN_OR_NOT, KNOWN_OR_NOT, &mwv_q6k_gemv, 4, 1 },

    /* Blocks of 32 weights: there is no exact kernel of several warps a row, so that few rows leave
     * SMs idle on every GPU. */
    { &q8_0_gemv, 90, 119, STREAM(2048), KNOWN, &stream_q8_0_gemv, 12, 1 },
    { &q8_0_gemv, 90, 119, STREAM(1024), UP_TO(2560), &stream_q8_0_gemv, 12, 1 },
    { &q8_0_gemv, 90, 119, STREAM(1024), FROM(10240), &stream_q8_0_gemv, 12, 1 },
    { &q8_0_gemv, 100, 119, STREAM(1536), KNOWN, &stream_q8_0_gemv, 12, 1 },
    { &q8_0_gemv, 80, 80, STREAM(1536), UP_TO(1536), &stream_q8_0_gemv, 12, 1 },
    { &q8_0_gemv, SINCE(120), STREAM_100(2048), UP_TO(1536), &stream_q8_0_gemv, 12, 1 },
    { &q8_0_gemv, SINCE(86), STREAM_100(1536), UP_TO(512), &stream_q8_0_gemv, 12, 1 },
    { &q8_0_gemv, 75, 79, STREAM_64(2048), UP_TO(192), &stream_q8_0_gemv, 12, 1 },
    { &q8_0_gemv, ANY_SM, KNOWN_OR_NOT, KNOWN_OR_NOT, &q8_0_gemv, 1, 1 },

    { &q5_0_gemv, 90, 119, STREAM(1536), KNOWN, &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, 90, 119, STREAM(1024), UP_TO(3072), &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, 90, 119, STREAM(1024), FROM(5120), &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, 80, 80, STREAM(1024), UP_TO(1536), &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, 80, 80, STREAM(2048), UP_TO(2560), &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, 80, 80, STREAM(1536), FROM(16384), &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, 86, 87, STREAM_100(2048), KNOWN, &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, 86, 87, STREAM_100(1536), FROM(2048), &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, SINCE(120), STREAM_100(1536), UP_TO(2048), &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, SINCE(86), STREAM_100(1536), UP_TO(1024), &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, 75, 79, STREAM_64(1536), UP_TO(256), &stream_q5_0_gemv, 12, 1 },
    { &q5_0_gemv, ANY_SM, KNOWN_OR_NOT, KNOWN_OR_NOT, &q5_0_gemv, 1, 1 },

    { &q4_0_gemv, 90, 119, STREAM(2048), UP_TO(2048), &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, 90, 119, STREAM(2560), UP_TO(2560), &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, 90, 119, STREAM(4096), UP_TO(3584), &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, 90, 119, STREAM(1024), FROM(16384), &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, 100, 119, STREAM(3072), KNOWN, &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, 100, 119, STREAM(2048), FROM(6144), &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, 80, 80, STREAM(3072), UP_TO(1024), &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, SINCE(120), STREAM_100(3072), UP_TO(1024), &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, SINCE(86), STREAM_100(2560), UP_TO(512), &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, 75, 79, STREAM_64(3072), UP_TO(128), &stream_q4_0_gemv, 12, 1 },
    { &q4_0_gemv, ANY_SM, KNOWN_OR_NOT, KNOWN_OR_NOT, &q4_0_gemv, 1, 1 },
};

const size_t tuning_row_count = sizeof tuning_rows / sizeof *tuning_rows;

static bool holds(size_range range, int64_t size)
{
    return size >= range.least && size <= range.most;
}

static bool suits(const family *chosen, const instance *asked)
{
    return (asked->precision == PRECISION_Q8 || !chosen->quantizes) &&
           (asked->dims == DIMS_STATIC || family_key(chosen, "dims"));
}

const tuning_row *tuning_find(const instance *asked, const target *t)
{
    for (const tuning_row *row = tuning_rows; row < tuning_rows + tuning_row_count; row++)
        if (row->plain == asked->family && t->sm >= row->least_sm && t->sm <= row->most_sm &&
            holds(row->k, asked->shape.k) && holds(row->n, asked->shape.n) &&
            suits(row->chosen, asked))
            return row;
    fprintf(stderr, "ptxgen: no row of gen/tuning.c fits %s\n", asked->family->name);
    abort();
}

instance tuning_choose(const instance *asked, const target *t)
{
    const tuning_row *row = tuning_find(asked, t);
    instance chosen = *asked;
    chosen.family = row->chosen;
    for (const key *k = row->chosen->keys; k->name; k++)
        if (!family_key(asked->family, k->name))
            instance_set(&chosen, k, key_default(k));
    if (family_key(row->chosen, "num_warps"))
        chosen.num_warps = row->num_warps;
    if (family_key(row->chosen, "rows_per_warp"))
        chosen.rows_per_warp = row->rows_per_warp;
    chosen.variant = VARIANT_PLAIN;
    chosen.precision = PRECISION_F32; /* of families with that key */
    chosen.chosen_by = asked->family;
    chosen.chosen_for[asked->precision] = target_bit(t);
    chosen.excluded = ~target_bit(t);
    return chosen;
}

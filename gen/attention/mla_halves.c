/* Latent attention on the tensor cores: mla_attention with products = f16 (sm_80).
 *
 * As in FlashAttention-2 (Dao, 2023), with the heads as the rows of the products. A block of four
 * warps serves 16 heads for a chunk of positions, in tiles of 32, staged in shared memory as f16.
 * Passes over a tile:
 *
 *   1. The rows are staged: f16 is copied, other types are rounded.
 *   2. q c'. A warp has every fourth unit of 32 values of a row, and q of all heads for these in
 *      registers. It multiplies the tile by them; its sums are a part of each product.
 *   3. The online softmax, 8 lanes per head with four positions each: the parts are added up and
 *      products become f16 weights. For f16 rows the sum is computed from the rounded weights: a
 *      rounding error then moves a result only by the distance of a value from the mean.
 *   4. The weighted values: a warp has every fourth group of 64 values, of all heads.
 *
 * The order of the values in a product is free if both factors have the same. In pass 2 lane t (=
 * lane % 4) has values 8t .. 8t + 7 of a unit: 16 bytes that are its fragments of two matrices.
 * Column n of a matrix is position 4 (n % 2) + n / 2 of eight. In pass 4 a lane has 8 neighbouring
 * values of four positions, and prmt makes its fragments of eight matrices from them: column g of
 * matrix j is value 8g + j of a group, so a lane has 16 neighbouring results of a head. Rows are
 * padded by 16 bytes, so that neither pass has bank conflicts.
 *
 * So that no finite value overflows f16, each head of q is multiplied by a power of two that brings
 * its largest value to 2^14 .. 2^15, and each rounded row by its power 2^-E. The score, in units of
 * log 2, undoes both. Weighted values are 2^(s - max) c = 2^(s + E - max) 2^-E c: the softmax uses
 * s + E. The sum of weights then includes 2^-E and uses unrounded weights, since its largest term
 * may be a weight with few bits. */
#include <float.h>
#include <math.h>

#include "gen/common/halves.h"
#include "gen/attention/mla.h"
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"
#include "gen/formats/weight_format.h"

enum {
    WARPS = MLA_HALVES_THREADS / WARP,
    HEADS = MLA_HALVES_HEADS,
    TILE = 32,
    HALF_BYTES = 2,
    WORD_BYTES = 4,
    PIECE_BYTES = UNPACKED * HALF_BYTES,
    UNIT = 32, /* values: four pieces, two matrices */
    UNIT_BYTES = UNIT * HALF_BYTES,
    MOST_UNITS = 5, /* units per warp */
    COLUMNS = 8,    /* columns of a matrix of B */
    TILE_COLUMNS = TILE / COLUMNS,
    DEPTH = 16, /* rows of a matrix of B */
    GROUP = COLUMNS * UNPACKED,
    MOST_GROUPS = 2, /* groups per warp */
    PIECES = 3,      /* pieces per lane of a row that is rounded */
    AHEAD = 9,       /* pieces that a lane loads before it stores them */
    ROW_LANES = 4,
    HEAD_LANES = WARPS * WARP / HEADS,
    LANE_POSITIONS = TILE / HEAD_LANES,
    PRODUCT_STRIDE = (TILE + 4) * F32_BYTES, /* bytes between the products of two heads */
    PRODUCT_PART = HEADS * PRODUCT_STRIDE,   /* bytes between the parts of two warps */
    WEIGHT_STRIDE = (TILE + UNPACKED) * HALF_BYTES,
    BIAS = EXPONENT_BIAS,
    LARGEST = LARGEST_EXPONENT,
    LEAST = LARGEST - BIAS,    /* minimum exponent of a head's maximum: 2^-E is an f32 */
    LEAST_OF_ROWS = BIAS - 46, /* minimum of a row: sums of 2^-E are f32 */
    REGISTERS = 168,           /* three blocks per SM */
};

typedef struct halves_work {
    const instance *in;
    mla_block block;
    unsigned units, groups, stride;
    unsigned warp_units, warp_groups;    /* maximum units and groups per warp */
    bool scaled;                         /* rows are multiplied by powers of two */
    val rows, products, weights, powers; /* shared memory */
    val warp, lane, group, part;         /* group = lane / 4, part = lane % 4 */
    mla_softmax_lane own;                /* the thread's head and positions in the softmax */
    val exponent;                        /* exponent of the head's q, s32 */
    val factor;                          /* undoes that power and applies the scale */
    val4 q[MOST_UNITS][2];
    var sums[MOST_GROUPS][UNPACKED][4]; /* results, per matrix */
    mla_softmax softmax;
} halves_work;

static halves_work halves_work_new(ptx *p, const instance *in)
{
    unsigned width = (unsigned)(in->shape.latent + in->shape.n_rope);
    halves_work w = { .in = in,
                      .units = width / UNIT,
                      .groups = ((unsigned)in->shape.latent + GROUP - 1) / GROUP,
                      .stride = (width + UNPACKED) * HALF_BYTES,
                      .scaled = in->kv_type != KV_F16 };
    w.warp_units = (w.units + WARPS - 1) / WARPS;
    w.warp_groups = (w.groups + WARPS - 1) / WARPS;
    w.block = mla_block_new(p, in, HEADS);
    w.warp = named(p, "warp", warp_id(p));
    w.lane = named(p, "lane", lane_id(p));
    w.group = named(p, "group", div(p, w.lane, ROW_LANES));
    w.part = named(p, "part", bit_and(p, w.lane, ROW_LANES - 1));
    w.own.head = named(p, "head", div(p, tid_x(p), HEAD_LANES));
    w.own.position =
        named(p, "position", mul(p, bit_and(p, tid_x(p), HEAD_LANES - 1), LANE_POSITIONS));
    w.rows = shared_array(p, "rows", U32, TILE * w.stride / WORD_BYTES);
    w.products = shared_array(p, "products", F32, WARPS * PRODUCT_PART / F32_BYTES);
    w.weights = shared_array(p, "weights", U32, HEADS * WEIGHT_STRIDE / WORD_BYTES);
    w.own.exists = imm(PRED, 1);
    w.softmax = mla_softmax_new(p, 1, HEAD_LANES, HEADS);
    w.powers = shared_array(p, "powers", U32, TILE);
    w.block.ticket = shared_array(p, "ticket", U32, 1);
    return w;
}

/* Returns the row of eight for a lane's group. Rows of neighbouring groups are four apart. */
static val spread_row(ptx *p, const halves_work *w)
{
    return mad(p, bit_and(p, w->group, 1), imm(U32, 4), div(p, w->group, 2));
}

/* Rounds a row to f16 with one warp, multiplied by a power of two. Stores E plus the f32 bias. */
static void round_row(ptx *p, const halves_work *w, format f, val row, val number, unsigned least)
{
    unsigned pieces = w->units * UNIT / UNPACKED, turns = (pieces + WARP - 1) / WARP;
    val values[PIECES * UNPACKED];
    for (unsigned i = 0; i < turns; i++) {
        val piece = add(p, w->lane, i * WARP);
        if (pieces < (i + 1) * WARP)
            piece = min(p, piece, pieces - 1);
        unpack_piece(p, f, row, piece, values + (size_t)i * UNPACKED);
    }
    val largest = q8_largest(p, imm(U32, least << EXPONENT_SHIFT), values, turns * UNPACKED);
    val exponent = named(p, "exponent", shr(p, warp_max(p, largest), EXPONENT_SHIFT));
    val power = power_of_two(p, sub(p, imm(U32, LARGEST + BIAS), exponent));
    val to = mad(p, number, imm(U32, w->stride), mad(p, w->lane, imm(U32, PIECE_BYTES), w->rows));
    for (unsigned i = 0; i < turns; i++)
        PTX_IF (p, lt(p, add(p, w->lane, i * WARP), pieces))
            for (unsigned j = 0; j < UNPACKED; j += 4) {
                val4 four;
                for (unsigned k = 0; k < 4; k++)
                    four.v[k] = convert(p, F16, mul(p, values[i * UNPACKED + j + k], power));
                st_shared_v4(p, F16, to, i * WARP * PIECE_BYTES + j * HALF_BYTES, four);
            }
    PTX_IF (p, eq(p, w->lane, 0))
        st_shared(p, U32, mad(p, number, imm(U32, WORD_BYTES), w->powers), 0,
                  sub(p, exponent, LARGEST - BIAS));
}

/* Copies rows of f16, four lanes per row. */
static void copy_rows(ptx *p, const halves_work *w, val tile, val last)
{
    val number = mad(p, w->warp, imm(U32, COLUMNS), spread_row(p, w));
    val row = mla_row(p, &w->block, min(p, add(p, tile, number), last));
    val from = mad_wide(p, w->part, PIECE_BYTES, row);
    val to = mad(p, number, imm(U32, w->stride), mad(p, w->part, imm(U32, PIECE_BYTES), w->rows));
    for (unsigned i = 0; i < w->units; i += AHEAD) {
        val4 pieces[AHEAD];
        unsigned end = i + AHEAD < w->units ? i + AHEAD : w->units;
        for (unsigned j = i; j < end; j++)
            pieces[j - i] = ld_const_v4(p, U32, from, (int64_t)j * UNIT_BYTES);
        for (unsigned j = i; j < end; j++)
            st_shared_v4(p, U32, to, (int64_t)j * UNIT_BYTES, pieces[j - i]);
    }
}

/* Returns the index of the warp's item i: it has every fourth of count items. The index is clamped
 * to the last item, whose results the warp then drops. */
static val warp_item(ptx *p, const halves_work *w, unsigned i, unsigned count)
{
    val item = add(p, w->warp, i * WARPS);
    return (i + 1) * WARPS <= count ? item : min(p, item, count - 1);
}

static val piece_of_row(ptx *p, const halves_work *w, val row)
{
    return mad(p, row, imm(U32, w->stride), mad(p, w->part, imm(U32, PIECE_BYTES), w->rows));
}

/* Returns value * 2^x for an s32 x, as two multiplications with powers in the range of f32. */
static val times_power(ptx *p, val value, val x)
{
    val half = shr(p, x, 1), halves[] = { half, sub(p, x, half) };
    for (unsigned i = 0; i < 2; i++)
        value = mul(p, value, power_of_two(p, as(p, U32, add(p, halves[i], BIAS))));
    return value;
}

/* Stages the heads of q as rows and loads the fragments of A from them. */
static void load_queries(ptx *p, halves_work *w)
{
    unsigned bytes = w->units * UNIT * F32_BYTES;
    phase(p, "load q");
    PTX_FOR (p, number, w->warp, HEADS, WARPS) {
        val row = mad_wide(p, mla_query_row(p, &w->block, number), bytes, parameter(p, "q"));
        round_row(p, w, FORMAT_F32, row, number, LEAST);
    }
    barrier(p);
    val at = piece_of_row(p, w, w->group);
    for (unsigned i = 0; i < w->warp_units; i++) {
        val from = mad(p, warp_item(p, w, i, w->units), imm(U32, UNIT_BYTES), at);
        val4 upper = ld_shared_v4(p, U32, from, 0);
        val4 lower = ld_shared_v4(p, U32, from, (int64_t)(HEADS / 2) * w->stride);
        for (unsigned j = 0; j < 2; j++)
            w->q[i][j] = (val4){ { upper.v[2 * j], lower.v[2 * j], upper.v[2 * j + 1],
                                   lower.v[2 * j + 1] } };
    }
    val number = mad(p, w->own.head, imm(U32, WORD_BYTES), w->powers);
    w->exponent = sub(p, as(p, S32, ld_shared(p, U32, number, 0)), BIAS);
    w->factor =
        named(p, "factor", min(p, times_power(p, V(mla_score_scale(w->in)), w->exponent), FLT_MAX));
    barrier(p);
}

static void multiply(ptx *p, const halves_work *w)
{
    var sums[TILE_COLUMNS][4];
    for (unsigned j = 0; j < TILE_COLUMNS; j++)
        for (unsigned k = 0; k < 4; k++)
            sums[j][k] = var_f32(p, 0.0f);
    val at = mad(p, w->warp, imm(U32, UNIT_BYTES), piece_of_row(p, w, spread_row(p, w)));
    for (unsigned i = 0; i < w->warp_units; i++)
        PTX_IF (p,
                (i + 1) * WARPS <= w->units ? imm(PRED, 1) : lt(p, w->warp, w->units - i * WARPS))
            for (unsigned j = 0; j < TILE_COLUMNS; j++) {
                int64_t offset = (int64_t)j * COLUMNS * w->stride + i * WARPS * UNIT_BYTES;
                val4 piece = ld_shared_v4(p, U32, at, offset);
                fragment_add(p, sums[j], w->q[i][0], (val2){ { piece.v[0], piece.v[1] } });
                fragment_add(p, sums[j], w->q[i][1], (val2){ { piece.v[2], piece.v[3] } });
            }
    val to = mad(p, w->warp, imm(U32, PRODUCT_PART),
                 mad(p, w->group, imm(U32, PRODUCT_STRIDE),
                     mad(p, w->part, imm(U32, F32_BYTES), w->products)));
    for (unsigned j = 0; j < TILE_COLUMNS; j++)
        for (unsigned k = 0; k < 4; k++) /* upper and lower head, position t and 4 + t */
            st_shared(p, F32, to,
                      k / 2 * (HEADS / 2) * PRODUCT_STRIDE +
                          (j * COLUMNS + k % 2 * COLUMNS / 2) * F32_BYTES,
                      sums[j][k]);
}

/* Replaces a tile's products by weights; the first count are valid. Returns the number of threads
 * whose head's maximum rose. If rows have powers of two, scores include E. */
static val weigh(ptx *p, const halves_work *w, val count)
{
    val scores[LANE_POSITIONS], inverses[LANE_POSITIONS];
    val4 powers, sums, weights;
    val at = mad(p, w->own.head, imm(U32, PRODUCT_STRIDE),
                 mad(p, w->own.position, imm(U32, F32_BYTES), w->products));
    for (unsigned i = 0; i < WARPS; i++) {
        val4 part = ld_shared_v4(p, F32, at, (int64_t)i * PRODUCT_PART);
        for (unsigned j = 0; j < LANE_POSITIONS; j++)
            sums.v[j] = i ? add(p, sums.v[j], part.v[j]) : part.v[j];
    }
    if (w->scaled)
        powers = ld_shared_v4(p, U32, mad(p, w->own.position, imm(U32, WORD_BYTES), w->powers), 0);
    for (unsigned j = 0; j < LANE_POSITIONS; j++) {
        val score = mul(p, sums.v[j], w->factor);
        if (w->scaled) {
            val exponent = sub(p, as(p, S32, powers.v[j]), BIAS);
            inverses[j] = inverse_of_power(p, powers.v[j]);
            score = times_power(p, sums.v[j], add(p, w->exponent, exponent));
            score = fma(p, score, mla_score_scale(w->in), convert(p, F32, exponent));
        }
        scores[j] = select(p, lt(p, add(p, w->own.position, j), count), score, -INFINITY);
    }
    val now, factor = mla_softmax_raise(p, &w->softmax, scores, LANE_POSITIONS, &now);
    var sum = w->softmax.sum;
    for (unsigned j = 0; j < LANE_POSITIONS; j++) {
        val weight = ex2(p, sub(p, scores[j], now));
        weights.v[j] = convert(p, F16, weight);
        assign(p, sum,
               w->scaled ? fma(p, weight, inverses[j], sum)
                         : add(p, convert(p, F32, weights.v[j]), sum));
    }
    val to = mad(p, w->own.head, imm(U32, WEIGHT_STRIDE),
                 mad(p, w->own.position, imm(U32, HALF_BYTES), w->weights));
    st_shared_v4(p, F16, to, 0, weights);
    mla_softmax_tell(p, &w->softmax, &w->own, factor);
    return barrier_count(p, ne(p, factor, 1.0f));
}

static void add_values(ptx *p, const halves_work *w)
{
    static const unsigned rows[] = { 0, 1, 8, 9 };
    val weights = mad(p, w->group, imm(U32, WEIGHT_STRIDE),
                      mad(p, w->part, imm(U32, WORD_BYTES), w->weights));
    val row =
        mad(p, w->part, imm(U32, 2 * w->stride), mad(p, w->group, imm(U32, PIECE_BYTES), w->rows));
    for (unsigned first = 0; first < TILE; first += DEPTH) {
        val4 a;
        for (unsigned k = 0; k < 4; k++)
            a.v[k] = ld_shared(p, U32, weights,
                               k % 2 * (HEADS / 2) * WEIGHT_STRIDE +
                                   (first + k / 2 * (DEPTH / 2)) * HALF_BYTES);
        for (unsigned i = 0; i < w->warp_groups; i++) {
            val at = mad(p, warp_item(p, w, i, w->groups), imm(U32, GROUP * HALF_BYTES), row);
            val4 pieces[4];
            for (unsigned k = 0; k < 4; k++)
                pieces[k] = ld_shared_v4(p, U32, at, (int64_t)(first + rows[k]) * w->stride);
            /* Eight matrices of B from 8 values of four positions: the low and the high halves of
             * words. */
            enum { LOW = 0x5410, HIGH = 0x7632 };
            for (unsigned j = 0; j < UNPACKED; j++) {
                unsigned word = j / 2, which = j % 2 ? HIGH : LOW;
                val2 b = { { prmt(p, pieces[0].v[word], pieces[1].v[word], which),
                             prmt(p, pieces[2].v[word], pieces[3].v[word], which) } };
                fragment_add(p, w->sums[i][j], a, b);
            }
        }
    }
}

static void attend(ptx *p, const halves_work *w, positions run)
{
    val last = sub(p, run.end, 1);
    PTX_FOR (p, tile, run.first, run.end, TILE) {
        val count = min(p, sub(p, run.end, tile), TILE);
        phase(p, "stage the rows of a tile");
        if (w->scaled) {
            ptx_loop_work(p, w->units, "values");
            PTX_FOR (p, number, w->warp, TILE, WARPS) {
                val row = mla_row(p, &w->block, min(p, add(p, tile, number), last));
                round_row(p, w, kv_format(w->in), row, number, LEAST_OF_ROWS);
            }
        } else {
            copy_rows(p, w, tile, last);
        }
        barrier(p);
        phase(p, "products of q with the tile");
        multiply(p, w);
        barrier(p);
        phase(p, "softmax: products to weights");
        val rose = weigh(p, w, count);
        PTX_IF (p, ne(p, rose, 0)) {
            val at = mad(p, w->group, imm(U32, F32_BYTES), w->softmax.factors), factors[2];
            for (unsigned i = 0; i < 2; i++)
                factors[i] = ld_shared(p, F32, at, (int64_t)i * (HEADS / 2) * F32_BYTES);
            for (unsigned i = 0; i < w->warp_groups; i++)
                for (unsigned j = 0; j < UNPACKED; j++)
                    for (unsigned k = 0; k < 4; k++)
                        assign(p, w->sums[i][j][k], mul(p, w->sums[i][j][k], factors[k / 2]));
        }
        phase(p, "weighted values of the tile");
        add_values(p, w);
        barrier(p);
    }
}

/* Stores the lane's values of its upper or lower head: 16 neighbouring values of each of the warp's
 * groups, from even and odd columns. */
static void store_values(ptx *p, const halves_work *w, unsigned lower, val row, val factor)
{
    unsigned latent = (unsigned)w->in->shape.latent;
    for (unsigned i = 0; i < w->warp_groups; i++) {
        val first =
            mad(p, add(p, w->warp, i * WARPS), imm(U32, GROUP), mul(p, w->part, 2 * UNPACKED));
        PTX_IF (p, lt(p, first, latent)) {
            val to = mad_wide(p, first, F32_BYTES, row);
            for (unsigned j = 0; j < 2 * UNPACKED; j += 4) {
                val4 four;
                for (unsigned k = 0; k < 4; k++)
                    four.v[k] =
                        mul(p, w->sums[i][j % UNPACKED + k][2 * lower + j / UNPACKED], factor);
                st_global_v4(p, F32, to, j * F32_BYTES, four);
            }
        }
    }
}

/* Stores a chunk's result if it is the only chunk, else its partial rows. */
static void store_chunk(ptx *p, const halves_work *w, val chunk)
{
    val alone = eq(p, w->block.active, 1);
    mla_softmax_share(p, &w->softmax, &w->own);
    for (unsigned lower = 0; lower < 2; lower++) {
        val head = add(p, w->group, lower * (HEADS / 2)), query = mla_query_row(p, &w->block, head);
        val2 state = mla_softmax_state(p, &w->softmax, head);
        val scale = select(p, gt(p, state.v[1], 0.0f), rcp(p, state.v[1]), imm(F32, 0));
        PTX_IF (p, mla_has_head(p, &w->block, head)) {
            val row = mla_partial(p, &w->block, query, chunk);
            store_values(
                p, w, lower,
                select(p, alone,
                       mad_wide(p, query, w->in->shape.latent * F32_BYTES, parameter(p, "o")), row),
                select(p, alone, scale, 1.0f));
            PTX_IF (p, bit_and(p, bit_not(p, alone), eq(p, bit_or(p, w->warp, w->part), 0)))
                partial_store_sums(p, &w->block.results, row, state.v[0], state.v[1]);
        }
    }
}

/* Returns the bytes of shared memory: a tile, products per warp, weights, a factor and a state per
 * head, powers, the ticket. */
int64_t mla_halves_shared(const instance *in)
{
    int64_t stride = (in->shape.latent + in->shape.n_rope + UNPACKED) * HALF_BYTES;
    return TILE * stride + WARPS * PRODUCT_PART + HEADS * (WEIGHT_STRIDE + 3 * F32_BYTES) +
           (TILE + 1) * WORD_BYTES;
}

void mla_halves_build(ptx *p, const instance *in)
{
    halves_work w = halves_work_new(p, in);
    ptx_max_registers(p, REGISTERS);
    mla_block_begin(p, &w.block);
    load_queries(p, &w);
    for (unsigned i = 0; i < w.warp_groups; i++)
        for (unsigned j = 0; j < UNPACKED; j++)
            for (unsigned k = 0; k < 4; k++)
                w.sums[i][j][k] = var_f32(p, 0.0f);
    PTX_FOR (p, chunk, ctaid_z(p), w.block.active, nctaid_z(p)) {
        attend(p, &w, mla_chunk(p, &w.block, chunk));
        phase(p, "store the chunk's result");
        store_chunk(p, &w, chunk);
        mla_softmax_clear(p, &w.softmax);
        for (unsigned i = 0; i < w.warp_groups; i++)
            for (unsigned j = 0; j < UNPACKED; j++)
                for (unsigned k = 0; k < 4; k++)
                    assign(p, w.sums[i][j][k], 0.0f);
    }
    mla_block_count(p, &w.block); /* recomputed, so that it is not live through the loops */
    mla_merge(p, &w.block);
}

/* Attention of runs of rows on the tensor cores, as in FlashAttention-2 (Dao, 2023). A run is
 * neighbouring rows at ascending positions of one sequence, such as a piece of a prompt or a single
 * row, whose K and V are already in the cache.
 *
 * Layouts are those of gqa_flash_decoding. Row i attends to positions [0, seq_lens[i]), or to the
 * last ones in its window. A row of length 0 is unused, and its result is 0. A ring must hold the
 * positions of all rows.
 *
 * The caller cuts each run into tiles of up to run_rows rows. A word of `tiles` is a tile's first row
 * and, times 2^16, its number of rows; blocks of a word of 0 end at once. With 16 rows per tile a run
 * of 40 rows and one of 1, rows 0 .. 39 and 40, are 16 << 16, 16 << 16 | 16, 8 << 16 | 32, 1 << 16 |
 * 40.
 *
 * A block has 16, 32, 64 or 128 rows of a tile and KV head (at most 64 of more than 256 values), 16
 * or 32 per warp. Each head that shares K and V makes a row of its own: with 4 heads per KV head, rows
 * 0 .. 3 are heads 0 .. 3 of the first row of q. The block processes tiles of positions
 * (attention/kv_tiles.h) in ascending order:
 *
 *   1. q K', with q as fragments of A in registers. A lane's sums are of rows g = lane / 4 and
 *      g + 8, and of columns 2t and 2t + 1 of each eight, t = lane % 4.
 *   2. The online softmax. Products become f16 weights in place: a lane's sums of two neighbouring
 *      matrices are its fragment of A.
 *   3. P V, and the sum of the weights. The sum is computed from the rounded weights, as a product
 *      with ones. A rounding error then moves a result only by a value's distance from the mean.
 *
 * Tiles at both ends of the run need masks. There, 0 times a NaN or infinity of V must not reach
 * rows that do not attend to it: see spread_nonfinite_values.
 *
 * So that no finite value overflows f16, a row of q is multiplied by a power of two
 * (common/halves.h), and so are the rows of a cache that is not f16: K by 2^-e, V by 2^-E. Weighted
 * values are 2^(s - max) v = 2^(s + E - max) 2^-E v: the softmax uses s + E. The sum of weights
 * then includes 2^-E and uses unrounded weights, since its largest term may be a weight with few
 * bits.
 *
 * Heads of more than 256 values have two blocks for the same rows. Both compute the weights, and
 * each has half of the columns of V and o.
 *
 * The tiles depend only on positions, and a tile outside of a row's positions has only weights of 0
 * for it. So a row has the same bits whichever rows are beside it.
 *
 * Few rows of long caches leave most SMs without work. With chunk_size a block has one chunk of the
 * positions, and blocks have at most 64 rows. Chunks 0 .. 7 have chunk_size positions, the next four
 * twice as many, the next four again twice as many, and so on: with 128, 4096 positions are 16
 * chunks and 131072 are 36. The last block of some rows to finish merges their partial rows
 * (attention/attention.h). Since chunks depend only on positions, the bits still do not depend on
 * other rows.
 */
#include <float.h>
#include <math.h>

#include "gen/attention/attention.h"
#include "gen/attention/prompt_tile.h"
#include "gen/common/halves.h"
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"
#include "ref/reference.h"

enum {
    FRAGMENT = KV_FRAGMENT,
    COLUMNS = PROMPT_COLUMNS,
    QUAD = PROMPT_QUAD,
    HALVES = PROMPT_HALVES,
    LANE_BYTES = PROMPT_LANE_BYTES,
    LONG_HEAD = 128, /* values; longer heads leave registers for one part only */
    LONGER_HEAD = 192,
    FEWER_KEYS = 32,
    KEYS_OF_TWO = 48,
    MOST_DEPTHS_AT_ONCE = PROBLEM_SPLIT_HEAD_DIM / FRAGMENT,
    MOST_KEPT = 12,       /* fragments of q in registers, with one part */
    KEPT_OF_MORE = 8,     /* fragments of q in registers if a row has more than MOST_KEPT */
    MOST_KEPT_OF_TWO = 8, /* fragments of q in registers, with two parts */
    KEPT_OF_MORE_OF_TWO = 0,
    MOST_ROWS = 128,
    MOST_ROWS_OF_SPLIT = 64, /* q of more rows would not fit shared memory */
    MOST_ROWS_OF_CHUNKS = 64,
    EQUAL_CHUNKS = 4, /* a power of two: chunks of a size; twice as many of the first size */
};

/* The tiles [first, end) of a block. No row needs a mask in tiles [whole, whole_end). */
typedef struct tile_run {
    val first, whole, whole_end, end;
} tile_run;

/* One of the lane's rows of a block. */
typedef struct lane_row {
    val query; /* row of q and o, clamped to the last one */
    val exists;
    val first, end; /* its positions; end is 0 if the row is unused */
} lane_row;

static int64_t tile_rows(const instance *in)
{
    int64_t rows = FRAGMENT;
    int64_t most = in->shape.head_dim > PROBLEM_SPLIT_HEAD_DIM ? MOST_ROWS_OF_SPLIT : MOST_ROWS;
    if (in->shape.chunk_size)
        most = MOST_ROWS_OF_CHUNKS;
    while (rows < in->shape.m && rows < most)
        rows *= 2;
    return rows;
}

/* Returns the fragments of rows per warp. With two, each load of K and V serves both. Caches that
 * are rounded take more warps and registers. */
static unsigned parts_of(const instance *in)
{
    bool many = tile_rows(in) == MOST_ROWS && in->shape.head_dim <= LONG_HEAD;
    return many && !kv_tiles_round(in) ? 2 : 1;
}

static int64_t threads(const instance *in)
{
    return tile_rows(in) / (parts_of(in) * FRAGMENT) * WARP;
}

/* Returns the positions per tile: fewer if results leave few registers for scores. */
static unsigned tile_keys(const instance *in)
{
    if (parts_of(in) == 2 && in->shape.head_dim == LONG_HEAD)
        return KEYS_OF_TWO;
    return in->shape.head_dim > LONGER_HEAD ? FEWER_KEYS : KV_MOST_KEYS;
}

static unsigned depths_of(const instance *in)
{
    return (unsigned)in->shape.head_dim / FRAGMENT;
}

static unsigned kept_depths(const instance *in)
{
    unsigned all = depths_of(in);
    if (parts_of(in) == 1)
        return all > MOST_KEPT ? KEPT_OF_MORE : all;
    return 2 * all > MOST_KEPT_OF_TWO ? KEPT_OF_MORE_OF_TWO : all;
}

static int64_t shared_bytes(const instance *in)
{
    int64_t parked = depths_of(in) - kept_depths(in);
    return kv_tiles_bytes(in, tile_keys(in)) + parked * parts_of(in) * threads(in) * LANE_BYTES;
}

/* The number of a position's chunk is the exponent and the first two bits of the mantissa of its
 * unit of chunk_size, as an f32, less CHUNK_ZERO; the first units are chunks. Units of LEAST_CHUNK
 * are exact in an f32. */
enum {
    LEAST_CHUNK = 128,
    MANTISSA_BITS = 23 - 2,
    CHUNK_ZERO = (127 + 2) * EQUAL_CHUNKS - EQUAL_CHUNKS
};

static int64_t most_chunks(const instance *in)
{
    if (!in->shape.chunk_size)
        return 1;
    int64_t unit = (in->shape.max_seq_len - 1) / in->shape.chunk_size, chunk = 0;
    for (; unit >= 2 * EQUAL_CHUNKS; unit /= 2)
        chunk += EQUAL_CHUNKS;
    return chunk + unit + 1;
}

static val chunk_of(ptx *p, const instance *in, val position)
{
    val unit = div(p, position, (unsigned)in->shape.chunk_size);
    val number = shr(p, bits_as(p, U32, convert(p, F32, unit)), MANTISSA_BITS);
    return select(p, lt(p, unit, EQUAL_CHUNKS), unit, sub(p, number, CHUNK_ZERO));
}

static val first_of_chunk(ptx *p, const instance *in, val chunk)
{
    val unit = bit_or(p, bit_and(p, chunk, EQUAL_CHUNKS - 1), EQUAL_CHUNKS);
    unit = shl(p, unit, sub(p, div(p, chunk, EQUAL_CHUNKS), 1));
    unit = select(p, lt(p, chunk, EQUAL_CHUNKS), chunk, unit);
    return mul(p, unit, (unsigned)in->shape.chunk_size);
}

static int64_t ratio_of(const instance *in)
{
    return in->shape.num_heads / in->shape.num_kv_heads;
}

/* Returns the rows of q per tile. */
static int64_t run_rows(const instance *in)
{
    int64_t rows = tile_rows(in) / ratio_of(in);
    return rows ? rows : 1;
}

/* Returns the blocks per tile and KV head: more than one if a row has more heads than a block. */
static int64_t tile_parts(const instance *in)
{
    return (run_rows(in) * ratio_of(in) + tile_rows(in) - 1) / tile_rows(in);
}

/* The block's tile: its first row, and the number of the block's first row among those of its heads;
 * the number of all. */
typedef struct run_tile {
    val first, own, count;
} run_tile;

static run_tile tile_of_block(ptx *p, const prompt_block *w)
{
    unsigned parts = (unsigned)tile_parts(w->in);
    val at = mad_wide(p, div(p, ctaid_x(p), parts), sizeof(uint32_t), parameter(p, "tiles"));
    val word = ld_const(p, U32, at, 0);
    run_tile t = { .first = bit_and(p, word, 0xffff), .own = imm(U32, 0) };
    if (parts > 1)
        t.own = mul(p, rem(p, ctaid_x(p), parts), w->rows);
    t.count = mul(p, shr(p, word, 16), w->ratio);
    return t;
}

static lane_row row_of_lane(ptx *p, const prompt_block *w, unsigned row)
{
    run_tile t = tile_of_block(p, w);
    val last = sub(p, t.count, 1);
    val own = add(p, t.own, prompt_row(p, w, row)), there = min(p, own, last);
    val number = add(p, t.first, div(p, there, w->ratio)), head = rem(p, there, w->ratio);
    positions all = attention_positions(p, w->in, attention_sequence_length(p, false, number));
    lane_row r = { .first = all.first, .exists = le(p, own, last) };
    r.query = mad(p, number, (unsigned)w->in->shape.num_heads, mad(p, w->kv_head, w->ratio, head));
    r.end = select(p, r.exists, all.end, imm(U32, 0));
    return r;
}

/* Finds the block's tiles and positions [first, end), and stores the positions of each row. A
 * minimum is found as the maximum of the complements; unused rows contribute 0. */
static tile_run find_tiles(ptx *p, prompt_block *w, val *first, val *end)
{
    const instance *in = w->in;
    val zero = imm(U32, 0);
    val4 all = { { zero, zero, zero, zero } };
    w->limits = shared_array(p, "limits", U32, 2 * w->rows);
    for (unsigned i = 0; i < w->parts * HALVES; i++) {
        lane_row r = row_of_lane(p, w, i);
        val used = gt(p, r.end, 0), limits = prompt_limits(p, w, i);
        val4 numbers = { { r.end, select(p, used, bit_not(p, r.end), zero),
                           select(p, used, r.first, zero),
                           select(p, used, bit_not(p, r.first), zero) } };
        for (unsigned j = 0; j < QUAD; j++)
            all.v[j] = max(p, all.v[j], numbers.v[j]);
        st_shared(p, U32, limits, 0, r.first);
        st_shared(p, U32, limits, sizeof(uint32_t), r.end);
    }
    val at = shared_array(p, "largest", U32, QUAD * w->warps);
    for (unsigned i = 0; i < QUAD; i++)
        all.v[i] = lanes_max(p, all.v[i], QUAD, WARP);
    PTX_IF (p, eq(p, lane_id(p), 0))
        st_shared_v4(p, U32, mad(p, warp_id(p), QUAD * sizeof(uint32_t), at), 0, all);
    barrier(p);
    for (unsigned warp = 0; warp < w->warps; warp++) {
        val4 of_warp = ld_shared_v4(p, U32, at, warp * QUAD * sizeof(uint32_t));
        for (unsigned i = 0; i < QUAD; i++)
            all.v[i] = warp ? max(p, all.v[i], of_warp.v[i]) : of_warp.v[i];
    }
    val keys = imm(U32, tile_keys(in)), up = imm(U32, tile_keys(in) - 1);
    val least_end = bit_not(p, all.v[1]);
    *end = all.v[0];
    *first = in->options.window ? min(p, bit_not(p, all.v[3]), *end) : zero;
    tile_run run = { .first = div(p, *first, keys), .end = div(p, add(p, *end, up), keys) };
    val whole_end = min(p, div(p, least_end, keys), run.end);
    run.whole = in->options.window ? div(p, add(p, all.v[2], up), keys) : zero;
    run.whole = named(p, "whole", min(p, run.whole, run.end));
    run.whole_end = named(p, "whole_end", max(p, whole_end, run.whole));
    return run;
}

static val sum_of_row(ptx *p, const prompt_block *w, unsigned row)
{
    return w->tiles.rounded ? group_sum(p, get(p, w->sum[row]), QUAD)
                            : get(p, w->sums[row / HALVES][row % HALVES * 2]);
}

/* Words in shared memory: the block's chunk and the number of its rows' chunks, counted from their
 * first one, that one, and the ticket of the last block. */
enum { OWN_CHUNK, CHUNKS, FIRST_CHUNK, TICKET, CHUNK_WORDS };

/* Cuts the block's tiles and positions to its chunk, and ends the block if there is none. The
 * longest chunks begin first. */
static tile_run cut_to_chunk(ptx *p, prompt_block *w, tile_run all, val *first, val *end)
{
    const instance *in = w->in;
    unsigned keys = tile_keys(in);
    val from = chunk_of(p, in, *first);
    val count = sub(p, chunk_of(p, in, sub(p, max(p, *end, 1), 1)), sub(p, from, 1));
    val later = ctaid_z(p);
    if (w->first_value.kind)
        later = rem(p, later, most_chunks(in));
    ret_if(p, ge(p, later, count));
    val own = sub(p, sub(p, count, 1), later), chunk = add(p, from, own);
    w->chunk = shared_array(p, "chunk", U32, CHUNK_WORDS);
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        st_shared(p, U32, w->chunk, OWN_CHUNK * sizeof(uint32_t), own);
        st_shared(p, U32, w->chunk, CHUNKS * sizeof(uint32_t), count);
        st_shared(p, U32, w->chunk, FIRST_CHUNK * sizeof(uint32_t), from);
    }
    barrier(p);
    *first = max(p, *first, first_of_chunk(p, in, chunk));
    *end = min(p, *end, first_of_chunk(p, in, add(p, chunk, 1)));
    tile_run run = { .first = div(p, *first, keys), .end = div(p, add(p, *end, keys - 1), keys) };
    run.whole = named(p, "whole", max(p, min(p, all.whole, run.end), run.first));
    run.whole_end = named(p, "whole_end", max(p, min(p, all.whole_end, run.end), run.whole));
    return run;
}

/* Returns the address of the lane's first value of a row of q. */
static val query_address(ptx *p, const prompt_block *w, unsigned row)
{
    val query = row_of_lane(p, w, row).query;
    val from = mad_wide(p, query, (unsigned)w->in->shape.head_dim * F32_BYTES, parameter(p, "q"));
    return add(p, from, mul_wide(p, w->lane_column, F32_BYTES));
}

static void load_fragment(ptx *p, ptx_op load, val from, unsigned depth, val values[4])
{
    for (unsigned i = 0; i < 2; i++) {
        val2 two = ptx_load_v2(p, load, F32, from, (depth * FRAGMENT + i * COLUMNS) * F32_BYTES);
        values[2 * i] = two.v[0];
        values[2 * i + 1] = two.v[1];
    }
}

/* Loads the lane's fragments of q, and computes the factors that undo the powers of two and apply
 * the scale. */
static void load_queries(ptx *p, prompt_block *w)
{
    for (unsigned row = 0; row < w->parts * HALVES; row++) {
        unsigned part = row / HALVES, half = row % HALVES;
        val from = query_address(p, w, row);
        val values[MOST_DEPTHS_AT_ONCE][4], largest = imm(U32, 0);
        for (unsigned d = 0; d < w->depths; d++) {
            load_fragment(p, INST_LD_CONST, from, d, values[d]);
            largest = q8_largest(p, largest, values[d], 4);
        }
        val exponent = power_for_halves(p, group_max(p, largest, QUAD));
        val power = power_of_two(p, exponent);
        w->factor[row] = attention_factor_of_power(p, w->in, exponent);
        for (unsigned d = 0; d < w->depths; d++)
            for (unsigned i = 0; i < 2; i++)
                w->q[d][part].v[2 * i + half] = pack_halves(p, mul(p, values[d][2 * i], power),
                                                            mul(p, values[d][2 * i + 1], power));
        for (unsigned d = w->kept; d < w->depths && half == HALVES - 1; d++)
            st_shared_v4(p, U32, w->parked, prompt_parked(w, d, part), w->q[d][part]);
    }
}

/* Does the same for rows that are too long for the registers: they are loaded twice. The loads
 * differ, so that ptxas does not keep the values of the first ones. */
static void load_long_queries(ptx *p, prompt_block *w)
{
    val from[HALVES], power[HALVES];
    for (unsigned row = 0; row < HALVES; row++) {
        val largest = imm(U32, 0), values[4];
        from[row] = query_address(p, w, row);
        for (unsigned d = 0; d < w->depths; d++) {
            load_fragment(p, INST_LD_CONST, from[row], d, values);
            largest = q8_largest(p, largest, values, 4);
        }
        val exponent = power_for_halves(p, group_max(p, largest, QUAD));
        power[row] = power_of_two(p, exponent);
        w->factor[row] = attention_factor_of_power(p, w->in, exponent);
    }
    for (unsigned d = 0; d < w->depths; d++) {
        warp_barrier(p); /* limits the loads in flight to the registers */
        for (unsigned row = 0; row < HALVES; row++) {
            val values[4];
            load_fragment(p, INST_LD_GLOBAL, from[row], d, values);
            for (unsigned i = 0; i < 2; i++)
                w->q[d][0].v[2 * i + row] = pack_halves(p, mul(p, values[2 * i], power[row]),
                                                        mul(p, values[2 * i + 1], power[row]));
        }
        if (d >= w->kept)
            st_shared_v4(p, U32, w->parked, prompt_parked(w, d, 0), w->q[d][0]);
    }
}

/* Stores a row's results, with its head's sink and gate. The result of an unused row is 0, whatever
 * its sums are. */
static void store_row(ptx *p, const prompt_block *w, unsigned row)
{
    lane_row r = row_of_lane(p, w, row);
    val used = gt(p, r.end, 0);
    val sum = sum_of_row(p, w, row);
    softmax state = softmax_new(p, 1);
    assign(p, state.max, select(p, used, V(w->max[row]), -FLT_MAX));
    assign(p, state.sum, select(p, used, sum, imm(F32, 0)));
    assign(p, state.values[0], 1.0f);
    val factor = mul(p, attention_output_scale(p, w->in, &state, r.query), state.values[0]);
    val offset = mad_wide(p, r.query, (unsigned)w->in->shape.head_dim * F32_BYTES,
                          mul_wide(p, w->lane_column, F32_BYTES));
    if (w->first_value.kind)
        offset = add(p, offset, mul_wide(p, w->first_value, F32_BYTES));
    val to = add(p, parameter(p, "o"), offset);
    bool of_head = problem_gate_is_of_head(w->in->options.gate);
    PTX_IF (p, r.exists) {
        val gate = { 0 };
        if (of_head)
            gate = attention_head_gate(p, r.query);
        for (unsigned n = 0; n < w->across * 2; n++) {
            int64_t further = (int64_t)n * COLUMNS * F32_BYTES;
            const var *o = w->o[row / HALVES][n] + row % HALVES * 2;
            val2 two = { { { 0 } } }, gates = { { gate, gate } };
            if (w->in->options.gate && !of_head)
                gates = ld_const_v2(p, F32, add(p, parameter(p, "gate"), offset), further);
            for (unsigned i = 0; i < 2; i++) {
                two.v[i] = mul(p, select(p, used, V(o[i]), imm(F32, 0)), factor);
                if (w->in->options.gate)
                    attention_gate(p, w->in, &two.v[i], &gates.v[i], 1);
            }
            st_global_v2(p, F32, to, further, two);
        }
    }
}

static val word_of_chunk(ptx *p, const prompt_block *w, unsigned word)
{
    return ld_shared(p, U32, w->chunk, (int64_t)(word * sizeof(uint32_t)));
}

static val partials_of(ptx *p, const prompt_block *w, val query, val chunk)
{
    val rows = partial_rows(p, w->in, query, imm(U32, most_chunks(w->in)));
    return mad_wide(p, chunk, partial_bytes(w->in), rows);
}

static void store_partial_row(ptx *p, const prompt_block *w, unsigned row)
{
    lane_row r = row_of_lane(p, w, row);
    val used = gt(p, r.end, 0);
    val sum = sum_of_row(p, w, row);
    val to = partials_of(p, w, r.query, word_of_chunk(p, w, OWN_CHUNK));
    val own = add(p, to, mul_wide(p, w->lane_column, F32_BYTES));
    val max = select(p, used, V(w->max[row]), -FLT_MAX), none = imm(F32, 0);
    if (w->first_value.kind)
        own = add(p, own, mul_wide(p, w->first_value, F32_BYTES));
    sum = select(p, used, sum, none);
    PTX_IF (p, r.exists) {
        for (unsigned n = 0; n < w->across * 2; n++) {
            const var *o = w->o[row / HALVES][n] + row % HALVES * 2;
            val2 two;
            for (unsigned i = 0; i < 2; i++)
                two.v[i] = select(p, used, V(o[i]), none);
            st_global_v2(p, F32, own, (int64_t)n * COLUMNS * F32_BYTES, two);
        }
        PTX_IF (p, eq(p, w->lane_column, 0)) {
            if (w->first_value.kind) {
                val half = min(p, w->first_value, 1);
                st_global_v2(p, F32, mad_wide(p, half, PARTIAL_SUMS_BYTES, to),
                             (int64_t)w->in->shape.head_dim * F32_BYTES, ((val2){ { max, sum } }));
            } else {
                partial_store_sums(p, w->in, to, max, sum);
            }
        }
    }
}

/* In the last block of the rows, merges the chunks. */
static void merge_chunks(ptx *p, const prompt_block *w)
{
    const instance *in = w->in;
    unsigned halves = (unsigned)in->shape.head_dim / kv_tiles_width(in);
    val ticket = add(p, w->chunk, TICKET * sizeof(uint32_t));
    val column = mad(p, ctaid_x(p), (unsigned)in->shape.num_kv_heads, w->kv_head);
    val blocks = mul(p, word_of_chunk(p, w, CHUNKS), halves);
    ret_if(p, bit_not(p, attention_is_last_block(p, column, blocks, ticket)));
    phase(p, "merge the chunks");
    run_tile t = tile_of_block(p, w);
    val count = sub(p, t.count, min(p, t.own, t.count));
    PTX_FOR (p, row, warp_id(p), min(p, count, w->rows), w->warps) {
        val limits = mad(p, row, 2 * sizeof(uint32_t), w->limits);
        val2 of = ld_shared_v2(p, U32, limits, 0);
        val from = chunk_of(p, in, of.v[0]);
        val chunks = sub(p, chunk_of(p, in, sub(p, of.v[1], 1)), sub(p, from, 1));
        val own = add(p, t.own, row), head = rem(p, own, w->ratio);
        val query = mad(p, add(p, t.first, div(p, own, w->ratio)), (unsigned)in->shape.num_heads,
                        mad(p, w->kv_head, w->ratio, head));
        val rows = partials_of(p, w, query, sub(p, from, word_of_chunk(p, w, FIRST_CHUNK)));
        partials_merge(p, in, ROWS_OF_THIS_GRID, rows,
                       select(p, gt(p, of.v[1], 0), chunks, imm(U32, 0)), query);
    }
}

static void begin_sums(ptx *p, prompt_block *w)
{
    for (unsigned row = 0; row < w->parts * HALVES; row++) {
        w->max[row] = var_f32(p, -FLT_MAX);
        w->sum[row] = var_f32(p, 0.0f);
    }
    for (unsigned part = 0; part < w->parts; part++)
        for (unsigned i = 0; i < 4; i++) {
            w->sums[part][i] = var_f32(p, 0.0f);
            for (unsigned n = 0; n < w->across * 2; n++)
                w->o[part][n][i] = var_f32(p, 0.0f);
            for (unsigned n = 0; n < w->tiles.keys / COLUMNS; n++)
                w->scores[part][n][i] = var_f32(p, 0.0f);
        }
}

static void mma_attention_build(ptx *p, const instance *in)
{
    prompt_block w = { .in = in,
                       .rows = (unsigned)tile_rows(in),
                       .parts = parts_of(in),
                       .warps = (unsigned)threads(in) / WARP,
                       .ratio = (unsigned)ratio_of(in),
                       .depths = depths_of(in),
                       .kept = kept_depths(in),
                       .across = kv_tiles_width(in) / FRAGMENT };
    bool split = in->shape.head_dim > PROBLEM_SPLIT_HEAD_DIM;
    w.kv_head = named(p, "kv_head", ctaid_y(p));
    w.lane_column = mul(p, bit_and(p, lane_id(p), QUAD - 1), 2);
    phase(p, "find the positions of the rows");
    run_tile tile = tile_of_block(p, &w);
    ret_if(p, eq(p, tile.count, 0));
    cache_pages pages = cache_pages_of(p, in, false, tile.first);
    val k = cache_pages_start(p, &pages, parameter(p, "k"), w.kv_head);
    val v = cache_pages_start(p, &pages, parameter(p, "v"), w.kv_head), first, end;
    if (split) {
        val half = div(p, ctaid_z(p), most_chunks(in));
        w.first_value = mul(p, half, kv_tiles_width(in));
        v = add(p, v, mul_wide(p, half, cache_row_bytes(in) / 2));
    }
    val caches = kv_tiles_put_caches(p, k, v);
    tile_run run = find_tiles(p, &w, &first, &end);
    if (in->shape.chunk_size)
        run = cut_to_chunk(p, &w, run, &first, &end);
    w.tiles = kv_tiles_new(p, in, tile_keys(in), w.warps, caches, pages, first, end);
    kv_tiles_begin(p, &w.tiles, run.first);
    phase(p, "load q");
    w.parked = mad(p, tid_x(p), LANE_BYTES,
                   add(p, w.tiles.memory, (unsigned)kv_tiles_bytes(in, tile_keys(in))));
    if (w.depths > MOST_DEPTHS_AT_ONCE)
        load_long_queries(p, &w);
    else
        load_queries(p, &w);
    begin_sums(p, &w);
    if (in->options.window) {
        phase(p, "masked tiles: windows begin");
        prompt_attend(p, &w, run.first, run.whole, false);
    }
    phase(p, "unmasked tiles");
    prompt_attend(p, &w, run.whole, run.whole_end, true);
    phase(p, "masked tiles: rows end");
    prompt_attend(p, &w, run.whole_end, run.end, false);
    phase(p, in->shape.chunk_size ? "store partial rows" : "normalize and store");
    for (unsigned row = 0; row < w.parts * HALVES; row++)
        in->shape.chunk_size ? store_partial_row(p, &w, row) : store_row(p, &w, row);
    if (in->shape.chunk_size)
        merge_chunks(p, &w);
}

#define TILES_HOLD "per tile of a run: first row + 65536 rows; 0: none"

const family mma_attention = {
    .name = "mma_attention",
    .summary = "attention of runs of rows, such as pieces of prompts, on tensor cores",
    .computes = "o[m,h] = softmax(q[m,h] K' scale) V",
    F32_FAMILY(OP_PROMPT_ATTENTION, mma_attention_build, ref_attention, 2e-6),
    .halves = true,
    .by_runs = true,
    .sm = 80,
    .keys = KEYS(ATTENTION_SHAPE_OF(FRAGMENT),
                 KEY_NUMBER("m", "rows; a block's tile is m rounded up to 16..128", shape.m, 1,
                            MOST_ROWS, .def = MOST_ROWS / 2, .counted_with = KEY_FIELD(rows_mode),
                            .tag = "m"),
                 KEY_WORD("rows", "rows of q: m, or a parameter", rows_mode, rows_choices,
                          .def = ROWS_RUN_TIME),
                 KEY_NUMBER("runs", "runs of rows of one sequence, at most", options.runs, 1,
                            PROBLEM_MOST_ROWS + 1, .def = 1, .tag = "runs"),
                 KEY_NUMBER("chunk_size", "positions of the first chunks; 0: blocks read all",
                            shape.chunk_size, 0, 4096, .multiple_of = LEAST_CHUNK,
                            .zero_is_none = true, .tag = "cs"),
                 ATTENTION_OPTIONS, KEY_PAGE, KEY_RING, KEY_SINKS, KEY_GATE),
    .params =
        PARAMS(OUT(F32, o, "m*num_heads*head_dim", 16),
               PARTIAL_ROWS_WITH(SCRATCH, "m*num_heads*most_chunks", KEY_FIELD(shape.chunk_size)),
               COUNTERS(counters, "most_tiles*tile_parts*num_kv_heads",
                        .only_with = KEY_FIELD(shape.chunk_size)),
               QUERIES("m*num_heads*head_dim"), KV_POOL(IN, k), KV_POOL(IN, v), SINKS, GATES,
               IN(U32, seq_lens, "m", 4), ROW_SEQUENCES, PAGE_TABLE,
               IN(U32, tiles, "most_tiles", 4, .data = DATA_TILES, .holds = TILES_HOLD)),
    .launch = { .block = "threads",
                .grid = { "most_tiles*tile_parts", "num_kv_heads",
                          "most_chunks*ceil_div(head_dim, 256)" },
                .shared = "16 + threads/2 + 8*tile_rows + 16*min(chunk_size, 1)",
                .dynamic_shared = "tiles",
                .terms = TERMS({ "most_tiles", "min(m, ceil_div(m, run_rows)+runs-1)" }),
                .sizes =
                    SIZES({ "run_rows", run_rows, "rows of q per tile: tile_rows over its heads" },
                          { "tile_parts", tile_parts, "blocks per tile and KV head" },
                          { "tile_rows", tile_rows,
                            "rows per block: 16, 32, 64 or 128; with chunk_size at most 64" },
                          { "threads", threads,
                            "threads per block: 32 per 16 rows; per 32 with tile_rows = 128, f16, "
                            "head_dim <= 128" },
                          { "tiles", shared_bytes,
                            "bytes of the tiles of K and V, and of q that registers cannot hold" },
                          { "most_chunks", most_chunks, "maximum chunks; 1 without chunk_size" },
                          CACHE_PAGES),
                .dealt = true,
                .overlap = WAITS_FIRST,
                .registers = 255 },
    .check = check_ring,
    .fit = ref_fit_gates,
};

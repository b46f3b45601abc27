/* Streaming GEMV with f16 weights and f32 activations, nothing rounded.
 *
 * As in blocks/stream.h blocks stay for many rows and their warps take some at once, but X stays
 * f32. A step is 256 weights, eight a lane in one 16-byte load. In shared memory a step has the
 * first four activations of every lane, then the last four, so that neighbouring lanes read
 * neighbouring 16-byte words.
 */
#include "gen/blocks/stream.h"
#include "gen/stream_keys.h"

enum {
    WARP = 32,
    LANE_VALUES = 8,
    STEP_VALUES = WARP * LANE_VALUES,
    WORDS = LANE_VALUES / 2,
    PIECE_BYTES = 16,
    HALF_STEP_BYTES = WARP * PIECE_BYTES,
    STEP_BYTES = 2 * HALF_STEP_BYTES, /* of activations */
    F32_BYTES = 4,
    F16_BYTES = 2,
    TURN_STEPS = 4,
};

static unsigned step_count(const instance *in)
{
    return (unsigned)((in->shape.k + STEP_VALUES - 1) / STEP_VALUES);
}

/* Four activations a thread at once; zeros behind the end of a vector. */
static void stage(ptx *p, const instance *in, val tile, val x)
{
    enum { PIECES = STEP_VALUES / 4 }; /* of a step */
    unsigned pieces = step_count(in) * PIECES;
    for (unsigned v = 0; v < in->shape.m; v++) {
        val vector = add(p, x, (long long)v * in->shape.k * F32_BYTES);
        val into = add(p, tile, v * step_count(in) * STEP_BYTES);
        PTX_FOR (p, piece, tid_x(p), pieces, ptx_block(p)) {
            val within = bit_and(p, piece, PIECES - 1), step = div(p, piece, PIECES);
            val at = mad(p, step, imm(U32, STEP_BYTES),
                         mad(p, bit_and(p, within, 1), imm(U32, HALF_STEP_BYTES),
                             mad(p, shr(p, within, 1), imm(U32, PIECE_BYTES), into)));
            val exists = in->shape.k % STEP_VALUES ? lt(p, piece, in->shape.k / 4) : imm(PRED, 1);
            PTX_IF (p, exists) {
                val4 four = ld_const_v4(p, F32, mad_wide(p, piece, PIECE_BYTES, vector), 0);
                st_shared_v4(p, F32, at, 0, four);
            }
            if (exists.kind == VAL_REG)
                PTX_ELSE (p) {
                    val4 zeros = { { imm(F32, 0), imm(F32, 0), imm(F32, 0), imm(F32, 0) } };
                    st_shared_v4(p, F32, at, 0, zeros);
                }
        }
    }
    barrier(p);
}

typedef struct product {
    const instance *in;
    unsigned rows;
    val tile; /* at the lane's first piece */
    var sums[STREAM_ROWS * MAX_VECTORS];
} product;

static val half_of(ptx *p, const val4 *words, unsigned i)
{
    return convert(p, F32, halves(p, words->v[i / 2]).v[i % 2]);
}

/* Adds count steps; the weights of all are loaded before any is used. */
static void add_steps(ptx *p, product *s, const place weights[STREAM_ROWS], val tile,
                      unsigned first, unsigned count)
{
    val4 words[TURN_STEPS][STREAM_ROWS];
    for (unsigned i = 0; i < count; i++)
        for (unsigned r = 0; r < s->rows; r++)
            words[i][r] =
                ld_const_v4(p, U32, weights[r].base,
                            weights[r].offset + (int64_t)(first + i) * STEP_VALUES * F16_BYTES);
    for (unsigned i = 0; i < count; i++)
        for (unsigned v = 0; v < s->in->shape.m; v++) {
            int64_t at = ((int64_t)v * step_count(s->in) + first + i) * STEP_BYTES;
            val4 x[2] = { ld_shared_v4(p, F32, tile, at),
                          ld_shared_v4(p, F32, tile, at + HALF_STEP_BYTES) };
            for (unsigned r = 0; r < s->rows; r++) {
                var sum = s->sums[s->rows * v + r];
                for (unsigned j = 0; j < LANE_VALUES; j++)
                    assign(p, sum, fma(p, half_of(p, &words[i][r], j), x[j / 4].v[j % 4], sum));
            }
        }
}

/* Where a lane's weights are in each row, offset bytes further. */
static void point_at(ptx *p, const product *s, const place rows[STREAM_ROWS], val offset,
                     place weights[STREAM_ROWS])
{
    for (unsigned r = 0; r < s->rows; r++) {
        weights[r] = rows[r];
        weights[r].base = r && rows[r].offset ? weights[0].base : add(p, rows[r].base, offset);
    }
}

/* Lanes past the end of a row read its last piece instead. */
static void add_rest(ptx *p, product *s, const place rows[STREAM_ROWS], unsigned steps)
{
    place weights[STREAM_ROWS];
    unsigned pieces = (unsigned)s->in->shape.k % STEP_VALUES / LANE_VALUES;
    val piece = min(p, lane_id(p), pieces - 1);
    val offset =
        add(p, mul_wide(p, piece, PIECE_BYTES), imm(U64, (int64_t)steps * STEP_VALUES * F16_BYTES));
    point_at(p, s, rows, offset, weights);
    add_steps(p, s, weights, add(p, s->tile, steps * STEP_BYTES), 0, 1);
}

static void add_rows(ptx *p, product *s, const place rows[STREAM_ROWS])
{
    unsigned steps = (unsigned)s->in->shape.k / STEP_VALUES;
    unsigned turn_steps = TURN_STEPS / s->rows, turns = steps / turn_steps;
    val lane = mul_wide(p, lane_id(p), PIECE_BYTES);
    place weights[STREAM_ROWS];
    if (turns) {
        ptx_loop_work(p, s->rows * turn_steps * LANE_VALUES, "weights");
        PTX_FOR (p, turn, 0, turns, 1) {
            val moved = mad_wide(p, turn, turn_steps * STEP_VALUES * F16_BYTES, lane);
            point_at(p, s, rows, moved, weights);
            add_steps(p, s, weights, mad(p, turn, imm(U32, turn_steps * STEP_BYTES), s->tile), 0,
                      turn_steps);
        }
    }
    point_at(p, s, rows, lane, weights);
    for (unsigned step = turns * turn_steps; step < steps; step++)
        add_steps(p, s, weights, s->tile, step, 1);
    if (s->in->shape.k % STEP_VALUES)
        add_rest(p, s, rows, steps);
}

static void build(ptx *p, const instance *in)
{
    ptx_max_registers(p, stream_registers(in));
    gemv g = stream_parameters(p, in);
    val tile = shared_dynamic(p, "activations", F32);
    stage(p, in, tile, g.x);
    product s = { .in = in, .rows = (unsigned)in->rows_per_warp };
    s.tile = mad(p, lane_id(p), imm(U32, PIECE_BYTES), tile);
    unsigned count = s.rows * (unsigned)in->shape.m;
    val first = mul(p, stream_warp(p), s.rows), stride = mul(p, stream_warps(p), s.rows);
    PTX_FOR (p, row, first, g.n, stride) {
        place rows[STREAM_ROWS];
        val sums[STREAM_ROWS * MAX_VECTORS];
        stream_rows_of_turn(p, &g, row, s.rows, rows);
        for (unsigned i = 0; i < count; i++)
            s.sums[i] = var_f32(p, 0.0f);
        add_rows(p, &s, rows);
        for (unsigned i = 0; i < count; i++)
            sums[i] = get(p, s.sums[i]);
        spread_sums spread = block_sum_spread(p, sums, count, 1);
        gemv_store_turn(p, &g, row, s.rows, (unsigned)in->shape.m, spread);
    }
}

const family stream_f16_gemv = {
    .name = "stream_f16_gemv",
    .summary = "streaming f16 x f32 GEMV, x in shared memory",
    STREAM_FAMILY(F16, LANE_VALUES, 16, 2, "m*ceil_div(k, 256)*1024", build, ref_gemv, 3e-7),
};

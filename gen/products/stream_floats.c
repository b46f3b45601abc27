/* Streaming weights that are floats, nothing rounded: see stream.h. */
#include "gen/common/bytes.h"
#include "gen/products/stream.h"

enum {
    WARP = 32,
    PIECE_VALUES = STREAM_PIECE, /* of activations: 16 bytes */
    PIECE_BYTES = 16,
    PLANE_BYTES = WARP * PIECE_BYTES, /* of a step: a piece of every lane */
    TURN_STEPS = 4,
};

static unsigned value_bytes(const instance *in)
{
    return formats[instance_weights(in)].block_bytes;
}

/* Weights of a 16-byte load. */
static unsigned lane_values(const instance *in)
{
    return STREAM_LANE_BYTES / value_bytes(in);
}

static unsigned step_values(const instance *in)
{
    return WARP * lane_values(in);
}

static unsigned step_bytes(const instance *in)
{
    return step_values(in) * F32_BYTES;
}

/* A lane has a piece. Lanes of half the pieces have them in one plane, others in the next. */
void stream_floats_stage(ptx *p, const stream *s, const stream_part *part)
{
    unsigned of_step = step_values(s->in) / PIECE_VALUES, planes = of_step / WARP;
    val piece = mad(p, part->chunk, imm(U32, WARP), lane_id(p));
    val within = bit_and(p, piece, of_step - 1), step = div(p, piece, of_step);
    val vector = mad(p, part->vector, imm(U32, s->pass_steps * step_bytes(s->in)), s->staged);
    val at = mad(p, step, imm(U32, step_bytes(s->in)),
                 mad(p, bit_and(p, within, planes - 1), imm(U32, PLANE_BYTES),
                     mad(p, div(p, within, planes), imm(U32, PIECE_BYTES), vector)));
    st_shared_v4(p, F32, at, 0, ((val4){ { part->x[0], part->x[1], part->x[2], part->x[3] } }));
}

/* Adds count steps, the first of which the tile has as its step of that number; the weights of all
 * are loaded before any is used. */
static void add_steps(ptx *p, stream *s, const place weights[STREAM_ROWS], val tile, unsigned first,
                      unsigned count, unsigned in_tile)
{
    val4 words[TURN_STEPS][STREAM_ROWS];
    for (unsigned i = 0; i < count; i++)
        for (unsigned r = 0; r < s->rows; r++)
            words[i][r] =
                ld_const_v4(p, U32, weights[r].base,
                            weights[r].offset + (int64_t)(first + i) * WARP * STREAM_LANE_BYTES);
    for (unsigned i = 0; i < count; i++)
        for (unsigned v = 0; v < s->vectors; v++) {
            int64_t at = ((int64_t)v * s->pass_steps + in_tile + i) * step_bytes(s->in);
            val4 x[STREAM_LANE_BYTES / PIECE_VALUES];
            for (unsigned j = 0; j < lane_values(s->in) / PIECE_VALUES; j++)
                x[j] = ld_shared_v4(p, F32, tile, at + j * PLANE_BYTES);
            for (unsigned r = 0; r < s->rows; r++) {
                var sum = s->sums[s->rows * v + r];
                val w[STREAM_LANE_BYTES];
                s->f->floats(p, &words[i][r], w);
                for (unsigned j = 0; j < lane_values(s->in); j++)
                    assign(p, sum, fma(p, w[j], x[j / 4].v[j % 4], sum));
            }
        }
}

/* Where a lane's weights are in each row, offset bytes further. */
static void point_at(ptx *p, const stream *s, const place rows[STREAM_ROWS], val offset,
                     place weights[STREAM_ROWS])
{
    for (unsigned r = 0; r < s->rows; r++) {
        weights[r] = rows[r];
        weights[r].base = r && rows[r].offset ? weights[0].base : add(p, rows[r].base, offset);
    }
}

/* Lanes past the end of a row read its last piece instead. */
static void add_rest(ptx *p, stream *s, const place rows[STREAM_ROWS], unsigned steps,
                     unsigned in_tile)
{
    place weights[STREAM_ROWS];
    unsigned pieces = (unsigned)s->in->shape.k % step_values(s->in) / lane_values(s->in);
    val piece = min(p, lane_id(p), pieces - 1);
    val offset = add(p, mul_wide(p, piece, PIECE_BYTES),
                     imm(U64, (int64_t)steps * WARP * STREAM_LANE_BYTES));
    point_at(p, s, rows, offset, weights);
    add_steps(p, s, weights, add(p, s->tile, in_tile * step_bytes(s->in)), 0, 1, 0);
}

unsigned stream_floats_turn_steps(const instance *in)
{
    bool of_one = family_key(in->family, "rows_per_warp");
    return TURN_STEPS / (of_one ? (unsigned)in->rows_per_warp : STREAM_ROWS);
}

/* Turns from one on; the tile's first turn has another number. */
static void add_turns(ptx *p, stream *s, const place rows[STREAM_ROWS], val first, val end,
                      val of_tile)
{
    unsigned turn_steps = TURN_STEPS / s->rows;
    val lane = mul_wide(p, lane_id(p), PIECE_BYTES);
    place weights[STREAM_ROWS];
    ptx_loop_work(p, s->rows * turn_steps * lane_values(s->in), "weights");
    PTX_FOR (p, turn, first, end, 1) {
        val moved = mad_wide(p, turn, turn_steps * WARP * STREAM_LANE_BYTES, lane);
        val bytes = imm(U32, turn_steps * step_bytes(s->in));
        point_at(p, s, rows, moved, weights);
        add_steps(p, s, weights, mad(p, sub(p, turn, of_tile), bytes, s->tile), 0, turn_steps, 0);
    }
}

/* The last pass has what is left behind the turns. */
void stream_floats_add(ptx *p, stream *s, const place rows[STREAM_ROWS])
{
    unsigned steps = (unsigned)s->in->shape.k / step_values(s->in);
    unsigned turn_steps = TURN_STEPS / s->rows, turns = steps / turn_steps;
    unsigned passes = stream_passes(s->in), of_pass = s->pass_steps / turn_steps;
    unsigned before = (passes - 1) * s->pass_steps; /* the last pass */
    place weights[STREAM_ROWS];
    if (passes > 1)
        PTX_FOR (p, pass, 0, passes, 1) {
            val first = mul(p, pass, of_pass);
            stream_stage_pass(p, s, pass);
            add_turns(p, s, rows, first, min(p, add(p, first, of_pass), turns), first);
        }
    else if (turns)
        add_turns(p, s, rows, imm(U32, 0), imm(U32, turns), imm(U32, 0));
    point_at(p, s, rows, mul_wide(p, lane_id(p), PIECE_BYTES), weights);
    for (unsigned step = turns * turn_steps; step < steps; step++)
        add_steps(p, s, weights, s->tile, step, 1, step - before);
    if (s->in->shape.k % step_values(s->in))
        add_rest(p, s, rows, steps, steps - before);
}

static void floats_f32(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 4; i++)
        values[i] = bits_as(p, F32, words->v[i]);
}

static void floats_f16(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 8; i++)
        values[i] = convert(p, F32, halves(p, words->v[i / 2]).v[i % 2]);
}

/* A bf16 is the upper half of an f32. */
static void floats_bf16(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 8; i++)
        values[i] = bits_as(
            p, F32, i % 2 ? bit_and(p, words->v[i / 2], 0xffff0000) : shl(p, words->v[i / 2], 16));
}

static void floats_e4m3(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 4; i++)
        e4m3_as_f32(p, words->v[i], values + (size_t)4 * i);
}

static void floats_e5m2(ptx *p, const val4 *words, val values[STREAM_LANE_BYTES])
{
    for (unsigned i = 0; i < 4; i++)
        e5m2_as_f32(p, words->v[i], values + (size_t)4 * i);
}

const stream_format stream_F32 = { .scales = NO_SCALE, .floats = floats_f32 };
const stream_format stream_F16 = { .scales = NO_SCALE, .floats = floats_f16 };
const stream_format stream_BF16 = { .scales = NO_SCALE, .floats = floats_bf16 };
const stream_format stream_E4M3 = { .scales = NO_SCALE, .floats = floats_e4m3 };
const stream_format stream_E5M2 = { .scales = NO_SCALE, .floats = floats_e5m2 };

/* Streaming products of float weights, without rounding: see stream_plan.h. */
#include "gen/products/stream_plan.h"

enum { PIECE_BYTES = 16, MOST_LOOP_STEPS = 4 };

/* Returns the weights of a 16-byte load. */
static unsigned lane_values(const stream *s)
{
    return STREAM_LANE_BYTES / s->weights->block_bytes;
}

/* Adds `count` steps, from step `first` of the rows and step `in_tile` of the tile. All weights are
 * loaded before any is used. */
static void add_steps(ptx *p, stream *s, const place weights[STREAM_ROWS], val tile, unsigned first,
                      unsigned count, unsigned in_tile)
{
    val4 words[MOST_LOOP_STEPS][STREAM_ROWS];
    for (unsigned i = 0; i < count; i++)
        for (unsigned r = 0; r < s->rows; r++)
            words[i][r] =
                ld_const_v4(p, U32, weights[r].base,
                            weights[r].offset + (int64_t)(first + i) * WARP * STREAM_LANE_BYTES);
    for (unsigned i = 0; i < count; i++)
        for (unsigned v = 0; v < s->vectors; v++) {
            int64_t at = ((int64_t)v * s->pass_steps + in_tile + i) * s->x.bytes;
            val x[STREAM_LANE_BYTES];
            for (unsigned j = 0; j < lane_values(s) / STREAM_PIECE; j++)
                load_floats(p, tile, at + j * s->x.plane, STREAM_PIECE, x + j * STREAM_PIECE);
            for (unsigned r = 0; r < s->rows; r++) {
                var sum = s->sums[s->rows * v + r];
                val w[STREAM_LANE_BYTES];
                s->f->floats(p, &words[i][r], w);
                for (unsigned j = 0; j < lane_values(s); j++)
                    assign(p, sum, fma(p, w[j], x[j], sum));
            }
        }
}

/* Sets a lane's addresses in each row, plus offset bytes. */
static void point_at(ptx *p, const stream *s, const place rows[STREAM_ROWS], val offset,
                     place weights[STREAM_ROWS])
{
    for (unsigned r = 0; r < s->rows; r++) {
        weights[r] = rows[r];
        weights[r].base = r && rows[r].offset ? weights[0].base : add(p, rows[r].base, offset);
    }
}

/* Adds iterations first .. end - 1 of loop_steps steps. The tile starts with iteration of_tile. */
static void add_iterations(ptx *p, stream *s, const place rows[STREAM_ROWS], val first, val end,
                           val of_tile)
{
    unsigned loop_steps = s->loop_steps;
    val lane = mul_wide(p, lane_id(p), PIECE_BYTES);
    place weights[STREAM_ROWS];
    ptx_loop_work(p, s->rows * loop_steps * lane_values(s), "weights");
    PTX_FOR (p, turn, first, end, 1) {
        val moved = mad_wide(p, turn, loop_steps * WARP * STREAM_LANE_BYTES, lane);
        val bytes = imm(U32, loop_steps * s->x.bytes);
        point_at(p, s, rows, moved, weights);
        add_steps(p, s, weights, mad(p, sub(p, turn, of_tile), bytes, s->tile), 0, loop_steps, 0);
    }
}

/* Adds all steps of the rows. Steps after the last whole iteration belong to the last pass. */
void stream_floats_add(ptx *p, stream *s, const place rows[STREAM_ROWS])
{
    unsigned steps = (unsigned)s->in->shape.k / s->step_values;
    unsigned loop_steps = s->loop_steps, iterations = steps / loop_steps;
    unsigned passes = s->passes, of_pass = s->pass_steps / loop_steps;
    unsigned before = (passes - 1) * s->pass_steps; /* steps before the last pass */
    place weights[STREAM_ROWS];
    if (passes > 1)
        PTX_FOR (p, pass, 0, passes, 1) {
            val first = mul(p, pass, of_pass);
            stream_stage_pass(p, s, pass);
            add_iterations(p, s, rows, first, min(p, add(p, first, of_pass), iterations), first);
        }
    else if (iterations)
        add_iterations(p, s, rows, imm(U32, 0), imm(U32, iterations), imm(U32, 0));
    point_at(p, s, rows, mul_wide(p, lane_id(p), PIECE_BYTES), weights);
    for (unsigned step = iterations * loop_steps; step < steps; step++)
        add_steps(p, s, weights, s->tile, step, 1, step - before);
    unsigned rest = (unsigned)s->in->shape.k % s->step_values;
    if (rest) { /* lanes past the end of a row read its last 16 bytes instead */
        val piece = min(p, lane_id(p), rest / lane_values(s) - 1);
        val offset = add(p, mul_wide(p, piece, PIECE_BYTES),
                         imm(U64, (int64_t)steps * WARP * STREAM_LANE_BYTES));
        point_at(p, s, rows, offset, weights);
        add_steps(p, s, weights, add(p, s->tile, (steps - before) * s->x.bytes), 0, 1, 0);
    }
}

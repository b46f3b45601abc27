#include "gen/recurrent/scan.h"

#include "gen/common/reduce.h"
#include "gen/common/functions.h"
#include "kernel/problem.h"

enum { TILE = SCAN_TILE, PIECE = SCAN_PIECE, GROUP_ROWS = CONV_GROUP_ROWS };

unsigned scan_threads(const scan *s)
{
    return TILE / s->channels * s->lanes;
}

val scan_row(ptx *p, const scan *s, val number)
{
    val place = conv_rows_are_many(s->in) ? rem(p, number, GROUP_ROWS) : number;
    return mad(p, place, s->row_bytes, s->shared);
}

int64_t scan_vector_at(const scan *s, unsigned vector)
{
    return (2 * s->size + vector * TILE) * F32_BYTES;
}

int64_t scan_factors_at(const scan *s)
{
    return scan_vector_at(s, SCAN_VECTORS);
}

/* Returns the offset of a thread's piece of the state from its first one: half a tile from channel
 * to channel. */
static int64_t piece_at(const scan *s, unsigned channel, unsigned piece)
{
    return ((int64_t)channel * (TILE / s->channels) * s->size + (int64_t)piece * s->lanes * PIECE) *
           F32_BYTES;
}

static unsigned pieces_of(const scan *s)
{
    return s->size / (s->lanes * PIECE);
}

static void load_state(ptx *p, scan *s)
{
    val channel = mad(p, s->tile, TILE, s->channel);
    val behind = mul_wide(p, mad(p, channel, s->size, mul(p, s->piece, PIECE)), F32_BYTES);
    s->place = add(p, s->rows.state, behind);
    for (unsigned i = 0; i < s->channels; i++)
        for (unsigned j = 0; j < pieces_of(s) * PIECE; j++)
            s->state[i][j] = var_f32(p, 0.0f);
    PTX_IF (p, ne(p, s->rows.position, 0))
        for (unsigned i = 0; i < s->channels; i++)
            for (unsigned j = 0; j < pieces_of(s); j++) {
                val4 four = ld_global_v4(p, F32, s->place, piece_at(s, i, j));
                for (unsigned l = 0; l < PIECE; l++)
                    assign(p, s->state[i][j * PIECE + l], four.v[l]);
            }
    if (!s->by_channel)
        return;
    val4 a = ld_const_v4(p, F32, add(p, parameter(p, "a"), behind), 0);
    for (unsigned l = 0; l < PIECE; l++)
        s->a[l] = var_like(p, a.v[l]);
}

static void step(ptx *p, const scan *s, val number)
{
    val row = scan_row(p, s, number), x[SCAN_MOST_CHANNELS], added[SCAN_MOST_CHANNELS],
        y[SCAN_MOST_CHANNELS];
    val of_channel = mad(p, s->channel, F32_BYTES, row), decay = { 0 };
    val of_piece = mad(p, s->piece, PIECE * F32_BYTES, row);
    val delta = ld_shared(p, F32, s->by_channel ? of_channel : row, scan_factors_at(s));
    if (!s->by_channel)
        decay = ld_shared(p, F32, row, scan_factors_at(s) + SCAN_DECAY * F32_BYTES);
    for (unsigned i = 0; i < s->channels; i++) {
        int64_t behind = i * (TILE / s->channels) * F32_BYTES;
        x[i] = ld_shared(p, F32, of_channel, scan_vector_at(s, SCAN_X) + behind);
        added[i] = mul(p, x[i], delta);
        y[i] = imm(F32, 0);
    }
    for (unsigned j = 0; j < pieces_of(s); j++) {
        int64_t at = piece_at(s, 0, j);
        val4 b = ld_shared_v4(p, F32, of_piece, at);
        val4 c = ld_shared_v4(p, F32, of_piece, s->size * F32_BYTES + at);
        for (unsigned i = 0; i < s->channels; i++)
            for (unsigned l = 0; l < PIECE; l++) {
                var element = s->state[i][j * PIECE + l];
                if (s->by_channel) { /* exp(delta a); an infinite a makes it NaN */
                    val a = get(p, s->a[l]);
                    decay = fma(p, a, imm(F32, 0), power_of_e(p, mul(p, delta, a)));
                }
                assign(p, element, fma(p, b.v[l], added[i], mul(p, element, decay)));
                y[i] = fma(p, c.v[l], element, y[i]);
            }
    }
    for (unsigned i = 0; i < s->channels; i++)
        y[i] = group_sum(p, y[i], s->lanes);
    PTX_IF (p, eq(p, s->piece, 0))
        for (unsigned i = 0; i < s->channels; i++)
            st_shared(p, F32, of_channel,
                      scan_vector_at(s, SCAN_Y) + i * (TILE / s->channels) * F32_BYTES,
                      fma(p, x[i], s->d, y[i]));
}

/* Returns &y[row][first channel of the tile + lane] for a row of the block. */
static val y_of(ptx *p, const scan *s, val number)
{
    val tile = mad(p, add(p, s->rows.row, number), imm(U32, s->inner / TILE), s->tile);
    return mad_wide(p, mad(p, tile, TILE, lane_id(p)), F32_BYTES, parameter(p, "y"));
}

static void advance_rows(ptx *p, const scan *s)
{
    phase(p, "prepare rows");
    s->prepare(p, s);
    barrier(p);
    phase(p, "recurrence, row by row");
    ptx_loop_work(p, s->channels * pieces_of(s) * PIECE, "elements of the state");
    PTX_FOR (p, number, s->first, s->end, 1)
        step(p, s, number);
    barrier(p);
    phase(p, "store y"); /* each warp processes a row */
    PTX_FOR (p, number, add(p, s->first, warp_id(p)), s->end, scan_threads(s) / WARP) {
        val from = mad(p, lane_id(p), F32_BYTES, scan_row(p, s, number));
        val y = ld_shared(p, F32, from, scan_vector_at(s, SCAN_Y));
        val gate = ld_shared(p, F32, from, scan_vector_at(s, SCAN_GATE));
        st_global(p, F32, y_of(p, s, number), 0, mul(p, y, gate));
    }
}

void scan_start(ptx *p, scan *s)
{
    bool many = conv_rows_are_many(s->in);
    unsigned rows = many ? GROUP_ROWS : (unsigned)s->in->shape.m;
    s->row_bytes =
        (unsigned)scan_factors_at(s) + (s->by_channel ? TILE : PIECE) * (unsigned)F32_BYTES;
    s->shared = shared_array(p, "rows", F32, rows * s->row_bytes / F32_BYTES);
    if (many)
        s->rows.word = shared_array(p, "word", U32, 1);
    s->channel = named(p, "channel", div(p, tid_x(p), s->lanes));
    s->piece = rem(p, tid_x(p), s->lanes);
}

void scan_find_rows(ptx *p, scan *s)
{
    conv_rows_find(p, &s->rows);
    s->rows.x = mad_wide(p, s->rows.row, s->rows.columns * F32_BYTES, parameter(p, "x"));
    PTX_IF (p, ge(p, s->rows.position, imm(U32, s->in->shape.max_seq_len))) {
        PTX_IF (p, lt(p, tid_x(p), TILE))
            st_global(p, F32, y_of(p, s, imm(U32, 0)), 0, imm(F32, 0));
        ret(p);
    }
}

void scan_advance(ptx *p, scan *s)
{
    phase(p, "load the state");
    load_state(p, s);
    if (conv_rows_are_many(s->in))
        PTX_FOR (p, group, imm(U32, 0), s->rows.count, GROUP_ROWS) {
            s->first = group;
            s->end = min(p, add(p, group, GROUP_ROWS), s->rows.count);
            advance_rows(p, s);
            barrier(p);
        }
    else {
        s->first = imm(U32, 0);
        s->end = s->rows.count;
        advance_rows(p, s);
    }
    phase(p, "store the state");
    for (unsigned i = 0; i < s->channels; i++)
        for (unsigned j = 0; j < pieces_of(s); j++) {
            val4 four;
            for (unsigned l = 0; l < PIECE; l++)
                four.v[l] = get(p, s->state[i][j * PIECE + l]);
            st_global_v4(p, F32, s->place, piece_at(s, i, j), four);
        }
}

/* Streaming products of integer weights with scales: see stream_plan.h. */
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"
#include "gen/formats/tools.h"
#include "gen/products/stream_plan.h"

enum { PIECE_BYTES = 16, MOST_AT_ONCE = 4 /* steps in flight */ };

/* Addresses of a lane's activations in the tile, from some step on: quants, and scales and sums. */
typedef struct tile_place {
    val quants, beside;
    unsigned first; /* first step in the tile, in the caller's numbering of steps */
} tile_place;

static tile_place tile_at(ptx *p, const stream *s, val steps, unsigned each)
{
    unsigned bytes = each * s->x.bytes;
    tile_place at = { .quants = mad(p, steps, imm(U32, bytes), s->tile) };
    at.beside = s->beside.kind ? mad(p, steps, imm(U32, bytes), s->beside) : at.quants;
    return at;
}

/* Scales d of a lane's activations in a step, and their sum terms. */
typedef struct stream_x {
    val d[STREAM_SEGMENTS], sum[STREAM_SEGMENTS];
} stream_x;

static stream_x load_beside(ptx *p, const stream *s, const tile_place *tile, int64_t offset)
{
    const stream_format *f = s->f;
    int64_t at = offset + s->x.quants;
    if (s->x.words == 2) {
        val2 words = ld_shared_v2(p, F32, tile->beside, at);
        return (stream_x){ .d = { words.v[0], words.v[1] }, .sum = { words.v[1] } };
    }
    val4 d = ld_shared_v4(p, F32, tile->beside, at), sums = { { d.v[2], d.v[3] } };
    if (f->twos && stream_has_sums(f))
        return (stream_x){ .d = { [0] = d.v[0], [2] = d.v[1] },
                           .sum = { [0] = d.v[2], [2] = d.v[3] } };
    if (stream_has_sums(f) && f->segments == 4)
        sums = ld_shared_v4(p, F32, tile->beside, at + s->x.sums_at);
    stream_x x;
    for (unsigned i = 0; i < STREAM_SEGMENTS; i++) {
        x.d[i] = d.v[i];
        x.sum[i] = sums.v[i];
    }
    return x;
}

static val products(ptx *p, const stream_format *f, const val q[STREAM_FACTORS], const val4 *x,
                    val sum)
{
    val start = sum;
    if (f->unit > 1)
        sum = imm(S32, 0);
    for (unsigned i = 0; i < STREAM_WORDS; i++)
        sum = dp4a(p, q[i], x->v[i], sum);
    if (f->unit > 1)
        sum = mad(p, sum, imm(S32, f->unit), start);
    for (unsigned i = 0; i < STREAM_WORDS && f->unit; i++)
        sum = dp4a(p, q[STREAM_WORDS + i], x->v[i], sum);
    return sum;
}

/* Returns the start value of a segment's dp4a sum, or of the lane's sum with one scale. */
static val start_of(ptx *p, const stream_format *f, const stream_x *x, unsigned segment)
{
    return f->offset ? bits_as(p, S32, x->sum[segment]) : imm(S32, DP4A_START);
}

/* Returns the number of segments that share a scale. */
static unsigned segments_of_scale(const stream_format *f)
{
    return f->twos ? 2 : 1;
}

static val scaled_sums(ptx *p, const stream_format *f, const stream_weights *w, const stream_x *x,
                       const val sums[STREAM_SEGMENTS], val acc)
{
    val product = { 0 }, low = { 0 };
    for (unsigned i = 0; i < f->segments; i += segments_of_scale(f)) {
        val scale = w->scale[i].kind ? mul(p, w->scale[i], x->d[i]) : x->d[i];
        product = i ? fma(p, scale, sums[i], product) : mul(p, scale, sums[i]);
    }
    acc = fma(p, w->d, product, acc);
    for (unsigned i = 0; i < f->segments && f->minima; i += segments_of_scale(f))
        low = i ? fma(p, w->min[i], x->sum[i], low) : mul(p, w->min[i], x->sum[i]);
    return f->minima ? fma(p, neg(p, w->dmin), low, acc) : acc;
}

/* Adds products of CROSSWISE words: one word of 16 segments; two neighbouring segments share d. */
static void add_crosswise(ptx *p, stream *s, const stream_weights *w, unsigned row, unsigned rows,
                          const tile_place *tile, int64_t at, unsigned vector)
{
    val product[STREAM_ROWS];
    unsigned plane = s->x.plane;
    int64_t starts_at = at + s->x.quants;
    int64_t scales_at = starts_at + 2 * s->x.plane;
    val4 starts, d;
    for (unsigned pair = 0; pair < CROSS_SCALES; pair++) {
        unsigned four = pair / 2, word = pair % STREAM_WORDS, first = 2 * (pair % 2);
        if (word == 0) {
            starts = ld_shared_v4(p, S32, tile->quants, starts_at + pair / STREAM_WORDS * plane);
            d = ld_shared_v4(p, F32, tile->beside, scales_at + pair * F32_BYTES);
        }
        val4 x = ld_shared_v4(p, S32, tile->quants, at + four * plane);
        for (unsigned r = 0; r < rows; r++) {
            const val *q = w[r].q[four];
            val sum = dp4a(p, q[first], x.v[first], starts.v[word]);
            sum = dp4a_sum_as_f32(p, dp4a(p, q[first + 1], x.v[first + 1], sum));
            product[r] = pair ? fma(p, d.v[word], sum, product[r]) : mul(p, d.v[word], sum);
        }
    }
    for (unsigned r = 0; r < rows; r++) {
        var sum = s->sums[s->rows * vector + row + r];
        assign(p, sum, fma(p, w[r].d, product[r], sum));
    }
}

/* Adds the products of a vector's step with the weights of `rows` rows. */
static void add_products(ptx *p, stream *s, const stream_weights *w, unsigned row, unsigned rows,
                         const tile_place *tile, unsigned step, unsigned vector)
{
    const stream_format *f = s->f;
    int64_t at = ((int64_t)vector * s->pass_steps + step - tile->first) * s->x.bytes;
    if (f->order == CROSSWISE) {
        add_crosswise(p, s, w, row, rows, tile, at, vector);
        return;
    }
    unsigned of_scale = segments_of_scale(f);
    stream_x x = load_beside(p, s, tile, at);
    val4 q[STREAM_SEGMENTS];
    val sums[STREAM_ROWS][STREAM_SEGMENTS];
    for (unsigned i = 0; i < f->segments; i++) {
        q[i] = ld_shared_v4(p, S32, tile->quants, at + i * s->x.plane);
        for (unsigned r = 0; r < rows && f->scales == SCALES; r++) {
            unsigned first = i - i % of_scale;
            val sum = i == first ? start_of(p, f, &x, i) : sums[r][first];
            sum = products(p, f, w[r].q[i], &q[i], sum);
            sums[r][first] = i == first + of_scale - 1 ? dp4a_sum_as_f32(p, sum) : sum;
        }
    }
    for (unsigned r = 0; r < rows; r++) {
        var sum = s->sums[s->rows * vector + row + r];
        val acc = get(p, sum);
        if (f->scales == SCALES) {
            acc = scaled_sums(p, f, &w[r], &x, sums[r], acc);
        } else {
            /* Both segments' dp4a sums become one, in the unit of the last segment. */
            unsigned ratio = 1u << (f->up[1] - f->up[0]);
            val start = start_of(p, f, &x, 0);
            val sum_of_both = products(p, f, w[r].q[0], &q[0], ratio == 1 ? start : imm(S32, 0));
            if (ratio != 1)
                sum_of_both = mad(p, sum_of_both, imm(S32, ratio), start);
            sum_of_both = dp4a_sum_as_f32(p, products(p, f, w[r].q[1], &q[1], sum_of_both));
            acc = fma(p, w[r].d, mul(p, x.d[0], sum_of_both), acc);
            if (f->minima)
                acc = fma(p, w[r].dmin, x.sum[0], acc);
        }
        assign(p, sum, acc);
    }
}

void stream_load_words(ptx *p, const stream_format *f, const stream_row *row, int64_t offset,
                       val words[STREAM_LOADED])
{
    for (const stream_load *l = f->loads; l < f->loads + STREAM_LOADS && l->words; l++) {
        val from = l->from == FROM_BLOCK   ? row->block
                   : l->from == FROM_LINES ? row->lines
                                           : row->at[l->from];
        if (l->words == 1) {
            val word = ld_const(p, l->type, from, offset + l->offset);
            *words++ = l->as_f32 ? convert(p, F32, word) : word;
        } else if (l->words == 2) {
            val2 two = ld_const_v2(p, U32, from, offset + l->offset);
            *words++ = two.v[0];
            *words++ = two.v[1];
        }
        for (unsigned i = 0; l->words > 2 && i < l->words; i += STREAM_WORDS) {
            val4 line =
                ld_const_v4(p, U32, from, offset + l->offset + i * (int64_t)sizeof(uint32_t));
            for (unsigned j = 0; j < STREAM_WORDS; j++)
                *words++ = line.v[j];
        }
    }
}

/* Adds several steps at constant offsets, in the order: all rows of a step, then the next step. */
static void add_run(ptx *p, stream *s, const stream_row rows[STREAM_ROWS], const tile_place *tile,
                    unsigned first, unsigned count)
{
    unsigned all = count * s->rows, at_once = s->loads_at_once, here;
    bool stay = s->loads_stay;
    for (unsigned from = 0; from < all; from += here) {
        val words[MOST_AT_ONCE][STREAM_LOADED];
        stream_weights w[STREAM_ROWS];
        here = all - from < at_once ? all - from : at_once;
        ptx_keep_loads(p, stay);
        for (unsigned i = 0; i < here; i++) {
            const stream_row *row = &rows[(from + i) % s->rows];
            int64_t step = (int64_t)(first + (from + i) / s->rows) * s->step_bytes;
            stream_load_words(p, s->f, row, row->offset + step, words[i]);
        }
        ptx_keep_loads(p, false);
        if (stay)
            warp_barrier(p);
        for (unsigned i = 0, of_step; i < here; i += of_step) {
            unsigned row = (from + i) % s->rows, step = first + (from + i) / s->rows;
            of_step = here - i < s->rows - row ? here - i : s->rows - row;
            for (unsigned r = 0; r < of_step; r++)
                w[r] = s->f->decode(p, &rows[row + r], words[i + r]);
            for (unsigned v = 0; v < s->vectors; v++)
                add_products(p, s, w, row, of_step, tile, step, v);
        }
    }
}

/* Returns the shift of a row's pieces from the address of one of them. */
static stream_shift shift_of(ptx *p, const stream *s, val row, val piece)
{
    unsigned alignment = s->weights->alignment, rows = s->alignment;
    val start = bit_and(p, convert(p, U32, piece), STREAM_LANE_BYTES - 1);
    if (s->f->order == EIGHTS) {
        val left = bit_and(p, s->lane.rotation, PIECE_BYTES / 2);
        return stream_shift_new(p, s->f, start, alignment, sub(p, start, left), alignment);
    }
    if (s->f->order >= IN_ORDER)
        return stream_shift_new(p, s->f, start, alignment, start, alignment);
    val back = bit_and(p, convert(p, U32, row), STREAM_LANE_BYTES - 1);
    return stream_shift_new(p, s->f, start, alignment, back, rows);
}

/* Returns a lane's block in a step. Lanes past the row's end in the last step get its last
 * block. */
static val block_of_step(ptx *p, const stream *s, val step)
{
    const format_info *weights = s->weights;
    unsigned of_step = s->step_values / weights->block_values;
    unsigned last = (unsigned)s->in->shape.k / weights->block_values - 1;
    return min(p, mad(p, step, imm(U32, of_step), s->lane.block), last);
}

stream_row stream_row_at(ptx *p, const stream *s, val row, val block, bool own)
{
    val piece = add(p, block, convert(p, U64, s->lane.piece));
    bool alike = s->alignment == STREAM_LANE_BYTES;
    stream_row at = { .lane = &s->lane,
                      .block = block,
                      .lines = stream_first_line(p, s->f, piece) };
    at.shift = alike ? s->lane.shift : shift_of(p, s, row, piece);
    at.start =
        alike && own ? s->lane.start : bit_and(p, convert(p, U32, block), STREAM_LANE_BYTES - 1);
    if (s->f->row_new)
        s->f->row_new(p, &at);
    return at;
}

/* Sets the rows' pointers to a block of the lane. own: it is the lane's own block of its step. */
static void point_at(ptx *p, const stream *s, const place addresses[STREAM_ROWS], val block,
                     bool own, stream_row rows[STREAM_ROWS])
{
    for (unsigned r = 0; r < s->rows; r++) {
        if (addresses[r].offset)
            rows[r] = rows[0];
        else
            rows[r] =
                stream_row_at(p, s, addresses[r].base,
                              mad_wide(p, block, s->weights->block_bytes, addresses[r].base), own);
        rows[r].offset = addresses[r].offset;
    }
}

/* Adds iterations first .. end - 1 of loop_steps steps. The tile starts with iteration of_tile. */
static void add_iterations(ptx *p, stream *s, const place addresses[STREAM_ROWS],
                           const stream_row rows[STREAM_ROWS], val first, val end, val of_tile)
{
    unsigned loop_steps = s->loop_steps;
    ptx_loop_work(p, s->rows * loop_steps * s->step_values / s->lanes, "weights");
    PTX_FOR (p, turn, first, end, 1) {
        stream_row here[STREAM_ROWS];
        if (s->clamped) {
            point_at(p, s, addresses, block_of_step(p, s, turn), false, here);
        } else {
            val bytes = mul_wide(p, turn, loop_steps * s->step_bytes);
            for (unsigned r = 0; r < s->rows; r++) {
                here[r] = rows[r];
                here[r].block = add(p, rows[r].block, bytes);
                here[r].lines = add(p, rows[r].lines, bytes);
                for (int i = 0; i < STREAM_POINTERS; i++)
                    if (rows[r].at[i].kind)
                        here[r].at[i] = add(p, rows[r].at[i], bytes);
            }
        }
        tile_place there = tile_at(p, s, sub(p, turn, of_tile), loop_steps);
        add_run(p, s, here, &there, 0, loop_steps);
    }
}

/* Adds all steps of the rows. Steps after the last whole iteration belong to the last pass. */
void stream_integers_add(ptx *p, stream *s, const place addresses[STREAM_ROWS])
{
    stream_row rows[STREAM_ROWS], last[STREAM_ROWS];
    bool clamped = s->clamped, apart = s->ragged && !clamped;
    unsigned together = s->steps - apart, loop_steps = s->loop_steps;
    unsigned iterations = together / loop_steps, passes = s->passes;
    tile_place tile = tile_at(p, s, imm(U32, 0), 0);
    tile.first = (passes - 1) * s->pass_steps;
    point_at(p, s, addresses, s->lane.block, true, rows);
    if (passes > 1) {
        unsigned of_pass = s->pass_steps / loop_steps;
        PTX_FOR (p, first, 0, passes * of_pass,
                 of_pass) { /* of a pass; counting passes needs a register more */
            stream_stage_pass(p, s, div(p, first, of_pass));
            add_iterations(p, s, addresses, rows, first, min(p, add(p, first, of_pass), iterations),
                           first);
        }
    } else if (together > loop_steps || clamped) {
        add_iterations(p, s, addresses, rows, imm(U32, 0), imm(U32, iterations), imm(U32, 0));
    } else {
        iterations = 0;
    }
    add_run(p, s, rows, &tile, iterations * loop_steps, together - iterations * loop_steps);
    if (apart) {
        point_at(p, s, addresses, block_of_step(p, s, imm(U32, together)), false, last);
        tile = tile_at(p, s, imm(U32, together - tile.first), 1);
        add_run(p, s, last, &tile, 0, 1);
    }
}

void stream_lane_begin(ptx *p, stream *s, val lane)
{
    s->lane = stream_lane_at(p, s, lane);
    s->lane.table = s->table;
    s->lane.table_bytes = s->f->table_bytes;
    s->lane.codes = s->of_parts;
    if (s->f->lane_new)
        s->f->lane_new(p, &s->lane);
    if (s->weights->alignment < STREAM_LANE_BYTES && s->alignment == STREAM_LANE_BYTES) {
        unsigned alignment = s->weights->alignment;
        bool as_rotated = s->f->order < EIGHTS;
        s->lane.shift = stream_shift_new(p, s->f, s->lane.rotation, alignment, s->lane.rotation,
                                         as_rotated ? STREAM_LANE_BYTES : alignment);
        if (s->f->order == EIGHTS)
            s->lane.shift.by_eight = (val){ 0 };
    }
}

void stream_integers_begin(ptx *p, stream *s)
{
    enum { FEW_WORDS = 2 };
    val lane = lane_in_group(p, s->lanes);
    stream_lane_begin(p, s, lane);
    if (s->f->order == CROSSWISE)
        s->beside = mad(p, s->lane.block, imm(U32, CROSS_SCALES * F32_BYTES), s->staged);
    else if (s->x.words == FEW_WORDS)
        s->beside = mad(p, lane, imm(U32, FEW_WORDS * F32_BYTES), s->staged);
    s->tile = mad(p, lane, imm(U32, PIECE_BYTES), s->staged);
}

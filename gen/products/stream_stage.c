#include "gen/products/stream_plan.h"

#include "gen/common/reduce.h"
#include "gen/common/q8_1.h"
#include "gen/formats/tools.h"

enum { PIECE_BYTES = 16 };

/* A chunk of a vector: 16 lines as q8_1.h draws them, or a lane's STREAM_PIECE floats. Neighbouring
 * lanes load neighbouring bytes. */
typedef struct chunk {
    val vector, number; /* index of its vector, and of the chunk in the pass */
    val of_x;           /* index of the chunk in its vector */
    q8_lines lines;     /* floats: only exists[0] */
    val x[Q8_LANE_VALUES], gamma[Q8_LANE_VALUES];
    val q[Q8_WORDS]; /* x in 8 bits, instead of x and gamma */
    val d;           /* scale of the lane's segment of q; VAL_NONE: X is f32 */
} chunk;

static unsigned planes_of_floats(const stream *s)
{
    return s->step_values / (STREAM_PIECE * WARP);
}

/* Returns the order of a lane's bits in which eight neighbouring lanes store to all banks: pieces
 * whose indices in their planes are different modulo 8. Line l is, by segments per lane:
 *
 *   two                        pieces l of two planes
 *   four                       pieces l / 2 of two of four planes
 *   four, and index_bit = 1    pieces 2 (l / 4) + half of one of four planes
 *
 * Floats: piece i is in plane i % planes. */
static const lane_bits *bits_of_lane(const stream *s)
{
    static const lane_bits two_segments = { { 0, 1, 3, 2, 4 } }, four = { { 0, 1, 3, 4, 2 } },
                           with_index_bit = { { 3, 0, 1, 4, 2 } },
                           two_planes = { { 4, 0, 1, 2, 3 } }, four_planes = { { 3, 4, 0, 1, 2 } };
    const stream_format *f = s->f;
    unsigned planes = planes_of_floats(s);
    if (f->floats)
        return planes == 1 ? &q8_usual_bits : planes == 2 ? &two_planes : &four_planes;
    if (f->order == CROSSWISE)
        return &q8_usual_bits;
    return f->index_bit ? &with_index_bit : f->segments == 2 ? &two_segments : &four;
}

/* Returns the lane's piece of a chunk of floats. */
static val piece_of_lane(ptx *p, const stream *s)
{
    unsigned planes = planes_of_floats(s), lanes = WARP / planes;
    val lane = lane_id(p);
    return mad(p, rem(p, lane, lanes), planes, div(p, lane, lanes));
}

stream_lane stream_lane_at(ptx *p, const stream *s, val lane)
{
    unsigned lanes = s->weights->block_values / (STREAM_SEGMENT * s->f->segments);
    stream_lane l = { .block = div(p, lane, lanes), .part = rem(p, lane, lanes) };
    l.piece = imm(U32, s->f->quants);
    if (s->f->piece)
        l.piece = add(p, s->f->piece(p, l.part), l.piece);
    val start = mul(p, l.block, s->weights->block_bytes);
    l.start = bit_and(p, start, STREAM_LANE_BYTES - 1);
    l.rotation = bit_and(p, add(p, start, l.piece), STREAM_LANE_BYTES - 1);
    return l;
}

/* Selects numbers[index] by predicates. */
static val by_index(ptx *p, val index, unsigned count, const val *numbers)
{
    val number = numbers[0];
    for (unsigned i = 1; i < count; i++)
        number = select(p, eq(p, index, i), numbers[i], number);
    return number;
}

/* Returns the factor of unshifted quants of a segment; for ONE_SCALE, of the last segment. */
static unsigned factor_of(const stream_format *f, unsigned index)
{
    return 1u << f->up[f->scales == ONE_SCALE ? f->segments - 1 : index];
}

/* Returns a segment's sum term: d times the sum of x for minima, else the start value of the dp4a
 * sum, which includes the format's offset. */
static val sum_word(ptx *p, const stream_format *f, const q8_lane_place *at, val index,
                    const val q[STREAM_WORDS], val d)
{
    val sum = imm(S32, 0), offsets[STREAM_SEGMENTS];
    for (int i = 0; i < STREAM_WORDS; i++)
        sum = dp4a(p, imm(U32, 0x01010101), q[i], sum);
    if (f->scales == ONE_SCALE || f->twos)
        sum = q8_add_halves(p, at, sum);
    if (f->minima)
        return bits_as(p, U32, mul(p, d, convert(p, F32, sum)));
    for (unsigned i = 0; i < f->segments; i++)
        offsets[i] = imm(S32, f->offset * (int)factor_of(f, i));
    return as(p, U32, mad(p, sum, by_index(p, index, f->segments, offsets), imm(S32, DP4A_START)));
}

/* Interleaves the words of both segments of a line: the first lane gets the lower halves. */
static void pair(ptx *p, const q8_lane_place *at, val index, val q[STREAM_WORDS])
{
    enum { OWN_FIRST = 0x5140, OWN_SECOND = 0x3726 };
    val selector = select(p, eq(p, index, 0), imm(U32, OWN_FIRST), imm(U32, OWN_SECOND));
    for (int i = 0; i < STREAM_WORDS; i++)
        q[i] = prmt(p, q[i], shuffle_xor(p, q[i], 1u << at->bits->of[Q8_HALF_BIT]), selector);
}

/* Stores words of a chunk CROSSWISE, two blocks. Line l of a block is segments 2l and 2l + 1: words 2
 * (l % 2) and one further of plane l / 2. `at_chunk` is the chunk's address. */
static void stage_crosswise(ptx *p, const stream *s, const q8_lane_place *at,
                            const val q[STREAM_WORDS], val d, val at_chunk, val scales)
{
    enum { BLOCK_LINES = CROSS_SEGMENTS / 2, BLOCK_BYTES = CROSS_LANES * PIECE_BYTES };
    unsigned plane = s->x.plane;
    val block = div(p, at->line, BLOCK_LINES), odd = bit_and(p, at->line, 1), starts[STREAM_WORDS];
    val lane = mad(p, at->word, PIECE_BYTES, mad(p, block, BLOCK_BYTES, at_chunk));
    val word = mad(p, mad(p, odd, 2, at->half), F32_BYTES, lane);
    for (unsigned i = 0; i < STREAM_WORDS; i++) {
        val sum = q8_add_halves(p, at, dp4a(p, imm(U32, 0x01010101), q[i], imm(S32, 0)));
        starts[i] = as(p, U32, mad(p, sum, s->f->offset, imm(S32, DP4A_START)));
        st_shared(p, S32, word, i * plane, q[i]);
    }
    /* The two lanes of a line store half of its start values each. */
    val start = mad(p, mad(p, at->half, 2, odd), F32_BYTES, lane);
    for (unsigned i = 0; i < 2; i++)
        st_shared(p, U32, start, s->x.quants + i * plane,
                  select(p, ne(p, at->half, 0), starts[2 * i + 1], starts[2 * i]));
    st_shared(p, F32, mad(p, at->own, F32_BYTES, scales), s->x.quants + 2 * plane, d);
}

/* Interleaves the first and the second eight values. */
static void pair_eights(ptx *p, val q[STREAM_WORDS])
{
    enum { LOW_HALVES = 0x5140, HIGH_HALVES = 0x7362 };
    val old[STREAM_WORDS] = { q[0], q[1], q[2], q[3] };
    for (int i = 0; i < STREAM_WORDS; i++)
        q[i] = prmt(p, old[i / 2], old[2 + i / 2], i % 2 ? HIGH_HALVES : LOW_HALVES);
}

/* Transposes a segment: word 0 has byte 0 of all words, word 1 byte 1, and so on. */
static void spread(ptx *p, val q[STREAM_WORDS])
{
    enum { LOW_BYTES = 0x5140, HIGH_BYTES = 0x7362, LOW_HALVES = 0x5410, HIGH_HALVES = 0x7632 };
    val old[STREAM_WORDS] = { q[0], q[1], q[2], q[3] };
    for (int i = 0; i < STREAM_WORDS; i += 2) {
        int bytes = i ? HIGH_BYTES : LOW_BYTES;
        val first = prmt(p, old[0], old[1], bytes), second = prmt(p, old[2], old[3], bytes);
        q[i] = prmt(p, first, second, LOW_HALVES);
        q[i + 1] = prmt(p, first, second, HIGH_HALVES);
    }
}

/* Stores half of a block where Q8_0 has its weights in a step, and zeros in place of the scales. Odd
 * blocks are two bytes past a multiple of four, and their weights are not. */
static void stage_as_stored(ptx *p, const q8_lane_place *at, val block, val half, val step,
                            const val q[STREAM_WORDS])
{
    enum { ACROSS = 0x5432, SECOND = 0x7654 };
    val even = eq(p, bit_and(p, block, 1), 0), first = eq(p, half, 0);
    val selector = select(p, even, imm(U32, ACROSS), imm(U32, SECOND));
    val before = shuffle_xor(p, q[STREAM_WORDS - 1], 1u << at->bits->of[Q8_HALF_BIT]);
    before = select(p, first, imm(S32, 0), before);
    val to = mad(p, block, Q8_0_BYTES, mad(p, half, PIECE_BYTES, step));
    to = select(p, even, to, add(p, to, Q8_0_QUANTS));
    for (unsigned i = 0; i < STREAM_WORDS; before = q[i++])
        st_shared(p, S32, to, i * F32_BYTES, prmt(p, before, q[i], selector));
    PTX_IF (p, bit_and(p, even, bit_not(p, first)))
        st_shared(p, U32, to, PIECE_BYTES, shr(p, as(p, U32, before), 16));
}

/* Stores a lane's segment, and quantizes f32 X. Number and index of segments are within a step: a
 * lane has `own` in the chunk's first step. */
static void stage_integers(ptx *p, const stream *s, chunk *c)
{
    const stream_format *f = s->f;
    q8_lane_place at = q8_lane_place_of(p, bits_of_lane(s));
    unsigned of_step = s->lanes * f->segments, scales_at = s->x.quants;
    unsigned chunks = of_step > WARP ? of_step / WARP : 1,
             steps = WARP > of_step ? WARP / of_step : 1;
    val tile = mad(p, c->vector, imm(U32, s->vector_bytes), s->staged);
    val step = mad(p, div(p, c->number, chunks), imm(U32, steps * s->x.bytes), tile);
    val of_lanes = mul(p, rem(p, c->number, chunks), WARP / f->segments); /* preceding lanes */
    val *q = c->q, d = c->d.kind ? c->d : q8_quantize_chunk(p, &at, c->x, q);
    if (f->order == CROSSWISE) {
        stage_crosswise(p, s, &at, q, d, mad(p, of_lanes, PIECE_BYTES, step),
                        mad(p, of_lanes, CROSS_SCALES / CROSS_LANES * F32_BYTES, step));
        return;
    }
    if (!stream_is_of_8_bits(s->in))
        q8_transpose(p, &at, q);
    val own = mad(p, at.own, 2, at.half), preceding = mad(p, c->of_x, WARP, own);
    if (steps > 1) {
        step = mad(p, div(p, own, of_step), imm(U32, s->x.bytes), step);
        own = bit_and(p, own, of_step - 1);
    }
    val above = mul(p, div(p, div(p, own, f->segments), 1u << f->index_bit), 1u << f->index_bit);
    val lane = add(p, add(p, above, bit_and(p, own, (1u << f->index_bit) - 1)), of_lanes);
    val index = bit_and(p, shr(p, own, f->index_bit), f->segments - 1), of_row = lane;
    if (s->of_parts)
        of_row = mad(p, div(p, preceding, of_step), s->lanes, lane);
    val sum = stream_has_sums(f) ? sum_word(p, f, &at, index, q, d) : bits_as(p, U32, d);
    if (f->order == EIGHTS) {
        pair_eights(p, q);
        index = bit_xor(p, index, div(p, stream_lane_at(p, s, of_row).rotation, PIECE_BYTES / 2));
    } else if (s->weights->alignment < STREAM_LANE_BYTES && f->order < IN_ORDER && !s->as_stored) {
        stream_lane l = stream_lane_at(p, s, of_row);
        val back =
            bit_and(p, sub(p, imm(U32, STREAM_LANE_BYTES), l.rotation), STREAM_LANE_BYTES - 1);
        stream_rotate(p, back, s->weights->alignment, q);
    }
    if (f->order == ROTATED_PAIRS)
        pair(p, &at, index, q);
    if (f->order == SPREAD)
        spread(p, q);
    val piece = mad(p, lane, imm(U32, PIECE_BYTES), mad(p, index, imm(U32, s->x.plane), step));
    if (s->as_stored)
        stage_as_stored(p, &at, lane, index, step, q);
    else
        st_shared_v4(p, S32, piece, 0, ((val4){ { q[0], q[1], q[2], q[3] } }));

    val word = s->x.words == 1 ? step : mad(p, index, imm(U32, F32_BYTES), step);
    word = mad(p, lane, imm(U32, s->x.words * F32_BYTES), word);
    val parts[STREAM_SEGMENTS];
    for (unsigned i = 0; i < f->segments; i++)
        parts[i] = V(1.0f / (float)factor_of(f, i));
    val scale = bits_as(p, U32, mul(p, d, by_index(p, index, f->segments, parts)));
    if (f->scales == ONE_SCALE) {
        st_shared(p, U32, word, scales_at,
                  s->x.words == 1 ? scale : select(p, eq(p, index, 0), scale, sum));
        return;
    }
    if (f->twos && stream_has_sums(f)) {
        val pair = div(p, index, 2), second = rem(p, index, 2);
        word =
            mad(p, pair, imm(U32, F32_BYTES), mad(p, lane, imm(U32, s->x.words * F32_BYTES), step));
        st_shared(p, U32, mad(p, second, imm(U32, s->x.sums_at), word), scales_at,
                  select(p, eq(p, second, 0), scale, sum));
        return;
    }
    st_shared(p, U32, word, scales_at, scale);
    if (stream_has_sums(f))
        st_shared(p, U32, word, scales_at + s->x.sums_at, sum);
}

/* A warp reduces one vector at a time; a lane adds every 32nd chunk. */
void stream_norm_factors(ptx *p, const stream *s)
{
    const stream_source *source = &s->source;
    unsigned vectors = (unsigned)s->in->shape.m;
    phase(p, "sum of squares of x");
    barrier(p);
    PTX_FOR (p, vector, warp_id(p), vectors, ptx_block(p) / WARP) {
        val of_vector = mad(p, vector, imm(U32, source->chunks * F32_BYTES), source->partial);
        val mean = norm_mean_of_chunks(p, s->in, of_vector, source->chunks);
        PTX_IF (p, eq(p, lane_id(p), 0))
            st_shared(p, F32, mad(p, vector, imm(U32, F32_BYTES), source->factors), 0,
                      norm_factor(p, s->in, mean));
    }
}

/* Loads 8-bit lines: the lane's segment, or for CROSSWISE its words of four lines. Words are not
 * transposed: that would cost more than the lines that a load reads besides. */
static void load_bytes(ptx *p, const stream *s, const q8_lane_place *at, val vector, unsigned lines,
                       bool ragged, chunk *c)
{
    val own = mad(p, c->of_x, imm(U32, Q8_LINES), at->own);
    val block = mad_wide(p, ragged ? min(p, own, lines - 1) : own, Q8_F32_BYTES, vector);
    bool crosswise = s->f->order == CROSSWISE;
    val word = mul_wide(p, at->half, STREAM_SEGMENT);
    if (crosswise)
        word = mad_wide(p, at->word, F32_BYTES, word);
    for (unsigned i = 0; i < Q8_WORDS; i++) {
        const q8_lines *l = &c->lines;
        val from = crosswise ? mad_wide(p, l->line[i], Q8_F32_BYTES, vector) : block;
        unsigned further = crosswise ? l->further[i] * Q8_F32_BYTES : i * F32_BYTES;
        c->q[i] =
            as(p, S32, ld_const(p, U32, add(p, from, word), Q8_F32_QUANTS + (int64_t)further));
    }
    c->d = ld_const(p, F32, block, Q8_F32_D);
    if (ragged)
        c->d = select(p, lt(p, own, lines), c->d, imm(F32, 0));
}

/* Loads a chunk. Lanes past the end of X load its last values. */
static chunk load_chunk(ptx *p, const stream *s, val number, unsigned chunks, val pass)
{
    const stream_source *source = &s->source;
    q8_lane_place at = q8_lane_place_of(p, bits_of_lane(s));
    bool floats = s->f->floats;
    unsigned k = (unsigned)s->in->shape.k, lines = k / Q8_F32_VALUES;
    chunk c = { .vector = imm(U32, 0), .number = number };
    if (s->vectors > 1 || source->vectors.kind) {
        c.vector = div(p, number, chunks);
        c.number = sub(p, number, mul(p, c.vector, chunks));
    }
    c.of_x = mad(p, pass, imm(U32, chunks), c.number);
    val vector = source->place ? source->place(p, source->context, c.vector)
                               : gemv_vector(p, source->of, c.vector);
    if (floats) {
        unsigned pieces = k / STREAM_PIECE;
        val piece = mad(p, c.of_x, imm(U32, WARP), piece_of_lane(p, s));
        c.lines.exists[0] = imm(PRED, 1);
        if (s->passes * chunks * WARP != pieces) {
            c.lines.exists[0] = lt(p, piece, pieces);
            piece = min(p, piece, pieces - 1);
        }
        load_floats(p, mad_wide(p, piece, STREAM_PIECE * F32_BYTES, vector), 0, STREAM_PIECE, c.x);
        if (source->gamma.kind)
            load_floats(p, mad_wide(p, piece, STREAM_PIECE * F32_BYTES, source->gamma), 0,
                        STREAM_PIECE, c.gamma);
        return c;
    }
    bool ragged = s->passes * chunks * Q8_LINES != lines;
    c.lines = q8_lines_of_chunk(p, &at, c.of_x, lines, ragged);
    if (stream_is_of_8_bits(s->in))
        load_bytes(p, s, &at, vector, lines, ragged, &c);
    else
        q8_load_lines(p, &at, &c.lines, vector, c.x);
    if (source->gamma.kind)
        q8_load_lines(p, &at, &c.lines, source->gamma, c.gamma);
    return c;
}

/* Stages a chunk. Squares are summed by chunk: their order does not depend on the number of
 * warps. */
static void stage_chunk(ptx *p, const stream *s, chunk *c, unsigned values)
{
    const stream_source *source = &s->source;
    for (unsigned i = 0; i < values && !c->d.kind; i++) {
        val exists = c->lines.exists[i / Q8_WORDS];
        c->x[i] = select(p, exists, c->x[i], imm(F32, 0));
        if (source->gamma.kind)
            c->gamma[i] = select(p, exists, c->gamma[i], imm(F32, 0));
    }
    if (source->gamma.kind) {
        val sum = norm_chunk_squares(p, c->x, values, bits_of_lane(s));
        for (unsigned i = 0; i < values; i++)
            c->x[i] = mul(p, c->x[i], c->gamma[i]);
        val of_vector = mad(p, c->vector, imm(U32, source->chunks * F32_BYTES), source->partial);
        PTX_IF (p, eq(p, lane_id(p), 0))
            st_shared(p, F32, mad(p, c->of_x, imm(U32, F32_BYTES), of_vector), 0, sum);
    }
    if (!s->f->floats) {
        stage_integers(p, s, c);
        return;
    }
    /* A lane stores one piece. Piece i of a step is in plane i % planes. */
    unsigned of_step = s->step_values / STREAM_PIECE, planes = planes_of_floats(s);
    val piece = mad(p, c->number, imm(U32, WARP), piece_of_lane(p, s));
    val within = bit_and(p, piece, of_step - 1), step = div(p, piece, of_step);
    val tile = mad(p, c->vector, imm(U32, s->vector_bytes), s->staged);
    val at = mad(p, step, imm(U32, s->x.bytes),
                 mad(p, bit_and(p, within, planes - 1), imm(U32, s->x.plane),
                     mad(p, div(p, within, planes), imm(U32, PIECE_BYTES), tile)));
    store_floats(p, at, 0, STREAM_PIECE, c->x);
}

/* A warp loads several chunks before it stages any. In place of missing chunks it repeats the
 * first. Between passes the sums occupy registers, too, so fewer chunks are loaded at once. */
void stream_stage(ptx *p, const stream *s, val pass)
{
    enum { AT_ONCE = 32, OF_8_BITS = 64, OF_MANY = 128 }; /* values per lane */
    unsigned values = s->f->floats ? STREAM_PIECE : Q8_LANE_VALUES;
    unsigned chunks = s->pass_steps * s->step_values / (WARP * values);
    unsigned warps = ptx_block(p) / WARP, iterations = (chunks * s->vectors + warps - 1) / warps;
    bool many = s->vectors > 1 && s->passes == 1;
    unsigned at_once = !stream_is_of_8_bits(s->in) ? AT_ONCE : many ? OF_MANY : OF_8_BITS;
    unsigned most = at_once / values, count = iterations < most ? iterations : most;
    bool fixed = !s->source.vectors.kind;
    val parts = mul(p, fixed ? imm(U32, s->vectors) : s->source.vectors, chunks);
    PTX_FOR (p, first, warp_id(p), parts, count * warps) {
        chunk loaded[AT_ONCE / STREAM_PIECE];
        for (unsigned i = 0; i < count; i++) {
            val part = i ? add(p, first, i * warps) : first;
            if (i && !(fixed && chunks * s->vectors % (count * warps) == 0))
                part = select(p, lt(p, part, parts), part, first);
            loaded[i] = load_chunk(p, s, part, chunks, pass);
        }
        for (unsigned i = 0; i < count; i++)
            stage_chunk(p, s, &loaded[i], values);
    }
}

/* One barrier follows the last use of the previous pass and of the norm's factors, the other
 * precedes the first use of this pass. */
void stream_stage_pass(ptx *p, const stream *s, val pass)
{
    barrier(p);
    phase(p, "stage a pass of x");
    stream_stage(p, s, pass);
    barrier(p);
    phase(p, "stream weights of the pass");
}

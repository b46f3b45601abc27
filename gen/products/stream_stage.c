#include "gen/products/stream_plan.h"

#include "gen/common/reduce.h"
#include "gen/common/q8_1.h"
#include "gen/formats/tools.h"

enum { PIECE_BYTES = 16 };

/* A chunk of a vector: STREAM_SEGMENT or STREAM_PIECE neighbouring values of each lane. */
typedef struct chunk {
    val vector, number; /* index of its vector, and of the chunk in the pass */
    val of_x;           /* index of the chunk in its vector */
    val exists;         /* predicate: X has the lane's values; else they are zeros */
    val x[STREAM_SEGMENT], gamma[STREAM_SEGMENT];
    val q[STREAM_WORDS]; /* x in 8 bits, instead of x and gamma */
    val d;               /* scale of q; VAL_NONE: X is f32 */
} chunk;

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
static val sum_word(ptx *p, const stream_format *f, val index, const val q[STREAM_WORDS], val d)
{
    val sum = imm(S32, 0), offsets[STREAM_SEGMENTS];
    for (int i = 0; i < STREAM_WORDS; i++)
        sum = dp4a(p, imm(U32, 0x01010101), q[i], sum);
    if (f->scales == ONE_SCALE || f->twos)
        sum = add(p, sum, shuffle_xor(p, sum, 1));
    if (f->minima)
        return bits_as(p, U32, mul(p, d, convert(p, F32, sum)));
    for (unsigned i = 0; i < f->segments; i++)
        offsets[i] = imm(S32, f->offset * (int)factor_of(f, i));
    return as(p, U32, mad(p, sum, by_index(p, index, f->segments, offsets), imm(S32, DP4A_START)));
}

/* Interleaves the words of both neighbouring segments: the first lane gets the lower halves. */
static void pair(ptx *p, val index, val q[STREAM_WORDS])
{
    enum { OWN_FIRST = 0x5140, OWN_SECOND = 0x3726 };
    val selector = select(p, eq(p, index, 0), imm(U32, OWN_FIRST), imm(U32, OWN_SECOND));
    for (int i = 0; i < STREAM_WORDS; i++)
        q[i] = prmt(p, q[i], shuffle_xor(p, q[i], 1), selector);
}

/* Stores a segment CROSSWISE: its words, its d, and start values of sums. The two lanes of 32
 * values store half of the start values each. */
static void stage_crosswise(ptx *p, const stream *s, const val q[STREAM_WORDS], val d, val step,
                            val within)
{
    unsigned plane = s->x.plane, scales_at = s->x.quants;
    val block = div(p, within, CROSS_SEGMENTS), index = rem(p, within, CROSS_SEGMENTS);
    val lanes = mad(p, block, imm(U32, CROSS_LANES * PIECE_BYTES), step), starts[CROSS_LANES];
    val word = mad(p, div(p, index, STREAM_WORDS), imm(U32, plane),
                   mad(p, rem(p, index, STREAM_WORDS), imm(U32, F32_BYTES), lanes));
    for (unsigned i = 0; i < CROSS_LANES; i++) {
        val sum = dp4a(p, imm(U32, 0x01010101), q[i], imm(S32, 0));
        sum = add(p, sum, shuffle_xor(p, sum, 1));
        starts[i] = as(p, U32, mad(p, sum, s->f->offset, imm(S32, DP4A_START)));
        st_shared(p, S32, word, i * PIECE_BYTES, q[i]);
    }
    val pair = div(p, index, 2), second = rem(p, index, 2), is_first = eq(p, second, 0);
    val start = mad(p, div(p, pair, STREAM_WORDS), imm(U32, plane),
                    mad(p, rem(p, pair, STREAM_WORDS), imm(U32, F32_BYTES), lanes));
    start = mad(p, second, imm(U32, 2 * PIECE_BYTES), start);
    for (unsigned i = 0; i < 2; i++)
        st_shared(p, U32, start, scales_at + i * PIECE_BYTES,
                  select(p, is_first, starts[i], starts[2 + i]));
    val scale = mad(p, mad(p, block, imm(U32, CROSS_SCALES), pair), imm(U32, F32_BYTES), step);
    PTX_IF (p, is_first)
        st_shared(p, F32, scale, scales_at + 2 * s->x.plane, d);
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

/* Stores a lane's segment, and quantizes f32 X. Two neighbouring lanes share a scale. */
static void stage_integers(ptx *p, const stream *s, const chunk *c)
{
    const stream_format *f = s->f;
    val segment = mad(p, c->number, imm(U32, WARP), lane_id(p));
    val tile = mad(p, c->vector, imm(U32, s->pass_steps * s->x.bytes), s->staged);
    unsigned of_step = s->lanes * f->segments, scales_at = s->x.quants;
    val q[STREAM_WORDS], d = c->d;
    for (int i = 0; i < STREAM_WORDS; i++)
        q[i] = c->q[i];
    if (!d.kind)
        d = q8_segment(p, c->x, q);

    val within = bit_and(p, segment, of_step - 1);
    val step = mad(p, div(p, segment, of_step), imm(U32, s->x.bytes), tile);
    if (f->order == CROSSWISE) {
        stage_crosswise(p, s, q, d, step, within);
        return;
    }
    val above = mul(p, div(p, div(p, within, f->segments), 1u << f->index_bit), 1u << f->index_bit);
    val lane = add(p, above, bit_and(p, within, (1u << f->index_bit) - 1));
    val index = bit_and(p, shr(p, within, f->index_bit), f->segments - 1);
    val sum = stream_has_sums(f) ? sum_word(p, f, index, q, d) : bits_as(p, U32, d);
    if (f->order == EIGHTS) {
        pair_eights(p, q);
        index = bit_xor(p, index, div(p, stream_lane_at(p, s, lane).rotation, PIECE_BYTES / 2));
    } else if (s->weights->alignment < STREAM_LANE_BYTES && f->order < IN_ORDER) {
        stream_lane l = stream_lane_at(p, s, lane);
        val back =
            bit_and(p, sub(p, imm(U32, STREAM_LANE_BYTES), l.rotation), STREAM_LANE_BYTES - 1);
        stream_rotate(p, back, s->weights->alignment, q);
    }
    if (f->order == ROTATED_PAIRS)
        pair(p, index, q);
    if (f->order == SPREAD)
        spread(p, q);
    val piece = mad(p, lane, imm(U32, PIECE_BYTES), mad(p, index, imm(U32, s->x.plane), step));
    st_shared_v4(p, S32, piece, 0, ((val4){ { q[0], q[1], q[2], q[3] } }));

    val word =
        mad(p, lane, imm(U32, s->x.words * F32_BYTES), mad(p, index, imm(U32, F32_BYTES), step));
    val parts[STREAM_SEGMENTS];
    for (unsigned i = 0; i < f->segments; i++)
        parts[i] = V(1.0f / (float)factor_of(f, i));
    val scale = bits_as(p, U32, mul(p, d, by_index(p, index, f->segments, parts)));
    if (f->scales == ONE_SCALE) {
        st_shared(p, U32, word, scales_at, select(p, eq(p, index, 0), scale, sum));
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

/* Loads a chunk. Lanes past the end of X load its last values. */
static chunk load_chunk(ptx *p, const stream *s, val number, unsigned chunks, val pass,
                        unsigned values)
{
    const stream_source *source = &s->source;
    unsigned pieces = (unsigned)s->in->shape.k / values;
    chunk c = { .vector = imm(U32, 0), .number = number, .exists = imm(PRED, 1) };
    if (s->vectors > 1 || source->vectors.kind) {
        c.vector = div(p, number, chunks);
        c.number = sub(p, number, mul(p, c.vector, chunks));
    }
    c.of_x = mad(p, pass, imm(U32, chunks), c.number);
    val piece = mad(p, c.of_x, imm(U32, WARP), lane_id(p));
    if (s->passes * chunks * WARP != pieces) {
        c.exists = lt(p, piece, pieces);
        piece = min(p, piece, pieces - 1);
    }
    val vector = source->place ? source->place(p, source->context, c.vector)
                               : gemv_vector(p, source->of, c.vector);
    if (stream_is_of_8_bits(s->in)) { /* a segment is half a block */
        val block = mad_wide(p, shr(p, piece, 1), Q8_F32_BYTES, vector);
        val half = add(p, block, mul_wide(p, bit_and(p, piece, 1), STREAM_SEGMENT));
        c.d = ld_const(p, F32, block, Q8_F32_D);
        for (unsigned i = 0; i < STREAM_WORDS; i++)
            c.q[i] = as(p, S32, ld_const(p, U32, half, Q8_F32_QUANTS + i * F32_BYTES));
    } else {
        load_floats(p, mad_wide(p, piece, values * F32_BYTES, vector), 0, values, c.x);
    }
    if (source->gamma.kind)
        load_floats(p, mad_wide(p, piece, values * F32_BYTES, source->gamma), 0, values, c.gamma);
    return c;
}

/* Stages a chunk. Squares are summed by chunk: their order does not depend on the number of
 * warps. */
static void stage_chunk(ptx *p, const stream *s, chunk *c, unsigned values)
{
    const stream_source *source = &s->source;
    if (c->d.kind)
        c->d = select(p, c->exists, c->d, imm(F32, 0));
    for (unsigned i = 0; i < values && !c->d.kind && c->exists.kind == VAL_REG; i++) {
        c->x[i] = select(p, c->exists, c->x[i], imm(F32, 0));
        if (source->gamma.kind)
            c->gamma[i] = select(p, c->exists, c->gamma[i], imm(F32, 0));
    }
    if (source->gamma.kind) {
        val sum = norm_chunk_squares(p, c->x, values);
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
    unsigned of_step = s->step_values / STREAM_PIECE, planes = of_step / WARP;
    val piece = mad(p, c->number, imm(U32, WARP), lane_id(p));
    val within = bit_and(p, piece, of_step - 1), step = div(p, piece, of_step);
    val tile = mad(p, c->vector, imm(U32, s->pass_steps * s->x.bytes), s->staged);
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
    unsigned values = s->f->floats ? STREAM_PIECE : STREAM_SEGMENT;
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
            loaded[i] = load_chunk(p, s, part, chunks, pass, values);
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

/* Streaming weights that are integers with scales: see stream.h. */
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"
#include "gen/products/stream.h"

enum {
    WARP = 32,
    PIECE_BYTES = 16,
    TURN_WEIGHTS = 128,   /* of a lane, in all rows: longer rows take turns of as many, */
    TURN_BYTES = 100,     /* but of no more bytes, which registers hold at once */
    BYTES_IN_FLIGHT = 33, /* of a lane, at least: 24 warps make it 25 KB */
    MOST_AT_ONCE = 4,     /* steps of a row that are so many bytes */
    MANY_VECTORS = 5,
    CROSS_LANES = 4, /* of a block, crosswise */
    CROSS_SEGMENTS = 16,
    CROSS_SCALES = CROSS_SEGMENTS / 2
};

/* Of a step's activations: a segment of every lane. */
static unsigned plane_bytes(unsigned lanes)
{
    return lanes * PIECE_BYTES;
}

static unsigned step_values(const stream *s)
{
    return s->lanes * STREAM_SEGMENT * s->f->segments;
}

static const format_info *weights_of(const stream *s)
{
    return &formats[instance_weights(s->in)];
}

/* Of weights. */
static unsigned step_bytes(const stream *s)
{
    return step_values(s) / weights_of(s)->block_values * weights_of(s)->block_bytes;
}

/* The largest power of two, up to a line, that the bytes of a row are a multiple of. */
static unsigned row_alignment(const stream *s)
{
    uint64_t bytes = format_bytes(instance_weights(s->in), (uint64_t)s->in->shape.k);
    unsigned alignment = STREAM_LANE_BYTES;
    while (bytes % alignment)
        alignment /= 2;
    return alignment;
}

static bool has_sums(const stream_format *f)
{
    return f->offset || f->minima;
}

/* Crosswise, of the words where sums of products start. */
static unsigned cross_starts(unsigned lanes)
{
    return 2 * plane_bytes(lanes);
}

/* Whether a lane's words of sums stand behind those of its scales, as two of each are. */
static bool has_sums_beside(const stream_format *f)
{
    return has_sums(f) && (f->segments == 2 || f->twos);
}

/* What stands behind a step's quants in the tile: words of a lane that are read at once, and where
 * those of its sums are. */
typedef struct beside {
    unsigned words, sums_at, bytes;
} beside;

static beside beside_of(const stream_format *f, unsigned lanes)
{
    beside b = { .words = 2, .sums_at = F32_BYTES };
    if (f->crosswise) {
        b.bytes = cross_starts(lanes) + lanes / CROSS_LANES * CROSS_SCALES * F32_BYTES;
        return b;
    }
    if (f->scales == SCALES) {
        b.words = has_sums_beside(f) ? 4 : f->segments;
        b.sums_at = has_sums_beside(f) ? 2 * F32_BYTES : plane_bytes(lanes);
    }
    unsigned planes = f->segments == 4 && has_sums(f) && !has_sums_beside(f) ? 2 : 1;
    b.bytes = planes * lanes * b.words * F32_BYTES;
    return b;
}

static unsigned quant_bytes(const stream_format *f, unsigned lanes)
{
    return f->segments * plane_bytes(lanes);
}

int64_t stream_integers_step_bytes(const stream_format *f, unsigned lanes)
{
    return quant_bytes(f, lanes) + beside_of(f, lanes).bytes;
}

static unsigned tile_bytes(const stream *s)
{
    return (unsigned)stream_integers_step_bytes(s->f, s->lanes);
}

/* The lane's place in a step. */
static stream_lane lane_at(ptx *p, const stream *s, val lane)
{
    unsigned lanes = weights_of(s)->block_values / (STREAM_SEGMENT * s->f->segments);
    stream_lane l = { .block = div(p, lane, lanes), .part = rem(p, lane, lanes) };
    l.piece = imm(U32, s->f->quants);
    if (s->f->piece)
        l.piece = add(p, s->f->piece(p, l.part), l.piece);
    val start = mul(p, l.block, weights_of(s)->block_bytes);
    l.start = bit_and(p, start, STREAM_LANE_BYTES - 1);
    l.turned = bit_and(p, add(p, start, l.piece), STREAM_LANE_BYTES - 1);
    return l;
}

/* Whether a lane's pieces need more than one line. */
static bool has_shift(const stream *s)
{
    return weights_of(s)->alignment < STREAM_LANE_BYTES;
}

/* The number that belongs to a segment's index. */
static val by_index(ptx *p, val index, unsigned count, const val *numbers)
{
    val number = numbers[0];
    for (unsigned i = 1; i < count; i++)
        number = select(p, eq(p, index, i), numbers[i], number);
    return number;
}

/* The factor that the quants of a segment have, of ONE_SCALE all of a lane's together. */
static unsigned factor_of(const stream_format *f, unsigned index)
{
    return f->factors[f->scales == ONE_SCALE ? f->segments - 1 : index];
}

static val scale_word(ptx *p, const stream_format *f, val index, val d)
{
    val parts[STREAM_SEGMENTS];
    for (unsigned i = 0; i < f->segments; i++)
        parts[i] = V(1.0f / (float)factor_of(f, i));
    return mul(p, d, by_index(p, index, f->segments, parts));
}

/* What the integers' sum adds to the product: the sum of x, or where the sum of products starts. */
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

/* Words of both neighbours' segments in turn: the first lane gets those of the lower halves. */
static void pair(ptx *p, val index, val q[STREAM_WORDS])
{
    enum { OWN_FIRST = 0x5140, OWN_SECOND = 0x3726 };
    val selector = select(p, eq(p, index, 0), imm(U32, OWN_FIRST), imm(U32, OWN_SECOND));
    for (int i = 0; i < STREAM_WORDS; i++)
        q[i] = prmt(p, q[i], shuffle_xor(p, q[i], 1), selector);
}

/* The place in the tile of a segment's words and of what stands beside them; of both segments of 32
 * values each lane stores half of the sums' starts. */
static void stage_crosswise(ptx *p, const stream *s, const val q[STREAM_WORDS], val d, val step,
                            val within)
{
    unsigned plane = plane_bytes(s->lanes), behind = quant_bytes(s->f, s->lanes);
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
        st_shared(p, U32, start, behind + i * PIECE_BYTES,
                  select(p, is_first, starts[i], starts[2 + i]));
    val scale = mad(p, mad(p, block, imm(U32, CROSS_SCALES), pair), imm(U32, F32_BYTES), step);
    PTX_IF (p, is_first)
        st_shared(p, F32, scale, behind + cross_starts(s->lanes), d);
}

/* The first and the second eight values in turn. */
static void pair_eights(ptx *p, val q[STREAM_WORDS])
{
    enum { LOW_HALVES = 0x5140, HIGH_HALVES = 0x7362 };
    val old[STREAM_WORDS] = { q[0], q[1], q[2], q[3] };
    for (int i = 0; i < STREAM_WORDS; i++)
        q[i] = prmt(p, old[i / 2], old[2 + i / 2], i % 2 ? HIGH_HALVES : LOW_HALVES);
}

/* Every fourth value in a word: bytes 0 of all words, bytes 1, and so on. */
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

/* A lane's segment into the tile, quantized where it is not yet. Neighbouring lanes share 32 values
 * and their scale. */
void stream_integers_stage(ptx *p, const stream *s, const stream_part *part)
{
    const stream_format *f = s->f;
    val segment = mad(p, part->chunk, imm(U32, WARP), lane_id(p));
    val tile = mad(p, part->vector, imm(U32, s->pass_steps * tile_bytes(s)), s->staged);
    unsigned of_step = s->lanes * f->segments, behind = quant_bytes(f, s->lanes);
    val q[STREAM_WORDS], d = part->d;
    for (int i = 0; i < STREAM_WORDS; i++)
        q[i] = part->q[i];
    if (!d.kind)
        d = q8_segment(p, part->x, q);

    val within = bit_and(p, segment, of_step - 1);
    val step = mad(p, div(p, segment, of_step), imm(U32, tile_bytes(s)), tile);
    if (f->crosswise) {
        stage_crosswise(p, s, q, d, step, within);
        return;
    }
    val above = mul(p, div(p, div(p, within, f->segments), 1u << f->index_bit), 1u << f->index_bit);
    val lane = add(p, above, bit_and(p, within, (1u << f->index_bit) - 1));
    val index = bit_and(p, shr(p, within, f->index_bit), f->segments - 1);
    val sum = has_sums(f) ? sum_word(p, f, index, q, d) : bits_as(p, U32, d);
    if (f->eights) {
        pair_eights(p, q);
        index = bit_xor(p, index, div(p, lane_at(p, s, lane).turned, PIECE_BYTES / 2));
    } else if (has_shift(s) && !f->in_order) {
        stream_lane l = lane_at(p, s, lane);
        val back = bit_and(p, sub(p, imm(U32, STREAM_LANE_BYTES), l.turned), STREAM_LANE_BYTES - 1);
        stream_turn(p, back, weights_of(s)->alignment, q);
    }
    if (f->pairs)
        pair(p, index, q);
    if (f->spread)
        spread(p, q);
    val piece =
        mad(p, lane, imm(U32, PIECE_BYTES), mad(p, index, imm(U32, plane_bytes(s->lanes)), step));
    st_shared_v4(p, S32, piece, 0, ((val4){ { q[0], q[1], q[2], q[3] } }));

    beside b = beside_of(f, s->lanes);
    val word =
        mad(p, lane, imm(U32, b.words * F32_BYTES), mad(p, index, imm(U32, F32_BYTES), step));
    val scale = bits_as(p, U32, scale_word(p, f, index, d));
    if (f->scales == ONE_SCALE) {
        st_shared(p, U32, word, behind, select(p, eq(p, index, 0), scale, sum));
        return;
    }
    if (f->twos && has_sums(f)) {
        val pair = div(p, index, 2), second = rem(p, index, 2);
        word = mad(p, pair, imm(U32, F32_BYTES), mad(p, lane, imm(U32, b.words * F32_BYTES), step));
        st_shared(p, U32, mad(p, second, imm(U32, b.sums_at), word), behind,
                  select(p, eq(p, second, 0), scale, sum));
        return;
    }
    st_shared(p, U32, word, behind, scale);
    if (has_sums(f))
        st_shared(p, U32, word, behind + b.sums_at, sum);
}

/* Where a lane's activations are, from some step on: their quants, and what stands beside them. */
typedef struct tile_place {
    val quants, beside;
    unsigned first; /* the step's number where steps are counted from another one on */
} tile_place;

static tile_place moved_on(ptx *p, const stream *s, val steps, unsigned each)
{
    unsigned bytes = each * tile_bytes(s);
    tile_place at = { .quants = mad(p, steps, imm(U32, bytes), s->tile) };
    at.beside = s->beside.kind ? mad(p, steps, imm(U32, bytes), s->beside) : at.quants;
    return at;
}

/* What stands beside a lane's activations of a step: d, and what their sums give. */
typedef struct stream_x {
    val d[STREAM_SEGMENTS], sum[STREAM_SEGMENTS];
} stream_x;

static stream_x load_beside(ptx *p, const stream *s, const tile_place *tile, int64_t offset)
{
    const stream_format *f = s->f;
    beside b = beside_of(f, s->lanes);
    int64_t at = offset + quant_bytes(f, s->lanes);
    if (b.words == 2) {
        val2 words = ld_shared_v2(p, F32, tile->beside, at);
        return (stream_x){ .d = { words.v[0], words.v[1] }, .sum = { words.v[1] } };
    }
    val4 d = ld_shared_v4(p, F32, tile->beside, at), sums = { { d.v[2], d.v[3] } };
    if (f->twos && has_sums(f))
        return (stream_x){ .d = { [0] = d.v[0], [2] = d.v[1] },
                           .sum = { [0] = d.v[2], [2] = d.v[3] } };
    if (has_sums(f) && f->segments == 4)
        sums = ld_shared_v4(p, F32, tile->beside, at + b.sums_at);
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
    for (unsigned i = 0; i < f->words; i++)
        sum = dp4a(p, q[i], x->v[i % STREAM_WORDS], sum);
    return sum;
}

/* Where the sum of a segment's products starts, or of all of a lane with one scale. */
static val start_of(ptx *p, const stream_format *f, const stream_x *x, unsigned segment)
{
    return f->offset ? bits_as(p, S32, x->sum[segment]) : imm(S32, DP4A_START);
}

/* The segments' sums of products add up to one in the units of the last. */
static val one_sum(ptx *p, const stream_format *f, const stream_weights *w, const val4 *x,
                   val start)
{
    unsigned ratio = f->factors[1] / f->factors[0];
    val sum = products(p, f, w->q[0], &x[0], ratio == 1 ? start : imm(S32, 0));
    if (ratio != 1)
        sum = mad(p, sum, imm(S32, ratio), start);
    return dp4a_sum_as_f32(p, products(p, f, w->q[1], &x[1], sum));
}

/* Segments whose products have the same scale. */
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

/* The same for words of 16 segments, of which two neighbouring ones have the same d. */
static void add_crosswise(ptx *p, stream *s, const stream_weights *w, unsigned row, unsigned rows,
                          const tile_place *tile, int64_t at, unsigned vector)
{
    val product[STREAM_ROWS];
    unsigned plane = plane_bytes(s->lanes);
    int64_t starts_at = at + quant_bytes(s->f, s->lanes);
    int64_t scales_at = starts_at + cross_starts(s->lanes);
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

/* The products of a vector's step with the weights of some rows. */
static void add_products(ptx *p, stream *s, const stream_weights *w, unsigned row, unsigned rows,
                         const tile_place *tile, unsigned step, unsigned vector)
{
    const stream_format *f = s->f;
    int64_t at = ((int64_t)vector * s->pass_steps + step - tile->first) * tile_bytes(s);
    if (f->crosswise) {
        add_crosswise(p, s, w, row, rows, tile, at, vector);
        return;
    }
    unsigned of_scale = segments_of_scale(f);
    stream_x x = load_beside(p, s, tile, at);
    val4 q[STREAM_SEGMENTS];
    val sums[STREAM_ROWS][STREAM_SEGMENTS];
    for (unsigned i = 0; i < f->segments; i++) {
        q[i] = ld_shared_v4(p, S32, tile->quants, at + i * plane_bytes(s->lanes));
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
            val of_both = one_sum(p, f, &w[r], q, start_of(p, f, &x, 0));
            acc = fma(p, w[r].d, mul(p, x.d[0], of_both), acc);
            if (f->minima)
                acc = fma(p, w[r].dmin, x.sum[0], acc);
        }
        assign(p, sum, acc);
    }
}

/* The steps of rows that are loaded before any of them is used, at least. Of several vectors all
 * rows take what they need at once: ptxas would keep it in registers from the first row to the
 * last. */
static unsigned least_at_once(const stream *s)
{
    unsigned steps = (BYTES_IN_FLIGHT * s->lanes + step_bytes(s) - 1) / step_bytes(s);
    bool by_rows = steps > s->rows || s->vectors > 1;
    return by_rows ? (steps + s->rows - 1) / s->rows * s->rows : steps;
}

/* Whether a row's last step has idle lanes. */
static bool is_ragged(const stream *s)
{
    return s->in->shape.k % step_values(s) != 0;
}

/* Whether a row is a turn of so many steps, some more and part of one, where that is crowded. */
static bool ends_behind_a_turn(const stream *s, unsigned steps)
{
    unsigned whole = (unsigned)(s->in->shape.k / step_values(s));
    bool own_pointers = s->rows > 1 && !stream_rows_share_pointers(s->in);
    return s->f->crowded_turn && s->vectors == 1 && own_pointers && is_ragged(s) && whole > steps &&
           whole < 2 * steps;
}

static unsigned steps_of_turn(const stream *s)
{
    unsigned by_weights = TURN_WEIGHTS / (STREAM_SEGMENT * s->f->segments * s->rows);
    unsigned by_bytes = TURN_BYTES / (step_bytes(s) / s->lanes * s->rows);
    unsigned most = by_weights < by_bytes ? by_weights : by_bytes;
    unsigned least = (least_at_once(s) + s->rows - 1) / s->rows;
    return most > least && !ends_behind_a_turn(s, most) ? most : least;
}

/* With many vectors fewer warps stay on an SM, and each has registers for all of a turn, if it is
 * of no more bytes than they hold; but not where rows end behind the first one, for ptxas then
 * loads ahead what is left, too. */
static bool has_turns_at_once(const stream *s)
{
    unsigned steps = steps_of_turn(s), whole = (unsigned)(s->in->shape.k / step_values(s));
    bool fits = steps * s->rows * step_bytes(s) <= TURN_BYTES * s->lanes;
    bool ends_early = is_ragged(s) && whole < 2 * steps;
    return s->vectors >= MANY_VECTORS && steps * s->rows <= MOST_AT_ONCE && fits && !ends_early;
}

static unsigned loads_at_once(const stream *s)
{
    return has_turns_at_once(s) ? steps_of_turn(s) * s->rows : least_at_once(s);
}

/* Whether a turn is one step, and may be such a last one: long code, of four segments for many
 * vectors, then stands there once, and what clamping takes is little beside it. */
static bool turns_are_clamped(const stream *s)
{
    return is_ragged(s) && s->vectors >= MANY_VECTORS && s->f->segments == STREAM_SEGMENTS &&
           steps_of_turn(s) == 1;
}

unsigned stream_integers_turn_steps(const instance *in, const stream_format *f)
{
    bool of_one = family_key(in->family, "rows_per_warp");
    return steps_of_turn(&(stream){ .in = in,
                                    .f = f,
                                    .lanes = stream_lanes(in),
                                    .rows = of_one ? (unsigned)in->rows_per_warp : STREAM_ROWS,
                                    .vectors = (unsigned)in->shape.m });
}

/* Several steps with constant offsets: of each the first row, the second row. */
static void add_run(ptx *p, stream *s, const stream_row rows[STREAM_ROWS], const tile_place *tile,
                    unsigned first, unsigned count)
{
    unsigned all = count * s->rows, at_once = loads_at_once(s), here;
    bool stay = s->f->barrier || has_turns_at_once(s);
    for (unsigned from = 0; from < all; from += here) {
        val words[MOST_AT_ONCE][STREAM_LOADED];
        stream_weights w[STREAM_ROWS];
        here = all - from < at_once ? all - from : at_once;
        ptx_keep_loads(p, stay);
        for (unsigned i = 0; i < here; i++) {
            const stream_row *row = &rows[(from + i) % s->rows];
            int64_t step = (int64_t)(first + (from + i) / s->rows) * step_bytes(s);
            s->f->load(p, row, row->offset + step, words[i]);
        }
        ptx_keep_loads(p, false);
        if (stay)
            warp_barrier(p);
        for (unsigned i = 0, of_step; i < here; i += of_step) {
            unsigned row = (from + i) % s->rows, step = first + (from + i) / s->rows;
            of_step = here - i < s->rows - row ? here - i : s->rows - row;
            for (unsigned r = 0; r < of_step; r++)
                w[r] = s->f->decode(p, &s->lane, &rows[row + r], words[i + r]);
            for (unsigned v = 0; v < s->vectors; v++)
                add_products(p, s, w, row, of_step, tile, step, v);
        }
    }
}

/* What is left to know of a row's pieces, of which one is at an address. */
static stream_shift shift_of(ptx *p, const stream *s, val row, val piece)
{
    unsigned alignment = weights_of(s)->alignment, rows = row_alignment(s);
    val start = bit_and(p, convert(p, U32, piece), STREAM_LANE_BYTES - 1);
    if (s->f->eights) {
        val left = bit_and(p, s->lane.turned, PIECE_BYTES / 2);
        return stream_shift_new(p, s->f, start, alignment, sub(p, start, left), alignment);
    }
    if (s->f->in_order)
        return stream_shift_new(p, s->f, start, alignment, start, alignment);
    val back = bit_and(p, convert(p, U32, row), STREAM_LANE_BYTES - 1);
    return stream_shift_new(p, s->f, start, alignment, back, rows);
}

/* A lane's block in a step, where the step may be the last one: lanes past the end of the row take
 * its last block. */
static val block_of_step(ptx *p, const stream *s, val step)
{
    const format_info *weights = weights_of(s);
    unsigned of_step = step_values(s) / weights->block_values;
    unsigned last = (unsigned)s->in->shape.k / weights->block_values - 1;
    return min(p, mad(p, step, imm(U32, of_step), s->lane.block), last);
}

/* The rows' pointers to a block of the lane; whether it is the lane's own one of its step. */
static void point_at(ptx *p, const stream *s, const place addresses[STREAM_ROWS], val block,
                     bool own, stream_row rows[STREAM_ROWS])
{
    const format_info *weights = weights_of(s);
    for (unsigned r = 0; r < s->rows; r++) {
        if (addresses[r].offset) {
            rows[r] = rows[0];
        } else {
            val at = mad_wide(p, block, weights->block_bytes, addresses[r].base);
            val piece = add(p, at, convert(p, U64, s->lane.piece));
            rows[r] = (stream_row){ .block = at, .lines = stream_first_line(p, s->f, piece) };
            rows[r].shift = row_alignment(s) == STREAM_LANE_BYTES
                                ? s->lane.shift
                                : shift_of(p, s, addresses[r].base, piece);
            rows[r].start = row_alignment(s) == STREAM_LANE_BYTES && own
                                ? s->lane.start
                                : bit_and(p, convert(p, U32, at), STREAM_LANE_BYTES - 1);
            if (s->f->row_new)
                s->f->row_new(p, &s->lane, &rows[r]);
        }
        rows[r].offset = addresses[r].offset;
    }
}

static stream_row moved(ptx *p, stream_row row, val bytes)
{
    row.block = add(p, row.block, bytes);
    row.lines = add(p, row.lines, bytes);
    for (int i = 0; i < STREAM_POINTERS; i++)
        if (row.at[i].kind)
            row.at[i] = add(p, row.at[i], bytes);
    return row;
}

/* Turns of some steps from one on; the tile's first turn has another number. */
static void add_turns(ptx *p, stream *s, const place addresses[STREAM_ROWS],
                      const stream_row rows[STREAM_ROWS], val first, val end, val of_tile)
{
    unsigned turn_steps = steps_of_turn(s);
    ptx_loop_work(p, s->rows * turn_steps * step_values(s) / s->lanes, "weights");
    PTX_FOR (p, turn, first, end, 1) {
        stream_row here[STREAM_ROWS];
        if (turns_are_clamped(s)) {
            point_at(p, s, addresses, block_of_step(p, s, turn), false, here);
        } else {
            val bytes = mul_wide(p, turn, turn_steps * step_bytes(s));
            for (unsigned r = 0; r < s->rows; r++)
                here[r] = moved(p, rows[r], bytes);
        }
        tile_place there = moved_on(p, s, sub(p, turn, of_tile), turn_steps);
        add_run(p, s, here, &there, 0, turn_steps);
    }
}

static void add_passes(ptx *p, stream *s, const place addresses[STREAM_ROWS],
                       const stream_row rows[STREAM_ROWS], unsigned turns)
{
    unsigned of_pass = s->pass_steps / steps_of_turn(s), end = stream_passes(s->in) * of_pass;
    PTX_FOR (p, first, 0, end, of_pass) { /* the first turn alone, to keep a register free */
        stream_stage_pass(p, s, div(p, first, of_pass));
        add_turns(p, s, addresses, rows, first, min(p, add(p, first, of_pass), turns), first);
    }
}

/* The last pass has what is left behind the turns. */
void stream_integers_add(ptx *p, stream *s, const place addresses[STREAM_ROWS])
{
    stream_row rows[STREAM_ROWS], last[STREAM_ROWS];
    bool clamped = turns_are_clamped(s), apart = is_ragged(s) && !clamped;
    unsigned together = stream_steps(s->in) - apart, turn_steps = steps_of_turn(s);
    unsigned turns = together / turn_steps, passes = stream_passes(s->in);
    tile_place tile = moved_on(p, s, imm(U32, 0), 0);
    tile.first = (passes - 1) * s->pass_steps;
    point_at(p, s, addresses, s->lane.block, true, rows);
    if (passes > 1)
        add_passes(p, s, addresses, rows, turns);
    else if (together > turn_steps || clamped)
        add_turns(p, s, addresses, rows, imm(U32, 0), imm(U32, turns), imm(U32, 0));
    else
        turns = 0;
    add_run(p, s, rows, &tile, turns * turn_steps, together - turns * turn_steps);
    if (apart) {
        point_at(p, s, addresses, block_of_step(p, s, imm(U32, together)), false, last);
        tile = moved_on(p, s, imm(U32, together - tile.first), 1);
        add_run(p, s, last, &tile, 0, 1);
    }
}

void stream_integers_begin(ptx *p, stream *s)
{
    enum { FEW_WORDS = 2 };
    val lane = lane_in_group(p, s->lanes);
    s->lane = lane_at(p, s, lane);
    s->lane.table = s->table;
    s->lane.table_bytes = s->f->table_bytes;
    if (s->f->lane_new)
        s->f->lane_new(p, &s->lane);
    if (has_shift(s) && row_alignment(s) == STREAM_LANE_BYTES) {
        unsigned alignment = weights_of(s)->alignment;
        bool as_turned = !s->f->in_order && !s->f->eights;
        s->lane.shift = stream_shift_new(p, s->f, s->lane.turned, alignment, s->lane.turned,
                                         as_turned ? STREAM_LANE_BYTES : alignment);
        if (s->f->eights)
            s->lane.shift.by_eight = (val){ 0 };
    }
    if (s->f->crosswise)
        s->beside = mad(p, s->lane.block, imm(U32, CROSS_SCALES * F32_BYTES), s->staged);
    else if (beside_of(s->f, s->lanes).words == FEW_WORDS)
        s->beside = mad(p, lane, imm(U32, FEW_WORDS * F32_BYTES), s->staged);
    s->tile = mad(p, lane, imm(U32, PIECE_BYTES), s->staged);
}

void stream_integers_note_rows(ptx *p, const stream *s)
{
    if (stream_passes(s->in) == 1 && s->in->shape.k / step_values(s) <= steps_of_turn(s))
        ptx_loop_work(p, (unsigned)(s->rows * s->in->shape.k / s->lanes), "weights");
}

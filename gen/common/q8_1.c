#include "gen/common/q8_1.h"

const lane_bits q8_usual_bits = { { 0, 1, 2, 3, 4 } };

val dp4a_sum_as_f32(ptx *p, val sum)
{
    return sub(p, bits_as(p, F32, sum), imm(F32, DP4A_START));
}

val q8_largest(ptx *p, val largest, const val *x, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        largest = max(p, largest, bit_and(p, bits_as(p, U32, x[i]), 0x7fffffff));
    return largest;
}

val q8_scale(ptx *p, val largest)
{
    return mul(p, bits_as(p, F32, largest), 1.0f / 127);
}

/* The lowest byte of the float 1.5 * 2^23 + q is q. */
val q8_pack(ptx *p, const val x[4], val inverse)
{
    enum { LOWEST_BYTES = 0x0040, LOW_HALVES = 0x5410 };
    val q[4];
    for (int i = 0; i < 4; i++)
        q[i] = bits_as(p, U32, fma(p, x[i], inverse, imm(F32, DP4A_START)));
    val low = prmt(p, q[0], q[1], LOWEST_BYTES), high = prmt(p, q[2], q[3], LOWEST_BYTES);
    return as(p, S32, prmt(p, low, high, LOW_HALVES));
}

/* Returns two bits of the lane's index as a number. */
static val two_bits(ptx *p, val lane, unsigned low, unsigned high)
{
    if (high == low + 1)
        return bfe(p, lane, low, 2);
    return mad(p, bfe(p, lane, high, 1), 2, bfe(p, lane, low, 1));
}

q8_lane_place q8_lane_place_of(ptx *p, const lane_bits *bits)
{
    const unsigned *b = bits->of;
    val lane = lane_id(p);
    q8_lane_place at = { .bits = bits,
                         .word = two_bits(p, lane, b[0], b[1]),
                         .half = bfe(p, lane, b[Q8_HALF_BIT], 1),
                         .line =
                             mad(p, bfe(p, lane, b[4], 1), Q8_LINES / 2, bfe(p, lane, b[3], 1)) };
    at.own = mad(p, at.word, Q8_WORD_LINES, at.line);
    for (unsigned i = 0; i < 2; i++)
        at.upper[i] = ne(p, bit_and(p, lane, 1u << b[i]), 0);
    return at;
}

q8_lines q8_lines_of_chunk(ptx *p, const q8_lane_place *at, val chunk, unsigned lines, bool ragged)
{
    q8_lines l;
    val first = mad(p, chunk, imm(U32, Q8_LINES), at->line);
    for (unsigned i = 0; i < Q8_WORDS; i++) {
        unsigned further = Q8_WORD_LINES * i;
        val line = ragged ? add(p, first, further) : first;
        l.exists[i] = ragged ? lt(p, line, lines) : imm(PRED, 1);
        l.line[i] = ragged ? min(p, line, lines - 1) : first;
        l.further[i] = ragged ? 0 : further;
    }
    return l;
}

void q8_load_lines(ptx *p, const q8_lane_place *at, const q8_lines *lines, val row,
                   val x[Q8_LANE_VALUES])
{
    enum { VALUES = 4, LINE_BYTES = Q8_F32_VALUES * F32_BYTES };
    val own = mad_wide(p, mad(p, at->half, Q8_WORDS, at->word), VALUES * F32_BYTES, row);
    for (unsigned i = 0; i < Q8_WORDS; i++)
        load_floats(p, mad_wide(p, lines->line[i], LINE_BYTES, own),
                    (int64_t)lines->further[i] * LINE_BYTES, VALUES, x + VALUES * i);
}

/* Sends `second` to the lane with the other bit of word, or `first` where the lane's bit is 1.
 * Returns what that lane sends. */
static val exchange(ptx *p, const q8_lane_place *at, unsigned bit, val first, val second)
{
    return shuffle_xor(p, select(p, at->upper[bit], first, second), 1u << at->bits->of[bit]);
}

/* Returns the largest magnitude of four values, as q8_largest does. */
static val largest_of_word(ptx *p, const val x[4])
{
    enum { WITH_NAN = 80 /* first target with max.NaN */ };
    if (ptx_target(p)->sm < WITH_NAN)
        return q8_largest(p, imm(U32, 0), x, 4);
    val of_two = max_nan(p, abs(p, x[0]), abs(p, x[1]));
    return bits_as(p, U32, max_nan(p, max_nan(p, of_two, abs(p, x[2])), abs(p, x[3])));
}

/* The maxima of four lines are reduced over eight lanes with four shuffles: each step halves the
 * lines of a lane. Then the lane's own line is the one of its segment. */
val q8_quantize_chunk(ptx *p, const q8_lane_place *at, const val x[Q8_LANE_VALUES], val q[Q8_WORDS])
{
    val largest[Q8_WORDS];
    for (unsigned i = 0; i < Q8_WORDS; i++)
        largest[i] = largest_of_word(p, x + 4 * i);
    for (unsigned bit = 2, count = 2; bit-- > 0; count /= 2)
        for (unsigned i = 0; i < count; i++) {
            val first = largest[i], second = largest[count + i];
            largest[i] = max(p, select(p, at->upper[bit], second, first),
                             exchange(p, at, bit, first, second));
        }
    val of_half = shuffle_xor(p, largest[0], 1u << at->bits->of[Q8_HALF_BIT]);
    val d = q8_scale(p, max(p, max(p, largest[0], of_half), imm(U32, Q8_SMALLEST)));
    val inverse = rcp_approx(p, d);
    unsigned low = 1u << at->bits->of[0], high = 1u << at->bits->of[1];
    val first = bit_and(p, lane_id(p), ~(low | high));
    for (unsigned i = 0; i < Q8_WORDS; i++) {
        val lane = add(p, first, i % 2 * low + i / 2 * high);
        val of_line = low == 1 && high == 2 ? shuffle_from_neighbour(p, inverse, i)
                                            : shuffle_from(p, inverse, lane);
        q[i] = q8_pack(p, x + 4 * i, of_line);
    }
    return d;
}

void q8_transpose(ptx *p, const q8_lane_place *at, val q[Q8_WORDS])
{
    for (unsigned bit = 0; bit < 2; bit++)
        for (unsigned i = 0; i < Q8_WORDS; i++)
            if (!(i & 1u << bit)) {
                val *low = &q[i], *high = &q[i | 1u << bit];
                val other = exchange(p, at, bit, *low, *high);
                *low = select(p, at->upper[bit], other, *low);
                *high = select(p, at->upper[bit], *high, other);
            }
}

val q8_add_halves(ptx *p, const q8_lane_place *at, val v)
{
    return add(p, v, shuffle_xor(p, v, 1u << at->bits->of[Q8_HALF_BIT]));
}

q8_lane q8_quantize_lane(ptx *p, val x)
{
    val size = warp_max(p, q8_largest(p, imm(U32, 0), &x, 1));
    val d = div(p, bits_as(p, F32, size), 127.0f);
    val inverse = select(p, eq(p, d, 0.0f), imm(F32, 0), rcp(p, d));
    /* Rounds half away from zero; PTX rounds half to even. The distance to the truncated number is
     * exact, so it decides. */
    val q = mul(p, x, inverse), whole = convert(p, S32, q);
    val rest = sub(p, q, convert(p, F32, whole));
    val up = select(p, ge(p, rest, 0.5f), imm(S32, 1), imm(S32, 0));
    val down = select(p, le(p, rest, -0.5f), imm(S32, -1), imm(S32, 0));
    return (q8_lane){ .d = d, .q = add(p, add(p, whole, up), down) };
}

void q8_1_store_warp(ptx *p, val block, val x)
{
    q8_lane quantized = q8_quantize_lane(p, x);
    val lane = lane_id(p), sum = mul(p, convert(p, F32, warp_sum(p, quantized.q)), quantized.d);
    st_global(p, S8, add(p, block, convert(p, U64, lane)), Q8_1_QUANTS, quantized.q);
    PTX_IF (p, eq(p, lane, 0)) {
        st_global(p, F16, block, Q8_1_D, convert(p, F16, quantized.d));
        st_global(p, F16, block, Q8_1_S, convert(p, F16, sum));
    }
}

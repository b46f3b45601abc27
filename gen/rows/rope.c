#include <math.h>
#include <stdint.h>
#include <string.h>

#include "gen/rows/rope.h"

#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"
#include "gen/common/next.h"
#include "gen/common/values.h"
#include "ref/reference.h"

#define TWO_PI    6.28318530717958647693
#define LN_2      0.693147180559945309417
#define ROOT_HALF 0.70710678118654752440

enum { ROPE_MOST_PAIRS = PROBLEM_MOST_HEAD_DIM / 2 };

const choice rope_style_choices[] =
    CHOICES([ROPE_NORM] = { "norm", "_norm" }, [ROPE_NEOX] = { "neox", "_neox" },
            [ROPE_NONE] = { "none", "" });
const choice rope_scaling_choices[] =
    CHOICES([ROPE_UNSCALED] = { "none", "" }, [ROPE_LINEAR] = { "linear", "_linear" },
            [ROPE_YARN] = { "yarn", "_yarn" });
const choice rope_factors_choices[] = CHOICES({ "none", "" }, { "divide", "_factors" });

const char *check_rope(const instance *in, arena *a, const char **blamed)
{
    const rope_options *o = &in->options.rope;
    if (o->scaling == ROPE_YARN && !(o->original_context >= 1))
        return blame_key(
            a, blamed, "rope_scaling",
            "rope_scaling = yarn needs rope_original_context, the context length that the model "
            "was trained with, e.g. 8192");
    if (o->temperature_length > floor(o->temperature_length))
        return blame_key(a, blamed, "temperature_length",
                         "temperature_length = %g is not a whole number; use %g",
                         o->temperature_length, ceil(o->temperature_length));
    int64_t pairs = o->sections[0] + o->sections[1] + o->sections[2];
    if (pairs && pairs != o->dims / 2)
        return blame_key(a, blamed, "rope_section_t",
                         "rope_section_t + rope_section_h + rope_section_w = %lld, but n_rot = "
                         "%lld has %lld pairs; use sections of %lld pairs",
                         (long long)pairs, (long long)o->dims, (long long)o->dims / 2,
                         (long long)o->dims / 2);
    return NULL;
}

/* RoPE frequencies, computed while a kernel is generated. The code uses only +, -, * and / on
 * doubles, in a fixed order, so that the same kernel is generated on every machine: pow and log of
 * C libraries differ in the last place. */

/* Returns log(x) = exponent ln(2) + 2 atanh((m - 1) / (m + 1)), with m in [sqrt(1/2), sqrt(2)). */
static double host_log(double x)
{
    enum { TERMS = 14 };
    int exponent;
    double m = frexp(x, &exponent), sum = 0;
    if (m < ROOT_HALF) {
        m *= 2;
        exponent--;
    }
    double t = (m - 1) / (m + 1);
    for (int i = TERMS; i >= 0; i--)
        sum = sum * t * t + 1.0 / (2 * i + 1);
    return exponent * LN_2 + 2 * t * sum;
}

static double host_exp(double x)
{
    enum { TERMS = 18 };
    double whole = floor(x / LN_2 + 0.5), rest = x - whole * LN_2, sum = 1;
    for (int i = TERMS; i > 0; i--)
        sum = sum * rest / i + 1;
    return ldexp(sum, (int)whole);
}

/* Returns the (fractional) index of the pair that makes b turns over the original context. */
static double pair_of_turns(const rope_options *o, double b)
{
    return (double)o->dims * host_log(o->original_context / (TWO_PI * b)) / (2 * host_log(o->base));
}

/* Returns the factor of a pair's frequency. YaRN keeps pairs that turn often, divides the frequency
 * of pairs that turn seldom by the factor, and blends the pairs between them. */
static double scaling_of(const rope_options *o, double pair)
{
    const double least_ramp = 0.001;
    if (o->scaling == ROPE_UNSCALED)
        return 1;
    if (o->scaling == ROPE_LINEAR)
        return 1 / o->factor;
    double low = floor(pair_of_turns(o, o->beta_fast)), high = ceil(pair_of_turns(o, o->beta_slow));
    low = low < 0 ? 0 : low;
    high = high > (double)o->dims - 1 ? (double)o->dims - 1 : high;
    double ramp = (pair - low) / (high - low < least_ramp ? least_ramp : high - low);
    double mix = (1 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp)) * o->extension;
    return (1 - mix) / o->factor + mix;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Fills a table of one word per pair: turns per position, scaling included, or 0 for a pair without
 * an axis.
 *
 * Without rope_factors the word is the fraction of a turn times 2^64. The low 64 bits of its
 * product with a position are the position's fraction of a turn. Its error is at most 2^-32 up to
 * position 2^23, and 2^-24 for any 32-bit position. Whole turns are dropped. With rope_factors, by
 * which the kernel divides, the word is the sum of two f32; the larger one is in the low half. */
static void make_table(const rope_options *o, uint64_t words[ROPE_MOST_PAIRS])
{
    bool all = !o->sections[0] && !o->sections[1] && !o->sections[2]; /* pairs have an axis */
    for (int64_t pair = 0; pair < o->dims / 2; pair++) {
        bool turns_at_all = all || pair < ROPE_AXES * o->sections[pair % ROPE_AXES];
        double turns = host_exp(-2 * (double)pair / (double)o->dims * host_log(o->base)) / TWO_PI;
        turns *= turns_at_all ? scaling_of(o, (double)pair) : 0;
        float high = (float)turns, low = (float)(turns - (double)high);
        words[pair] = o->factors ? bits_of(high) | (uint64_t)bits_of(low) << 32
                                 : (uint64_t)ldexp(turns - floor(turns), 64);
    }
}

unsigned head_parts(const instance *in)
{
    return ((unsigned)in->shape.head_dim + HEAD_PART - 1) / HEAD_PART;
}

/* Returns the end of a part, clipped to the end of the head. */
static unsigned part_end(const instance *in, unsigned part)
{
    unsigned end = (part + 1) * HEAD_PART, dim = (unsigned)in->shape.head_dim;
    return end < dim ? end : dim;
}

static val below(ptx *p, val place, unsigned part, unsigned end, unsigned limit)
{
    if (end <= limit || part * HEAD_PART >= limit)
        return imm(PRED, end <= limit);
    return lt(p, place, limit);
}

val head_place(ptx *p, const instance *in, unsigned part)
{
    val place = add(p, lane_id(p), part * HEAD_PART);
    unsigned end = part_end(in, part);
    return end % HEAD_PART ? min(p, place, end - 1) : place;
}

val head_has(ptx *p, const instance *in, unsigned part)
{
    unsigned lanes = part_end(in, part) - part * HEAD_PART;
    return lanes == HEAD_PART ? imm(PRED, 1) : lt(p, lane_id(p), lanes);
}

rope_pair rope_pair_of(ptx *p, const instance *in, unsigned part)
{
    unsigned dims = (unsigned)in->options.rope.dims, half = dims / 2, end = part_end(in, part);
    val place = head_place(p, in, part);
    rope_pair r = { .turns = below(p, place, part, end, dims) };
    if (in->options.rope.style == ROPE_NORM) {
        r.pair = shr(p, place, 1);
        r.partner = bit_xor(p, place, 1);
        r.first = eq(p, bit_and(p, place, 1), 0);
    } else {
        r.first = below(p, place, part, end, half);
        r.pair = select(p, r.first, place, sub(p, place, half));
        r.partner = select(p, r.first, add(p, place, half), sub(p, place, half));
    }
    if (end > dims)
        r.pair = min(p, r.pair, half - 1);
    r.partner = select(p, r.turns, r.partner, place);
    return r;
}

/* Divides a frequency, given as the sum of two f32, by the pair's factor. Returns a fraction of a
 * turn times 2^64. The conversion holds at most 128 turns; it drops whole turns. unknown is 0, or
 * NaN if the factor has no finite inverse. */
static val divided_frequency(ptx *p, const instance *in, val entry, val pair, val *unknown)
{
    enum { WHOLE_BITS = 8 };
    const float unit = 0x1p56f;
    val2 turns = ld_const_v2(p, F32, entry, 0);
    val factor_at = mad_wide(p, pair, sizeof(float), parameter(p, "factors"));
    val factor = load_state(p, is_settled(in), F32, factor_at);
    val inverse = rcp(p, factor);
    val high = mul(p, turns.v[0], inverse);
    val rest = add(p, fma(p, neg(p, high), factor, turns.v[0]), turns.v[1]);
    val low = mul(p, rest, inverse);
    *unknown = sub(p, low, low);
    val sum = add(p, convert(p, S64, mul(p, high, unit)), convert(p, S64, mul(p, low, unit)));
    return as(p, U64, shl(p, sum, WHOLE_BITS));
}

/* Returns sin and cos for an angle in [-pi/4, pi/4], with the polynomials of Moshier's Cephes
 * (sinf, cosf). */
static rope_turn small_turn(ptx *p, val angle)
{
    val square = mul(p, angle, angle);
    val sin = fma(p, square, -1.9515295891e-4f, 8.3321608736e-3f);
    sin = fma(p, sin, square, -1.6666654611e-1f);
    val cos = fma(p, square, 2.443315711809948e-5f, -1.388731625493765e-3f);
    cos = fma(p, cos, square, 4.166664568298827e-2f);
    cos = fma(p, cos, mul(p, square, square), fma(p, square, -0.5f, 1.0f));
    return (rope_turn){ .cos = cos, .sin = fma(p, mul(p, sin, square), angle, angle) };
}

/* Negates x if bit `bit` of number is set. */
static val signed_by(ptx *p, val x, val number, unsigned bit)
{
    enum { SIGN = 31 };
    val sign = shl(p, bit_and(p, number, 1u << bit), SIGN - bit);
    return bits_as(p, F32, bit_xor(p, bits_as(p, U32, x), sign));
}

/* Reduces the phase to the nearest quarter turn and at most an eighth of a turn beside it. */
static rope_turn turn_of_phase(ptx *p, val phase)
{
    enum { HALF_BITS = 32, QUARTER_BITS = 30 };
    val word = convert(p, U32, shr(p, add(p, phase, imm(U64, 1LL << (HALF_BITS - 1))), HALF_BITS));
    val quarter = shr(p, add(p, word, 1u << (QUARTER_BITS - 1)), QUARTER_BITS);
    val rest = as(p, S32, sub(p, word, shl(p, quarter, QUARTER_BITS)));
    rope_turn small = small_turn(p, mul(p, convert(p, F32, rest), (float)(TWO_PI * 0x1p-32)));
    val odd = ne(p, bit_and(p, quarter, 1), 0);
    val cos = select(p, odd, small.sin, small.cos), sin = select(p, odd, small.cos, small.sin);
    return (rope_turn){ .cos = signed_by(p, cos, add(p, quarter, 1), 1),
                        .sin = signed_by(p, sin, quarter, 1) };
}

rope_turn rope_turn_at(ptx *p, const instance *in, val pair, val position)
{
    static const char *const notice[] = {
        "Turns per position of each pair: the fraction times 2^64, or two f32 to be divided.", NULL
    };
    const rope_options *o = &in->options.rope;
    uint64_t words[ROPE_MOST_PAIRS];
    make_table(o, words);
    val table = global_array(p, "rope_turns", notice, words, (unsigned)o->dims / 2);
    val entry = mad_wide(p, pair, sizeof *words, table), unknown = imm(F32, 0);
    val frequency =
        o->factors ? divided_frequency(p, in, entry, pair, &unknown) : ld_const(p, U64, entry, 0);
    rope_turn turn = turn_of_phase(p, mul(p, frequency, convert(p, U64, position)));
    if (o->factors) {
        turn.cos = add(p, turn.cos, unknown);
        turn.sin = add(p, turn.sin, unknown);
    }
    if (o->magnitude > 0 && (o->magnitude < 1 || o->magnitude > 1)) {
        turn.cos = mul(p, turn.cos, o->magnitude);
        turn.sin = mul(p, turn.sin, o->magnitude);
    }
    return turn;
}

val rope_turned_by(ptx *p, const rope_pair *r, const rope_turn *by, val x, val partner)
{
    val sin = select(p, r->first, neg(p, by->sin), by->sin);
    return select(p, r->turns, fma(p, x, by->cos, mul(p, partner, sin)), x);
}

val rope_turned(ptx *p, const instance *in, const rope_pair *r, val position, val x, val partner)
{
    rope_turn by = rope_turn_at(p, in, r->pair, position);
    return rope_turned_by(p, r, &by, x, partner);
}

static val natural_log(ptx *p, val x)
{
    enum { SQRT_HALF = 0x3f3504f3, FRACTION_BITS = 23 };
    val bits = bits_as(p, S32, x);
    val exponent = shr(p, sub(p, bits, SQRT_HALF), FRACTION_BITS);
    val m = bits_as(p, F32, sub(p, bits, shl(p, exponent, FRACTION_BITS)));
    val t = div(p, sub(p, m, 1.0f), add(p, m, 1.0f)), square = mul(p, t, t);
    val sum = fma(p, square, 2.0f / 9, 2.0f / 7);
    sum = fma(p, sum, square, 2.0f / 5);
    sum = fma(p, sum, square, 2.0f / 3);
    sum = fma(p, mul(p, sum, square), t, mul(p, t, 2.0f));
    return fma(p, convert(p, F32, exponent), (float)LN_2, sum);
}

val rope_temperature(ptx *p, const instance *in, val position)
{
    const rope_options *o = &in->options.rope;
    val steps = div(p, position, imm(U32, (int64_t)o->temperature_length));
    val log = natural_log(p, convert(p, F32, add(p, steps, 1)));
    return fma(p, log, (float)o->temperature_scale, 1.0f);
}

void cache_store(ptx *p, const instance *in, val row, unsigned part, val value, val where)
{
    format f = kv_format(in);
    if (f == FORMAT_Q8_0) {
        val block = add(p, row, part * Q8_0_BYTES);
        q8_lane q8 = q8_quantize_lane(p, value);
        PTX_IF (p, where) {
            st_global(p, S8, add(p, block, convert(p, U64, lane_id(p))), Q8_0_QUANTS, q8.q);
            PTX_IF (p, eq(p, lane_id(p), 0))
                st_global(p, F16, block, Q8_0_D, convert(p, F16, q8.d));
        }
        return;
    }
    val at = mad_wide(p, head_place(p, in, part), formats[f].block_bytes, row);
    PTX_IF (p, bit_and(p, where, head_has(p, in, part)))
        values_store(p, f, at, 1, &value);
}

/* Weights that are small integers times scales: see gemm_weights.h.
 *
 * A word of quants becomes pairs of f16 by masks: bits below 10 of a half beside those of 1024 are
 * 1024 + q, exactly, and 1024 + 16 q where q is four bits further up, so that it needs no shift.
 * Subtracted from that, in f16 and exactly, is what makes of q a number of either sign, so that
 * little is lost when it is multiplied by a scale that was rounded to f16. Pairs are bytes 0 and 2,
 * 1 and 3 of a word.
 */
#include <string.h>

#include "gen/common/bytes.h"
#include "gen/products/gemm_weights.h"

enum {
    OWN_WORDS = GEMM_OWN / 4,
    Q4K_CENTER = 8,
    Q6K_CENTER = 32,
    Q6K_HALF_STEPS = 4, /* that have the same bytes of high bits */
    HALF_BIAS = 15,
    HALF_FRACTION = 10, /* bits */
};

#define PAIR_OF(half) imm(U32, 0x00010001LL * (half))
#define HALF_1024     0x6400

/* The f16 of a whole number of at most 11 bits, or of its sixteenth part. */
static uint32_t half_bits(int number)
{
    uint32_t sign = number < 0 ? 0x8000 : 0, size = (uint32_t)(number < 0 ? -number : number);
    unsigned exponent = 25;
    for (; size < 1024; size *= 2)
        exponent--;
    return sign | exponent << 10 | (size & 1023);
}

/* q - center of pairs that are 1024 + 2^up q. */
static val centred(ptx *p, val pair, unsigned up, int center)
{
    val offset = PAIR_OF(half_bits(-(1024 >> up) - center));
    if (!up)
        return add_pair(p, pair, offset);
    return fma_pair(p, pair, PAIR_OF((HALF_BIAS - up) << HALF_FRACTION), offset);
}

/* Both halves the same f16. */
static val both(ptx *p, val number)
{
    return pack_halves(p, number, number);
}

/* 32-bit words from a place on that is a multiple of so many bytes, by as wide loads as that
 * allows; the offset in front of it counts. */
static void load_aligned(ptx *p, val at, int64_t offset, unsigned aligned, unsigned count,
                         val *words)
{
    for (unsigned i = 0; i < count;) {
        unsigned width = count - i >= 4 ? 4 : count - i >= 2 ? 2 : 1;
        while (width > 1 && (aligned % (4 * width) || (offset + 4 * i) % (4 * width)))
            width /= 2;
        if (width == 4) {
            val4 four = ld_shared_v4(p, U32, at, offset + 4 * i);
            memcpy(words + i, four.v, sizeof four.v);
        } else if (width == 2) {
            val2 two = ld_shared_v2(p, U32, at, offset + 4 * i);
            memcpy(words + i, two.v, sizeof two.v);
        } else {
            words[i] = ld_shared(p, U32, at, offset + 4 * i);
        }
        i += width;
    }
}

/* The thread's 16 neighbouring bytes of 32 that are so many bytes behind the chunk's first. Where
 * they are aligned to 2 bytes alone words lie across others; of the last of these the half that
 * counts may be all that there is. */
static void load_words(ptx *p, const gemm_weights *w, int64_t offset, val words[OWN_WORDS])
{
    enum { IN_PLACE = 0x3210, ACROSS = 0x5432, WORD = 4, LAST_HALF = 4 * OWN_WORDS - 2 };
    val at = mad(p, w->half, GEMM_OWN, w->at);
    bool known = w->aligned >= WORD;
    if (known && offset % WORD == 0) {
        load_aligned(p, at, offset, w->aligned, OWN_WORDS, words);
        return;
    }
    val selector = imm(U32, ACROSS), lines[OWN_WORDS + 1], start = at;
    int64_t before = offset % WORD;
    if (!known) {
        start = before ? add(p, at, (unsigned)before) : at;
        selector = mad(p, bfe(p, start, 1, 1), ACROSS - IN_PLACE, imm(U32, IN_PLACE));
        start = bit_and(p, start, imm(U32, 0xfffffffc));
    }
    load_aligned(p, start, offset - before, known ? w->aligned : WORD, OWN_WORDS, lines);
    lines[OWN_WORDS] = ld_shared(p, U16, at, offset + LAST_HALF);
    for (unsigned i = 0; i < OWN_WORDS; i++)
        words[i] = prmt(p, lines[i], lines[i + 1], selector);
}

/* Q4_K: the two steps of 64 values have the low and the high nibbles of the same bytes. What is
 * kept is their words, behind these of the block d and dmin, scales and mins of groups 0 to 3 and 4
 * to 7 in bytes. */
enum { Q4K_D = OWN_WORDS, Q4K_MIN_D, Q4K_SCALES_LOW, Q4K_SCALES_HIGH, Q4K_MINS_LOW, Q4K_MINS_HIGH };

static void begin_q4k(ptx *p, gemm_weights *w)
{
    val4 head = ld_shared_v4(p, U32, w->at, 0);
    val2 d = halves(p, head.v[0]);
    w->kept[Q4K_D] = convert(p, F32, d.v[0]);
    w->kept[Q4K_MIN_D] = neg(p, convert(p, F32, d.v[1]));
    val scales = head.v[1], mins = head.v[2], nibbles = head.v[3];
    w->kept[Q4K_SCALES_LOW] = bit_and(p, scales, IN_EACH_BYTE(63));
    w->kept[Q4K_MINS_LOW] = bit_and(p, mins, IN_EACH_BYTE(63));
    w->kept[Q4K_SCALES_HIGH] =
        lop3(p, shr(p, scales, 2), IN_EACH_BYTE(48), bit_and(p, nibbles, IN_EACH_BYTE(15)), AND_OR);
    w->kept[Q4K_MINS_HIGH] = lop3(p, shr(p, mins, 2), IN_EACH_BYTE(48),
                                  bit_and(p, shr(p, nibbles, 4), IN_EACH_BYTE(15)), AND_OR);
}

/* w = d s (q - 8) + (8 d s - dmin m): where mins bring weights to both sides of 0, what is in
 * parentheses is small, and both roundings are. */
static void step_of_q4k(ptx *p, gemm_weights *w, unsigned step, unsigned there,
                        val words[GEMM_OWN / 2])
{
    (void)there; /* all */
    bool high = step % 2;
    unsigned byte = step % 4, of_high = step / 4;
    if (!high)
        load_words(p, w, Q4_K_QUANTS + step / 2 * GEMM_STEP, w->kept);
    val scale = byte_as_f32(p, w->kept[Q4K_SCALES_LOW + of_high], byte);
    val min = byte_as_f32(p, w->kept[Q4K_MINS_LOW + of_high], byte);
    scale = mul(p, w->kept[Q4K_D], scale);
    val rest = fma(p, scale, (float)Q4K_CENTER, mul(p, w->kept[Q4K_MIN_D], min));
    val factor = both(p, scale), added = both(p, rest);
    for (unsigned i = 0; i < OWN_WORDS; i++)
        for (unsigned odd = 0; odd < 2; odd++) {
            val bytes = odd ? shr(p, w->kept[i], 8) : w->kept[i];
            val pair = lop3(p, bytes, PAIR_OF(high ? 0xf0 : 0xf), PAIR_OF(HALF_1024), AND_OR);
            words[2 * i + odd] =
                fma_pair(p, centred(p, pair, high ? 4 : 0, Q4K_CENTER), factor, added);
        }
}

/* Q6_K: the four steps of half a block have the same bytes of high bits, and two of them the same
 * of low ones. Kept are words of low bits of the even and of the odd step, then those of high bits,
 * and d. */
enum { Q6K_HIGH = 2 * OWN_WORDS, Q6K_SCALE = 3 * OWN_WORDS };

static void begin_q6k(ptx *p, gemm_weights *w)
{
    w->kept[Q6K_SCALE] = load_packed(p, F16, w->at, Q6_K_D);
    w->kept[Q6K_SCALE] = convert(p, F32, w->kept[Q6K_SCALE]);
}

static void step_of_q6k(ptx *p, gemm_weights *w, unsigned step, unsigned there,
                        val words[GEMM_OWN / 2])
{
    (void)there; /* all */
    enum { HALF_LOW = 64, HALF_HIGH = 32 };
    unsigned half = step / Q6K_HALF_STEPS, quarter = step % Q6K_HALF_STEPS, of_low = quarter % 2;
    bool high = quarter >= 2;
    val *low = w->kept + of_low * OWN_WORDS;
    if (!high)
        load_words(p, w, Q6_K_QUANTS + half * HALF_LOW + of_low * GEMM_STEP, low);
    if (!quarter)
        load_words(p, w, Q6_K_HIGH_BITS + half * HALF_HIGH, w->kept + Q6K_HIGH);
    val scale = convert(p, F32, ld_shared(p, S8, add(p, w->at, w->half), Q6_K_SCALES + 2 * step));
    val factor = both(p, mul(p, w->kept[Q6K_SCALE], scale));
    /* Of quarters 0 and 1 the low bits stay in place, of 2 and 3 the high ones do. */
    unsigned up = quarter == 3 ? 2 : 0;
    for (unsigned i = 0; i < OWN_WORDS; i++) {
        val upper = w->kept[Q6K_HIGH + i];
        val lower = high ? shr(p, low[i], 4 - up) : low[i];
        upper = high ? upper : shl(p, upper, 4 - 2 * quarter);
        val bytes = lop3(p, IN_EACH_BYTE(0xf << up), lower, upper, CHOOSE);
        for (unsigned odd = 0; odd < 2; odd++) {
            val pair = lop3(p, odd ? shr(p, bytes, 8) : bytes, PAIR_OF(0x3f << up),
                            PAIR_OF(HALF_1024), AND_OR);
            words[2 * i + odd] = mul_pair(p, centred(p, pair, up, Q6K_CENTER), factor);
        }
    }
}

/* Q8_0: q + 128 is what its byte is with the uppermost bit changed, which one table of lop3 does
 * together with mask and 1024. */
static void step_of_q8_0(ptx *p, gemm_weights *w, unsigned step, unsigned there,
                         val words[GEMM_OWN / 2])
{
    (void)there; /* all */
    enum { BIAS = 128, BITS = 0xff, FLIPPED = 0x80 };
    int64_t block = (int64_t)step * Q8_0_BYTES;
    val d = load_packed(p, U16, w->at, block + Q8_0_D), quants[OWN_WORDS];
    val factor = prmt(p, d, d, 0x1010);
    load_words(p, w, block + Q8_0_QUANTS, quants);
    for (unsigned i = 0; i < OWN_WORDS; i++)
        for (unsigned odd = 0; odd < 2; odd++) {
            val bytes = odd ? shr(p, quants[i], 8) : quants[i];
            val pair = lop3(p, bytes, PAIR_OF(BITS), PAIR_OF(HALF_1024 | FLIPPED), AND_XOR);
            words[2 * i + odd] = mul_pair(p, centred(p, pair, 0, BIAS), factor);
        }
}

const gemm_decoder gemm_q4k = { .apart = true, .begin = begin_q4k, .step = step_of_q4k };
const gemm_decoder gemm_q6k = { .apart = true, .begin = begin_q6k, .step = step_of_q6k };
const gemm_decoder gemm_q8_0 = { .apart = true, .step = step_of_q8_0 };

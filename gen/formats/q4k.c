/* Q4_K and Q5_K: 256 weights with eight scales and mins. Layouts are in q4k.h and
 * src/ref/decode_k.c.
 *
 *   Q4_K   0 f16 d   2 f16 dmin   4 scales   16 nibbles                            144 bytes
 *   Q5_K   0 f16 d   2 f16 dmin   4 scales   16 32 x u8 fifth bits   48 nibbles    176 bytes
 *
 * ggml's get_scale_min_k4 packs the scales into 12 bytes s[0..11]:
 *
 *   j < 4   scale = s[j] & 63
 *           min   = s[j + 4] & 63
 *   j >= 4  scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4
 *           min   = (s[j + 4] >> 4) | (s[j] >> 6) << 4
 *
 * Sub-blocks 2c and 2c + 1 are neighbouring bytes, in half c & 1 of each word: s[0..3] is word 0,
 * s[4..7] word 1, s[8..11] word 2.
 *
 * Streaming, four lanes share a super-block. Lane c loads the 32 bytes of chunk c: the low nibbles
 * are sub-block 2c, the high ones sub-block 2c + 1. All four load the 16 bytes of the header. So 64
 * weights of Q4_K are three aligned 16-byte loads.
 *
 * In Q5_K byte i of the fifth bits has bit j for weight i of sub-block j, and each lane loads all
 * 32 bytes. Rotated so that bit 2c becomes bit 4, the fifth bits of sub-block 2c are above its
 * nibbles. The fifth bits of sub-block 2c + 1 are then bit 5, and its nibbles are shifted to bit 1,
 * so its q are twice as large. */
#include "gen/formats/q4k.h"

#include <string.h>

#include "gen/formats/tools.h"

q4k_chunk q4k_chunk_new(ptx *p, val chunk)
{
    enum { LOW_HALVES = 0x5410, HIGH_HALVES = 0x7632 };
    val upper_half = ne(p, bit_and(p, chunk, 1), 0), late = ge(p, chunk, 2);
    return (q4k_chunk){
        .selector = select(p, upper_half, imm(U32, HIGH_HALVES), imm(U32, LOW_HALVES)),
        .shift = select(p, late, imm(U32, 2), imm(U32, 0)),
        .mask_six = select(p, late, imm(U32, 0x30303030), imm(U32, 0x3f3f3f3f)),
        .mask_last = select(p, late, imm(U32, 0x0f0f0f0f), imm(U32, 0)),
    };
}

q4k_header q4k_header_at(ptx *p, val row, int64_t offset, const q4k_chunk *c)
{
    return q4k_header_of(p, ld_const_v4(p, U32, row, offset), c);
}

q4k_header q4k_header_of(ptx *p, val4 word, const q4k_chunk *c)
{
    val2 d = halves(p, word.v[0]);

    val first = prmt(p, word.v[1], word.v[2], c->selector);
    val upper = bit_and(p, shr(p, first, c->shift), c->mask_six);
    /* Both operands hold the chunk's two bytes: scales in low nibbles, mins in high ones. */
    val last = prmt(p, word.v[3], shr(p, word.v[3], 4), c->selector);
    return (q4k_header){
        .d = convert(p, F32, d.v[0]),
        .dmin = convert(p, F32, d.v[1]),
        .packed = lop3(p, last, c->mask_last, upper, AND_OR),
    };
}

/* Loads eight nibbles of sub-block j from byte 32 (j / 2) on: the low ones if j is even. */
static void load_paired_nibbles(ptx *p, val block, unsigned offset, val first, val w[UNPACKED])
{
    val j = shr(p, first, 5);
    val byte = mad(p, shr(p, j, 1), 32, bit_and(p, first, 31));
    load_fields(p, byte_at(p, block, byte), offset, mul(p, bit_and(p, j, 1), 4), 4, w);
}

/* Scales eight quants of Q4_K or Q5_K: d, dmin and the scales have the same offsets in both. */
static void scale_with_mins(ptx *p, val block, val first, val w[UNPACKED])
{
    val j = shr(p, first, 5), low = lt(p, j, 4), at = byte_at(p, block, bit_and(p, j, 3));
    val scales = load_packed(p, U8, at, Q4_K_SCALES),
        mins = load_packed(p, U8, at, Q4_K_SCALES + 4);
    val nibbles = load_packed(p, U8, at, Q4_K_SCALES + 8);
    val late_scale = bit_or(p, bit_and(p, nibbles, 15), shl(p, shr(p, scales, 6), 4));
    val late_min = bit_or(p, shr(p, nibbles, 4), shl(p, shr(p, mins, 6), 4));
    val scale = convert(p, F32, select(p, low, bit_and(p, scales, 63), late_scale));
    val min = convert(p, F32, select(p, low, bit_and(p, mins, 63), late_min));
    min = mul(p, load_half_as_f32(p, block, Q4_K_DMIN), min);
    scale_and_add(p, mul(p, load_half_as_f32(p, block, Q4_K_D), scale), neg(p, min), w);
}

static void unpack_q4_k(ptx *p, val block, val first, val w[UNPACKED])
{
    load_paired_nibbles(p, block, Q4_K_QUANTS, first, w);
    scale_with_mins(p, block, first, w);
}

static void unpack_q5_k(ptx *p, val block, val first, val w[UNPACKED])
{
    load_paired_nibbles(p, block, Q5_K_QUANTS, first, w);
    add_one_bits(p, block, Q5_K_FIFTH_BITS, first, 4, w);
    scale_with_mins(p, block, first, w);
}

enum { HEADER, QUANTS = STREAM_WORDS, FIFTHS = QUANTS + 2 * STREAM_WORDS }; /* loaded words */
enum { SELECTOR, SHIFT, MASK_SIX, MASK_LAST, FIFTHS_ROTATION };             /* constants */
enum { LOW, HIGH = 2 }; /* first segments of the two sub-blocks */
enum { CHUNKS = 4, OF_CHUNK = 2 /* words of a fragment */ };

static val piece(ptx *p, val part)
{
    return mul(p, part, Q4K_CHUNK_BYTES);
}

static void lane_q4_k(ptx *p, stream_lane *lane)
{
    q4k_chunk c = q4k_chunk_new(p, lane->part);
    lane->constants[SELECTOR] = c.selector;
    lane->constants[SHIFT] = c.shift;
    lane->constants[MASK_SIX] = c.mask_six;
    lane->constants[MASK_LAST] = c.mask_last;
}

static void lane_q5_k(ptx *p, stream_lane *lane)
{
    lane_q4_k(p, lane);
    lane->constants[FIFTHS_ROTATION] = sub(p, imm(U32, 4), mul(p, lane->part, 2));
}

/* Decodes all but the quants. */
static stream_weights decode_header(ptx *p, const stream_lane *lane, const val words[STREAM_LOADED])
{
    val4 header = { { words[0], words[1], words[2], words[3] } };
    const val *c = lane->constants;
    q4k_chunk chunk = { c[SELECTOR], c[SHIFT], c[MASK_SIX], c[MASK_LAST] };
    q4k_header h = q4k_header_of(p, header, &chunk);
    stream_weights w = { .d = h.d, .dmin = h.dmin };
    for (unsigned i = 0; i < 2; i++) {
        w.scale[2 * i] = signed_byte_as_f32(p, h.packed, i);
        w.min[2 * i] = signed_byte_as_f32(p, h.packed, 2 + i);
    }
    return w;
}

/* Returns words of quants in the order of chunks. */
static void in_order(ptx *p, const stream_lane *lane, const val loaded[], val q[2 * STREAM_WORDS])
{
    memcpy(q, loaded, 2 * STREAM_WORDS * sizeof *q);
    for (unsigned bit = 1; lane->swizzle.kind && bit < CHUNKS; bit *= 2) {
        val old[2 * STREAM_WORDS], swaps = ne(p, bit_and(p, lane->swizzle, bit), 0);
        memcpy(old, q, sizeof old);
        for (unsigned i = 0; i < 2 * STREAM_WORDS; i++)
            q[i] = select(p, swaps, old[i ^ bit * OF_CHUNK], old[i]);
    }
}

static stream_weights decode_q4_k(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = decode_header(p, row->lane, words);
    val q[2 * STREAM_WORDS];
    in_order(p, row->lane, words + QUANTS, q);
    for (unsigned j = 0; j < 2 * STREAM_WORDS; j++) {
        unsigned half = j / STREAM_WORDS, word = j % STREAM_WORDS;
        w.q[LOW + half][word] = bit_and(p, q[j], IN_EACH_BYTE(0x0f));
        w.q[HIGH + half][word] = bit_and(p, q[j], IN_EACH_BYTE(0xf0));
    }
    return w;
}

static stream_weights decode_q5_k(ptx *p, const stream_row *row, const val words[STREAM_LOADED])
{
    stream_weights w = decode_header(p, row->lane, words);
    val q[2 * STREAM_WORDS];
    in_order(p, row->lane, words + QUANTS, q);
    val rotation = row->lane->constants[FIFTHS_ROTATION]; /* none: a fragment, of all chunks */
    for (unsigned j = 0; j < 2 * STREAM_WORDS; j++) {
        unsigned half = j / STREAM_WORDS, word = j % STREAM_WORDS, chunk = j / OF_CHUNK;
        val fifths = rotation.kind
                         ? rotate(p, words[FIFTHS + j], rotation)
                         : rotate(p, words[FIFTHS + j % OF_CHUNK], imm(U32, (4 - 2 * chunk) % 32));
        w.q[LOW + half][word] =
            lop3(p, q[j], IN_EACH_BYTE(0x0f), bit_and(p, fifths, IN_EACH_BYTE(0x10)), AND_OR);
        w.q[HIGH + half][word] = lop3(p, shr(p, q[j], 3), IN_EACH_BYTE(0x1e),
                                      bit_and(p, fifths, IN_EACH_BYTE(0x20)), AND_OR);
    }
    return w;
}

/* In fragments, lane l has bytes 8l .. 8l + 7 of every chunk, and of the fifth bits. */
static void row_of_fragments(ptx *p, stream_row *row)
{
    val first = add(p, row->block, convert(p, U64, mul(p, row->lane->part, Q4K_CHUNK_BYTES / 4)));
    val swizzle = row->lane->swizzle;
    row->at[CHUNKS] = first;
    for (unsigned i = 0; i < CHUNKS; i++) { /* less chunk i, which is in the load's offset */
        row->at[i] = first;
        if (swizzle.kind)
            row->at[i] = sub(p, mad_wide(p, bit_xor(p, swizzle, i), Q4K_CHUNK_BYTES, first),
                             (int64_t)i * Q4K_CHUNK_BYTES);
    }
}

/* Q4_K: two steps of 32 values are the low and the high nibbles of the same bytes. A thread keeps
 * these words, then d and -dmin, then scales and mins of groups 0 to 3 and 4 to 7 as bytes. */
enum {
    Q4K_D = GEMM_OWN_WORDS,
    Q4K_MIN_D,
    Q4K_SCALES_LOW,
    Q4K_SCALES_HIGH,
    Q4K_MINS_LOW,
    Q4K_MINS_HIGH
};

static void gemm_begin(ptx *p, gemm_row *row)
{
    val4 head = ld_shared_v4(p, U32, row->at, 0);
    val2 d = halves(p, head.v[0]);
    row->kept[Q4K_D] = convert(p, F32, d.v[0]);
    row->kept[Q4K_MIN_D] = neg(p, convert(p, F32, d.v[1]));
    val scales = head.v[1], mins = head.v[2], nibbles = head.v[3];
    row->kept[Q4K_SCALES_LOW] = bit_and(p, scales, IN_EACH_BYTE(63));
    row->kept[Q4K_MINS_LOW] = bit_and(p, mins, IN_EACH_BYTE(63));
    row->kept[Q4K_SCALES_HIGH] =
        lop3(p, shr(p, scales, 2), IN_EACH_BYTE(48), bit_and(p, nibbles, IN_EACH_BYTE(15)), AND_OR);
    row->kept[Q4K_MINS_HIGH] = lop3(p, shr(p, mins, 2), IN_EACH_BYTE(48),
                                    bit_and(p, shr(p, nibbles, 4), IN_EACH_BYTE(15)), AND_OR);
}

/* Computes w = d s (q - 8) + (8 d s - dmin m). Where mins bring weights to both sides of 0, the sum
 * in parentheses is small, and so are both rounding errors. */
static void gemm_step(ptx *p, gemm_row *row, unsigned step, unsigned valid, val words[GEMM_OWN / 2])
{
    (void)valid; /* always GEMM_STEP */
    enum { CENTER = 8 };
    bool high = step % 2;
    unsigned byte = step % 4, of_high = step / 4;
    if (!high)
        gemm_load_words(p, row, Q4_K_QUANTS + step / 2 * GEMM_STEP, row->kept);
    val scale = byte_as_f32(p, row->kept[Q4K_SCALES_LOW + of_high], byte);
    val min = byte_as_f32(p, row->kept[Q4K_MINS_LOW + of_high], byte);
    scale = mul(p, row->kept[Q4K_D], scale);
    val rest = fma(p, scale, (float)CENTER, mul(p, row->kept[Q4K_MIN_D], min));
    val factor = both_halves(p, scale), added = both_halves(p, rest);
    for (unsigned i = 0; i < GEMM_OWN_WORDS; i++)
        for (unsigned odd = 0; odd < 2; odd++) {
            val bytes = odd ? shr(p, row->kept[i], 8) : row->kept[i];
            val pair = lop3(p, bytes, PAIR_OF(high ? 0xf0 : 0xf), PAIR_OF(HALF_1024), AND_OR);
            words[2 * i + odd] =
                fma_pair(p, pair_centred(p, pair, high ? 4 : 0, CENTER), factor, added);
        }
}

/* Segment 4c + i of a super-block belongs to lane c. */
#define OF_CHUNKS    .scales = SCALES, .minima = true, .segments = 4, .twos = true, .piece = piece

#define OF_FRAGMENTS .fragments = true, .lane_new = lane_q4_k, .row_new = row_of_fragments
#define LOADS_OF_FRAGMENTS(quants)                                          \
    LOAD_WORDS(STREAM_WORDS, FROM_BLOCK, Q4_K_D), LOAD_WORDS(2, 0, quants), \
        LOAD_WORDS(2, 1, quants + Q4K_CHUNK_BYTES),                         \
        LOAD_WORDS(2, 2, quants + 2 * Q4K_CHUNK_BYTES),                     \
        LOAD_WORDS(2, 3, quants + 3 * Q4K_CHUNK_BYTES)

static const stream_format fragments_q4_k = { OF_CHUNKS, OF_FRAGMENTS, .up = { 0, 0, 4, 4 },
                                              .loads = { LOADS_OF_FRAGMENTS(Q4_K_QUANTS) },
                                              .decode = decode_q4_k };

static const stream_format fragments_q5_k = { OF_CHUNKS, OF_FRAGMENTS, .up = { 0, 0, 1, 1 },
                                              .loads = { LOADS_OF_FRAGMENTS(Q5_K_QUANTS),
                                                         LOAD_WORDS(2, CHUNKS, Q5_K_FIFTH_BITS) },
                                              .decode = decode_q5_k };

const weight_format weight_format_Q4_K = {
    .unpack = unpack_q4_k,
    .tensor_stream = &fragments_q4_k,
    .stream = { OF_CHUNKS, .up = { 0, 0, 4, 4 }, /* high nibbles are not shifted down */
                .quants = Q4_K_QUANTS, .lane_new = lane_q4_k,
                .loads = { LOAD_WORDS(STREAM_WORDS, FROM_BLOCK, Q4_K_D), LOAD_PIECE },
                .decode = decode_q4_k },
    .gemm = { .apart = true, .begin = gemm_begin, .step = gemm_step },
};

const weight_format weight_format_Q5_K = {
    .unpack = unpack_q5_k,
    .tensor_stream = &fragments_q5_k,
    .stream = { OF_CHUNKS, .up = { 0, 0, 1, 1 }, .quants = Q5_K_QUANTS, .lane_new = lane_q5_k,
                .loads = { LOAD_WORDS(STREAM_WORDS, FROM_BLOCK, Q5_K_D), LOAD_PIECE,
                           LOAD_WORDS(STREAM_LINES, FROM_BLOCK, Q5_K_FIFTH_BITS) },
                .decode = decode_q5_k },
};

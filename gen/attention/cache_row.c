#include "gen/attention/cache_row.h"
#include "gen/common/bytes.h"

enum {
    WORD_BYTES = 4,
    PAIR_BYTES = 2,
    WIDE_PIECE = 16, /* bytes */
    NARROW_PIECE = 8,
};

unsigned cache_row_bytes(const instance *in)
{
    return (unsigned)format_bytes(kv_format(in), (uint64_t)problem_cache_values(&in->shape));
}

/* Returns the bytes per value; only for formats without blocks. */
static unsigned value_bytes(const row_split *s)
{
    return formats[s->format].block_bytes;
}

unsigned row_split_values(const row_split *s)
{
    return s->pieces * s->piece;
}

static row_split split_into(const instance *in, unsigned lane_values, unsigned least_group,
                            unsigned piece)
{
    row_split s = { .format = kv_format(in), .piece = piece, .group = least_group };
    unsigned pieces = (unsigned)in->shape.head_dim / s.piece;
    while (s.group < WARP && s.group * lane_values < pieces * s.piece)
        s.group *= 2;
    s.pieces = (pieces + s.group - 1) / s.group;
    s.ragged = pieces % s.group != 0;
    s.in_pairs = s.format == FORMAT_Q8_0 && in->shape.head_dim / Q8_0_VALUES % 2;
    return s;
}

/* Uses narrow pieces if wide ones would leave more lanes idle. q8_0 has one piece per lane. */
row_split row_split_of(const instance *in, unsigned lane_values, unsigned least_group)
{
    if (kv_format(in) == FORMAT_Q8_0) {
        while (in->shape.head_dim > WARP * (int64_t)lane_values)
            lane_values *= 2;
        return split_into(in, lane_values, least_group, lane_values);
    }
    unsigned bytes = formats[kv_format(in)].block_bytes;
    row_split wide = split_into(in, lane_values, least_group, WIDE_PIECE / bytes);
    row_split narrow = split_into(in, lane_values, least_group, NARROW_PIECE / bytes);
    bool halves = bytes < F32_BYTES, has_half_piece = in->shape.head_dim % wide.piece;
    return halves && (has_half_piece || narrow.group * row_split_values(&narrow) <
                                            wide.group * row_split_values(&wide))
               ? narrow
               : wide;
}

static unsigned stride(const row_split *s, unsigned bytes)
{
    return s->group * s->piece * bytes;
}

static bool is_ragged_piece(const row_split *s, unsigned piece)
{
    return s->ragged && piece + 1 == s->pieces;
}

row_lane row_lane_new(ptx *p, const instance *in, row_split split)
{
    row_lane l = { .split = split };
    val lane = lane_id(p);
    unsigned last = (split.pieces - 1) * split.group;
    l.lane = named(p, "piece", bit_and(p, lane, split.group - 1));
    l.group = named(p, "group", div(p, lane, split.group));
    l.row_pieces = (unsigned)in->shape.head_dim / split.piece;
    l.has_last = lt(p, l.lane, l.row_pieces - last);
    if (split.format != FORMAT_Q8_0)
        l.last_offset =
            select(p, l.has_last, imm(U64, last * split.piece * value_bytes(&split)), imm(U64, 0));
    l.first_piece = split.pieces == 1 ? select(p, l.has_last, l.lane, imm(U32, 0)) : l.lane;
    if (split.format != FORMAT_Q8_0)
        return l;
    /* The lane's words begin two or four bytes before its quants; its pairs are the quants. */
    enum { BEHIND_TWO = 0x5432, BEHIND_FOUR = 0x7654 };
    unsigned pieces = Q8_0_VALUES / split.piece;
    val block = named(p, "block", div(p, l.first_piece, pieces)), d = mul(p, block, Q8_0_BYTES);
    val two_ahead = mad(p, rem(p, l.first_piece, pieces), imm(U32, split.piece), d);
    val words = split.in_pairs ? add(p, two_ahead, F16_BYTES)
                               : bit_and(p, two_ahead, imm(U32, -WORD_BYTES));
    l.words_offset = convert(p, U64, words);
    l.last_offset = sub(p, convert(p, U64, d), l.words_offset);
    if (!split.in_pairs) {
        val even = eq(p, bit_and(p, block, 1), 0);
        l.selector = select(p, even, imm(U32, BEHIND_TWO), imm(U32, BEHIND_FOUR));
    }
    return l;
}

val row_lane_offset(ptx *p, const row_lane *l)
{
    return l->split.format == FORMAT_Q8_0
               ? l->words_offset
               : mul_wide(p, l->first_piece, l->split.piece * value_bytes(&l->split));
}

val row_lane_at(ptx *p, const row_lane *l, val row)
{
    unsigned piece_bytes = l->split.piece * F32_BYTES;
    return row.type == U32 ? add(p, row, mul(p, l->first_piece, piece_bytes))
                           : mad_wide(p, l->first_piece, piece_bytes, row);
}

void row_lane_load(ptx *p, const row_lane *l, val row, float scale, val values[MAX_LANE_VALUES])
{
    const row_split *s = &l->split;
    unsigned step = stride(s, F32_BYTES);
    row = row_lane_at(p, l, row);
    val last = row;
    if (s->ragged)
        last = add(p, row, select(p, l->has_last, imm(U64, (s->pieces - 1) * step), imm(U64, 0)));
    for (unsigned i = 0; i < row_split_values(s); i += 4) {
        unsigned piece = i / s->piece, within = i % s->piece * F32_BYTES;
        bool ragged = is_ragged_piece(s, piece);
        load_floats(p, ragged ? last : row, (ragged ? 0 : piece * step) + within, 4, values + i);
        for (unsigned j = 0; j < 4; j++) {
            val value = mul(p, values[i + j], scale);
            values[i + j] = ragged ? select(p, l->has_last, value, imm(F32, 0)) : value;
        }
    }
}

void row_lane_store(ptx *p, const row_lane *l, val at, const var *values, const val *scale)
{
    const row_split *s = &l->split;
    for (unsigned i = 0; i < row_split_values(s); i += 4) {
        unsigned piece = i / s->piece;
        int64_t offset = piece * stride(s, F32_BYTES) + i % s->piece * F32_BYTES;
        val four[4];
        for (unsigned j = 0; j < 4; j++)
            four[j] = scale ? mul(p, get(p, values[i + j]), *scale) : get(p, values[i + j]);
        PTX_IF (p, is_ragged_piece(s, piece) ? l->has_last : imm(PRED, 1))
            store_floats(p, at, offset, 4, four);
    }
}

void row_lane_add(ptx *p, const row_lane *l, val at, val factor, const var *values)
{
    const row_split *s = &l->split;
    for (unsigned piece = 0; piece < s->pieces; piece++) {
        unsigned left = l->row_pieces - piece * s->group;
        PTX_IF (p, lt(p, lane_id(p), left < s->group ? left : s->group))
            for (unsigned i = 0; i < s->piece; i += 4) {
                int64_t offset = piece * stride(s, F32_BYTES) + i * F32_BYTES;
                val4 row = ld_shared_v4(p, F32, at, offset);
                for (unsigned j = 0; j < 4; j++)
                    row.v[j] = fma(p, row.v[j], factor, values[piece * s->piece + i + j]);
                st_shared_v4(p, F32, at, offset, row);
            }
    }
}

/* Returns the loads per block: pairs of quants, or words of quants and one more. */
static unsigned block_words(const row_split *s)
{
    return s->in_pairs ? s->piece / PAIR_BYTES : s->piece / WORD_BYTES + 1;
}

raw_row raw_row_load(ptx *p, const row_lane *l, val first, val last, int64_t offset)
{
    const row_split *s = &l->split;
    if (s->format == FORMAT_Q8_0) {
        raw_row raw = { { { 0 } } };
        for (unsigned i = 0; i < block_words(s); i++)
            raw.words[i] = s->in_pairs ? ld_const(p, U16, first, offset + i * PAIR_BYTES)
                                       : ld_const(p, U32, first, offset + i * WORD_BYTES);
        raw.words[block_words(s)] = ld_const(p, U16, last, offset);
        return raw;
    }
    type t = s->format == FORMAT_F32 ? F32 : U32;
    unsigned words = s->piece * value_bytes(s) / WORD_BYTES;
    raw_row row = { { { 0 } } };
    for (unsigned i = 0; i < s->pieces; i++) {
        bool ragged = is_ragged_piece(s, i);
        ptx_load_values(p, INST_LD_CONST, t, words, ragged ? last : first,
                        offset + (ragged ? 0 : i * stride(s, value_bytes(s))),
                        row.words + (size_t)i * words);
    }
    return row;
}

unsigned raw_row_words(const row_split *s)
{
    return s->format == FORMAT_Q8_0 ? block_words(s) + 1
                                    : row_split_values(s) * value_bytes(s) / WORD_BYTES;
}

/* Returns 0 if the lane has no last piece. */
static val if_last(ptx *p, const row_lane *l, val word)
{
    return select(p, l->has_last, word, imm(word.type, 0));
}

void raw_row_unpack(ptx *p, const row_lane *l, const raw_row *row, val values[MAX_LANE_VALUES])
{
    const row_split *s = &l->split;
    if (s->format == FORMAT_Q8_0) {
        enum { LOW_HALVES = 0x5410 };
        unsigned count = block_words(&l->split), quant_words = l->split.piece / WORD_BYTES;
        val quants[MAX_LANE_VALUES / WORD_BYTES];
        for (unsigned i = 0; i < quant_words; i++)
            quants[i] = l->split.in_pairs ? prmt(p, row->words[2 * i], row->words[2 * i + 1],
                                                 imm(U32, LOW_HALVES))
                                          : prmt(p, row->words[i], row->words[i + 1], l->selector);
        val d_word = l->split.ragged ? if_last(p, l, row->words[count]) : row->words[count];
        val d = convert(p, F32, halves(p, d_word).v[0]);
        scaled_signed_bytes(p, quants, quant_words, d, values);
        return;
    }
    unsigned in_word = WORD_BYTES / value_bytes(s);
    for (unsigned i = 0; i < row_split_values(s); i += in_word) {
        val word = row->words[i / in_word];
        if (is_ragged_piece(s, i / s->piece))
            word = if_last(p, l, word);
        for (unsigned j = 0; j < in_word; j++) {
            values[i + j] = word;
            if (s->format == FORMAT_F16)
                values[i + j] = convert(p, F32, halves(p, word).v[j]);
            else if (s->format == FORMAT_BF16)
                values[i + j] =
                    bits_as(p, F32, j ? bit_and(p, word, 0xffff0000) : shl(p, word, 16));
        }
    }
}

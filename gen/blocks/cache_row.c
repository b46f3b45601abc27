#include "gen/blocks/cache_row.h"

enum { WARP = 32, F32_BYTES = 4, WIDE_PIECE = 16 /* bytes */, NARROW_PIECE = 8 };

static row_split split_into(const instance *in, unsigned lane_values, unsigned least_group,
                            unsigned piece_bytes)
{
    row_split s = { .value_bytes = formats[kv_format(in)].block_bytes, .group = least_group };
    s.piece = piece_bytes / s.value_bytes;
    unsigned pieces = (unsigned)in->shape.head_dim / s.piece;
    while (s.group < WARP && s.group * lane_values < pieces * s.piece)
        s.group *= 2;
    s.pieces = (pieces + s.group - 1) / s.group;
    s.ragged = pieces % s.group != 0;
    return s;
}

static unsigned covered(const row_split *s)
{
    return s->group * s->pieces * s->piece;
}

/* Narrow pieces where wide ones would leave more lanes without work. */
row_split row_split_of(const instance *in, unsigned lane_values, unsigned least_group)
{
    row_split wide = split_into(in, lane_values, least_group, WIDE_PIECE);
    row_split narrow = split_into(in, lane_values, least_group, NARROW_PIECE);
    bool halves = wide.value_bytes < F32_BYTES;
    return halves && covered(&narrow) < covered(&wide) ? narrow : wide;
}

unsigned row_split_values(const row_split *s)
{
    return s->pieces * s->piece;
}

/* Bytes from a lane's piece to its next. */
static unsigned stride(const row_split *s, unsigned value_bytes)
{
    return s->group * s->piece * value_bytes;
}

static bool is_ragged_piece(const row_split *s, unsigned piece)
{
    return s->ragged && piece + 1 == s->pieces;
}

row_lane row_lane_new(ptx *p, const instance *in, row_split split)
{
    row_lane l = { .split = split, .kv_type = in->kv_type };
    val lane = lane_id(p);
    unsigned last = (split.pieces - 1) * split.group;
    l.lane = named(p, "piece", bit_and(p, lane, split.group - 1));
    l.group = named(p, "group", div(p, lane, split.group));
    l.has_last = lt(p, l.lane, in->shape.head_dim / split.piece - last);
    l.last_offset =
        select(p, l.has_last, imm(U64, last * split.piece * split.value_bytes), imm(U64, 0));
    l.first_piece = split.pieces == 1 ? select(p, l.has_last, l.lane, imm(U32, 0)) : l.lane;
    return l;
}

val row_lane_offset(ptx *p, const row_lane *l)
{
    return mul_wide(p, l->first_piece, l->split.piece * l->split.value_bytes);
}

val row_lane_at(ptx *p, const row_lane *l, val row, bool shared)
{
    unsigned piece_bytes = l->split.piece * F32_BYTES;
    return shared ? add(p, row, mul(p, l->first_piece, piece_bytes))
                  : mad_wide(p, l->first_piece, piece_bytes, row);
}

void row_lane_load(ptx *p, const row_lane *l, val row, float scale, val values[MAX_LANE_VALUES])
{
    const row_split *s = &l->split;
    unsigned step = stride(s, F32_BYTES);
    row = row_lane_at(p, l, row, false);
    val last = row;
    if (s->ragged)
        last = add(p, row, select(p, l->has_last, imm(U64, (s->pieces - 1) * step), imm(U64, 0)));
    for (unsigned i = 0; i < row_split_values(s); i += 4) {
        unsigned piece = i / s->piece, within = i % s->piece * F32_BYTES;
        bool ragged = is_ragged_piece(s, piece);
        val4 loaded =
            ld_const_v4(p, F32, ragged ? last : row, (ragged ? 0 : piece * step) + within);
        for (unsigned j = 0; j < 4; j++) {
            val scaled = mul(p, loaded.v[j], scale);
            values[i + j] = ragged ? select(p, l->has_last, scaled, imm(F32, 0)) : scaled;
        }
    }
}

void row_lane_store(ptx *p, const row_lane *l, val at, bool shared, const var *values,
                    const val *scale)
{
    const row_split *s = &l->split;
    for (unsigned i = 0; i < row_split_values(s); i += 4) {
        unsigned piece = i / s->piece;
        int64_t offset = piece * stride(s, F32_BYTES) + i % s->piece * F32_BYTES;
        val4 four;
        for (unsigned j = 0; j < 4; j++) {
            four.v[j] = get(p, values[i + j]);
            if (scale)
                four.v[j] = mul(p, four.v[j], *scale);
        }
        PTX_IF (p, is_ragged_piece(s, piece) ? l->has_last : imm(PRED, 1)) {
            if (shared)
                st_shared_v4(p, F32, at, offset, four);
            else
                st_global_v4(p, F32, at, offset, four);
        }
    }
}

void row_lane_add(ptx *p, const row_lane *l, val at, val factor, const var *values)
{
    const row_split *s = &l->split;
    for (unsigned i = 0; i < row_split_values(s); i += 4) {
        unsigned piece = i / s->piece;
        int64_t offset = piece * stride(s, F32_BYTES) + i % s->piece * F32_BYTES;
        PTX_IF (p, is_ragged_piece(s, piece) ? l->has_last : imm(PRED, 1)) {
            val4 row = ld_shared_v4(p, F32, at, offset);
            for (unsigned j = 0; j < 4; j++)
                row.v[j] = fma(p, row.v[j], factor, values[i + j]);
            st_shared_v4(p, F32, at, offset, row);
        }
    }
}

raw_row raw_row_load(ptx *p, const row_lane *l, val first, val last, int64_t offset)
{
    const row_split *s = &l->split;
    type t = s->value_bytes == F32_BYTES ? F32 : U32;
    unsigned words = s->piece * s->value_bytes / F32_BYTES;
    raw_row row = { { { 0 } } };
    for (unsigned i = 0; i < s->pieces; i++) {
        bool ragged = is_ragged_piece(s, i);
        val base = ragged ? last : first;
        int64_t at = offset + (ragged ? 0 : i * stride(s, s->value_bytes));
        val2 two = { { { 0 } } };
        val4 four = { { { 0 } } };
        if (words == 4)
            four = ld_const_v4(p, t, base, at);
        else
            two = ld_const_v2(p, t, base, at);
        for (unsigned j = 0; j < words; j++)
            row.words[i * words + j] = words == 4 ? four.v[j] : two.v[j];
    }
    return row;
}

unsigned raw_row_words(const row_split *s)
{
    return row_split_values(s) * s->value_bytes / F32_BYTES;
}

void raw_row_unpack(ptx *p, const row_lane *l, const raw_row *row, val values[MAX_LANE_VALUES])
{
    for (unsigned i = 0; i < row_split_values(&l->split); i++) {
        val word = row->words[i * l->split.value_bytes / F32_BYTES];
        if (l->kv_type == KV_F16)
            values[i] = convert(p, F32, halves(p, word).v[i % 2]);
        else if (l->kv_type == KV_BF16)
            values[i] = bits_as(p, F32, i % 2 ? bit_and(p, word, 0xffff0000) : shl(p, word, 16));
        else
            values[i] = word;
    }
}

#include "gen/seeds/q4k_f32.h"

#include "gen/common/bytes.h"

enum { CHUNK_LANES = Q4K_CHUNK_BYTES / Q4K_LANE_BYTES, VALUE_BYTES = 4 };

q4k_lane q4k_lane_new(ptx *p)
{
    val lane = lane_id(p);
    val chunk = named(p, "chunk", div(p, lane, CHUNK_LANES));
    val byte = mul(p, rem(p, lane, CHUNK_LANES), Q4K_LANE_BYTES);
    return (q4k_lane){
        .chunk = q4k_chunk_new(p, chunk),
        .quants = mad(p, lane, Q4K_LANE_BYTES, imm(U32, Q4_K_QUANTS)),
        .value = mad(p, chunk, Q4K_CHUNK_VALUES, byte),
    };
}

/* With t = 1 + q/16 and a = 16 d scale, the weight d scale q - dmin min is a t - (a + dmin min). */
q4k_weights q4k_unpack(ptx *p, val word, const q4k_header *h)
{
    q4k_weights w;
    val d16 = mul(p, h->d, 16.0f), minus_dmin = neg(p, h->dmin);
    val shifted[2] = { shl(p, word, 3), shr(p, word, 1) }; /* q in bits 3 to 6 of each byte */
    for (unsigned i = 0; i < 2; i++)
        fractions_from_one(p, lop3(p, shifted[i], IN_EACH_BYTE(0x78), IN_EACH_BYTE(0x80), AND_OR),
                           w.w[i]);
    for (unsigned i = 0; i < 2; i++) {
        val a = mul(p, d16, byte_as_f32(p, h->packed, i));
        val low = fma(p, minus_dmin, byte_as_f32(p, h->packed, 2 + i), neg(p, a));
        for (int j = 0; j < Q4K_LANE_BYTES; j++)
            w.w[i][j] = fma(p, a, w.w[i][j], low);
    }
    return w;
}

q4k_activations q4k_load_activations(ptx *p, val base, int64_t offset)
{
    q4k_activations a;
    for (unsigned i = 0; i < 2; i++) {
        int64_t at = offset + i * Q4K_SUB_BLOCK * VALUE_BYTES;
        a.x[i] = base.type == U64 ? ld_const_v4(p, F32, base, at) : ld_shared_v4(p, F32, base, at);
    }
    return a;
}

val q4k_multiply(ptx *p, const q4k_weights *w, const q4k_activations *a, val acc)
{
    for (unsigned i = 0; i < 2; i++)
        for (int j = 0; j < Q4K_LANE_BYTES; j++)
            acc = fma(p, w->w[i][j], a->x[i].v[j], acc);
    return acc;
}

val q4k_dot(ptx *p, const q4k_weights *w, val base, int64_t offset, val acc)
{
    q4k_activations a = q4k_load_activations(p, base, offset);
    return q4k_multiply(p, w, &a, acc);
}

q4k_row q4k_row_new(ptx *p, const q4k_lane *lane, val w, val x, val first, unsigned stride,
                    walk *along)
{
    along->first = first;
    along->stride = stride;
    val value = mad(p, first, Q4_K_VALUES, lane->value);
    val header = mad_wide(p, first, Q4_K_BYTES, w);
    val quants = add(p, header, convert(p, U64, lane->quants));
    val values = x.type == U64 ? mad_wide(p, value, VALUE_BYTES, x) : mad(p, value, VALUE_BYTES, x);
    q4k_row row = { .chunk = &lane->chunk };
    along->weights += Q4_K_VALUES / 32;
    row.header = walk_along(p, along, header, stride * Q4_K_BYTES);
    row.quants = walk_along(p, along, quants, stride * Q4_K_BYTES);
    row.values = walk_along(p, along, values, stride * Q4K_F32_BYTES);
    row.acc = var_f32(p, 0.0f);
    return row;
}

void q4k_add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    q4k_row *row = context;
    val word = ld_const(p, U32, row->quants, offset[Q4K_AT_QUANTS]);
    q4k_header h = q4k_load_header(p, row->header, offset[Q4K_AT_HEADER], row->chunk);
    q4k_weights w = q4k_unpack(p, word, &h);
    val acc = q4k_dot(p, &w, V(row->values), offset[Q4K_AT_VALUES], V(row->acc));
    assign(p, row->acc, acc);
}

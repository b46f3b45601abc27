/* Streaming GEMVs with Q4_K weights: see blocks/stream.h.
 *
 * Eight lanes cover a super-block. Lane 2c + h loads 16 of the 32 bytes of chunk c at once, whose
 * low nibbles are its low segment and whose high nibbles are its high one, and with its seven
 * neighbours the 16 bytes ahead of them: two aligned 16-byte loads for 32 weights, 144 bytes a
 * super-block and nothing twice.
 */
#include "gen/blocks/bytes.h"
#include "gen/blocks/stream.h"
#include "gen/stream_keys.h"

enum { LANES = 8, LANE_BYTES = 16 };
enum { HEADER, QUANTS }; /* pointers */

/* Segment 4c + 2 high + h of a super-block. */
static val lane_of(ptx *p, val segment)
{
    val super_block = shr(p, segment, 4), chunk = bfe(p, segment, 2, 2);
    val half = bit_and(p, segment, 1);
    return mad(p, super_block, LANES, mad(p, chunk, 2, half));
}

static val is_high(ptx *p, val segment)
{
    return bfe(p, segment, 1, 1);
}

static stream_lane lane_new(ptx *p)
{
    val lane = lane_id(p), part = bit_and(p, lane, LANES - 1);
    return (stream_lane){ .block = div(p, lane, LANES),
                          .offset = { [QUANTS] = mul(p, part, LANE_BYTES) },
                          .chunk = q4k_chunk_new(p, div(p, part, 2)) };
}

static stream_row row_new(ptx *p, const stream_lane *lane, val block)
{
    return (stream_row){ .at = { block, add(p, block, convert(p, U64, lane->offset[QUANTS])) } };
}

static void load(ptx *p, const stream_row *row, int64_t offset, val words[STREAM_LOADED])
{
    val4 header = ld_const_v4(p, U32, row->at[HEADER], offset);
    val4 quants = ld_const_v4(p, U32, row->at[QUANTS], offset + Q4K_QUANTS);
    for (int i = 0; i < 4; i++) {
        words[i] = header.v[i];
        words[4 + i] = quants.v[i];
    }
}

static stream_weights decode(ptx *p, const stream_lane *lane, const stream_row *row,
                             const val words[STREAM_LOADED])
{
    (void)row;
    val4 header = { { words[0], words[1], words[2], words[3] } };
    q4k_header h = q4k_header_of(p, header, &lane->chunk);
    stream_weights w = { .d = h.d, .dmin = h.dmin };
    for (unsigned i = 0; i < 2; i++) {
        w.scale[i] = signed_byte_as_f32(p, h.packed, i);
        w.min[i] = signed_byte_as_f32(p, h.packed, 2 + i);
        for (unsigned j = 0; j < STREAM_WORDS; j++)
            w.q[i][j] = bit_and(p, words[4 + j], imm(U32, i ? 0xf0f0f0f0 : 0x0f0f0f0f));
    }
    return w;
}

static const stream_format q4k = {
    .scales = TWO_SCALES_AND_MINS,
    .high_factor = 16,
    .lane_of = lane_of,
    .is_high = is_high,
    .lane_new = lane_new,
    .row_new = row_new,
    .load = load,
    .decode = decode,
};

static void build(ptx *p, const instance *in)
{
    stream_gemv(p, in, &q4k);
}

static void build_swiglu(ptx *p, const instance *in)
{
    stream_gate_up_swiglu(p, in, &q4k);
}

const family stream_q4k_gemv = {
    .name = "stream_q4k_gemv",
    .summary = "streaming Q4_K x f32 GEMV, x quantized once a block",
    STREAM_GEMV(Q4_K, Q4K_VALUES, 16, 2, build),
};

const family stream_gate_up_swiglu_q4k_gemv = {
    .name = "stream_gate_up_swiglu_q4k_gemv",
    .summary = "streaming Q4_K gate and up of f32 x, with SwiGLU",
    .computes = "y[m,n] = silu(x[m,k] Wg[n,k]^T) * (x[m,k] Wu[n,k]^T)",
    .op = OP_GATE_UP_SWIGLU,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .quantizes = true,
    .preference = 20,
    .keys = (const key[]){ KEY_K(Q4K_VALUES), KEY_N, KEY_M(1), KEY_STREAM_WARPS, KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), IN(Q4_K, wg, "n*k", 16),
                               IN(Q4_K, wu, "n*k", 16), IN(F32, x, "m*k", 16), PARAM_END },
    .launch = { .block = "32*num_warps",
                .grid = { "min(ceil_div(n, num_warps), sm_count*2)" },
                .dynamic_shared = "m*" STREAM_SHARED,
                .rows = "num_warps",
                .registers = 128 },
    .build = build_swiglu,
    .reference = ref_gate_up_swiglu_quantizing,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};

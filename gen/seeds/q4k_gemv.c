/* y = W x with Q4_K weights and f32 activations: one block a row, its warps taking super-blocks in
 * turn. How lanes share a super-block is in blocks/q4k_f32.h.
 */
#include "gen/products/gemv.h"
#include "gen/seeds/q4k_f32.h"
#include "gen/common/reduce.h"
#include "ref/reference.h"

typedef void take_super_block(ptx *p, void *row, const int64_t offset[MAX_CURSORS]);

static void build_row(ptx *p, const instance *in, unsigned unroll, take_super_block *take)
{
    unsigned warps = ptx_block(p) / 32;
    gemv_operands g = gemv_parameters(p, in);
    q4k_lane lane = q4k_lane_new(p);
    val row = named(p, "row", ctaid_x(p));
    walk along = { .end = g.blocks, .unroll = unroll };
    q4k_row way = q4k_row_new(p, &lane, gemv_row(p, &g, row), g.x, warp_id(p), warps, &along);
    walk_items(p, &along, take, &way);
    gemv_store(p, &g, row, block_sum(p, get(p, way.acc), warps));
}

/* The plain way: bytes are loaded one by one, nibbles converted. */
static void add_super_block_of_bytes(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    q4k_row *row = context;
    q4k_header h = q4k_load_header(p, row->header, offset[Q4K_AT_HEADER], row->chunk);
    val bytes[Q4K_LANE_BYTES];
    for (int i = 0; i < Q4K_LANE_BYTES; i++)
        bytes[i] = ld_const(p, U8, row->quants, offset[Q4K_AT_QUANTS] + i);
    q4k_weights w = q4k_unpack_bytes(p, bytes, &h);
    val acc = q4k_dot(p, &w, V(row->values), offset[Q4K_AT_VALUES], V(row->acc));
    assign(p, row->acc, acc);
}

static void build_plain(ptx *p, const instance *in)
{
    build_row(p, in, 1, add_super_block_of_bytes);
}

/* One warp has to keep a row's loads in flight alone. */
static void build_vectorized(ptx *p, const instance *in)
{
    build_row(p, in, 4, q4k_add_super_block);
}

static void build_multi_warp(ptx *p, const instance *in)
{
    build_row(p, in, 2, q4k_add_super_block);
}

static const param params[] = { OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(F32, x, "k", 16),
                                PARAM_END };
static const key plain_keys[] = { KEY_K(Q4_K_VALUES), KEY_N,    KEY_VARIANT,
                                  KEY_PRECISION,      KEY_DIMS, KEY_END };
static const key keys[] = { KEY_K(Q4_K_VALUES), KEY_N, KEY_DIMS, KEY_END };

const family q4k_gemv = {
    .name = "q4k_gemv",
    .summary = "Q4_K x f32 GEMV, one warp a row, byte loads: the plain one",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .keys = plain_keys,
    .params = params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build_plain,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

const family vectorized_q4k_gemv = {
    .name = "vectorized_q4k_gemv",
    .summary = "Q4_K x f32 GEMV, one warp a row, 32-bit weight loads, 128 bytes a warp",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .preference = 2,
    .keys = keys,
    .params = params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build_vectorized,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

#define SEVERAL_WARPS(usual_warps, rank)                                                           \
    .computes = "y[n] = W[n,k] x[k]", .op = OP_GEMV, .weights = FORMAT_Q4_K,                       \
    .activations = FORMAT_F32, .preference = rank,                                                 \
    .keys =                                                                                        \
        (const key[]){ KEY_K(Q4_K_VALUES), KEY_N, KEY_NUM_WARPS(usual_warps), KEY_DIMS, KEY_END }, \
    .params = params,                                                                              \
    .launch = { .block = "32*num_warps",                                                           \
                .grid = { "n" },                                                                   \
                .shared = BLOCK_SUM_SHARED,                                                        \
                .registers = 64 },                                                                 \
    .build = build_multi_warp, .reference = ref_gemv, .tolerance = 2e-7

const family mwv_q4k_gemv = {
    .name = "mwv_q4k_gemv",
    .summary = "Q4_K x f32 GEMV, several warps a row, 32-bit weight loads",
    SEVERAL_WARPS(4, 10),
};

const family wide_q4k_gemv = {
    .name = "wide_q4k_gemv",
    .summary = "mwv_q4k_gemv with eight warps a row",
    SEVERAL_WARPS(8, 4),
};

/* y = W x with Q4_K weights and f32 activations. q4k_f32.h describes how lanes share a super-block.
 *
 *   q4k_gemv, vectorized   one warp per row
 *   mwv, wide              several warps per row, which stride over super-blocks
 *   coalesced              one warp per row: lane 0 loads the four words of a super-block's header
 *                          and shuffles them to the others
 *   tiled                  a block stages x in shared memory for outputs_per_block rows, one per
 *                          warp. Warps past the last row only take part in the barriers
 *   chunked_tiled          as tiled, 32 super-blocks of x at a time
 */
#include "gen/common/bytes.h"
#include "gen/common/reduce.h"
#include "gen/seeds/q4k_f32.h"
#include "gen/seeds/seed.h"

extern const family q4k_gemv, coalesced_q4k_gemv;

/* Adds a super-block the plain way: loads single bytes, converts nibbles. */
static void add_super_block_of_bytes(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    q4k_row *row = context;
    q4k_header h = q4k_load_header(p, row->header, offset[Q4K_AT_HEADER], row->chunk);
    val bytes[Q4K_LANE_BYTES];
    for (int i = 0; i < Q4K_LANE_BYTES; i++)
        bytes[i] = ld_const(p, U8, row->quants, offset[Q4K_AT_QUANTS] + i);
    q4k_weights w;
    for (unsigned i = 0; i < 2; i++) {
        val scale = mul(p, h.d, byte_as_f32(p, h.packed, i));
        val low = mul(p, neg(p, h.dmin), byte_as_f32(p, h.packed, 2 + i));
        for (int j = 0; j < Q4K_LANE_BYTES; j++) {
            val q = i ? shr(p, bytes[j], 4) : bit_and(p, bytes[j], 15);
            w.w[i][j] = fma(p, scale, convert(p, F32, q), low);
        }
    }
    val acc = q4k_dot(p, &w, V(row->values), offset[Q4K_AT_VALUES], V(row->acc));
    assign(p, row->acc, acc);
}

enum { HEADER_WORDS = 4 };

typedef struct coalesced_row {
    q4k_row row;              /* first member: the context of the other loops */
    var loaded[HEADER_WORDS]; /* the header in lane 0, zeros elsewhere */
} coalesced_row;

static void add_super_block_coalesced(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    coalesced_row *s = context;
    val quants = ld_const(p, U32, s->row.quants, offset[Q4K_AT_QUANTS]);
    val4 word;
    PTX_IF (p, eq(p, lane_id(p), 0)) {
        word = ld_const_v4(p, U32, s->row.header, offset[Q4K_AT_HEADER]);
        for (int i = 0; i < HEADER_WORDS; i++)
            assign(p, s->loaded[i], word.v[i]);
    }
    for (int i = 0; i < HEADER_WORDS; i++)
        word.v[i] = shuffle_from(p, s->loaded[i], 0);
    q4k_header h = q4k_header_of(p, word, s->row.chunk);
    q4k_weights w = q4k_unpack(p, quants, &h);
    val acc = q4k_dot(p, &w, V(s->row.values), offset[Q4K_AT_VALUES], V(s->row.acc));
    assign(p, s->row.acc, acc);
}

typedef void take_super_block(ptx *p, void *row, const int64_t offset[MAX_CURSORS]);

static void build_row(ptx *p, const instance *in)
{
    bool plain = in->family == &q4k_gemv, coalesced = in->family == &coalesced_q4k_gemv;
    take_super_block *take = plain       ? add_super_block_of_bytes
                             : coalesced ? add_super_block_coalesced
                                         : q4k_add_super_block;
    /* Four super-blocks are all of a row's loads of a single warp. */
    unsigned warps = ptx_block(p) / 32, unroll = plain ? 1 : in->num_warps ? 2 : 4;
    gemv_operands g = gemv_parameters(p, in);
    q4k_lane lane = q4k_lane_new(p);
    val row = named(p, "row", ctaid_x(p));
    walk along = { .end = g.blocks, .unroll = unroll };
    coalesced_row way;
    way.row = q4k_row_new(p, &lane, gemv_row(p, &g, row), g.x, warp_id(p), warps, &along);
    for (int i = 0; i < HEADER_WORDS && coalesced; i++)
        way.loaded[i] = var_u32(p, 0);
    walk_items(p, &along, take, &way);
    gemv_store(p, &g, row, block_sum(p, get(p, way.row.acc), warps));
}

enum { SUPER_BLOCKS_IN_FLIGHT = 4, CHUNK_SUPER_BLOCKS = 32 };

/* Returns the lane's sum over super-blocks of its row, with their activations in the tile. */
static val multiply(ptx *p, val w_row, val first, val count, val tile, const q4k_lane *lane)
{
    walk along = { .end = count, .unroll = SUPER_BLOCKS_IN_FLIGHT };
    val w = mad_wide(p, first, Q4_K_BYTES, w_row);
    q4k_row way = q4k_row_new(p, lane, w, tile, imm(U32, 0), 1, &along);
    walk_items(p, &along, q4k_add_super_block, &way);
    return get(p, way.acc);
}

static void store(ptx *p, const gemv_operands *g, val row, val of_lane)
{
    val sum = warp_sum(p, of_lane);
    PTX_IF (p, eq(p, lane_id(p), 0))
        st_global(p, F32, mad_wide(p, row, 4, g->y), 0, sum);
}

static void build_tiled(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", mad(p, ctaid_x(p), ptx_block(p) / 32, warp_id(p)));
    q4k_lane lane = q4k_lane_new(p);
    val exists = lt(p, row, g.n), tile = shared_dynamic(p, "tile", F32);
    stage_values(p, g.x, tile, dim_k(p, in));
    barrier(p);
    PTX_IF (p, exists)
        store(p, &g, row, multiply(p, gemv_row(p, &g, row), imm(U32, 0), g.blocks, tile, &lane));
}

static void build_chunked(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    val row = named(p, "row", mad(p, ctaid_x(p), ptx_block(p) / 32, warp_id(p)));
    q4k_lane lane = q4k_lane_new(p);
    val exists = lt(p, row, g.n);
    val tile = shared_array(p, "tile", F32, CHUNK_SUPER_BLOCKS * Q4_K_VALUES);
    var sum = var_f32(p, 0.0f);
    PTX_FOR (p, chunk, 0, g.blocks, CHUNK_SUPER_BLOCKS) {
        val count = min(p, sub(p, g.blocks, chunk), CHUNK_SUPER_BLOCKS);
        barrier(p); /* no warp reads the previous chunk any more */
        stage_values(p, mad_wide(p, chunk, Q4K_F32_BYTES, g.x), tile, mul(p, count, Q4_K_VALUES));
        barrier(p);
        PTX_IF (p, exists) {
            val part = multiply(p, gemv_row(p, &g, row), chunk, count, tile, &lane);
            assign(p, sum, add(p, sum, part));
        }
    }
    PTX_IF (p, exists)
        store(p, &g, row, get(p, sum));
}

#define KEY_OUTPUTS                                                                         \
    KEY_NUMBER("outputs_per_block", "rows per block, one warp each, that share a staged x", \
               outputs_per_block, 1, 32, .def = 4, .tag = "o")
#define Q4K_GEMV(id, said) SEED(id, said, Q4_K, F32), OF_ONE_VECTOR, SEED_PARAMS(Q4_K, 16, F32, 16)
#define ROWS_OF_A_BLOCK \
    .block = "32*outputs_per_block", .grid = { "ceil_div(n, outputs_per_block)" }, .registers = 64

const family q4k_gemv = {
    Q4K_GEMV(q4k_gemv, "plain Q4_K x f32 GEMV: one warp per row, byte loads"),
    PLAIN_KEYS(Q4_K),
    WARP_A_ROW,
    .build = build_row,
};

const family vectorized_q4k_gemv = {
    Q4K_GEMV(vectorized_q4k_gemv,
             "Q4_K x f32 GEMV, one warp per row, 32-bit weight loads, 128 bytes per warp"),
    SEED_KEYS(Q4_K, KEY_DIMS),
    WARP_A_ROW,
    .preference = 2,
    .build = build_row,
};

const family mwv_q4k_gemv = {
    Q4K_GEMV(mwv_q4k_gemv, "Q4_K x f32 GEMV, several warps per row, 32-bit weight loads"),
    SEED_KEYS(Q4_K, KEY_NUM_WARPS(4), KEY_DIMS),
    BLOCK_A_ROW,
    .preference = 10,
    .build = build_row,
};

const family wide_q4k_gemv = {
    Q4K_GEMV(wide_q4k_gemv, "mwv_q4k_gemv with eight warps per row"),
    SEED_KEYS(Q4_K, KEY_NUM_WARPS(8), KEY_DIMS),
    BLOCK_A_ROW,
    .preference = 4,
    .build = build_row,
};

const family coalesced_q4k_gemv = {
    Q4K_GEMV(coalesced_q4k_gemv,
             "Q4_K x f32 GEMV, one warp per row, scales loaded by one lane and shuffled"),
    SEED_KEYS(Q4_K, KEY_DIMS),
    WARP_A_ROW,
    .preference = 1,
    .build = build_row,
};

const family tiled_q4k_gemv = {
    Q4K_GEMV(tiled_q4k_gemv, "Q4_K x f32 GEMV, all of x in shared memory for several rows"),
    SEED_KEYS(Q4_K, KEY_OUTPUTS, KEY_DIMS),
    .launch = { ROWS_OF_A_BLOCK, .dynamic_shared = "k*4", .roomier = "chunked_tiled_q4k_gemv" },
    .preference = 5,
    .build = build_tiled,
};

const family chunked_tiled_q4k_gemv = {
    Q4K_GEMV(chunked_tiled_q4k_gemv,
             "Q4_K x f32 GEMV, x in shared memory for several rows, 8192 values at a time"),
    SEED_KEYS(Q4_K, KEY_OUTPUTS, KEY_DIMS),
    .launch = { ROWS_OF_A_BLOCK, .shared = "32*256*4" },
    .preference = 4,
    .build = build_chunked,
};

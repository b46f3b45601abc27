/* y = W x with Q4_K weights and f32 activations, one warp a row: lane 0 alone loads the header of
 * a super-block, the 12 scale bytes as three words and d and dmin as a fourth, and the others get
 * the words by shuffles. Each lane then decodes its own two scales and mins.
 */
#include "gen/products/gemv.h"
#include "gen/seeds/q4k_f32.h"
#include "gen/common/reduce.h"
#include "ref/reference.h"

enum { HEADER_WORDS = 4 };

typedef struct coalesced_row {
    q4k_row row;
    var loaded[HEADER_WORDS]; /* lane 0's; zeros elsewhere */
} coalesced_row;

static q4k_header share_header(ptx *p, const coalesced_row *s, int64_t offset)
{
    PTX_IF (p, eq(p, lane_id(p), 0)) {
        val4 word = ld_const_v4(p, U32, s->row.header, offset);
        for (int i = 0; i < HEADER_WORDS; i++)
            assign(p, s->loaded[i], word.v[i]);
    }
    val4 word;
    for (int i = 0; i < HEADER_WORDS; i++)
        word.v[i] = shuffle_from(p, s->loaded[i], 0);
    return q4k_header_of(p, word, s->row.chunk);
}

static void add_super_block(ptx *p, void *context, const int64_t offset[MAX_CURSORS])
{
    coalesced_row *s = context;
    val word = ld_const(p, U32, s->row.quants, offset[Q4K_AT_QUANTS]);
    q4k_header h = share_header(p, s, offset[Q4K_AT_HEADER]);
    q4k_weights w = q4k_unpack(p, word, &h);
    val acc = q4k_dot(p, &w, V(s->row.values), offset[Q4K_AT_VALUES], V(s->row.acc));
    assign(p, s->row.acc, acc);
}

static void build(ptx *p, const instance *in)
{
    gemv_operands g = gemv_parameters(p, in);
    q4k_lane lane = q4k_lane_new(p);
    val row = named(p, "row", ctaid_x(p));
    walk along = { .end = g.blocks, .unroll = 4 };
    coalesced_row s;
    s.row = q4k_row_new(p, &lane, gemv_row(p, &g, row), g.x, imm(U32, 0), 1, &along);
    for (int i = 0; i < HEADER_WORDS; i++)
        s.loaded[i] = var_u32(p, 0);
    walk_items(p, &along, add_super_block, &s);
    gemv_store(p, &g, row, warp_sum(p, get(p, s.row.acc)));
}

static const param params[] = { OUT(F32, y, "n", 4), IN(Q4_K, w, "n*k", 16), IN(F32, x, "k", 16),
                                PARAM_END };
static const key keys[] = { KEY_K(Q4_K_VALUES), KEY_N, KEY_DIMS, KEY_END };

const family coalesced_q4k_gemv = {
    .name = "coalesced_q4k_gemv",
    .summary = "Q4_K x f32 GEMV, one warp a row, scales loaded by one lane and shuffled",
    .computes = "y[n] = W[n,k] x[k]",
    .op = OP_GEMV,
    .weights = FORMAT_Q4_K,
    .activations = FORMAT_F32,
    .preference = 1,
    .keys = keys,
    .params = params,
    .launch = { .block = "32", .grid = { "n" }, .registers = 64 },
    .build = build,
    .reference = ref_gemv,
    .tolerance = 2e-7,
};

/* Decode attention: one query token a sequence against its KV cache, o = softmax(q K' scale) V.
 *
 * Layouts: q and o [m, num_heads, head_dim]; K and V [num_kv_heads, max_seq_len, head_dim], for
 * several sequences an array of addresses of such caches; query head h reads KV head
 * h * num_kv_heads / num_heads (grouped-query attention). What a warp does is in
 * attention/attention.h; these families differ in who takes which positions:
 *
 *   incremental   a warp all of a head's
 *   multi_warp    a block's warps a stretch each; their partial results meet in shared memory
 *   batched       a warp all of a head's of one of m sequences
 */
#include "gen/attention/attention_keys.h"
#include "gen/attention/attention.h"
#include "ref/reference.h"

#define LEAST_SOFTCAP 1e-3

const choice sinks_choices[] = { { "none", "" }, { "add", "_sinks" }, { NULL, NULL } };
const choice gate_choices[] = { { "none", "" }, { "sigmoid", "_gate" }, { NULL, NULL } };

const char *check_heads(const instance *in, arena *a, const char **blamed)
{
    if (in->options.softcap > 0 && in->options.softcap < LEAST_SOFTCAP) {
        *blamed = "softcap";
        return arena_format(a, "softcap = %g is less than %g, where scores leave f32; 0 is none",
                            in->options.softcap, LEAST_SOFTCAP);
    }
    if (in->kv_type == KV_Q8_0 && in->shape.head_dim % Q8_0_VALUES) {
        *blamed = "head_dim";
        return arena_format(a,
                            "head_dim = %lld is not a multiple of %d, as kv_type = q8_0 needs; "
                            "32, 64, 96, 128, 160, 192, 224 and 256 are",
                            (long long)in->shape.head_dim, Q8_0_VALUES);
    }
    if (in->shape.num_heads % in->shape.num_kv_heads == 0)
        return NULL;
    *blamed = "num_kv_heads";
    return arena_format(a, "num_heads = %lld is not a multiple of num_kv_heads = %lld",
                        (long long)in->shape.num_heads, (long long)in->shape.num_kv_heads);
}

const char *check_ring(const instance *in, arena *a, const char **blamed)
{
    long long ring = in->options.ring, window = in->options.window;
    if (!ring || (window && ring >= window))
        return check_heads(in, a, blamed);
    *blamed = "ring";
    if (!window)
        return arena_format(a,
                            "ring = %lld needs a window, of at most as many positions: without one "
                            "all max_seq_len = %lld count",
                            ring, (long long)in->shape.max_seq_len);
    return arena_format(a,
                        "ring = %lld is less than window = %lld; it needs %lld rows, and m - 1 "
                        "more where m positions of a sequence are written at once",
                        ring, window, window);
}

static val sequence_length(ptx *p, const instance *in)
{
    val seq_len = parameter(p, "seq_len");
    return in->seq_len_mode == SEQ_LEN_INDIRECT ? ld_global(p, U32, seq_len, 0) : seq_len;
}

static void build_incremental(ptx *p, const instance *in)
{
    phase(p, "load q");
    val head = named(p, "head", ctaid_x(p));
    attention a = attention_new(p, in, head);
    positions all = attention_positions(p, in, sequence_length(p, in));
    val offset = attention_cache_offset(p, in, head);
    val k = add(p, parameter(p, "k"), offset), v = add(p, parameter(p, "v"), offset);
    attention_add(p, &a, k, v, all);
    phase(p, "store");
    attention_store_output(p, &a, head);
}

/* Stretches of equal length, whole turns of the loop of a warp with the smallest groups. */
static positions stretch(ptx *p, const instance *in, positions all)
{
    enum { TURN = 64 };
    unsigned warps = (unsigned)in->num_warps;
    val count = sub(p, all.end, all.first);
    val turns = div(p, add(p, count, warps * TURN - 1), warps * TURN);
    val length = mul(p, turns, TURN);
    positions own = { .first = mad(p, warp_id(p), length, all.first) };
    own.first = min(p, own.first, all.end);
    own.end = min(p, add(p, own.first, length), all.end);
    return own;
}

static void build_multi_warp(ptx *p, const instance *in)
{
    unsigned warps = (unsigned)in->num_warps, row_bytes = partial_bytes(in);
    phase(p, "load q");
    val head = named(p, "head", ctaid_x(p));
    attention a = attention_new(p, in, head);
    positions all = attention_positions(p, in, sequence_length(p, in));
    val offset = attention_cache_offset(p, in, head);
    val k = add(p, parameter(p, "k"), offset), v = add(p, parameter(p, "v"), offset);
    attention_add(p, &a, k, v, stretch(p, in, all));
    val rows = shared_array(p, "partials", F32, warps * row_bytes / 4);
    attention_store_partial(p, &a, mad(p, warp_id(p), imm(U32, row_bytes), rows), true);
    barrier(p);
    phase(p, "merge the warps");
    PTX_IF (p, eq(p, warp_id(p), 0))
        partials_merge_shared(p, in, rows, warps, head);
}

static void build_batched(ptx *p, const instance *in)
{
    phase(p, "load q");
    val head = named(p, "head", ctaid_x(p)), sequence = named(p, "sequence", ctaid_y(p));
    val query = mad(p, sequence, imm(U32, in->shape.num_heads), head);
    attention a = attention_new(p, in, query);
    val length = attention_sequence_length(p, sequence);
    positions all = attention_positions(p, in, length);
    val k = attention_sequence_cache(p, "k", sequence);
    val v = attention_sequence_cache(p, "v", sequence);
    val offset = attention_cache_offset(p, in, head);
    attention_add(p, &a, add(p, k, offset), add(p, v, offset), all);
    phase(p, "store");
    attention_store_output(p, &a, query);
}

static const param one_sequence[] = {
    OUT(F32, o, "num_heads*head_dim", 16),
    QUERIES("num_heads*head_dim"),
    KV_CACHE(k),
    KV_CACHE(v),
    SINKS,
    { .name = "seq_len", .kind = PARAM_SEQ_LEN },
    PARAM_END,
};

const family incremental_attention = {
    .name = "incremental_attention",
    .summary = "decode attention, one warp a head, online softmax, GQA",
    .computes = "o[h] = softmax(q[h] K' scale) V",
    .op = OP_ATTENTION,
    .same_bits = true,
    .activations = FORMAT_F32,
    .preference = 1,
    .keys = (const key[]){ ATTENTION_SHAPE, KEY_SEQ_LEN, ATTENTION_OPTIONS, KEY_SINKS, KEY_END },
    .params = one_sequence,
    .launch = { .block = "32", .grid = { "num_heads" }, .registers = 96 },
    .check = check_heads,
    .build = build_incremental,
    .reference = ref_attention,
    .tolerance = 2e-6,
};

const family multi_warp_attention = {
    .name = "multi_warp_attention",
    .summary = "decode attention, several warps a head, merged in shared memory, GQA",
    .computes = "o[h] = softmax(q[h] K' scale) V",
    .op = OP_ATTENTION,
    .activations = FORMAT_F32,
    .preference = 2,
    .keys = (const key[]){ ATTENTION_SHAPE, KEY_NUM_WARPS(4), KEY_SEQ_LEN, ATTENTION_OPTIONS,
                           KEY_SINKS, KEY_END },
    .params = one_sequence,
    .launch = { .block = "32*num_warps",
                .grid = { "num_heads" },
                .shared = "num_warps*(head_dim+4)*4",
                .registers = 96 },
    .check = check_heads,
    .build = build_multi_warp,
    .reference = ref_attention,
    .tolerance = 2e-6,
};

const family batched_incremental_attention = {
    .name = "batched_incremental_attention",
    .summary = "decode attention of m sequences, one warp a head and sequence, GQA",
    .computes = "o[m,h] = softmax(q[m,h] K[m]' scale) V[m]",
    .op = OP_BATCHED_ATTENTION,
    .same_bits = true,
    .activations = FORMAT_F32,
    .keys = (const key[]){ ATTENTION_SHAPE, KEY_SEQUENCES, ATTENTION_OPTIONS, KEY_SINKS, KEY_DIMS,
                           KEY_END },
    .params =
        (const param[]){
            OUT(F32, o, "m*num_heads*head_dim", 16),
            QUERIES("m*num_heads*head_dim"),
            KV_CACHES(k),
            KV_CACHES(v),
            SINKS,
            IN(U32, seq_lens, "m", 4),
            PARAM_END,
        },
    .launch = { .block = "32", .grid = { "num_heads", "m" }, .registers = 96 },
    .check = check_heads,
    .build = build_batched,
    .reference = ref_attention,
    .tolerance = 2e-6,
};

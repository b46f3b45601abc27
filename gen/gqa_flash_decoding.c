/* Flash decoding for grouped-query attention in one launch: a block serves all query heads of a KV
 * head, for a chunk of a sequence's positions, so that K and V come from memory once; the last
 * block of a KV head to finish merges the chunks.
 *
 * Layouts are those of attention.c; a partial row is that of blocks/attention.h, [query, chunk].
 *
 * A block takes up to 8 heads, or 4 with long ones; where a KV head has more, they are spread over
 * neighbouring blocks, which find K and V in the L2 cache. Its warps take a stretch of the chunk
 * each and know nothing of each other until the end, where their partial rows are merged. What a
 * warp does is in blocks/gqa.h.
 *
 * The grid decides how many chunks there are, %nctaid.z: as many as two blocks on every SM take in
 * whole waves, at least 4 a sequence so that the last wave is 4/5 full or more. Chunks are of equal
 * length, which the block works out from the sequence's length; blocks that are left without
 * positions end at once. So a grid that was captured once suits every length. (An SM of sm_75 has
 * shared memory for one block of more than 5 heads, and takes the others after it.)
 *
 * Blocks of a KV head count up a counter when their partial rows are stored. The last one, which
 * the counter tells by its value, sets it back to zero for the next launch and merges: the warps
 * share out each head's rows in four parts, and these meet in shared memory.
 */
#include "gen/attention_keys.h"
#include "gen/blocks/gqa.h"
#include "family/formula.h"

enum {
    MERGE_PARTS = 4,
    LEAST_CHUNK = 128, /* positions: fewer would be less work than the merging */
    WARP = 32,
    SM_REGISTERS = 65536,
    SM_BLOCKS = 2,
    REGISTER_UNIT = 8,
};

/* Heads a KV head, blocks that they are spread over, and of a block its heads and warps: the terms
 * below. */
typedef struct layout {
    unsigned ratio, parts, heads, warps;
} layout;

static unsigned term_value(const instance *in, const char *name)
{
    return (unsigned)formula_value(name, in, NULL);
}

static layout layout_of(const instance *in)
{
    return (layout){ .ratio = term_value(in, "ratio"),
                     .parts = term_value(in, "parts"),
                     .heads = term_value(in, "heads"),
                     .warps = term_value(in, "warps") };
}

/* The heads of a block, and the part of a sequence that it has. */
typedef struct work {
    const instance *in;
    layout is;
    val kv_head, part, sequence, chunk, chunks; /* chunks of the grid */
    val query;                                  /* number of the first head's row of q */
    val heads;                                  /* that there are */
    positions own;
    val active; /* chunks that have positions, at least 1 */
    val rows;   /* shared memory: [heads, warps] partial rows */
} work;

static work work_new(ptx *p, const instance *in)
{
    work w = { .in = in, .is = layout_of(in) };
    w.kv_head = named(p, "kv_head", div(p, ctaid_x(p), w.is.parts));
    w.part = rem(p, ctaid_x(p), w.is.parts);
    w.sequence = named(p, "sequence", ctaid_y(p));
    w.chunk = named(p, "chunk", ctaid_z(p));
    w.chunks = named(p, "chunks", nctaid_z(p));
    val first = mul(p, w.part, w.is.heads);
    w.query = mad(p, w.sequence, imm(U32, in->shape.num_heads),
                  mad(p, w.kv_head, imm(U32, w.is.ratio), first));
    w.heads = w.is.ratio % w.is.heads ? min(p, sub(p, w.is.ratio, first), w.is.heads)
                                      : imm(U32, w.is.heads);
    return w;
}

/* Chunks of equal length. */
static void take_chunk(ptx *p, work *w)
{
    positions all = attention_positions(p, w->in, attention_sequence_length(p, w->sequence));
    val count = sub(p, all.end, all.first);
    val equal = div(p, add(p, count, sub(p, w->chunks, 1)), w->chunks);
    val length = named(p, "chunk_length", max(p, equal, LEAST_CHUNK));
    val used = div(p, add(p, count, sub(p, length, 1)), length);
    w->active = named(p, "active", max(p, used, 1));
    w->own.first = mad(p, w->chunk, length, all.first);
    w->own.end = min(p, add(p, w->own.first, length), all.end);
}

/* The warp's share of the chunk: stretches of equal length, whole turns. */
static positions take_stretch(ptx *p, const work *w)
{
    unsigned turn = w->is.warps * gqa_step(w->in);
    val turns = div(p, add(p, sub(p, w->own.end, w->own.first), turn - 1), turn);
    val length = mul(p, turns, gqa_step(w->in));
    positions own = { .first = min(p, mad(p, warp_id(p), length, w->own.first), w->own.end) };
    own.end = min(p, add(p, own.first, length), w->own.end);
    return own;
}

static val cache_of(ptx *p, const work *w, const char *name)
{
    return add(p, attention_sequence_cache(p, name, w->sequence),
               attention_kv_head_offset(p, w->in, w->kv_head));
}

static void attend(ptx *p, work *w)
{
    unsigned row_bytes = partial_bytes(w->in), head_products = GQA_PRODUCTS * w->is.heads;
    val products = shared_array(p, "products", F32, w->is.warps * head_products);
    w->rows = shared_array(p, "rows", F32, w->is.warps * w->is.heads * row_bytes / 4);
    val queries = shared_array(p, "queries", F32, gqa_query_values(w->in, w->is.heads));
    gqa g = gqa_new(p, w->in, w->is.heads, queries,
                    mad(p, warp_id(p), imm(U32, head_products * 4), products),
                    mad(p, warp_id(p), imm(U32, row_bytes), w->rows), w->is.warps * row_bytes);
    gqa_stage_queries(p, &g, w->query, add(p, w->query, sub(p, w->heads, 1)));
    val k = cache_of(p, w, "k"), v = cache_of(p, w, "v");
    gqa_attend(p, &g, k, v, take_stretch(p, w));
    barrier(p);
}

static val head_rows(ptx *p, const work *w, val head, unsigned rows)
{
    return mad(p, head, imm(U32, rows * partial_bytes(w->in)), w->rows);
}

/* The place of a query row's partial row of the first chunk. */
static val partials_of(ptx *p, const work *w, val head)
{
    val row = mul_wide(p, add(p, w->query, head), w->chunks);
    return mad(p, row, imm(U64, partial_bytes(w->in)), parameter(p, "partials"));
}

/* Whether all other blocks of the KV head have stored their partial rows. */
static val is_last_block(ptx *p, const work *w)
{
    val ticket = shared_array(p, "ticket", U32, 1);
    val last = sub(p, w->active, 1);
    val column = mad(p, w->sequence, imm(U32, w->in->shape.num_kv_heads * w->is.parts), ctaid_x(p));
    val counter = mad_wide(p, column, 4, parameter(p, "counters"));
    barrier(p);
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        val number = atomic_inc(p, counter, last);
        st_shared(p, U32, ticket, 0, number);
    }
    barrier(p);
    return eq(p, ld_shared(p, U32, ticket, 0), last);
}

static void merge_chunks(ptx *p, const work *w)
{
    PTX_FOR (p, task, warp_id(p), mul(p, w->heads, MERGE_PARTS), w->is.warps) {
        val head = div(p, task, MERGE_PARTS), part = rem(p, task, MERGE_PARTS);
        val first = div(p, mul(p, part, w->active), MERGE_PARTS);
        val end = div(p, mul(p, add(p, part, 1), w->active), MERGE_PARTS);
        val rows = mad_wide(p, first, partial_bytes(w->in), partials_of(p, w, head));
        partials_merge_to_shared(p, w->in, rows, sub(p, end, first),
                                 mad(p, task, imm(U32, partial_bytes(w->in)), w->rows));
    }
    barrier(p);
    PTX_FOR (p, merged, warp_id(p), w->heads, w->is.warps)
        partials_merge_shared(p, w->in, head_rows(p, w, merged, MERGE_PARTS), MERGE_PARTS,
                              add(p, w->query, merged));
}

static void build(ptx *p, const instance *in)
{
    work w = work_new(p, in);
    ptx_max_registers(p, SM_REGISTERS / (SM_BLOCKS * w.is.warps * WARP) / REGISTER_UNIT *
                             REGISTER_UNIT);
    take_chunk(p, &w);
    ret_if(p, ge(p, w.chunk, w.active));
    phase(p, "stage q");
    attend(p, &w);
    phase(p, "merge the warps");
    take_chunk(p, &w); /* anew, so that no register has it through the loops */
    val alone = eq(p, w.active, 1);
    PTX_IF (p, alone)
        PTX_FOR (p, own_head, warp_id(p), w.heads, w.is.warps)
            partials_merge_shared(p, in, head_rows(p, &w, own_head, w.is.warps), w.is.warps,
                                  add(p, w.query, own_head));
    ret_if(p, alone);
    PTX_FOR (p, head, warp_id(p), w.heads, w.is.warps) {
        val row = mad_wide(p, w.chunk, partial_bytes(in), partials_of(p, &w, head));
        partials_merge_to_global(p, in, head_rows(p, &w, head, w.is.warps), w.is.warps, row);
    }
    phase(p, "whether this block is its KV head's last");
    ret_if(p, bit_not(p, is_last_block(p, &w)));
    phase(p, "merge the chunks");
    merge_chunks(p, &w);
}

/* What a launch needs to know. Shared memory has a row of head_dim + 4 values and GQA_PRODUCTS
 * products for each warp and head, q, and the ticket. */
static const term terms[] = {
    { "ratio", "num_heads/num_kv_heads" },
    { "parts", "ceil_div(ratio, 8/ceil_div(head_dim, 128))" },
    { "heads", "ceil_div(ratio, parts)" },
    { "warps", "7 - heads/5" },               /* 6 from 5 heads on */
    { "slots", "heads + heads/7 - heads/8" }, /* gqa_query_values: 8 for 7 heads */
    { "columns", "num_kv_heads*parts*m" },
    { "at_once", "sm_count*2" },
    { "waves", "ceil_div(columns*4, at_once)" },
    { NULL, NULL },
};

const family gqa_flash_decoding = {
    .name = "gqa_flash_decoding",
    .summary = "decode attention of m sequences by chunks, a block all query heads of a KV head",
    .computes = "o[m,h] = softmax(q[m,h] K[m]' scale) V[m]",
    .op = OP_BATCHED_ATTENTION,
    .activations = FORMAT_F32,
    .preference = 10,
    .keys = (const key[]){ ATTENTION_SHAPE, KEY_SEQUENCES, KEY_CHUNKS, ATTENTION_OPTIONS, KEY_DIMS,
                           KEY_END },
    .params =
        (const param[]){
            OUT(F32, o, "m*num_heads*head_dim", 16),
            PARTIAL_ROWS(PARAM_SCRATCH, "m*num_heads*chunks"),
            COUNTERS(counters, "m*num_heads"),
            IN(F32, q, "m*num_heads*head_dim", 16),
            KV_CACHES(k),
            KV_CACHES(v),
            IN(U32, seq_lens, "m", 4),
            PARAM_END,
        },
    .launch = { .block = "32*warps",
                .grid = { "num_kv_heads*parts", "m",
                          "min(min(chunks, ceil_div(max_seq_len, 128)), waves*at_once/columns)" },
                .shared = "warps*heads*(head_dim+84)*4 + slots*ceil_div(head_dim, 128)*512 + 4",
                .terms = terms,
                .registers = 168 }, /* two blocks of 6 warps; build says it of 7 */
    .check = check_heads,
    .build = build,
    .reference = ref_attention,
    .tolerance = 2e-6,
};

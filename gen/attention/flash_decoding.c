/* Flash decoding (Dao, Haziza, Massa and Sizov, "Flash-Decoding for long-context inference"): a
 * sequence's positions are split into chunks, a warp takes a chunk of a head, and a second kernel
 * merges the chunks' partial results.
 *
 * Layouts are those of attention.c; partials are [m, num_heads, chunks] rows of head_dim + 4 f32
 * (see attention/attention.h), where chunks = ceil(max_seq_len / chunk_size) whatever the
 * sequences' lengths are: a row's place depends on nothing that changes. Nothing is written for a
 * chunk without positions, and the merge does not read its row. Sinks are the merge's: chunks know
 * nothing of them.
 */
#include "gen/attention/attention_keys.h"
#include "gen/attention/attention.h"
#include "ref/reference.h"

#define CHUNKS   "ceil_div(max_seq_len, chunk_size)"
#define PARTIALS "m*num_heads*" CHUNKS

enum { MOST_CHUNKS = 65535 }; /* of a grid's third dimension */

/* Number of a query row among all of the batch, and its first partial row's address. */
typedef struct query_row {
    val head, sequence, query, partials;
} query_row;

static query_row query_row_of_block(ptx *p, const instance *in)
{
    query_row r = { .head = named(p, "head", ctaid_x(p)),
                    .sequence = named(p, "sequence", ctaid_y(p)) };
    r.query = mad(p, r.sequence, imm(U32, in->shape.num_heads), r.head);
    int64_t size = in->shape.chunk_size, chunks = (in->shape.max_seq_len + size - 1) / size;
    r.partials = partial_rows(p, in, r.query, imm(U32, chunks));
    return r;
}

static void build_chunk(ptx *p, const instance *in)
{
    query_row r = query_row_of_block(p, in);
    val chunk = named(p, "chunk", ctaid_z(p));
    positions own =
        attention_chunk_positions(p, in, attention_sequence_length(p, r.sequence), chunk);
    ret_if(p, ge(p, own.first, own.end));
    phase(p, "load q");
    attention a = attention_new(p, in, r.query);
    val k = attention_sequence_cache(p, "k", r.sequence);
    val v = attention_sequence_cache(p, "v", r.sequence);
    val offset = attention_cache_offset(p, in, r.head);
    attention_add(p, &a, add(p, k, offset), add(p, v, offset), own);
    phase(p, "store the partial row");
    attention_store_partial(p, &a, mad_wide(p, chunk, partial_bytes(in), r.partials), false);
}

static void build_reduce(ptx *p, const instance *in)
{
    query_row r = query_row_of_block(p, in);
    positions all = attention_positions(p, in, attention_sequence_length(p, r.sequence));
    val first = div(p, all.first, in->shape.chunk_size);
    val end = div(p, add(p, all.end, in->shape.chunk_size - 1), in->shape.chunk_size);
    val rows = mad_wide(p, first, partial_bytes(in), r.partials);
    partials_merge(p, in, ROWS_OF_ANOTHER_GRID, rows, sub(p, end, first), r.query);
}

const char *check_flash_decoding(const instance *in, arena *a, const char **blamed)
{
    int64_t chunks = (in->shape.max_seq_len + in->shape.chunk_size - 1) / in->shape.chunk_size;
    if (chunks <= MOST_CHUNKS)
        return check_heads(in, a, blamed);
    *blamed = "max_seq_len";
    return arena_format(a,
                        "max_seq_len = %lld makes %lld chunks of %lld; a grid has at most %d: "
                        "raise chunk_size",
                        (long long)in->shape.max_seq_len, (long long)chunks,
                        (long long)in->shape.chunk_size, MOST_CHUNKS);
}

const family flash_decoding_chunk = {
    .name = "flash_decoding_chunk",
    .summary = "decode attention of m sequences by chunks: partial results, GQA",
    .computes = "partials[m,h,c] = sum over chunk c of exp(s-max) V[m], max, sum of exp(s-max)",
    .op = OP_ATTENTION_CHUNKS,
    .same_bits = true,
    .activations = FORMAT_F32,
    .keys = (const key[]){ ATTENTION_SHAPE, KEY_SEQUENCES, KEY_CHUNK_SIZE, ATTENTION_OPTIONS,
                           KEY_DIMS, KEY_END },
    .params =
        (const param[]){
            PARTIAL_ROWS(OUT, PARTIALS),
            QUERIES("m*num_heads*head_dim"),
            KV_CACHES(k),
            KV_CACHES(v),
            IN(U32, seq_lens, "m", 4),
            PARAM_END,
        },
    .launch = { .block = "32", .grid = { "num_heads", "m", CHUNKS }, .registers = 96 },
    .check = check_flash_decoding,
    .build = build_chunk,
    .reference = ref_attention_chunks,
    .tolerance = 2e-6,
};

const family flash_decoding_reduce = {
    .name = "flash_decoding_reduce",
    .summary = "decode attention of m sequences by chunks: the partial results merged",
    .computes = "o[m,h] = sum over c of partials[m,h,c]",
    .op = OP_MERGE_CHUNKS,
    .same_bits = true,
    .activations = FORMAT_F32,
    .keys = (const key[]){ ATTENTION_SHAPE, KEY_SEQUENCES, KEY_CHUNK_SIZE, ATTENTION_WINDOW,
                           KEY_SINKS, KEY_DIMS, KEY_END },
    .params =
        (const param[]){
            OUT(F32, o, "m*num_heads*head_dim", 16),
            PARTIAL_ROWS(IN, PARTIALS),
            SINKS,
            IN(U32, seq_lens, "m", 4),
            PARAM_END,
        },
    .launch = { .block = "32", .grid = { "num_heads", "m" }, .registers = 96 },
    .check = check_flash_decoding,
    .build = build_reduce,
    .fit = ref_fit_partials,
    .reference = ref_merge_chunks,
    .tolerance = 2e-6,
};

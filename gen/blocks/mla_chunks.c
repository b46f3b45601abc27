#include <math.h>

#include "gen/blocks/mla_chunks.h"

enum { WARP = 32 };

mla_block mla_block_new(ptx *p, const instance *in, unsigned heads)
{
    mla_block b = { .in = in, .results = *in, .heads = heads };
    b.results.shape.head_dim = in->shape.latent;
    b.row = named(p, "row", ctaid_y(p));
    b.first_head = named(p, "first_head", mul(p, ctaid_x(p), heads));
    b.cache = attention_sequence_cache(p, "c", b.row);
    return b;
}

void mla_block_count(ptx *p, mla_block *b)
{
    int64_t size = b->in->shape.chunk_size;
    positions all = attention_positions(p, b->in, attention_sequence_length(p, b->row));
    b->active = named(p, "active", max(p, div(p, add(p, all.end, size - 1), size), 1));
    b->blocks = min(p, b->active, nctaid_z(p));
}

void mla_block_begin(ptx *p, mla_block *b)
{
    mla_block_count(p, b);
    ret_if(p, ge(p, ctaid_z(p), b->active));
}

val mla_query_row(ptx *p, const mla_block *b, val head)
{
    val own = min(p, add(p, b->first_head, head), imm(U32, b->in->shape.num_heads - 1));
    return mad(p, b->row, imm(U32, b->in->shape.num_heads), own);
}

val mla_has_head(ptx *p, const mla_block *b, val head)
{
    return lt(p, add(p, b->first_head, head), b->in->shape.num_heads);
}

float mla_score_scale(const instance *in)
{
    double width = (double)(in->shape.latent + in->shape.n_rope);
    double scale = in->options.scale > 0 ? in->options.scale : 1 / sqrt(width);
    return (float)(scale * LOG2_E);
}

positions mla_chunk(ptx *p, const mla_block *b, val chunk)
{
    positions all = attention_positions(p, b->in, attention_sequence_length(p, b->row));
    int64_t size = b->in->shape.chunk_size;
    positions run = { .first = mul(p, chunk, size) };
    run.end = min(p, add(p, run.first, size), all.end);
    return run;
}

int64_t mla_most_chunks(const instance *in)
{
    return (in->shape.max_seq_len + in->shape.chunk_size - 1) / in->shape.chunk_size;
}

val mla_is_alone(ptx *p, const mla_block *b)
{
    return eq(p, b->active, 1);
}

val mla_output(ptx *p, const mla_block *b, val query)
{
    return mad_wide(p, query, b->in->shape.latent * F32_BYTES, parameter(p, "o"));
}

/* The place of a query row's partial row of the first chunk. */
static val partials_of(ptx *p, const mla_block *b, val query)
{
    val row = mul_wide(p, query, mla_most_chunks(b->in));
    return mad(p, row, imm(U64, partial_bytes(&b->results)), parameter(p, "partials"));
}

val mla_partial(ptx *p, const mla_block *b, val query, val chunk)
{
    return mad_wide(p, chunk, partial_bytes(&b->results), partials_of(p, b, query));
}

static void merge_chunks(ptx *p, const mla_block *b)
{
    val heads = min(p, sub(p, imm(U32, b->in->shape.num_heads), b->first_head), b->heads);
    PTX_FOR (p, head, warp_id(p), heads, ptx_block(p) / WARP) {
        val query = mla_query_row(p, b, head);
        partials_merge(p, &b->results, ROWS_OF_THIS_GRID, partials_of(p, b, query), b->active,
                       query);
    }
}

void mla_merge(ptx *p, const mla_block *b)
{
    ret_if(p, mla_is_alone(p, b));
    phase(p, "whether this block is its row's last");
    val column = mad(p, b->row, nctaid_x(p), ctaid_x(p));
    ret_if(p, bit_not(p, attention_is_last_block(p, column, b->blocks, b->ticket)));
    phase(p, "merge the chunks");
    merge_chunks(p, b);
}

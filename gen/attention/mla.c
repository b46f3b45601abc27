#include <float.h>
#include <math.h>

#include "gen/attention/mla.h"
#include "gen/common/next.h"
#include "gen/common/reduce.h"

enum { STATE_BYTES = 2 * F32_BYTES /* max and sum of a head */ };

mla_block mla_block_new(ptx *p, const instance *in, unsigned heads)
{
    mla_block b = { .in = in, .results = *in, .heads = heads };
    b.results.shape.head_dim = in->shape.latent;
    b.row = named(p, "row", ctaid_y(p));
    b.first_head = named(p, "first_head", mul(p, ctaid_x(p), heads));
    b.early = is_settled(in);
    b.pages = cache_pages_of(p, in, b.early, b.row);
    b.cache = cache_pages_start(p, &b.pages, parameter(p, "c"), imm(U32, 0));
    return b;
}

static positions all_positions(ptx *p, const mla_block *b)
{
    return attention_positions(p, b->in, attention_sequence_length(p, b->early, b->row));
}

val mla_row(ptx *p, const mla_block *b, val position)
{
    return mad_wide(p, cache_pages_row(p, &b->pages, position), cache_row_bytes(b->in), b->cache);
}

/* Prefetches the first rows of a run into the L2, before the wait: see gqa_flash_decoding.c. */
static void fetch_rows(ptx *p, const mla_block *b, positions run)
{
    unsigned row_bytes = cache_row_bytes(b->in);
    unsigned a_turn = ptx_block(p) * TARGET_LINE;
    unsigned turns = target_bytes_ahead(ptx_target(p)) / (WARP * TARGET_LINE);
    phase(p, "prefetch the first rows");
    PTX_IF (p, lt(p, run.first, run.end)) {
        val rows = min(p, sub(p, run.end, run.first), turns * a_turn / row_bytes + 1);
        val last = sub(p, mul(p, rows, row_bytes), 1), own = mul(p, tid_x(p), TARGET_LINE);
        for (unsigned i = 0; i < turns; i++) {
            val byte = min(p, add(p, own, i * a_turn), last);
            val row = mla_row(p, b, add(p, run.first, div(p, byte, row_bytes)));
            prefetch(p, add(p, row, convert(p, U64, rem(p, byte, row_bytes))), 0);
        }
    }
}

positions mla_block_count(ptx *p, mla_block *b)
{
    positions all = all_positions(p, b);
    val chunks = attention_chunk_count(p, all.end, imm(U32, b->in->shape.chunk_size));
    b->active = named(p, "active", max(p, chunks, 1));
    b->blocks = min(p, b->active, nctaid_z(p));
    return all;
}

void mla_block_begin(ptx *p, mla_block *b)
{
    positions all = mla_block_count(p, b);
    if (b->early && ptx_overlaps(p)) {
        fetch_rows(p, b, attention_chunk(p, all, imm(U32, b->in->shape.chunk_size), ctaid_z(p)));
        wait_for_launches(p);
    }
    b->early = b->pages.settled = false;
    end_and_fetch_next_if(p, b->in, ge(p, ctaid_z(p), b->active));
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
    return attention_chunk(p, all_positions(p, b), imm(U32, b->in->shape.chunk_size), chunk);
}

static val partials_of(ptx *p, const mla_block *b, val query)
{
    return partial_rows(p, &b->results, query, imm(U32, attention_most_chunks(b->in)));
}

val mla_partial(ptx *p, const mla_block *b, val query, val chunk)
{
    return mad_wide(p, chunk, partial_bytes(&b->results), partials_of(p, b, query));
}

void mla_merge(ptx *p, const mla_block *b)
{
    fetch_next(p, b->in);
    ret_if(p, eq(p, b->active, 1));
    phase(p, "check for the row's last block");
    unsigned parts = ((unsigned)b->in->shape.num_heads + b->heads - 1) / b->heads;
    val column = mad(p, b->row, parts, ctaid_x(p));
    ret_if(p, bit_not(p, attention_is_last_block(p, column, b->blocks, b->ticket)));
    phase(p, "merge the chunks");
    val heads = min(p, sub(p, imm(U32, b->in->shape.num_heads), b->first_head), b->heads);
    PTX_FOR (p, head, warp_id(p), heads, ptx_block(p) / WARP) {
        val query = mla_query_row(p, b, head);
        partials_merge(p, &b->results, ROWS_OF_THIS_GRID, partials_of(p, b, query), b->active,
                       query);
    }
}

mla_softmax mla_softmax_new(ptx *p, unsigned first, unsigned end, unsigned heads)
{
    return (mla_softmax){ .max = var_f32(p, -FLT_MAX),
                          .sum = var_f32(p, 0.0f),
                          .first = first,
                          .end = end,
                          .factors = shared_array(p, "factors", F32, heads),
                          .states = shared_array(p, "states", F32, 2 * heads) };
}

void mla_softmax_clear(ptx *p, const mla_softmax *s)
{
    assign(p, s->max, -FLT_MAX);
    assign(p, s->sum, 0.0f);
}

val mla_softmax_raise(ptx *p, const mla_softmax *s, const val *scores, unsigned count, val *now)
{
    val before = get(p, s->max), largest = before;
    for (unsigned i = 0; i < count; i++)
        largest = max(p, largest, scores[i]);
    *now = lanes_max(p, largest, s->first, s->end);
    val factor = named(p, "factor", ex2(p, sub(p, before, *now)));
    assign(p, s->max, *now);
    assign(p, s->sum, mul(p, s->sum, factor));
    return factor;
}

void mla_softmax_tell(ptx *p, const mla_softmax *s, const mla_softmax_lane *own, val factor)
{
    PTX_IF (p, eq(p, own->position, 0))
        st_shared(p, F32, mad(p, own->head, imm(U32, F32_BYTES), s->factors), 0, factor);
}

void mla_softmax_share(ptx *p, const mla_softmax *s, const mla_softmax_lane *own)
{
    val sum = lanes_sum(p, get(p, s->sum), s->first, s->end);
    val at = mad(p, own->head, imm(U32, STATE_BYTES), s->states);
    PTX_IF (p, bit_and(p, own->exists, eq(p, own->position, 0))) {
        st_shared(p, F32, at, 0, s->max);
        st_shared(p, F32, at, F32_BYTES, sum);
    }
    barrier(p);
}

val2 mla_softmax_state(ptx *p, const mla_softmax *s, val head)
{
    return ld_shared_v2(p, F32, mad(p, head, imm(U32, STATE_BYTES), s->states), 0);
}

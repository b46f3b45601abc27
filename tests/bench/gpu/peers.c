#include "bench/gpu/peers.h"

#include <string.h>

/* Returns true for Q4_K weights, m = 1 and two rows per warp, without an epilogue or norm. */
static bool is_plain_stream(const instance *in)
{
    return instance_weights(in) == FORMAT_Q4_K && in->shape.m == 1 && in->rows_per_warp == 2 &&
           !in->options.bias && !in->options.residual && !in->options.norm;
}

/* Returns true for four query heads per KV head, heads of 128 values, an f16 cache and no options.
 */
static bool is_usual_attention(const instance *in)
{
    const problem_shape *s = &in->shape;
    return in->dims == DIMS_STATIC && in->kv_type == KV_F16 && s->head_dim == 128 &&
           s->num_heads == 4 * s->num_kv_heads && !in->options.window && !in->options.page &&
           !(in->options.scale > 0) && !(in->options.softcap > 0);
}

/* Launches one block of four warps per KV head. */
static void take_kv_heads(const instance *in, gpu_grid *grid)
{
    grid->blocks[0] = (unsigned)in->shape.num_kv_heads;
    grid->threads = 128;
}

/* Sets the shared memory of x: 1,536 bytes for each 1,024 values. */
static void take_shared(const instance *in, gpu_grid *grid)
{
    grid->dynamic_shared = (size_t)(in->shape.k + 1023) / 1024 * 1536;
}

static const peer peers[] = {
    { .family = "stream_gemv",
      .entry = "stream_q4k_gemv_peer",
      .fits = is_plain_stream,
      .sizes = { KEY_FIELD(shape.k), KEY_FIELD(shape.n) },
      .regrid = take_shared },
    { .family = "flash_decoding_chunk",
      .entry = "flash_decoding_chunk_peer",
      .fits = is_usual_attention,
      .sizes = { KEY_FIELD(shape.max_seq_len), KEY_FIELD(shape.chunk_size) },
      .regrid = take_kv_heads },
};

const peer *peer_of(const instance *in)
{
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        if (strcmp(peers[i].family, in->family->name) == 0 && peers[i].fits(in))
            return &peers[i];
    return NULL;
}

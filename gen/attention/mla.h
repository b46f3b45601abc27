/* Latent attention (MLA) of a block: some heads of a row, and chunks z, z + %nctaid.z, ... of
 * chunk_size positions. The last block of a row and its heads, found by a counter, resets the
 * counter and merges the partial rows [query, chunk] of latent + 4 f32 (see attention/attention.h).
 */
#pragma once

#include "gen/attention/attention.h"
#include "gen/common/row_groups.h"
#include "kernel/problem.h"

typedef struct mla_block {
    const instance *in;
    instance results; /* instance whose head_dim is latent: the shape of partial rows */
    unsigned heads;   /* heads per block; the last block may have fewer */
    val row, first_head;
    val ticket; /* a word of shared memory */
    cache_pages pages;
    val cache;          /* start of the rows */
    bool early;         /* the kernel reads settled state before its wait */
    val active, blocks; /* number of chunks of the row; blocks with at least one chunk */
} mla_block;

/* Initializes the block's state. The caller allocates ticket, and has waited for the preceding
 * launches unless the state is settled. */
mla_block mla_block_new(ptx *p, const instance *in, unsigned heads);

/* Counts chunks and blocks, and ends the block if it has no chunk. If the state is settled, it
 * first prefetches rows and waits. */
void mla_block_begin(ptx *p, mla_block *b);
/* Counts chunks and blocks again, and returns all positions of the row. */
positions mla_block_count(ptx *p, mla_block *b);

/* Returns the row of q for a head of the block, clamped to the last head. */
val mla_query_row(ptx *p, const mla_block *b, val head);
val mla_has_head(ptx *p, const mla_block *b, val head);

/* Returns the factor of scores in units of log 2. */
float mla_score_scale(const instance *in);

positions mla_chunk(ptx *p, const mla_block *b, val chunk);

/* Returns the address of a position's row. */
val mla_row(ptx *p, const mla_block *b, val position);

/* Returns the address of a query's partial row of a chunk. */
val mla_partial(ptx *p, const mla_block *b, val query, val chunk);

/* Merges the partial rows of all blocks, in the block that finishes last. Ends the other blocks. */
void mla_merge(ptx *p, const mla_block *b);

/* The online softmax of a head, over tiles whose products are in shared memory. Lanes whose index
 * differs in bits first up to end share a head. */
typedef struct mla_softmax {
    var max, sum;
    unsigned first, end;
    val factors, states; /* shared memory, per head: a factor; max and sum */
} mla_softmax;
typedef struct mla_softmax_lane {
    val head, position, exists; /* head; first position; predicate: it exists */
} mla_softmax_lane;

/* Return, or reset to, the state at the start of a chunk. */
mla_softmax mla_softmax_new(ptx *p, unsigned first, unsigned end, unsigned heads);
void mla_softmax_clear(ptx *p, const mla_softmax *s);

/* Raises the maximum to the largest of the lane's scores of a tile and stores it to *now. Rescales
 * the sum, and returns the factor that rescales results. */
val mla_softmax_raise(ptx *p, const mla_softmax *s, const val *scores, unsigned count, val *now);
/* Stores that factor to shared memory for the threads with results. */
void mla_softmax_tell(ptx *p, const mla_softmax *s, const mla_softmax_lane *own, val factor);

/* Stores max and sum of each head to shared memory, and ends with a barrier. */
void mla_softmax_share(ptx *p, const mla_softmax *s, const mla_softmax_lane *own);
val2 mla_softmax_state(ptx *p, const mla_softmax *s, val head);

/* mla_attention with products = f16: see gen/attention/mla_halves.c. */
enum { MLA_HALVES_THREADS = 128, MLA_HALVES_HEADS = 16 };
int64_t mla_halves_shared(const instance *in);
void mla_halves_build(ptx *p, const instance *in);

/* Keys of the latent attention families. */
enum {
    MLA_MOST_LATENT = PROBLEM_MOST_LATENT,
    MLA_MOST_ROPE = PROBLEM_MOST_LATENT_ROPE,
    MLA_MOST_HALVES = 576, /* values per row with products = f16 */
};

#define KEY_MLA_HEADS                                                    \
    KEY_NUMBER("num_heads", "query heads, e.g. 128", shape.num_heads, 1, \
               PROBLEM_MOST_LATENT_HEADS, .required = true, .tag = "h")
/* The macro's arguments are further fields of the key. */
#define KEY_MLA_LATENT(...)                                                                \
    KEY_NUMBER("latent", "values of a cache row without RoPE, e.g. 512", shape.latent, 32, \
               MLA_MOST_LATENT, .multiple_of = 32, __VA_ARGS__.required = true, .tag = "l")
/* Rows from a head's matrix to the next in attn_kv_b, which holds a head's rows of k, then of v. */
#define KEY_MLA_PLANE_ROWS(said) \
    KEY_NUMBER("plane_rows", said, shape.plane_rows, 0, 2048, .zero_is_none = true, .tag = "plane")
/* Conditions of W: read whole, or a part of attn_kv_b. */
#define MLA_WHOLE .only_with = KEY_FIELD(shape.plane_rows), .only_of = 1
#define MLA_PART(read) \
    .only_with = KEY_FIELD(shape.plane_rows), .touched = read, .touched_once = true
#define KEY_MLA_ROPE                                                                   \
    KEY_NUMBER("n_rope", "values of a cache row with RoPE, e.g. 64", shape.n_rope, 32, \
               MLA_MOST_ROPE, .multiple_of = 32, .required = true, .tag = "r")
#define KEY_MLA_KV_TYPE KEY_WORD("kv_type", "type of the cache", kv_type, kv_type_choices)
/* Rows; a block processes up to 8 at once. */
#define KEY_MLA_ROWS KEY_NUMBER("m", "rows", shape.m, 1, PROBLEM_MOST_ROWS, .def = 1, .tag = "m")

/* A pool of pages [page or max_seq_len, latent + n_rope]. */
#define MLA_POOL(how)                                                                   \
    PARAM(how, F32, c, "m*seq_pages*page_rows*(latent+n_rope)", 16, .data = DATA_CACHE, \
          .unit = "latent+n_rope")

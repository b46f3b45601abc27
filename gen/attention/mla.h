/* Latent attention of a block: its heads of a row, and the chunks of the row's positions that it
 * takes, z, z + %nctaid.z, ... of chunk_size each. The last block of a row and its heads, which a
 * counter tells, resets that and merges the partial rows: latent + 4 f32, see
 * attention/attention.h, of [query, chunk].
 */
#ifndef PTXGEN_GEN_ATTENTION_MLA_H
#define PTXGEN_GEN_ATTENTION_MLA_H

#include "gen/attention/attention.h"
#include "gen/common/row_groups.h"
#include "kernel/problem.h"

typedef struct mla_block {
    const instance *in;
    instance results; /* with heads of latent values: what partial rows are of */
    unsigned heads;   /* of the block, maybe more than are left */
    val row, first_head;
    val ticket; /* a word of shared memory */
    val cache;
    bool early;         /* it has not waited for the launches ahead, and reads its settled state */
    val active, blocks; /* chunks of the row, and blocks that take them */
} mla_block;

/* The caller declares ticket, and has waited for the launches ahead unless the state is settled. */
mla_block mla_block_new(ptx *p, const instance *in, unsigned heads);

/* Counts chunks and blocks, and ends the block if there is no chunk for it; if the state is
 * settled, it prefetches the first rows and waits before that. mla_block_count counts them anew,
 * and returns all positions. */
void mla_block_begin(ptx *p, mla_block *b);
positions mla_block_count(ptx *p, mla_block *b);

/* Returns the row of q that a head of the block has; of a head that does not exist that of the last
 * one. */
val mla_query_row(ptx *p, const mla_block *b, val head);
val mla_has_head(ptx *p, const mla_block *b, val head);

/* Returns the factor of scores that makes them logarithms to the base 2. */
float mla_score_scale(const instance *in);

positions mla_chunk(ptx *p, const mla_block *b, val chunk);

/* Returns the address of a query's partial row of a chunk. */
val mla_partial(ptx *p, const mla_block *b, val query, val chunk);

/* Lets the block that finishes last merge the partial rows of all blocks. */
void mla_merge(ptx *p, const mla_block *b);

int64_t mla_most_chunks(const instance *in);

/* The online softmax of a head, over tiles whose products are in shared memory. Lanes whose numbers
 * differ in the bits from first up to end share a head. */
typedef struct mla_softmax {
    var max, sum;
    unsigned first, end;
    val factors, states; /* shared memory: of each head a float, and its max and sum */
} mla_softmax;
typedef struct mla_softmax_lane {
    val head, position, exists; /* number of the head; the lane's first position of a tile */
} mla_softmax_lane;

/* Starts a chunk. A new one is started already. */
mla_softmax mla_softmax_new(ptx *p, unsigned first, unsigned end, unsigned heads);
void mla_softmax_clear(ptx *p, const mla_softmax *s);

/* Raises the maximum, now, to the largest of the lane's scores of a tile, scales the sum, and
 * returns the factor by which results are scaled. mla_softmax_tell stores it for them. */
val mla_softmax_raise(ptx *p, const mla_softmax *s, const val *scores, unsigned count, val *now);
void mla_softmax_tell(ptx *p, const mla_softmax *s, const mla_softmax_lane *own, val factor);

/* Stores max and sum of each head, and waits for them; returns those of one. */
void mla_softmax_share(ptx *p, const mla_softmax *s, const mla_softmax_lane *own);
val2 mla_softmax_state(ptx *p, const mla_softmax *s, val head);

/* mla_attention with products = f16: see gen/attention/mla_halves.c. */
enum { MLA_HALVES_THREADS = 128, MLA_HALVES_HEADS = 16 };
int64_t mla_halves_shared(const instance *in);
void mla_halves_build(ptx *p, const instance *in);

/* The keys of latent attention: of its query, attention and values. */
enum {
    MLA_MOST_LATENT = PROBLEM_MOST_LATENT,
    MLA_MOST_ROPE = PROBLEM_MOST_LATENT_ROPE,
    MLA_MOST_HALVES = 576, /* values of a row with products = f16 */
};

#define KEY_MLA_HEADS                                                                     \
    KEY_NUMBER("num_heads", "query heads", shape.num_heads, 1, PROBLEM_MOST_LATENT_HEADS, \
               .required = true, .tag = "h")
#define KEY_MLA_LATENT                                                               \
    KEY_NUMBER("latent", "values of a cache row that do not turn", shape.latent, 32, \
               MLA_MOST_LATENT, .multiple_of = 32, .required = true, .tag = "l")
#define KEY_MLA_ROPE                                                                    \
    KEY_NUMBER("n_rope", "values behind them that do", shape.n_rope, 32, MLA_MOST_ROPE, \
               .multiple_of = 32, .required = true, .tag = "r")
#define KEY_MLA_KV_TYPE KEY_WORD("kv_type", "elements of the cache", kv_type, kv_type_choices)
/* Rows, of which a block has up to 8 at once. */
#define KEY_MLA_ROWS KEY_NUMBER("m", "rows", shape.m, 1, PROBLEM_MOST_ROWS, .def = 1, .tag = "m")

/* The address of each row's cache [max_seq_len, latent + n_rope]. */
#define MLA_CACHES(how)                                                                           \
    {                                                                                             \
        .name = "c", .kind = how, .format = FORMAT_ADDRESS, .values = "m", .align = 8,            \
        .data = DATA_CACHE, .target = FORMAT_F32, .target_values = "max_seq_len*(latent+n_rope)", \
        .unit = "latent+n_rope", .order = ORDER_SETTLED                                           \
    }

#endif

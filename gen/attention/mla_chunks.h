/* Latent attention of a block: its heads of a row, and the chunks of the row's positions that it
 * takes, z, z + %nctaid.z, ... of chunk_size each. The last block of a row and its heads, which a
 * counter tells, sets that back to zero and merges the partial rows: latent + 4 f32 as
 * attention/attention.h says, of [query, chunk].
 */
#ifndef PTXGEN_GEN_ATTENTION_MLA_CHUNKS_H
#define PTXGEN_GEN_ATTENTION_MLA_CHUNKS_H

#include "gen/attention/attention.h"

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

/* ticket is declared by the caller, who has waited for the launches ahead but where the state is
 * settled. */
mla_block mla_block_new(ptx *p, const instance *in, unsigned heads);

/* Counts chunks and blocks, and ends the block where there is no chunk for it; where the state is
 * settled, it waits first, with the first rows under way. And counts them anew. */
void mla_block_begin(ptx *p, mla_block *b);
void mla_block_count(ptx *p, mla_block *b);

/* The row of q that a head of the block has; of heads that are not there that of the last one; and
 * whether it is there. */
val mla_query_row(ptx *p, const mla_block *b, val head);
val mla_has_head(ptx *p, const mla_block *b, val head);

/* What scores are multiplied by, in units of log 2. */
float mla_score_scale(const instance *in);

/* The positions of a chunk. */
positions mla_chunk(ptx *p, const mla_block *b, val chunk);

/* Whether the row has one chunk alone. Where a query's values go: then into o, else into the
 * partial row of a chunk. */
val mla_is_alone(ptx *p, const mla_block *b);
val mla_output(ptx *p, const mla_block *b, val query);
val mla_partial(ptx *p, const mla_block *b, val query, val chunk);

/* Behind the last chunk: the last block merges. */
void mla_merge(ptx *p, const mla_block *b);

int64_t mla_most_chunks(const instance *in);

/* Of instances whose products are of f16: gen/attention/mla_halves.c. */
enum { MLA_HALVES_THREADS = 128, MLA_HALVES_HEADS = 16 };
int64_t mla_halves_shared(const instance *in);
void mla_halves_build(ptx *p, const instance *in);

#endif

/* Decode attention of one warp: a query row against a run of positions of a KV cache.
 *
 * A cache of one KV head is [rows, head_dim], of max_seq_len rows or those of a ring, in f32, f16,
 * bf16 or q8_0; sums are f32. A position's row is shared by a group of lanes, each holding up to 16
 * values of it (see cache_row.h). A warp has several groups, each with its own positions and its
 * own online softmax; they are merged at the end. Few lanes a position means few shuffles a score,
 * and several positions in flight.
 *
 * Partial results are rows of head_dim + 4 f32: sums weighed by exp(score - max), max in units of
 * log 2, the sum of the weights, two zeros. Every row is 16-byte aligned.
 *
 * A sink is a logit of a head that weighs in its softmax and has no value: where an output row is
 * stored, it goes into the row's max and sum, once. Sinks are in natural units: a NaN or plus
 * infinity makes its head's rows NaN, minus infinity is as no sink, and so are all for a sequence
 * without positions, whose rows are 0. A row may have a gate, by whose sigmoid it is multiplied
 * last; what of a gate is no number, or infinite, becomes NaN.
 */
#ifndef PTXGEN_GEN_ATTENTION_ATTENTION_H
#define PTXGEN_GEN_ATTENTION_ATTENTION_H

#include "gen/attention/cache_row.h"
#include "gen/common/softmax.h"
#include "kernel/family.h"
#include "ptx/ptx.h"

/* The size of that name, of launch.sizes. */
#define CACHE_ROWS                                                                  \
    {                                                                               \
        "cache_rows", kv_rows, "rows of a cache: max_seq_len, or those of its ring" \
    }

enum { LANE_VALUES = 16, PARTIAL_ALIGN = 16 };

/* A lane's two addresses in a row, as raw_row_load takes them. */
typedef struct lane_rows {
    var first, last;
} lane_rows;

typedef struct attention {
    const instance *in;
    row_lane row;
    val q[LANE_VALUES];
    lane_rows k, v;
    softmax state;
} attention;

/* Positions [first, end) that a sequence's softmax is over: the last ones of its window, of a
 * length that is clamped to max_seq_len. */
typedef struct positions {
    val first, end;
} positions;
positions attention_positions(ptx *p, const instance *in, val seq_len);

/* Those of them in a chunk of chunk_size: none where end <= first. */
positions attention_chunk_positions(ptx *p, const instance *in, val seq_len, val chunk);

/* Positions of a ring of so many rows by the row that the first stands in. */
positions attention_within_ring(ptx *p, int64_t rows, positions run);

/* What q is multiplied by, and the score in units of log 2 of such a q and a position of K. */
float attention_query_scale(const instance *in);
val attention_score(ptx *p, const instance *in, val product);

/* Returns the factor of scores whose row of q was scaled by a power of two. The factor undoes that
 * power; its exponent comes from common/halves.h. */
val attention_factor_of_power(ptx *p, const instance *in, val exponent);

/* Loads query row number query, of [.., head_dim] at the parameter q. */
attention attention_new(ptx *p, const instance *in, val query);

/* Of a sequence of a batch: its length, and the address of its cache in the array of addresses that
 * is the parameter of this name. */
val attention_sequence_length(ptx *p, val sequence);
val attention_sequence_cache(ptx *p, const char *name, val sequence);

/* Where these two stand. */
val attention_sequence_length_at(ptx *p, val sequence);
val attention_sequence_cache_at(ptx *p, const char *name, val sequence);

/* Bytes from the address of a cache to a query head's KV head in it, and to a KV head. */
val attention_cache_offset(ptx *p, const instance *in, val head);
val attention_kv_head_offset(ptx *p, const instance *in, val kv_head);

/* Adds positions, first <= end, of the caches of a KV head; to be called once. Afterwards every
 * lane has the sums of its pieces. */
void attention_add(ptx *p, attention *a, val k, val v, positions run);

/* Stores what attention_add left: the output row at the parameter o, with the head's sink where
 * there are some, or a partial row. */
void attention_store_output(ptx *p, const attention *a, val query);
void attention_store_partial(ptx *p, const attention *a, val row, bool shared);

/* What sums of a state are to be multiplied by, with the sink of a query row's head where there are
 * some; and a result by a gate. */
val attention_output_scale(ptx *p, const instance *in, const softmax *state, val query);
val attention_gated(ptx *p, val value, val gate);

/* Bytes of a partial row, and where it has its sums. */
unsigned partial_bytes(const instance *in);
val2 partial_load_sums(ptx *p, const instance *in, val row); /* max and sum; in shared memory */
void partial_store_sums(ptx *p, const instance *in, val row, bool shared, val max, val sum);

/* The address, in the parameter partials [.., chunks], of a query row's first partial row. */
val partial_rows(ptx *p, const instance *in, val query, val chunks);

/* Splits positions into chunks of a size: how many chunks count positions need, and the positions
 * of one, which are none where first >= end. */
val attention_chunk_count(ptx *p, val count, val size);
positions attention_chunk(ptx *p, positions all, val size, val chunk);

/* Whether all other blocks that count up a counter of the parameter counters have stored their
 * partial rows: the last one's count sets it back to 0. ticket is a word of shared memory that
 * nothing else uses by then. All threads of the block call it. */
val attention_is_last_block(ptx *p, val column, val blocks, val ticket);

/* Merge partial rows that lie behind each other, from the address rows on; for a whole warp.
 * Without rows, or where nothing has weight, the output is 0. Output rows have sink and gate.
 *
 *   partials_merge            rows that another grid or blocks of this one made, into the output
 *                             row at the parameter o
 *   partials_merge_to_shared  rows that blocks of this grid made, into one in shared memory
 *   partials_merge_shared     rows in shared memory, into the output row
 *   partials_merge_to_global  rows in shared memory, into one in global memory
 */
typedef enum row_source { ROWS_OF_ANOTHER_GRID, ROWS_OF_THIS_GRID } row_source;
void partials_merge(ptx *p, const instance *in, row_source source, val rows, val count, val query);
void partials_merge_to_shared(ptx *p, const instance *in, val rows, val count, val row);
void partials_merge_shared(ptx *p, const instance *in, val rows, unsigned count, val query);
void partials_merge_to_global(ptx *p, const instance *in, val rows, unsigned count, val row);

#endif

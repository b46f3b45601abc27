/* Shared by all attention families: keys, positions, chunks, scores, and merging partial rows.
 *
 * A cache of one KV head is [rows, head_dim], of max_seq_len rows or those of a ring, in f32, f16,
 * bf16 or q8_0; sums are f32.
 *
 * A partial row is head_dim + 4 f32: sums weighed by exp(score - max), max in units of log 2, the
 * sum of the weights, two zeros. It is 16-byte aligned.
 *
 * A sink is a logit of a head that weighs in its softmax and has no value: it is added to a row's
 * max and sum once, where the output row is stored. Sinks are in natural units: a NaN or plus
 * infinity makes its head's rows NaN, minus infinity changes nothing, and no sink changes the rows
 * of a sequence without positions, which are 0. A gate multiplies a row by its sigmoid, last; a NaN
 * or an infinity of a gate becomes NaN.
 */
#ifndef PTXGEN_GEN_ATTENTION_ATTENTION_H
#define PTXGEN_GEN_ATTENTION_ATTENTION_H

#include "gen/attention/cache_row.h"
#include "gen/common/softmax.h"
#include "gen/rows/rope.h"

/* The keys and parameters that decode attention families share. */
#define ATTENTION_SHAPE            ATTENTION_SHAPE_OF(4)
#define ATTENTION_SHAPE_OF(values) KEY_HEAD_DIM(values), KEY_NUM_HEADS, KEYS_OF_CACHE
#define KEYS_OF_CACHE                                                               \
    KEY_NUMBER("num_kv_heads", "key and value heads", shape.num_kv_heads, 1, 65535, \
               .required = true, .tag = "kv"),                                      \
        KEY_MAX_SEQ_LEN
#define KEY_MAX_SEQ_LEN                                                                            \
    KEY_NUMBER("max_seq_len", "positions the cache has room for", shape.max_seq_len, 1, INT32_MAX, \
               .required = true, .tag = "s")
#define ATTENTION_OPTIONS                                                                          \
    KEY_WORD("kv_type", "elements of the cache; q8_0: head_dim in 32s", kv_type, kv_type_choices), \
        ATTENTION_SCORES
#define ATTENTION_SCORES                                                    \
    KEY_REAL("scale", "of q.k; d: head_dim", options.scale, "scale",        \
             RANGE(.max = 1e6, .def_text = "1/sqrt(d)")),                   \
        KEY_REAL("softcap", "c of c tanh(score/c)", options.softcap, "cap", \
                 RANGE(.max = 1e6, .def_text = "none")),                    \
        ATTENTION_WINDOW
#define ATTENTION_WINDOW                                                            \
    KEY_NUMBER("window", "last positions that count", options.window, 0, INT32_MAX, \
               .zero_is_none = true, .tag = "win")
#define KEY_SINKS KEY_WORD("sinks", "logits of heads, without value", options.sinks, sinks_choices)
#define SINKS     IN_WHERE(sinks, F32, sinks, "num_heads", 4)
#define KEY_RING                                                                                  \
    KEY_NUMBER("ring", "rows of a cache: position t in row t % ring", options.ring, 0, INT32_MAX, \
               .zero_is_none = true, .tag = "ring")
#define KEY_GATE KEY_WORD("gate", "o by its sigmoid", options.gate, gate_choices)
#define GATES                                                                       \
    IN(F32, gate, "m*num_heads*head_dim", 16, .only_with = KEY_FIELD(options.gate), \
       .random = RANDOM_FITTED)
/* Sequences of a batch. No kernel reads their number, but what launches it takes the grid from it.
 */
#define KEY_SEQUENCES                                                                      \
    KEY_NUMBER("m", "sequences", shape.m, 1, 65535, .required = true, .at_run_time = true, \
               .tag = "m")
#define KEY_CHUNK_SIZE                                                                    \
    KEY_NUMBER("chunk_size", "positions a chunk", shape.chunk_size, 32, 1024, .def = 128, \
               .tag = "c")
extern const choice sinks_choices[], gate_choices[];

/* The size of that name, of launch.sizes. */
#define CACHE_ROWS                                                                  \
    {                                                                               \
        "cache_rows", kv_rows, "rows of a cache: max_seq_len, or those of its ring" \
    }

/* Checks that num_heads is a multiple of num_kv_heads, and that head_dim fits kv_type. check_ring
 * checks as well that a ring has room for the window, check_flash_decoding that a grid has room for
 * the chunks. */
const char *check_heads(const instance *in, arena *a, const char **blamed);
const char *check_ring(const instance *in, arena *a, const char **blamed);
const char *check_flash_decoding(const instance *in, arena *a, const char **blamed);

/* Positions [first, end) that a sequence's softmax is over: the last ones of its window, of a
 * length that is clamped to max_seq_len. */
typedef struct positions {
    val first, end;
} positions;
positions attention_positions(ptx *p, const instance *in, val seq_len);

/* Returns positions of a ring, counted from the start of the row that the first one is in. */
positions attention_within_ring(ptx *p, int64_t rows, positions run);

/* Returns the address of a query's row in an array [.., head_dim] of f32. */
val attention_f32_row(ptx *p, const instance *in, const char *name, val query);

/* What q is multiplied by, and the score in units of log 2 of such a q and a position of K. */
float attention_query_scale(const instance *in);
val attention_score(ptx *p, const instance *in, val product);

/* Returns the factor of scores whose row of q was scaled by a power of two. The factor undoes that
 * power; its exponent comes from common/halves.h. */
val attention_factor_of_power(ptx *p, const instance *in, val exponent);

/* Return a sequence's length, and the address of its cache in the array of addresses that is the
 * parameter of this name. settled: see load_state. */
val attention_sequence_length(ptx *p, bool settled, val sequence);
val attention_sequence_cache(ptx *p, bool settled, const char *name, val sequence);

/* Bytes from the address of a cache to a KV head in it. */
val attention_kv_head_offset(ptx *p, const instance *in, val kv_head);

/* Returns the factor that makes results of sums, with the sink of a query row's head where there is
 * one. attention_gated applies a gate to a result. */
val attention_output_scale(ptx *p, const instance *in, const softmax *state, val query);
val attention_gated(ptx *p, val value, val gate);

/* Bytes of a partial row; its max and sum, which are loaded from shared memory, and stored there or
 * in global memory by the type of the address. */
unsigned partial_bytes(const instance *in);
val2 partial_load_sums(ptx *p, const instance *in, val row);
void partial_store_sums(ptx *p, const instance *in, val row, val max, val sum);

/* The address, in the parameter partials [.., chunks], of a query row's first partial row. */
val partial_rows(ptx *p, const instance *in, val query, val chunks);

/* Splits positions into chunks of a size: how many chunks count positions need, and the positions
 * of one, which are none where first >= end. */
val attention_chunk_count(ptx *p, val count, val size);
positions attention_chunk(ptx *p, positions all, val size, val chunk);

/* Returns true for the last block that counts up a counter of the parameter counters: the others
 * have stored their partial rows. It sets the counter back to 0. ticket is an unused word of shared
 * memory. All threads of the block call it. */
val attention_is_last_block(ptx *p, val column, val blocks, val ticket);

/* Merge consecutive partial rows from the address rows on, with a whole warp: into the output row
 * of a query, with sink and gate, or into a partial row in global or shared memory. Without rows,
 * or where nothing has weight, the output is 0. The number of rows in shared memory is a constant.
 */
typedef enum row_source { ROWS_OF_ANOTHER_GRID, ROWS_OF_THIS_GRID, ROWS_IN_SHARED } row_source;
void partials_merge(ptx *p, const instance *in, row_source source, val rows, val count, val query);
void partials_merge_to(ptx *p, const instance *in, row_source source, val rows, val count, val row);

#endif

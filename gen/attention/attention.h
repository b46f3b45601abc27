/* Shared by all attention families: keys, positions, chunks, scores, and merging of partial rows.
 *
 * The cache of one KV head is [rows, head_dim] in f32, f16, bf16 or q8_0, where rows is max_seq_len
 * or the length of a ring. Sums are f32.
 *
 * A partial row is head_dim + 4 f32, 16-byte aligned: sums weighted by exp(score - max), max in
 * units of log 2, the sum of the weights, two zeros. If two blocks compute the halves of a row, the
 * second half has its own max and sum in place of the zeros.
 *
 * A sink is a logit per head that has a weight in the softmax but no value. It is added to max and
 * sum once, when the output row is stored. Sinks are in natural units. A NaN or plus infinity makes
 * the head's rows NaN; minus infinity has no effect. Rows of a sequence without positions are 0
 * with any sink. The sigmoid or softplus of a gate multiplies a row as the last step; a NaN or
 * infinite gate gives NaN. */
#pragma once

#include "gen/attention/cache_row.h"
#include "gen/common/softmax.h"
#include "gen/rows/rope.h"

/* Keys and parameters that the families of decode attention share. */
#define ATTENTION_SHAPE ATTENTION_SHAPE_OF(4)
#define ATTENTION_SHAPE_OF(values) \
    KEY_HEAD_DIM(values, PROBLEM_MOST_HEAD_DIM), KEY_NUM_HEADS, KEYS_OF_CACHE
#define KEYS_OF_CACHE                                                                              \
    KEY_NUMBER("num_kv_heads", "KV heads, e.g. 8", shape.num_kv_heads, 1, 65535, .required = true, \
               .tag = "kv"),                                                                       \
        KEY_MAX_SEQ_LEN
#define KEY_MAX_SEQ_LEN                                                                            \
    KEY_NUMBER("max_seq_len", "positions per sequence in the cache, e.g. 8192", shape.max_seq_len, \
               1, INT32_MAX, .required = true, .tag = "s")
#define ATTENTION_OPTIONS                                                                      \
    KEY_WORD("kv_type", "type of the cache; q8_0: head_dim in 32s", kv_type, kv_type_choices), \
        ATTENTION_SCORES
#define ATTENTION_SCORES                                                             \
    KEY_REAL("scale", "factor of q.k; d = head_dim", options.scale, "scale",         \
             RANGE(.max = 1e6, .def_text = "1/sqrt(d)")),                            \
        KEY_REAL("softcap", "c in c tanh(score/c), e.g. 50", options.softcap, "cap", \
                 RANGE(.max = 1e6, .def_text = "none")),                             \
        ATTENTION_WINDOW
#define ATTENTION_WINDOW                                                                         \
    KEY_NUMBER("window", "last positions that a query attends to, e.g. 4096", options.window, 0, \
               INT32_MAX, .zero_is_none = true, .tag = "win")
#define KEY_SINKS \
    KEY_WORD("sinks", "add: a logit per head, without a value", options.sinks, sinks_choices)
#define SINKS IN_WHERE(sinks, F32, sinks, "num_heads", 4)
#define KEY_RING                                                                                \
    KEY_NUMBER("ring", "cache rows: position t is in row t % ring", options.ring, 0, INT32_MAX, \
               .zero_is_none = true, .tag = "ring")
#define KEY_GATE \
    KEY_WORD("gate", "function of the gate that multiplies o", options.gate, gate_choices)
#define GATES                                                \
    GATES_OF("m*num_heads*head_dim", 16, SIGMOID, SOFTPLUS), \
        GATES_OF("m*num_heads", 4, SIGMOID_HEAD, SOFTPLUS_HEAD)
#define GATES_OF(count, alignment, one, other)                            \
    IN(F32, gate, count, alignment, .only_with = KEY_FIELD(options.gate), \
       .only_of = 1 << GATE_##one | 1 << GATE_##other, .random = RANDOM_FITTED)
/* Sequences of a batch. Kernels do not read their number; the launch derives the grid from it. */
#define KEY_SEQUENCES                                                                              \
    KEY_NUMBER("m", "sequences, e.g. 4", shape.m, 1, 65535, .required = true, .at_run_time = true, \
               .tag = "m")
#define KEY_CHUNK_SIZE                                                                      \
    KEY_NUMBER("chunk_size", "positions per chunk", shape.chunk_size, 32, 1024, .def = 128, \
               .tag = "c")
extern const choice sinks_choices[], gate_choices[];

#define KEY_PAGE                                                                                 \
    KEY_NUMBER("page", "positions per page of a cache: 16, 32, 64, 128 or 256", options.page, 0, \
               256, .zero_is_none = true, .multiple_of = 16, .tag = "page")
/* Entries of launch.sizes. */
#define CACHE_PAGES                                                                         \
    { "page_rows", kv_page_rows, "rows per KV head of a page: page, ring or max_seq_len" }, \
    {                                                                                       \
        "seq_pages", kv_pages, "pages per sequence: 1 without page"                         \
    }

/* Check that num_heads is a multiple of num_kv_heads, that head_dim suits kv_type, and that page is a
 * power of two and not used with a ring. check_ring also checks that the window fits the ring, and
 * that tensor cores can split head_dim; check_flash_decoding checks that the chunks fit a grid. */
const char *check_page(const instance *in, arena *a, const char **blamed);
const char *check_heads(const instance *in, arena *a, const char **blamed);
const char *check_ring(const instance *in, arena *a, const char **blamed);
const char *check_flash_decoding(const instance *in, arena *a, const char **blamed);

/* The positions [first, end) of a sequence's softmax: the last ones of its window. The length is
 * clamped to max_seq_len. */
typedef struct positions {
    val first, end;
} positions;
positions attention_positions(ptx *p, const instance *in, val seq_len);

/* Returns the run counted from row 0 of the ring; its end may exceed the ring by under `rows`. */
positions attention_within_ring(ptx *p, int64_t rows, positions run);

/* Returns the address of a query's row in an f32 array [.., head_dim]. */
val attention_f32_row(ptx *p, const instance *in, const char *name, val query);

/* Returns the factor that q is multiplied by. */
float attention_query_scale(const instance *in);
/* Returns the score in units of log 2 for the product of such a q and a row of K. */
val attention_score(ptx *p, const instance *in, val product);

/* Returns the factor of scores whose row of q was scaled by a power of two (common/halves.h), given
 * the power's exponent. It undoes the power and applies the scale. */
val attention_factor_of_power(ptx *p, const instance *in, val exponent);

/* Returns the length of a row's sequence. settled: see load_state. */
val attention_sequence_length(ptx *p, bool settled, val row);

/* The caches of a row's sequence in the pools of pages. Without the key `page`, number is the
 * sequence's only page; else the index of its first entry in the page table. settled is true while
 * the table may be read early; see load_state. */
typedef struct cache_pages {
    const instance *in;
    bool settled;
    val number;
} cache_pages;
cache_pages cache_pages_of(ptx *p, const instance *in, bool settled, val row);
/* Returns the address from which a KV head's rows are counted in a pool. */
val cache_pages_start(ptx *p, const cache_pages *c, val pool, val kv_head);
/* Returns the number of a position's row, counted from there. In a ring, position is the ring's row.
 * The table has no entry for positions from max_seq_len on. */
val cache_pages_row(ptx *p, const cache_pages *c, val position);
/* Returns a position that cache_pages_row accepts: the last one for those from max_seq_len on. */
val cache_pages_existing(ptx *p, const instance *in, val position);

/* Returns the factor that normalizes a row: 1 / sum, including the head's sink if there is one. */
val attention_output_scale(ptx *p, const instance *in, const softmax *state, val query);
/* Multiplies values by the function of their gates. */
void attention_gate(ptx *p, const instance *in, val *values, const val *gates, unsigned count);
/* Loads the gate of a query's head; for gates with one value per head. */
val attention_head_gate(ptx *p, val query);

/* Return the bytes of a partial row; true if two blocks compute its halves; load its max and sum
 * from shared memory; store them to shared or global memory, depending on the address's type. */
enum { PARTIAL_SUMS_BYTES = 8 };
unsigned partial_bytes(const instance *in);
bool partial_has_halves(const instance *in);
val2 partial_load_sums(ptx *p, const instance *in, val row);
void partial_store_sums(ptx *p, const instance *in, val row, val max, val sum);

/* Returns the address of a query row's first partial row in the parameter partials [.., chunks]. */
val partial_rows(ptx *p, const instance *in, val query, val chunks);

/* Returns the number of chunks of `size` positions in count positions. */
val attention_chunk_count(ptx *p, val count, val size);
int64_t attention_most_chunks(const instance *in); /* of max_seq_len positions */
/* Returns the positions of a chunk; it is empty if first >= end. */
positions attention_chunk(ptx *p, positions all, val size, val chunk);

/* Counts arriving blocks in the parameter counters and returns true in the last one, which resets
 * the counter. The partial rows of the other blocks are visible to it. ticket is an unused word of
 * shared memory. All threads must call it. */
val attention_is_last_block(ptx *p, val column, val blocks, val ticket);

/* Merge consecutive partial rows from address rows on, with a whole warp. partials_merge stores a
 * query's output row, with sink and gate; partials_merge_to stores a partial row to global or
 * shared memory. Without rows or without weights the output is 0. For rows in shared memory, count
 * is an immediate. */
typedef enum row_source { ROWS_OF_ANOTHER_GRID, ROWS_OF_THIS_GRID, ROWS_IN_SHARED } row_source;
void partials_merge(ptx *p, const instance *in, row_source source, val rows, val count, val query);
void partials_merge_to(ptx *p, const instance *in, row_source source, val rows, val count, val row);

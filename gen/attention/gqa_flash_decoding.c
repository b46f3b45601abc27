/* Flash decoding for grouped-query attention in one launch (split-K over the positions). A block
 * serves all query heads of a KV head for one chunk of a sequence's positions, so that K and V are
 * read from memory once. The last block of a KV head to finish merges the chunks.
 *
 * Layouts are those of warp_attention.c, with a gate [m, num_heads, head_dim]. Partial rows
 * (attention/attention.h) are [query, chunk].
 *
 * With ring = R a page is [num_kv_heads, R, head_dim], and position t is in row t % R. With R =
 * 192, positions 180 .. 307 (a window of 128 at length 308) are rows 180 .. 191 and 0 .. 115.
 * Chunks and stretches are the same as for a cache of max_seq_len rows and may wrap around; only
 * the loads compute the row. So the results have the same bits.
 *
 * A block serves up to 8 heads, 4 of more than 128 values, or 2 of more than 256. If a KV head has
 * more, neighbouring blocks share them and find K and V in the L2. Each warp processes a stretch of
 * the chunk; its partial rows are merged at the end. attention/gqa.c documents the work of a warp.
 *
 * With chunking = free the grid determines the number of chunks, %nctaid.z: as many as two blocks
 * per SM process in whole waves, and at least 4 per sequence, so that the last wave is at least 4/5
 * full. The block computes the chunk length from the sequence's length; all chunks are equal, and
 * blocks without positions end at once. So a captured grid suits every length. (On sm_75 only one
 * block of more than 5 heads fits an SM; the others run after it.)
 *
 * With chunking = fixed every chunk has chunk_size positions, from the first position of the window
 * on, and a block processes chunks z, z + %nctaid.z, ... With chunk_limit the chunk size doubles
 * until a sequence has at most chunk_limit chunks. Short sequences are then spread over many SMs,
 * and long ones do not have more to merge. The positions of a warp and the order of the merging
 * follow from the sequence's length alone. A result then has the same bits with any grid, GPU,
 * batch and max_seq_len. Example: 600 positions with chunk_size = 256 form chunks of 256, 256 and
 * 88 positions, for one block or for three; with chunk_limit = 2 they form chunks of 512 and 88.
 * There is a partial row for every chunk that max_seq_len (or the window) allows.
 *
 * The blocks of a KV head increment a counter when they have stored their partial rows. The last
 * block resets it for the next launch and merges: warps merge each head's rows in two parts, and
 * then the two parts in shared memory.
 *
 * With state = settled the lengths, sequences and pages do not change after the launch begins. A
 * kernel that overlaps with its predecessors reads them before it waits, and each warp prefetches
 * the first rows of its stretch of K and V into the L2. A predecessor may still write these rows:
 * its stores go through the same L2, so no prefetched copy is stale. The rows themselves are loaded
 * after the wait. The length stays in shared memory until the block ends.
 *
 * mma_flash_decoding is the same on the tensor cores, for f16 caches: blocks of four warps serve up
 * to 16 heads, or 8 of more than 128 values. attention/gqa_halves.c documents the work of a warp.
 */
#include "gen/attention/gqa.h"
#include "gen/common/next.h"
#include "kernel/formula.h"
#include "ref/reference.h"

enum {
    MERGE_PARTS = 2,
    LEAST_CHUNK = 128, /* positions; shorter chunks would cost less than their merging */
    SM_BLOCKS = 2,
    END_COUNT = 1 << 30, /* above any number of chunks */
    CACHES = 2,          /* K and V */
    ADDRESS_BYTES = 8,
    LENGTH_AT = CACHES * ADDRESS_BYTES, /* offset of the length, after the addresses */
    NUMBER_AT = LENGTH_AT + 4,          /* of the number of cache_pages */
};

/* The heads of a block and its part of a sequence. */
typedef struct flash_block {
    const instance *in;
    unsigned ratio, parts; /* heads per KV head; blocks per KV head */
    unsigned most_heads, warps;
    unsigned sharers;                           /* neighbouring warps with the same positions */
    unsigned head_rows;                         /* partial rows per head in shared memory */
    val kv_head, part, sequence, chunk, chunks; /* chunks: of the grid */
    val query;                                  /* index of the first head's row of q */
    val heads;
    val length; /* length of the sequence; no kind: load it again */
    val caches; /* shared memory: starts of K and V; the length if settled; number of cache_pages */
    positions own;
    val active; /* number of chunks with positions, at least 1 */
    val blocks; /* number of blocks with chunks */
    val ticket; /* shared memory; holds query until the last barrier */
    val rows;   /* shared memory: partial rows [heads, warps] */
    gqa floats;
    gqa_halves halves;
} flash_block;

static flash_block flash_block_new(ptx *p, const instance *in)
{
    flash_block w = { .in = in,
                      .ratio = formula_unsigned("ratio", in),
                      .parts = formula_unsigned("parts", in),
                      .most_heads = formula_unsigned("heads", in),
                      .warps = formula_unsigned("warps", in) };
    w.sharers = in->family->halves ? gqa_halves_sharers(in) : 1;
    w.head_rows = w.warps / w.sharers;
    w.kv_head = named(p, "kv_head", div(p, ctaid_x(p), w.parts));
    w.part = rem(p, ctaid_x(p), w.parts);
    w.sequence = named(p, "sequence", ctaid_y(p));
    w.chunk = named(p, "chunk", ctaid_z(p));
    w.chunks = named(p, "chunks", nctaid_z(p));
    val first = mul(p, w.part, w.most_heads);
    w.length = attention_sequence_length(p, is_settled(in), w.sequence);
    w.query = mad(p, w.sequence, imm(U32, in->shape.num_heads),
                  mad(p, w.kv_head, imm(U32, w.ratio), first));
    w.heads = w.ratio % w.most_heads ? min(p, sub(p, w.ratio, first), w.most_heads)
                                     : imm(U32, w.most_heads);
    return w;
}

static positions positions_of(ptx *p, const flash_block *w)
{
    val length = w->length;
    if (!length.kind)
        length = is_settled(w->in) ? ld_shared(p, U32, w->caches, LENGTH_AT)
                                   : attention_sequence_length(p, false, w->sequence);
    return attention_positions(p, w->in, length);
}

/* Sets the block's chunk; all chunks of a sequence have the same length. */
static void take_chunk(ptx *p, flash_block *w)
{
    positions all = positions_of(p, w);
    val count = sub(p, all.end, all.first);
    val equal = attention_chunk_count(p, count, w->chunks); /* one chunk per block */
    val length = named(p, "chunk_length", max(p, equal, LEAST_CHUNK));
    w->blocks = w->active = named(p, "active", max(p, attention_chunk_count(p, count, length), 1));
    w->own = attention_chunk(p, all, length, w->chunk);
}

static bool is_fixed(const instance *in)
{
    return in->chunking == CHUNKING_FIXED;
}

/* Returns the maximum number of chunks of chunk_size per sequence. */
static int64_t most_smallest_chunks(const instance *in)
{
    int64_t window = in->options.window, size = in->shape.chunk_size, most = in->shape.max_seq_len;
    return ((window && window < most ? window : most) + size - 1) / size;
}

/* Returns the maximum number of chunks, and so of partial rows, per sequence. */
static int64_t most_chunks(const instance *in)
{
    if (!is_fixed(in))
        return in->chunks;
    int64_t most = most_smallest_chunks(in);
    return in->chunk_limit && in->chunk_limit < most ? in->chunk_limit : most;
}

static int64_t most_blocks(const instance *in)
{
    int64_t chunks =
        is_fixed(in) ? most_chunks(in) : (in->shape.max_seq_len + LEAST_CHUNK - 1) / LEAST_CHUNK;
    return in->chunks < chunks ? in->chunks : chunks;
}

/* The positions of a sequence, and the number of times that its chunk size doubles. */
typedef struct fixed_chunks {
    positions all;
    val smallest_chunks; /* number of chunks of chunk_size */
    val doublings;       /* no kind: 0 */
} fixed_chunks;

static fixed_chunks fixed_chunks_of(ptx *p, const flash_block *w)
{
    const instance *in = w->in;
    int64_t size = in->shape.chunk_size, most = most_smallest_chunks(in);
    fixed_chunks f = { .all = positions_of(p, w) };
    f.smallest_chunks = attention_chunk_count(p, sub(p, f.all.end, f.all.first), imm(U32, size));
    for (int64_t limit = in->chunk_limit; limit && limit < most; limit *= 2) {
        val more = select(p, gt(p, f.smallest_chunks, limit), imm(U32, 1), imm(U32, 0));
        f.doublings = f.doublings.kind ? add(p, f.doublings, more) : more;
    }
    return f;
}

static void count_chunks(ptx *p, flash_block *w)
{
    fixed_chunks f = fixed_chunks_of(p, w);
    val used = f.smallest_chunks;
    if (f.doublings.kind) {
        val unit = shl(p, imm(U32, 1), f.doublings);
        used = shr(p, add(p, used, sub(p, unit, 1)), f.doublings);
    }
    w->active = named(p, "active", max(p, used, 1));
    w->blocks = min(p, w->active, w->chunks);
}

/* Sets the block's current chunk. For a sequence without positions it is the empty first chunk. */
static void take_fixed_chunk(ptx *p, flash_block *w, val chunk)
{
    fixed_chunks f = fixed_chunks_of(p, w);
    val size = imm(U32, w->in->shape.chunk_size);
    if (f.doublings.kind)
        size = shl(p, size, f.doublings);
    w->own = attention_chunk(p, f.all, size, chunk);
}

static val stretch_number(ptx *p, const flash_block *w)
{
    return w->sharers > 1 ? div(p, warp_id(p), w->sharers) : warp_id(p);
}

/* A warp's stretch of the chunk. Stretches have equal lengths of whole iterations, but the last
 * ones may be cut off. */
typedef struct stretch {
    positions own;
    val length;
} stretch;

static stretch take_stretch(ptx *p, const flash_block *w)
{
    unsigned step = w->in->family->halves ? gqa_halves_step(w->in) : gqa_step(w->in);
    unsigned turn = w->head_rows * step;
    val turns = div(p, add(p, sub(p, w->own.end, w->own.first), turn - 1), turn);
    stretch s = { .length = mul(p, turns, step) };
    s.own.first = min(p, mad(p, stretch_number(p, w), s.length, w->own.first), w->own.end);
    s.own.end = min(p, add(p, s.own.first, s.length), w->own.end);
    return s;
}

/* The starts of K and V for the block's KV head. */
typedef struct cache_starts {
    cache_pages pages;
    val of[CACHES];
} cache_starts;

/* Finds the caches and keeps them in shared memory for all chunks of the block. */
static cache_starts find_caches(ptx *p, flash_block *w, bool settled)
{
    static const char *const names[CACHES] = { "k", "v" };
    cache_starts s = { .pages = cache_pages_of(p, w->in, settled, w->sequence) };
    w->caches = shared_array(p, "caches", U64, CACHES + 1);
    for (unsigned i = 0; i < CACHES; i++)
        s.of[i] = cache_pages_start(p, &s.pages, parameter(p, names[i]), w->kv_head);
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        for (unsigned i = 0; i < CACHES; i++)
            st_shared(p, U64, w->caches, i * ADDRESS_BYTES, s.of[i]);
        if (is_settled(w->in))
            st_shared(p, U32, w->caches, LENGTH_AT, w->length);
        if (w->in->options.page)
            st_shared(p, U32, w->caches, NUMBER_AT, s.pages.number);
    }
    return s;
}

/* Prefetches rows of K and V from the first position of the run on. Each lane prefetches one line
 * of K and one of V at a time. A row is rounded up to a power of two of lines, so that lanes can
 * share it. */
static void fetch_rows(ptx *p, const flash_block *w, const cache_starts *s, positions run)
{
    int64_t ring = w->in->options.ring, row_bytes = cache_row_bytes(w->in);
    unsigned lines = 1, bytes = CACHES * WARP * TARGET_LINE;
    while (lines * TARGET_LINE < row_bytes)
        lines *= 2;
    val byte = mul(p, rem(p, lane_id(p), lines), TARGET_LINE), first;
    if (lines * TARGET_LINE > row_bytes)
        byte = min(p, byte, imm(U32, row_bytes - 1));
    if (ring)
        run = attention_within_ring(p, ring, run);
    first = add(p, run.first, div(p, lane_id(p), lines));
    for (unsigned i = 0; i < target_bytes_ahead(ptx_target(p)) / bytes; i++) {
        val row = min(p, add(p, first, i * (WARP / lines)), sub(p, run.end, 1));
        if (ring) /* as in the load */
            row = min(p, row, sub(p, row, ring));
        row = cache_pages_row(p, &s->pages, row);
        val place = add(p, mul_wide(p, row, row_bytes), convert(p, U64, byte));
        for (unsigned j = 0; j < CACHES; j++)
            prefetch(p, add(p, s->of[j], place), 0);
    }
}

/* Reads the state and prefetches before the wait, for kernels with state = settled. */
static void fetch_ahead(ptx *p, flash_block *w)
{
    flash_block first = *w;
    const cache_starts caches = find_caches(p, w, true);
    phase(p, "prefetch the first rows of K and V");
    if (is_fixed(w->in))
        take_fixed_chunk(p, &first, w->chunk);
    else
        take_chunk(p, &first);
    first.own.first = min(p, first.own.first, first.own.end); /* the block may have no chunk */
    positions run = take_stretch(p, &first).own;
    PTX_IF (p, lt(p, run.first, run.end))
        fetch_rows(p, w, &caches, run);
    wait_for_launches(p);
}

static void begin(ptx *p, flash_block *w)
{
    const instance *in = w->in;
    bool halves = in->family->halves, early = is_settled(in) && ptx_overlaps(p);
    if (early)
        fetch_ahead(p, w);
    phase(p, halves ? "load q" : "stage q");
    if (!early)
        find_caches(p, w, is_settled(in));
    unsigned row_bytes = partial_bytes(in), stride = w->head_rows * row_bytes;
    unsigned products_of_warp = GQA_PRODUCTS * w->most_heads;
    unsigned words = gqa_halves_query_words(in, w->most_heads);
    val products = { 0 }, queries = { 0 };
    if (!halves)
        products = shared_array(p, "products", F32, w->warps * products_of_warp);
    w->rows = shared_array(p, "rows", F32, w->most_heads * stride / 4);
    val rows = mad(p, stretch_number(p, w), imm(U32, row_bytes), w->rows);
    if (!halves) {
        queries = shared_array(p, "queries", F32, gqa_query_values(in, w->most_heads));
        products = mad(p, warp_id(p), imm(U32, products_of_warp * 4), products);
        w->floats = gqa_new(p, in, w->most_heads, queries, products, rows, stride);
    } else if (words) {
        queries = shared_array(p, "queries", U32, words);
    }
    val last = add(p, w->query, sub(p, w->heads, 1));
    if (halves) {
        w->halves = gqa_halves_new(p, in, w->most_heads, w->query, last, queries, rows, stride);
        barrier(p);
    } else {
        gqa_stage_queries(p, &w->floats, w->query, last);
    }
}

static void attend(ptx *p, flash_block *w)
{
    val caches[CACHES];
    for (unsigned i = 0; i < CACHES; i++)
        caches[i] = ld_shared(p, U64, w->caches, i * ADDRESS_BYTES);
    cache_pages pages = { .in = w->in };
    if (w->in->options.page)
        pages.number = ld_shared(p, U32, w->caches, NUMBER_AT);
    stretch s = take_stretch(p, w);
    if (w->in->family->halves)
        gqa_halves_attend(p, &w->halves, pages, caches[0], caches[1], s.own, s.length);
    else
        gqa_attend(p, &w->floats, pages, caches[0], caches[1], s.own);
    barrier(p);
}

static val head_rows(ptx *p, const flash_block *w, val head, unsigned rows)
{
    return mad(p, head, imm(U32, rows * partial_bytes(w->in)), w->rows);
}

static val partials_of(ptx *p, const flash_block *w, val head)
{
    val chunks = is_fixed(w->in) ? imm(U32, most_chunks(w->in)) : w->chunks;
    return partial_rows(p, w->in, add(p, w->query, head), chunks);
}

/* Merges the warps' partial rows. With one chunk, stores the result and ends the block. */
static void merge_warps(ptx *p, const flash_block *w, val chunk)
{
    const instance *in = w->in;
    val alone = eq(p, w->active, 1), count = imm(U32, w->head_rows);
    PTX_IF (p, alone)
        PTX_FOR (p, own_head, warp_id(p), w->heads, w->warps)
            partials_merge(p, in, ROWS_IN_SHARED, head_rows(p, w, own_head, w->head_rows), count,
                           add(p, w->query, own_head));
    end_and_fetch_next_if(p, in, alone);
    PTX_FOR (p, head, warp_id(p), w->heads, w->warps) {
        val row = mad_wide(p, chunk, partial_bytes(in), partials_of(p, w, head));
        partials_merge_to(p, in, ROWS_IN_SHARED, head_rows(p, w, head, w->head_rows), count, row);
    }
}

/* Processes the block's chunks. The loop counts up to a constant, so that only the counter is live
 * through the inner loops. */
static void add_fixed_chunks(ptx *p, flash_block *w)
{
    begin(p, w);
    count_chunks(p, w);
    end_and_fetch_next_if(p, w->in, ge(p, w->chunk, w->active));
    w->length = (val){ 0 };
    /* The index of the first query row is kept in the ticket's word, since 8 heads leave no
     * register for it. attend's barrier is between the store and the loads. */
    w->ticket = shared_array(p, "ticket", U32, 1);
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_shared(p, U32, w->ticket, 0, w->query);
    PTX_FOR (p, count, sub(p, add(p, w->chunk, END_COUNT), w->active), END_COUNT, w->chunks) {
        take_fixed_chunk(p, w, sub(p, add(p, count, w->active), END_COUNT));
        attend(p, w);
        phase(p, "merge the warps");
        w->query = ld_shared(p, U32, w->ticket, 0);
        count_chunks(p, w); /* recomputed, so that it is not live through the loops */
        merge_warps(p, w, sub(p, add(p, count, w->active), END_COUNT));
        barrier(p); /* all rows are merged before a warp clears its rows */
        if (!w->in->family->halves)
            gqa_clear(p, &w->floats);
    }
    count_chunks(p, w); /* recomputed */
    w->query = ld_shared(p, U32, w->ticket, 0);
}

static void gqa_flash_decoding_build(ptx *p, const instance *in)
{
    if (!is_settled(in))
        wait_for_launches(p);
    flash_block w = flash_block_new(p, in);
    unsigned registers = target_registers_for(SM_BLOCKS * w.warps);
    /* 4 heads of 16-bit caches in fixed chunks: ptxas spills for sm_90 at 128 registers, not at
     * 124. */
    int64_t dims = in->shape.head_dim;
    if (is_fixed(in) && w.most_heads == 4 && dims <= 128 && cache_row_bytes(in) == 2 * dims)
        registers -= 4;
    ptx_max_registers(p, in->family->halves ? gqa_halves_registers(in, w.most_heads) : registers);
    if (is_fixed(in)) {
        add_fixed_chunks(p, &w);
    } else {
        begin(p, &w);
        take_chunk(p, &w);
        end_and_fetch_next_if(p, w.in, ge(p, w.chunk, w.active));
        w.length = (val){ 0 };
        attend(p, &w);
        phase(p, "merge the warps");
        take_chunk(p, &w); /* recomputed, so that it is not live through the loops */
        merge_warps(p, &w, w.chunk);
    }
    fetch_next(p, in);
    phase(p, "check for the KV head's last block");
    val ticket = is_fixed(in) ? w.ticket : shared_array(p, "ticket", U32, 1);
    val column = mad(p, w.sequence, imm(U32, in->shape.num_kv_heads * w.parts), ctaid_x(p));
    ret_if(p, bit_not(p, attention_is_last_block(p, column, w.blocks, ticket)));
    phase(p, "merge the chunks");
    PTX_FOR (p, task, warp_id(p), mul(p, w.heads, MERGE_PARTS), w.warps) {
        val head = div(p, task, MERGE_PARTS), part = rem(p, task, MERGE_PARTS);
        val first = div(p, mul(p, part, w.active), MERGE_PARTS);
        val end = div(p, mul(p, add(p, part, 1), w.active), MERGE_PARTS);
        val rows = mad_wide(p, first, partial_bytes(w.in), partials_of(p, &w, head));
        partials_merge_to(p, w.in, ROWS_OF_THIS_GRID, rows, sub(p, end, first),
                          mad(p, task, imm(U32, partial_bytes(w.in)), w.rows));
    }
    barrier(p);
    PTX_FOR (p, merged, warp_id(p), w.heads, w.warps)
        partials_merge(p, w.in, ROWS_IN_SHARED, head_rows(p, &w, merged, MERGE_PARTS),
                       imm(U32, MERGE_PARTS), add(p, w.query, merged));
}

static const choice chunking_choices[] =
    CHOICES([CHUNKING_FREE] = { "free", "" }, [CHUNKING_FIXED] = { "fixed", "_fixed" });

/* The default chunk_size balances two costs. Smaller chunks cost more merging: a chunk's partial
 * rows, written and read once, are 16 / chunk_size of the bytes of its K and V (8 heads, f16), and
 * a warp of the last block merges its half of a head's rows 16 at a time; 131072 positions have 512
 * rows, which take 16 iterations. With larger chunks a single sequence must be longer to fill all
 * SMs: with 256, 8448 positions of 8 KV heads give each of 132 SMs its two blocks, with 24 KiB of K
 * or V in flight. Each of 6 or 7 warps then has 48 or 40 positions of a tile of 64 (head_dim =
 * 128). */
enum { USUAL_CHUNK = 256 };

/* Keys of gqa_flash_decoding and mma_flash_decoding. */
#define FLASH_CHUNKS                                                                               \
    KEY_NUMBER("chunks", "maximum chunks per sequence", chunks, 1, 1024, .def = 64, .tag = "c"),   \
        KEY_WORD("chunking", "fixed: chunks depend only on seq_len", chunking, chunking_choices),  \
        KEY_NUMBER("chunk_size", "positions per chunk", shape.chunk_size, 32, 4096,                \
                   .def = USUAL_CHUNK, .only_with = KEY_FIELD(chunking), .tag = "cs"),             \
        KEY_NUMBER("chunk_limit", "maximum chunks; chunk_size doubles to meet it", chunk_limit, 0, \
                   1024, .zero_is_none = true, .only_with = KEY_FIELD(chunking), .tag = "lim")
#define FLASH_OPTIONS                                                                            \
    KEY_PAGE, KEY_RING, KEY_SINKS, KEY_GATE, KEY_STATE("settled: lengths and pages read early"), \
        KEY_NEXT, KEY_DIMS
#define FLASH_SIZES                                                                        \
    { "most_chunks", most_chunks, "chunks; with chunking = fixed, maximum per sequence" }, \
        { "most_blocks", most_blocks,                                                      \
          "blocks along z: at most chunks, of at least 128 positions" },                   \
        CACHE_PAGES
#define FLASH_TERMS                                                     \
    { "columns", "num_kv_heads*parts*m" }, { "at_once", "sm_count*2" }, \
    {                                                                   \
        "waves", "ceil_div(columns*4, at_once)"                         \
    }
#define FLASH_FAMILY                                                                               \
    .computes = "o[m,h] = softmax(q[m,h] K[m]' scale) V[m]", .op = OP_BATCHED_ATTENTION,           \
    .same_bits = true, .same_bits_with = KEY_FIELD(chunking), .activations = FORMAT_F32,           \
    .preference = 10, .cache_heads = "heads",                                                      \
    .params = PARAMS(                                                                              \
        OUT(F32, o, "m*num_heads*head_dim", 16), PARTIAL_ROWS(SCRATCH, "m*num_heads*most_chunks"), \
        COUNTERS(counters, "m*num_heads"), QUERIES("m*num_heads*head_dim"), KV_POOL(IN, k),        \
        KV_POOL(IN, v), SINKS, GATES, SEQUENCE_LENGTHS, ROW_SEQUENCES, PAGE_TABLE, NEXT_WEIGHTS),  \
    .check = check_ring, .build = gqa_flash_decoding_build, .fit = ref_fit_gates,                  \
    .reference = ref_attention, .tolerance = 2e-6
#define FLASH_LAUNCH                                                                  \
    .block = "32*warps",                                                              \
    .grid = { "num_kv_heads*parts", "m", "min(most_blocks, waves*at_once/columns)" }, \
    .overlap = WAITS_ITSELF

/* Shared memory: per warp and head, a row of head_dim + 4 values and GQA_PRODUCTS products; q; the
 * addresses of K and V; the ticket. */
const family gqa_flash_decoding = {
    FLASH_FAMILY,
    .name = "gqa_flash_decoding",
    .summary = "decode attention of m sequences, split in chunks; a block serves a KV head",
    .keys = KEYS(ATTENTION_SHAPE, KEY_SEQUENCES, FLASH_CHUNKS, ATTENTION_OPTIONS, FLASH_OPTIONS),
    .launch = { FLASH_LAUNCH,
                .shared = "warps*heads*(head_dim+84)*4 + "
                          "slots*wide*ceil_div(head_dim, 128*wide)*512 + 36",
                .terms = TERMS(
                    { "ratio", "num_heads/num_kv_heads" },
                    { "parts", "ceil_div(ratio, 8/ceil_div(head_dim, 128))" },
                    { "heads", "ceil_div(ratio, parts)" },
                    { "warps", "7 - heads/5" },               /* 6 from 5 heads on */
                    { "slots", "heads + heads/7 - heads/8" }, /* gqa_query_values: 8 for 7 heads */
                    { "wide", "ceil_div(head_dim, 256)" }, FLASH_TERMS),
                .sizes = SIZES(FLASH_SIZES),
                .registers = 168 }, /* two blocks of 6 warps; build sets it for 7 */
};

static int64_t query_bytes(const instance *in)
{
    return (int64_t)gqa_halves_query_words(in, formula_unsigned("heads", in)) *
           (int64_t)sizeof(uint32_t);
}

const family mma_flash_decoding = {
    FLASH_FAMILY,
    .name = "mma_flash_decoding",
    .summary = "gqa_flash_decoding on tensor cores, for f16 caches",
    .halves = true,
    .sm = 80,
    .keys = KEYS(ATTENTION_SHAPE_OF(GQA_HALVES_VALUES), KEY_SEQUENCES, FLASH_CHUNKS,
                 KEY_WORD("kv_type", "type of the cache", kv_type, kv_type_choices,
                          .allowed = 1 << KV_F16, .def = KV_F16),
                 ATTENTION_SCORES, FLASH_OPTIONS),
    .launch = { FLASH_LAUNCH,
                .shared = "warps/ceil_div(head_dim, 256)*heads*(head_dim+4)*4 + "
                          "queries + 36",
                .terms =
                    TERMS({ "ratio", "num_heads/num_kv_heads" },
                          { "parts", "ceil_div(ratio, 16/min(ceil_div(head_dim, 128), 2))" },
                          { "heads", "ceil_div(ratio, parts)" }, { "warps", "4" }, FLASH_TERMS),
                .sizes = SIZES(FLASH_SIZES,
                               { "queries", query_bytes, "bytes of q, if it is in shared memory" }),
                .registers = 168 }, /* three blocks; build sets it for more or longer heads */
};

/* Gate and up projections of the experts that rows of X use, and the activation. The experts are
 * given by a list in device memory (products/experts.h). The shared expert is used by all rows. A
 * row's results are those of its slots, then those of the shared expert:
 *
 *   f[row] = slot 0 [n], slot 1 [n], ..., shared [n_shared]
 *
 * For an id >= experts no weights are read, and the results are NaN.
 *
 * exact_expert_gate_up rounds nothing: a warp computes a row of an expert, with one row of X after
 * the other.
 *
 * stream_expert_gate_up reads an expert once for all rows that use it. Its blocks share the experts
 * in use evenly. Each block stages the rows of X that use its expert, in several groups if shared
 * memory cannot hold m rows. Code is generated for 1, 2, 4 and 8 rows, up to m. A count in between
 * uses the next larger variant, padded with copies of the last row. */
#include "gen/products/experts.h"
#include "gen/products/stream_plan.h"
#include "ref/reference.h"

enum { OF_EXPERTS = 0, SHARED = GEMV_PAIR /* index of its first matrix */ };

/* Returns gate and up of an expert or of the shared expert, for a number of vectors. Only experts
 * have biases. The shared expert's results come after the experts'. */
static gemv_pair pair_of(ptx *p, const instance *in, unsigned first, unsigned vectors)
{
    const problem_shape *s = &in->shape;
    instance some = *in;
    some.shape.m = vectors;
    some.options.bias = first == SHARED ? 0 : in->options.bias;
    some.options.limit = first == SHARED ? in->options.shared_limit : in->options.limit;
    gemv_pair pair = gemv_pair_of(p, &some, first);
    if (first == SHARED) {
        pair.g[0].y = add(p, pair.g[0].y, imm(U64, s->experts_used * s->n * F32_BYTES));
        pair.g[0].stride = imm(U32, (unsigned)(s->experts_used * s->n + s->n_shared));
    }
    return pair;
}

/* Stores NaN results for an expert that does not exist. thread: caller's index among threads. */
static void store_nans(ptx *p, const instance *in, const expert_entry *e, val thread, val threads)
{
    const gemv_chosen rows = experts_rows(in, e);
    const gemv_operands g = { .y = parameter(p, "y"), .chosen = &rows };
    PTX_FOR (p, vector, 0, e->count, 1) {
        val stored, y = gemv_results(p, &g, vector, &stored);
        PTX_FOR (p, row, thread, in->shape.n, threads)
            st_global(p, F32, mad_wide(p, row, F32_BYTES, y), 0, expert_nan(p));
    }
}

static void exact_expert(ptx *p, const instance *in, const expert_entry *e, val row)
{
    PTX_IF (p, expert_exists(p, in, e->id)) {
        gemv_pair pair = pair_of(p, in, OF_EXPERTS, 1);
        for (unsigned i = 0; i < pair.count; i++)
            pair.g[i].w = expert_plane(p, in, pair.g[i].w, e->id, pair.g[i].row_bytes);
        val bias = add(p, row, mul(p, e->id, (unsigned)in->shape.n));
        PTX_FOR (p, vector, 0, e->count, 1) {
            gemv_chosen one = experts_rows(in, e);
            one.words = mad_wide(p, vector, 4, e->choices);
            pair.g[0].chosen = &one;
            pair.g[0].x = gemv_vector(p, &pair.g[0], imm(U32, 0));
            exact_gated_row(p, &pair, row, bias);
        }
    }
    PTX_ELSE (p)
        store_nans(p, in, e, mad(p, row, 32, lane_id(p)), imm(U32, in->shape.n * 32));
}

static void build_exact(ptx *p, const instance *in)
{
    val list = parameter(p, "list"), number = named(p, "entry", ctaid_y(p));
    val row = named(p, "row", ctaid_x(p));
    PTX_IF (p, lt(p, number, experts_in_use(p, list)))
        PTX_IF (p, lt(p, row, in->shape.n)) {
            expert_entry e = expert_entry_at(p, in, list, number);
            exact_expert(p, in, &e, row);
        }
    if (in->shape.n_shared)
        PTX_IF (p, eq(p, number, (unsigned)experts_listed(in)))
            PTX_IF (p, lt(p, row, in->shape.n_shared))
                PTX_FOR (p, vector, 0, in->shape.m, 1) {
                    gemv_pair pair = pair_of(p, in, SHARED, 1);
                    val stored;
                    pair.g[0].y = gemv_results(p, &pair.g[0], vector, &stored);
                    pair.g[0].x = gemv_vector(p, &pair.g[0], vector);
                    exact_gated_row(p, &pair, row, row);
                }
}

/* Returns the largest power of two below count, or 1. */
static unsigned power_of_two_below(unsigned count)
{
    unsigned power = 1;
    while (2 * power < count)
        power *= 2;
    return power;
}

static int64_t bytes_of_rows(const instance *in, int64_t rows)
{
    instance some = *in;
    some.shape.m = rows;
    int64_t of_experts = stream_pair_staged_bytes(&some, OF_EXPERTS);
    int64_t shared = in->shape.n_shared ? stream_pair_staged_bytes(&some, SHARED) : 0;
    return shared > of_experts ? shared : of_experts;
}

/* Returns the rows of X that are staged at once: m, or a power of two. More than one row uses at
 * most ROOM bytes, which every GPU has. */
static int64_t staged_rows(const instance *in)
{
    enum { ROOM = 60 * 1024 };
    int64_t rows = in->shape.m;
    while (rows > 1 && bytes_of_rows(in, rows) > ROOM)
        rows = power_of_two_below((unsigned)rows);
    return rows;
}

/* The warps that process an entry of the list together, and the index of this warp. */
typedef struct share {
    val warps, warp;
} share;

/* Multiplies the staged rows with expert id, or with the shared expert if id has no kind. */
static void stream_rows(ptx *p, gemv_pair *pair, val id, const stream_memory *memory,
                        const share *of)
{
    const instance *in = &pair->of[0];
    if (id.kind)
        pair->before = expert_first_row(p, in, id);
    if (id.kind && in->options.bias)
        pair->bias = mul(p, id, (unsigned)in->shape.n);
    phase(p, "fetch the first weights");
    stream_pair_prefetch(p, pair, of->warp);
    phase(p, "stage x");
    stream_pair_multiply(p, pair, memory, of->warp, of->warps);
}

/* Processes an expert that at most `vectors` rows use. */
static void stream_expert(ptx *p, const instance *in, const expert_entry *e, unsigned vectors,
                          const stream_memory *memory, const share *of)
{
    if (vectors > 1)
        PTX_IF (p, le(p, e->count, power_of_two_below(vectors)))
            stream_expert(p, in, e, power_of_two_below(vectors), memory, of);
    PTX_IF (p, vectors > 1 ? gt(p, e->count, power_of_two_below(vectors)) : imm(PRED, 1)) {
        gemv_chosen rows = experts_rows(in, e);
        if (vectors == 1)
            rows.first = expert_choice(p, e, imm(U32, 0));
        gemv_pair pair = pair_of(p, in, OF_EXPERTS, vectors);
        pair.g[0].chosen = pair.g[1].chosen = &rows;
        stream_rows(p, &pair, e->id, memory, of);
    }
}

static void stream_listed(ptx *p, const instance *in, val number, const stream_memory *memory,
                          const share *of)
{
    unsigned at_once = (unsigned)staged_rows(in);
    val list = parameter(p, "list");
    PTX_IF (p, lt(p, number, experts_in_use(p, list))) {
        expert_entry e = expert_entry_at(p, in, list, number);
        PTX_IF (p, expert_exists(p, in, e.id)) {
            if (at_once == in->shape.m)
                stream_expert(p, in, &e, at_once, memory, of);
            else
                PTX_FOR (p, first, 0, e.count, at_once) {
                    expert_entry some = e;
                    some.choices = mad_wide(p, first, 4, e.choices);
                    some.count = min(p, sub(p, e.count, first), at_once);
                    stream_expert(p, in, &some, at_once, memory, of);
                    barrier(p); /* after the last use of the staged rows */
                }
        }
        PTX_ELSE (p)
            store_nans(p, in, &e, mad(p, of->warp, 32, lane_id(p)), mul(p, of->warps, 32));
    }
}

static void stream_shared(ptx *p, const instance *in, const stream_memory *memory, const share *of)
{
    unsigned at_once = (unsigned)staged_rows(in);
    gemv_pair pair = pair_of(p, in, SHARED, at_once);
    if (at_once == in->shape.m)
        stream_rows(p, &pair, (val){ 0 }, memory, of);
    else
        PTX_FOR (p, first, 0, in->shape.m, at_once) {
            for (unsigned i = 0; i < pair.count; i++) {
                pair.g[i].m = imm(U32, in->shape.m);
                pair.g[i].first = first;
            }
            stream_rows(p, &pair, (val){ 0 }, memory, of);
            barrier(p); /* after the last use of the staged rows */
        }
}

/* Returns the number of entries that the shared expert counts as, from its rows; 0 without one. */
static int64_t shared_entries(const instance *in)
{
    return (in->shape.n_shared + in->shape.n - 1) / in->shape.n;
}

static int64_t staged_bytes(const instance *in)
{
    return bytes_of_rows(in, staged_rows(in));
}

/* Returns the registers per thread for a pair of matrices. With Q6_K and other formats with large
 * loads per lane, one block keeps an SM's memory busy, so it may use the registers of two blocks.
 */
static int64_t registers_of(const instance *in, unsigned first)
{
    enum { ENOUGH = 96, OF_LARGE_STEPS = 128 };
    instance gate = gemv_first_of_pair(in, first);
    format weights = instance_weights(&gate);
    uint64_t step_bytes = format_bytes(weights, stream_plan(&gate, 0).step_values);
    int64_t registers = stream_pair_registers(in, first);
    bool large = GEMV_PAIR * step_bytes / WARP >= ENOUGH && registers < OF_LARGE_STEPS;
    return large ? OF_LARGE_STEPS : registers;
}

/* The shared expert comes first, since it may take longest. The grid has at least one block per
 * entry; blocks beyond the experts in use do nothing. */
static void build_stream(ptx *p, const instance *in)
{
    unsigned shared = (unsigned)shared_entries(in);
    instance some = *in, gate = gemv_first_of_pair(in, OF_EXPERTS);
    some.shape.m = gate.shape.m = staged_rows(in);
    int64_t of_experts = registers_of(&some, OF_EXPERTS);
    int64_t of_shared = shared ? registers_of(&some, SHARED) : 0;
    ptx_max_registers(p, (unsigned)(of_shared > of_experts ? of_shared : of_experts));
    stream_memory memory = stream_memory_new(p, &gate, (unsigned)stream_most_chunks(in));
    val list = parameter(p, "list");
    /* With one row all listed experts are in use, so the partition need not wait for the list. */
    bool known = in->shape.m == 1;
    val entries = known ? imm(U32, experts_listed(in) + shared)
                        : max(p, add(p, experts_in_use(p, list), shared), 1);
    val blocks = named(p, "blocks of an entry", max(p, div(p, nctaid_x(p), entries), 1));
    val entry = named(p, "entry", div(p, ctaid_x(p), blocks));
    share of = { mul(p, blocks, ptx_block(p) / 32), stream_warp(p, rem(p, ctaid_x(p), blocks)) };
    val number = shared ? sub(p, entry, shared) : entry; /* index in the list */
    if (shared)
        PTX_IF (p, lt(p, entry, shared)) {
            share of_all = { mul(p, of.warps, shared), mad(p, entry, of.warps, of.warp) };
            stream_shared(p, in, &memory, &of_all);
        }
    if (shared)
        PTX_ELSE (p)
            stream_listed(p, in, number, &memory, &of);
    else
        stream_listed(p, in, number, &memory, &of);
}

/* Keys and parameters of the shared expert's matrices. */
#define KEY_WEIGHTS_WHERE(id, number, ...)                                           \
    KEY_WORD("weights_" #id, "format of W" #id, weights_of[number], weights_choices, \
             .like = KEY_FIELD(weights), .tag = #id, __VA_ARGS__)
#define WHERE_SHARED                    .only_with = KEY_FIELD(shape.n_shared)
#define SHARED_WEIGHTS(id, number, ...) WEIGHTS_OF(id, number, "n_shared*k", __VA_ARGS__)
#define KEYS_OF_FAMILY                                                                         \
    KEY_WEIGHTS, KEY_WEIGHTS_WHERE(g, 0, WHERE_GATED), KEY_WEIGHTS_OF_FORMATS(u, 1, 0),        \
        KEY_WEIGHTS_WHERE(sg, 2, WHERE_SHARED, WHERE_GATED),                                   \
        KEY_WEIGHTS_WHERE(su, 3, WHERE_SHARED), KEY_K_OF_WEIGHTS, KEY_N, KEY_EXPERTS,          \
        KEY_EXPERTS_USED,                                                                      \
        KEY_NUMBER("n_shared", "rows of Wsg and Wsu; 0 = no shared expert", shape.n_shared, 0, \
                   1 << 28, .zero_is_none = true, .tag = "shared"),                            \
        KEY_PLANE_ROWS, KEY_M(1)
#define KEYS_AROUND                                                                  \
    KEY_OPTION(bias, "add: bg and bu [experts,n] are added"), KEYS_OF_GATE,          \
        KEY_REAL("shared_limit", "limit of the shared expert", options.shared_limit, \
                 "sharedlimit", product_softcap_range, WHERE_SHARED),                \
        KEY_UNGATED, KEYS_NORM
#define PARAMS_OF_FAMILY                                                                       \
    OUT(F32, y, "m*(experts_used*n+n_shared)", 4),                                             \
        EXPERTS_WEIGHTS(wg, 1, EXPERTS_VALUES("k"), WHERE_GATED),                              \
        EXPERTS_WEIGHTS(wu, 2, EXPERTS_VALUES("k")),                                           \
        SHARED_WEIGHTS(sg, 2, WHERE_SHARED, WHERE_GATED), SHARED_WEIGHTS(su, 3, WHERE_SHARED), \
        F32_ROWS, EXPERTS_BIASES, EXPERTS_LIST
#define EXPERT_GATE_UP                                                                         \
    .computes = "f[m,slot,n] = activation(x[m,k] Wg[expert[m,slot]]^T) * (x[m,k] Wu[...]^T), " \
                "f[m,n_shared] with Wsg, Wsu",                                                 \
    .op = OP_EXPERT_GATE_UP, .activations = FORMAT_F32, .same_bits = true,                     \
    .params = PARAMS(PARAMS_OF_FAMILY), .check = check_experts, .fit = ref_fit_experts,        \
    .reference = ref_expert_gate_up

const family exact_expert_gate_up = {
    .name = "exact_expert_gate_up",
    .summary = "expert gate and up with activation, by a list of experts, without quantization",
    EXPERT_GATE_UP,
    .keys = KEYS(KEYS_OF_FAMILY, KEYS_AROUND),
    .launch = { .block = "32",
                .grid = { "max(n, n_shared)", "listed+min(1, n_shared)" },
                .sizes = SIZES({ "listed", experts_listed, "maximum number of experts in use" }),
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .build = build_exact,
    .tolerance = 5e-7,
};

const family stream_expert_gate_up = {
    .name = "stream_expert_gate_up",
    .summary = "streaming expert gate and up with activation, by a list of experts: x quantized as "
               "in stream_gemv",
    EXPERT_GATE_UP,
    .whole_lines = true,
    .quantizes = true,
    .preference = 20,
    .keys = KEYS(KEYS_OF_FAMILY, KEY_STREAM_WARPS(12), KEYS_AROUND),
    .launch = { .block = "32*num_warps",
                .grid = { "min(ceil_div(n, num_warps)*(listed+shared), "
                          "max(sm_count*2, 4*(listed+shared)))" },
                .shared = STREAM_NORM_SHARED,
                .dynamic_shared = "staged",
                .sizes = SIZES(
                    { "vectors", staged_rows, "rows of X staged at once: m, or what fits 60 KB" },
                    { "chunks", stream_most_chunks, "partial sums of squares of a vector" },
                    { "staged", staged_bytes, "bytes of staged x, after the tables" },
                    { "listed", experts_listed, "maximum number of experts in use" },
                    { "shared", shared_entries,
                      "ceil_div(n_shared, n): entries that the shared expert counts as" }),
                .rows = "num_warps",
                .dealt = true,
                .weights_first = true,
                .overlap = WAITS_FIRST,
                .registers = 160 },
    .build = build_stream,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};

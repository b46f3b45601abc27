/* stream_gemv, stream_qkv and stream_gate_up, of f32 x or of 8-bit x (_q8): see stream_plan.h.
 *
 * The grid's x is persistent, blocks_sm blocks per SM; its y has a block per `vectors` rows of X. A
 * warp of stream_gemv or stream_qkv computes rows_per_warp rows of W with all vectors; a warp of
 * stream_gate_up computes the same row of Wg and Wu. A result depends on its rows of X and W only:
 * it has the same bits for any grid, num_warps and m. */
#include "gen/common/next.h"
#include "gen/common/reduce.h"
#include "gen/products/stream_plan.h"
#include "ref/reference.h"

static int64_t registers_of(const instance *in)
{
    switch (in->family->op) {
    case OP_GEMV:
        return stream_registers(in);
    case OP_QKV:
        return stream_most_of(in, stream_registers);
    default:
        return stream_pair_registers(in, 0);
    }
}

/* Refuses more warps than there are registers for. */
static const char *check_stream(const instance *in, arena *a, const char **blamed)
{
    unsigned registers = (unsigned)registers_of(in), fit = target_warps_with(registers);
    const char *refused = check_product(in, a, blamed);
    if (refused || in->num_warps <= fit)
        return refused;
    *blamed = "num_warps";
    return arena_format(a,
                        "num_warps = %lld exceeds an SM's registers at %u per thread; "
                        "use num_warps = %u",
                        (long long)in->num_warps, registers, fit);
}

/* Reduces the sums of an iteration's rows over the lanes, and stores the results. */
static void finish_rows(ptx *p, const gemv_operands *g, const stream *s, val row)
{
    unsigned count = s->rows * s->vectors;
    val sums[STREAM_ROWS * MAX_VECTORS];
    phase(p, "reduce and store");
    for (unsigned i = 0; i < count; i++)
        sums[i] = get(p, s->sums[i]);
    gemv_store_rows(p, g, row, s->rows, s->vectors, block_sum_spread(p, sums, count, 1));
}

/* Builds stream_gemv. The warps' first weights are prefetched while x is staged, and with overlap
 * while the preceding launches finish. With passes, all warps of a block run all iterations: a warp
 * without rows repeats the last rows and stores nothing. */
static void build_gemv(ptx *p, const instance *in)
{
    unsigned rows = (unsigned)in->rows_per_warp, of_block = (unsigned)in->num_warps * rows;
    bool alike = stream_rows_share_pointers(in);
    place addresses[STREAM_ROWS];
    ptx_max_registers(p, (unsigned)registers_of(in));
    phase(p, "prefetch the first weights");
    gemv_operands g = gemv_parameters(p, in);
    val own = mul(p, stream_warp(p, ctaid_x(p)), rows), stride = mul(p, stream_warps(p), rows);
    PTX_IF (p, lt(p, own, g.n))
        stream_prefetch_rows(p, &g, own, rows, rows);
    fetch_next_early(p, in);
    wait_for_launches(p);
    phase(p, "stage x");
    stream_memory memory = stream_memory_new(p, in, (unsigned)stream_chunks(in));
    stream s = stream_begin(p, in, &g, rows, &memory);
    g.factors = memory.factors;
    if (s.passes > 1) {
        uint32_t last = (uint32_t)(in->shape.n - 1) / rows * rows;
        PTX_FOR (p, first, mul(p, ctaid_x(p), of_block), g.n, mul(p, nctaid_x(p), of_block)) {
            val row = mad(p, warp_id(p), rows, first);
            stream_row_places(p, alike, &g, min(p, row, imm(U32, last)), rows, addresses);
            stream_add(p, &s, addresses);
            PTX_IF (p, lt(p, row, g.n))
                finish_rows(p, &g, &s, row);
        }
    } else {
        PTX_FOR (p, row, own, g.n, stride) {
            stream_row_places(p, alike, &g, row, rows, addresses);
            stream_add(p, &s, addresses);
            finish_rows(p, &g, &s, row);
        }
    }
    fetch_next_late(p, in);
}

static int64_t block_of_row(const instance *in, int64_t row, int64_t blocks)
{
    return gemv_block_of_row(in, row, blocks, in->num_warps * in->rows_per_warp);
}

/* A run of Q, K and V in stream_qkv. The rows of all three form groups of a block's size, in
 * sequence, and blocks stride over the groups. So most blocks have rows of one matrix only, and
 * stage X for that one only. Neighbouring matrices of one format share a stream. */
typedef struct stream_run {
    gemv_run of;
    instance first;    /* its first matrix */
    bool alike;        /* see stream_row_places */
    unsigned multiple; /* divides the number of rows of each matrix */
} stream_run;

static unsigned runs_of_qkv(const instance *in, stream_run runs[QKV_MATRICES])
{
    unsigned rows = (unsigned)in->rows_per_warp;
    gemv_run of[QKV_MATRICES];
    unsigned count = gemv_runs_of_qkv(in, in->num_warps * rows, of);
    for (unsigned r = 0; r < count; r++) {
        runs[r] = (stream_run){ of[r], instance_matrix(in, of[r].from), true, rows };
        for (unsigned i = 0; i < of[r].count; i++) {
            instance one = instance_matrix(in, of[r].from + i);
            runs[r].alike = runs[r].alike && stream_rows_share_pointers(&one);
            runs[r].multiple = one.shape.n % rows ? 1 : runs[r].multiple;
        }
    }
    return count;
}

/* Returns the matrix of a group, and sets the warp's row of it. */
static gemv_operands matrix_and_row(ptx *p, const stream_run *run, const gemv_operands *of,
                                    val group, val *row)
{
    gemv_operands g = gemv_matrix_of_run(p, &run->of, of, &group);
    g.multiple = run->multiple;
    *row = named(p, "row", mul(p, stream_warp(p, group), (unsigned)run->first.rows_per_warp));
    return g;
}

static void multiply_run(ptx *p, const instance *in, const stream_run *run,
                         const stream_memory *memory)
{
    unsigned rows = (unsigned)in->rows_per_warp;
    gemv_operands of[QKV_MATRICES];
    gemv_operands_of_run(p, in, &run->of, of);
    stream s = stream_begin(p, &run->first, &of[0], rows, memory);
    PTX_FOR (p, first, gemv_first_group(p, run->of.before), run->of.groups, nctaid_x(p)) {
        place addresses[STREAM_ROWS];
        val row;
        gemv_operands g = matrix_and_row(p, run, of, first, &row);
        g.factors = memory->factors;
        PTX_IF (p, lt(p, row, g.n)) {
            stream_row_places(p, run->alike, &g, row, rows, addresses);
            stream_add(p, &s, addresses);
            finish_rows(p, &g, &s, row);
        }
    }
}

static void build_qkv(ptx *p, const instance *in)
{
    unsigned rows = (unsigned)in->rows_per_warp;
    stream_run runs[QKV_MATRICES];
    unsigned count = runs_of_qkv(in, runs);
    ptx_max_registers(p, (unsigned)registers_of(in));
    stream_memory memory = stream_memory_new(p, in, (unsigned)stream_most_chunks(in));
    phase(p, "prefetch the first weights");
    /* A block's first group is its block index: there are at most as many blocks as groups. */
    for (unsigned r = 0; r < count; r++) {
        gemv_operands of[QKV_MATRICES];
        gemv_operands_of_run(p, in, &runs[r].of, of);
        val group = sub(p, ctaid_x(p), (unsigned)runs[r].of.before), row;
        PTX_IF (p, lt(p, group, (unsigned)runs[r].of.groups)) {
            gemv_operands g = matrix_and_row(p, &runs[r], of, group, &row);
            PTX_IF (p, lt(p, row, g.n))
                stream_prefetch_rows(p, &g, row, rows, rows);
        }
    }
    fetch_next_early(p, in);
    wait_for_launches(p);
    for (unsigned r = 0; r < count; r++)
        PTX_IF (p, lt(p, gemv_first_group(p, runs[r].of.before), runs[r].of.groups)) {
            phase(p, "stage x");
            if (r)
                barrier(p); /* after the last use of the staged x */
            multiply_run(p, in, &runs[r], &memory);
        }
    fetch_next_late(p, in);
}

static void build_gate_up(ptx *p, const instance *in)
{
    ptx_max_registers(p, (unsigned)registers_of(in));
    phase(p, "prefetch the first weights");
    gemv_pair pair = gemv_pair_of(p, in, 0);
    val first = stream_warp(p, ctaid_x(p)), stride = stream_warps(p);
    stream_pair_prefetch(p, &pair, first);
    fetch_next_early(p, in);
    wait_for_launches(p);
    phase(p, "stage x");
    stream_memory memory = stream_memory_new(p, &pair.of[0], (unsigned)stream_most_chunks(in));
    stream_pair_multiply(p, &pair, &memory, first, stride);
    fetch_next_late(p, in);
}

#define FACTORS_SHARED "4*vectors"

static int64_t staged_bytes(const instance *in)
{
    if (in->family->op == OP_GEMV)
        return stream_staged_bytes(in);
    return in->family->op == OP_QKV ? stream_most_of(in, stream_staged_bytes)
                                    : stream_pair_staged_bytes(in, 0);
}

/* Returns blocks per SM: 24 warps in one block or two. Only one, if the staged bytes leave no room
 * for another: a second block would run after the first and stage x again. */
static int64_t blocks_of_sm(const instance *in)
{
    enum { STAYING_WARPS = 24, MOST = 2, HALF_OF_SHARED = 113 * 1024 };
    int64_t by_warps = STAYING_WARPS / in->num_warps;
    return by_warps < MOST || staged_bytes(in) > HALF_OF_SHARED ? 1 : MOST;
}

#define BLOCKS_OF_SM                                        \
    {                                                       \
        "blocks_sm", blocks_of_sm, "resident blocks per SM" \
    }

static const derived_size tile_sizes[] = {
    GEMV_VECTORS,
    { "pass_steps", stream_pass_steps,
      "steps of x staged at once, each 1024 or 2048 weights, or 512 bytes of float weights" },
    { "step_bytes", stream_step_bytes,
      "bytes per staged step: 1.25 to 1.625 per value, 4 with float weights" },
    { "table_bytes", stream_table_bytes,
      "bytes of lookup tables before the tile of x, for grid formats" },
    { "chunks", stream_chunks, "partial sums of squares per vector" },
    BLOCKS_OF_SM,
    { NULL, NULL, NULL },
};

static const derived_size sizes_of_several[] = {
    GEMV_VECTORS,
    { "chunks", stream_most_chunks, "partial sums of squares per vector" },
    { "staged", staged_bytes, "bytes of staged x as the matrices need it, with lookup tables" },
    BLOCKS_OF_SM,
    { NULL, NULL, NULL },
};

/* A persistent grid: as many blocks as fit the SMs, and at most one per group of rows. */
#define STREAM_LAUNCH(groups, of_rows, of_dynamic, of_sizes)                                 \
    .block = "32*num_warps", .grid = { "min(" groups ", sm_count*blocks_sm)", GEMV_GRID_Y }, \
    .dynamic_shared = of_dynamic, .sizes = of_sizes, .rows = of_rows, .weights_first = true, \
    .overlap = WAITS_ITSELF, .registers = 160

#define GROUP_ROWS "num_warps*rows_per_warp"
#define GEMV(of_shared)                                                                 \
    .launch = { STREAM_LAUNCH("ceil_div(n, " GROUP_ROWS ")", GROUP_ROWS,                \
                              "table_bytes+vectors*pass_steps*step_bytes", tile_sizes), \
                .shared = of_shared },                                                  \
    .check = check_stream, .build = build_gemv
#define QKV(of_shared)                                                                 \
    .computes = QKV_COMPUTES,                                                          \
    .launch = { STREAM_LAUNCH("ceil_div(n, " GROUP_ROWS ")+ceil_div(n_kv, " GROUP_ROWS \
                              ")+ceil_div(n_v, " GROUP_ROWS ")",                       \
                              GROUP_ROWS, "staged", sizes_of_several),                 \
                .block_of_row = block_of_row, .shared = of_shared },                   \
    .check = check_stream, .build = build_qkv
#define GATE_UP(of_shared)                                                                        \
    .computes = GATE_UP_COMPUTES,                                                                 \
    .launch = { STREAM_LAUNCH("ceil_div(n, num_warps)", "num_warps", "staged", sizes_of_several), \
                .shared = of_shared },                                                            \
    .check = check_stream, .build = build_gate_up

/* Fields of families with f32 x, which they quantize, and with 8-bit x. */
#define OF_ANY_X(of, computed_by)                                               \
    .op = of, .whole_lines = true, .same_bits = true, .reference = computed_by, \
    .tolerance = REF_QUANTIZING_TOLERANCE
#define OF_F32(of, computed_by) \
    OF_ANY_X(of, computed_by), .activations = FORMAT_F32, .quantizes = true, .preference = 20
#define OF_8_BITS(of, computed_by) OF_ANY_X(of, computed_by), .activations = FORMAT_Q8_F32
#define KEYS_OF_WARPS              KEY_M(1), KEY_ROWS, KEY_STREAM_WARPS(24), KEY_ROWS_PER_WARP(2)

const family stream_gemv = {
    .name = "stream_gemv",
    .summary = "streaming GEMV of f32 x, quantized to 8 bits if W is quantized",
    .computes = "y[m,n] = x[m,k] W[n,k]^T",
    OF_F32(OP_GEMV, ref_gemv),
    .of_rows = "stream_gemv_q8",
    .keys = KEYS(KEYS_OF_PRODUCT(0), KEYS_OF_WARPS, KEY_PASSES, KEYS_AROUND_PRODUCT, KEY_NEXT),
    .params = PARAMS(PARAMS_OF_PRODUCT(F32_ROWS), NEXT_WEIGHTS, NUMBERS_OF_EPILOGUE),
    GEMV(STREAM_NORM_SHARED),
};

const family stream_qkv = {
    .name = "stream_qkv",
    .summary = "streaming Q, K and V of one f32 x in one kernel; x is quantized as in stream_gemv",
    OF_F32(OP_QKV, ref_qkv),
    .of_rows = "stream_qkv_q8",
    .each_matrix = "stream_gemv",
    .keys = KEYS(KEYS_OF_QKV(0), KEYS_OF_WARPS, KEYS_AROUND_QKV, KEY_NEXT),
    .params = PARAMS(PARAMS_OF_QKV(F32_ROWS), NEXT_WEIGHTS),
    QKV(STREAM_NORM_SHARED),
};

const family stream_gate_up = {
    .name = "stream_gate_up",
    .summary = "streaming gate and up with activation, of f32 x, quantized as in stream_gemv",
    OF_F32(OP_GATE_UP_SWIGLU, ref_gate_up_swiglu),
    .of_rows = "stream_gate_up_q8",
    .each_matrix = "stream_gemv",
    .keys = KEYS(KEYS_OF_GATE_UP(0), KEY_M(1), KEY_ROWS, KEY_STREAM_WARPS(24), KEYS_AROUND_GATE_UP,
                 KEY_NEXT),
    .params = PARAMS(PARAMS_OF_GATE_UP(F32_ROWS), NEXT_WEIGHTS),
    GATE_UP(STREAM_NORM_SHARED),
};

const family stream_gemv_q8 = {
    .name = "stream_gemv_q8",
    .summary = "stream_gemv of 8-bit x from q8_rows, quantized once for all blocks",
    .computes = "y[m,n] = factors[m] x[m,k] W[n,k]^T",
    OF_8_BITS(OP_GEMV, ref_gemv),
    .counted_as = "stream_gemv",
    .keys = KEYS(KEYS_OF_PRODUCT(INTEGER_FORMATS), KEYS_OF_WARPS, KEY_PASSES, KEYS_BEHIND_PRODUCT,
                 KEY_NEXT),
    .params = PARAMS(PARAMS_OF_PRODUCT(Q8_ROWS("m")), NEXT_WEIGHTS, NUMBERS_OF_EPILOGUE),
    GEMV(FACTORS_SHARED),
};

const family stream_qkv_q8 = {
    .name = "stream_qkv_q8",
    .summary = "stream_qkv of 8-bit x from q8_rows, quantized once for all blocks",
    OF_8_BITS(OP_QKV, ref_qkv),
    .each_matrix = "stream_gemv_q8",
    .counted_as = "stream_qkv",
    .keys = KEYS(KEYS_OF_QKV(INTEGER_FORMATS), KEYS_OF_WARPS, KEY_QKV_BIASES, KEY_NEXT),
    .params = PARAMS(PARAMS_OF_QKV(Q8_ROWS("m")), NEXT_WEIGHTS),
    QKV(FACTORS_SHARED),
};

const family stream_gate_up_q8 = {
    .name = "stream_gate_up_q8",
    .summary = "stream_gate_up of 8-bit x from q8_rows, quantized once for all blocks",
    OF_8_BITS(OP_GATE_UP_SWIGLU, ref_gate_up_swiglu),
    .each_matrix = "stream_gemv_q8",
    .counted_as = "stream_gate_up",
    .keys = KEYS(KEYS_OF_GATE_UP(INTEGER_FORMATS), KEY_M(1), KEY_ROWS, KEY_STREAM_WARPS(24),
                 KEY_GATE_BIASES, KEYS_OF_GATE, KEY_NEXT),
    .params = PARAMS(PARAMS_OF_GATE_UP(Q8_ROWS("m")), NEXT_WEIGHTS),
    GATE_UP(FACTORS_SHARED),
};

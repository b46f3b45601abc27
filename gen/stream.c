/* Streaming products: see blocks/stream.h. */
#include "gen/blocks/reduce.h"
#include "gen/blocks/stream.h"
#include "gen/blocks/stream_pair.h"
#include "gen/stream_keys.h"

static bool is_qkv(const instance *in)
{
    return in->shape.n_kv > 0;
}

static unsigned matrices_of(const instance *in)
{
    return is_qkv(in) ? gemv_matrices_of_qkv(in) : STREAM_PAIR;
}

static int64_t most_of(const instance *in, int64_t (*of)(const instance *one))
{
    int64_t most = 0;
    for (unsigned i = 0; i < matrices_of(in); i++) {
        instance one = instance_matrix(in, i);
        most = of(&one) > most ? of(&one) : most;
    }
    return most;
}

static int64_t most_chunks(const instance *in)
{
    return most_of(in, stream_chunks);
}

/* The sums of a turn's rows over the lanes, and what becomes of them. */
static void finish_turn(ptx *p, const gemv_operands *g, const stream *s, val row)
{
    unsigned count = s->rows * s->vectors;
    val sums[STREAM_ROWS * MAX_VECTORS];
    phase(p, "reduce and store");
    for (unsigned i = 0; i < count; i++)
        sums[i] = get(p, s->sums[i]);
    gemv_store_turn(p, g, row, s->rows, s->vectors, block_sum_spread(p, sums, count, 1));
}

/* All warps of a block go through the passes of a turn: those that it has no rows for take the last
 * ones again, and store nothing. */
static void multiply_in_passes(ptx *p, const instance *in, const gemv_operands *g, stream *s)
{
    unsigned rows = s->rows, of_block = (unsigned)in->num_warps * rows;
    uint32_t last = (uint32_t)(in->shape.n - 1) / rows * rows;
    PTX_FOR (p, first, mul(p, ctaid_x(p), of_block), g->n, mul(p, nctaid_x(p), of_block)) {
        place addresses[STREAM_ROWS];
        val row = mad(p, warp_id(p), rows, first);
        stream_rows_of_turn(p, stream_rows_share_pointers(in), g, min(p, row, imm(U32, last)), rows,
                            addresses);
        stream_add(p, s, addresses);
        PTX_IF (p, lt(p, row, g->n))
            finish_turn(p, g, s, row);
    }
}

static void build_gemv(ptx *p, const instance *in)
{
    unsigned rows = (unsigned)in->rows_per_warp;
    ptx_max_registers(p, stream_registers(in));
    phase(p, "stage x");
    gemv_operands g = gemv_parameters(p, in);
    val first = mul(p, stream_warp(p, ctaid_x(p)), rows), stride = mul(p, stream_warps(p), rows);
    stream_memory memory = stream_memory_new(p, in, (unsigned)stream_chunks(in));
    stream s = stream_begin(p, in, &g, rows, &memory);
    g.factors = memory.factors;
    if (stream_passes(in) > 1) {
        multiply_in_passes(p, in, &g, &s);
        return;
    }
    PTX_FOR (p, row, first, g.n, stride) {
        place addresses[STREAM_ROWS];
        stream_rows_of_turn(p, stream_rows_share_pointers(in), &g, row, rows, addresses);
        stream_add(p, &s, addresses);
        finish_turn(p, &g, &s, row);
    }
}

/* The rows of Q, K and V stand one behind the other in groups of what a block takes at once, and
 * the blocks take groups in turn. So a block mostly has rows of one matrix alone: only for those
 * that it has it stages X.
 *
 * The groups of a matrix, and those ahead of them: */
static int64_t groups_of(const instance *in, unsigned matrix)
{
    instance one = instance_matrix(in, matrix);
    int64_t rows = in->num_warps * in->rows_per_warp;
    return (one.shape.n + rows - 1) / rows;
}

static int64_t groups_ahead(const instance *in, unsigned matrix)
{
    return matrix ? groups_ahead(in, matrix - 1) + groups_of(in, matrix - 1) : 0;
}

/* The block's first group behind so many others, counted from there. */
static val first_group(ptx *p, int64_t ahead)
{
    val blocks = nctaid_x(p), block = ctaid_x(p);
    if (!ahead)
        return block;
    val into_turn = rem(p, imm(U32, ahead), blocks);
    return rem(p, add(p, block, sub(p, blocks, into_turn)), blocks);
}

static int64_t block_of_row(const instance *in, int64_t row, int64_t blocks)
{
    unsigned matrix = 0;
    for (int64_t n = in->shape.n; row >= n; n = instance_matrix(in, ++matrix).shape.n)
        row -= n;
    return (groups_ahead(in, matrix) + row / (in->num_warps * in->rows_per_warp)) % blocks;
}

/* What is chosen for a group where it is one of a later matrix. */
static void choose(ptx *p, val later, val *chosen, val of_later)
{
    if (of_later.kind)
        *chosen = select(p, later, of_later, *chosen);
}

/* The matrix that a group of matrices from one on is of, and the group's number in it. */
static gemv_operands matrix_of_group(ptx *p, const instance *in, const gemv_operands *of,
                                     unsigned from, unsigned to, val *group)
{
    gemv_operands g = of[from];
    val number = *group;
    for (unsigned i = from + 1; i < to; i++) {
        int64_t ahead = groups_ahead(in, i) - groups_ahead(in, from);
        val later = ge(p, number, ahead);
        choose(p, later, &g.w, of[i].w);
        choose(p, later, &g.bias, of[i].bias);
        choose(p, later, &g.before, of[i].before);
        choose(p, later, &g.n, of[i].n);
        choose(p, later, group, sub(p, number, ahead));
    }
    return g;
}

/* Matrices of one format, neighbours, by one stream. */
static void multiply_matrices(ptx *p, const instance *in, const instance *matrices, unsigned from,
                              unsigned to, const stream_memory *memory)
{
    unsigned rows = (unsigned)in->rows_per_warp;
    bool alike = true, whole = true;
    gemv_operands of[QKV_MATRICES];
    for (unsigned i = from; i < to; i++) {
        of[i] = gemv_of_qkv(p, in, &matrices[i], i);
        of[i].factors = memory->factors;
        alike = alike && stream_rows_share_pointers(&matrices[i]);
        whole = whole && matrices[i].shape.n % rows == 0;
    }
    int64_t ahead = groups_ahead(in, from), groups = groups_ahead(in, to) - ahead;
    stream s = stream_begin(p, &matrices[from], &of[from], rows, memory);
    PTX_FOR (p, first, first_group(p, ahead), groups, nctaid_x(p)) {
        place addresses[STREAM_ROWS];
        val group = first;
        gemv_operands g = matrix_of_group(p, in, of, from, to, &group);
        g.multiple = whole ? rows : 1;
        val row = named(p, "row", mul(p, stream_warp(p, group), rows));
        PTX_IF (p, lt(p, row, g.n)) {
            stream_rows_of_turn(p, alike, &g, row, rows, addresses);
            stream_add(p, &s, addresses);
            finish_turn(p, &g, &s, row);
        }
    }
}

static void build_qkv(ptx *p, const instance *in)
{
    instance matrices[QKV_MATRICES];
    unsigned count = matrices_of(in), registers = 0;
    for (unsigned i = 0; i < count; i++) {
        matrices[i] = instance_matrix(in, i);
        unsigned needed = stream_registers(&matrices[i]);
        registers = needed > registers ? needed : registers;
    }
    ptx_max_registers(p, registers);
    stream_memory memory = stream_memory_new(p, in, (unsigned)most_chunks(in));
    for (unsigned from = 0, to; from < count; from = to) { /* neighbours of one format */
        for (to = from + 1; to < count && in->weights_of[to] == in->weights_of[from];)
            to++;
        int64_t ahead = groups_ahead(in, from), groups = groups_ahead(in, to) - ahead;
        PTX_IF (p, lt(p, first_group(p, ahead), groups)) {
            phase(p, "stage x");
            if (from)
                barrier(p); /* behind the last use of what is staged */
            multiply_matrices(p, in, matrices, from, to, &memory);
        }
    }
}

static void build_gate_up(ptx *p, const instance *in)
{
    stream_pair pair = { .matrices = { instance_matrix(in, 0), instance_matrix(in, 1) } };
    ptx_max_registers(p, stream_pair_registers(in, 0));
    phase(p, "stage x");
    pair.g[0] = gemv_of(p, &pair.matrices[0], "y", "wg", "x");
    pair.g[1] = gemv_of(p, &pair.matrices[1], "y", "wu", "x");
    val first = stream_warp(p, ctaid_x(p)), stride = stream_warps(p);
    stream_memory memory = stream_memory_new(p, &pair.matrices[0], (unsigned)most_chunks(in));
    stream_pair_multiply(p, &pair, &memory, first, stride);
}

static int64_t step_bytes(const instance *in)
{
    return stream_step_bytes(instance_weights(in));
}

static int64_t table_bytes(const instance *in)
{
    return stream_table_bytes(instance_weights(in));
}

static int64_t staged_bytes(const instance *in)
{
    return is_qkv(in) ? most_of(in, stream_staged_bytes) : stream_pair_staged_bytes(in, 0);
}

static const derived_size tile_sizes[] = {
    GEMV_VECTORS,
    { "pass_steps", stream_pass_steps,
      "steps of x that are staged at once, each of 1024 or 2048 values, or 512 bytes of floats" },
    { "step_bytes", step_bytes, "1.25 to 1.625 a value, of floats 4: bytes that they take" },
    { "table_bytes", table_bytes, "of formats with a grid: bytes of the tables ahead of them" },
    { "chunks", stream_chunks, "partial sums of squares of a vector" },
    { NULL, NULL, NULL },
};

static const derived_size sizes_of_several[] = {
    GEMV_VECTORS,
    { "chunks", most_chunks, "partial sums of squares of a vector" },
    { "staged", staged_bytes, "bytes of x as the matrices need it, with the tables ahead of it" },
    { NULL, NULL, NULL },
};

const family stream_gemv = {
    .name = "stream_gemv",
    .summary = "streaming GEMV of f32 x, which is rounded to 8 bits for quantized weights",
    .computes = "y[m,n] = x[m,k] W[n,k]^T",
    .op = OP_GEMV,
    .activations = FORMAT_F32,
    .quantizes = true,
    .same_bits = true,
    .preference = 20,
    .keys =
        (const key[]){ KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEY_M(1), KEY_ROWS, KEY_STREAM_WARPS,
                       KEY_ROWS_PER_WARP(2), KEY_PASSES, KEYS_AROUND_PRODUCT, KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*n", 4), WEIGHTS(w, "n*k"), IN(F32, x, "m*k", 16),
                               PARAMS_AROUND_PRODUCT, PARAM_END },
    .launch = { .block = "32*num_warps",
                .grid = { "min(ceil_div(n, num_warps*rows_per_warp), sm_count*2)", GEMV_GRID_Y },
                .shared = STREAM_NORM_SHARED,
                .dynamic_shared = "table_bytes+vectors*pass_steps*step_bytes",
                .sizes = tile_sizes,
                .rows = "num_warps*rows_per_warp",
                .registers = 160 },
    .check = check_product,
    .build = build_gemv,
    .reference = ref_gemv,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};

const family stream_qkv = {
    .name = "stream_qkv",
    .summary = "streaming Q, K and V of one f32 x, by one kernel: x rounded as by stream_gemv",
    .computes = QKV_COMPUTES,
    .op = OP_QKV,
    .activations = FORMAT_F32,
    .quantizes = true,
    .same_bits = true,
    .preference = 20,
    .each_matrix = "stream_gemv",
    .keys = (const key[]){ KEYS_OF_QKV, KEY_STREAM_WARPS, KEY_ROWS_PER_WARP(2), KEYS_AROUND_QKV,
                           KEY_END },
    .params = (const param[]){ PARAMS_OF_QKV, PARAM_END },
    .launch = { .block = "32*num_warps",
                .grid = { "min(ceil_div(n, num_warps*rows_per_warp)"
                          "+ceil_div(n_kv, num_warps*rows_per_warp)"
                          "+ceil_div(n_v, num_warps*rows_per_warp), sm_count*2)",
                          GEMV_GRID_Y },
                .shared = STREAM_NORM_SHARED,
                .dynamic_shared = "staged",
                .sizes = sizes_of_several,
                .rows = "num_warps*rows_per_warp",
                .block_of_row = block_of_row,
                .registers = 160 },
    .build = build_qkv,
    .reference = ref_qkv,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};

const family stream_gate_up = {
    .name = "stream_gate_up",
    .summary = "streaming gate and up of f32 x, with the activation: x rounded as by stream_gemv",
    .computes = GATE_UP_COMPUTES,
    .op = OP_GATE_UP_SWIGLU,
    .activations = FORMAT_F32,
    .quantizes = true,
    .same_bits = true,
    .preference = 20,
    .each_matrix = "stream_gemv",
    .keys = (const key[]){ KEYS_OF_GATE_UP, KEY_STREAM_WARPS, KEYS_AROUND_GATE_UP, KEY_END },
    .params = (const param[]){ PARAMS_OF_GATE_UP, PARAM_END },
    .launch = { .block = "32*num_warps",
                .grid = { "min(ceil_div(n, num_warps), sm_count*2)", GEMV_GRID_Y },
                .shared = STREAM_NORM_SHARED,
                .dynamic_shared = "staged",
                .sizes = sizes_of_several,
                .rows = "num_warps",
                .registers = 160 },
    .build = build_gate_up,
    .reference = ref_gate_up_swiglu,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};

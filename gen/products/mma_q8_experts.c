/* mma_q8_expert_gate_up and mma_q8_expert_down: the products of mma_q8.h with routed experts.
 *
 * The grid's y has a block per entry of the list (products/experts.h), and its x strides over groups
 * of rows of the expert's matrix. A block stages up to `at_once` of the rows of X that use the
 * expert, and tiles of eight rows that it does not have are skipped. For an expert with more rows it
 * repeats. A row's results do not depend on the rows beside it, so they have the same bits for any m,
 * tile and grid. For an id out of range no weights are read, and the results are NaN. */
#include "gen/products/experts.h"
#include "gen/products/mma_q8.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

static instance with_rows(const instance *in, int64_t rows)
{
    instance of = *in;
    of.shape.m = rows;
    return of;
}

static mma_q8_form form_of(const instance *block)
{
    bool down = block->family->op == OP_EXPERT_PRODUCT;
    return mma_q8_form_of(block, !down && !block->options.ungated);
}

/* Returns an expert's rows per block at a time. Without a key: twice those of an even distribution,
 * in whole tiles that fit every GPU. */
static int64_t rows_at_once(const instance *in)
{
    enum { MOST = 32, ROOM = 96 * 1024 };
    const problem_shape *s = &in->shape;
    int64_t even = 2 * s->m * s->experts_used / s->experts;
    int64_t rows = (even + MMA_COLUMNS - 1) / MMA_COLUMNS * MMA_COLUMNS;
    rows = in->tile_rows ? in->tile_rows : rows < MMA_COLUMNS ? MMA_COLUMNS : rows;
    rows = rows > MOST ? MOST : rows;
    for (instance of = with_rows(in, rows); !in->tile_rows && rows > MMA_COLUMNS;) {
        of.passes = 0;
        if (mma_q8_bytes(&of, form_of(&of)) <= ROOM)
            break;
        of.shape.m = rows -= MMA_COLUMNS;
    }
    return rows < s->m ? rows : s->m;
}

static instance of_block(const instance *in)
{
    return with_rows(in, rows_at_once(in));
}

/* Returns the matrices of expert `id`, for a block's rows. */
static mma_q8_run run_of(ptx *p, const instance *block, val id)
{
    const problem_options *o = &block->options;
    bool down = block->family->op == OP_EXPERT_PRODUCT;
    mma_q8_form form = form_of(block);
    int64_t rows = mma_q8_rows(form);
    mma_q8_run run = { .in = block,
                       .form = form,
                       .of = { .count = 1, .groups = (block->shape.n + rows - 1) / rows },
                       .first_bias = mul(p, id, (unsigned)block->shape.n),
                       .gated = !down && !o->ungated };
    run.g[0] =
        down ? gemv_parameters(p, block) : gemv_of(p, block, "y", o->ungated ? "wu" : "wg", "x");
    if (run.gated)
        run.g[1] = gemv_of(p, block, "y", "wu", "x");
    if (o->ungated) {
        run.g[0].epilogue = 1 + o->activation;
        run.g[0].bias = o->bias ? parameter(p, "bu") : (val){ 0 };
    }
    if (run.g[0].bias.kind)
        run.g[0].bias = mad_wide(p, run.first_bias, F32_BYTES, run.g[0].bias);
    for (unsigned i = 0; i < (run.gated ? 2 : 1); i++)
        run.g[i].w = expert_plane(p, block, run.g[i].w, id, run.g[i].row_bytes);
    return run;
}

static void store_nans(ptx *p, const instance *in, const gemv_chosen *rows)
{
    const gemv_operands g = { .y = parameter(p, "y"), .chosen = rows };
    val first = mad(p, ctaid_x(p), ptx_block(p), tid_x(p));
    PTX_FOR (p, vector, 0, rows->count, 1) {
        val stored, y = gemv_results(p, &g, vector, &stored);
        PTX_FOR (p, row, first, in->shape.n, mul(p, nctaid_x(p), ptx_block(p)))
            st_global(p, F32, mad_wide(p, row, F32_BYTES, y), 0, expert_nan(p));
    }
}

static void build(ptx *p, const instance *in)
{
    const instance block = of_block(in);
    unsigned at_once = (unsigned)block.shape.m;
    val factors = shared_array(p, "x_factors", F32, (at_once + 3) / 4 * 4);
    val shared = shared_dynamic(p, "tiles", U32);
    val list = parameter(p, "list"), in_use = lt(p, ctaid_y(p), experts_in_use(p, list));
    ret_if(p, bit_not(p, in_use));
    expert_entry e = expert_entry_at(p, in, list, ctaid_y(p));
    gemv_chosen rows = experts_rows(in, &e);
    PTX_IF (p, expert_exists(p, in, e.id)) {
        mma_q8_run run = run_of(p, &block, e.id);
        run.factors = factors;
        run.g[0].chosen = run.g[1].chosen = &rows;
        PTX_FOR (p, first, 0, e.count, at_once) {
            rows.words = mad_wide(p, first, sizeof(uint32_t), e.choices);
            rows.count = min(p, sub(p, e.count, first), at_once);
            barrier(p); /* after the last use of shared memory */
            phase(p, "stage x");
            mma_q8_load_factors(p, &run.g[0], at_once, factors);
            mma_q8_multiply_run(p, &run, ctaid_x(p), shared);
        }
    }
    PTX_ELSE (p) {
        rows = experts_rows(in, &e);
        store_nans(p, in, &rows);
    }
}

static int64_t tile_rows(const instance *in)
{
    return (rows_at_once(in) + MMA_COLUMNS - 1) / MMA_COLUMNS * MMA_COLUMNS;
}

static int64_t staged(const instance *in)
{
    const instance block = of_block(in);
    return mma_q8_bytes(&block, form_of(&block));
}

static int64_t warps(const instance *in)
{
    const instance block = of_block(in);
    return form_of(&block).warps;
}

static int64_t group_rows(const instance *in)
{
    const instance block = of_block(in);
    return mma_q8_rows(form_of(&block));
}

#define OF_EXPERTS(of_op, computed_by)                                                           \
    .op = of_op, .whole_lines = true, .same_bits = true, .activations = FORMAT_Q8_F32, .sm = 80, \
    .block_rows = mma_q8_block_rows, .build = build, .reference = computed_by,                   \
    .tolerance = REF_QUANTIZING_TOLERANCE,                                                       \
    .launch = { .block = "32*warps",                                                             \
                .grid = { "min(ceil_div(n, group_rows*warps/4), ceil_div(2*sm_count, "           \
                          "listed))",                                                            \
                          "listed" },                                                            \
                .shared = "16*ceil_div(at_once, 4)",                                             \
                .dynamic_shared = "staged",                                                      \
                .sizes = SIZES(                                                                  \
                    { "listed", experts_listed, "maximum number of experts in use" },            \
                    { "at_once", rows_at_once, "rows of an expert per block at a time" },        \
                    { "tile_rows", tile_rows, "the same in whole tiles of eight" },              \
                    { "warps", warps, "warps per block: 8, or 4 for formats with large tiles" }, \
                    { "group_rows", group_rows,                                                  \
                      "rows of W per team at a time: 16, or 32 with fragments" },                \
                    { "staged", staged, "bytes of staged x, of tiles of W and of sums" }),       \
                .rows = "group_rows",                                                            \
                .teams = "warps/4",                                                              \
                .dealt = true,                                                                   \
                .overlap = WAITS_FIRST,                                                          \
                .registers = 255 },                                                              \
    .each_matrix = "mma_q8", .check = check_experts, .fit = ref_fit_experts

const family mma_q8_expert_gate_up = {
    .name = "mma_q8_expert_gate_up",
    .summary = "gate and up with activation of routed experts on int8 tensor cores, as mma_q8",
    .computes = "f[m,slot,n] = activation(x[m,k] Wg[expert[m,slot]]^T) * (x[m,k] Wu[...]^T)",
    OF_EXPERTS(OP_EXPERT_GATE_UP, ref_expert_gate_up),
    .counted_as = "mma_q8_gate_up",
    .keys = KEYS(KEYS_OF_EXPERTS(INTEGER_FORMATS, 8, 32, KEY_PASSES), KEYS_OF_GATE, KEY_UNGATED),
    .params = PARAMS(PARAMS_OF_EXPERT_PAIRS(Q8_ROWS("m"))),
};

const family mma_q8_expert_down = {
    .name = "mma_q8_expert_down",
    .summary = "products with routed experts on int8 tensor cores, one per choice, as mma_q8",
    .computes = "y[m,slot,n] = x[m,slot,k] W[expert[m,slot]]^T",
    OF_EXPERTS(OP_EXPERT_PRODUCT, ref_expert_product),
    .keys = KEYS(KEYS_OF_EXPERTS(INTEGER_FORMATS, 8, 32, KEY_PASSES)),
    .params = PARAMS(PARAMS_OF_EXPERT_PRODUCTS(Q8_ROWS("m*experts_used"))),
};

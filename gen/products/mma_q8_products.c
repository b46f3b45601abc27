/* mma_q8, mma_q8_qkv and mma_q8_gate_up: see mma_q8.h. X comes from q8_rows.
 *
 * The grid's x is persistent; teams of warps stride over groups of rows of W: block b of B has
 * groups b, b + B, ... and its teams take turns. The grid's y has a block per `vectors` rows of X.
 * Groups of gate and of up alternate: a thread keeps its elements of gate until up follows. */
#include <limits.h>

#include "gen/common/next.h"
#include "gen/products/mma_q8.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

static unsigned matrices_of(const instance *in)
{
    return in->family->op == OP_QKV ? gemv_matrices_of_qkv(in) : 1;
}

static instance matrix(const instance *in, unsigned number)
{
    return in->family->op == OP_QKV ? instance_matrix(in, number) : *in;
}

/* Returns the form that suits all matrices. */
static mma_q8_form form_of(const instance *in)
{
    instance first = matrix(in, 0);
    mma_q8_form form = mma_q8_form_of(&first, in->family->op == OP_GATE_UP_SWIGLU);
    for (unsigned i = 1; i < matrices_of(in); i++) {
        instance one = matrix(in, i);
        mma_q8_form own = mma_q8_form_of(&one, false);
        form.warps = own.warps < form.warps ? own.warps : form.warps;
        form.sets = own.sets < form.sets ? own.sets : form.sets;
    }
    return form;
}

static int64_t warps_of(const instance *in)
{
    return form_of(in).warps;
}

static int64_t rows_of(const instance *in)
{
    return mma_q8_rows(form_of(in));
}

static int64_t teams_of(const instance *in)
{
    return mma_q8_teams(in, form_of(in));
}

static int64_t bytes_of(const instance *in)
{
    int64_t most = 0;
    mma_q8_form form = form_of(in);
    for (unsigned i = 0; i < matrices_of(in); i++) {
        instance one = matrix(in, i);
        int64_t bytes = mma_q8_bytes(&one, form);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Returns the maximum of registers. Q4_K's fragments of few rows leave room for 16 warps per SM. */
static int64_t registers_of(const instance *in)
{
    bool few = in->shape.m <= MMA_COLUMNS && form_of(in).sets == 1;
    for (unsigned i = 0; i < matrices_of(in); i++) {
        instance one = matrix(in, i);
        few &= instance_weights(&one) == FORMAT_Q4_K;
    }
    return few ? 128 : in->family->launch.registers;
}

/* A team's group of rows, and with gate and up which of both. */
typedef struct mma_group {
    const mma_q8_run *run;
    val group, is_up;
    val exists; /* predicate */
} mma_group;

static gemv_operands matrix_of(ptx *p, const mma_group *of, int64_t rows, val *first)
{
    const mma_q8_run *run = of->run;
    val number = of->group;
    gemv_operands g = run->g[0];
    if (run->gated)
        g.w = select(p, of->is_up, run->g[1].w, g.w);
    else
        g = gemv_matrix_of_run(p, &run->of, run->g, &number);
    g.factors = run->factors;
    *first = mul(p, number, (unsigned)rows);
    return g;
}

static void set_rows(ptx *p, mma_q8_block *m, const void *context)
{
    const mma_group *of = context;
    val group;
    gemv_operands both[2] = { matrix_of(p, of, 1, &group), of->run->g[1] };
    mma_q8_set_rows(p, m, both, group);
}

/* Stores activation(gate) * up of the thread's results. */
static void store_gated(ptx *p, const mma_q8_block *m, const mma_group *of,
                        const var kept[MMA_MOST_OWN], const val sums[MMA_MOST_OWN])
{
    const instance *in = of->run->in;
    val first, first_bias = of->run->first_bias;
    gemv_operands g = matrix_of(p, of, mma_q8_rows(of->run->form), &first);
    for (unsigned i = 0; i < mma_q8_own(m); i++) {
        val result = mma_q8_result(p, m, i);
        val row = add(p, first, rem(p, result, MMA_ROWS)), vector = div(p, result, MMA_ROWS);
        PTX_IF (p, bit_and(p, lt(p, row, g.n), lt(p, vector, m->s.vectors))) {
            val factor = ld_shared(p, F32, mad(p, vector, F32_BYTES, g.factors), 0);
            val gate = mul(p, get(p, kept[i]), factor), up = mul(p, sums[i], factor);
            gemv_biases biases =
                gemv_biases_of_row(p, in, first_bias.kind ? add(p, row, first_bias) : row);
            gemv_add_biases(p, &biases, &gate, &up);
            val stored, y = gemv_results(p, &g, vector, &stored);
            PTX_IF (p, stored)
                st_global(p, F32, mad_wide(p, row, F32_BYTES, y), 0,
                          gated(p, &in->options, gate, up));
        }
    }
}

/* Adds the parts' sums of a set and stores the results, or keeps gate's: a lone warp has those of a
 * pair. */
static void finish_set(ptx *p, mma_q8_block *m, const mma_group *of, unsigned set,
                       var kept[MMA_MOST_OWN])
{
    val sums[MMA_MOST_OWN], first;
    bool has_gate = m->pair && m->parts == 1;
    mma_q8_sum(p, m, set, sums);
    if (of->run->gated) {
        PTX_IF (p, m->pair ? imm(PRED, set) : of->is_up)
            store_gated(p, m, of, has_gate ? m->sums[0][0] : kept, sums);
        for (unsigned i = 0; i < mma_q8_own(m) && !has_gate && !(m->pair && set); i++)
            assign(p, kept[i], sums[i]);
        return;
    }
    gemv_operands g = matrix_of(p, of, mma_q8_rows(of->run->form), &first);
    first = add(p, first, set * MMA_ROWS);
    bool full = gemv_loops_are_full(&g, m->sets * MMA_ROWS);
    PTX_IF (p, full ? imm(PRED, 1) : lt(p, first, g.n)) /* the matrix has rows of the set */
        for (unsigned i = 0; i < mma_q8_own(m); i++)
            gemv_store_rows(p, &g, first, MMA_ROWS, m->s.vectors,
                            (spread_sums){ mma_q8_result(p, m, i), sums[i], 1 });
}

static void multiply_turns(ptx *p, mma_q8_block *m, val first, val end, const mma_q8_next *next)
{
    ptx_loop_work(p, m->sets * MMA_ROWS * MMA_STEP / WARP, "weights");
    PTX_FOR (p, turn, first, end, 1)
        mma_q8_add(p, m, turn, next);
}

/* Multiplies one group, whose first weights are loaded, and loads those of the next. */
static void multiply_group(ptx *p, mma_q8_block *m, const mma_group *of, const mma_group *next,
                           var kept[MMA_MOST_OWN])
{
    enum { FEW_TURNS = 3 };
    const mma_q8_next after = { set_rows, next };
    if (m->s.passes == 1) {
        /* ptxas would unroll few turns of a large tile, and spill. */
        bool loops = m->parts == 1 && m->turns <= FEW_TURNS;
        val end = imm(U32, m->turns);
        if (loops)
            end = add(p, shr(p, ctaid_x(p), 31), end); /* the index is below 2^31 */
        multiply_turns(p, m, imm(U32, 0), end, &after);
    } else {
        PTX_FOR (p, first, 0, m->turns, m->pass_turns) {
            stream_stage_pass(p, &m->s, div(p, first, m->pass_turns));
            m->first_turn = first;
            multiply_turns(p, m, first, min(p, add(p, first, m->pass_turns), m->turns), &after);
        }
    }
    phase(p, "add the parts and store");
    for (unsigned set = 0; set < m->sets; set++) {
        mma_q8_store_sums(p, m, set);
        PTX_IF (p, of->exists)
            finish_set(p, m, of, set, kept);
        mma_q8_end_set(p, m, set);
    }
}

void mma_q8_multiply_run(ptx *p, const mma_q8_run *run, val first, val shared)
{
    const instance *in = run->in;
    instance of_first = matrix(in, run->of.from);
    mma_q8_block m;
    mma_q8_begin(p, &of_first, run->form, &run->g[0], shared, &m);
    for (unsigned i = 1; i < run->of.count; i++)
        m.alike &= instance_matrix(in, run->of.from + i).shape.n % mma_q8_rows(run->form) == 0;
    /* With passes all teams of a block take as many turns: x is staged by all of them. */
    bool together = m.s.passes > 1;
    unsigned teams = ptx_block(p) / WARP / m.parts, last = (unsigned)run->of.groups - 1;
    val own = mul(p, m.team, nctaid_x(p)), stride = mul(p, nctaid_x(p), teams);
    val begin = add(p, first, own);
    mma_group of = { run, min(p, begin, last), imm(PRED, 0), imm(PRED, 1) }, next = of;
    var kept[MMA_MOST_OWN];
    for (unsigned i = 0; i < mma_q8_own(&m) && run->gated; i++)
        kept[i] = var_f32(p, 0.0f);
    set_rows(p, &m, &of);
    mma_q8_load_first(p, &m);
    PTX_FOR (p, group, together ? first : begin, run->of.groups, stride) {
        of.group = together ? min(p, add(p, group, own), last) : group;
        if (together)
            of.exists = le(p, add(p, group, own), last);
        val later = min(p, add(p, of.group, stride), last);
        if (run->gated && !m.pair) {
            PTX_FOR (p, is_up, 0, 2, 1) {
                of.is_up = ne(p, is_up, 0);
                next.group = select(p, of.is_up, later, of.group);
                next.is_up = bit_not(p, of.is_up);
                multiply_group(p, &m, &of, &next, kept);
            }
        } else {
            next.group = later;
            multiply_group(p, &m, &of, &next, kept);
        }
    }
    if (m.s.as_stored)
        cp_async_wait_all(p);
}

void mma_q8_load_factors(ptx *p, const gemv_operands *g, unsigned vectors, val factors)
{
    PTX_IF (p, lt(p, tid_x(p), vectors)) {
        val row = gemv_vector_read(p, g, tid_x(p));
        val factor = ld_const(p, F32, mad_wide(p, row, F32_BYTES, parameter(p, "factors")), 0);
        st_shared(p, F32, mad(p, tid_x(p), F32_BYTES, factors), 0, factor);
    }
}

/* Returns the runs of an instance's matrices, and sets their operands. */
static unsigned runs_of(ptx *p, const instance *in, mma_q8_run runs[QKV_MATRICES])
{
    mma_q8_form form = form_of(in);
    int64_t rows = mma_q8_rows(form);
    gemv_run of[QKV_MATRICES] = { { .count = 1, .groups = (in->shape.n + rows - 1) / rows } };
    unsigned count = in->family->op == OP_QKV ? gemv_runs_of_qkv(in, rows, of) : 1;
    for (unsigned r = 0; r < count; r++) {
        runs[r] = (mma_q8_run){
            .in = in, .form = form, .of = of[r], .gated = in->family->op == OP_GATE_UP_SWIGLU
        };
        if (in->family->op == OP_QKV)
            gemv_operands_of_run(p, in, &of[r], runs[r].g);
        else if (!runs[r].gated)
            runs[r].g[0] = gemv_parameters(p, in);
    }
    if (runs[0].gated) {
        runs[0].g[0] = gemv_of(p, in, "y", "wg", "x");
        runs[0].g[1] = gemv_of(p, in, "y", "wu", "x");
    }
    return count;
}

/* Prefetches the first weights of the first team's group into L2, while x is waited for; each warp has
 * some rows. On an H200, more of it cost more than it gained. */
static void prefetch_first(ptx *p, const mma_q8_run *run)
{
    unsigned rows = MMA_ROWS / run->form.warps;
    val group = gemv_first_group(p, run->of.before), first;
    PTX_IF (p, lt(p, group, run->of.groups)) {
        const mma_group of = { run, group, imm(PRED, 0), imm(PRED, 1) };
        gemv_operands g = matrix_of(p, &of, mma_q8_rows(run->form), &first);
        val own = mad(p, warp_id(p), rows, first);
        PTX_IF (p, lt(p, own, g.n))
            stream_prefetch_rows(p, &g, own, rows, rows);
    }
}

static void build(ptx *p, const instance *in)
{
    mma_q8_run runs[QKV_MATRICES];
    unsigned vectors = (unsigned)gemv_vectors(in);
    val factors = shared_array(p, "x_factors", F32, (vectors + 3) / 4 * 4);
    val shared = shared_dynamic(p, "tiles", U32);
    unsigned count = runs_of(p, in, runs);
    /* Large tiles: blocks of eight warps fit 255 registers anyway, and with a limit ptxas spills
     * for sm_120. */
    bool large = vectors > MMA_FEW_ROWS / 2 || (in->shape.m > MMA_FEW_ROWS && form_of(in).sets > 1);
    bool limited = !large || warps_of(in) < 8;
    ptx_max_registers(p, limited ? (unsigned)registers_of(in) : 0);
    phase(p, "prefetch the first weights");
    for (unsigned r = 0; r < count; r++)
        prefetch_first(p, &runs[r]);
    fetch_next_early(p, in);
    wait_for_launches(p);
    phase(p, "stage x");
    mma_q8_load_factors(p, &runs[0].g[0], vectors, factors);
    for (unsigned r = 0; r < count; r++) {
        val first = gemv_first_group(p, runs[r].of.before);
        runs[r].factors = factors;
        PTX_IF (p, lt(p, first, runs[r].of.groups)) {
            if (r)
                barrier(p); /* after the last use of shared memory */
            mma_q8_multiply_run(p, &runs[r], first, shared);
        }
    }
    fetch_next_late(p, in);
}

static int64_t block_of_row(const instance *in, int64_t row, int64_t blocks)
{
    return gemv_block_of_row(in, row, blocks, rows_of(in));
}

/* Returns blocks per SM: 16 warps, or 12 with more registers, if their shared memory fits. */
static int64_t blocks_of_sm(const instance *in)
{
    enum { SHARED_OF_SM = 227 * 1024, OF_BLOCK = 1024 };
    int64_t by_warps = (registers_of(in) <= 128 ? 16 : 12) / warps_of(in);
    int64_t by_shared = SHARED_OF_SM / (bytes_of(in) + OF_BLOCK);
    return by_shared < 1 ? 1 : by_shared < by_warps ? by_shared : by_warps;
}

#define KEYS_OF_ROWS                                              \
    KEY_NUMBER("m", "rows of X and Y", shape.m, 1, 512, .def = 8, \
               .counted_with = KEY_FIELD(rows_mode), .tag = "m"), \
        KEY_ROWS, KEY_PASSES
#define GROUPS(n) "ceil_div(" n ", group_rows)"
#define OF_ROWS(groups, of_op, computed_by)                                                      \
    .op = of_op, .whole_lines = true, .same_bits = true, .reference = computed_by,               \
    .tolerance = REF_QUANTIZING_TOLERANCE, .activations = FORMAT_Q8_F32, .sm = 80,               \
    .block_rows = mma_q8_block_rows, .build = build,                                             \
    .launch = { .block = "32*warps",                                                             \
                .grid = { "min(ceil_div(" groups ", teams), sm_count*blocks_sm)", GEMV_GRID_Y }, \
                .shared = "16*ceil_div(vectors, 4)",                                             \
                .dynamic_shared = "staged",                                                      \
                .sizes = SIZES(                                                                  \
                    GEMV_VECTORS,                                                                \
                    { "warps", warps_of,                                                         \
                      "warps per block: 8, or 4 for formats with large tiles" },                 \
                    { "group_rows", rows_of,                                                     \
                      "rows of W per team at a time: 16, or 32 with fragments" },                \
                    { "teams", teams_of,                                                         \
                      "teams of warps that share rows of W: of four, or with m > 64 of one" },   \
                    { "staged", bytes_of, "bytes of staged x, of tiles of W and of sums" },      \
                    { "blocks_sm", blocks_of_sm, "resident blocks per SM" }),                    \
                .rows = "group_rows",                                                            \
                .teams = "teams",                                                                \
                .block_of_row = of_op == OP_QKV ? block_of_row : NULL,                           \
                .overlap = WAITS_ITSELF,                                                         \
                .registers = 255 },                                                              \
    .check = check_product

const family mma_q8 = {
    .name = "mma_q8",
    .summary =
        "products on int8 tensor cores of 8-bit x from q8_rows, with the same bits for any m",
    .computes = "y[m,n] = factors[m] x[m,k] W[n,k]^T",
    OF_ROWS(GROUPS("n"), OP_GEMV, ref_gemv),
    .keys = KEYS(KEYS_OF_PRODUCT(INTEGER_FORMATS), KEYS_OF_ROWS, KEYS_BEHIND_PRODUCT, KEY_NEXT),
    .params = PARAMS(PARAMS_OF_PRODUCT(Q8_ROWS("m")), NEXT_WEIGHTS, NUMBERS_OF_EPILOGUE),
};

const family mma_q8_qkv = {
    .name = "mma_q8_qkv",
    .summary = "Q, K and V on int8 tensor cores in one kernel, any formats, as mma_q8",
    .computes = QKV_COMPUTES,
    OF_ROWS(GROUPS("n") "+" GROUPS("n_kv") "+" GROUPS("n_v"), OP_QKV, ref_qkv),
    .each_matrix = "mma_q8",
    .keys = KEYS(KEYS_OF_QKV(INTEGER_FORMATS), KEYS_OF_ROWS, KEY_QKV_BIASES, KEY_NEXT),
    .params = PARAMS(PARAMS_OF_QKV(Q8_ROWS("m")), NEXT_WEIGHTS),
};

const family mma_q8_gate_up = {
    .name = "mma_q8_gate_up",
    .summary = "gate and up with activation on int8 tensor cores, as mma_q8",
    .computes = GATE_UP_COMPUTES,
    OF_ROWS(GROUPS("n"), OP_GATE_UP_SWIGLU, ref_gate_up_swiglu),
    .each_matrix = "mma_q8",
    .keys = KEYS(KEYS_OF_PRODUCT(INTEGER_FORMATS), KEYS_OF_ROWS, KEY_GATE_BIASES, KEYS_OF_GATE,
                 KEY_NEXT),
    .params = PARAMS(PARAMS_OF_GATE_UP_ALIKE(Q8_ROWS("m")), NEXT_WEIGHTS),
};

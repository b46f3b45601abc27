#include "gen/products/gemv.h"

#include "gen/common/functions.h"
#include "gen/products/product_keys.h"

const real_range product_scale_range = { .max = 1e6, .def_text = "1" };
const real_range product_softcap_range = { .max = 1e6, .def_text = "none" };

const char *check_product(const instance *in, arena *a, const char **blamed)
{
    static const double least = 1e-3;
    const problem_options *o = &in->options;
    if (o->softcap > 0 && o->softcap < least) {
        *blamed = "softcap";
        return arena_format(a, "softcap = %g is less than %g; use 0 for none", o->softcap, least);
    }
    *blamed = "limit";
    if (o->limit > 0 && o->activation != ACTIVATION_SILU)
        return arena_format(a, "limit = %g needs activation = silu, not %s; use 0 for none",
                            o->limit, activation_choices[o->activation].word);
    *blamed = "times";
    if (o->times && !o->epilogue)
        return "times = rows multiplies an activated product; add epilogue = gelu, or use none";
    *blamed = "epilogue";
    const char *also = o->residual ? "residual" : o->scale > 0 ? "scale" : "softcap";
    if (o->epilogue && (o->residual || o->scale > 0 || o->softcap > 0))
        return arena_format(a, "epilogue = %s does not combine with %s; use one of the two",
                            epilogue_choices[o->epilogue].word, also);
    return NULL;
}

static val dim(ptx *p, const instance *in, const char *name, int64_t built)
{
    return in->dims == DIMS_DYNAMIC ? named(p, name, parameter(p, name)) : imm(U32, built);
}

val dim_k(ptx *p, const instance *in)
{
    return dim(p, in, "k_dim", in->shape.k);
}

val dim_n(ptx *p, const instance *in)
{
    return dim(p, in, "n_dim", in->shape.n);
}

val dim_m(ptx *p, const instance *in)
{
    return dim(p, in, "m_dim", in->shape.m);
}

gemv_operands gemv_parameters(ptx *p, const instance *in)
{
    gemv_operands g = gemv_of(p, in, "y", "w", "x");
    if (in->options.scaled)
        g.factor = parameter(p, "w_scale");
    if (in->options.bias)
        g.bias = parameter(p, "bias");
    if (in->options.residual)
        g.residual = parameter(p, "residual");
    if (in->options.times)
        g.times = parameter(p, "times");
    g.epilogue = in->options.epilogue;
    g.scale = in->options.scale;
    g.softcap = in->options.softcap;
    return g;
}

gemv_operands gemv_of(ptx *p, const instance *in, const char *y, const char *w, const char *x)
{
    const format_info *weights = &formats[instance_weights(in)];
    gemv_operands g = {
        .y = parameter(p, y),
        .w = parameter(p, w),
        .x = parameter(p, x),
        .n = dim_n(p, in),
        .blocks = div(p, dim_k(p, in), weights->block_values),
        .x_bytes = (int64_t)format_bytes(in->family->activations, (uint64_t)in->shape.k),
    };
    g.row_bytes = mul(p, g.blocks, weights->block_bytes);
    unsigned vectors = (unsigned)gemv_vectors(in);
    if (in->rows_mode != ROWS_RUN_TIME && vectors == in->shape.m)
        return g;
    /* With a grid in y: rows past the last one are replaced by it. */
    const format_info *of_x = &formats[in->family->activations];
    g.m = in->rows_mode == ROWS_RUN_TIME ? named(p, "m_val", parameter(p, "m_val"))
                                         : imm(U32, in->shape.m);
    g.first = named(p, "first vector", mul(p, ctaid_y(p), vectors));
    val blocks = div(p, dim_k(p, in), of_x->block_values), last = sub(p, g.m, 1);
    for (unsigned v = 0; v < vectors && v < MAX_VECTORS; v++) {
        val row = min(p, add(p, g.first, v), last);
        g.offsets[v] = mul(p, mul_wide(p, row, blocks), of_x->block_bytes);
    }
    return g;
}

/* Returns the matrices of a pair that an instance lacks: gate. */
static unsigned missing_of_pair(const instance *in)
{
    return in->options.ungated ? 1 : 0;
}

instance gemv_first_of_pair(const instance *in, unsigned first)
{
    return instance_matrix(in, first + missing_of_pair(in));
}

gemv_pair gemv_pair_of(ptx *p, const instance *in, unsigned first)
{
    static const char *const weights[MAX_MATRICES] = { "wg", "wu", "wsg", "wsu" };
    gemv_pair pair = { .count = GEMV_PAIR - missing_of_pair(in) };
    first += missing_of_pair(in);
    for (unsigned i = 0; i < pair.count; i++) {
        pair.of[i] = instance_matrix(in, first + i);
        pair.g[i] = gemv_of(p, &pair.of[i], "y", weights[first + i], "x");
    }
    return pair;
}

unsigned gemv_matrices_of_qkv(const instance *in)
{
    return in->shape.n_v ? QKV_MATRICES : QKV_MATRICES - 1;
}

int64_t gemv_first_of_qkv(const instance *in, unsigned matrix)
{
    return matrix ? in->shape.n + (matrix - 1) * in->shape.n_kv : 0;
}

gemv_operands gemv_of_qkv(ptx *p, const instance *in, unsigned matrix)
{
    static const char *const weights[QKV_MATRICES] = { "wq", "wk", "wv" };
    static const char *const factors[QKV_MATRICES] = { "q_scale", "k_scale", "v_scale" };
    static const char *const biases[QKV_MATRICES] = { "bq", "bk", "bv" };
    instance one = instance_matrix(in, matrix);
    gemv_operands g = gemv_of(p, &one, "y", weights[matrix], "x");
    g.before = imm(U32, gemv_first_of_qkv(in, matrix));
    g.stride = imm(U32, in->shape.n + in->shape.n_kv + in->shape.n_v);
    if (in->options.scaled)
        g.factor = parameter(p, factors[matrix]);
    if (in->options.bias)
        g.bias = parameter(p, biases[matrix]);
    return g;
}

unsigned gemv_runs_of_qkv(const instance *in, int64_t rows, gemv_run runs[QKV_MATRICES])
{
    unsigned count = 0;
    int64_t preceding = 0;
    for (unsigned i = 0; i < gemv_matrices_of_qkv(in); i++) {
        if (!i || in->weights_of[i] != in->weights_of[i - 1])
            runs[count++] = (gemv_run){ .from = i, .before = preceding };
        gemv_run *run = &runs[count - 1];
        int64_t groups = (instance_matrix(in, i).shape.n + rows - 1) / rows;
        run->groups_before[run->count++] = run->groups;
        run->groups += groups;
        preceding += groups;
    }
    return count;
}

void gemv_operands_of_run(ptx *p, const instance *in, const gemv_run *run,
                          gemv_operands of[QKV_MATRICES])
{
    for (unsigned i = 0; i < run->count; i++)
        of[i] = gemv_of_qkv(p, in, run->from + i);
}

/* Selects an operand of a later matrix, if its group number says so. */
static void choose(ptx *p, val later, val *chosen, val of_later)
{
    if (of_later.kind)
        *chosen = select(p, later, of_later, *chosen);
}

gemv_operands gemv_matrix_of_run(ptx *p, const gemv_run *run, const gemv_operands *of, val *number)
{
    gemv_operands g = of[0];
    val of_all = *number;
    for (unsigned i = 1; i < run->count; i++) {
        val later = ge(p, of_all, run->groups_before[i]);
        choose(p, later, &g.w, of[i].w);
        choose(p, later, &g.factor, of[i].factor);
        choose(p, later, &g.bias, of[i].bias);
        choose(p, later, &g.before, of[i].before);
        choose(p, later, &g.n, of[i].n);
        choose(p, later, number, sub(p, of_all, run->groups_before[i]));
    }
    return g;
}

int64_t gemv_block_of_row(const instance *in, int64_t row, int64_t blocks, int64_t rows)
{
    int64_t preceding = 0;
    unsigned matrix = 0;
    for (int64_t n = in->shape.n; row >= n; n = instance_matrix(in, ++matrix).shape.n) {
        row -= n;
        preceding += (n + rows - 1) / rows;
    }
    return (preceding + row / rows) % blocks;
}

val gemv_first_group(ptx *p, int64_t preceding)
{
    val blocks = nctaid_x(p), block = ctaid_x(p);
    if (!preceding)
        return block;
    val into_grid = rem(p, imm(U32, preceding), blocks);
    return rem(p, add(p, block, sub(p, blocks, into_grid)), blocks);
}

int64_t gemv_vectors(const instance *in)
{
    int64_t m = in->shape.m, most = MAX_VECTORS;
    if (in->family->halves) /* tensor-core tiles hold all rows */
        return m;
    if (in->family->block_rows)
        most = in->family->block_rows(in);
    int64_t groups = (m + most - 1) / most;
    return groups > 1 ? (m + groups - 1) / groups : m;
}

const char *check_any_rows(const instance *in, arena *a, const char **blamed)
{
    if (in->rows_mode == ROWS_FIXED || in->shape.m <= MAX_VECTORS)
        return NULL;
    *blamed = "m";
    return arena_format(a,
                        "m = %lld: with rows = run_time m is the rows per block, at most %d; "
                        "use m = %d",
                        (long long)in->shape.m, MAX_VECTORS, MAX_VECTORS);
}

const derived_size gemv_sizes[] = { GEMV_VECTORS, { NULL, NULL, NULL } };

unsigned gemv_registers(const instance *in)
{
    enum { OF_ONE_VECTOR = 64 };
    return in->shape.m == 1 ? OF_ONE_VECTOR : in->family->launch.registers;
}

val gemv_row(ptx *p, const gemv_operands *g, val row)
{
    return named(p, "&w[row]", mad_wide(p, row, g->row_bytes, g->w));
}

place place_of_vector(ptx *p, val base, const val *offsets, unsigned number, val count,
                      unsigned bytes)
{
    uint64_t step = (uint64_t)number * bytes;
    if (offsets && offsets[number].kind)
        return (place){ add(p, base, offsets[number]), 0 };
    if (count.kind == VAL_IMM && (step == 0 || count.bits <= INT32_MAX / 2 / step))
        return (place){ base, (int64_t)(count.bits * step) };
    return (place){ mad_wide(p, count, (long long)step, base), 0 };
}

/* Returns true for vector 0, which always exists. */
static bool is_first(val number)
{
    return number.kind == VAL_IMM && !number.bits;
}

static val chosen_word(ptx *p, const gemv_chosen *c, val number)
{
    if (is_first(number) && c->first.kind)
        return c->first;
    val there = is_first(number) ? number : min(p, number, sub(p, c->count, 1));
    return ld_const(p, U32, mad_wide(p, there, 4, c->words), 0);
}

/* Returns the row of X in a list's word; a single row needs no word. */
static val chosen_row(ptx *p, const gemv_chosen *c, val word)
{
    return c->rows == 1 ? imm(U32, 0) : div(p, word, c->slots);
}

/* Returns the row of Y of the block's vector `number`. */
static val vector_row(ptx *p, const gemv_operands *g, val number)
{
    if (g->chosen)
        return chosen_word(p, g->chosen, number);
    return g->m.kind ? add(p, g->first, number) : number;
}

static val row_exists(ptx *p, const gemv_operands *g, val row)
{
    return g->m.kind ? lt(p, row, g->m) : imm(PRED, 1);
}

val gemv_vector_read(ptx *p, const gemv_operands *g, val number)
{
    val row = g->chosen ? chosen_row(p, g->chosen, chosen_word(p, g->chosen, number))
                        : vector_row(p, g, number);
    return g->m.kind ? min(p, row, sub(p, g->m, 1)) : row;
}

val gemv_vector(ptx *p, const gemv_operands *g, val number)
{
    return mad_wide(p, gemv_vector_read(p, g, number), g->x_bytes, g->x);
}

val gemv_results(ptx *p, const gemv_operands *g, val number, val *stored)
{
    const gemv_chosen *c = g->chosen;
    if (!c) {
        val row = vector_row(p, g, number);
        val values = mul_wide(p, row, g->stride.kind ? g->stride : g->n);
        *stored = row_exists(p, g, row);
        return add(p, g->y, shl(p, values, 2));
    }
    val word = chosen_word(p, c, number), values = mul_wide(p, word, c->slot_values);
    if (c->values_beside)
        values = mad_wide(p, chosen_row(p, c, word), c->values_beside, values);
    *stored = is_first(number) ? imm(PRED, 1) : lt(p, number, c->count);
    return add(p, g->y, shl(p, values, 2));
}

bool gemv_loops_are_full(const gemv_operands *g, unsigned rows)
{
    uint64_t multiple = g->n.kind == VAL_IMM ? g->n.bits : g->multiple;
    return multiple && multiple % rows == 0;
}

val gemv_loop_row(ptx *p, const gemv_operands *g, val row, unsigned number, unsigned rows)
{
    val own = number ? add(p, row, number) : row;
    return gemv_row(p, g,
                    gemv_loops_are_full(g, rows) || !number ? own : min(p, own, sub(p, g->n, 1)));
}

/* Returns xielu(x) with the kernel's numbers. expm1(t) is 2 h / (1 - h) with h = tanh(t / 2). */
static val xielu(ptx *p, val x)
{
    val t = min(p, x, parameter(p, "xielu_eps")), h = hyperbolic_tangent(p, mul(p, t, 0.5f));
    val power = mul(p, mul(p, h, 2.0f), rcp(p, sub(p, 1.0f, h)));
    val below = mul(p, parameter(p, "xielu_n"), sub(p, power, x));
    val above = mul(p, mul(p, parameter(p, "xielu_p"), x), x);
    return fma(p, parameter(p, "xielu_beta"), x, select(p, gt(p, x, 0.0f), above, below));
}

val gemv_finished(ptx *p, const gemv_operands *g, val sum, val row, val offset)
{
    if (g->factor.kind)
        sum = mul(p, sum, ld_const(p, F32, g->factor, 0));
    if (g->bias.kind)
        sum = add(p, sum, ld_const(p, F32, mad_wide(p, row, 4, g->bias), 0));
    if (g->epilogue == 1 + ACTIVATION_XIELU)
        sum = xielu(p, sum);
    else if (g->epilogue)
        sum = activation_of(p, g->epilogue - 1, sum);
    if (g->times.kind)
        sum = mul(p, sum, ld_const(p, F32, add(p, g->times, offset), 0));
    if (g->scale > 0)
        sum = mul(p, sum, (float)g->scale);
    if (g->residual.kind)
        sum = add(p, sum, ld_const(p, F32, add(p, g->residual, offset), 0));
    if (g->softcap > 0) {
        val share = hyperbolic_tangent(p, mul(p, sum, (float)(1 / g->softcap)));
        sum = fma(p, sum, 0.0f, mul(p, share, (float)g->softcap)); /* an infinite sum: NaN */
    }
    return sum;
}

void gemv_store_rows(ptx *p, const gemv_operands *g, val row, unsigned rows, unsigned vectors,
                     spread_sums sums)
{
    PTX_IF (p, lt(p, sums.number, rows * vectors)) {
        val own = add(p, row, vectors == 1 ? sums.number : rem(p, sums.number, rows));
        val inside = gemv_loops_are_full(g, rows) ? imm(PRED, 1) : lt(p, own, g->n);
        val element = convert(p, U64, g->before.kind ? add(p, own, g->before) : own);
        val row_of_y = vector_row(p, g, vectors == 1 ? imm(U32, 0) : div(p, sums.number, rows));
        if (vectors > 1 || g->m.kind || g->chosen)
            element = mad_wide(p, row_of_y, g->stride.kind ? g->stride : g->n, element);
        PTX_IF (p, inside) {
            val exists = g->chosen ? lt(p, sums.number, mul(p, g->chosen->count, rows))
                                   : row_exists(p, g, row_of_y);
            PTX_IF (p, exists) {
                val offset = shl(p, element, 2);
                val vector = vectors == 1 ? imm(U32, 0) : div(p, sums.number, rows);
                val sum = sums.sum;
                if (g->factors.kind)
                    sum = mul(p, sum, ld_shared(p, F32, mad(p, vector, 4, g->factors), 0));
                st_global(p, F32, add(p, g->y, offset), 0, gemv_finished(p, g, sum, own, offset));
            }
        }
    }
}

val gated(ptx *p, const problem_options *o, val gate, val up)
{
    const float limit = 7;
    int64_t activation = o->activation;
    switch (activation) {
    case ACTIVATION_GELU:
        return mul(p, by_sigmoid(p, gate, activation_argument(p, activation, gate)), up);
    case ACTIVATION_SWIGLU_OAI: {
        val g = min(p, gate, limit), u = max(p, min(p, up, limit), -limit);
        val y = mul(p, by_sigmoid(p, g, activation_argument(p, activation, g)), add(p, u, 1.0f));
        /* min and max drop NaNs: adding zero times both inputs restores them. */
        return fma(p, add(p, gate, up), imm(F32, 0), y);
    }
    case ACTIVATION_SILU:
        if (o->limit > 0)
            return limited_product(p, o->limit, by_sigmoid(p, gate, gate), gate, up);
        return mul(p, by_sigmoid(p, gate, gate), up);
    default:
        return mul(p, activation_of(p, activation, gate), up);
    }
}

gemv_biases gemv_biases_of_row(ptx *p, const instance *in, val row)
{
    gemv_biases b = { 0 };
    if (in->options.scaled) {
        b.gate_factor = ld_const(p, F32, parameter(p, "g_scale"), 0);
        b.up_factor = ld_const(p, F32, parameter(p, "u_scale"), 0);
    }
    if (in->options.bias) {
        if (!in->options.ungated)
            b.gate = ld_const(p, F32, mad_wide(p, row, F32_BYTES, parameter(p, "bg")), 0);
        b.up = ld_const(p, F32, mad_wide(p, row, F32_BYTES, parameter(p, "bu")), 0);
    }
    return b;
}

void gemv_add_biases(ptx *p, const gemv_biases *biases, val *gate, val *up)
{
    if (biases->gate_factor.kind) {
        *gate = mul(p, *gate, biases->gate_factor);
        *up = mul(p, *up, biases->up_factor);
    }
    if (biases->gate.kind)
        *gate = add(p, *gate, biases->gate);
    if (biases->up.kind)
        *up = add(p, *up, biases->up);
}

/* Stores the activation of up, which has no gate. */
static void store_ungated(ptx *p, const instance *in, const gemv_operands *g, val row,
                          const val *sums, const gemv_biases *biases)
{
    unsigned vectors = (unsigned)in->shape.m;
    spread_sums spread = block_sum_spread(p, sums, vectors, 1);
    val vector = vectors == 1 ? imm(U32, 0) : spread.number, up = spread.sum;
    PTX_IF (p, lt(p, spread.number, vectors)) {
        if (g->factors.kind)
            up = mul(p, up, ld_shared(p, F32, mad(p, vector, F32_BYTES, g->factors), 0));
        if (biases->up.kind)
            up = add(p, up, biases->up);
        val stored, y = gemv_results(p, g, vector, &stored);
        PTX_IF (p, stored)
            st_global(p, F32, mad_wide(p, row, F32_BYTES, y), 0,
                      activation_of(p, in->options.activation, up));
    }
}

/* One of the lanes with a gate's sum gets the sum of up from its neighbour group and stores. */
void gemv_store_gated(ptx *p, const instance *in, const gemv_operands *g, val row, const val *sums,
                      const gemv_biases *biases)
{
    unsigned vectors = (unsigned)in->shape.m;
    if (in->options.ungated) {
        store_ungated(p, in, g, row, sums, biases);
        return;
    }
    spread_sums spread = block_sum_spread(p, sums, 2 * vectors, 1);
    val up = shuffle_xor(p, spread.sum, spread.lanes), gate = spread.sum;
    val vector = vectors == 1 ? imm(U32, 0) : div(p, spread.number, 2);
    val is_gate = eq(p, rem(p, spread.number, 2), 0);
    PTX_IF (p, lt(p, select(p, is_gate, spread.number, imm(U32, 2 * vectors)), 2 * vectors)) {
        if (g->factors.kind) {
            val factor = ld_shared(p, F32, mad(p, vector, F32_BYTES, g->factors), 0);
            gate = mul(p, gate, factor);
            up = mul(p, up, factor);
        }
        gemv_add_biases(p, biases, &gate, &up);
        val stored, y = gemv_results(p, g, vector, &stored);
        PTX_IF (p, stored)
            st_global(p, F32, mad_wide(p, row, F32_BYTES, y), 0, gated(p, &in->options, gate, up));
    }
}

void gemv_store(ptx *p, const gemv_operands *g, val row, val sum)
{
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_global(p, F32, mad_wide(p, row, 4, g->y), 0, sum);
}

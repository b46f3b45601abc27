/* Checks large products in part. The reference computes them twice: with W rounded to f16, as the
 * kernel does, and exactly. The difference bounds the kernel's error. Rows of W repeat, and so do
 * their products. */
#include "model/check/step_trial.h"

#include <math.h>
#include <string.h>

#include "check/blocks.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum { SOME_BLOCKS = 4, MOST_MATRICES = 3 };
#define LARGE_PRODUCT \
    (INT64_C(1) << 27) /* multiplications of a launch; of one row for products
                                            that repeat */

/* marks values that no block has written: a NaN that arithmetic does not produce */
static const uint32_t UNWRITTEN = 0xffffffff;

/* A matrix of a launch. Its products start at a column of each row. */
typedef struct factor {
    const char *w, *scale, *bias;
    int64_t rows, column;
    format format;
} factor;

typedef struct product_launch {
    const step_trial *t;
    const plan_launch *l;
    const instance *in;
    param params[MAX_PARAMS];
    factor factors[MOST_MATRICES];
    unsigned count;  /* number of factors */
    int64_t stride;  /* values per row, of all matrices */
    size_t choices;  /* results per row of X: one for each chosen expert, or 1 */
    unsigned parts;  /* parts of a row of Y: one per matrix, but gate and up share one */
    size_t row_size; /* values per row of Y */
} product_launch;

static void add_factor(product_launch *p, const instance *in, const char *w, const char *scale,
                       const char *bias)
{
    p->factors[p->count++] =
        (factor){ w, scale, bias, in->shape.n, p->stride, instance_weights(in) };
    p->stride += in->shape.n;
}

static product_launch product_of(const step_trial *t, const plan_launch *l)
{
    static const char *const qkv[][3] = { { "wq", "q_scale", "bq" },
                                          { "wk", "k_scale", "bk" },
                                          { "wv", "v_scale", "bv" } };
    const instance *in = &t->v->plan->kernels[l->kernel];
    operation op = in->family->op;
    product_launch p = { .t = t, .l = l, .in = in, .choices = 1 };
    instance_params(t->scratch, in, p.params);
    if (operation_is_of_experts(op))
        p.choices = (size_t)in->shape.experts_used;
    if (op == OP_GEMV || op == OP_EXPERT_PRODUCT) {
        add_factor(&p, in, "w", "w_scale", "bias");
    } else if (op == OP_QKV) {
        for (unsigned i = 0; i < (in->shape.n_v ? 3 : 2); i++) {
            instance one = instance_matrix(in, i);
            add_factor(&p, &one, qkv[i][0], qkv[i][1], qkv[i][2]);
        }
    } else {
        if (!in->options.ungated)
            add_factor(&p, in, "wg", "g_scale", "bg");
        add_factor(&p, in, "wu", "u_scale", "bu");
    }
    bool gated = instance_is_gated(in);
    p.parts = gated ? 1 : p.count;
    p.row_size = (size_t)p.stride / (gated ? 2 : 1) * p.choices;
    return p;
}

static const plan_argument *argument_of(const product_launch *p, const char *name)
{
    for (size_t i = 0; i < p->l->argument_count; i++)
        if (strcmp(p->params[i].name, name) == 0)
            return &p->l->arguments[i];
    return NULL;
}

bool step_product_is_large(const step_trial *t, const plan_launch *l)
{
    const instance *in = &t->v->plan->kernels[l->kernel];
    bool has_tiles = in->family->halves || in->family->block_rows;
    if (!has_tiles || in->family->op == OP_PROMPT_ATTENTION)
        return false;
    product_launch p = product_of(t, l);
    const plan_argument *m = argument_of(&p, "m_val");
    int64_t rows = (m ? m->number : in->shape.m) * (int64_t)p.choices;
    return rows * p.stride * in->shape.k > LARGE_PRODUCT;
}

bool step_any_launch(const step_trial *t, const plan_step *step,
                     bool (*is_so)(const step_trial *t, const plan_launch *l))
{
    bool any = false;
    for (size_t i = 0; i < step->launch_count && !any; i++)
        any = is_so(t, &step->launches[i]);
    return any;
}

/* Reads values of a parameter from index first on. Returns NULL if the kernel lacks it. */
static const float *values_from(const product_launch *p, const char *name, size_t first,
                                size_t count)
{
    const plan_argument *argument = argument_of(p, name);
    if (!argument)
        return NULL;
    format f = p->params[argument - p->l->arguments].format;
    uint64_t address = step_address(p->t, argument) + format_bytes(f, first);
    float *values = arena_alloc(p->t->scratch, count * sizeof *values);
    ref_decode(f, step_read(p->t, address, (size_t)format_bytes(f, count)), count, values);
    return values;
}

/* Reads a parameter's rows [m, size] that have tokens, as doubles. */
static double *rows_at(const product_launch *p, const step_rows *r, const char *name, size_t size)
{
    double *kept = arena_alloc(p->t->scratch, r->fed_count * size * sizeof *kept);
    size_t count = 0;
    for (size_t i = 0; i < r->m; i++) {
        const float *row = r->is_row[i] ? values_from(p, name, i * size, size) : NULL;
        for (size_t j = 0; row && j < size; j++)
            kept[count++] = (double)row[j];
    }
    return kept;
}

/* Returns the index of the tensor that contains a matrix. */
static size_t tensor_of(const product_launch *p, const factor *f)
{
    const plan *of = p->t->v->plan;
    uint64_t offset = argument_of(p, f->w)->offset;
    size_t number = 0;
    while (offset - of->tensors[number].offset >= of->tensors[number].bytes)
        number++;
    return number;
}

static ref_matrix matrix_of(const product_launch *p, const factor *f, bool halves)
{
    const plan *of = p->t->v->plan;
    uint64_t offset = argument_of(p, f->w)->offset, columns = (uint64_t)p->in->shape.k;
    size_t number = tensor_of(p, f);
    const model_tensor *have = &p->t->v->model.tensors[number];
    return (ref_matrix){ .format = f->format,
                         .blocks = have->bytes,
                         .values = have->values,
                         .rows = (uint64_t)f->rows,
                         .columns = columns,
                         .repeat = have->rows,
                         .first = (offset - of->tensors[number].offset) /
                                  format_bytes(f->format, columns),
                         .halves = halves };
}

/* Vectors of x as multiplied, and factors of their `results` products each. */
typedef struct operands {
    double *x, *factors;
    size_t results; /* per vector */
} operands;

typedef struct results {
    size_t *numbers, count;
    double *y; /* address of result 0 */
    size_t stride;
} results;

/* Multiplies a matrix by the vectors of some results, then applies scale and bias. */
static void multiply(const product_launch *p, const ref_matrix *w, const operands *o, float scale,
                     const float *bias, const results *to)
{
    size_t k = (size_t)w->columns, rows = (size_t)w->rows;
    arena *a = p->t->scratch;
    double *x = arena_alloc(a, to->count * k * sizeof *x);
    double *y = arena_alloc(a, to->count * rows * sizeof *y);
    for (size_t i = 0; i < to->count; i++)
        memcpy(x + i * k, o->x + to->numbers[i] / o->results * k, k * sizeof *x);
    ref_matrix_times(w, x, to->count, y, rows, arena_alloc(a, k * sizeof *x));
    for (size_t i = 0; i < to->count; i++) {
        double of_row = o->factors[to->numbers[i] / o->results];
        for (size_t j = 0; j < rows; j++)
            to->y[to->numbers[i] * to->stride + j] =
                y[i * rows + j] * (double)scale * of_row + (bias ? (double)bias[j] : 0);
    }
}

/* Selects the results of an entry of the list of experts, for rows with tokens. */
static void take_entry(const product_launch *p, const step_rows *r, const uint32_t *entry,
                       results *to)
{
    size_t used = p->choices;
    to->count = 0;
    for (uint32_t i = 0; i < entry[EXPERT_ROWS]; i++) {
        size_t word = entry[EXPERT_FIRST_ROW + i], row = word / used, fed = 0;
        for (size_t ahead = 0; ahead < row; ahead++)
            fed += r->is_row[ahead];
        if (r->is_row[row])
            to->numbers[to->count++] = fed * used + word % used;
    }
}

typedef struct expert_list {
    const uint32_t *entries;
    size_t entry_words;
    uint32_t count;
} expert_list;

static expert_list list_of(const product_launch *p, const step_rows *r)
{
    const problem_shape *s = &p->in->shape;
    size_t entry_words = EXPERT_FIRST_ROW + r->m;
    const uint32_t *words = step_read(
        p->t, step_address(p->t, argument_of(p, "list")),
        (EXPERT_LIST_HEAD + (size_t)problem_experts_listed(s) * entry_words) * sizeof *words);
    return (expert_list){ words + EXPERT_LIST_HEAD, entry_words, words[0] };
}

static void multiply_by_experts(const product_launch *p, const step_rows *r, const factor *f,
                                const operands *o, bool halves, results *to)
{
    const problem_shape *s = &p->in->shape;
    expert_list list = list_of(p, r);
    const float *bias = values_from(p, f->bias, 0, (size_t)(s->experts * s->n));
    for (uint32_t i = 0; i < list.count; i++) {
        const uint32_t *entry = list.entries + i * list.entry_words;
        ref_matrix w = matrix_of(p, f, halves);
        w.first += (uint64_t)entry[EXPERT_ID] * (uint64_t)s->plane_rows;
        take_entry(p, r, entry, to);
        multiply(p, &w, o, 1, bias ? bias + entry[EXPERT_ID] * (size_t)s->n : NULL, to);
    }
}

/* Computes Y for rows with tokens. Gate and up combine to half as many values. x is rounded. */
static double *compute(const product_launch *p, const step_rows *r, bool halves)
{
    const problem_options *options = &p->in->options;
    operation op = p->in->family->op;
    arena *a = p->t->scratch;
    size_t stride = (size_t)p->stride, count = r->fed_count * p->choices;
    size_t of_row = op == OP_EXPERT_PRODUCT ? p->choices : 1, n = (size_t)p->in->shape.n;
    const operands o = { rows_at(p, r, "x", of_row * (size_t)p->in->shape.k),
                         rows_at(p, r, "factors", of_row), p->choices / of_row };
    double *y = arena_alloc(a, count * stride * sizeof *y);
    results to = { .numbers = arena_alloc(a, count * sizeof *to.numbers), .stride = stride };
    for (unsigned i = 0; i < p->count; i++) {
        const factor *of = &p->factors[i];
        to.y = y + of->column;
        if (operation_is_of_experts(op)) {
            multiply_by_experts(p, r, of, &o, halves, &to);
            continue;
        }
        const ref_matrix w = matrix_of(p, of, halves);
        for (to.count = 0; to.count < count; to.count++)
            to.numbers[to.count] = to.count;
        const float *scale = values_from(p, of->scale, 0, 1);
        multiply(p, &w, &o, scale ? *scale : 1, values_from(p, of->bias, 0, (size_t)of->rows), &to);
    }
    for (size_t i = 0; instance_is_gated(p->in) && i < count * n; i++) {
        const double *sums = y + i / n * stride + i % n;
        y[i] = ref_gate(options, sums[0]) * ref_gate_factor(options, sums[n]);
    }
    for (size_t i = 0; options->ungated && i < count * n; i++)
        y[i] = ref_activation(options->activation, y[i]);
    if (op != OP_GEMV)
        return y;
    static const char *const xielu_names[] = { "xielu_p", "xielu_n", "xielu_beta", "xielu_eps" };
    float xielu[XIELU_NUMBERS];
    if (options->epilogue == 1 + ACTIVATION_XIELU)
        for (unsigned i = 0; i < XIELU_NUMBERS; i++)
            memcpy(&xielu[i], &argument_of(p, xielu_names[i])->number, sizeof xielu[i]);
    const double *residual = options->residual ? rows_at(p, r, "residual", stride) : NULL;
    const double *times = options->times ? rows_at(p, r, "times", stride) : NULL;
    for (size_t i = 0; i < count * stride; i++) {
        if (options->epilogue == 1 + ACTIVATION_XIELU)
            y[i] = ref_xielu(xielu, y[i]);
        else if (options->epilogue)
            y[i] = ref_activation(options->epilogue - 1, y[i]);
        y[i] *= times ? times[i] : 1;
        y[i] = (options->scale > 0 ? options->scale : 1) * y[i] + (residual ? residual[i] : 0);
        y[i] = options->softcap > 0 ? options->softcap * tanh(y[i] / options->softcap) : y[i];
    }
    return y;
}

/* Chooses blocks evenly from first to last, each with the blocks of its other split-K parts. For
 * experts it chooses among entries of the list that rows with tokens use. */
static uint64_t *chosen_blocks(const product_launch *p, const step_rows *r, const uint32_t grid[3],
                               uint64_t parts)
{
    uint64_t *blocks = arena_alloc(p->t->scratch, SOME_BLOCKS * parts * sizeof *blocks), count = 0;
    uint64_t tiles = (uint64_t)grid[0] * grid[1] * grid[2] / parts;
    if (!operation_is_of_experts(p->in->family->op)) {
        for (uint64_t part = 0; part < parts; part++)
            for (uint64_t i = 0; i < SOME_BLOCKS; i++)
                blocks[part * SOME_BLOCKS + i] = part * tiles + i * (tiles - 1) / (SOME_BLOCKS - 1);
        return blocks;
    }
    expert_list list = list_of(p, r);
    uint32_t *used = arena_alloc(p->t->scratch, list.count * sizeof *used);
    results of = { .numbers = arena_alloc(p->t->scratch, r->m * sizeof *of.numbers) };
    for (uint32_t i = 0; i < list.count; i++) {
        take_entry(p, r, list.entries + i * list.entry_words, &of);
        if (of.count)
            used[count++] = i;
    }
    for (uint64_t i = 0; i < SOME_BLOCKS; i++) {
        uint64_t across = i * (grid[0] - 1) / (SOME_BLOCKS - 1);
        uint64_t entry = count ? used[i * (count - 1) / (SOME_BLOCKS - 1)] : 0;
        blocks[i] = entry * grid[0] + across;
    }
    return blocks;
}

static bool run_in_part(step_trial *t, const plan_launch *l, const step_rows *r)
{
    const product_launch p = product_of(t, l);
    size_t size = p.row_size, fed = 0, written = 0;
    uint64_t y = step_address(t, argument_of(&p, "y"));
    double *rounded = compute(&p, r, true), *exact = compute(&p, r, false);
    float *got = arena_alloc(t->scratch, r->fed_count * size * sizeof *got);
    step_request request;
    device_launch *to = &request.launch;
    uint64_t parts = p.in->splits ? (uint64_t)p.in->splits : 1;
    step_request_of(t, l, r, false, &request);
    if ((uint64_t)to->grid[0] * to->grid[1] * to->grid[2] > SOME_BLOCKS * parts) {
        to->blocks = chosen_blocks(&p, r, to->grid, parts);
        to->block_count = SOME_BLOCKS * parts;
    }
    emu_fill(t->memory, y, &UNWRITTEN, sizeof UNWRITTEN, r->m * size);
    if (!step_run(t, l, r, &request))
        return false;
    for (size_t i = 0; i < r->m; i++) {
        uint64_t address = y + i * size * sizeof *got;
        float *row = got + fed * size;
        if (!r->is_row[i])
            continue;
        emu_read(t->memory, address, row, size * sizeof *row);
        for (size_t j = 0; j < size; j++) { /* take unwritten values from the reference */
            bool is_written = memcmp(&row[j], &UNWRITTEN, sizeof UNWRITTEN) != 0;
            written += is_written;
            row[j] = is_written ? row[j] : (float)rounded[fed * size + j];
        }
        emu_write(t->memory, address, row, size * sizeof *row);
        fed++;
    }
    if (!written)
        return step_reject(t, "%s, %s: %s writes none of its rows", step_name(t, r),
                           step_layer_name(t, l->layer), p.in->name);
    const step_compared c = {
        argument_of(&p, "y")->said, got, rounded, exact, fed * size, size, false
    };
    return step_compare(t, r, l->layer, &c, &t->result.worst_hidden);
}

/* Returns the rows after which results repeat, or 0, as for gates with a bias. */
static int64_t period_of(const product_launch *p, unsigned part)
{
    const factor *of = &p->factors[part];
    int64_t repeat = (int64_t)matrix_of(p, of, false).repeat;
    for (unsigned i = 0; p->parts < p->count && i < p->count; i++)
        if ((int64_t)matrix_of(p, &p->factors[i], false).repeat != repeat || p->in->options.bias)
            return 0;
    return repeat < of->rows ? repeat : 0;
}

bool step_product_repeats(const step_trial *t, const plan_launch *l)
{
    const instance *in = &t->v->plan->kernels[l->kernel];
    operation op = in->family->op;
    if (in->family->halves || (op != OP_GEMV && op != OP_QKV && op != OP_GATE_UP_SWIGLU) ||
        (in->options.residual && in->options.softcap > 0) ||
        (in->options.epilogue && (in->options.bias || in->options.times)) ||
        blocks_block_of_row(in, 0, 1) < 0)
        return false;
    product_launch p = product_of(t, l);
    const plan_argument *y = argument_of(&p, "y"), *residual = argument_of(&p, "residual");
    bool has_zeroed = false;
    for (size_t i = 0; i < l->argument_count; i++)
        has_zeroed |= p.params[i].data == DATA_ZEROED;
    bool repeats = p.stride * in->shape.k > LARGE_PRODUCT && !has_zeroed && y &&
                   p.params[y - l->arguments].format == FORMAT_F32 &&
                   !(residual && step_address(t, residual) == step_address(t, y));
    for (unsigned i = 0; repeats && i < p.parts; i++)
        repeats = period_of(&p, i) > 0;
    return repeats;
}

void step_product_run_first(const step_trial *t, const plan_launch *l, device_launch *to)
{
    const product_launch p = product_of(t, l);
    uint64_t across = to->grid[0], all = across * to->grid[1] * to->grid[2];
    bool *marks = arena_zalloc(t->scratch, across);
    uint64_t *blocks = arena_alloc(t->scratch, all * sizeof *blocks);
    size_t count = 0;
    for (unsigned i = 0; i < p.parts; i++)
        for (int64_t row = 0; row < period_of(&p, i); row++)
            marks[blocks_block_of_row(p.in, p.factors[i].column + row, (int64_t)across)] = true;
    for (uint64_t i = 0; i < all; i++)
        if (marks[i % across])
            blocks[count++] = i;
    to->blocks = count < all ? blocks : NULL;
    to->block_count = count < all ? count : 0;
}

/* Repeats a matrix's results in a row of Y. Returns the values written; 0: incomplete. */
static size_t repeat_results(float *y, size_t rows, size_t period, const float *residual,
                             const float *bias)
{
    size_t written = 0;
    for (size_t i = 0; i < rows; i++) {
        bool is_written = memcmp(&y[i], &UNWRITTEN, sizeof UNWRITTEN) != 0;
        if (i < period && !is_written)
            return 0;
        written += is_written;
        if (i < period)
            continue;
        y[i] = y[i % period];
        if (bias)
            y[i] += bias[i] - bias[i % period];
        if (residual)
            y[i] = y[i] - residual[i % period] + residual[i];
    }
    return written;
}

static bool run_repeated(step_trial *t, const plan_launch *l, const step_rows *r)
{
    const product_launch p = product_of(t, l);
    size_t size = p.row_size, written[MOST_MATRICES] = { 0 }, tensors[MOST_MATRICES];
    uint64_t y = step_address(t, argument_of(&p, "y")), loaded[MOST_MATRICES];
    const float *residual = values_from(&p, "residual", 0, r->m * size), *bias[MOST_MATRICES];
    step_request request;
    if (!step_request_of(t, l, r, false, &request))
        return true;
    if (request.launch.blocks) /* the trial has chosen blocks */
        return step_launch(t, l, r);
    for (unsigned i = 0; i < p.count; i++) {
        tensors[i] = tensor_of(&p, &p.factors[i]);
        loaded[i] = emu_loaded(t->memory, t->tensors[tensors[i]]);
        bias[i] = values_from(&p, p.factors[i].bias, 0, (size_t)p.factors[i].rows);
    }
    emu_fill(t->memory, y, &UNWRITTEN, sizeof UNWRITTEN, r->m * size);
    step_product_run_first(t, l, &request.launch);
    if (!step_run(t, l, r, &request))
        return false;
    float *row = arena_alloc(t->scratch, size * sizeof *row);
    for (size_t i = 0; i < r->m; i++) {
        uint64_t address = y + i * size * sizeof *row;
        if (!r->is_row[i])
            continue;
        emu_read(t->memory, address, row, size * sizeof *row);
        for (unsigned j = 0; j < p.parts; j++) {
            size_t column = (size_t)p.factors[j].column;
            written[j] =
                repeat_results(row + column, (size_t)p.factors[j].rows, (size_t)period_of(&p, j),
                               residual ? residual + i * size + column : NULL, bias[j]);
            if (!written[j])
                return step_launch(t, l, r); /* the rows are in other blocks */
        }
        emu_write(t->memory, address, row, size * sizeof *row);
    }
    for (unsigned i = 0; i < p.count; i++) { /* bytes that the skipped blocks would load */
        size_t rows = (size_t)p.factors[i].rows, have = written[p.parts < p.count ? 0 : i];
        uint64_t bytes = emu_loaded(t->memory, t->tensors[tensors[i]]) - loaded[i];
        t->skipped[tensors[i]] += (uint64_t)((double)bytes * (double)(rows - have) / (double)have);
    }
    return true;
}

bool step_run_launch(step_trial *t, const plan_launch *l, const step_rows *r)
{
    if (step_product_is_large(t, l))
        return run_in_part(t, l, r);
    return step_product_repeats(t, l) ? run_repeated(t, l, r) : step_launch(t, l, r);
}

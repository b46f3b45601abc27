/* A lane's totals are in registers, or in shared memory if the caller has reserved it: rows *
 * vectors words per thread, one block width apart.
 *
 * exact_expert_down rounds nothing: a warp computes one row of Y. It walks the list and multiplies
 * that row of every expert's matrix with one row of X at a time. */
#include "gen/experts/expert_down.h"

#include "gen/common/reduce.h"
#include "ref/reference.h"

expert_down expert_down_new(ptx *p, const instance *in, unsigned rows, unsigned lanes)
{
    expert_down d = { .in = in,
                      .shared = expert_down_shared(in),
                      .rows = rows,
                      .lanes = lanes,
                      .rows_of_warp = rows * (WARP / lanes),
                      .vectors = (unsigned)in->shape.m };
    d.g = gemv_of(p, in, "y", "w", "x");
    d.g.scale = in->options.scale;
    if (in->options.residual)
        d.g.residual = parameter(p, "residual");
    if (in->shape.n_shared)
        d.of_shared = gemv_of(p, &d.shared, "y", "ws", "x");
    if (in->options.bias)
        d.biases = parameter(p, "bd");
    d.weights = parameter(p, "weights");
    d.list = parameter(p, "list");
    d.in_use = experts_in_use(p, d.list);
    return d;
}

val expert_down_values(ptx *p, const expert_down *d, val word, val row)
{
    val at = mad_wide(p, word, (unsigned)d->in->shape.k * F32_BYTES, d->g.x);
    return d->in->shape.n_shared && d->vectors > 1
               ? mad_wide(p, row, (unsigned)d->in->shape.n_shared * F32_BYTES, at)
               : at;
}

int64_t expert_down_shared_values_at(const instance *in, unsigned row)
{
    const problem_shape *s = &in->shape;
    return ((row + 1) * s->experts_used * s->k + row * s->n_shared) * F32_BYTES;
}

val expert_down_weight(ptx *p, const expert_down *d, val word, val row)
{
    bool more = d->in->shape.n_shared || d->in->options.route.shared;
    val number = more && d->vectors > 1 ? add(p, word, row) : word;
    return ld_const(p, F32, mad_wide(p, number, F32_BYTES, d->weights), 0);
}

val expert_down_weight_of_shared(ptx *p, const expert_down *d, unsigned row)
{
    int64_t used = d->in->shape.experts_used;
    return ld_const(p, F32, d->weights, (row * (used + 1) + used) * F32_BYTES);
}

static val row_of_group(ptx *p, const expert_down *d, val first)
{
    return mad(p, group_of_lane(p, d->lanes), imm(U32, d->rows), first);
}

/* Returns true if every group of lanes has at least one row in every iteration. */
static bool groups_have_rows(const expert_down *d)
{
    return d->lanes == WARP || gemv_loops_are_full(&d->g, d->rows_of_warp);
}

val expert_down_row_to_read(ptx *p, const expert_down *d, val first)
{
    val own = row_of_group(p, d, first);
    unsigned last = (unsigned)(d->in->shape.n - 1) / d->rows * d->rows;
    return groups_have_rows(d) ? own : min(p, own, last);
}

/* Returns the byte offset of a lane's total in shared memory, from the totals of a row of X. */
static int64_t offset_of_total(const ptx *p, unsigned number)
{
    return (int64_t)number * ptx_block(p) * F32_BYTES;
}

void expert_down_begin(ptx *p, expert_down *d)
{
    for (unsigned i = 0; i < d->rows * d->vectors; i++)
        if (d->totals_at.kind)
            st_shared(p, F32, d->totals_at, offset_of_total(p, i), imm(F32, 0));
        else
            d->totals[i] = var_f32(p, 0.0f);
}

void expert_down_add(ptx *p, expert_down *d, val row_of_x, val weight, const val *products)
{
    for (unsigned r = 0; d->totals_at.kind && r < d->rows; r++) {
        val at = mad(p, row_of_x, offset_of_total(p, d->rows), d->totals_at);
        val total = ld_shared(p, F32, at, offset_of_total(p, r));
        st_shared(p, F32, at, offset_of_total(p, r), fma(p, weight, products[r], total));
    }
    for (unsigned i = 0; !d->totals_at.kind && i < d->rows * d->vectors; i++) {
        val sum = fma(p, weight, products[i % d->rows], d->totals[i]);
        val own = eq(p, row_of_x, i / d->rows);
        assign(p, d->totals[i], select(p, own, sum, get(p, d->totals[i])));
    }
}

/* Returns a row that exists, of a group's rows from row on. */
static val row_that_exists(ptx *p, const expert_down *d, val row, unsigned number)
{
    val own = number ? add(p, row, number) : row;
    return gemv_loops_are_full(&d->g, d->rows) ? own : min(p, own, sub(p, d->g.n, 1));
}

/* Adds the shared expert's output to the totals, in one lane of the group. */
static void add_shared_output(ptx *p, expert_down *d, val first)
{
    val row = expert_down_row_to_read(p, d, first), zero = imm(F32, 0);
    val only = eq(p, lane_in_group(p, d->lanes), 0), shared = parameter(p, "shared");
    for (unsigned v = 0; v < d->vectors; v++) {
        val products[STREAM_ROWS];
        for (unsigned r = 0; r < d->rows; r++) {
            val at = mad_wide(p, row_that_exists(p, d, row, r), F32_BYTES, shared);
            val value = ld_const(p, F32, at, v * d->in->shape.n * F32_BYTES);
            products[r] = select(p, only, value, zero);
        }
        expert_down_add(p, d, imm(U32, v), expert_down_weight_of_shared(p, d, v), products);
    }
}

/* If a group has fewer lanes than totals, it reduces them in several rounds. */
void expert_down_store(ptx *p, expert_down *d, val first)
{
    if (d->in->options.route.shared)
        add_shared_output(p, d, first);
    unsigned all = d->rows * d->vectors;
    val row = row_of_group(p, d, first);
    val exists = groups_have_rows(d) ? imm(PRED, 1) : lt(p, row, d->g.n);
    for (unsigned from = 0, count; from < all; from += count) {
        val sums[STREAM_ROWS * MAX_VECTORS];
        count = all - from < d->lanes ? all - from : d->lanes;
        for (unsigned i = 0; i < count; i++)
            sums[i] = d->totals_at.kind
                          ? ld_shared(p, F32, d->totals_at, offset_of_total(p, from + i))
                          : get(p, d->totals[from + i]);
        spread_sums spread = group_sum_spread(p, sums, count, d->lanes);
        if (from)
            spread.number = add(p, spread.number, from);
        PTX_IF (p, exists)
            gemv_store_rows(p, &d->g, row, d->rows, d->vectors, spread);
    }
}

void expert_down_biases(ptx *p, const expert_down *d, val id, val row, val biases[STREAM_ROWS])
{
    val n = d->g.n, first = mul(p, id, n), zero = imm(F32, 0),
        only = eq(p, lane_in_group(p, d->lanes), 0);
    for (unsigned r = 0; r < d->rows && d->biases.kind; r++) {
        val own = row_that_exists(p, d, row, r);
        val at = mad_wide(p, add(p, first, own), F32_BYTES, d->biases);
        biases[r] = select(p, only, ld_const(p, F32, at, 0), zero);
    }
}

static void exact_expert_down_build(ptx *p, const instance *in)
{
    expert_down d = expert_down_new(p, in, 1, WARP);
    val row = named(p, "row", ctaid_x(p));
    expert_down_begin(p, &d);
    PTX_FOR (p, number, 0, d.in_use, 1) {
        expert_entry e = expert_entry_at(p, in, d.list, number);
        PTX_FOR (p, user, 0, e.count, 1) {
            val word = expert_choice(p, &e, user), row_of_x = expert_row(p, in, word);
            var product = ptx_var(p, F32, expert_nan(p));
            PTX_IF (p, expert_exists(p, in, e.id)) {
                instance one = *in;
                gemv_operands g = d.g;
                val biases[STREAM_ROWS], sum;
                one.shape.m = 1;
                g.x = expert_down_values(p, &d, word, row_of_x);
                g.w = expert_plane(p, in, d.g.w, e.id, d.g.row_bytes);
                exact_multiply(p, &one, &g, 1, row, &sum);
                expert_down_biases(p, &d, e.id, row, biases);
                assign(p, product, in->options.bias ? add(p, sum, biases[0]) : sum);
            }
            val of_row = get(p, product);
            expert_down_add(p, &d, row_of_x, expert_down_weight(p, &d, word, row_of_x), &of_row);
        }
    }
    if (in->shape.n_shared) {
        val products[MAX_VECTORS];
        for (unsigned v = 0; v < d.vectors; v++)
            d.of_shared.offsets[v] = imm(U64, expert_down_shared_values_at(in, v));
        exact_multiply(p, &d.shared, &d.of_shared, 1, row, products);
        for (unsigned v = 0; v < d.vectors; v++)
            expert_down_add(p, &d, imm(U32, v), expert_down_weight_of_shared(p, &d, v),
                            &products[v]);
    }
    expert_down_store(p, &d, row);
}

const family exact_expert_down = {
    .name = "exact_expert_down",
    .summary =
        "weighted sum of expert down-projections, by a list of experts, without quantization",
    EXPERT_DOWN,
    .keys = KEYS(KEYS_OF_EXPERT_DOWN, KEYS_AROUND_EXPERT_DOWN),
    .params = PARAMS(PARAMS_OF_EXPERT_DOWN),
    .launch = { .block = "32", .grid = { "n" }, .overlap = WAITS_FIRST, .registers = 128 },
    .build = exact_expert_down_build,
    .tolerance = 5e-7,
};

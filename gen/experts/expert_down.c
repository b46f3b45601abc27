/* A lane's totals are in registers, or in shared memory where the caller has made room for them:
 * rows * vectors words a thread, a block's width apart. */
#include "gen/experts/expert_down.h"

#include "gen/common/reduce.h"

static instance planes_of(const instance *in)
{
    instance planes = *in;
    planes.shape.plane_rows = in->shape.n;
    return planes;
}

expert_down expert_down_new(ptx *p, const instance *in, unsigned rows, unsigned lanes)
{
    expert_down d = { .in = in,
                      .planes = planes_of(in),
                      .shared = expert_down_shared(in),
                      .rows = rows,
                      .lanes = lanes,
                      .vectors = (unsigned)in->shape.m };
    d.g = gemv_of(p, in, "y", "w", "x");
    d.g.scale = in->options.scale;
    if (in->options.residual)
        d.g.residual = parameter(p, "residual");
    if (expert_down_has_shared(in))
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
    return expert_down_has_shared(d->in) && d->vectors > 1
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
    val number = expert_down_has_shared(d->in) && d->vectors > 1 ? add(p, word, row) : word;
    return ld_const(p, F32, mad_wide(p, number, F32_BYTES, d->weights), 0);
}

val expert_down_weight_of_shared(ptx *p, const expert_down *d, unsigned row)
{
    int64_t used = d->in->shape.experts_used;
    return ld_const(p, F32, d->weights, (row * (used + 1) + used) * F32_BYTES);
}

unsigned expert_down_rows_of_warp(const expert_down *d)
{
    return d->rows * (WARP / d->lanes);
}

val expert_down_row_of_group(ptx *p, const expert_down *d, val first)
{
    return mad(p, group_of_lane(p, d->lanes), imm(U32, d->rows), first);
}

/* Whether each group has rows in each turn, if not all of them. */
static bool groups_have_rows(const expert_down *d)
{
    return d->lanes == WARP || gemv_turns_are_whole(&d->g, expert_down_rows_of_warp(d));
}

val expert_down_row_to_read(ptx *p, const expert_down *d, val first)
{
    val own = expert_down_row_of_group(p, d, first);
    unsigned last = (unsigned)(d->in->shape.n - 1) / d->rows * d->rows;
    return groups_have_rows(d) ? own : min(p, own, last);
}

static unsigned total_count(const expert_down *d)
{
    return d->rows * d->vectors;
}

/* From one of a lane's totals to its next. */
static unsigned total_bytes(const ptx *p)
{
    return ptx_block(p) * F32_BYTES;
}

void expert_down_begin(ptx *p, expert_down *d)
{
    for (unsigned i = 0; i < total_count(d); i++)
        if (d->totals_at.kind)
            st_shared(p, F32, d->totals_at, i * total_bytes(p), imm(F32, 0));
        else
            d->totals[i] = var_f32(p, 0.0f);
}

void expert_down_add(ptx *p, expert_down *d, val row_of_x, val weight, const val *products)
{
    for (unsigned r = 0; d->totals_at.kind && r < d->rows; r++) {
        val at = mad(p, row_of_x, d->rows * total_bytes(p), d->totals_at);
        val total = ld_shared(p, F32, at, r * total_bytes(p));
        st_shared(p, F32, at, r * total_bytes(p), fma(p, weight, products[r], total));
    }
    for (unsigned i = 0; !d->totals_at.kind && i < total_count(d); i++) {
        val sum = fma(p, weight, products[i % d->rows], d->totals[i]);
        val own = eq(p, row_of_x, i / d->rows);
        assign(p, d->totals[i], select(p, own, sum, get(p, d->totals[i])));
    }
}

/* A group may have fewer lanes than totals, and then has those of some vectors after others. */
void expert_down_store(ptx *p, const expert_down *d, val first)
{
    val row = expert_down_row_of_group(p, d, first);
    val exists = groups_have_rows(d) ? imm(PRED, 1) : lt(p, row, d->g.n);
    for (unsigned from = 0, count; from < total_count(d); from += count) {
        val sums[STREAM_ROWS * MAX_VECTORS];
        count = total_count(d) - from < d->lanes ? total_count(d) - from : d->lanes;
        for (unsigned i = 0; i < count; i++)
            sums[i] = d->totals_at.kind
                          ? ld_shared(p, F32, d->totals_at, (from + i) * total_bytes(p))
                          : get(p, d->totals[from + i]);
        spread_sums spread = group_sum_spread(p, sums, count, d->lanes);
        if (from)
            spread.number = add(p, spread.number, from);
        PTX_IF (p, exists)
            gemv_store_turn(p, &d->g, row, d->rows, d->vectors, spread);
    }
}

void expert_down_biases(ptx *p, const expert_down *d, val id, val row, val biases[STREAM_ROWS])
{
    val n = d->g.n, first = mul(p, id, n), zero = imm(F32, 0),
        only = eq(p, lane_in_group(p, d->lanes), 0);
    for (unsigned r = 0; r < d->rows && d->biases.kind; r++) {
        val own = r ? add(p, row, r) : row;
        if (!gemv_turns_are_whole(&d->g, d->rows))
            own = min(p, own, sub(p, n, 1));
        val at = mad_wide(p, add(p, first, own), F32_BYTES, d->biases);
        biases[r] = select(p, only, ld_const(p, F32, at, 0), zero);
    }
}

const char *expert_down_check(const instance *in, arena *a, const char **blamed)
{
    instance planes = planes_of(in);
    return check_experts(&planes, a, blamed);
}

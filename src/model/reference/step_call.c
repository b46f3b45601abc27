#include "model/reference/step_call.h"

#include <math.h>

#include "ref/reference.h"

double *call_vectors(const call *c, int64_t size)
{
    return arena_alloc(c->a, c->count * (size_t)size * sizeof(double));
}

double ref_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double step_silu(double x)
{
    return ref_activation(ACTIVATION_SILU, x);
}

double step_softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

double step_or_1(double scale)
{
    return scale != 0 ? scale : 1;
}

ref_matrix call_matrix(const call *c, decoder_tensor t, uint64_t plane)
{
    const decoder *d = c->s->d;
    ref_tensor have = c->s->weights(c->s->user, t, c->layer);
    uint64_t rows = decoder_rows(d, t, c->layer) / decoder_planes(d, t, c->layer);
    return (ref_matrix){ .format = decoder_format(d, t, c->layer),
                         .blocks = have.blocks,
                         .values = have.values,
                         .rows = rows,
                         .columns = decoder_columns(d, t, c->layer),
                         .repeat = have.rows,
                         .first = plane * rows };
}

const double *call_row(const call *c, decoder_tensor t, uint64_t row)
{
    if (t == TENSOR_COUNT || !decoder_has(c->s->d, t, c->layer))
        return NULL;
    ref_matrix w = call_matrix(c, t, 0);
    double *values = arena_alloc(c->a, w.columns * sizeof *values);
    ref_matrix_row(&w, row, values);
    return values;
}

/* Returns 1 / sqrt(mean(x^2) + epsilon). */
static double norm_factor(const double *x, int64_t size, double epsilon)
{
    double squares = 0;
    for (int64_t i = 0; i < size; i++)
        squares += x[i] * x[i];
    return 1 / sqrt(squares / (double)size + epsilon);
}

void call_norm(const call *c, double *x, int64_t size, const double *gains)
{
    double factor = norm_factor(x, size, c->s->d->epsilon);
    for (int64_t i = 0; i < size; i++)
        x[i] *= factor * (gains ? gains[i] : 1);
}

static operand layer_norm(const call *c, const double *h, int64_t size, const double *gains)
{
    double *x = call_vectors(c, size);
    for (int64_t v = 0; v < (int64_t)c->count; v++) {
        const double *row = h + v * size;
        double *normed = x + v * size, mean = 0;
        for (int64_t i = 0; i < size; i++)
            mean += row[i] / (double)size;
        for (int64_t i = 0; i < size; i++)
            normed[i] = row[i] - mean;
        call_norm(c, normed, size, gains);
    }
    return (operand){ x, NULL, c->count, size };
}

operand call_normed(const call *c, const double *h, int64_t size, decoder_tensor norm)
{
    const double *gains = call_row(c, norm, 0);
    const decoder *d = c->s->d;
    if (!gains)
        return (operand){ h, NULL, c->count, size };
    if (d->layer_norm &&
        (norm == TENSOR_ATTN_NORM || norm == TENSOR_OUTPUT_NORM || norm == decoder_ffn_norm(d)))
        return layer_norm(c, h, size, gains);
    double *x = call_vectors(c, size), *factors = call_vectors(c, 1);
    for (size_t v = 0; v < c->count; v++) {
        factors[v] = norm_factor(h + v * (size_t)size, size, c->s->d->epsilon);
        for (int64_t i = 0; i < size; i++)
            x[(int64_t)v * size + i] = h[(int64_t)v * size + i] * gains[i];
    }
    return (operand){ x, factors, c->count, size };
}

void call_multiply(const call *c, const operand *o, decoder_tensor t, uint64_t plane, double *y,
                   size_t stride)
{
    decoder_rounding rounding = decoder_product_rounding(c->s->d, c->s->m, t, c->layer);
    ref_matrix w = call_matrix(c, t, plane);
    w.halves = rounding == ROUNDS_TO_HALVES;
    const double *b = t == TENSOR_FFN_GATE_UP ? NULL : call_row(c, decoder_bias(t), plane);
    const double *x = o->x, *scale = call_row(c, decoder_scale(t), 0);
    if (rounding != ROUNDS_NOTHING) {
        size_t count = o->count * (size_t)o->size;
        double *rounded = arena_alloc(c->a, count * sizeof *rounded), q[Q8_1_VALUES];
        for (size_t i = 0; w.halves && i < count; i++)
            rounded[i] = ref_round_to_half(x[i]);
        for (size_t i = 0; !w.halves && i < count; i += Q8_1_VALUES) {
            double by = ref_round_to_8_bits(x + i, q);
            for (size_t j = 0; j < Q8_1_VALUES; j++)
                rounded[i + j] = by * q[j];
        }
        x = rounded;
    }
    ref_matrix_times(&w, x, o->count, y, stride, arena_alloc(c->a, w.columns * sizeof(double)));
    for (size_t v = 0; v < o->count; v++)
        for (uint64_t i = 0; i < w.rows; i++)
            y[v * stride + i] =
                y[v * stride + i] * (scale ? *scale : 1) * (o->factors ? o->factors[v] : 1) +
                (b ? b[i] : 0);
}

double *call_product(const call *c, const operand *o, decoder_tensor w)
{
    uint64_t rows = decoder_rows(c->s->d, w, c->layer);
    double *y = arena_alloc(c->a, o->count * rows * sizeof *y);
    call_multiply(c, o, w, 0, y, rows);
    return y;
}

void call_add_branch(const call *c, double *h, const double *x, decoder_tensor norm)
{
    call_add_normed(c, h, x, norm, step_or_1(c->s->d->residual_scale));
}

void call_add_normed(const call *c, double *h, const double *x, decoder_tensor norm, double scale)
{
    const decoder *d = c->s->d;
    const double *gains = call_row(c, norm, 0);
    double epsilon = d->post_norm_epsilon > 0 ? d->post_norm_epsilon : d->epsilon;
    for (size_t v = 0; v < c->count; v++, h += d->hidden, x += d->hidden) {
        double factor = gains ? norm_factor(x, d->hidden, epsilon) : 1;
        for (int64_t i = 0; i < d->hidden; i++)
            h[i] += scale * (gains ? x[i] * factor * gains[i] : x[i]);
    }
}

void call_add_output(const call *c, double *h, const double *x, int64_t size, decoder_tensor w)
{
    const operand o = { x, NULL, c->count, size };
    call_add_branch(c, h, call_product(c, &o, w), TENSOR_POST_ATTENTION_NORM);
}

rope_options call_rope(const call *c)
{
    return decoder_rope(c->s->d, c->layer);
}

void ref_angles(const rope_options *o, const double *factors, uint64_t position, double *turns)
{
    for (int64_t i = 0; i < o->dims / 2; i++) {
        rope_angle by = ref_rope_angle(o, (uint64_t)i, factors ? factors[i] : 1, position);
        turns[2 * i] = by.cos;
        turns[2 * i + 1] = by.sin;
    }
}

const double *call_angles(const call *c, size_t token)
{
    const rope_options o = call_rope(c);
    const uint8_t *has = c->s->d->has;
    decoder_tensor factors = has[TENSOR_ROPE_LONG]    ? TENSOR_ROPE_LONG
                             : has[TENSOR_ROPE_SHORT] ? TENSOR_ROPE_SHORT
                                                      : TENSOR_ROPE_FREQS;
    double *turns = arena_alloc(c->a, (size_t)o.dims * sizeof *turns);
    ref_angles(&o, o.factors ? call_row(c, factors, 0) : NULL, c->positions[token], turns);
    return turns;
}

void call_rotate(const call *c, const double *turns, double *head)
{
    const rope_options o = call_rope(c);
    for (int64_t i = 0; i < o.dims / 2 && o.style != ROPE_NONE; i++) {
        double *x = o.style == ROPE_NEOX ? &head[i] : &head[2 * i];
        double *y = o.style == ROPE_NEOX ? &head[i + o.dims / 2] : &head[2 * i + 1];
        double cosine = turns[2 * i], sine = turns[2 * i + 1], turned = *x * cosine - *y * sine;
        *y = *x * sine + *y * cosine;
        *x = turned;
    }
}

/* Mamba-2 and Mamba instead of attention or beside it: see ref_mamba2 and ref_mamba_scan in
 * reference.h, which advance states in the same way.
 *
 * Mamba-2: [z, u, dt] = W_in h', then the convolution of u, the states, and a norm by groups if the
 * layer has SSM_NORM. Mamba: [u, z] = W_in h', the convolution of u, [dt, B, C] = W_x u, normed with
 * dt_b_c_norm, and dt = W_dt dt + bias. */
#include <math.h>
#include <string.h>

#include "model/reference/step_call.h"

/* A channel's operands of one token. */
typedef struct channel {
    double x, delta, gate, d;
    const double *b, *c, *decay; /* [state_size] */
} channel;

/* Advances a channel's state by one token. Returns y. */
static double advance(double *state, int64_t size, const channel *at)
{
    double y = at->d * at->x;
    for (int64_t i = 0; i < size; i++) {
        state[i] = state[i] * at->decay[i] + at->delta * at->x * at->b[i];
        y += state[i] * at->c[i];
    }
    return y * step_silu(at->gate);
}

/* Returns the convolution of a token's inputs with silu. */
static double *convolved(const call *c, size_t token, const double *own)
{
    double *u = call_convolve(c, token, own, TENSOR_SSM_CONV1D, TENSOR_SSM_CONV1D_BIAS);
    for (uint64_t i = 0; i < decoder_channels(c->s->d); i++)
        u[i] = step_silu(u[i]);
    return u;
}

/* Returns a vector whose tensor may have a row for each value. */
static double *all_values(const call *c, decoder_tensor t)
{
    const ref_matrix w = call_matrix(c, t, 0);
    double *values = arena_alloc(c->a, w.rows * w.columns * sizeof *values);
    for (uint64_t i = 0; i < w.rows; i++)
        ref_matrix_row(&w, i, values + i * w.columns);
    return values;
}

void call_add_mamba2(const call *c, const double *from, double *h)
{
    const decoder *d = c->s->d;
    const operand o = call_normed(c, from, d->hidden, TENSOR_ATTN_NORM);
    const double *in = call_product(c, &o, TENSOR_SSM_IN), *dt = all_values(c, TENSOR_SSM_DT);
    const double *a = all_values(c, TENSOR_SSM_A), *of_x = all_values(c, TENSOR_SSM_D);
    int64_t size = d->state_size, inner = d->inner, groups = d->state_groups;
    int64_t dim = inner / d->state_heads, channels = (int64_t)decoder_channels(d);
    double *y = call_vectors(c, inner), *decay = arena_alloc(c->a, (size_t)size * sizeof *decay);
    for (size_t token = 0; token < c->count; token++, in += inner + channels + d->state_heads) {
        const double *u = convolved(c, token, in + inner);
        double *state = call_states(c, token), *row = y + (int64_t)token * inner;
        for (int64_t i = 0; i < inner; i++, state += size) {
            int64_t head = i / dim, group = head / (d->state_heads / groups);
            const double *b = u + inner + group * size;
            double delta = step_softplus(in[inner + channels + head] + dt[head]);
            for (int64_t j = 0; j < size; j++)
                decay[j] = exp(delta * a[head]);
            row[i] =
                advance(state, size,
                        &(channel){ u[i], delta, in[i], of_x[head], b, b + groups * size, decay });
        }
        for (int64_t g = 0; g < groups && decoder_has(d, TENSOR_SSM_NORM, c->layer); g++)
            call_norm(c, row + g * inner / groups, inner / groups,
                      call_row(c, TENSOR_SSM_NORM, (uint64_t)g));
    }
    call_add_output(c, h, y, inner, TENSOR_SSM_OUT);
}

/* Returns the deltas [count, inner] of Mamba, and norms B and C. x has rows dt, B, C. */
static double *make_deltas(const call *c, double *x)
{
    const decoder *d = c->s->d;
    int64_t rank = d->dt_rank, size = d->state_size;
    double *ranks = call_vectors(c, rank);
    for (size_t token = 0; token < c->count; token++, x += rank + 2 * size) {
        if (d->dt_b_c_norm) {
            call_norm(c, x, rank, NULL);
            call_norm(c, x + rank, size, NULL);
            call_norm(c, x + rank + size, size, NULL);
        }
        memcpy(ranks + (int64_t)token * rank, x, (size_t)rank * sizeof *x);
    }
    double *deltas = call_product(c, &(operand){ ranks, NULL, c->count, rank }, TENSOR_SSM_DT_W);
    for (int64_t i = 0; i < (int64_t)c->count * d->inner; i++)
        deltas[i] = step_softplus(deltas[i]);
    return deltas;
}

void call_add_mamba(const call *c, const double *from, double *h)
{
    const decoder *d = c->s->d;
    int64_t inner = d->inner, size = d->state_size;
    const operand o = call_normed(c, from, d->hidden, TENSOR_ATTN_NORM);
    const double *in = call_product(c, &o, TENSOR_SSM_IN);
    const double *a = all_values(c, TENSOR_SSM_A), *of_u = all_values(c, TENSOR_SSM_D);
    double *u = call_vectors(c, inner), *y = call_vectors(c, inner);
    for (size_t token = 0; token < c->count; token++)
        memcpy(u + (int64_t)token * inner, convolved(c, token, in + 2 * (int64_t)token * inner),
               (size_t)inner * sizeof *u);
    double *x = call_product(c, &(operand){ u, NULL, c->count, inner }, TENSOR_SSM_X);
    const double *deltas = make_deltas(c, x);
    double *decay = arena_alloc(c->a, (size_t)size * sizeof *decay);
    for (size_t token = 0; token < c->count; token++, x += d->dt_rank + 2 * size) {
        double *state = call_states(c, token);
        const double *z = in + (2 * (int64_t)token + 1) * inner, *b = x + d->dt_rank;
        for (int64_t i = 0; i < inner; i++) {
            int64_t at = (int64_t)token * inner + i;
            for (int64_t j = 0; j < size; j++)
                decay[j] = exp(deltas[at] * a[i * size + j]);
            y[at] = advance(state + i * size, size,
                            &(channel){ u[at], deltas[at], z[i], of_u[i], b, b + size, decay });
        }
    }
    call_add_output(c, h, y, inner, TENSOR_SSM_OUT);
}

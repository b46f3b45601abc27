/* A gated delta net instead of attention. A token's inputs are [q, k, v] = silu(conv(W_qkv h')),
 * with a convolution over the last DELTA_CONV tokens. Each value head has a state H [S, S],
 * initially zero:
 *
 *   H = exp(a softplus(alpha + dt)) H + k d',  d = sigmoid(beta) (v - H' k),  o = H' q,
 *
 * where d uses the decayed H, |k| = 1 and |q| = 1 / sqrt(S). The output is norm(o) gains silu(z),
 * with z = W_gate h'.
 *
 * Grouped value heads: r successive heads share a key head, and [beta, alpha] = W_ba h' holds, per
 * key head, r betas, then r alphas. Tiled: with n key heads, key head g serves g, g + n, g + 2 n
 * and so on; beta = W_beta h', alpha = W_alpha h'.
 *
 * Source: Yang, Kautz, Hatamizadeh, "Gated Delta Networks", 2024, equation 10, as ggml computes it.
 */
#include <math.h>

#include "model/reference/step_call.h"
#include "ref/reference.h"

typedef struct inputs {
    double *qkv, *z, *ba; /* per token: [channels], [value heads, S], [2 value heads]; tiled: all
                             betas, then all alphas */
    int64_t channels, values;
} inputs;

static bool is_tiled(const call *c)
{
    return c->s->d->delta_layout == DELTA_TILED;
}

static void make_length(const call *c, double *x, int64_t size, double length)
{
    double squares = 0;
    for (int64_t i = 0; i < size; i++)
        squares += x[i] * x[i];
    for (int64_t i = 0; i < size; i++)
        x[i] *= length / fmax(sqrt(squares), c->s->d->epsilon);
}

/* Advances a value head's state by one token and computes o. state is [S of v, S of k]. */
static void step_state(double *state, int64_t size, const double *q, const double *k,
                       const double *v, double decay, double beta, double *o)
{
    for (int64_t j = 0; j < size; j++, state += size) {
        double known = 0;
        for (int64_t i = 0; i < size; i++)
            known += (state[i] *= decay) * k[i];
        o[j] = 0;
        for (int64_t i = 0; i < size; i++) {
            state[i] += k[i] * beta * (v[j] - known);
            o[j] += state[i] * q[i];
        }
    }
}

static void step_heads(const call *c, size_t token, const inputs *in, double *o)
{
    const decoder *d = c->s->d;
    int64_t size = d->delta_head_dim, heads = d->delta_value_heads, keys = d->delta_key_heads;
    int64_t shared = heads / keys;
    const double *dt = call_row(c, TENSOR_SSM_DT, 0), *a = call_row(c, TENSOR_SSM_A, 0);
    const double *ba = in->ba + 2 * (int64_t)token * heads;
    double *q = call_convolve(c, token, in->qkv + (int64_t)token * in->channels, TENSOR_SSM_CONV1D,
                              TENSOR_COUNT);
    for (int64_t i = 0; i < in->channels; i++)
        q[i] = step_silu(q[i]);
    double *k = q + keys * size;
    const double *v = k + keys * size;
    for (int64_t g = 0; g < keys; g++) {
        make_length(c, q + g * size, size, 1 / sqrt((double)size));
        make_length(c, k + g * size, size, 1);
    }
    for (int64_t head = 0; head < heads; head++) {
        int64_t g = is_tiled(c) ? head % keys : head / shared;
        const double *beta = ba + (is_tiled(c) ? head : g * shared + head);
        double alpha = beta[is_tiled(c) ? heads : shared];
        double softplus = step_softplus(alpha + dt[head]);
        step_state(call_states(c, token) + head * size * size, size, q + g * size, k + g * size,
                   v + head * size, exp(a[head] * softplus), ref_sigmoid(*beta), o + head * size);
    }
}

void call_add_delta_net(const call *c, const double *from, double *h)
{
    const decoder *d = c->s->d;
    size_t heads = (size_t)d->delta_value_heads;
    const operand x = call_normed(c, from, d->hidden, TENSOR_ATTN_NORM);
    inputs in = { .qkv = call_product(c, &x, TENSOR_DELTA_QKV),
                  .z = call_product(c, &x, TENSOR_DELTA_GATE),
                  .channels = (int64_t)decoder_rows(d, TENSOR_DELTA_QKV, c->layer),
                  .values = d->delta_value_heads * d->delta_head_dim };
    if (is_tiled(c)) {
        in.ba = call_vectors(c, 2 * d->delta_value_heads);
        call_multiply(c, &x, TENSOR_SSM_BETA, 0, in.ba, 2 * heads);
        call_multiply(c, &x, TENSOR_SSM_ALPHA, 0, in.ba + heads, 2 * heads);
    } else {
        in.ba = call_product(c, &x, TENSOR_SSM_BA);
    }
    const double *gains = call_row(c, TENSOR_SSM_NORM, 0);
    double *o = call_vectors(c, in.values);
    for (size_t token = 0; token < c->count; token++)
        step_heads(c, token, &in, o + (int64_t)token * in.values);
    for (int64_t i = 0; i < (int64_t)c->count * in.values; i += d->delta_head_dim)
        call_norm(c, o + i, d->delta_head_dim, gains);
    for (int64_t i = 0; i < (int64_t)c->count * in.values; i++)
        o[i] *= step_silu(in.z[i]);
    call_add_output(c, h, o, in.values, TENSOR_SSM_OUT);
}

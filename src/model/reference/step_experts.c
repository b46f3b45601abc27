/* The feed-forward of a layer: one for all tokens, or per token the sum of the chosen experts, in
 * ascending order, and of the shared expert. */
#include <string.h>

#include "model/reference/step_call.h"
#include "ref/reference.h"

/* The tensors of w_down (act(w_gate x + b) (w_up x + b)) + b, or without gates w_down act(w_up x +
 * b) + b. both fuses gate and up. */
typedef struct ffn_tensors {
    decoder_tensor gate, up, both, down;
} ffn_tensors;
static const ffn_tensors dense = { TENSOR_FFN_GATE, TENSOR_FFN_UP, TENSOR_FFN_GATE_UP,
                                   TENSOR_FFN_DOWN },
                         expert = { TENSOR_FFN_GATE_EXPS, TENSOR_FFN_UP_EXPS,
                                    TENSOR_FFN_GATE_UP_EXPS, TENSOR_FFN_DOWN_EXPS },
                         shared = { TENSOR_FFN_GATE_SHEXP, TENSOR_FFN_UP_SHEXP, TENSOR_COUNT,
                                    TENSOR_FFN_DOWN_SHEXP };

/* Returns the activation of a feed-forward without gates. */
static double activated(const call *c, double x)
{
    const decoder *d = c->s->d;
    float numbers[XIELU_NUMBERS];
    if (d->activation != ACTIVATION_XIELU)
        return ref_activation(d->activation, x);
    decoder_xielu(d, c->layer, numbers);
    return ref_xielu(numbers, x);
}

/* Returns the feed-forward of o's vectors, [count, hidden]. */
static double *feed_forward(const call *c, const operand *o, const ffn_tensors *t, uint64_t plane)
{
    const decoder *d = c->s->d;
    const decoder_layer *at = &d->at[c->layer];
    const problem_options gating = { .activation = d->activation,
                                     .limit = t == &expert ? at->expert_limit : at->shared_limit };
    size_t ff = (size_t)decoder_columns(d, t->down, c->layer);
    double *gate_up = arena_alloc(c->a, o->count * 2 * ff * sizeof *gate_up); /* [count, 2 ff] */
    double *f = arena_alloc(c->a, o->count * ff * sizeof *f);
    double *y = arena_alloc(c->a, o->count * (size_t)d->hidden * sizeof *y);
    const double *gate_bias = NULL, *up_bias = NULL; /* biases that call_multiply has not added */
    if (t->both != TENSOR_COUNT && d->has[t->both]) {
        gate_bias = call_row(c, decoder_bias(t->gate), plane);
        up_bias = call_row(c, decoder_bias(t->up), plane);
        call_multiply(c, o, t->both, plane, gate_up, 2 * ff);
    } else {
        if (!d->no_gates)
            call_multiply(c, o, t->gate, plane, gate_up, 2 * ff);
        call_multiply(c, o, t->up, plane, gate_up + ff, 2 * ff);
    }
    for (size_t i = 0; i < o->count * ff; i++) {
        double *gate = gate_up + i / ff * 2 * ff + i % ff, *up = gate + ff;
        *gate += gate_bias ? gate_bias[i % ff] : 0;
        *up += up_bias ? up_bias[i % ff] : 0;
        f[i] = d->no_gates ? activated(c, *up)
                           : ref_gate(&gating, *gate) * ref_gate_factor(&gating, *up);
    }
    call_multiply(c, &(operand){ f, NULL, o->count, (int64_t)ff }, t->down, plane, y,
                  (size_t)d->hidden);
    return y;
}

void call_add_ffn(const call *c, const double *from, double *h)
{
    const decoder *d = c->s->d;
    const operand o = call_normed(c, from, d->hidden, decoder_ffn_norm(d));
    call_add_branch(c, h, feed_forward(c, &o, &dense, 0), TENSOR_POST_FFW_NORM);
}

/* The experts of all tokens: [count, experts_used] each. */
typedef struct routing {
    int64_t *ids;
    double *weights;
} routing;

static routing route_all(const call *c, const double *from)
{
    enum { CHOICE_BIAS = 2 }; /* index of the input after W and x */
    const decoder *d = c->s->d;
    size_t used = (size_t)d->experts_used, experts = (size_t)d->experts;
    bool own = decoder_has(d, TENSOR_ROUTER_NORM, c->layer);
    const operand o = call_normed(c, from, d->hidden,
                                  own ? TENSOR_ROUTER_NORM : decoder_expert_norm(d, c->layer));
    const double *logits = call_product(c, &o, TENSOR_FFN_GATE_INP);
    const double *scales = call_row(c, TENSOR_FFN_DOWN_EXPS_SCALE, 0);
    double logit_scale = step_or_1(d->router_scale);
    routing r = { arena_alloc(c->a, c->count * used * sizeof *r.ids),
                  call_vectors(c, d->experts_used) };
    problem p = { .shape = { .experts = d->experts, .experts_used = d->experts_used },
                  .options = {
                      .scale = d->experts_scale,
                      .route = { .gating = d->gating,
                                 .normed = d->experts_normed,
                                 .choice_bias = decoder_has(d, TENSOR_EXP_PROBS_B, c->layer),
                                 .groups = d->expert_groups,
                                 .groups_used = d->expert_groups_used } } };
    if (p.options.route.choice_bias) {
        const ref_matrix bias = call_matrix(c, TENSOR_EXP_PROBS_B, 0);
        p.inputs[CHOICE_BIAS] = bias.blocks;
        p.input_formats[CHOICE_BIAS] = bias.format;
    }
    ref_routing *row = arena_alloc(c->a, sizeof *row);
    for (size_t v = 0; v < c->count; v++) {
        size_t at = (size_t)c->layer * c->s->scored + v;
        for (size_t e = 0; e < experts; e++)
            row->logits[e] = (ref_value){ logit_scale * logits[v * experts + e], 0 };
        ref_route(&p, row);
        for (size_t i = 0; i < used; i++) {
            r.ids[v * used + i] = row->scores[i].number;
            r.weights[v * used + i] =
                row->weights[i].value * (scales ? scales[r.ids[v * used + i]] : 1);
        }
        c->s->gaps[at] = row->gap;
        memcpy(c->s->scores + at * experts, row->by_number, experts * sizeof *row->by_number);
    }
    return r;
}

static void add_expert(const call *c, const operand *o, const routing *r, int64_t number,
                       double *sum)
{
    const decoder *d = c->s->d;
    size_t slots = c->count * (size_t)d->experts_used, size = (size_t)o->size, count = 0;
    size_t *slot = arena_alloc(c->a, slots * sizeof *slot);
    for (size_t i = 0; i < slots; i++)
        if (r->ids[i] == number)
            slot[count++] = i;
    if (!count)
        return;
    double *x = arena_alloc(c->a, count * size * sizeof *x);
    double *factors = arena_alloc(c->a, count * sizeof *factors);
    for (size_t i = 0; i < count; i++) {
        size_t token = slot[i] / (size_t)d->experts_used;
        memcpy(x + i * size, o->x + token * size, size * sizeof *x);
        factors[i] = o->factors ? o->factors[token] : 1;
    }
    const double *y =
        feed_forward(c, &(operand){ x, factors, count, o->size }, &expert, (uint64_t)number);
    for (size_t i = 0; i < count * size; i++)
        sum[slot[i / size] / (size_t)d->experts_used * size + i % size] +=
            r->weights[slot[i / size]] * y[i];
}

/* Returns the sum of the experts, [count, hidden]. */
static double *sum_experts(const call *c, const double *from)
{
    const decoder *d = c->s->d;
    const operand o = call_normed(c, from, d->hidden, decoder_expert_norm(d, c->layer));
    const routing r = route_all(c, from);
    double *sum = call_vectors(c, d->hidden);
    memset(sum, 0, c->count * (size_t)d->hidden * sizeof *sum);
    for (int64_t e = 0; e < d->experts; e++)
        add_expert(c, &o, &r, e, sum);
    if (!d->shared_ff)
        return sum;
    const double *y = feed_forward(c, &o, &shared, 0);
    const double *gates =
        d->has[TENSOR_FFN_GATE_INP_SHEXP] ? call_product(c, &o, TENSOR_FFN_GATE_INP_SHEXP) : NULL;
    for (int64_t i = 0; i < (int64_t)c->count * d->hidden; i++)
        sum[i] +=
            step_or_1(d->shared_scale) * (gates ? ref_sigmoid(gates[i / d->hidden]) : 1) * y[i];
    return sum;
}

void call_add_experts(const call *c, const double *from, double *h)
{
    call_add_branch(c, h, sum_experts(c, from), TENSOR_POST_FFW_NORM);
}

void call_add_both(const call *c, const double *from, double *h)
{
    const decoder *d = c->s->d;
    const operand o = call_normed(c, from, d->hidden, decoder_ffn_norm(d));
    double *sum = call_vectors(c, d->hidden);
    memset(sum, 0, c->count * (size_t)d->hidden * sizeof *sum);
    call_add_normed(c, sum, feed_forward(c, &o, &dense, 0), TENSOR_POST_FFW_NORM_1, 1);
    call_add_normed(c, sum, sum_experts(c, from), TENSOR_POST_FFW_NORM_2, 1);
    call_add_branch(c, h, sum, TENSOR_POST_FFW_NORM);
}

/* ref_step_feed: the embedding, the layers, and the logits. */
#include <math.h>
#include <string.h>

#include "model/reference/step_call.h"

static void multiply_logits(const call *c, const double *h, double *logits)
{
    const decoder *d = c->s->d;
    operand o = call_normed(c, h, d->hidden, TENSOR_OUTPUT_NORM);
    double scale = step_or_1(d->logit_scale), cap = d->final_softcap;
    decoder_tensor output = d->has[TENSOR_OUTPUT] ? TENSOR_OUTPUT : TENSOR_TOKEN_EMBD;
    call_multiply(c, &o, output, 0, logits, (size_t)d->vocab);
    for (size_t i = 0; i < c->count * (size_t)d->vocab; i++) {
        logits[i] *= scale;
        logits[i] = cap > 0 ? cap * tanh(logits[i] / cap) : logits[i];
    }
}

/* Copies the hidden states after `layers` layers into hidden [count, layers + 1, hidden]. */
static void keep(const call *c, const double *h, int64_t layers, double *hidden)
{
    const decoder *d = c->s->d;
    for (size_t v = 0; v < c->count && hidden; v++)
        memcpy(hidden + ((int64_t)v * (d->layers + 1) + layers) * d->hidden,
               h + (int64_t)v * d->hidden, (size_t)d->hidden * sizeof *h);
}

/* Adds a layer's branches to h: the feed-forward reads the sum or, in parallel, the input. */
static void add_layer(const call *c, double *h)
{
    static void (*const recurrences[])(const call *, const double *, double *) = {
        [RECURRENCE_DELTA] = call_add_delta_net,
        [RECURRENCE_SHORT_CONV] = call_add_short_conv,
        [RECURRENCE_MAMBA2] = call_add_mamba2,
        [RECURRENCE_MAMBA] = call_add_mamba,
    };
    const decoder *d = c->s->d;
    const decoder_layer *at = &d->at[c->layer];
    size_t values = c->count * (size_t)d->hidden;
    const double *from = memcpy(call_vectors(c, d->hidden), h, values * sizeof *h);
    if (at->attends && d->latent)
        call_add_latent_attention(c, from, h);
    else if (at->attends)
        call_add_attention(c, from, h);
    if (at->recurs)
        recurrences[d->recurrence](c, from, h);
    const double *feed = d->parallel ? from : h;
    if (at->is_routed && at->is_dense)
        call_add_both(c, feed, h);
    else if (at->is_routed)
        call_add_experts(c, feed, h);
    else if (at->is_dense)
        call_add_ffn(c, feed, h);
    if (d->per_layer)
        call_add_per_layer(c, h);
    const double *scale = call_row(c, TENSOR_LAYER_OUTPUT_SCALE, 0);
    for (size_t i = 0; scale && i < values; i++)
        h[i] *= *scale;
}

void ref_step_set_rows(ref_step *s, int64_t m, bool attends_in_f16)
{
    s->m = m;
    s->attends_in_f16 = attends_in_f16;
}

ref_choice ref_step_choice(const ref_step *s, int64_t layer, size_t row)
{
    size_t at = (size_t)layer * s->scored + row;
    if (!decoder_has(s->d, TENSOR_FFN_GATE_INP, layer))
        return (ref_choice){ NULL, HUGE_VAL };
    return (ref_choice){ s->scores + at * (size_t)s->d->experts, s->gaps[at] };
}

void ref_step_feed(ref_step *s, const ref_row *rows, size_t count, double *logits, double *hidden)
{
    arena *a = arena_new_in(s->arena), *of_layer = arena_new_in(a);
    call c = { s, a, rows, count, arena_alloc(a, count * sizeof(uint64_t)), 0, NULL };
    call_assign_positions(&c);
    if (s->d->experts && count > s->scored) { /* allocate scores and gaps of routers */
        size_t all = (size_t)s->d->layers * count;
        s->scored = count;
        s->gaps = arena_alloc(s->arena, all * sizeof *s->gaps);
        s->scores = arena_alloc(s->arena, all * (size_t)s->d->experts * sizeof *s->scores);
    }
    const decoder *d = s->d;
    const ref_matrix w = call_matrix(&c, TENSOR_TOKEN_EMBD, 0);
    double *h = call_vectors(&c, d->hidden), scale = step_or_1(d->embedding_scale);
    for (size_t v = 0; v < count; v++) {
        double *row = h + (int64_t)v * d->hidden;
        ref_matrix_row(&w, rows[v].token % w.rows, row);
        for (int64_t i = 0; i < d->hidden; i++)
            row[i] = rows[v].token < w.rows ? scale * row[i] : NAN;
        if (d->embedding_norm)
            call_norm(&c, row, d->hidden, NULL);
    }
    if (d->per_layer)
        c.per_layer = call_per_layer(&c, h);
    keep(&c, h, 0, hidden);
    for (c.a = of_layer; c.layer < d->layers; c.layer++) {
        arena_reset(of_layer);
        add_layer(&c, h);
        keep(&c, h, c.layer + 1, hidden);
    }
    c.layer = 0; /* tensors of the model are read as those of layer 0 */
    if (logits)
        multiply_logits(&c, h, logits);
    arena_free(a);
}

void ref_step_logits(ref_step *s, const double *hidden, size_t count, double *logits)
{
    const decoder *d = s->d;
    size_t size = (size_t)d->hidden, stride = ((size_t)d->layers + 1) * size;
    arena *a = arena_new_in(s->arena);
    const call c = { .s = s, .a = a, .count = count };
    double *h = call_vectors(&c, d->hidden);
    for (size_t v = 0; v < count; v++)
        memcpy(h + v * size, hidden + (v + 1) * stride - size, size * sizeof *h);
    multiply_logits(&c, h, logits);
    arena_free(a);
}

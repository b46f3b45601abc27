/* Per-layer embeddings, and the branch of a layer that adds them. */
#include <math.h>

#include "model/reference/step_call.h"
#include "ref/reference.h"

const double *call_per_layer(const call *c, const double *h)
{
    const decoder *d = c->s->d;
    size_t values = (size_t)d->per_layer, all = values * (size_t)d->embedded_layers;
    const operand o = { h, NULL, c->count, d->hidden };
    double *a = call_product(c, &o, TENSOR_PER_LAYER_MODEL_PROJ);
    double *row = arena_alloc(c->a, all * sizeof *row);
    const double *gains = call_row(c, TENSOR_PER_LAYER_PROJ_NORM, 0);
    const ref_matrix table = call_matrix(c, TENSOR_PER_LAYER_TOKEN_EMBD, 0);
    for (size_t v = 0; v < c->count; v++, a += all) {
        bool known = c->rows[v].token < table.rows;
        ref_matrix_row(&table, known ? c->rows[v].token : 0, row);
        for (size_t i = 0; i < all; i++)
            a[i] /= sqrt((double)d->hidden);
        for (size_t l = 0; l < all; l += values)
            call_norm(c, a + l, d->per_layer, gains);
        for (size_t i = 0; i < all; i++)
            a[i] = known ? (a[i] + sqrt((double)values) * row[i]) / sqrt(2) : NAN;
    }
    return a - c->count * all;
}

void call_add_per_layer(const call *c, double *h)
{
    const decoder *d = c->s->d;
    size_t values = (size_t)d->per_layer;
    const operand o = { h, NULL, c->count, d->hidden };
    double *inner = call_product(c, &o, TENSOR_INP_GATE);
    for (size_t i = 0; i < c->count * values; i++)
        inner[i] =
            ref_activation(d->activation, inner[i]) *
            c->per_layer[(i / values * (size_t)d->embedded_layers + (size_t)c->layer) * values +
                         i % values];
    const operand product = { inner, NULL, c->count, d->per_layer };
    call_add_branch(c, h, call_product(c, &product, TENSOR_PROJ), TENSOR_POST_NORM);
}

#include "model/check/step_trial.h"

#include <string.h>

#include "model/plan/planner.h"

static uint64_t *loaded(const step_trial *t, const uint64_t *addresses, size_t count)
{
    uint64_t *bytes = arena_zalloc(t->scratch, count * sizeof *bytes);
    for (size_t i = 0; i < count; i++)
        if (addresses[i])
            bytes[i] = emu_loaded(t->memory, addresses[i]);
    return bytes;
}

step_traffic step_traffic_new(const step_trial *t)
{
    const plan *p = t->v->plan;
    size_t caches = (size_t)decoder_slots(p->decoder) * PLAN_CACHE_PARTS;
    uint64_t *of_tensors = loaded(t, t->tensors, p->tensor_count);
    for (size_t i = 0; i < p->tensor_count; i++)
        of_tensors[i] += t->skipped[i];
    return (step_traffic){ .of_tensors = of_tensors, .of_caches = loaded(t, t->caches, caches) };
}

/* Returns the cache bytes that a token needs: no state if it follows in the step. */
static uint64_t needed_by_row(const step_trial *t, const step_rows *r, size_t row, int64_t layer)
{
    const decoder *d = t->v->plan->decoder;
    const decoder_layer *at = &d->at[layer];
    const ref_cached any = { .layer = layer },
                     inputs = { .layer = layer, .values = true, .recurrent = true };
    uint64_t bytes = 0;
    bool first = !row || !r->is_row[row - 1] || r->rows[row - 1].sequence != r->rows[row].sequence;
    if (at->recurs && first) {
        uint64_t ahead = (uint64_t)decoder_taps(d) - 1;
        if (r->positions[row] < ahead)
            ahead = r->positions[row];
        bytes += t->v->plan->caches[decoder_states_slot(d, layer)][0].bytes +
                 ahead * step_model_row_bytes(&t->v->model, &inputs);
    }
    if (at->attends) {
        uint64_t heads = d->latent ? 1 : (uint64_t)at->num_kv_heads, seen = r->lengths[row];
        uint64_t window = (uint64_t)decoder_window(d, layer);
        if (window && seen > window)
            seen = window;
        bytes += seen * heads * step_model_row_bytes(&t->v->model, &any) * (d->latent ? 1 : 2);
    }
    return bytes;
}

void step_traffic_add_launch(step_traffic *s, const step_trial *t, const plan_launch *l)
{
    if (t->v->plan->kernels[l->kernel].family->op != OP_MOE_ROUTE)
        return;
    for (size_t i = 0; i < l->argument_count; i++)
        if (strcmp(l->arguments[i].said, buffer_lives[BUFFER_LIST].name) == 0)
            s->experts =
                *(uint32_t *)step_read(t, t->workspace + l->arguments[i].offset, sizeof(uint32_t));
}

void step_traffic_add_layer(step_traffic *s, const step_trial *t, const step_rows *r, int64_t layer)
{
    const plan *p = t->v->plan;
    const decoder *d = p->decoder;
    if (layer < 0)
        return;
    for (size_t i = 0; i < p->tensor_count; i++) {
        const plan_tensor *tensor = &p->tensors[i];
        bool of_layer = tensor_infos[tensor->tensor].by_layer && tensor->layer == layer;
        if (!of_layer || !tensor_is_matrix(tensor->tensor))
            continue; /* vectors are small, and every block loads them from a cache */
        uint64_t planes = decoder_planes(d, tensor->tensor, layer);
        bool of_experts = tensor_infos[tensor->tensor].part == PART_EXPERTS && planes > 1;
        s->weights.read += emu_loaded(t->memory, t->tensors[i]) + t->skipped[i] - s->of_tensors[i];
        s->weights.needed += of_experts ? tensor->bytes / planes * s->experts : tensor->bytes;
    }
    for (int64_t slot = 0; slot < decoder_slots(d); slot++) {
        bool own = slot == d->at[layer].cache && d->at[layer].attends;
        own |= d->at[layer].recurs && slot == decoder_states_slot(d, layer);
        for (int64_t i = PLAN_CACHE_PARTS * slot; own && i < PLAN_CACHE_PARTS * (slot + 1); i++) {
            if (!t->caches[i])
                continue;
            uint64_t now = emu_loaded(t->memory, t->caches[i]);
            s->caches.read += now - s->of_caches[i];
            s->of_caches[i] = now; /* a later layer may read it, too */
        }
    }
    for (size_t row = 0; row < r->m; row++)
        if (r->is_row[row])
            s->caches.needed += needed_by_row(t, r, row, layer);
}

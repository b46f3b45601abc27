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
    size_t caches = (size_t)(p->decoder->sequences * p->decoder->layers) * PLAN_CACHE_PARTS;
    uint64_t *of_tensors = loaded(t, t->tensors, p->tensor_count);
    for (size_t i = 0; i < p->tensor_count; i++)
        of_tensors[i] += t->skipped[i];
    return (step_traffic){ .of_tensors = of_tensors, .of_caches = loaded(t, t->caches, caches) };
}

/* Returns the bytes of its sequence's cache that a token needs. With a delta net, a row that
 * follows another of its sequence in the step needs none. */
static uint64_t needed_by_row(const step_trial *t, const step_rows *r, size_t row, int64_t layer)
{
    const decoder *d = t->v->plan->decoder;
    uint64_t heads = d->latent ? 1 : (uint64_t)d->num_kv_heads, seen = r->lengths[row];
    ref_cached which = { .layer = layer };
    if (d->recurrent[layer]) {
        bool first =
            !row || !r->is_row[row - 1] || r->rows[row - 1].sequence != r->rows[row].sequence;
        uint64_t ahead = r->positions[row] < DELTA_CONV - 1 ? r->positions[row] : DELTA_CONV - 1;
        which.values = true;
        return first ? t->v->plan->caches[layer][0].bytes +
                           ahead * step_model_row_bytes(&t->v->model, &which)
                     : 0;
    }
    if (d->windowed[layer] && d->window && seen > (uint64_t)d->window)
        seen = (uint64_t)d->window;
    return seen * heads * step_model_row_bytes(&t->v->model, &which) * (d->latent ? 1 : 2);
}

void step_traffic_add(step_traffic *s, const step_trial *t, const plan_step *step,
                      const step_rows *r, int64_t layer)
{
    const plan *p = t->v->plan;
    const decoder *d = p->decoder;
    uint64_t used = 0; /* experts that the tokens use in the latest layer */
    if (layer < 0)
        return;
    for (size_t i = 0; i < step->buffer_count; i++)
        if (strcmp(step->buffers[i].name, buffer_lives[BUFFER_LIST].name) == 0)
            used =
                *(uint32_t *)step_read(t, t->workspace + step->buffers[i].offset, sizeof(uint32_t));
    for (size_t i = 0; i < p->tensor_count; i++) {
        const plan_tensor *tensor = &p->tensors[i];
        bool of_layer = tensor_infos[tensor->tensor].by_layer && tensor->layer == layer;
        if (!of_layer || !tensor_is_matrix(tensor->tensor))
            continue; /* vectors are small, and every block loads them from a cache */
        uint64_t planes = decoder_planes(d, tensor->tensor);
        bool of_experts = tensor_infos[tensor->tensor].part == PART_EXPERTS && planes > 1;
        s->weights.read += emu_loaded(t->memory, t->tensors[i]) + t->skipped[i] - s->of_tensors[i];
        s->weights.needed += of_experts ? tensor->bytes / planes * used : tensor->bytes;
    }
    for (int64_t sequence = 0; sequence < d->sequences; sequence++)
        for (size_t part = 0; part < PLAN_CACHE_PARTS; part++) {
            size_t i = PLAN_CACHE_PARTS * (size_t)(sequence * d->layers + layer) + part;
            if (t->caches[i])
                s->caches.read += emu_loaded(t->memory, t->caches[i]) - s->of_caches[i];
        }
    for (size_t row = 0; row < r->m; row++)
        if (r->is_row[row])
            s->caches.needed += needed_by_row(t, r, row, layer);
}

#include "check/verify_layers.h"

#include <string.h>

/* Which kernels a layer's launches are of, in all steps. */
static void note_kernels(const plan *p, int64_t layer, bool *used)
{
    for (size_t s = 0; s < p->step_count; s++)
        for (size_t i = 0; i < p->steps[s].launch_count; i++)
            if (p->steps[s].launches[i].layer == layer)
                used[p->steps[s].launches[i].kernel] = true;
}

static size_t count_new(arena *a, const plan *p, int64_t layer, const bool *covered)
{
    bool *used = arena_zalloc(a, p->kernel_count * sizeof *used);
    size_t count = 0;
    note_kernels(p, layer, used);
    for (size_t i = 0; i < p->kernel_count; i++)
        count += used[i] && !covered[i];
    return count;
}

static bool is_chosen(const chosen_layers *c, int64_t layer)
{
    for (int64_t i = 0; i < c->count; i++)
        if (c->numbers[i] == layer)
            return true;
    return false;
}

/* Keeps them ascending. */
static void choose(chosen_layers *c, int64_t layer)
{
    int64_t at = c->count++;
    for (; at && c->numbers[at - 1] > layer; at--)
        c->numbers[at] = c->numbers[at - 1];
    c->numbers[at] = layer;
}

/* The layer with the most kernels that no chosen one has, again and again. */
chosen_layers verify_choose_layers(arena *a, const plan *p)
{
    enum { AT_LEAST = 2 };
    chosen_layers c = { .count = 0 };
    bool *covered = arena_zalloc(a, p->kernel_count * sizeof *covered);
    for (size_t most = 1; most || c.count < AT_LEAST;) {
        int64_t best = -1;
        most = 0;
        for (int64_t layer = 0; layer < p->decoder->layers; layer++) {
            size_t count = is_chosen(&c, layer) ? 0 : count_new(a, p, layer, covered);
            if (!is_chosen(&c, layer) && (best < 0 || count > most)) {
                most = count;
                best = layer;
            }
        }
        if (best < 0 || (!most && c.count >= AT_LEAST))
            break;
        choose(&c, best);
        note_kernels(p, best, covered);
    }
    return c;
}

decoder *verify_reduced_decoder(arena *a, const decoder *d, const chosen_layers *chosen)
{
    decoder *r = arena_alloc(a, sizeof *r);
    *r = *d;
    r->layers = chosen->count;
    r->dense_layers = 0;
    for (int64_t i = 0; i < chosen->count; i++) {
        int64_t layer = chosen->numbers[i];
        r->windowed[i] = d->windowed[layer];
        r->recurrent[i] = d->recurrent[layer];
        r->dense_layers += layer < d->dense_layers;
        for (int t = 0; t < TENSOR_COUNT; t++)
            if (tensor_infos[t].by_layer)
                r->formats[t][i] = d->formats[t][layer];
    }
    return r;
}

/* What an address is of: a tensor and the layers between that and the launch, or a place in the
 * state or the workspace. */
typedef struct place {
    const char *said;
    decoder_tensor tensor;
    int64_t layers_away;
    uint64_t offset;
} place;

static place place_of(const plan *p, const plan_launch *l, const plan_argument *argument)
{
    uint64_t rows = 2 * (uint64_t)p->rows * sizeof(uint64_t);
    uint64_t caches = rows * (uint64_t)p->decoder->layers;
    place at = { argument->said, TENSOR_COUNT, 0, argument->offset };
    if (argument->is_number)
        at.offset = argument->number;
    else if (argument->memory == PLAN_STATE && argument->offset >= p->state.logits)
        at.offset = argument->offset - p->state.logits;
    else if (argument->memory == PLAN_STATE && argument->offset - p->state.caches < caches) {
        at.layers_away = (int64_t)((argument->offset - p->state.caches) / rows) - l->layer;
        at.offset = (argument->offset - p->state.caches) % rows;
    }
    for (size_t i = 0; argument->memory == PLAN_WEIGHTS && i < p->tensor_count; i++) {
        const plan_tensor *t = &p->tensors[i];
        if (!argument->is_number && argument->offset - t->offset < t->bytes)
            at = (place){ "a tensor", t->tensor,
                          tensor_infos[t->tensor].by_layer ? t->layer - l->layer : 0,
                          argument->offset - t->offset };
    }
    return at;
}

static bool same_arguments(const plan *p, const plan_launch *l, const plan *reduced,
                           const plan_launch *other)
{
    for (size_t i = 0; i < l->argument_count; i++) {
        place at = place_of(p, l, &l->arguments[i]);
        place there = place_of(reduced, other, &other->arguments[i]);
        if (l->arguments[i].memory != other->arguments[i].memory ||
            l->arguments[i].is_number != other->arguments[i].is_number ||
            strcmp(at.said, there.said) != 0 || at.tensor != there.tensor ||
            at.layers_away != there.layers_away || at.offset != there.offset)
            return false;
    }
    return l->argument_count == other->argument_count;
}

/* Whether a launch behind or ahead of the layers, or of a layer, is one of the reduced plan. */
static bool is_verified(const plan *p, const plan_step *step, size_t number, const plan *reduced,
                        const plan_step *verified)
{
    const plan_launch *l = &step->launches[number];
    int64_t phase = l->layer < 0 ? -1 : l->layer < p->decoder->layers ? 0 : 1;
    for (size_t i = 0; i < verified->launch_count; i++) {
        plan_launch other = verified->launches[i];
        int64_t its = other.layer < 0 ? -1 : other.layer < reduced->decoder->layers ? 0 : 1;
        if (its == phase &&
            strcmp(p->kernels[l->kernel].name, reduced->kernels[other.kernel].name) == 0 &&
            strcmp(l->said, other.said) == 0 && same_arguments(p, l, reduced, &other))
            return true;
    }
    return false;
}

static const char *layer_of(arena *a, const plan *p, const plan_launch *l)
{
    if (l->layer < 0 || l->layer >= p->decoder->layers)
        return l->layer < 0 ? "ahead of the layers" : "behind the layers";
    return arena_format(a, "layer %lld", (long long)l->layer);
}

const char *verify_same_launches(arena *a, const plan *p, const plan *reduced)
{
    for (size_t s = 0; s < p->step_count; s++)
        for (size_t i = 0; i < p->steps[s].launch_count; i++) {
            const plan_launch *l = &p->steps[s].launches[i];
            if (!is_verified(p, &p->steps[s], i, reduced, &reduced->steps[s]))
                return arena_format(
                    a, "step of %lld, %s: %s (%s) is not as in the layers that were run",
                    (long long)p->steps[s].m, layer_of(a, p, l), p->kernels[l->kernel].name,
                    l->said);
        }
    return NULL;
}

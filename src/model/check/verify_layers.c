#include "model/check/verify_model.h"

#include <string.h>

#include "kernel/limits.h"
#include "model/plan/planner.h"

/* Returns a kernel's name without its prefetch, which affects no result and varies by layer. */
static const char *plain_name(arena *a, const instance *in)
{
    instance plain = *in;
    plain.next = 0;
    return instance_make_name(a, &plain);
}

static const char **plain_names(arena *a, const plan *p)
{
    const char **names = arena_alloc(a, p->kernel_count * sizeof *names);
    for (size_t i = 0; i < p->kernel_count; i++)
        names[i] = plain_name(a, &p->kernels[i]);
    return names;
}

/* Greedily adds the layer with most works not covered: kernels by name and results. */
chosen_layers verify_choose_layers(arena *a, const plan *p)
{
    enum { AT_LEAST = 2 };
    size_t layers = (size_t)p->decoder->layers, works = 0, most_works = 0;
    const char **names = plain_names(a, p);
    name_map numbers = { 0 };
    for (size_t s = 0; s < p->step_count; s++)
        most_works += p->steps[s].launch_count;
    bool *used = arena_zalloc(a, layers * most_works * sizeof *used); /* [layers, works] */
    bool *covered = arena_zalloc(a, most_works * sizeof *covered);
    bool *chosen = arena_zalloc(a, layers * sizeof *chosen);
    chosen_layers c = { .count = 0 };
    for (size_t s = 0; s < p->step_count; s++)
        for (size_t i = 0; i < p->steps[s].launch_count; i++) {
            const plan_launch *l = &p->steps[s].launches[i];
            if (l->layer < 0 || (size_t)l->layer >= layers)
                continue;
            const char *name = arena_format(a, "%s: %s", names[l->kernel], l->said);
            size_t work = name_map_find_or_add(a, &numbers, name, works);
            works += work == works;
            used[(size_t)l->layer * most_works + work] = true;
        }
    for (size_t picked = 0; picked < layers; picked++) {
        size_t best = layers, most = 0;
        for (size_t layer = 0; layer < layers; layer++) {
            size_t count = 0;
            for (size_t k = 0; k < works; k++)
                count += used[layer * most_works + k] && !covered[k];
            if (!chosen[layer] && (best == layers || count > most)) {
                most = count;
                best = layer;
            }
        }
        if (!most && picked >= AT_LEAST)
            break;
        for (size_t layer = best;; layer = (size_t)p->decoder->at[layer].cache) {
            chosen[layer] = true; /* and the layer whose cache it reads */
            for (size_t k = 0; k < works; k++)
                covered[k] |= used[layer * most_works + k];
            if (!p->decoder->at[layer].attends || (size_t)p->decoder->at[layer].cache == layer)
                break;
        }
    }
    for (size_t layer = 0; layer < layers; layer++)
        if (chosen[layer])
            c.numbers[c.count++] = (int64_t)layer;
    return c;
}

decoder *verify_reduced_decoder(arena *a, const decoder *d, const chosen_layers *chosen)
{
    decoder *r = arena_alloc(a, sizeof *r);
    *r = *d;
    r->layers = chosen->count;
    for (int64_t i = 0; i < chosen->count; i++) {
        int64_t layer = chosen->numbers[i];
        r->at[i] = d->at[layer];
        for (int64_t from = 0; from < chosen->count; from++)
            if (chosen->numbers[from] == d->at[layer].cache)
                r->at[i].cache = from;
        for (int t = 0; t < TENSOR_COUNT; t++)
            if (tensor_infos[t].by_layer)
                r->formats[t][i] = d->formats[t][layer];
    }
    return r;
}

/* Adapts a launch's prefetch argument to its new kernel. */
static void exchange_argument(arena *a, const plan *reduced, plan_launch *l, const instance *taken)
{
    const plan_argument none = { .memory = PLAN_WEIGHTS, .offset = UINT64_MAX, .said = "nothing" };
    size_t before = next_param(a, &reduced->kernels[l->kernel]);
    size_t now = next_param(a, taken);
    plan_argument fetched = none;
    if (before < MAX_PARAMS) {
        fetched = l->arguments[before];
        plan_remove_argument(l, before);
    }
    if (now < MAX_PARAMS)
        plan_insert_argument(
            l, now, plan_bytes_from(reduced, &fetched) >= (uint64_t)taken->next ? fetched : none);
}

void verify_take_kernels(arena *a, plan *reduced, const plan *p)
{
    const char **names = plain_names(a, p), **of_reduced = plain_names(a, reduced);
    for (size_t k = 0; k < reduced->kernel_count; k++) {
        size_t like = 0;
        while (like < p->kernel_count && strcmp(names[like], of_reduced[k]) != 0)
            like++;
        if (like == p->kernel_count)
            continue;
        for (size_t s = 0; s < reduced->step_count; s++)
            for (size_t i = 0; i < reduced->steps[s].launch_count; i++)
                if (reduced->steps[s].launches[i].kernel == k)
                    exchange_argument(a, reduced, &reduced->steps[s].launches[i],
                                      &p->kernels[like]);
        reduced->kernels[k] = p->kernels[like];
    }
}

/* An argument's place: tensor and distance in layers; slot of caches; or offset. */
typedef enum slot_kind { SLOT_NONE, SLOT_OWN, SLOT_SHARED, SLOT_STATES, SLOT_OTHER } slot_kind;
typedef struct place {
    const char *said;
    decoder_tensor tensor;
    int64_t layers_away;
    uint64_t offset;
    slot_kind slot;
} place;

static place place_of(const plan *p, const plan_step *step, const plan_launch *l,
                      const plan_argument *argument)
{
    const decoder *d = p->decoder;
    int64_t part = plan_part_of(p, argument);
    place at = { argument->said, TENSOR_COUNT, 0, argument->offset, SLOT_NONE };
    if (argument->is_number) {
        at.offset = argument->number;
    } else if (argument->memory == PLAN_STATE && argument->offset >= p->state.logits) {
        at.offset = argument->offset - p->state.logits;
    } else if (part >= 0) {
        int64_t slot = part / PLAN_CACHE_PARTS;
        at.slot = slot == l->layer                           ? SLOT_OWN
                  : slot == d->at[l->layer].cache            ? SLOT_SHARED
                  : slot == decoder_states_slot(d, l->layer) ? SLOT_STATES
                                                             : SLOT_OTHER;
        at.offset = (uint64_t)(part % PLAN_CACHE_PARTS);
    } else if (argument->memory == PLAN_WORKSPACE) { /* h and middle exchange their memory */
        if (strcmp(at.said, buffer_lives[BUFFER_PER_LAYER].name) == 0 && l->layer >= 0)
            at.offset -= (uint64_t)(l->layer * step->m * d->per_layer) * sizeof(float);
        for (size_t i = 0; i < step->buffer_count; i++)
            if ((strcmp(step->buffers[i].name, buffer_lives[BUFFER_H].name) == 0 ||
                 strcmp(step->buffers[i].name, buffer_lives[BUFFER_MIDDLE].name) == 0) &&
                (strcmp(at.said, buffer_lives[BUFFER_H].name) == 0 ||
                 strcmp(at.said, buffer_lives[BUFFER_MIDDLE].name) == 0) &&
                argument->offset - step->buffers[i].offset < step->buffers[i].bytes)
                at.offset = argument->offset - step->buffers[i].offset;
    }
    const plan_tensor *t = plan_tensor_of(p, argument);
    if (t)
        at = (place){ .said = "a tensor",
                      .tensor = t->tensor,
                      .layers_away = tensor_infos[t->tensor].by_layer ? t->layer - l->layer : 0,
                      .offset = argument->offset - t->offset };
    return at;
}

static void remove_prefetch(arena *a, const plan *p, plan_launch *l)
{
    size_t number = next_param(a, &p->kernels[l->kernel]);
    if (number < MAX_PARAMS)
        plan_remove_argument(l, number);
}

/* Returns true if the reduced plan has an equal launch, before, in or after the layers. */
static bool is_verified(arena *a, const plan *p, const plan_step *step, size_t number,
                        const plan *reduced, const plan_step *verified)
{
    plan_launch l = step->launches[number];
    const char *name = plain_name(a, &p->kernels[l.kernel]);
    int64_t part = l.layer < 0 ? -1 : l.layer < p->decoder->layers ? 0 : 1;
    remove_prefetch(a, p, &l);
    for (size_t i = 0; i < verified->launch_count; i++) {
        plan_launch other = verified->launches[i];
        int64_t its = other.layer < 0 ? -1 : other.layer < reduced->decoder->layers ? 0 : 1;
        remove_prefetch(a, reduced, &other);
        bool same = its == part && strcmp(l.said, other.said) == 0 &&
                    l.argument_count == other.argument_count &&
                    strcmp(name, plain_name(a, &reduced->kernels[other.kernel])) == 0;
        for (size_t j = 0; same && j < l.argument_count; j++) {
            place at = place_of(p, step, &l, &l.arguments[j]);
            place there = place_of(reduced, verified, &other, &other.arguments[j]);
            same = l.arguments[j].memory == other.arguments[j].memory &&
                   l.arguments[j].is_number == other.arguments[j].is_number &&
                   strcmp(at.said, there.said) == 0 && at.tensor == there.tensor &&
                   at.layers_away == there.layers_away && at.slot == there.slot &&
                   at.offset == there.offset;
        }
        if (same)
            return true;
    }
    return false;
}

const char *verify_same_launches(arena *a, const plan *p, const plan *reduced)
{
    for (size_t s = 0; s < p->step_count; s++)
        for (size_t i = 0; i < p->steps[s].launch_count; i++) {
            const plan_launch *l = &p->steps[s].launches[i];
            if (is_verified(a, p, &p->steps[s], i, reduced, &reduced->steps[s]))
                continue;
            const char *where = l->layer < 0 ? "before the layers" : "after the layers";
            if (l->layer >= 0 && l->layer < p->decoder->layers)
                where = arena_format(a, "layer %lld", (long long)l->layer);
            return arena_format(
                a, "step of %lld, %s: %s (%s) differs from the layers that were run",
                (long long)p->steps[s].m, where, p->kernels[l->kernel].name, l->said);
        }
    return NULL;
}

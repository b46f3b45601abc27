#include "model/check/step_router.h"

#include <math.h>

/* SPREAD is the size of logits. LIFT exceeds any probability: it makes an expert always chosen. */
static const float SPREAD = 3, MOST_OF_LEVEL = 0.5F, LITTLE = 0.2F, NOISE = 0.1F, LIFT = 2,
                   CHOICE_BIAS = 0.02F;

static int64_t lifted(const decoder *d)
{
    return d->has[TENSOR_EXP_PROBS_B] ? d->experts / 3 : -1;
}

/* Gives count experts levels of about a size, taking one expert of each group alternately. */
static void raise(arena *a, const decoder *d, int64_t count, float size, float *levels,
                  random_source *r)
{
    int64_t all = d->expert_groups ? d->expert_groups : 1, in_group = d->experts / all;
    int64_t used = d->expert_groups ? d->expert_groups_used : 1;
    int64_t first = lifted(d) < 0 ? 0 : lifted(d) / in_group;
    int64_t *groups = arena_alloc(a, (size_t)all * sizeof *groups);
    for (int64_t i = 0; i < all; i++)
        groups[i] = (i + first) % all;
    for (int64_t i = all - 1; i > 1; i--) { /* shuffle all groups but the first */
        int64_t other = 1 + (int64_t)random_below(r, (uint64_t)i), kept = groups[i];
        groups[i] = groups[other];
        groups[other] = kept;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t begin = groups[i % used] * in_group,
                at = (int64_t)random_below(r, (uint64_t)in_group);
        for (int64_t tried = 0; tried < in_group; tried++, at++) {
            float *level = &levels[begin + at % in_group];
            if (begin + at % in_group == lifted(d) || fabsf(*level) > LITTLE)
                continue;
            *level = size * (1 + MOST_OF_LEVEL * random_part(r));
            break;
        }
    }
}

void step_make_router(arena *a, const decoder *d, int64_t layer, void *model, ref_weights *weights,
                      random_source *r)
{
    if (!decoder_has(d, TENSOR_FFN_GATE_INP, layer) ||
        decoder_format(d, TENSOR_FFN_GATE_INP, layer) != FORMAT_F32)
        return;
    size_t experts = (size_t)d->experts, hidden = (size_t)d->hidden;
    int64_t used = d->experts_used - (lifted(d) >= 0), unused = d->experts - d->experts_used;
    int64_t raised = used < unused ? used : unused;
    float *w = (float *)weights(model, TENSOR_FFN_GATE_INP, layer).blocks;
    float *levels = arena_alloc(a, experts * sizeof *levels);
    float *direction = arena_alloc(a, hidden * sizeof *direction);
    for (size_t e = 0; e < experts; e++)
        levels[e] = LITTLE * (2 * random_part(r) - 1);
    raise(a, d, raised, 1, levels, r);
    raise(a, d, raised, -1, levels, r);
    for (size_t i = 0; i < hidden; i++)
        direction[i] = random_normal(r);
    for (size_t i = 0; i < experts * hidden; i++)
        w[i] = SPREAD / sqrtf((float)hidden) *
               (levels[i / hidden] * direction[i % hidden] + NOISE * random_normal(r));
    if (lifted(d) < 0)
        return;
    float *bias = (float *)weights(model, TENSOR_EXP_PROBS_B, layer).blocks;
    for (size_t e = 0; e < experts; e++)
        bias[e] = CHOICE_BIAS * (2 * random_part(r) - 1);
    bias[lifted(d)] = LIFT;
}

/* A sum of two scores may be off twice as much as one, and so may the sum compared with it. */
static const double DIFFERENCES = 4;
/* Tolerance by the scores' range: for float arithmetic; and for noise of 8 bits. */
static const double FLOATS = 1e-3, OF_8_BITS = 0.05;

/* Returns how far scores may be off, given the noise. Their range excludes the largest. */
static double doubt_of(const decoder *d, const ref_choice *exact, double noise)
{
    bool rounds = d->precision == PRECISION_Q8 || d->kv_type == KV_Q8_0;
    double largest = -HUGE_VAL, second = -HUGE_VAL, least = HUGE_VAL;
    for (int64_t e = 0; e < d->experts; e++) {
        double score = exact->scores[e];
        second = fmax(second, fmin(score, largest));
        largest = fmax(largest, score);
        least = fmin(least, score);
    }
    return DIFFERENCES * noise + (rounds ? OF_8_BITS : FLOATS) * (second - least);
}

bool step_may_be_clear(const decoder *d, const ref_step *rounded, const double *noise)
{
    for (int64_t layer = 0; layer < d->layers; layer++) {
        const ref_choice r = ref_step_choice(rounded, layer, 0);
        if (r.scores && !(r.gap > doubt_of(d, &r, noise[layer])))
            return false;
    }
    return true;
}

bool step_is_clear(const decoder *d, const ref_step *rounded, const ref_step *exact, double *noise)
{
    for (int64_t layer = 0; layer < d->layers; layer++) {
        const ref_choice r = ref_step_choice(rounded, layer, 0);
        const ref_choice e = ref_step_choice(exact, layer, 0);
        if (!r.scores)
            continue;
        double most = noise[layer];
        for (int64_t i = 0; i < d->experts; i++)
            most = fmax(most, fabs(r.scores[i] - e.scores[i]));
        if (!(r.gap > doubt_of(d, &e, most)))
            return false;
        noise[layer] = most;
    }
    return true;
}

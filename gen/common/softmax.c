#include "gen/common/softmax.h"

#include <float.h>

softmax softmax_new(ptx *p, unsigned count)
{
    softmax s = { .count = count };
    s.max = var_f32(p, -FLT_MAX);
    s.sum = var_f32(p, 0.0f);
    for (unsigned i = 0; i < count; i++)
        s.values[i] = var_f32(p, 0.0f);
    return s;
}

static void scale_down(ptx *p, const softmax *s, val factor)
{
    assign(p, s->sum, mul(p, s->sum, factor));
    for (unsigned i = 0; i < s->count; i++)
        assign(p, s->values[i], mul(p, s->values[i], factor));
}

val softmax_raise_max(ptx *p, var max, val largest)
{
    val old = get(p, max), raised = max(p, old, largest);
    assign(p, max, raised);
    return ex2(p, sub(p, old, raised));
}

void softmax_raise(ptx *p, const softmax *s, const val *scores, unsigned count)
{
    val old_max = get(p, s->max), new_max = old_max;
    for (unsigned i = 0; i < count; i++)
        new_max = max(p, new_max, scores[i]);
    assign(p, s->max, new_max);
    scale_down(p, s, ex2(p, sub(p, old_max, new_max)));
}

val softmax_weight(ptx *p, const softmax *s, val score)
{
    val weight = ex2(p, sub(p, score, s->max));
    assign(p, s->sum, add(p, s->sum, weight));
    return weight;
}

void softmax_merge_lanes(ptx *p, const softmax *s, unsigned mask)
{
    val other_max = shuffle_xor(p, s->max, mask);
    val own = get(p, s->max), common = max(p, own, other_max);
    scale_down(p, s, ex2(p, sub(p, own, common)));
    assign(p, s->max, common);
    assign(p, s->sum, add(p, s->sum, shuffle_xor(p, s->sum, mask)));
    for (unsigned i = 0; i < s->count; i++)
        assign(p, s->values[i], add(p, s->values[i], shuffle_xor(p, s->values[i], mask)));
}

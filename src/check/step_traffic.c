#include "check/step_traffic.h"

#include <string.h>

#include "family/planner.h"

step_traffic step_traffic_new(const step_trial *t)
{
    const plan *p = t->v->plan;
    step_traffic s = { .before = arena_alloc(t->scratch, p->tensor_count * sizeof *s.before) };
    for (size_t i = 0; i < p->tensor_count; i++)
        s.before[i] = emu_loaded(t->memory, t->tensors[i]);
    return s;
}

/* The experts that the tokens of the latest layer use. */
static uint64_t experts_in_use(const step_trial *t, const plan_step *step)
{
    for (size_t i = 0; i < step->buffer_count; i++)
        if (strcmp(step->buffers[i].name, buffer_lives[BUFFER_LIST].name) == 0)
            return *(uint32_t *)step_read(t, t->workspace + step->buffers[i].offset,
                                          sizeof(uint32_t));
    return 0;
}

void step_traffic_add(step_traffic *s, const step_trial *t, const plan_step *step, int64_t layer)
{
    const plan *p = t->v->plan;
    for (size_t i = 0; i < p->tensor_count; i++) {
        const plan_tensor *tensor = &p->tensors[i];
        bool of_layer = tensor_infos[tensor->tensor].by_layer && tensor->layer == layer;
        if (!of_layer || !tensor_is_matrix(tensor->tensor))
            continue; /* vectors are few bytes, which every block loads from a cache */
        uint64_t planes = decoder_planes(p->decoder, tensor->tensor);
        bool of_experts = tensor_infos[tensor->tensor].part == PART_EXPERTS && planes > 1;
        s->read += emu_loaded(t->memory, t->tensors[i]) - s->before[i];
        s->needed += of_experts ? tensor->bytes / planes * experts_in_use(t, step) : tensor->bytes;
    }
}

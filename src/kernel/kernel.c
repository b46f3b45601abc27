#include "kernel/kernel.h"

#include <string.h>

#include "kernel/limits.h"

const char *const embedding_names[EMBED_COUNT] = { "string", "c23", "incbin" };

bool embedding_find(const char *word, embedding *found)
{
    for (size_t i = 0; i < EMBED_COUNT; i++)
        if (strcmp(embedding_names[i], word) == 0) {
            *found = (embedding)i;
            return true;
        }
    return false;
}

target_set kernel_gpus(const kernel_set *set, const kernel *k)
{
    const kernel *end = set->kernels + set->kernel_count, *first = set->kernels;
    target_set gpus = 0;
    while (first < end && first->instance->name != k->instance->name)
        first++;
    for (size_t g = 0; g < target_count; g++) {
        const target *gpu = &targets[g];
        const kernel *taken = NULL;
        for (const kernel *one = first; one < end && one->instance->name == k->instance->name;
             one++) {
            unsigned sm = one->target->sm;
            if (gpu->specific || (one->specific ? gpu->sm != sm : gpu->sm < sm))
                continue;
            shared_need need = launch_shared_need(one->instance, gpu);
            taken = need.bytes <= need.limit ? one : taken;
        }
        if (taken && strcmp(taken->file, k->file) == 0)
            gpus |= target_bit(gpu);
    }
    return gpus;
}

void kernel_plan_assemblies(arena *a, const kernel_set *set, target_set known, const target *oldest,
                            assembly_plans *out)
{
    for (size_t i = 0; i < set->kernel_count; i++) {
        const kernel *k = &set->kernels[i];
        const kernel *next = i + 1 < set->kernel_count ? k + 1 : NULL;
        if (next && next->instance->name != k->instance->name)
            next = NULL;
        target_set gpus = kernel_gpus(set, k) & known, wanted = 0;
        for (size_t j = 0; j < set->target_count; j++)
            wanted |= target_bit(set->targets[j]);
        const target *last = NULL;
        for (const target *t = targets; t < targets + target_count; t++) {
            bool is_made_for = wanted & target_bit(t) && t >= k->target &&
                               (!k->specific || t == k->target) && !(next && t >= next->target);
            if (!is_made_for && (k->specific || !(gpus & target_bit(t))))
                continue;
            const target *taken = t->sm < oldest->sm ? oldest : t;
            if (taken == last)
                continue;
            *VEC_PUSH(a, out) = (assembly_plan){ .kernel = k, .target = last = taken };
        }
    }
}

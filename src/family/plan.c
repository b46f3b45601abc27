#include "family/plan.h"

const char *const plan_memory_names[PLAN_MEMORIES] = {
    [PLAN_WEIGHTS] = "weights",
    [PLAN_CACHE] = "cache",
    [PLAN_STATE] = "state",
    [PLAN_WORKSPACE] = "workspace",
};

uint64_t plan_cache_offset(const plan *p, int64_t sequence, int64_t layer)
{
    return 2 * (uint64_t)(sequence * p->decoder->layers + layer) * p->cache_bytes;
}

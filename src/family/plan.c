#include "family/plan.h"

const char *const plan_memory_names[PLAN_MEMORIES] = {
    [PLAN_WEIGHTS] = "weights",
    [PLAN_CACHE] = "cache",
    [PLAN_STATE] = "state",
    [PLAN_WORKSPACE] = "workspace",
};

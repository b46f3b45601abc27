#include "input/select.h"

#include <string.h>

void spec_keep_shard(spec *s, shard part)
{
    size_t kept = 0;
    for (size_t i = (size_t)(part.index - 1); i < s->instance_count; i += (size_t)part.count)
        s->instances[kept++] = s->instances[i];
    s->instance_count = kept;
    s->pipeline_count = s->alias_count = 0;
}

bool spec_keep_instance(arena *a, spec *s, const char *name, diags *d)
{
    const char **names = arena_alloc(a, s->instance_count * sizeof *names);
    for (size_t i = 0; i < s->instance_count; i++) {
        names[i] = s->instances[i].name;
        if (strcmp(names[i], name) != 0)
            continue;
        s->instances = &s->instances[i];
        s->instance_count = 1;
        s->pipeline_count = s->alias_count = 0;
        return true;
    }
    const char *closest = closest_match(name, names, s->instance_count);
    diag_error(d, DIAG_UNKNOWN_INSTANCE, (location){ 0 }, "the spec has no instance '%s'%s%s%s",
               name, closest ? "; did you mean '" : "", closest ? closest : "",
               closest ? "'?" : "");
    return false;
}

/* Any bytes as a spec: the result must be instances, or printable messages that point into the
 * text. */
#include <assert.h>
#include <string.h>

#include "kernel/pipeline.h"
#include "input/spec.h"
#include "tests/fuzz/fuzz.h"
#include "model/storey.h"

enum { MAX_INSTANCES = 256 }; /* maximum number of instances to check */

static void check_place(const location *where)
{
    if (!where->line)
        return;
    size_t length = strlen(where->text);
    assert(where->column >= 1 && where->column <= length + 1);
    assert(where->length <= length - (where->column - 1));
}

static void check_messages(arena *a, const diags *d)
{
    for (size_t i = 0; i < d->list.count; i++)
        check_place(&d->list.items[i].where);
    strbuf shown = strbuf_new(a);
    diags_render(d, &shown, false);
    assert(strlen(shown.text) == shown.length);
    assert(!d->errors || shown.length);
    for (const char *c = shown.text; *c; c++)
        assert((unsigned char)*c >= ' ' || *c == '\n' || *c == '\t');
}

/* Checks the properties of an instance that a header needs. */
static void check_instance(arena *a, const instance *in)
{
    assert(strcmp(in->name, instance_make_name(a, in)) == 0);
    param params[MAX_PARAMS];
    assert(instance_params(a, in, params) <= MAX_PARAMS);
    for (const key *k = in->family->keys; k->name; k++)
        assert(*instance_value_text(a, in, k));
}

static void check_spec(arena *a, const spec *s)
{
    assert(s->instance_count && s->target_count && *s->prefix);
    for (size_t i = 0; i < s->instance_count && i < MAX_INSTANCES; i++)
        check_instance(a, &s->instances[i]);
    for (size_t i = 0; i < s->pipeline_count; i++)
        for (size_t step = 0; step < s->pipelines[i].step_count; step++)
            assert(s->pipelines[i].steps[step].kernel >= s->instances &&
                   s->pipelines[i].steps[step].kernel < s->instances + s->instance_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_new();
    diags d = diags_new(a);
    spec s;
    bool right = spec_parse(a, "spec.ini", (const char *)data, size, families_and_pipelines(a),
                            &model_storey, NULL, &s, &d);
    assert(right == !d.errors);
    check_messages(a, &d);
    if (right)
        check_spec(a, &s);
    arena_free(a);
    return 0;
}

#include "kernel/suite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "generate.h"

static int64_t word_index(const key *k, const char *word)
{
    for (int64_t i = 0; k->choices[i].word; i++)
        if (strcmp(k->choices[i].word, word) == 0)
            return i;
    fail_msg("%s has no word '%s'", k->name, word);
    return 0;
}

static void check_range(const family *f, const key *k, int64_t value)
{
    bool left_out = k->at_run_time && value == 0;
    if (!k->choices && !k->real && !left_out &&
        (value < k->min || value > k->max || (k->multiple_of && value % k->multiple_of)))
        fail_msg("%s refuses %s = %lld", f->name, k->name, (long long)value);
}

bool suite_instance(arena *a, const family *f, const char *text, instance *in)
{
    *in = (instance){ .family = f };
    for (const key *k = f->keys; k->name; k++)
        instance_set(in, k, key_default(k));
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        size_t name_length = strcspn(at, "="), length = strcspn(at, " ");
        const char *name = arena_copy(a, at, name_length);
        const char *value = arena_copy(a, at + name_length + 1, length - name_length - 1);
        const key *k = family_key(f, name);
        if (!k)
            return false;
        instance_set(in, k,
                     k->choices ? word_index(k, value)
                     : k->real  ? real_bits(atof(value))
                                : atoll(value));
        at += length;
    }
    for (const key *k = f->keys; k->name; k++)
        check_range(f, k, instance_value(in, k));
    const char *blamed, *refusal = f->check ? f->check(in, a, &blamed) : NULL;
    if (refusal)
        fail_msg("%s refuses '%s': %s", f->name, text, refusal);
    in->name = instance_make_name(a, in);
    return true;
}

kernel suite_kernel(arena *a, const instance *in)
{
    kernel k;
    const char *error;
    arena *scratch = arena_new();
    bool built = generate_ptx(a, scratch, in, target_find("sm_75"), &k, &error);
    arena_free(scratch);
    if (!built)
        fail_msg("%s can't be built: %s", in->name, error);
    return k;
}

trial_setup suite_setup(const instance *in, const device *d)
{
    trial_setup setup = { .shape = in->shape, .sm_count = d->sm_count, .seed = 1 };
    setup.shape.seq_len = in->shape.max_seq_len;
    return setup;
}

typedef struct device_run {
    device *device;
    const trial *trial;
    uint64_t addresses[MAX_PARAMS];
    uint8_t *outputs[MAX_PARAMS], *written[MAX_PARAMS];
} device_run;

static bool run(arena *a, device_run *r, const kernel *k, const char **error)
{
    const trial *t = r->trial;
    device *d = r->device;
    const void *pointers[MAX_PARAMS];
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        pointers[i] = p->param.kind == PARAM_U32 ? (const void *)&p->number : &r->addresses[i];
        if (p->param.kind == PARAM_OUT && !d->alloc(d->state, p->size, &r->addresses[i], error))
            return false;
        if (p->param.kind == PARAM_IN &&
            !d->copy_in(d->state, p->bytes, p->size, &r->addresses[i], error))
            return false;
    }
    device_launch l = {
        .entry = k->instance->name,
        .grid = { t->grid[0], t->grid[1], t->grid[2] },
        .block = t->block,
        .dynamic_shared = t->dynamic_shared,
        .params = pointers,
        .param_count = t->param_count,
    };
    if (!d->load(d->state, k->ptx, k->ptx_length, error) || !d->launch(d->state, &l, error))
        return false;
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        size_t block_bytes = formats[p->param.format].block_bytes;
        if (p->param.kind != PARAM_OUT)
            continue;
        r->outputs[i] = arena_zalloc(a, p->size);
        r->written[i] = arena_alloc(a, p->size / block_bytes);
        if (!d->copy_out(d->state, r->addresses[i], r->outputs[i], p->size / block_bytes,
                         block_bytes, r->written[i], error))
            return false;
    }
    return true;
}

static const char *judge(arena *a, const device_run *r, size_t index, const double *expected)
{
    const trial_param *p = &r->trial->params[index];
    unsigned block_values = formats[p->param.format].block_values;
    for (uint64_t i = 0; i < p->values / block_values; i++)
        if (!r->written[index][i])
            return arena_format(a, "%s[%llu] is never written", p->param.name,
                                (unsigned long long)(i * block_values));

    judgement j = { 0 };
    const family *f = r->trial->instance->family;
    if (expected) {
        ref_value *values = arena_alloc(a, p->values * sizeof *values);
        f->reference(&r->trial->problem, 0, 0, p->values, values);
        for (uint64_t i = 0; i < p->values; i++)
            values[i].value = expected[i];
        judge_values(&p->param, r->outputs[index], values, 0, p->values, f->tolerance, &j);
    } else {
        trial_judge(r->trial, index, r->outputs[index], NULL, &j);
    }
    return j.worst <= 1
               ? NULL
               : arena_format(a, "%s%s[%llu] is %.9g, expected %.9g: %.3g of its bound", j.field,
                              j.output, (unsigned long long)j.element, j.got, j.expected, j.worst);
}

const char *suite_run(arena *a, device *d, const kernel *k, const trial *t, const double *expected,
                      const void **output)
{
    device_run r = { .device = d, .trial = t };
    const char *wrong = NULL;
    if (run(a, &r, k, &wrong))
        for (size_t i = 0; !wrong && i < t->param_count; i++)
            if (t->params[i].param.kind == PARAM_OUT)
                wrong = judge(a, &r, i, i == 0 ? expected : NULL);
    if (wrong)
        wrong = arena_format(a, "%s on the %s: %s (%s)", k->instance->name, d->name, wrong,
                             trial_describe(a, t));
    if (output)
        *output = r.outputs[0];
    d->reset(d->state);
    return wrong;
}
